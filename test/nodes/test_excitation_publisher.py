# SPDX-License-Identifier: Apache-2.0
"""The node, with a robot behind a trajectory controller, over real DDS: moves on request, and stops when in doubt."""

import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from rcl_interfaces.msg import Log
from rclpy.node import Node
from rclpy.serialization import serialize_message
from robot_dyn_id.msg import ExcitationStatus as Status
from robot_dyn_id.msg import ParameterSet
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from support import model_nodes
from support.altered import altered
from support.excitation_cell import ACCELERATION, ARM, HORIZON_S, MAIN, NAMES, QUICK, START, TIMEOUT_S, VELOCITY, Cell
from support.follower import PERIOD_S, Follower
from support.joint_state_faults import FAULTS, disturbed, frozen, hostile_joint_states, not_a_number, silent
from support.processes import HANG_S
from support.ros_world import ros_arguments
from support.simulator_scene import seconds
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.errors import DeadlineError, InputError, ModelError, MotionError, UsageError
from robot_dyn_id.excitation import FORMS, Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.execution.supervision import Phase
from robot_dyn_id.excitation.limits import REST_SPEED
from robot_dyn_id.files.trajectory import StoredExcitation, read_trajectory, write_trajectory
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.excitation.settings import ExcitationSettings, make_plan
from robot_dyn_id.nodes.messages.conversions import find_most_points
from robot_dyn_id.nodes.messages.trajectory_messages import TrajectoryMessage
from robot_dyn_id.nodes.runtime.decoding import find_most_bytes
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.workflow import excitation_session

SEGMENTS = pytest.mark.parametrize("segments", ["true", "false"], ids=["pieces", "whole"])


def vanish(world, node):
    """End a node without warning."""
    world.executor.remove_node(node)
    world._nodes.remove(node)
    node.destroy_node()


def ready(world, **options):
    return Cell(world, **options).until(Status.READY)


# --- what it is there for ----------------------------------------------------------------------------------------


@SEGMENTS
def test_it_moves_only_on_request_and_then_through_the_whole_excitation(world, segments):
    cell = ready(world, segments=segments, order=["joint3", "joint1", "joint7", "joint5", "joint6", "joint4", "joint2"])
    world.wait(0.5)
    assert cell.follower.received == []
    cell.running().until(Status.DONE)
    world.until(cell.follower.at_rest)
    states = [status.state for status in cell.statuses]
    assert states == sorted(states, key=[0, 1, 2, 3, 6].index)
    assert (cell.statuses[-1].elapsed, cell.statuses[-1].duration, list(cell.statuses[-1].joint_names)) == (
        2.0,
        2.0,
        NAMES,
    )
    moved = np.ptp([q for _, q, _ in cell.follower.history], axis=0)
    assert np.all(moved > 0.05)
    speed = np.abs([dq for _, _, dq in cell.follower.history]).max(axis=0)
    assert np.all(speed <= VELOCITY * 1.001)
    assert max(abs(error) for status in cell.statuses for error in status.tracking_error) < 0.05


def test_it_returns_to_where_it_stood(world):
    cell = ready(world, return_to_start="true").running()
    world.until(lambda: cell.reason == "returning to the initial configuration")
    assert (cell.state, cell.statuses[-1].elapsed) == (Status.RUNNING, 2.0)
    assert np.abs(cell.follower.q - START).max() > 0.05
    cell.until(Status.DONE)
    assert cell.reason == ""
    world.until(cell.follower.at_rest)
    assert np.allclose(cell.follower.q, START, atol=1e-6)


def test_without_segments_the_whole_motion_is_one_message_for_a_trajectory_controller(world):
    cell = ready(world, segments="false").running()
    ((_, message),) = cell.follower.received
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)
    times = [point.time_from_start.sec + point.time_from_start.nanosec * 1e-9 for point in message.points]
    assert times[0] > 0.0
    assert np.diff(times).max() < 0.0101
    for point in message.points:
        assert len(point.positions) == len(point.velocities) == len(point.accelerations) == 7
    last = message.points[-1]
    assert not any(last.velocities) and not any(last.accelerations)


def test_pieces_leave_a_robot_at_rest_when_the_node_dies(world):
    cell = ready(world).running()
    vanish(world, cell.node)
    world.within(HORIZON_S + VELOCITY.max() / ACCELERATION + 0.5, cell.follower.at_rest)
    _, message = cell.follower.received[-1]
    assert message.header.stamp.sec > 0
    assert list(message.points[0].accelerations) and not list(message.points[-1].accelerations)


def test_the_robot_follows_pieces_as_it_follows_the_whole_motion(world):
    """At the times of the joint states, against the motion itself, by the clock of the computer."""
    cell, late = ready(world, use_sim_time="false"), []
    while len(late) < 200:  # of 500 in a motion: a busy computer leaves out some
        first, history = len(cell.follower.received), len(cell.follower.history)
        cell.running().until(Status.DONE)
        world.until(cell.follower.at_rest)
        assert 3 <= len(cell.follower.received) - first <= 12  # 2.5 s of motion, a piece every 0.5 s
        command = cell.node._session.supervisor.command
        steady = 1e-9 * cell.node.steady_ns() - time.monotonic()
        timed = [(t + steady - command.begin.steady, q, dq) for t, q, dq in cell.follower.history[history:]]
        moved = [(t, q, dq) for t, q, dq in timed if 0.05 < t < command.trajectory.duration]
        t, found, speed = (np.array(values) for values in zip(*moved, strict=True))
        q, dq, _, _ = command.trajectory.evaluate(t)
        # the time of a joint state is that of the test, some milliseconds later than the follower's own
        late += list(np.abs(found - q.T) / (np.abs(dq.T) + 0.02))
        jerky = np.abs(np.diff(speed, axis=0)).max() / np.diff(t).min()
        assert np.abs(np.diff(speed, axis=0)).max() < ACCELERATION * np.diff(t).max() * 1.05 + 1e-3, jerky
    assert np.median(late) < 1e-3


