# SPDX-License-Identifier: Apache-2.0
"""Commanded efforts of gravity compensation in drive units."""

import numpy as np
import pytest
from support.driven_efforts import DrivenEfforts
from support.simulated import ARM

from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.execution.state_guard import TIMELY_STATES
from robot_dyn_id.loads.gravity import DriveQuality, list_nominal_bodies
from robot_dyn_id.loads.gravity_compensation import GravityCompensation, GravityLaw
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.effort_control import slew_rates

MODEL = RobotModel.from_urdf(ARM)
GAINS = np.array([0.01, -0.02, 0.05])
LAW = GravityLaw(MODEL, list_nominal_bodies(MODEL).ravel() / GAINS[:, None])
Q = np.array([0.1, 0.4, -0.3])
FULL = LAW.effort(Q)
RATED = np.full(3, 1.1 * np.abs(FULL).max())
STEP = 0.02


def make(scale=1.0, rated=RATED):
    """An arm in the pose Q whose states are trusted from the first command on."""
    driven = DrivenEfforts(GravityCompensation(LAW, scale).make_control(rated, 0.2, 0.1), STEP)
    driven.active = False
    driven.run(TIMELY_STATES, Q)
    driven.active = True
    return driven


def change(driven, scale=None, law=None, rated=RATED):
    """Begin to use another share or another calibration, as the node does."""
    gravity, efforts = driven.control.law, driven.control.efforts
    if law is not None:
        gravity.replace(law)
        efforts.replace_rated(rated, slew_rates(law.model, rated))
    else:
        gravity.scale = scale
        efforts.change()


def test_efforts_begin_at_zero_without_a_measured_effort_and_reach_the_share_of_gravity():
    driven = make(0.5)
    efforts = driven.run(12, Q)
    np.testing.assert_array_equal(efforts[0], 0.0)
    np.testing.assert_allclose(efforts[-1], 0.5 * FULL)
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.2 * np.abs(FULL).max()


def test_efforts_begin_at_those_that_hold_the_arm():
    driven = make()
    present = 0.9 * FULL + 0.01
    np.testing.assert_allclose(driven.send(Q, present=present), present)
    np.testing.assert_allclose(driven.run(12, Q)[-1], FULL)
    clipped = make(rated=np.full(3, 1e-3)).send(Q, present=present)
    np.testing.assert_allclose(clipped, np.sign(present) * 1e-3)


def test_a_change_of_the_share_and_a_release_are_ramps_that_end():
    driven = make()
    driven.run(12, Q)
    change(driven, 0.2)
    efforts = driven.run(12, Q)
    np.testing.assert_allclose(efforts[0], FULL)
    np.testing.assert_allclose(efforts[-1], 0.2 * FULL)
    driven.control.release()
    driven.active = False
    assert driven.control.releasing
    efforts = driven.run(12, Q)
    assert not driven.control.releasing and not efforts[-1].any()
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.05 * np.abs(FULL).max()
    assert driven.commands == 12 + 12 + 10, "none after the last"


def test_efforts_above_the_rated_ones_are_limited_and_named():
    rated = 0.5 * np.abs(FULL).max() * np.ones(3)
    driven = make(rated=rated)
    effort = driven.run(12, Q)[-1]
    assert np.abs(effort).max() == pytest.approx(rated[0])
    assert driven.control.efforts.limited.tolist() == [int(np.abs(FULL).argmax())]
    with pytest.raises(InputError, match="above the effort_limit"):
        LAW.check_rated(rated)


def test_a_position_that_jumps_once_changes_nothing():
    driven = make()
    last = driven.run(12, Q)[-1]
    np.testing.assert_allclose(driven.send(Q + 2.0 * np.eye(3)[1]), last)
    assert "position of joint elbow jumps by 2" in driven.refusal
    np.testing.assert_allclose(driven.send(Q), last)
    assert not driven.control.guard.fault


