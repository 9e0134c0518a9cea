# SPDX-License-Identifier: Apache-2.0
"""Requests of an excitation session: what may begin, and what follows, with a robot that follows its commands."""

import logging
import re
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from support.altered import altered
from support.model_nodes import ARM, identified

from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation import Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.execution.clocks import ClockAgreement
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.guard import GuardThresholds
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.excitation.execution.recording_watch import IGNORE, RecordingWatch
from robot_dyn_id.excitation.execution.rehearsal import REHEARSAL_SPEED
from robot_dyn_id.excitation.execution.supervision import UNDER_WAY, Phase
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.workflow.excitation_efforts import EffortSource
from robot_dyn_id.workflow.excitation_plan import ExcitationPlan
from robot_dyn_id.workflow.excitation_session import READY_TIME_S, RELEASE_TIME_S, ExcitationSession
from robot_dyn_id.workflow.steps import DoneWork

STEP = 0.01


@dataclass(frozen=True)
class Settings:
    speed_scale: float = 1.0
    segments: bool = False
    allow_unchecked_collisions: bool = False
    require_effort: bool = True
    rehearsal: bool = False
    return_to_start: bool = False
    start: bool = False
    runs: int = 1


SHORT = Demand(period=0.5, periods=1, share=0.1)


def plan(model, obstruction=lambda motion: "", tracking=0.2, demand=SHORT):
    limits = MotionLimits.from_model(model, (4.0,), margin=0.02)
    n = len(limits.joint_names)
    excitation = make_excitation("fourier", limits, demand)
    thresholds = GuardThresholds(np.full(n, tracking), 1.1 * limits.velocity, np.full(n, np.inf), 0.05, 0.1)
    return ExcitationPlan(limits, excitation, thresholds, "fourier", "", obstruction)


class Robot:
    """A session with a robot that follows its commands, 10 ms at a time; its joint states can be delayed."""

    def __init__(self, caplog, joints=None, held=None, make_plan=plan, compute=DoneWork, **settings):
        caplog.set_level(logging.INFO)
        self.log, self.external, self.ready = caplog, "", True
        self.model = RobotModel.from_urdf(ARM, joints, held=held)
        self.names = list(self.model.joint_names)
        self.t, self.bent, self._runs = 100.0, {}, []
        self.delay, self.offset, self.ahead, self._under_way = lambda t: 0.0, 0.0, 0.0, []
        self.session = ExcitationSession(
            Settings(**settings),
            make_plan,
            RecordingWatch(IGNORE, "/joint_states"),
            EffortSource(0.01, False, (), logging.warning),
            ClockAgreement(Latency(0.1)),
            lambda begins: self.external if begins else "",
            logging.getLogger("session"),
            "",
            compute,
        )
        self.session.take_robot(self.model, make_plan(self.model))
        self.session.supervise(self.now)
        self.supervisor = self.session.supervisor
        self.q, self.state = plan(self.model).limits.center_and_reach()[0], None

    @property
    def runs(self):
        """Whether each run was slow."""
        return [run.slow for run in self._runs]

    @property
    def now(self):
        return TimePoint(self.t, self.t)

    def step(self, seconds):
        for _ in range(round(seconds / STEP)):
            self.t += STEP
            velocity = np.zeros(len(self.names))
            if self.supervisor.command is not None:
                self.q, velocity = self.supervisor.command.state(self.t)
            if self.ready:
                names, still = [*self.names, *self.bent], [0.0] * len(self.bent)
                q = [*(self.q + self.offset).tolist(), *self.bent.values()]
                state = names, q, [*velocity.tolist(), *still], [1.0] * len(names)
                self._under_way.append((self.t + self.delay(self.t) - STEP / 2, self.t, state))
            while self._under_way and self._under_way[0][0] <= self.t:
                _, measured, state = self._under_way.pop(0)
                self.session.receive(self.now, self.t - measured - self.ahead, measured + self.ahead, *state)
            self.refusal = self.session.tick(self.supervisor, self.now)
            self.ended = self.session.attend(self.supervisor, self.now)
            run = self.supervisor.run
            if self.supervisor.phase in UNDER_WAY and not any(run is one for one in self._runs):
                self._runs.append(run)
        return self.supervisor.phase

    def until(self, phase, limit=60.0):
        end = self.t + limit
        while self.supervisor.phase != phase:
            assert self.t < end, f"{self.supervisor.phase!r}: {self.supervisor.reason}"
            self.step(STEP)
        return self

    def ask(self, name, *arguments):
        """Answer to a request; None while it is being planned."""
        answers = []
        steps = getattr(self.session, name)(self.supervisor, self.now, *arguments)
        self.session.begin(steps, self.now, answers.append)
        return answers[0] if answers else None