def test_sequential_sines_move_one_joint_after_the_other(world):
    cell = ready(world, form="sequential_sine", period=0.2, periods=1, amplitude_share=0.2, segments="false")
    cell.running(progress=0.0).until(Status.DONE)
    approach = len([None for status in cell.statuses if status.state == Status.APPROACHING])
    assert approach
    _, command = cell.follower.received[0]  # what was commanded; a busy computer may not have sampled all of it
    columns = [command.joint_names.index(name) for name in NAMES]
    moving = [np.abs(np.array(point.velocities)[columns]) > 1e-6 for point in command.points]
    together = [number for number, row in enumerate(moving) if np.count_nonzero(row) > 1]
    moving = moving[together[-1] + 1 :]  # the approach moved several
    order = [int(np.flatnonzero(row)[0]) for row in moving if row.any()]
    assert sorted(set(order)) == list(range(7))
    assert order == sorted(order, reverse=True)


@pytest.fixture
def file(tmp_path):
    """A trajectory file of the arm."""
    model = RobotModel.from_file(ARM)
    limits = MotionLimits.from_model(model, (ACCELERATION,), margin=0.05)
    motion = make_excitation("bspline", limits, Demand(period=1.5, control_points=12, periods=2, share=0.5))
    write_trajectory(
        tmp_path / "trajectory.yaml", StoredExcitation.from_excitation(model, limits, motion, "a test", "shapes")
    )
    return tmp_path / "trajectory.yaml"


def test_a_trajectory_file_is_executed_slower_and_smaller_on_request(world, file):
    cell = ready(world, trajectory=file, speed_scale=0.75, amplitude_scale=0.5, segments="false")
    cell.running().until(Status.DONE)
    assert cell.statuses[-1].duration == pytest.approx(4.0)
    motion = read_trajectory(file).excitation
    _, command = cell.follower.received[0]
    times = np.array([point.time_from_start.sec + point.time_from_start.nanosec * 1e-9 for point in command.points])
    own = (times - times[-1] + 4.0) * 0.75
    running = own >= 0.0
    assert np.count_nonzero(running) >= 400
    center = motion.center[:, None]
    q, dq, _, _ = motion.evaluate(own[running])
    sent = [
        np.array([getattr(point, name) for point in command.points])[running].T for name in ("positions", "velocities")
    ]
    assert np.allclose(sent[0], center + 0.5 * (q - center), atol=1e-6)
    assert np.allclose(sent[1], 0.375 * dq, atol=1e-5)


def test_a_trajectory_file_of_another_robot_is_refused_by_name(world, file):
    with pytest.raises(
        InputError, match=r"trajectory.yaml: the trajectory is for the robot arm7 with the joints joint1, "
    ):
        Cell(world, follower=False, trajectory=file, joints="[joint1, joint2]")
    with pytest.raises(MotionError, match=r"trajectory.yaml: joint joint\d: the velocity of the motion reaches"):
        Cell(world, follower=False, trajectory=file, velocity_scale=0.1)


def test_a_dry_run_shows_the_motion_and_commands_nothing(world, file):
    cell = Cell(world, trajectory=file, dry_run="true", start="true")
    previews = world.heard(JointTrajectory, "excitation_publisher/preview", LATCHED)  # it came before
    world.until(lambda: previews and cell.reason)
    assert (cell.state, cell.reason) == (
        Status.WAITING,
        "dry run: the motion fits the robot; set dry_run to false to move",
    )
    answer = cell.call("start")
    assert (answer.success, answer.message) == (False, cell.reason)
    (message,) = previews
    assert list(message.joint_names) == NAMES
    motion = read_trajectory(file).excitation
    last = message.points[-1].time_from_start
    assert last.sec + last.nanosec * 1e-9 == pytest.approx(motion.duration)
    for k in (0, 77, len(message.points) - 1):
        t = message.points[k].time_from_start.sec + message.points[k].time_from_start.nanosec * 1e-9
        for ours, name in zip(
            motion.evaluate(np.array([t])), ("positions", "velocities", "accelerations"), strict=False
        ):
            assert np.allclose(getattr(message.points[k], name), ours[:, 0], atol=1e-5)
    assert cell.follower.received == []
    assert world.probe.count_publishers("joint_trajectory_controller/joint_trajectory") == 0


@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_executed(form):
    demand = {"form": form, "period": 1.0, "periods": 1, "blend": 0.4, "amplitude_share": 0.2, "rate": 200.0}
    plan = make_plan(RobotModel.from_file(ARM), ExcitationSettings(**demand, acceleration=(ACCELERATION,)))
    _, dq, _, _ = plan.excitation.evaluate(np.linspace(0.0, plan.excitation.duration, 1000))
    assert dq.any() and (np.abs(dq).max(axis=1) <= plan.limits.velocity * 1.001).all()


def test_only_a_new_model_of_this_robot_starts_the_next_run(world, tmp_path):
    (tmp_path / "arm.urdf").write_text(model_nodes.ARM)
    names = list(model_nodes.identified().robot.joint_names)
    world.keep_time()
    follower = world.add(lambda **o: Follower(names, np.full(len(names), 0.1), **o))
    log = world.heard(Log, "/rosout", RELIABLE)
    options = {"start": "true", "runs": 2, "periods": 1, "segments": "false", "allow_unchecked_collisions": "true"}
    cell = Cell(world, urdf=tmp_path / "arm.urdf", follower=False, **options)
    models = world.probe.create_publisher(ParameterSet, "identified_parameters", LATCHED)
    cell.until(Status.DONE)
    other = model_nodes.ARM.replace('name="small"', 'name="other"')
    good = model_nodes.identified()
    wrong = {
        "they are not from it": (good, 0),
        "are those of another URDF": (altered(good, robot={"urdf": other, "urdf_sha256": urdf_hash(other)}), 1),
        "the verdict on the parameters is bad": (altered(good, judgment={"verdict": "bad", "reasons": ("a test",)}), 1),
    }
    for words, (parameters, fresh) in wrong.items():
        message = model_nodes.message(parameters)
        if fresh:
            message.header.stamp = cell.node.get_clock().now().to_msg()
        models.publish(message)
        world.until(lambda words=words: any(re.search(words, one.msg) for one in log), what=words)
    models.publish(ParameterSet())
    world.wait(1.5)  # longer than the robot is let settle
    assert len(follower.received) == 1 and cell.state == Status.DONE
    message = model_nodes.message(good)
    message.header.stamp = cell.node.get_clock().now().to_msg()
    models.publish(message)
    world.until(lambda: len(follower.received) == 2)