def test_a_position_that_stays_wrong_fades_the_efforts_until_it_is_plausible_or_a_restart():
    wrong = Q + np.array([0.0, 1.5, 0.0])
    driven = make()
    last = driven.run(12, Q)[-1]
    efforts = driven.run(100, wrong)
    np.testing.assert_allclose(efforts[0], last)
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.2 * np.abs(FULL).max()
    assert not efforts[12:].any() and driven.control.guard.fault, "a single wrong one is left out"
    driven.take(driven.control.rest())
    assert not driven.run(100, wrong).any(), "a rest does not make it true"
    np.testing.assert_allclose(driven.run(20, Q)[-1], FULL)
    driven.run(100, wrong)
    driven.restart()
    np.testing.assert_allclose(driven.run(12, wrong)[-1], np.clip(LAW.effort(wrong), -RATED, RATED))


def test_states_slower_than_the_timeout_end_the_efforts_once_without_pulses():
    driven = make()
    driven.run(12, Q)
    efforts = driven.run(20, Q, step=0.2)
    assert not efforts.any()
    reason, faulty = driven.control.guard.obstacle(driven.now)
    assert faulty and "less often than every 0.1 s" in reason
    np.testing.assert_allclose(driven.run(12 + TIMELY_STATES, Q)[-1], FULL)


def test_measured_efforts_are_not_needed_after_the_first_command():
    driven = make()
    driven.run(12, Q, present=FULL)
    assert np.abs(np.diff(driven.run(12, Q), axis=0)).max() < 1e-6 * np.abs(FULL).max()
    assert not driven.run(20, np.array([np.nan, *Q[1:]]))[-1].any(), "silence"
    assert np.abs(np.diff(driven.run(20, Q), axis=0)).max() < 0.2 * np.abs(FULL).max()


def test_the_time_without_positions_lets_the_arm_move():
    driven = make()
    driven.run(12, Q)
    driven.take(driven.control.rest())
    moved = Q + 0.5 * np.asarray(MODEL.limits.velocity)
    driven.active = False
    driven.send(moved, step=0.6)
    driven.run(TIMELY_STATES, moved)
    driven.active = True
    assert not driven.control.guard.fault
    present = 0.7 * LAW.effort(moved)
    np.testing.assert_allclose(driven.send(moved, present=present), present)


def test_a_restart_begins_at_the_efforts_of_the_drives_even_if_none_was_commanded():
    driven = make(scale=0.0)
    assert not driven.run(12, Q).any()
    change(driven, 1.0)
    driven.restart()
    np.testing.assert_allclose(driven.send(Q, present=0.9 * FULL), 0.9 * FULL)


def test_lower_rated_efforts_of_another_calibration_are_reached_by_a_ramp():
    driven = make()
    last = driven.run(12, Q)[-1]
    change(driven, law=LAW, rated=0.3 * RATED)
    efforts = driven.run(12, Q)
    np.testing.assert_allclose(efforts[0], last)
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.2 * np.abs(FULL).max()
    np.testing.assert_allclose(efforts[-1], np.clip(FULL, -0.3 * RATED, 0.3 * RATED))
    assert len(driven.control.efforts.limited)


def test_another_calibration_blends_in_and_other_joints_are_refused():
    driven = make()
    driven.run(12, Q)
    double = GravityLaw(MODEL, 0.8 * LAW.by_joint)
    change(driven, law=double)
    efforts = driven.run(12, Q)
    np.testing.assert_allclose(efforts[0], FULL)
    np.testing.assert_allclose(efforts[-1], 0.8 * FULL)
    part = RobotModel.from_urdf(ARM, ["shoulder", "elbow"])
    with pytest.raises(InputError, match="its joints are shoulder, elbow"):
        change(driven, law=GravityLaw(part, LAW.by_joint[:2]), rated=RATED[:2])


def test_a_calibration_is_refused_or_reported_by_its_residual():
    carries, size = np.array([True, True, False]), np.full(3, 10.0)
    good = DriveQuality(carries, np.array([2.0, 1.0, 1.0]), size, np.array([0.5, 0.8, 9.0]), size)
    good.refuse_uncertain(MODEL.joint_names)
    assert good.drifting(MODEL.joint_names) == ("elbow",)
    bad = DriveQuality(carries, size, size, np.array([0.5, 5.1, 0.5]), size)
    with pytest.raises(InputError, match="joint elbow: the calibration leaves a residual"):
        bad.refuse_uncertain(MODEL.joint_names)