def test_an_automatic_start_happens_once_when_all_has_been_ready_for_a_while(caplog):
    robot = Robot(caplog, start=True)
    robot.ready = False
    assert robot.step(2.0) == Phase.WAITING
    robot.ready = True
    assert robot.step(0.9 * READY_TIME_S) == Phase.READY
    robot.until(Phase.DONE)
    assert robot.step(3.0) == Phase.DONE and robot.runs == [False]


def test_a_request_by_hand_or_a_stop_takes_the_automatic_starts_over(caplog):
    robot = Robot(caplog, start=True, runs=3).until(Phase.READY)
    robot.session.cancel_starts()
    assert robot.ask("start") == ""
    robot.until(Phase.DONE)
    robot.session.take_model(identified, robot.t, robot.now)
    assert robot.step(3.0) == Phase.DONE and robot.runs == [False]


def test_a_refused_automatic_start_is_not_tried_again_at_every_tick(caplog):
    checks = []
    robot = Robot(caplog, start=True)
    robot.supervisor.obstruction = lambda motion: checks.append(motion) or "link1 and table"
    robot.step(3.5)
    assert 2 <= len(checks) <= 3 and not robot.runs
    robot.supervisor.obstruction = lambda motion: ""
    robot.until(Phase.RUNNING)


def test_only_a_new_model_of_this_robot_starts_the_next_run(caplog):
    robot = Robot(caplog, start=True, runs=2)
    begin = robot.t
    robot.session.take_model(identified, robot.t, robot.now)
    robot.until(Phase.DONE)
    good, other = identified(), ARM.replace('name="small"', 'name="other"')
    for words, parameters, stamp in (
        ("they are not from it", good, begin),
        ("are those of another URDF", altered(good, robot={"urdf": other, "urdf_sha256": urdf_hash(other)}), robot.t),
        (
            "the verdict on the parameters is bad",
            altered(good, judgment={"verdict": "bad", "reasons": ("a test",)}),
            robot.t,
        ),
    ):
        robot.session.take_model(lambda parameters=parameters: parameters, stamp, robot.now)
        assert words in robot.log.messages[-1]
    assert robot.step(3.0) == Phase.DONE and robot.runs == [False]
    robot.session.take_model(lambda: good, robot.t, robot.now)
    assert robot.step(READY_TIME_S + 0.1) in UNDER_WAY
    robot.until(Phase.DONE)
    robot.session.take_model(lambda: good, robot.t, robot.now)
    assert robot.step(3.0) == Phase.DONE and robot.runs == [False, False]


def test_full_speed_needs_a_rehearsal_which_an_automatic_start_begins_with(caplog):
    robot = Robot(caplog, rehearsal=True).until(Phase.READY)
    assert robot.ask("start").startswith("not rehearsed") and "~/rehearse" in robot.ask("start")
    assert robot.ask("rehearse") == ""
    assert "rehearses one period at 10%" in robot.supervisor.describe_motion()
    robot.step(0.1)
    robot.until(Phase.READY)
    assert robot.ask("start") == ""
    robot.until(Phase.DONE)
    automatic = Robot(caplog, rehearsal=True, start=True)
    automatic.until(Phase.DONE)
    assert automatic.runs == [True, False] and automatic.supervisor.rehearsed
    by_hand = Robot(caplog, rehearsal=True, start=True).until(Phase.RUNNING)
    assert "moving" in by_hand.ask("go_back")
    by_hand.session.cancel_starts()
    by_hand.until(Phase.READY)
    assert by_hand.step(8.0) == Phase.READY and by_hand.runs == [True]
    assert Robot(caplog, rehearsal=True, speed_scale=REHEARSAL_SPEED).until(Phase.READY).ask("start") == ""