def test_a_stop_before_all_is_ready_takes_the_start_by_parameter_back(world):
    cell = Cell(world, follower=False, start="true")
    cell.until(Status.WAITING).call("stop")
    cell.follower = world.add(lambda **o: Follower(NAMES, START, **o))
    cell.until(Status.READY)
    world.wait(0.3)
    assert cell.state == Status.READY


@SEGMENTS
def test_stop_brakes_and_a_new_start_begins_again(world, segments):
    cell = ready(world, segments=segments).running()
    assert cell.call("stop").success
    cell.until(Status.READY)
    assert cell.reason == "stopped as requested"
    world.within(1.0, cell.follower.at_rest)
    cell.running(progress=0.0).until(Status.DONE)


def test_stops_just_after_the_start_are_sent_and_leave_the_robot_where_the_node_expects_it(world):
    """Braking from the first instants lasts microseconds: its piece must arrive all the same, and not outdated."""
    cell = ready(world)
    supervisor, clock, commands = cell.node._session.supervisor, cell.node._motion_clock, cell.node._commands
    for delay in (0.0, 0.002, 0.005, 0.02, 0.05):
        count = len(cell.follower.received)
        assert supervisor.start(clock.now(), "") == ""
        commands.follow(supervisor, clock.now())
        time.sleep(delay)
        assert supervisor.stop(clock.now()) == ""
        commands.follow(supervisor, clock.now())
        time.sleep(0.05)  # the messages are on their way for so long
        world.until(lambda count=count: len(cell.follower.received) == count + 2, what="approach and braking")
        end = supervisor.command.state(math.inf)[0]
        world.wait(0.4)
        assert cell.follower.at_rest()
        assert np.allclose(cell.follower.q, end, atol=1e-6), delay
        world.until(lambda: supervisor.phase == Phase.READY)


@SEGMENTS
def test_a_pause_brakes_and_goes_on_from_where_it_was(world, segments):
    cell = ready(world, segments=segments).running()
    assert not cell.call("start").success
    assert cell.call("pause", SetBool.Request(data=True)).success
    cell.until(Status.PAUSED)
    elapsed = cell.statuses[-1].elapsed
    assert 0.3 < elapsed < 1.5
    world.within(1.0, cell.follower.at_rest)
    refused = cell.call("start")
    assert not refused.success and "paused" in refused.message
    cell.resume()
    cell.until(Status.RUNNING)
    assert cell.statuses[-1].elapsed >= elapsed
    cell.until(Status.DONE)
    assert not cell.call("pause", SetBool.Request(data=False)).success


# --- when in doubt -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fault", "segments"), list(zip(FAULTS, ("true", "false") * 3, strict=True)))
def test_faults_of_every_channel_stop_within_200_ms_and_rest_within_v_over_a(world, segments, fault):
    """After the timeout, where nothing new comes; all faults in all phases: `excitation/execution/test_supervision.py`."""
    cell = ready(world, segments=segments)
    inject, words = FAULTS[fault]
    cell.running()
    began, before = cell.follower.time, len(cell.follower.received)
    inject(cell)
    cell.until(Status.FAULT)
    assert words in cell.reason
    world.within(1.0, cell.follower.at_rest)
    first = next(
        k
        for k, (_, message) in enumerate(cell.follower.received)
        if k >= before and not message.points[0].accelerations
    )
    known = TIMEOUT_S if fault in ("silence", "frozen stamps") else 0.0
    assert cell.follower.received[first][0] - began <= known + 0.2
    # one point of the trajectory, and what the commands have changed while they were on their way
    assert cell.follower.ends[first] <= cell.follower.speeds[first].max() / ACCELERATION + 0.03
    count = len(cell.follower.received)
    cell.follower.speak, cell.follower.disturb = True, lambda message: message
    world.wait(0.3)
    assert (cell.state, len(cell.follower.received)) == (Status.FAULT, count)  # nothing moves automatically
    answer = cell.start()
    assert answer.success, answer.message


def test_the_loss_of_the_controller_is_reported_and_without_one_nothing_starts(world):
    cell = ready(world).running()
    cell.follower.leave()  # its joint states go on
    cell.within(0.3, Status.FAULT)
    assert cell.reason.startswith("no controller: no subscriber of /joint_trajectory_controller")
    world.until(lambda: cell.follower.at_rest())
    refused = cell.start()
    assert not refused.success and "no controller" in refused.message
    cell.follower.come()
    world.until(lambda: cell.call("start").success)


def test_a_second_commander_is_refused(world):
    cell = ready(world)
    other = world.probe.create_publisher(JointTrajectory, "joint_trajectory_controller/joint_trajectory", RELIABLE)
    cell.until(Status.WAITING)
    assert "another node publishes to /joint_trajectory_controller/joint_trajectory" in cell.reason
    assert not cell.call("start").success
    world.probe.destroy_publisher(other)
    cell.until(Status.READY)


def test_without_efforts_it_does_not_move_and_says_so_before(world):
    def without(message):
        message.effort = [math.nan if name in ("joint2", "joint5") else 0.0 for name in message.name]
        return message

    cell = ready(world)
    cell.follower.disturb = without
    cell.until(Status.WAITING)
    assert cell.reason.startswith("joint states carry no effort for joint2, joint5, which an identification needs")
    answer = cell.call("start")
    assert not answer.success and "set require_effort to false" in answer.message
    assert cell.follower.received == []
    cell.follower.disturb = lambda message: message
    cell.until(Status.READY).running()
    cell.follower.disturb = without  # one that is lost on the way does not stop the robot
    cell.until(Status.DONE)


