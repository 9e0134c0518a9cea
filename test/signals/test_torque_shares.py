# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of parameters measured by the torque that it changes."""

import numpy as np
import pytest
from support.simulated import Simulated

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.torque_shares import compute_torque_shares
from robot_dyn_id.signals.trials import FilteredTrials

ROBOT = Simulated()


@pytest.fixture(scope="module")
def trials():
    recording = ROBOT.record(duration=10.0)
    return FilteredTrials([recording], recording.joint_names, {}, SignalPlan.from_low_pass(100.0, LowPass(5.0), False))


def test_a_parameter_is_weak_by_the_torque_of_its_deviation(trials):
    """Not by a value of zero: what counts is the torque that one standard deviation changes."""
    values = ROBOT.base_values.copy()
    zero = ROBOT.base.names.index("off1")
    values[zero] = 0.0
    deviations = np.full(len(values), 1e-6)
    deviations[zero] = 0.01
    shares = compute_torque_shares(ROBOT.regressor, ROBOT.base.independent, values, deviations, trials.ranges)
    assert np.argmax(shares) == zero
    rng = np.random.default_rng(1)
    low, high, fast, hard = (getattr(trials.ranges, name)[:, None] for name in ("q_min", "q_max", "dq_max", "ddq_max"))
    motion = Motion(rng.uniform(low, high, (3, 5000)), *(rng.uniform(-m, m, (3, 5000)) for m in (fast, hard)))
    torque = ROBOT.regressor.torque(motion, values, ROBOT.base.independent)[0]
    assert shares[zero] == pytest.approx(0.01 / np.sqrt((torque**2).mean()), rel=0.1)
    deviations[zero] = np.inf
    assert np.isinf(
        compute_torque_shares(ROBOT.regressor, ROBOT.base.independent, values, deviations, trials.ranges)[zero]
    )
