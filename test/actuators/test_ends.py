# SPDX-License-Identifier: Apache-2.0
"""End stops, and references that drives do not follow."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import GOOD, MODEL, TRUTH, record

from robot_dyn_id.actuators.actuator_set import ActuatorSet
from robot_dyn_id.actuators.ends import find_blocked
from robot_dyn_id.actuators.identification import KnownDrives, identify
from robot_dyn_id.actuators.judgment import judge
from robot_dyn_id.actuators.rollout import split_into_limbs
from robot_dyn_id.actuators.validation import validate
from robot_dyn_id.files.actuators import read_actuators, write_actuators
from robot_dyn_id.kernels.actuators import (
    LOWER_REFERENCE,
    LOWER_STOP,
    OFFSET,
    UPPER_REFERENCE,
    UPPER_STOP,
)

KNOWN = KnownDrives(TRUTH.kp, TRUTH.kd, np.full(3, np.inf))

ENDS = [LOWER_STOP, UPPER_STOP, LOWER_REFERENCE, UPPER_REFERENCE]

OPTIONS = {"duration": 6.0, "rate": 50.0, "noise": 1e-3}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [(UPPER_STOP, "upper_stop", "actuator_end_stop"), (UPPER_REFERENCE, "upper_reference", "actuator_reference_end")],
)
def test_the_cause_and_the_place_of_an_end_are_found_and_all_else_is_as_without_it(kind, name, code, tmp_path):
    truth = replace(TRUTH, **{name: np.array([np.inf, np.inf, 0.1])})
    estimate = identify(MODEL, [record(truth=truth, **OPTIONS)], KNOWN)
    assert np.argwhere(estimate.uncertainty.estimated[ENDS]).tolist() == [[ENDS.index(kind), 2]]
    assert estimate.actuators.values[kind, 2] == pytest.approx(0.1, abs=2e-3)
    rest = slice(0, OFFSET)
    np.testing.assert_allclose(estimate.actuators.values[rest], truth.values[rest], rtol=0.1)
    write_actuators(tmp_path / "actuators.yaml", ActuatorSet.from_estimate(estimate, GOOD))
    stored = read_actuators(tmp_path / "actuators.yaml").actuators.values
    np.testing.assert_array_equal(stored, estimate.actuators.values)
    errors = validate(MODEL, estimate.actuators, [record(truth=truth, seed=7, **OPTIONS | {"noise": 0.0})])
    assert errors.rms(np.inf) < 2e-3
    assert errors.efforts[2] < 0.1
    (finding,) = (one for one in judge(estimate, KNOWN, None, MODEL.limits) if one.joints == ("wrist",))
    assert (finding.code, finding.severity) == (code, "info")
    assert f"{estimate.actuators.values[kind, 2]:.4g} rad or m" in finding.message
    assert finding.message.endswith(f"the robot description states {MODEL.limits.upper[2]:.4g}")


@pytest.mark.slow
def test_an_obstacle_that_is_there_half_of_the_time_is_not_an_end():
    """An obstacle in the way of the wrist in the first half of the motion alone."""
    motion = record(**OPTIONS)
    q = motion.q.copy()
    half = len(q) // 2
    q[:half, 2] = np.minimum(q[:half, 2], -0.1)
    estimate = identify(MODEL, [replace(motion, q=q)], KNOWN)
    assert not estimate.uncertainty.estimated[ENDS].any()


def test_free_motion_has_no_ends():
    motions = [record(seed=seed, duration=5.0, rate=50.0, noise=1e-3) for seed in range(2)]
    worse = replace(TRUTH, coulomb=1.2 * TRUTH.coulomb, delay=TRUTH.delay + 0.01)
    for actuators in (TRUTH, worse):
        assert find_blocked(split_into_limbs(MODEL), actuators, motions) == []