def test_a_motion_alone_needs_no_efforts(world):
    def without(message):
        message.effort = []
        return message

    cell = ready(world, require_effort="false")
    cell.follower.disturb = without
    cell.running().until(Status.DONE)


def test_the_status_names_its_node_and_what_the_motion_was_good_for(world):
    cell = ready(world, return_to_start="true").running()
    assert (cell.statuses[-1].node, cell.statuses[-1].dry_run, cell.statuses[-1].complete) == (
        "/excitation_publisher",
        False,
        False,
    )
    world.until(lambda: cell.reason == "returning to the initial configuration")
    assert cell.statuses[-1].complete
    disturbed(not_a_number)(cell)
    cell.until(Status.FAULT)
    assert cell.statuses[-1].complete, "the fault came on the way back"
    cell.follower.disturb = lambda message: message
    world.until(lambda: cell.call("start").success, what="another start")
    world.until(lambda: not cell.statuses[-1].complete)


# --- time --------------------------------------------------------------------------------------------------------


class SimulatedClock(Node):
    """`/clock` at twice the speed of the wall, until it is halted."""

    def __init__(self, **options):
        super().__init__("clock", **options)
        self.topic, self.message, self.time = self.create_publisher(Clock, "/clock", 10), Clock(), 10.0
        self.halted = False
        self.create_timer(0.005, self.tick)

    def tick(self):
        if not self.halted:
            self.time += 0.01
            self.message.clock.sec, self.message.clock.nanosec = divmod(round(self.time * 1e9), 1_000_000_000)
            self.topic.publish(self.message)


@SEGMENTS
def test_simulated_time_is_followed_and_its_halt_is_silence(world, segments):
    cell = Cell(world, follower=False, segments=segments, use_sim_time="true")
    cell.follower = world.add(lambda **o: Follower(NAMES, START, **o), "-p", "use_sim_time:=true")
    world.until(lambda: "/clock has no publisher" in cell.reason or "no joint states" in cell.reason)
    assert not cell.call("start").success
    clock = world.add(SimulatedClock)
    cell.running(progress=0.5).until(Status.DONE)
    assert cell.statuses[-1].header.stamp.sec < 100
    assert cell.node.ros_ns() == cell.node.get_clock().now().nanoseconds < 100e9
    begins = {one.state: seconds(one.header.stamp) for one in reversed(cell.statuses)}
    took = begins[Status.DONE] - begins[Status.APPROACHING]
    assert 2.4 < took < 3.5  # 0.5 s of approach and 2 s of motion, and not twice as long
    cell.running(progress=0.5)
    clock.halted = True
    cell.within(TIMEOUT_S + 0.5, Status.FAULT)
    clock.halted = False
    world.until(cell.follower.at_rest)


class TwoClocks(Node):
    """The robot's `/robot/clock`, at the speed of the wall, and `/clock`, which is `ahead` of it."""

    def __init__(self, **options):
        super().__init__("clock", **options)
        self.topics = [self.create_publisher(Clock, name, 10) for name in ("/robot/clock", "/clock")]
        self.ahead, self.begun = 0.0, time.monotonic() - 100.0
        self.create_timer(0.005, self.tick)

    def tick(self):
        message = Clock()
        for topic, ahead in zip(self.topics, (0.0, self.ahead), strict=True):
            nanoseconds = round((time.monotonic() - self.begun + ahead) * 1e9)
            message.clock.sec, message.clock.nanosec = divmod(nanoseconds, 1_000_000_000)
            topic.publish(message)


@pytest.mark.parametrize(("ahead", "segments"), [(10.0, "true"), (2e9, "false"), (-10.0, "true")])
def test_a_clock_that_jumps_leaves_a_robot_at_rest_within_the_time_of_braking(world, ahead, segments):
    """Measured on its joint states, from the jump on."""
    clock, times = world.add(TwoClocks), ("-p", "use_sim_time:=true")
    cell = Cell(world, follower=False, segments=segments, use_sim_time="true", periods=20)
    cell.follower = world.add(lambda **o: Follower(NAMES, START, **o), *times, "-r", "/clock:=/robot/clock")
    cell.running(progress=0.5)
    begun, clock.ahead = len(cell.follower.history), ahead
    cell.until(Status.FAULT)
    fault = len(cell.follower.history)
    world.wait(2.0)
    moving = [k for k, (_, _, dq) in enumerate(cell.follower.history) if dq.any()]
    q = np.array([q for _, q, _ in cell.follower.history])
    assert (moving[-1] - fault) * PERIOD_S <= VELOCITY.max() / ACCELERATION + 0.2
    # without pieces, the fault is the tracking error: the clock sees it at the next joint states
    assert (moving[-1] - begun) * PERIOD_S <= VELOCITY.max() / ACCELERATION + 0.5
    waited = np.maximum(np.diff([t for t, _, _ in cell.follower.history[begun:]]), PERIOD_S)
    assert np.all(np.abs(np.diff(q[begun:], axis=0)).max(axis=1) <= 3.0 * VELOCITY.max() * waited), "no jump"
    assert all(
        message.header.stamp.sec == 0 for _, message in cell.follower.received if not message.points[0].accelerations
    )
    answer = cell.call("stop")
    assert answer.success and cell.state == Status.FAULT, answer.message


def test_a_stop_succeeds_only_when_joint_states_show_rest(world, monkeypatch):
    """The controller hears nothing, and the robot goes on along its whole motion; then it hears the next braking."""
    monkeypatch.setattr(excitation_session, "RELEASE_TIME_S", 1.0)
    cell = ready(world, segments="false", periods=20)
    assert cell.call("stop").success, "a robot at rest"
    cell.running().follower.deaf = True
    answer = cell.call("stop")
    assert not answer.success
    assert re.match(r"joint states do not show the robot at rest: joint joint\d moves at -?\d", answer.message)
    assert not cell.follower.at_rest()
    cell.follower.deaf = False
    world.within(3.0, cell.follower.at_rest, "braking that is sent again")
    assert cell.call("stop").success
    stamp = cell.follower.received[-1][1].header.stamp
    assert (stamp.sec, stamp.nanosec) == (0, 0)
    cell.follower.speak = False
    world.until(lambda: "no joint states for" in cell.reason, what="silence")
    answer = cell.call("stop")
    assert not answer.success and "no joint states for" in answer.message