def test_full_speed_that_is_refused_after_the_rehearsal_is_reported_when_the_robot_cannot_settle_any_more(caplog):
    robot = Robot(caplog, rehearsal=True).until(Phase.READY)
    run = robot.session.make_full_run(robot.supervisor)
    rehearsal = replace(run, rehearsal=True)
    assert robot.ask("begin_runs", (rehearsal, run)) == ""
    robot.until(Phase.RUNNING).external = "no controller"
    while robot.supervisor.end is None:
        robot.step(STEP)
    assert robot.ended is None, "a robot that has just come to rest may still settle"
    robot.step(RELEASE_TIME_S + 0.1)
    assert robot.ended == "" and "full speed is refused after the rehearsal: no controller" in robot.log.messages


def test_rehearsals_outlive_the_robot_and_end_where_joints_are_held_elsewhere(caplog):
    """The joints that the motion does not move are checked where they are measured."""

    def make_plan(model):
        if model.held.get("wrist", 0.0) > 1.0:
            raise MotionError("the motion collides: wrist and table")
        return plan(model)

    robot = Robot(caplog, joints=["shoulder", "elbow"], held={"wrist": 0.0}, make_plan=make_plan, rehearsal=True)
    robot.bent["wrist"] = 0.0
    robot.until(Phase.READY)
    assert robot.ask("rehearse") == ""
    robot.step(0.1)
    robot.until(Phase.READY)
    robot.session.drop_robot()
    robot.session.take_robot(robot.model, make_plan(robot.model))
    robot.session.supervise(robot.now)
    robot.supervisor = robot.session.supervisor
    robot.until(Phase.READY)
    assert robot.supervisor.rehearsed
    robot.bent["wrist"] = 1.5
    robot.step(0.1)
    assert "(wrist is at 1.5, not at 0): the motion collides: wrist and table" in robot.ask("start")
    robot.bent["wrist"] = 0.3
    robot.step(0.1)
    for _ in range(2):
        assert robot.ask("start").startswith("not rehearsed")
    assert robot.ask("rehearse") == ""


def test_a_motion_for_an_identification_needs_efforts_and_the_return_does_not(caplog):
    robot = Robot(caplog).until(Phase.READY)
    robot.external = "no controller"
    assert robot.ask("start") == "no controller"
    robot.external = ""
    assert robot.ask("go_back") == "there is no configuration to return to: nothing has been started"
    assert robot.ask("start") == ""
    robot.until(Phase.DONE)
    assert robot.ask("go_back") == ""


def test_a_stop_is_over_when_joint_states_show_rest_or_have_ceased(caplog):
    robot = Robot(caplog).until(Phase.READY)
    robot.step(1.0)
    assert robot.session.check_rest(robot.now, robot.t) == (True, "")
    assert robot.ask("start") == ""
    robot.until(Phase.RUNNING).supervisor.stop(robot.now)
    due = robot.session.find_rest_due(robot.now)
    robot.ready = False
    assert robot.session.check_rest(robot.now, due) is None and not robot.session.check_silence(robot.now)
    robot.step(due - robot.t)
    success, why = robot.session.check_rest(robot.now, due)
    assert not success and why.startswith("joint states do not show the robot at rest: ")
    assert "no joint states" in robot.session.check_silence(robot.now)
    robot.ready = True
    robot.step(2.0)
    assert robot.session.check_rest(robot.now, due) == (True, "")


