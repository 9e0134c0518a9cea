# SPDX-License-Identifier: Apache-2.0
"""Actuators drawn from the uncertainty of identified ones."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record

from robot_dyn_id.actuators.draws import draw_actuators
from robot_dyn_id.actuators.identification import KnownDrives, identify
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.actuators import ARMATURE, COULOMB


@pytest.fixture(scope="module")
def estimate():
    motions = [
        record(truth=replace(TRUTH, coulomb=factor * TRUTH.coulomb), seed=seed, duration=5.0, rate=50.0)
        for seed, factor in enumerate((0.9, 1.0, 1.1))
    ]
    return identify(MODEL, motions, KnownDrives(TRUTH.kp, TRUTH.kd, np.full(3, np.inf)))


@pytest.mark.slow
def test_draws_have_the_width_of_the_intervals_and_what_changes_between_recordings(estimate):
    uncertainty = estimate.uncertainty
    draws = draw_actuators(estimate.actuators, uncertainty, 400, 0)
    expected = np.hypot(0.5 * (uncertainty.high - uncertainty.low) / 1.96, uncertainty.between)
    for kind in (ARMATURE, COULOMB):
        values = np.array([one.values[kind] for one in draws])
        np.testing.assert_allclose(values.mean(axis=0), estimate.actuators.values[kind], rtol=0.05)
        np.testing.assert_allclose(values.std(axis=0), expected[kind], rtol=0.15)
    assert expected[COULOMB][0] > 0.08 * TRUTH.coulomb[0]  # 10 % from one recording to the next
    delays = np.array([one.delay for one in draws])
    assert np.all(delays == delays[:, :1])  # one for all joints


def test_infinite_intervals_are_refused(estimate):
    high = estimate.uncertainty.high.copy()
    high[ARMATURE, 1] = np.inf
    with pytest.raises(InputError, match="armature of elbow is infinite"):
        draw_actuators(estimate.actuators, replace(estimate.uncertainty, high=high), 1, 0)