def test_what_the_robot_stamps_by_another_clock_is_refused(world):
    """Only for commands that carry times: a whole motion begins when it arrives."""
    cell = ready(world)

    def shift(message):
        message.header.stamp.sec -= 8
        return message

    cell.follower.disturb = shift
    cell.until(Status.WAITING)
    assert re.match(r"the stamps of the joint states are 8(\.0\d)? s behind this node's clock: synchron", cell.reason)
    assert not cell.call("start").success
    world.remove(cell.node)
    Cell(world, follower=False, segments="false").until(Status.READY)


def test_a_node_that_was_halted_commands_no_jump(world):
    """Longer than the pieces reach: the robot brakes, and what comes after that is where it stands."""
    follower = world.add(lambda **o: Follower(NAMES, START, **o))
    statuses = world.heard(Status, "excitation_status", LATCHED)
    arguments = ros_arguments(**QUICK | {"urdf": ARM, "periods": 20})
    process = subprocess.Popen([sys.executable, "-c", MAIN, "--ros-args", *arguments])
    try:
        world.until(lambda: statuses and statuses[-1].state == Status.READY)
        world.until(lambda: world.call(Trigger, "excitation_publisher/start").success)
        world.until(lambda: statuses[-1].state == Status.RUNNING and statuses[-1].elapsed > 0.5)
        process.send_signal(signal.SIGSTOP)
        world.until(follower.at_rest)
        world.wait(0.3)
        stood = follower.q
        process.send_signal(signal.SIGCONT)
        world.until(lambda: statuses[-1].state in (Status.FAULT, Status.DONE))
        assert statuses[-1].state == Status.FAULT, statuses[-10:]
        world.wait(0.3)
    finally:
        process.kill()
        process.wait()
    assert "held up: the next piece of the motion was due" in statuses[-1].reason
    assert np.allclose(follower.q, stood, atol=1e-9)
    jumps = np.abs(np.diff([q for _, q, _ in follower.history], axis=0))
    waited = np.diff([t for t, _, _ in follower.history])
    assert np.all(jumps.max(axis=1) <= VELOCITY.max() * np.maximum(waited, 0.005) * 1.5 + 1e-3)


def test_a_node_that_is_held_up_within_a_tick_commands_no_jump(world):
    """Between its look at the time and the next piece: the robot has braked on its own meanwhile."""
    cell = ready(world, use_sim_time="false", periods=20).running()
    requests, interface = cell.node._requests, cell.node._commands._interface
    attend, send, after = requests.attend, interface.send, []

    def held_up(*arguments):
        requests.attend = attend
        time.sleep(HORIZON_S + 0.5)
        # not as they arrive: a piece that was sent before may still be on its way
        interface.send = lambda message: after.append(message) or send(message)
        attend(*arguments)

    requests.attend = held_up
    world.until(lambda: cell.state in (Status.FAULT, Status.DONE))
    assert cell.state == Status.FAULT and "held up: the next piece of the motion was due" in cell.reason
    world.until(cell.follower.at_rest)
    assert not any(len(message.points[0].accelerations) for message in after), "braking, and no piece of the motion"


def test_a_robot_that_has_left_before_the_node_ends_is_not_a_fault_and_its_rest_is_not_awaited(world):
    """As Ctrl-C on a launch file ends a simulated robot first."""
    cell = ready(world, periods=20, latency=2.0 * TIMEOUT_S).running()
    cell.node.ending = True  # by the signal, which comes before the first call of stop
    world.executor.remove_node(cell.follower)
    world._nodes.remove(cell.follower)
    cell.follower.destroy_node()
    world.wait(3.0 * TIMEOUT_S)
    world.within(1.6 * TIMEOUT_S, cell.node.stop, "the end of the node")
    assert not [one.reason for one in cell.statuses if one.state == Status.FAULT]


# --- messages that make no sense ----------------------------------------------------------------------------------


def test_waiting_is_logged_once_and_published_at_a_steady_rate(world, capfd):
    """For silence and for frozen stamps; the reason holds a figure that grows."""
    cell = ready(world)
    logged = []
    for inject in (silent, disturbed(frozen)):
        cell.statuses.clear()
        capfd.readouterr()  # of the wait before
        inject(cell)
        cell.until(Status.WAITING)
        logged.clear()
        world.until(lambda: logged.append(capfd.readouterr().err) or "waiting: " in "".join(logged))  # after the status
        cell.statuses.clear()
        begin = world.time
        world.wait(3.0)
        assert 10 / 3.0 * (world.time - begin) <= len(cell.statuses) <= 20
        before, after = (re.findall(r"waiting: (\D+)", text) for text in ("".join(logged), capfd.readouterr().err))
        reasons = [before[-1], *after]  # without the figure that grows
        assert len(reasons) == len(set(reasons)), reasons
        cell.follower.speak, cell.follower.disturb = True, lambda message: message
        cell.until(Status.READY)


@pytest.mark.parametrize("moving", [False, True], ids=["at rest", "in motion"])
def test_hostile_joint_states_end_no_node_and_move_nothing_by_themselves(world, moving):
    cell = ready(world, periods=20)
    publisher = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    world.until(lambda: publisher.get_subscription_count() > 0)
    if moving:
        cell.running()
    before = len(cell.follower.received)
    for message in hostile_joint_states():
        publisher.publish(message)
        world.wait(0.03)
        publisher.publish(serialize_message(message)[:40])
    if moving:
        cell.until(Status.FAULT)
        world.within(2.0, cell.follower.at_rest)
    else:
        assert len(cell.follower.received) == before
    assert (cell.node.internal_errors, cell.node.end) == (0, None)
    world.until(lambda: cell.call("start").success)


