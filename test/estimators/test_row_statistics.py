# SPDX-License-Identifier: Apache-2.0
"""Weighted least squares from statistics that are merged."""

import numpy as np
import pytest
from support.fleets import SimulatedFleet

from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.excitation import draw_random_fourier


@pytest.fixture(scope="module")
def problems():
    fleet = SimulatedFleet(1)
    regressor, base = fleet.arm.regressor, fleet.arm.base
    t = np.arange(400) / 20.0
    motions = [Motion(*draw_random_fourier(fleet.arm.model, seed).evaluate(t)[:3]) for seed in (1, 2, 3)]
    rng = np.random.default_rng(0)
    noisy = [
        regressor.torque(m, fleet.parameters(0), np.arange(len(regressor.names))) + 0.1 * rng.normal(size=m.q.shape)
        for m in motions
    ]

    def problem(places):
        motion = Motion(*(np.concatenate([getattr(motions[p], n) for p in places], axis=1) for n in ("q", "dq", "ddq")))
        torque = np.concatenate([noisy[p] for p in places], axis=1)
        return UnfilteredProblem.from_samples(regressor, base.independent, motion, torque, 20.0)

    return problem


def test_merged_statistics_give_the_estimate_of_all_rows(problems):
    together = problems((0, 1, 2))
    parts = [RowStatistics.from_problem(problems((place,)), 6) for place in range(3)]
    merged = RowStatistics.merged([RowStatistics.merged(parts[:2]), parts[2]]).estimate(together.names)
    plain = WeightedLeastSquares().fit(together)
    assert np.abs(merged.values - plain.values).max() <= 1e-12 * np.abs(plain.values).max()
    assert merged.rows == plain.rows
    assert merged.residual_rms == pytest.approx(plain.residual_rms, rel=1e-9)
    assert merged.standard_deviations == pytest.approx(plain.standard_deviations, rel=0.3)  # a noise model per part


def test_one_part_has_the_covariance_of_the_estimator(problems):
    together = problems((0, 1, 2))
    alone = RowStatistics.from_problem(together, 6).estimate(together.names)
    assert alone.standard_deviations == pytest.approx(WeightedLeastSquares().fit(together).standard_deviations)
