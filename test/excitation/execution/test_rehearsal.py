# SPDX-License-Identifier: Apache-2.0
"""Rehearsal and return: slow motions that are supervised like all others, and what they release."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.excitation import Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.execution.feedback import REST_TIME_S, TimePoint
from robot_dyn_id.excitation.execution.guard import GuardThresholds
from robot_dyn_id.excitation.execution.rehearsal import REHEARSAL_SPEED, ExcitationRun, hash_motion, slow_limits
from robot_dyn_id.excitation.execution.supervision import (
    NOT_REHEARSED,
    REHEARSED,
    RETURNED,
    Phase,
    Supervisor,
)
from robot_dyn_id.excitation.limits import REST_SPEED
from robot_dyn_id.excitation.trajectory import Scaled
from robot_dyn_id.model.robot import RobotModel

NAMES = ("shoulder", "elbow", "wrist")
LIMITS = MotionLimits.from_model(RobotModel.from_urdf(ARM), (4.0,), margin=0.02)
EXCITATION = make_excitation("fourier", LIMITS, Demand(period=1.5, periods=3))
STEP = 0.01
THRESHOLDS = GuardThresholds(np.full(3, 0.2), 1.1 * LIMITS.velocity, np.array([20.0, 10.0, np.inf]), 0.045, 0.1)
HOME = LIMITS.center_and_reach()[0] + 0.1


class Robot:
    """A supervisor with a robot that follows exactly, 10 ms at a time; what was commanded is kept."""

    def __init__(self, **options):
        self.supervisor = Supervisor(EXCITATION, LIMITS, THRESHOLDS, **options)
        self.supervisor.rehearsed = False
        self.t, self.q, self.dq, self.offset = 100.0, HOME, np.zeros(3), 0.0
        self.positions, self.speeds = [], []
        self.until(Phase.READY)

    @property
    def now(self):
        return TimePoint(self.t, self.t)

    def step(self):
        self.t += STEP
        self.dq = np.zeros(3)
        if self.supervisor.command is not None:
            self.q, self.dq = self.supervisor.command.state(self.t)
        self.positions.append(self.q)
        self.speeds.append(np.abs(self.dq))
        q = (self.q + self.offset).tolist()
        self.supervisor.receive(self.now, self.t, NAMES, q, self.dq.tolist(), [0.0] * 3)
        self.supervisor.tick(self.now, "")
        return self.supervisor.phase

    def until(self, phase, limit=30_000):
        for _ in range(limit):
            if self.step() == phase:
                return self
        raise AssertionError(f"{self.supervisor.phase!r}: {self.supervisor.reason}, not {phase!r}")

    def rehearse(self):
        return self.supervisor.start(self.now, "", ExcitationRun.rehearse(EXCITATION, 1.0))


def test_a_rehearsal_traces_one_period_of_the_same_path_at_a_tenth_of_the_speed():
    run = ExcitationRun.rehearse(EXCITATION, 1.0)
    assert run.motion.duration == pytest.approx(10.0 * EXCITATION.duration / 3.0)
    t = np.linspace(0.0, run.motion.duration, 500)
    slow, fast = run.motion.evaluate(t), EXCITATION.evaluate(REHEARSAL_SPEED * t)
    for number, (a, b) in enumerate(zip(slow, fast, strict=True)):
        np.testing.assert_allclose(a, REHEARSAL_SPEED**number * b, atol=1e-12)
    scaled = ExcitationRun.rehearse(Scaled(EXCITATION, 0.5, 0.8), 0.5)
    assert scaled.motion.duration == pytest.approx(run.motion.duration)
    assert scaled.speed == pytest.approx(REHEARSAL_SPEED)
    np.testing.assert_allclose(
        scaled.motion.evaluate(t)[0], Scaled(EXCITATION, 1.0, 0.8).evaluate(REHEARSAL_SPEED * t)[0], atol=1e-12
    )
    already = ExcitationRun.rehearse(Scaled(EXCITATION, 0.05, 1.0), 0.05)
    assert already.speed == pytest.approx(0.05) and already.motion.duration == pytest.approx(20.0 * 1.5)


@pytest.mark.slow
def test_full_speed_is_refused_until_a_rehearsal_has_succeeded():
    robot = Robot()
    supervisor = robot.supervisor
    assert supervisor.start(robot.now, "").startswith(NOT_REHEARSED)
    assert (supervisor.phase, supervisor.command) == (Phase.READY, None)
    assert supervisor.start(robot.now, "", ExcitationRun(Scaled(EXCITATION, 0.2, 1.0), speed=0.2)).startswith(
        NOT_REHEARSED
    )
    assert robot.rehearse() == ""
    assert supervisor.describe_motion().startswith("rehearses one period at 10% of the speed: approaches")
    begin = robot.t
    expected = supervisor.remaining(robot.now)
    robot.until(Phase.RUNNING)
    assert supervisor.rehearsing and not supervisor.rehearsed
    robot.until(Phase.READY)
    assert -0.05 < robot.t - begin - expected < REST_TIME_S + 0.05
    assert (supervisor.reason, supervisor.rehearsed, supervisor.complete) == (REHEARSED, True, False)
    assert np.max(robot.speeds / (REHEARSAL_SPEED * LIMITS.velocity)) <= 1.0 + 1e-9  # approach and return included
    np.testing.assert_allclose(robot.q, HOME, atol=1e-9)
    robot.speeds.clear()
    assert supervisor.start(robot.now, "") == ""
    robot.until(Phase.DONE)
    assert np.max(np.array(robot.speeds) / LIMITS.velocity) > REHEARSAL_SPEED
    assert supervisor.complete and not supervisor.rehearsing


def test_a_rehearsal_that_ends_early_releases_nothing():
    robot = Robot()
    for disturb in (lambda: robot.supervisor.stop(robot.now), lambda: setattr(robot, "offset", 0.3)):
        assert robot.rehearse() == ""
        robot.until(Phase.RUNNING)
        for _ in range(300):
            robot.step()
        disturb()
        robot.step()
        assert robot.supervisor.phase != Phase.RUNNING
        robot.offset = 0.0
        for _ in range(200):
            robot.step()
        assert robot.supervisor.start(robot.now, "").startswith(NOT_REHEARSED)
    assert robot.supervisor.rehearsing


@pytest.mark.slow
def test_a_paused_rehearsal_continues_slowly():
    robot = Robot()
    robot.rehearse()
    robot.until(Phase.RUNNING)
    for _ in range(300):
        robot.step()
    assert robot.supervisor.pause(robot.now) == ""
    robot.until(Phase.PAUSED)
    assert robot.supervisor.start(robot.now, "", ExcitationRun(EXCITATION)).startswith("paused")
    assert robot.supervisor.rehearsing
    assert robot.supervisor.resume(robot.now, "") == ""
    robot.until(Phase.READY)
    assert robot.supervisor.rehearsed
    assert np.max(robot.speeds / (REHEARSAL_SPEED * LIMITS.velocity)) <= 1.0 + 1e-9


@pytest.mark.slow
def test_a_run_as_slow_as_a_rehearsal_needs_none_and_counts_as_one():
    robot = Robot()
    slow = ExcitationRun(Scaled(EXCITATION, REHEARSAL_SPEED, 1.0), speed=REHEARSAL_SPEED)
    assert robot.supervisor.start(robot.now, "", slow) == ""
    robot.until(Phase.DONE)
    assert robot.supervisor.rehearsed and robot.supervisor.complete
    assert np.max(robot.speeds / (REHEARSAL_SPEED * LIMITS.velocity)) <= 1.0 + 1e-9  # approach and return included


def test_the_guard_of_the_velocity_is_that_of_slow_motions():
    robot = Robot()
    robot.rehearse()
    robot.until(Phase.RUNNING)
    fast = REHEARSAL_SPEED * THRESHOLDS.velocity + REST_SPEED + 0.01
    assert np.all(fast < 0.5 * THRESHOLDS.velocity)
    for _ in range(10):
        robot.t += STEP
        q, _ = robot.supervisor.command.state(robot.t)
        robot.supervisor.receive(robot.now, robot.t, NAMES, q.tolist(), fast.tolist(), [0.0] * 3)
    assert robot.supervisor.phase == Phase.FAULT and "velocity" in robot.supervisor.reason


def stopped_midway():
    robot = Robot(returns=False)
    robot.supervisor.rehearsed = True
    assert robot.supervisor.start(robot.now, "") == ""
    robot.until(Phase.RUNNING)
    for _ in range(50):
        robot.step()
    robot.supervisor.stop(robot.now)
    robot.until(Phase.READY)
    assert np.abs(robot.q - HOME).max() > 0.05
    robot.positions.clear()
    robot.speeds.clear()
    return robot


def test_the_return_is_slow_and_ends_where_the_robot_was_started():
    robot = stopped_midway()
    assert robot.supervisor.return_home(robot.now, "") == ""
    assert robot.supervisor.describe_motion().startswith("returning")
    robot.until(Phase.READY)
    assert robot.supervisor.reason == RETURNED
    np.testing.assert_allclose(robot.q, HOME, atol=1e-9)
    slow = slow_limits(LIMITS)
    assert np.max(robot.speeds / slow.velocity) <= 1.0 + 1e-9
    assert np.abs(np.diff(robot.speeds, axis=0)).max(axis=0) / STEP == pytest.approx(0.0, abs=slow.acceleration.max())


def test_the_return_is_refused_like_every_motion():
    robot = stopped_midway()
    supervisor = robot.supervisor
    assert supervisor.return_home(robot.now, "no controller") == "no controller"
    supervisor.obstruction = lambda motion: "link2 and table"
    assert "collides: link2 and table" in supervisor.return_home(robot.now, "")
    supervisor.obstruction = lambda motion: ""
    robot.t += 1.0
    assert "no joint states" in supervisor.return_home(robot.now, "")
    robot.step()
    supervisor.home = LIMITS.hard_upper + 1.0
    assert "limit" in supervisor.return_home(robot.now, "")
    assert supervisor.phase == Phase.READY


@pytest.mark.parametrize("fault", ["tracking", "silence", "obstacle"])
def test_the_return_is_aborted_by_the_same_guards_and_may_be_requested_again(fault):
    robot = stopped_midway()
    supervisor = robot.supervisor
    assert supervisor.return_home(robot.now, "") == ""
    for _ in range(50):
        robot.step()
    if fault == "tracking":
        robot.offset = 0.3
        robot.step()
        robot.offset = 0.0
    elif fault == "silence":
        for _ in range(15):
            robot.t += STEP
            supervisor.tick(robot.now, "")
    else:
        supervisor.tick(robot.now, "no controller")
    assert supervisor.phase == Phase.FAULT
    for _ in range(100):
        robot.step()
    assert not robot.dq.any()
    assert supervisor.return_home(robot.now, "") == ""
    robot.until(Phase.READY)
    np.testing.assert_allclose(robot.q, HOME, atol=1e-9)


def test_the_worst_margin_of_a_motion_names_its_guard():
    robot = Robot(returns=False)
    robot.supervisor.rehearsed = True
    robot.supervisor.start(robot.now, "")
    assert robot.supervisor.worst == (1.0, "")
    robot.until(Phase.RUNNING)
    robot.offset = np.array([0.0, 0.19, 0.0])
    robot.step()
    robot.offset = 0.0
    robot.until(Phase.DONE)
    margin, cause = robot.supervisor.worst
    assert margin == pytest.approx(1.0 - 0.19 / 0.2, abs=1e-6)
    assert cause == "tracking error of elbow"


def test_the_digest_is_that_of_the_path_the_joints_and_the_robot():
    digest = hash_motion(EXCITATION, NAMES, "a")
    assert digest == hash_motion(make_excitation("fourier", LIMITS, Demand(period=1.5, periods=3)), NAMES, "a")
    assert len(digest) == 64
    others = (
        hash_motion(EXCITATION, NAMES, "b"),
        hash_motion(EXCITATION, NAMES[::-1], "a"),
        hash_motion(Scaled(EXCITATION, 1.0, 0.9), NAMES, "a"),
        hash_motion(replace(EXCITATION, periods=2), NAMES, "a"),
    )
    assert len({digest, *others}) == 5