def test_an_internal_error_brakes_and_ends_with_exit_code_4(world):
    world.faults_expected = True
    cell = ready(world).running()
    cell.node._reports.tick = lambda steady: 1 / 0
    cell.until(Status.FAULT)
    assert "internal error: ZeroDivisionError" in cell.reason
    world.within(1.0, cell.follower.at_rest)
    assert cell.node.end == 4


# --- robots ------------------------------------------------------------------------------------------------------


def test_the_robot_description_may_come_late_broken_and_again(world):
    cell = Cell(world, urdf="", joints="[joint1, joint2, joint3, joint4, joint5, joint6, joint7]")
    world.until(lambda: "waiting for /robot_description" in cell.reason)
    refused = cell.call("start")
    assert not refused.success and "waiting for /robot_description" in refused.message
    topic = world.probe.create_publisher(String, "robot_description", LATCHED)
    for broken, words in (
        ("no URDF", "broken XML"),
        ("<robot", "broken XML"),
        (ARM.read_text().replace("joint7", "wrist"), "joint joint7 is not a moving joint of the robot"),
        (ARM.read_text().replace('velocity="2.0"', 'velocity="0"'), "velocity 0 rad/s of joint1"),
    ):
        topic.publish(String(data=broken))
        world.until(lambda words=words: words in cell.reason, what=words)
        assert cell.state == Status.WAITING
    topic.publish(String(data=ARM.read_text()))
    cell.until(Status.READY).running().until(Status.DONE)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"joints": "[joint1, elbow]"}, ModelError, "joint elbow is not a moving joint of the robot; its joints are"),
        ({"urdf": "/nowhere.urdf"}, ModelError, "/nowhere.urdf: cannot read the robot description"),
        ({"form": "zigzag"}, UsageError, "form must be one of fourier, fourier_blend, bspline"),
        ({"acceleration": "[1.0, 2.0]"}, UsageError, "acceleration has 2 values, expected 1 or one for each of joint1"),
        ({"acceleration": "[-1.0]"}, UsageError, "acceleration must be at least 0.001"),
        (
            {"posture": "[0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0]"},
            MotionError,
            "joint joint2: the requested configuration is at 3",
        ),
        (
            {"period": 0.4},
            UsageError,
            "gives 8 points per period of the fastest wave in the motion, fewer than 10: make it at least",
        ),
        (
            {"periods": 2000, "segments": "false"},
            UsageError,
            r"a trajectory of 2000 s has 200000 points at 100 Hz, more than 36\d{3}: lower",
        ),
        ({"latency": 0.01}, UsageError, "latency must be within 0.02 and 10"),
        ({"recording": "maybe"}, UsageError, "recording must be one of auto, required, ignore"),
        ({"jerk": "[0.0]"}, UsageError, "jerk must be at least 0.001"),
        ({"effort_limit": "[1.0, 2.0]"}, UsageError, "effort_limit has 2 values, expected 1 or one for each of joint1"),
        ({"effort_limit": "[0.0]"}, UsageError, "effort_limit must be at least 0.001"),
        ({"guard_time": -0.1}, UsageError, r"guard_time must be within 0 and 1 \[s\], not -0.1"),
        ({"jerk": "[1.0, 2.0]"}, UsageError, "jerk has 2 values, expected 1 or one for each of joint1"),
        ({"speed_scale": 0.0}, UsageError, "speed_scale must be within 0.001 and 1, not 0.0"),
        ({"amplitude_scale": 1.1}, UsageError, "amplitude_scale must be within 0.001 and 1, not 1.1"),
        ({"form": "polynomial", "degree": 7}, UsageError, "a polynomial of degree 7 is fully determined by its 8"),
        ({"trajectory": "/nowhere.yaml"}, InputError, "/nowhere.yaml: cannot read the trajectory"),
        ({"rate": 5.0}, UsageError, r"rate must be within 20 and 1000 \[Hz\], not 5.0"),
    ],
)
def test_wrong_parameters_are_refused_with_a_reason(world, parameters, error, words):
    with pytest.raises(error, match=words):
        Cell(world, follower=False, **parameters)


# --- collisions, and placeholder limits ------------------------------------------------------------------------


def test_a_file_that_was_not_checked_for_collisions_needs_permission(world, tmp_path, file):
    text = file.read_text()
    unchecked = tmp_path / "unchecked.yaml"
    unchecked.write_text(text.replace("collision_check: shapes", "collision_check: not_checked"))
    with pytest.raises(MotionError, match=r"unchecked.yaml: NOT CHECKED FOR COLLISIONS .*allow_unchecked_collisions"):
        Cell(world, follower=False, trajectory=unchecked)
    Cell(world, follower=False, trajectory=unchecked, allow_unchecked_collisions="true")


def test_a_file_that_was_edited_is_checked_although_it_says_that_it_was(tmp_path, file):
    arm = RobotModel.from_file(ARM)
    stored = read_trajectory(file)
    settings = {"urdf": str(ARM), "acceleration": (ACCELERATION,)}
    make_plan(arm, ExcitationSettings(trajectory=str(file), **settings))
    low = replace(stored.cycle, center=np.array([0.0, 1.5, 0.0, -1.3, 0.0, 0.0, 0.0]))
    write_trajectory(tmp_path / "edited.yaml", replace(stored, cycle=low))
    with pytest.raises(
        MotionError, match=r"edited.yaml .*the motion collides: link\d and ground overlap .*design it again"
    ):
        make_plan(arm, ExcitationSettings(trajectory=str(tmp_path / "edited.yaml"), **settings))


def test_other_surroundings_than_those_of_a_file_are_refused(tmp_path, file):
    arm = RobotModel.from_file(ARM)
    (tmp_path / "same.yaml").write_text("ground: true\nobstacles: []\n")
    (tmp_path / "table.yaml").write_text("obstacles: [{name: table, box: [1, 1, 1], position: [2, 0, 0]}]\n")
    settings = {"urdf": str(ARM), "acceleration": (ACCELERATION,), "trajectory": str(file)}
    make_plan(arm, ExcitationSettings(**settings, design=str(tmp_path / "same.yaml")))
    for name, other in (
        ("ground", {"ground": False}),
        ("ground", {"ground_height": 0.0}),
        ("ground", {"ground_height": 1.0}),
        ("obstacles", {"design": str(tmp_path / "table.yaml")}),
    ):
        with pytest.raises(UsageError, match=f"trajectory.yaml was designed with another {name}"):
            make_plan(arm, ExcitationSettings(**settings, **other))


