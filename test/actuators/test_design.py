# SPDX-License-Identifier: Apache-2.0
"""Motions designed for actuators, commanded to a simulated arm."""

import numpy as np
import pytest
from support.commanded import MODEL, QUICK_DESIGN, TRUTH

from robot_dyn_id.actuators.identification import KnownDrives, identify
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.errors import UsageError
from robot_dyn_id.kernels.actuators import ARMATURE, COULOMB
from robot_dyn_id.workflow.excitation import design


def identify_from(trajectory):
    t = np.arange(0.0, trajectory.duration, 0.01)
    reference = trajectory.evaluate(t)[0].T
    start = CommandedMotion("designed", MODEL.joint_names, t, reference, reference)
    q = simulate_commands(MODEL, TRUTH, start) + 1e-3 * np.random.default_rng(0).normal(size=reference.shape)
    motion = CommandedMotion("designed", MODEL.joint_names, t, q, reference)
    return identify(MODEL, [motion], KnownDrives(TRUTH.kp, TRUTH.kd, np.full(3, np.inf)))


@pytest.mark.slow
def test_a_motion_for_actuators_determines_armature_better_than_one_for_links():
    own, other = design(MODEL, purpose="actuators", **QUICK_DESIGN), design(MODEL, period=20.0, **QUICK_DESIGN)
    assert (own.settings.form, own.trajectory.duration) == ("sweep_steps", 20.0)
    assert all(margin.margin >= -1e-9 for margin in own.design.margins)
    assert len(own.task.problem.information.names) == 4 * len(MODEL.joint_names)  # the links are known
    narrow, wide = identify_from(own.trajectory), identify_from(other.trajectory)
    widths = [(one.uncertainty.high - one.uncertainty.low) for one in (narrow, wide)]
    assert np.all(widths[0][ARMATURE] < 0.7 * widths[1][ARMATURE])
    np.testing.assert_allclose(narrow.actuators.armature, TRUTH.armature, rtol=0.02)
    np.testing.assert_allclose(narrow.actuators.values[COULOMB], TRUTH.coulomb, rtol=0.02)


def test_a_purpose_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="purpose: unknown value"):
        design(MODEL, purpose="actuator", **QUICK_DESIGN)
