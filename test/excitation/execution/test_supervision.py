# SPDX-License-Identifier: Apache-2.0
"""The states of an execution: every transition, every fault, by both clocks."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.excitation import Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.execution.approach import Entered, PointToPoint
from robot_dyn_id.excitation.execution.braking import Braking
from robot_dyn_id.excitation.execution.clocks import ClockAgreement
from robot_dyn_id.excitation.execution.feedback import REST_TIME_S, Feedback, TimePoint
from robot_dyn_id.excitation.execution.guard import GuardThresholds
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.excitation.execution.supervision import Phase, Supervisor
from robot_dyn_id.excitation.limits import REST_SPEED, scale_effort_limits
from robot_dyn_id.model.robot import RobotModel

NAMES = ["shoulder", "elbow", "wrist"]
LIMITS = MotionLimits.from_model(RobotModel.from_urdf(ARM), (4.0,), margin=0.02)
EXCITATION = make_excitation("fourier", LIMITS, Demand(period=4.0, periods=1))
TIMEOUT, TRACKING, STEP = 0.1, 0.2, 0.01
SPEED, EFFORT, PATIENCE = 1.1 * LIMITS.velocity, np.array([20.0, 10.0, np.inf]), 0.045
SAMPLES = 6  # of 10 ms each: the first and five after it
THRESHOLDS = GuardThresholds(np.full(3, TRACKING), SPEED, EFFORT, PATIENCE, TIMEOUT)


class Cell:
    """A supervisor with a robot that follows, and two clocks, 10 ms at a time."""

    def __init__(self, returns=True):
        self.supervisor = Supervisor(EXCITATION, LIMITS, THRESHOLDS, returns)
        self.t = self.steady = 100.0
        self.q = LIMITS.center_and_reach()[0] + 0.1
        self.obstacle, self.speak, self.halted = "", True, False
        self.offset, self.names, self.velocity, self.effort = np.zeros(3), NAMES, None, np.zeros(3)

    @property
    def now(self):
        return TimePoint(self.steady, self.t)

    def step(self, count=1):
        for _ in range(count):
            self.steady += STEP
            self.t += 0.0 if self.halted else STEP
            velocity = np.zeros(3)
            if self.supervisor.command is not None:
                self.q, velocity = self.supervisor.command.state(self.t)
            if self.speak:
                order = [NAMES.index(name) for name in self.names if name in NAMES]
                q, dq = (self.q + self.offset)[order], (velocity if self.velocity is None else self.velocity)[order]
                effort = self.effort[order].tolist()
                self.supervisor.receive(self.now, self.t, self.names, q.tolist(), dq.tolist(), effort)
            self.supervisor.tick(self.now, self.obstacle)
        return self.supervisor.phase

    def until(self, phase, limit=2000):
        for _ in range(limit):
            if self.step() == phase:
                return self
        raise AssertionError(f"{self.supervisor.phase!r}: {self.supervisor.reason}, not {phase!r}")

    def start(self):
        return self.supervisor.start(self.now, self.obstacle)

    def brought_to(self, phase):
        """The shortest way to every phase."""
        if phase == Phase.WAITING:
            return self
        self.until(Phase.READY)
        if phase == Phase.READY:
            return self
        assert self.start() == ""
        if phase == Phase.APPROACHING:
            self.step(10)
            return self
        self.until(Phase.RUNNING)
        if phase == Phase.DONE:
            return self.until(Phase.DONE)
        self.step(70)
        if phase in (Phase.STOPPING, Phase.PAUSED):
            assert self.supervisor.pause(self.now) == ""
            self.step()
        if phase == Phase.PAUSED:
            self.until(Phase.PAUSED)
        if phase == Phase.FAULT:
            self.offset = np.array([0.0, 0.3, 0.0])
            self.step()
            self.offset = np.zeros(3)
        if phase == Phase.RETURNING:
            self.supervisor.stop(self.now)
            self.until(Phase.READY)
            assert self.supervisor.return_home(self.now, "") == ""
            self.step(10)
        assert self.supervisor.phase == phase
        return self


def test_the_phases_are_those_of_the_message():
    from robot_dyn_id.msg import ExcitationStatus

    assert {phase.name: phase.value for phase in Phase} == {
        name: getattr(ExcitationStatus, name) for name in Phase.__members__
    }


W, R, A, N, P, S, D, F, B = Phase
TABLE = {
    #          start, stop, pause, resume, return: the phase after it, and a word of the refusal
    W: ((W, "no joint states yet"), (W, ""), (W, "nothing is under way"), (W, "not paused"), (W, "nothing has been")),
    R: ((A, ""), (R, ""), (R, "nothing is under way"), (R, "not paused"), (R, "nothing has been started")),
    A: ((A, "still moving"), (S, ""), (S, ""), (A, "not paused"), (A, "still moving")),
    N: ((N, "still moving"), (S, ""), (S, ""), (N, "not paused"), (N, "still moving")),
    P: ((P, "paused: end the pause"), (R, ""), (P, ""), (A, ""), (P, "paused: stop first")),
    S: ((S, "still moving"), (S, ""), (S, ""), (S, "not paused"), (S, "still moving")),
    D: ((A, ""), (D, ""), (D, "nothing is under way"), (D, "not paused"), (B, "")),
    F: ((F, "still moving"), (F, ""), (F, "nothing is under way"), (F, "not paused"), (F, "still moving")),
    B: ((B, "still moving"), (S, ""), (B, "can only be stopped"), (B, "not paused"), (B, "still moving")),
}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("which", range(5), ids=["start", "stop", "pause", "resume", "return"])
def test_every_request_in_every_phase(phase, which):
    cell = Cell().brought_to(phase)
    supervisor, before = cell.supervisor, cell.supervisor.command
    answer = [
        lambda: supervisor.start(cell.now, ""),
        lambda: supervisor.stop(cell.now),
        lambda: supervisor.pause(cell.now),
        lambda: supervisor.resume(cell.now, ""),
        lambda: supervisor.return_home(cell.now, ""),
    ][which]()
    after, words = TABLE[phase][which]
    assert supervisor.phase == after
    assert words in answer
    assert (answer == "") == (words == "")
    assert (supervisor.command is before) == (after in (phase, R))


def test_it_never_moves_without_a_request():
    cell = Cell()
    cell.step(300)
    assert cell.supervisor.phase == Phase.READY
    assert cell.supervisor.command is None


def test_start_to_done_and_again():
    cell = Cell().until(Phase.READY)
    for _ in range(2):
        assert cell.start() == ""
        cell.until(Phase.RUNNING)
        assert cell.supervisor.elapsed(cell.now) == pytest.approx(0.0, abs=0.011)
        cell.step(100)
        assert cell.supervisor.elapsed(cell.now) == pytest.approx(1.0, abs=0.021)
        cell.until(Phase.DONE)
        assert cell.supervisor.elapsed(cell.now) == EXCITATION.duration
        assert cell.supervisor.reason == ""
        assert cell.supervisor.at_rest


@pytest.mark.parametrize("phase", [Phase.APPROACHING, Phase.RUNNING])
def test_a_pause_goes_on_from_where_it_was(phase):
    cell = Cell().brought_to(phase)
    elapsed = cell.supervisor.elapsed(cell.now)
    assert cell.supervisor.pause(cell.now) == ""
    cell.until(Phase.PAUSED)
    cell.step(50)
    assert cell.supervisor.elapsed(cell.now) == pytest.approx(elapsed)
    assert cell.supervisor.resume(cell.now, "") == ""
    motion = cell.supervisor.command.trajectory
    assert isinstance(motion, Entered)
    assert motion.since == pytest.approx(elapsed)
    assert np.array_equal(motion.lead.start, cell.q)
    cell.until(Phase.DONE)


def test_stop_ends_a_pause_also_while_it_brakes():
    cell = Cell().brought_to(Phase.STOPPING)
    cell.supervisor.stop(cell.now)
    cell.until(Phase.READY)
    assert cell.supervisor.reason == "stopped as requested"
    assert cell.start() == ""


def silent(cell):
    cell.speak = False


def halted(cell):
    """The simulated clock stops, and the stamps with it, while messages go on arriving."""
    cell.halted = True


def not_a_number(cell):
    cell.offset = np.array([0.0, math.nan, 0.0])


def missing(cell):
    cell.names = ["shoulder", "wrist"]


def far(cell):
    cell.offset = np.array([0.0, 0.0, -3 * TRACKING])


def outside(cell):
    cell.supervisor._tracking = np.full(3, 100.0)  # so that only the position counts
    cell.offset = np.array([0.0, 10.0, 0.0])


def fast(cell):
    cell.velocity = np.array([0.0, -1.2, 0.0]) * LIMITS.velocity


def blocked(cell):
    cell.effort = np.array([19.0, -12.5, 1000.0])  # the wrist has no limit


def deserted(cell):
    cell.obstacle = "no controller: no subscriber of commands"


FAULTS = {
    silent: r"no joint states for 0\.1\d s, more than 0.1 s",
    halted: r"the stamps of the joint states do not advance for 0\.1\d s, more than 0.1 s",
    not_a_number: "joint elbow: its measured position is nan",
    missing: "joint states lack elbow",
    far: r"tracking error: joint wrist is 0\.6 rad away from its command, more than 0.2 rad",
    outside: r"joint elbow is at .* rad, outside its limits -2 to 3 rad",
    fast: rf"joint elbow: its measured velocity is {-1.2 * LIMITS.velocity[1]:.4g} rad/s, more than {SPEED[1]:.4g} rad/s",
    blocked: r"joint elbow: its measured effort is -12.5 N m, more than 10 N m",
    deserted: "no controller: no subscriber of commands",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("phase", [Phase.APPROACHING, Phase.RUNNING, Phase.STOPPING])
def test_every_fault_brakes_within_200_ms_and_rests_within_v_over_a(fault, phase):
    cell = Cell().brought_to(phase)
    before, speed = cell.supervisor.command, LIMITS.velocity.max()
    began = cell.steady
    fault(cell)
    cell.until(Phase.FAULT, 20)
    assert cell.steady - began <= 0.15
    assert re.match(FAULTS[fault], cell.supervisor.reason), cell.supervisor.reason
    if phase == Phase.STOPPING:
        assert cell.supervisor.command is before  # nothing brakes harder
        return
    braking = cell.supervisor.command.trajectory
    assert isinstance(braking, Braking)
    q, dq = before.state(cell.t)
    assert np.array_equal(braking.position, q)
    assert np.array_equal(braking.velocity, dq)
    assert braking.duration <= speed / LIMITS.acceleration.min()


def test_who_was_held_up_listens_before_it_judges_but_only_once():
    cell = Cell().brought_to(Phase.RUNNING)

    def held_up():
        cell.steady += 0.4
        cell.t += 0.4
        cell.supervisor.tick(cell.now, "")
        return cell.supervisor.phase

    assert held_up() == Phase.RUNNING  # joint states wait to be read, and the tick comes first
    assert cell.step(5) == Phase.RUNNING
    cell.speak = False
    assert held_up() == Phase.RUNNING
    assert cell.step(2) == Phase.RUNNING
    assert cell.step(2) == Phase.FAULT
    cell = Cell().brought_to(Phase.RUNNING)
    cell.speak = False
    assert (held_up(), held_up()) == (Phase.RUNNING, Phase.FAULT)


def test_who_was_just_made_is_not_ready_before_joint_states_are_there():
    cell = Cell()
    cell.speak = False
    assert {cell.step() for _ in range(10)} == {Phase.WAITING}


def test_a_tracking_error_names_what_it_may_come_from():
    cell = Cell().brought_to(Phase.RUNNING)
    assert np.abs(cell.supervisor.command.state(cell.t)[1])[1] > REST_SPEED
    cell.offset, cell.velocity = np.array([0.0, 0.3, 0.0]), np.zeros(3)
    assert cell.step() == Phase.FAULT
    assert cell.supervisor.reason.endswith(
        "more than 0.2 rad; it is at rest: the controller does not follow the command, or got it late"
    )
    cell = Cell().brought_to(Phase.RUNNING)
    cell.steady, cell.t = cell.steady + 0.4, cell.t + 0.4
    cell.step(5)
    cell.offset = np.array([0.0, 0.3, 0.0])
    assert cell.step() == Phase.FAULT
    assert cell.supervisor.reason.endswith("; this node was held up for 0.41 s just before: its commands came late")
    cell = Cell().brought_to(Phase.FAULT)
    assert cell.supervisor.reason.endswith("more than 0.2 rad")


def test_the_description_lists_the_steps_with_their_true_durations():
    cell = Cell().brought_to(Phase.READY)
    assert cell.supervisor.describe_motion() == ""
    began = cell.t
    assert cell.start() == ""
    match = re.fullmatch(
        r"approaches the excitation \((.*) s\), follows it \(4\.0 s\), returns \((.*) s\): (.*) s in all",
        cell.supervisor.describe_motion(),
    )
    lead, back, whole = (float(number) for number in match.groups())
    assert whole == pytest.approx(lead + 4.0 + back, abs=0.11)
    cell.until(Phase.DONE)
    assert -0.1 < cell.t - began - whole < REST_TIME_S + 0.1
    assert Cell(returns=False).supervisor.describe_motion() == ""
    once = Cell(returns=False).brought_to(Phase.APPROACHING)
    assert "returns" not in once.supervisor.describe_motion()


def test_what_the_controller_gives_up_is_a_fault_without_a_new_motion():
    for phase in (Phase.APPROACHING, Phase.RUNNING, Phase.STOPPING, Phase.DONE):
        cell = Cell().brought_to(phase)
        elapsed = cell.supervisor.elapsed(cell.now)
        cell.supervisor.abandon(cell.now, "the controller aborted the motion")
        assert (cell.supervisor.phase, cell.supervisor.reason) == (Phase.FAULT, "the controller aborted the motion")
        assert (cell.supervisor.command, cell.supervisor.elapsed(cell.now)) == (None, elapsed)
        cell.step(50)
        assert cell.supervisor.command is None and cell.supervisor.at_rest
        assert cell.start() == ""
    cell = Cell().brought_to(Phase.FAULT)
    cell.supervisor.abandon(cell.now, "the controller rejected the motion")
    assert re.match(r"tracking error: .* rad; the controller rejected the motion$", cell.supervisor.reason)


@pytest.mark.parametrize("fault", [silent, not_a_number, missing, deserted], ids=lambda fault: fault.__name__)
def test_what_is_a_fault_under_way_is_a_reason_to_wait_at_rest(fault):
    cell = Cell().brought_to(Phase.READY)
    fault(cell)
    cell.until(Phase.WAITING, 20)
    assert cell.supervisor.reason == cell.start() != ""
    cell.speak, cell.offset, cell.names, cell.obstacle = True, np.zeros(3), NAMES, ""
    cell.until(Phase.READY, 5)
    assert cell.supervisor.reason == ""


def test_after_a_fault_only_a_new_request_moves_and_only_once_it_is_over():
    cell = Cell().brought_to(Phase.FAULT)
    command = cell.supervisor.command
    cell.step(300)
    assert (cell.supervisor.phase, cell.supervisor.command) == (Phase.FAULT, command)
    cell.speak = False
    cell.step(20)
    assert "no joint states for" in cell.start()
    cell.speak = True
    cell.step()
    assert cell.start() == ""
    cell.until(Phase.DONE)


def test_a_robot_outside_its_limits_or_in_motion_is_not_started():
    cell = Cell().brought_to(Phase.READY)
    cell.offset = np.array([3.0, 0.0, 0.0])
    cell.step()
    assert cell.start() == "joint shoulder: the robot is at 3.6 rad, outside its limits -2 to 3"
    cell.offset, cell.velocity = np.zeros(3), np.array([0.0, 0.0, -0.2])
    cell.step()
    assert cell.start() == "joint wrist moves at -0.2 rad/s"
    assert cell.supervisor.command is None


@pytest.mark.parametrize("names", [["wrist", "elbow", "shoulder"], ["elbow", "gripper", "shoulder", "wrist"]])
def test_joints_are_known_by_name_in_any_order_among_others(names):
    cell = Cell()
    q = {"shoulder": 0.1, "elbow": 0.2, "wrist": 0.3, "gripper": math.nan}
    feedback = cell.supervisor.feedback
    for t in (1.0, 1.1):
        feedback.receive(TimePoint(t, t), t, names, [q[name] for name in names], [])
        assert np.array_equal(feedback.position, [0.1, 0.2, 0.3])
        assert feedback.silence(t) == ""


def test_joint_states_of_another_device_are_left_alone():
    cell = Cell().brought_to(Phase.RUNNING)
    for _ in range(5):
        cell.step()
        cell.supervisor.receive(cell.now, 0.0, ["finger"], [math.nan], [])
    assert cell.supervisor.phase == Phase.RUNNING


def test_wrong_lengths_are_reported_and_invalid_velocities_ignored():
    feedback = Cell().supervisor.feedback
    feedback.receive(TimePoint(1.0, 1.0), 1.0, NAMES, [0.0, 0.0], [])
    assert feedback.silence(1.0) == "joint states have 3 names but 2 positions"
    feedback.receive(TimePoint(1.1, 1.1), 1.1, NAMES, [0.0] * 3, [math.nan] * 3)
    assert feedback.silence(1.1) == ""
    assert feedback.moving() == ""


def test_joint_states_without_stamps_are_news_every_time():
    feedback = Cell().supervisor.feedback
    for t in np.arange(1.0, 2.0, 0.05):
        feedback.receive(TimePoint(t, t), 0.0, NAMES, [0.0] * 3, [])
        assert feedback.silence(t + 0.05) == ""


def test_whole_turns_of_a_continuous_joint_are_no_error():
    text = ARM.replace('name="wrist" type="revolute"', 'name="wrist" type="continuous"')
    limits = MotionLimits.from_model(RobotModel.from_urdf(text), (4.0,))
    assert not np.isfinite(limits.upper[2])
    feedback = Feedback(limits, THRESHOLDS)
    feedback.receive(TimePoint(0.0, 0.0), 0.0, NAMES, [0.0, 0.0, 3.1], [])
    assert np.allclose(feedback.error(np.array([0.0, 0.0, -3.1])), [0.0, 0.0, 6.2 - 2 * np.pi])


def test_braking_ends_when_joint_states_show_rest_and_not_when_they_are_silent():
    cell = Cell().brought_to(Phase.RUNNING)
    assert not cell.supervisor.at_rest
    cell.supervisor.stop(cell.now)
    assert not cell.supervisor.at_rest
    cell.velocity = np.full(3, 0.3)  # the robot lags behind
    cell.step(80)
    assert cell.supervisor.phase == Phase.STOPPING and cell.supervisor.unrest(cell.now).endswith(" moves at 0.3 rad/s")
    cell.velocity = None
    cell.until(Phase.READY, 2)
    assert cell.supervisor.at_rest and cell.supervisor.unrest(cell.now) == ""
    cell.speak = False
    cell.step(20)
    assert cell.supervisor.at_rest and "no joint states for" in cell.supervisor.unrest(cell.now)
    lost = Cell().brought_to(Phase.RUNNING)
    lost.speak = False
    lost.until(Phase.FAULT, 20)
    lost.step(1000)
    assert not lost.supervisor.at_rest and "no joint states for" in lost.supervisor.unrest(lost.now)
    lost.speak, command = True, lost.supervisor.command
    lost.step(5)
    assert lost.supervisor.command is command, "nothing moves"
    assert not lost.supervisor.at_rest and "still moving" in lost.start()
    lost.step(60)
    assert lost.supervisor.at_rest and lost.start() == ""


class Stray(Cell):
    """A robot that follows its own course from a time on, until a braking that begins after `deaf` seconds is sent."""

    def __init__(self, speed, deaf, **options):
        super().__init__(**options)
        self.own, self.since, self.deaf, self.at = np.array(speed), math.inf, deaf, None

    def stray(self):
        self.since = self.steady
        return self

    def step(self, count=1):
        for _ in range(count):
            command = self.supervisor.command
            begun = command is not None and isinstance(command.trajectory, Braking) and not command.under_way
            obeys = begun and command.begin.steady > self.since + self.deaf
            if self.steady < self.since or obeys:
                self.at = None
                super().step()
                continue
            self.at = (self.q if self.at is None else self.at) + STEP * self.own
            self.steady, self.t, self.q = self.steady + STEP, self.t + STEP, self.at
            self.supervisor.receive(self.now, self.t, NAMES, self.q.tolist(), self.speeds())
            self.supervisor.tick(self.now, self.obstacle)
        return self.supervisor.phase

    def speeds(self):
        return self.own.tolist()


class Blind(Stray):
    """Its joint states have no velocities."""

    def speeds(self):
        return [math.nan] * 3


@pytest.mark.parametrize("kind", [Stray, Blind])
@pytest.mark.parametrize("speed", [0.3, 0.02])
def test_a_robot_that_moves_on_after_braking_is_braked_again_until_it_is_at_rest(kind, speed):
    cell = kind([0.0, speed, 0.0], 3.0).brought_to(Phase.RUNNING)
    assert cell.supervisor.stop(cell.now) == ""
    first = cell.supervisor.command
    cell.stray()
    cell.step(120 + round(100 * first.trajectory.duration))
    second = cell.supervisor.command
    assert second is not first and isinstance(second.trajectory, Braking)
    assert np.allclose(second.trajectory.position, cell.q, atol=30 * STEP * speed)
    assert np.allclose(second.trajectory.velocity, cell.own, atol=0.1 * speed)
    assert not cell.supervisor.at_rest
    cell.step(500)
    assert cell.supervisor.at_rest and isinstance(cell.supervisor.command.trajectory, Braking)
    assert cell.supervisor.command is not second, "again and again"
    assert cell.supervisor.phase == (Phase.FAULT if speed > 0.1 else Phase.READY)  # by its tracking error
    assert re.search(r"; joint elbow moves at 0\.\d+ rad/s after braking: braked again$", cell.supervisor.reason)
    count = cell.supervisor.command
    cell.own = cell.own + 0.2
    cell.since, cell.deaf = cell.steady, math.inf
    cell.step(300)
    assert cell.supervisor.command is count, "what moves a robot after its rest is not the supervisor's"


def test_outdated_joint_states_are_not_what_a_robot_is_braked_from():
    """They begin to show motion when the braking is over: braking from them would throw the robot back."""
    cell = Cell().brought_to(Phase.RUNNING)
    later = 150
    assert cell.supervisor.stop(cell.now) == ""
    braking, cell.supervisor.feedback.late = cell.supervisor.command, 1.5
    path = [braking.state(cell.t + STEP * k) for k in range(-later, 1000)]
    for q, dq in path:  # of 1.5 s before
        cell.steady, cell.t = cell.steady + STEP, cell.t + STEP
        cell.supervisor.receive(cell.now, cell.t - STEP * later, NAMES, q.tolist(), dq.tolist(), [0.0] * 3)
        cell.supervisor.tick(cell.now, "")
    assert cell.supervisor.command is braking and cell.supervisor.at_rest


def test_noise_is_not_what_a_robot_is_braked_from():
    cell = Cell().brought_to(Phase.FAULT)
    command, noise = cell.supervisor.command, np.random.default_rng(1)
    for _ in range(500):
        cell.offset = noise.uniform(-1.0, 1.0, 3)
        cell.step()
    assert cell.supervisor.command is command and not cell.supervisor.at_rest
    cell.offset = np.zeros(3)
    cell.step(60)
    assert cell.supervisor.at_rest


def test_a_clock_that_catches_up_after_the_node_was_held_up_is_no_jump():
    """The first look after the hold-up is before the message of the clock is read, or behind it."""
    for first in (0.0, 1.3):
        cell = Cell().brought_to(Phase.RUNNING)
        cell.steady += 1.3
        cell.t += first
        cell.supervisor.tick(cell.now, "")
        cell.t += 1.3 - first
        cell.steady += STEP
        cell.t += STEP
        cell.q = cell.supervisor.command.state(cell.t)[0]
        cell.supervisor.receive(cell.now, cell.t, NAMES, cell.q.tolist(), [0.0] * 3, [0.0] * 3)
        cell.step(3)
        assert cell.supervisor.phase == Phase.RUNNING, cell.supervisor.reason


@pytest.mark.parametrize("ahead", [0.5, 10.0, 2e9])
@pytest.mark.parametrize("pieces", [True, False])
@pytest.mark.parametrize("first", ["tick", "receive", "stop"])
def test_a_clock_that_jumps_ahead_brakes_from_where_the_robot_is(ahead, pieces, first):
    cell = Cell().brought_to(Phase.RUNNING)
    supervisor, begin = cell.supervisor, cell.supervisor.command.begin.motion
    elapsed = supervisor.elapsed(cell.now)
    if pieces:
        supervisor.extend(cell.t + 0.3)
    robot = supervisor.command
    q, dq = robot.state(cell.t + STEP)
    cell.t, cell.steady = cell.t + ahead + STEP, cell.steady + STEP
    if first == "tick":
        supervisor.tick(cell.now, "")
    if first == "stop":
        supervisor.stop(cell.now)
    supervisor.receive(cell.now, cell.t, NAMES, q.tolist(), dq.tolist())
    supervisor.tick(cell.now, "")
    expected = (Phase.FAULT, Phase.STOPPING) if first == "stop" and not pieces else (Phase.FAULT,)
    if ahead == 0.5 and not pieces:
        expected = (*expected, Phase.RUNNING)  # less than the tracking error
    assert supervisor.phase in expected, supervisor.reason
    for _ in range(3):
        cell.t, cell.steady = cell.t + STEP, cell.steady + STEP
        q, dq = robot.state(cell.t - ahead)
        supervisor.receive(cell.now, cell.t, NAMES, q.tolist(), dq.tolist())
    if supervisor.phase == Phase.RUNNING:
        assert supervisor.stop(cell.now) == ""
        supervisor.receive(cell.now, cell.t, NAMES, q.tolist(), dq.tolist())
    motion = supervisor.command.trajectory
    assert isinstance(motion, Braking) and begin < cell.t
    near = robot.state(np.clip(cell.t - ahead, 0, None))[0]
    assert np.allclose(motion.position, near, atol=4 * STEP * np.abs(dq).max())
    assert not supervisor.complete and abs(supervisor.elapsed(cell.now) - elapsed) < 0.1


def test_after_a_jump_of_the_clock_and_without_joint_states_the_steady_clock_counts():
    cell = Cell().brought_to(Phase.RUNNING)
    supervisor, robot = cell.supervisor, cell.supervisor.command
    supervisor.extend(cell.t + 0.3)
    begun = cell.t
    cell.t += 10.0
    cell.speak = False
    assert cell.step() == Phase.FAULT
    assert supervisor.reason == "the clock of the motion went ahead by 10 s"
    for _ in range(30):
        cell.steady, cell.t = cell.steady + STEP, cell.t + STEP
        supervisor.tick(cell.now, "")
    motion = supervisor.command.trajectory
    assert isinstance(motion, Braking)
    assert np.allclose(motion.position, robot.state(begun + 0.1)[0], atol=0.05)


def test_a_motion_is_executed_when_joint_states_show_its_end():
    """The robot is late by less than the tracking error, and goes on after the end."""
    cell = Cell(returns=False).brought_to(Phase.RUNNING)
    supervisor = cell.supervisor
    while not supervisor.command.finished(cell.t):
        cell.step()
    cell.velocity = np.array([0.0, 0.1, 0.0])
    assert cell.step(50) == Phase.RUNNING
    assert cell.until(Phase.FAULT, 60)
    assert supervisor.reason == "joint elbow moves at 0.1 rad/s 1 s after the end of its motion"


def test_a_node_that_is_held_up_after_the_end_of_the_motion_waits_until_joint_states_show_rest():
    """The end of the motion is read late, and joint states show rest for less than its time a second after the end."""
    cell = Cell(returns=False).brought_to(Phase.RUNNING)
    supervisor = cell.supervisor
    while not supervisor.command.finished(cell.t):
        cell.step()
    cell.step()
    cell.steady, cell.t, cell.offset = cell.steady + 0.9, cell.t + 0.9, np.array([0.006, 0.0, 0.0])
    cell.until(Phase.DONE, limit=100)


# --- velocity and effort -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [fast, blocked], ids=lambda fault: fault.__name__)
def test_noise_is_no_fault_but_some_joint_states_in_a_row_are(fault):
    cell = Cell().brought_to(Phase.RUNNING)
    for _ in range(20):
        fault(cell)
        assert cell.step(SAMPLES - 1) == Phase.RUNNING
        cell.velocity, cell.effort = None, np.zeros(3)
        assert cell.step() == Phase.RUNNING
    fault(cell)
    assert cell.step(SAMPLES) == Phase.FAULT


def test_old_news_does_not_add_to_the_samples_in_a_row():
    cell = Cell().brought_to(Phase.RUNNING)
    cell.effort, cell.halted = np.full(3, 50.0), True
    cell.step(5)
    assert cell.supervisor.phase == Phase.RUNNING  # five messages with the stamp of one
    cell.halted = False
    cell.until(Phase.FAULT, SAMPLES)
    assert "effort" in cell.supervisor.reason


def test_a_message_that_is_repeated_before_they_cease_does_not_change_the_reason():
    cell = Cell().brought_to(Phase.RUNNING)
    cell.halted = True
    cell.step(2)
    cell.halted, cell.speak = False, False
    cell.until(Phase.FAULT, 100)
    cell.step(20)
    assert cell.supervisor.feedback.silence(cell.steady).startswith("no joint states for")


def test_a_robot_that_is_pressed_against_something_is_not_started():
    cell = Cell().brought_to(Phase.READY)
    cell.effort = np.array([21.0, 0.0, 0.0])
    cell.step(SAMPLES)
    assert cell.start() == "joint shoulder: its measured effort is 21 N m, more than 20 N m"
    assert cell.supervisor.command is None


def test_unmonitored_quantities_are_reported():
    feedback = Feedback(LIMITS, THRESHOLDS)
    feedback.receive(TimePoint(1.0, 1.0), 1.0, NAMES, [0.0] * 3, [0.0] * 3, [0.0] * 3)
    assert feedback.unmonitored() == "effort of wrist has no limit"
    feedback.receive(TimePoint(2.0, 2.0), 2.0, NAMES, [0.0] * 3, [0.0, math.nan, 0.0], [])
    assert feedback.unmonitored() == (
        "velocity of elbow is not in the joint states; "
        "effort of wrist has no limit; effort of shoulder, elbow is not in the joint states"
    )


def test_one_joint_without_a_velocity_sensor_leaves_the_others_watched():
    feedback = Feedback(LIMITS, THRESHOLDS)
    for t in (1.0, 2.0, 3.0):
        feedback.receive(TimePoint(t, t), t, NAMES, [0.0] * 3, [100.0, math.nan, 0.0], [math.nan] * 3)
    assert feedback.exceeded().startswith("joint shoulder: its measured velocity is 100 rad/s")
    assert feedback.moving() == "joint shoulder moves at 1e+02 rad/s"


# --- the way back ------------------------------------------------------------------------------------------------


def returning(cell):
    """Let the excitation get to its end."""
    cell.brought_to(Phase.RUNNING)
    for _ in range(1000):
        if cell.supervisor.reason:
            break
        cell.step()
    assert (cell.supervisor.phase, cell.supervisor.reason) == (Phase.RUNNING, "returning to the initial configuration")
    return cell


def test_the_robot_ends_where_it_stood():
    cell = Cell()
    home = LIMITS.hard_upper - 0.01  # in the margin that excitations keep
    cell.q = home
    returning(cell)
    motion = cell.supervisor.command.trajectory
    assert isinstance(motion, PointToPoint)
    assert np.allclose(motion.start, EXCITATION.evaluate(np.array([EXCITATION.duration]))[0][:, 0])
    assert cell.supervisor.elapsed(cell.now) == EXCITATION.duration
    cell.until(Phase.DONE)
    assert (cell.supervisor.reason, cell.supervisor.at_rest) == ("", True)
    assert np.array_equal(cell.q, home)


def test_the_way_back_keeps_the_limits():
    cell = returning(Cell())
    motion = cell.supervisor.command.trajectory
    _, dq, ddq, dddq = motion.evaluate(np.linspace(0.0, motion.duration, 1000))
    LIMITS.check_rates(dq, ddq, dddq)


def test_without_a_return_the_robot_stays_where_the_excitation_ends():
    cell = Cell(returns=False).brought_to(Phase.RUNNING)
    cell.until(Phase.DONE)
    assert np.allclose(cell.q, EXCITATION.evaluate(np.array([EXCITATION.duration]))[0][:, 0])
    assert cell.supervisor.reason == ""


def test_a_pause_keeps_the_initial_configuration():
    cell = Cell()
    home = cell.q
    cell.brought_to(Phase.PAUSED)
    assert cell.supervisor.resume(cell.now, "") == ""
    cell.until(Phase.DONE)
    assert np.array_equal(cell.q, home)


def test_the_way_back_can_be_paused_and_stopped_and_faults_brake_it():
    cell = Cell()
    home = cell.q
    returning(cell).step(20)
    assert cell.supervisor.pause(cell.now) == ""
    cell.until(Phase.PAUSED)
    assert not np.allclose(cell.q, home)
    assert cell.supervisor.resume(cell.now, "") == ""
    assert (cell.supervisor.phase, cell.supervisor.reason) == (Phase.RUNNING, "returning to the initial configuration")
    cell.until(Phase.DONE)
    assert np.array_equal(cell.q, home)

    cell = returning(Cell())
    cell.step(20)
    assert cell.supervisor.stop(cell.now) == ""
    cell.until(Phase.READY)
    assert cell.supervisor.reason == "stopped as requested"

    cell = returning(Cell())
    cell.step(20)
    blocked(cell)
    cell.until(Phase.FAULT, SAMPLES)
    assert isinstance(cell.supervisor.command.trajectory, Braking)
    command = cell.supervisor.command
    cell.step(300)
    assert (cell.supervisor.phase, cell.supervisor.command) == (Phase.FAULT, command)


def test_three_joint_states_are_needed_however_much_time_they_take():
    feedback = Feedback(LIMITS, THRESHOLDS)
    for t in (1.0, 1.1):
        feedback.receive(TimePoint(t, t), t, NAMES, [0.0] * 3, [100.0] * 3)
        assert feedback.exceeded() == ""
    feedback.receive(TimePoint(1.2, 1.2), 1.2, NAMES, [0.0] * 3, [100.0] * 3)
    assert feedback.exceeded()


# --- a motion in pieces ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", ["tick", "receive", "stop", "pause"])
def test_when_the_pieces_are_used_up_the_braking_that_has_begun_is_commanded(event):
    """Whatever is called first after the process was held up, no other position is commanded than the robot's."""
    cell = Cell().brought_to(Phase.RUNNING)
    supervisor = cell.supervisor
    reach = cell.t + 0.3
    supervisor.extend(reach)
    cell.step(20)
    assert supervisor.phase == Phase.RUNNING
    q, dq = supervisor.command.state(reach)
    cell.t += 0.25
    cell.steady += 0.25
    if event == "tick":
        supervisor.tick(cell.now, "")
    elif event == "receive":
        supervisor.receive(cell.now, cell.t, NAMES, cell.q.tolist())
    else:
        getattr(supervisor, event)(cell.now)
    assert supervisor.phase == Phase.FAULT
    assert "held up: the next piece of the motion was due 0.15 s ago" in supervisor.reason
    motion = supervisor.command.trajectory
    assert isinstance(motion, Braking)
    assert supervisor.command.begin.motion == reach
    assert np.array_equal(motion.position, q) and np.array_equal(motion.velocity, dq)
    cell.step(300)
    assert supervisor.command.finished(cell.t)
    assert cell.start() == ""