def test_a_ground_height_of_zero_is_a_height_and_not_automatic():
    """The arm on a pedestal, which reaches 0.5 m below the base: a ground at 0 is given on purpose."""
    pedestal = (
        '<link name="pedestal"><collision><origin xyz="0 0 -0.25"/><geometry><box size="0.1 0.1 0.5"/></geometry>'
        '</collision></link><joint name="foot" type="fixed"><parent link="link0"/><child link="pedestal"/></joint></robot>'
    )
    arm = RobotModel.from_urdf(ARM.read_text().replace("</robot>", pedestal))
    low = {"posture": (0.0, 1.5, 0.0, -1.3, 0.0, 0.0, 0.0), "period": 1.0, "amplitude_share": 0.05}
    make_plan(arm, ExcitationSettings(**low))
    with pytest.raises(MotionError, match="and ground"):
        make_plan(arm, ExcitationSettings(**low, ground_height=0.0))


def test_a_random_motion_that_collides_is_refused_before_anything_moves(world):
    with pytest.raises(MotionError, match=r"fourier: the motion collides: link\d and ground overlap by [\d.]+ m"):
        Cell(world, follower=False, posture="[0.0, 1.5, 0.0, -1.3, 0.0, 0.0, 0.0]")
    arm = RobotModel.from_file(ARM)
    low = {"posture": (0.0, 1.5, 0.0, -1.3, 0.0, 0.0, 0.0), "period": 1.0, "amplitude_share": 0.05}
    with pytest.raises(MotionError, match="and ground"):
        make_plan(arm, ExcitationSettings(**low))
    for way_out in ({"ground": False}, {"ground_height": -2.0}, {"allow_unchecked_collisions": True}):
        assert make_plan(arm, ExcitationSettings(**low, **way_out)).excitation is not None


def test_stand_ins_check_a_robot_without_shapes_and_without_them_it_needs_permission(tmp_path):
    bare = RobotModel.from_urdf(ARM.read_text().replace("collision>", "ignored>").replace("visual>", "hidden>"))
    upright = {"period": 1.0, "amplitude_share": 0.1, "urdf": ""}
    plan = make_plan(bare, ExcitationSettings(**upright))
    assert plan.remark.startswith("collisions are checked with stand-ins for link0, link1")
    (tmp_path / "none.yaml").write_text("stand_ins: none\n")
    without = {**upright, "design": str(tmp_path / "none.yaml")}
    with pytest.raises(MotionError, match=r"NOT CHECKED FOR COLLISIONS: no shapes of link0, link1.*have it checked"):
        make_plan(bare, ExcitationSettings(**without))
    allowed = make_plan(bare, ExcitationSettings(**without, allow_unchecked_collisions=True))
    assert allowed.remark == "nothing is checked for collisions, as allowed"


def test_a_start_whose_approach_would_collide_is_refused_with_the_pair(world):
    """Stretched out above the ground on one side; the way to the other side is through the ground."""
    cell = Cell(world, posture="[0.0, 1.6, 1.5, -1.5, 0.0, 0.0, 0.0]", amplitude_share=0.02, return_to_start="true")
    cell.until(Status.READY)
    cell.follower.q = np.array([0.0, 1.6, -1.5, -1.5, 0.0, 0.0, 0.0])
    world.wait(0.3)
    cell.follower.received.clear()
    began = world.time
    answer = cell.call("start")
    assert world.time - began < 1.0
    assert not answer.success
    assert re.search(r"approach from the present configuration collides: link\d and ground overlap", answer.message)
    assert cell.follower.received == []


def cell_with_held_joint(world, **parameters):
    """A cell that moves joint 4 alone, its robot, and the position of joint 2."""
    names, start = ["joint4"], np.full(1, -1.3)
    world.keep_time()
    follower = world.add(lambda **options: Follower(names, start, **options))
    bent = {"joint2": 0.0}

    def with_held(message):
        message.name = [*message.name, *bent]
        message.position = [*message.position, *bent.values()]
        message.velocity = [*message.velocity, *[0.0] * len(bent)]
        message.effort = [*message.effort, *[0.0] * len(bent)]
        return message

    follower.disturb = with_held
    cell = Cell(world, follower=False, joints="[joint4]", posture="[-1.3]", **parameters)
    return cell.until(Status.READY), follower, bent


def test_held_joints_are_checked_where_they_are_and_not_at_zero(world):
    """Free with the arm upright, and in the ground with a joint that is not commanded bent by far."""
    cell, follower, bent = cell_with_held_joint(world)
    bent["joint2"] = 1.5
    world.wait(0.3)
    answer = cell.call("start")
    assert not answer.success
    assert re.search(r"\(joint2 is at 1.5, not at 0\): .*collides: .*ground.*move these joints", answer.message)
    assert follower.received == []
    bent["joint2"] = 0.3
    world.wait(0.3)
    assert cell.call("start").success


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('velocity="2.6"', 'velocity="10"', "velocity 10 rad/s of joint5"),
        ('velocity="2.6"', 'velocity="0"', "velocity 0 rad/s of joint5"),
        ('effort="40"', 'effort="0"', "effort 0 N m of joint5"),
        ('effort="40"', 'effort="1000"', "effort 1000 N m of joint5"),
    ],
)
def test_placeholders_are_no_limits(tmp_path, old, new, words):
    model = RobotModel.from_urdf(ARM.read_text().replace(old, new))
    assert new in model.urdf
    with pytest.raises(ModelError, match=f"placeholders instead of limits: {words}; give the parameter joint_limits"):
        make_plan(model, ExcitationSettings())
    kind, value = ("velocity", 2.0) if "velocity" in new else ("effort", 30.0)
    file = tmp_path / "joint_limits.yaml"
    file.write_text(f"joint_limits: {{joint5: {{has_{kind}_limits: true, max_{kind}: {value}}}}}\n")
    plan = make_plan(model, ExcitationSettings(joint_limits=str(file), amplitude_share=0.2))
    found = plan.limits.velocity[4] if kind == "velocity" else plan.thresholds.effort[4] / 0.9
    assert found == pytest.approx(value)
    if kind == "effort":
        assert np.isinf(
            make_plan(model, ExcitationSettings(effort_scale=0.0, amplitude_share=0.2)).thresholds.effort
        ).all()


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 7, 40])
def test_the_longest_motion_in_one_message_is_read_by_the_nodes_of_this_package(count):
    names = [f"joint{number}" * (1 + number % 3) for number in range(count)]
    most = find_most_points(names)
    zeros = np.zeros((most, count))
    points = TrajectoryPoints(0.01 * np.arange(most), zeros, zeros.copy(), zeros.copy())
    data = serialize_message(TrajectoryMessage(names).fill(points))
    assert 0.7 * find_most_bytes(JointTrajectory) < len(data) <= find_most_bytes(JointTrajectory)


