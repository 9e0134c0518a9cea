# SPDX-License-Identifier: Apache-2.0
"""Commanded efforts of gravity compensation in drive units."""

from contextlib import suppress

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.execution.state_guard import StateGuard
from robot_dyn_id.loads.gravity import DriveQuality, nominal_bodies
from robot_dyn_id.loads.gravity_compensation import GravityCompensation, GravityLaw
from robot_dyn_id.model.robot import RobotModel

MODEL = RobotModel.from_urdf(ARM)
GAINS = np.array([0.01, -0.02, 0.05])
LAW = GravityLaw(MODEL, nominal_bodies(MODEL).ravel() / GAINS[:, None])
Q = np.array([0.1, 0.4, -0.3])
FULL = LAW.effort(Q)
RATED = np.full(3, 1.1 * np.abs(FULL).max())
STEP = 0.02


class Compensation(GravityCompensation):
    """With the guard and the clock of a node."""

    def __init__(self, scale, rated):
        super().__init__(LAW, rated, scale, 0.2)
        self.guard, self.now = StateGuard(MODEL, 0.1), 0.0
        self.guard.expect(self.now)

    def receive(self, q, step=STEP):
        self.now += step
        with suppress(InputError):
            self.guard.receive(self.now, self.now, self.now, q)
        self.observe(self.guard.position, self.guard.fault)

    def restart(self):
        self.rest()
        self.guard.restart()


def make(scale=1.0, rated=RATED):
    return Compensation(scale, rated)


def run(compensation, count, q=Q):
    return np.array([follow(compensation, q) for _ in range(count)])


def follow(compensation, q=Q, present=None):
    compensation.receive(q)
    return compensation.command(STEP, present)


def test_efforts_begin_at_zero_without_a_measured_effort_and_reach_the_share_of_gravity():
    compensation = make(0.5)
    efforts = run(compensation, 12)
    np.testing.assert_array_equal(efforts[0], 0.0)
    np.testing.assert_allclose(efforts[-1], 0.5 * FULL)
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.2 * np.abs(FULL).max()


def test_efforts_begin_at_those_that_hold_the_arm():
    compensation = make()
    present = 0.9 * FULL + 0.01
    np.testing.assert_allclose(follow(compensation, present=present), present)
    np.testing.assert_allclose(run(compensation, 12)[-1], FULL)
    clipped = follow(make(rated=np.full(3, 1e-3)), present=present)
    np.testing.assert_allclose(clipped, np.sign(present) * 1e-3)


def test_a_change_of_the_share_and_a_release_are_ramps_that_end():
    compensation = make()
    run(compensation, 12)
    compensation.rescale(0.2)
    efforts = run(compensation, 12)
    np.testing.assert_allclose(efforts[0], FULL)
    np.testing.assert_allclose(efforts[-1], 0.2 * FULL)
    compensation.release()
    assert not compensation.released
    efforts = run(compensation, 12)
    assert compensation.released and not efforts[-1].any()
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.05 * np.abs(FULL).max()
    np.testing.assert_array_equal(compensation.rest(), 0.0)
    assert not compensation.released


def test_efforts_above_the_rated_ones_are_limited_and_named():
    rated = 0.5 * np.abs(FULL).max() * np.ones(3)
    compensation = make(rated=rated)
    effort = run(compensation, 12)[-1]
    assert np.abs(effort).max() == pytest.approx(rated[0])
    assert compensation.limited.tolist() == [int(np.abs(FULL).argmax())]
    with pytest.raises(InputError, match="above the effort_limit"):
        LAW.check_rated(rated)


def test_a_position_that_jumps_once_changes_nothing():
    compensation = make()
    last = run(compensation, 12)[-1]
    np.testing.assert_allclose(follow(compensation, Q + 2.0 * np.eye(3)[1]), last)
    assert "position of joint elbow jumps by 2" in compensation.guard.refusal
    np.testing.assert_allclose(follow(compensation), last)
    assert not compensation.fault


def test_a_position_that_stays_wrong_fades_the_efforts_until_it_is_plausible_or_a_restart():
    wrong = Q + np.array([0.0, 1.5, 0.0])
    compensation = make()
    last = run(compensation, 12)[-1]
    efforts = run(compensation, 100, wrong)
    np.testing.assert_allclose(efforts[0], last)
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.2 * np.abs(FULL).max()
    assert not efforts[12:].any() and compensation.fault, "a single wrong one is left out"
    compensation.rest()
    assert not run(compensation, 100, wrong).any(), "a rest does not make it true"
    np.testing.assert_allclose(run(compensation, 20)[-1], FULL)
    run(compensation, 100, wrong)
    compensation.restart()
    np.testing.assert_allclose(run(compensation, 12, wrong)[-1], np.clip(LAW.effort(wrong), -RATED, RATED))


def test_the_time_without_positions_lets_the_arm_move():
    compensation = make()
    run(compensation, 12)
    compensation.rest()
    moved = Q + 0.5 * np.asarray(MODEL.limits.velocity)
    compensation.receive(moved, 0.6)
    assert not compensation.fault
    present = 0.7 * LAW.effort(moved)
    np.testing.assert_allclose(compensation.command(STEP, present), present)


def test_a_restart_begins_at_the_efforts_of_the_drives_even_if_none_was_commanded():
    compensation = make(scale=0.0)
    assert not run(compensation, 12).any()
    compensation.rescale(1.0)
    compensation.restart()
    np.testing.assert_allclose(follow(compensation, present=0.9 * FULL), 0.9 * FULL)


def test_lower_rated_efforts_of_another_calibration_are_reached_by_a_ramp():
    compensation = make()
    last = run(compensation, 12)[-1]
    compensation.replace_law(LAW, 0.3 * RATED)
    efforts = run(compensation, 12)
    np.testing.assert_allclose(efforts[0], last)
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.2 * np.abs(FULL).max()
    np.testing.assert_allclose(efforts[-1], np.clip(FULL, -0.3 * RATED, 0.3 * RATED))
    assert len(compensation.limited)


def test_another_calibration_blends_in_and_other_joints_are_refused():
    compensation = make()
    run(compensation, 12)
    double = GravityLaw(MODEL, 0.8 * LAW.by_joint)
    compensation.replace_law(double, RATED)
    efforts = run(compensation, 12)
    np.testing.assert_allclose(efforts[0], FULL)
    np.testing.assert_allclose(efforts[-1], 0.8 * FULL)
    part = RobotModel.from_urdf(ARM, ["shoulder", "elbow"])
    with pytest.raises(InputError, match="its joints are shoulder, elbow"):
        compensation.replace_law(GravityLaw(part, LAW.by_joint[:2]), RATED[:2])


def test_a_calibration_is_refused_or_reported_by_its_residual():
    carries, size = np.array([True, True, False]), np.full(3, 10.0)
    good = DriveQuality(carries, np.array([2.0, 1.0, 1.0]), size, np.array([0.5, 0.8, 9.0]), size)
    good.refuse_uncertain(MODEL.joint_names)
    assert good.drifting(MODEL.joint_names) == ("elbow",)
    bad = DriveQuality(carries, size, size, np.array([0.5, 5.1, 0.5]), size)
    with pytest.raises(InputError, match="joint elbow: the calibration leaves a residual"):
        bad.refuse_uncertain(MODEL.joint_names)