def test_a_clock_that_goes_back_brakes_from_where_the_robot_is():
    cell = Cell().brought_to(Phase.RUNNING)
    supervisor = cell.supervisor
    q, dq = supervisor.command.state(cell.t)
    cell.t -= 30.0
    supervisor.tick(cell.now, "")
    assert supervisor.phase == Phase.FAULT
    assert supervisor.reason == "the clock of the motion went back by 30 s"
    now, speed = supervisor.command.state(cell.t)
    assert np.allclose(now, q, atol=1e-9) and np.allclose(speed, dq, atol=1e-9)


@pytest.mark.parametrize("phase", [Phase.READY, Phase.PAUSED, Phase.DONE, Phase.FAULT])
def test_a_clock_that_goes_back_at_rest_does_not_refuse_the_next_start(phase):
    cell = Cell()
    if phase == Phase.READY:
        cell.brought_to(Phase.RUNNING)
        assert cell.supervisor.stop(cell.now) == ""
        cell.until(Phase.READY)
    else:
        cell.brought_to(phase)
    cell.step(100)
    cell.t -= 80.0
    cell.supervisor.tick(cell.now, "")
    assert cell.supervisor.phase == phase
    assert cell.supervisor.command is None, "a command that is sent again would move the robot"
    begin = cell.supervisor.resume if phase == Phase.PAUSED else cell.supervisor.start
    assert begin(cell.now, "") == ""
    cell.until(Phase.DONE)