def test_values_of_joints_go_by_the_order_in_which_the_joints_are_given():
    settings = ExcitationSettings(joints=("joint3", "joint1"), acceleration=(3.0, 1.0), effort_limit=(30.0, 10.0))
    plan = make_plan(RobotModel.from_file(ARM, settings.joints), settings)
    assert plan.limits.joint_names == ("joint1", "joint3")
    assert list(plan.limits.acceleration) == [1.0, 3.0]
    assert list(plan.thresholds.effort) == [10.0, 30.0]


def test_thresholds_of_velocity_and_effort():
    model = RobotModel.from_file(ARM)
    thresholds = make_plan(model, ExcitationSettings(velocity_scale=0.5, velocity_tolerance=0.2)).thresholds
    assert np.allclose(thresholds.velocity, 0.6 * VELOCITY)
    assert np.allclose(thresholds.effort, [108, 108, 72, 72, 36, 18, 18])
    assert np.all(np.isinf(make_plan(model, ExcitationSettings(effort_scale=0.0)).thresholds.effort))
    assert np.all(make_plan(model, ExcitationSettings(effort_limit=(7.0,))).thresholds.effort == 7.0)
    slow = make_plan(model, ExcitationSettings(velocity_scale=0.001)).thresholds.velocity
    assert np.all(slow == REST_SPEED)  # a robot that stands may look as fast as that


def test_two_robots_in_two_namespaces_do_not_meet(world):
    left, right = (Cell(world, namespace=name) for name in ("left", "right"))
    right.until(Status.READY)
    left.running().until(Status.DONE)
    assert right.follower.received == []
    assert {status.state for status in right.statuses} <= {Status.WAITING, Status.READY}
    right.running()
    right.follower.speak = False
    right.until(Status.FAULT)
    assert left.state == Status.DONE


# --- Ctrl-C ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["no robot", "ready", "approaching", "running", "paused", "fault"])
def test_an_interrupt_in_every_phase_leaves_the_robot_at_rest(world, phase):
    parameters = QUICK | {"period": 4.0, "posture": "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]", "amplitude_share": 0.8}
    parameters["allow_unchecked_collisions"] = "true"
    if phase != "no robot":
        parameters["urdf"] = str(ARM)
    arguments = ros_arguments(**parameters)
    follower = world.add(lambda **o: Follower(NAMES, START, **o))
    statuses = world.heard(Status, "excitation_status", LATCHED)

    def state():
        return statuses[-1].state if statuses else None

    def until(condition):
        try:
            world.until(condition)
        except DeadlineError as error:
            raise AssertionError(f"{error}: {statuses[-3:]}") from None

    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "--ros-args", *arguments], env=dict(os.environ), stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: state() == (Status.WAITING if phase == "no robot" else Status.READY))
        if phase not in ("no robot", "ready"):
            assert world.call(Trigger, "excitation_publisher/start").success
            until(lambda: np.abs(follower.dq).max() > 0.3)
        if phase not in ("no robot", "ready", "approaching"):
            until(lambda: state() == Status.RUNNING and statuses[-1].elapsed > 0.5)
        if phase == "paused":
            assert world.call(SetBool, "excitation_publisher/pause", SetBool.Request(data=True)).success
            until(lambda: state() == Status.PAUSED)
        if phase == "fault":
            follower.speak = False
            until(lambda: state() == Status.FAULT)
        process.send_signal(signal.SIGINT)
        until(lambda: process.poll() is not None)
        assert process.returncode == 0, process.stderr.read()
        assert follower.at_rest()
        if phase in ("approaching", "running"):
            assert "stopped: the node is ending" in [status.reason for status in statuses]
    finally:
        process.kill()
        process.communicate()


def test_joint_states_are_handled_while_a_motion_is_planned_and_hundreds_of_requests_arrive(world):
    cell = ready(world, periods=200)
    supervisor, planned = cell.node._session.supervisor, threading.Event()
    supervisor.obstruction = lambda motion: "" if planned.wait(HANG_S) else "the test hangs"
    client = world.probe.create_client(Trigger, "excitation_publisher/start")
    world.until(client.service_is_ready)
    first = client.call_async(Trigger.Request())
    world.until(lambda: cell.node._session.planning, what="a plan")
    heard = supervisor.feedback.at.steady
    assert {cell.call("start").message for _ in range(200)} == {"another motion is being planned"}
    world.until(lambda: supervisor.feedback.at.steady > heard + 0.1, what="joint states")
    assert not first.done() and cell.follower.received == []
    planned.set()
    world.until(first.done)
    assert first.result().success
    cell.until(Status.RUNNING)
    assert {cell.call("start").message for _ in range(200)} == {"the robot is still moving"}
    assert cell.state == Status.RUNNING and cell.call("stop").success
    assert Status.FAULT not in [one.state for one in cell.statuses]