@pytest.mark.parametrize("age", [0.0, 1.0])
def test_stamped_commands_need_clocks_that_agree(caplog, age):
    robot = Robot(caplog, segments=True)
    for _ in range(100):
        robot.session._clocks.receive(robot.t, age)
        robot.t += STEP
    assert bool(robot.session._clocks.problem(robot.t)) == (age > 0.0)
    assert ("this node's clock" in robot.ask("start")) == (age > 0.0)


class Slow:
    """Computations that end when the test says so."""

    def __init__(self):
        self.begun = []

    def __call__(self, compute):
        work = DoneWork(compute)
        work.done = False
        self.begun.append(work)
        return work

    def end(self):
        self.begun[-1].done = True


def planned(caplog, **settings):
    """A robot whose start is being planned, and the computations."""
    slow = Slow()
    robot = Robot(caplog, compute=slow, **settings).until(Phase.READY)
    assert robot.ask("start") is None and len(slow.begun) == 1
    return robot, slow


def test_joint_states_are_taken_while_a_motion_is_planned_and_it_begins_from_the_latest(caplog):
    robot, slow = planned(caplog)
    before = robot.supervisor.feedback.at
    assert robot.step(1.0) == Phase.READY and robot.supervisor.feedback.at.steady > before.steady + 0.9
    slow.end()
    assert robot.step(STEP) == Phase.APPROACHING
    robot.until(Phase.DONE)


def test_one_motion_is_planned_at_a_time_and_what_changes_meanwhile_prevents_it(caplog):
    robot, slow = planned(caplog)
    assert robot.ask("start") == "another motion is being planned" and len(slow.begun) == 1
    robot.external = "no controller"
    slow.end()
    assert robot.step(0.1) == Phase.READY and not robot.runs
    robot.external = ""
    assert robot.ask("start") is None
    robot.q = robot.q + 0.01
    robot.step(2.0)
    slow.end()
    assert robot.step(0.1) == Phase.READY and not robot.runs, "planned from where the robot is no more"


def test_a_plan_that_is_canceled_or_of_an_automatic_start_that_is_replaced_moves_nothing(caplog):
    robot, slow = planned(caplog)
    robot.session.cancel_planning("stopped as requested")
    slow.end()
    assert robot.step(0.5) == Phase.READY and not robot.runs
    slow = Slow()
    robot = Robot(caplog, compute=slow, start=True).until(Phase.READY)
    robot.step(READY_TIME_S + 0.1)
    assert len(slow.begun) == 1
    robot.session.cancel_starts()
    assert robot.ask("start") is None and len(slow.begun) == 2
    slow.end()
    robot.until(Phase.DONE)
    assert robot.runs == [False]


def test_requests_of_a_moving_robot_are_rejected_before_anything_is_checked(caplog):
    robot = Robot(caplog).until(Phase.READY)
    assert robot.ask("start") == ""
    robot.until(Phase.RUNNING)
    checks = []
    robot.session._external = lambda begins: checks.append(begins) or ""
    for name in ("start", "rehearse", "go_back"):
        assert robot.ask(name) == "the robot is still moving"
    assert checks == []


LATE = 0.1
"""Age at which the joint states of the robots above are late [s]."""

TRACKING = 0.02
"""Largest tracking error of the robot below [rad]: the way of a few hundredths of a second."""

FAST = Demand(period=4.0, periods=1)

DELAYS = {
    "none": lambda t: 0.0,
    "constant": lambda t: 0.9 * LATE,
    "held up again and again": lambda t: 0.9 * LATE - t % (0.9 * LATE),
    "changing": lambda t: 0.45 * LATE * (1.0 + np.sin(0.5 * t / LATE)),
}
"""Times from the measurement to the receipt of joint states that are not late, by the time of the measurement [s]."""


def moving(caplog, delay, **settings):
    robot = Robot(caplog, make_plan=partial(plan, tracking=TRACKING, demand=FAST), **{"segments": True, **settings})
    robot.delay = delay
    robot.until(Phase.READY)
    assert robot.ask("start") == ""
    return robot