@pytest.mark.parametrize("over", [False, True])
def test_a_clock_that_goes_back_does_not_prolong_braking(over):
    cell = Cell().brought_to(Phase.RUNNING)
    supervisor = cell.supervisor
    assert supervisor.stop(cell.now) == ""
    if over:
        cell.t += 5.0
        assert supervisor.stop(cell.now) == "", "once more, when braking is over"
    cell.t -= 80.0
    supervisor.tick(cell.now, "")
    cell.step(150)
    assert supervisor.phase == Phase.READY


def test_positions_that_no_joint_can_have_are_broken_joint_states():
    feedback = Feedback(LIMITS, THRESHOLDS)
    for value in (1e308, -1e300, math.inf, math.nan):
        feedback.receive(TimePoint(1.0, 1.0), 0.0, NAMES, [0.0, value, 0.0], [1e308] * 3, [-1e308] * 3)
        assert feedback.broken == f"joint elbow: its measured position is {value:g}"


def test_clocks_that_disagree_are_found_and_one_late_message_is_not():
    clocks = ClockAgreement(Latency(0.1))
    assert clocks.problem(0.0) == ""
    for k in range(100):
        clocks.receive(0.01 * k, 3.0 if k == 50 else 0.02)
        assert clocks.problem(0.01 * k) == ""
    for age, words in ((5.0, "5 s behind"), (-5.0, "5 s ahead of")):
        for k in range(60):
            clocks.receive(1.0 + 0.01 * k, age)
        assert f"joint states are {words} this node's clock: synchronize" in clocks.problem(1.6)
        clocks.receive(1.7, 0.0)
        assert clocks.problem(1.7) == ""


def test_thresholds_follow_from_limits_and_never_stop_a_robot_at_rest():
    limits = replace(LIMITS, velocity=np.array([2.0, 0.01, 1.0]))
    tracking, effort = np.full(3, 0.2), scale_effort_limits(np.array([10.0, 20.0, np.inf]), 0.5)
    thresholds = GuardThresholds.from_limits(limits, 0.1, tracking=tracking, effort=effort, patience=0.3, timeout=0.4)
    np.testing.assert_allclose(thresholds.velocity, [2.2, REST_SPEED, 1.1])
    np.testing.assert_array_equal(thresholds.effort, [5.0, 10.0, np.inf])
    assert np.isinf(scale_effort_limits(np.array([10.0, 20.0]), 0.0)).all()
    assert (thresholds.patience, thresholds.timeout) == (0.3, 0.4)