def in_full_motion(robot):
    """Until joints move so fast that in 0.7 of the latency they exceed the tracking error that is tolerated."""
    robot.until(Phase.RUNNING)
    while np.abs(robot.supervisor.command.state(robot.t)[1]).max() * 0.7 * LATE < TRACKING:
        robot.step(STEP)
        assert robot.supervisor.phase == Phase.RUNNING, robot.supervisor.reason
    return robot


@pytest.mark.parametrize("returns", [True, False])
@pytest.mark.parametrize("delay", DELAYS)
def test_joint_states_that_come_late_within_the_latency_are_no_tracking_error(caplog, delay, returns):
    robot = in_full_motion(moving(caplog, DELAYS[delay], return_to_start=returns))
    robot.until(Phase.DONE)
    assert "tracking" not in robot.supervisor.worst[1]


@pytest.mark.parametrize("delay", DELAYS)
def test_a_stop_is_no_fault_by_joint_states_from_before_the_braking(caplog, delay):
    robot = in_full_motion(moving(caplog, DELAYS[delay]))
    robot.supervisor.stop(robot.now)
    phases = set()
    while robot.supervisor.phase != Phase.READY:
        phases.add(robot.step(STEP))
        assert Phase.FAULT not in phases, robot.supervisor.reason
    assert robot.supervisor.at_rest


@pytest.mark.parametrize("delay", DELAYS)
def test_a_deviation_is_a_fault_when_the_first_joint_states_that_show_it_are_received(caplog, delay):
    robot = in_full_motion(moving(caplog, DELAYS[delay]))
    robot.offset = 1.5 * TRACKING
    shown = robot.t + STEP
    received = max(shown, min(t + DELAYS[delay](t) for t in shown + STEP * np.arange(20)))
    while robot.supervisor.phase == Phase.RUNNING:
        robot.step(STEP)
        assert robot.t < received + 1.5 * STEP
    assert robot.supervisor.phase == Phase.FAULT
    assert "is 0.03 rad away from its command, more than 0.02 rad" in robot.supervisor.reason


def test_joint_states_that_are_older_than_the_latency_stay_a_fault(caplog):
    robot = in_full_motion(moving(caplog, DELAYS["none"]))
    begin = robot.t
    robot.delay = lambda t: 0.5 * (t - begin)  # more and more
    while robot.supervisor.phase == Phase.RUNNING:
        assert robot.step(STEP) in (Phase.RUNNING, Phase.FAULT)
        assert robot.t < begin + 4.0 * LATE
    assert re.search(r"; the joint states are 0\.1\d s old by their stamps: they came late$", robot.supervisor.reason)
    robot = in_full_motion(moving(caplog, DELAYS["none"]))
    begin = robot.t
    robot.delay = lambda t: 3.0 * LATE  # suddenly
    robot.until(Phase.FAULT, LATE + 2.0 * STEP)
    assert robot.supervisor.reason.startswith("no joint states for 0.1")
    still = moving(caplog, lambda t: 0.0)
    still.until(Phase.DONE)
    still.delay = lambda t: 3.0 * LATE
    still.step(20.0 * LATE)
    assert still.supervisor.phase == Phase.DONE and "behind this node's clock" in still.ask("start")


@pytest.mark.parametrize("clock", [3600.0, -3600.0])
def test_stamps_of_another_clock_do_not_date_joint_states(caplog, clock):
    robot = moving(caplog, DELAYS["none"], segments=False)
    robot.ahead = clock
    in_full_motion(robot).until(Phase.DONE)


@pytest.mark.parametrize("clock", [3600.0, -3600.0])
def test_stamps_that_jump_while_the_robot_moves_are_a_fault_of_the_clocks(caplog, clock):
    robot = in_full_motion(moving(caplog, DELAYS["none"]))
    robot.ahead = clock
    robot.until(Phase.FAULT)
    assert "this node's clock: synchronize the clocks" in robot.supervisor.reason
