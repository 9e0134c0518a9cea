# SPDX-License-Identifier: Apache-2.0
"""The simulator over real DDS: trajectories, efforts, time, bad commands, namespaces, signals."""

import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import Log
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from support.processes import HANG_S, child
from support.robots import PLANAR3R
from support.ros_world import ros_arguments
from support.simulator_scene import DEEP, Commander, seconds, trajectory
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.kernels.servo import advance_driven, evaluate_polynomials, hold_setpoint
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, SENSOR
from robot_dyn_id.nodes.simulator import Simulator
from robot_dyn_id.nodes.simulator_settings import SimulatorSettings
from robot_dyn_id.simulation import simulated_driver
from robot_dyn_id.simulation.plant import make_nominal_dynamics

ARM7 = Path(__file__).resolve().parents[2] / "urdf" / "arm7.urdf"


def test_a_trajectory_is_followed_to_its_end(world):
    arm = Commander(world, viscous="[0.5]", coulomb="[0.3]")
    target = np.array([0.4, -0.6, 0.8])
    arm.trajectories.publish(trajectory(reversed(arm.names), target[::-1]))
    arm.world.until(lambda: np.abs(arm.position - target).max() < 1e-3, what="target")
    arm.passes(0.3)
    assert np.abs(arm.position - target).max() < 1e-3
    stamps = np.array([seconds(message.header.stamp) for message in arm.states])
    steps = np.diff(stamps)
    assert steps.min() > 1e-3 - 1e-6, "time was squeezed"
    assert np.mean(steps < 1e-3 + 1e-6) > 0.99, "stamps are not those of 1 kHz"  # a busy computer leaves time out
    assert max(np.abs(np.array(message.velocity)).max() for message in arm.states) > 0.5


def test_joints_that_a_trajectory_leaves_out_hold(world):
    arm = Commander(world, initial_position="[0.1, 0.2, 0.3]")
    arm.trajectories.publish(trajectory(arm.names[2:0:-1], [-0.5, 0.6]))
    arm.world.until(lambda: np.abs(arm.position - [0.1, 0.6, -0.5]).max() < 1e-3, what="target")
    # the exact model of the controller leaves 1e-5 rad of coupling
    assert max(abs(message.position[0] - 0.1) for message in arm.states) < 1e-3


def test_a_trajectory_of_a_part_of_the_joints_is_refused_where_it_is_not_allowed(world):
    arm = Commander(world, allow_partial_joints_goal="false")
    arm.trajectories.publish(trajectory(arm.names[:2], [0.5, 0.5]))
    arm.world.until(lambda: arm.logged(f"joint {arm.names[2]} is missing"), what="refusal")


def test_without_points_the_arm_stops(world):
    arm = Commander(world)
    arm.trajectories.publish(trajectory(arm.names, [1.0, 1.0, 1.0], 2.0))
    arm.world.until(lambda: arm.position[0] > 0.2, what="motion")
    arm.trajectories.publish(JointTrajectory())
    arm.world.until(lambda: np.abs(np.array(arm.states[-1].velocity)).max() < 1e-3, what="rest")
    arm.passes(0.3)
    assert arm.position[0] < 0.9
    assert np.abs(np.array(arm.states[-1].velocity)).max() < 1e-3


def test_wrong_trajectories_are_refused_with_a_log_line_and_the_arm_holds(world):
    arm = Commander(world, ARM7)
    start, n = arm.position, 7
    far = np.where(np.arange(n) == 1, 50.0, 0.5)
    for message, words in (
        (trajectory(["x", *arm.names[1:]], np.full(n, 0.5)), "joint x is not one of"),
        (trajectory(arm.names, np.full(2, 0.5)), f"point 0 has 2 positions, expected {n}"),
        (trajectory(arm.names, far * np.nan), f"positions of joint {arm.names[0]} is not finite"),
        (trajectory(arm.names, np.full(n, 0.5), velocities=[0.0]), "point 0 has 1 velocities"),
        (trajectory(arm.names, far), "is beyond its limits"),
        (trajectory(arm.names, np.full(n, 0.5), 0.0), "away from where joint number"),
    ):
        arm.trajectories.publish(message)
        world.until(lambda words=words: arm.logged(words), what=words)
    arm.efforts.publish(Float64MultiArray(data=[1.0] * n))
    world.until(lambda: arm.logged("effort command: the parameter control is position"))
    arm.passes(0.2)
    assert np.abs(arm.position - start).max() < 1e-6
    values = lambda: {item.key: item.value for item in arm.diagnostics[-1].status[0].values}  # noqa: E731
    world.until(lambda: arm.diagnostics and values()["refused inputs"] == "7", what="count of refusals")


def test_efforts_are_followed_and_wrong_ones_refused(world):
    arm = Commander(world, control="effort", gravity="[0.0, 0.0, 0.0]")
    for data, words in (([1.0], "has 1 values, expected 3"), ([1.0, np.nan, 0.0], "is nan, not a finite number")):
        arm.efforts.publish(Float64MultiArray(data=data))
        world.until(lambda words=words: arm.logged(words), what=words)
    arm.trajectories.publish(trajectory(arm.names, [0.5, 0.5, 0.5]))
    world.until(lambda: arm.logged("joint trajectory: the parameter control is effort"))
    assert not np.abs(arm.position).any()
    arm.efforts.publish(Float64MultiArray(data=[0.01, 0.0, 0.0]))
    world.until(lambda: any(message.effort[0] == 0.01 for message in arm.states), what="the effort")
    world.until(lambda: arm.states[-1].effort[0] == 0.0, what="zero effort after the timeout")
    held = sum(message.effort[0] == 0.01 for message in arm.states)
    assert 80 <= held <= 120, "0.1 s"


def test_an_applied_wrench_loads_a_link_for_its_duration_and_others_are_refused(world):
    """An arm that holds its position carries a force at a link by the torques of Pinocchio's Jacobian."""
    arm = Commander(world, initial_position="[0.3, 0.9, -0.7]", gravity="[0.0, 0.0, 0.0]", wrench_duration="1.0")
    publisher = world.probe.create_publisher(WrenchStamped, "applied_wrench", RELIABLE)
    world.until(publisher.get_subscription_count, what="applied_wrench")
    message = WrenchStamped()
    message.wrench.force.y, message.wrench.torque.z = 4.0, 0.5
    for frame, words in (("tool9", "no link is called tool9"), ("", "no link is called empty")):
        message.header.frame_id = frame
        publisher.publish(message)
        world.until(lambda words=words: arm.logged(words), what=words)
    message.header.frame_id, message.wrench.force.y = "link3", math.nan
    publisher.publish(message)
    world.until(lambda: arm.logged("is not finite"), what="refusal of NaN")
    assert not np.any(arm.states[-1].effort)
    message.wrench.force.y = 4.0
    publisher.publish(message)
    efforts = lambda: np.abs([state.effort for state in arm.states]).max(axis=1)  # noqa: E731
    world.until(lambda: efforts().max() > 0.1, what="the force")
    arm.passes(1.5)
    pushed = np.flatnonzero(efforts() > 0.1)
    model = pinocchio.buildModelFromUrdf(str(PLANAR3R))
    state = arm.states[np.searchsorted([seconds(s.header.stamp) for s in arm.states], stamp(arm, pushed[0]) + 0.9)]
    frame, local = model.getFrameId("link3"), pinocchio.ReferenceFrame.LOCAL
    turned = np.array([(math.cos(q), math.sin(q)) for q in state.position]).ravel()  # joints without limits
    jacobian = pinocchio.computeFrameJacobian(model, model.createData(), turned, frame, local)
    expected = -jacobian.T @ np.array([0.0, 4.0, 0.0, 0.0, 0.0, 0.5])
    np.testing.assert_allclose(state.effort, expected, atol=0.01 * np.abs(expected).max())
    assert 0.9 < stamp(arm, pushed[-1]) - stamp(arm, pushed[0]) < 1.4, "1 s, and the way back"
    assert np.abs(arm.states[-1].effort).max() < 0.01 * np.abs(expected).max()


def test_the_wrench_under_the_base_comes_with_the_joint_states(world):
    """At rest it is the weight of Pinocchio's arm, in the frame of the root link."""
    wrenches = world.heard(WrenchStamped, "base_wrench", DEEP)
    arm = Commander(world, initial_position="[0.3, 0.9, -0.7]", base_wrench="true", publish_rate="100.0")
    arm.passes(0.3)
    world.until(lambda: len(wrenches) > 20, what="base_wrench")
    stamps = [seconds(message.header.stamp) for message in arm.states]
    assert {seconds(message.header.stamp) for message in wrenches[:20]} <= set(stamps)
    model = pinocchio.buildModelFromUrdf(str(PLANAR3R))
    data = model.createData()
    turned = np.array([(math.cos(q), math.sin(q)) for q in arm.position]).ravel()
    center, force = pinocchio.centerOfMass(model, data, turned), data.mass[0] * model.gravity.linear
    message = wrenches[-1]
    assert message.header.frame_id == "base"
    found = [getattr(getattr(message.wrench, part), axis) for part in ("force", "torque") for axis in "xyz"]
    np.testing.assert_allclose(found, [*force, *np.cross(center, force)], atol=1e-3 * np.linalg.norm(force))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": "parameters"}, "base_wrench needs model to be urdf"),
        ({"base_wrench_noise": (1.0,)}, "base_wrench_noise has 1 values, expected 2"),
    ],
)
def test_a_sensor_under_the_base_that_cannot_be_simulated_is_refused(given, words):
    """Identified parameters determine the torques of the joints, not the wrench under the base."""
    settings = SimulatorSettings(base_wrench=True, **given)
    model = RobotModel.from_file(PLANAR3R)
    robot = settings.robot(make_nominal_dynamics(model, np.zeros(3), np.zeros(3), 0.01))
    with pytest.raises(UsageError, match=words):
        settings.base_sensor(robot)


def stamp(arm, number):
    """Time of a joint state [s]."""
    return seconds(arm.states[number].header.stamp)


def test_time_waits_for_effort_commands_but_not_forever(world, monkeypatch):
    monkeypatch.setattr(simulated_driver, "PAUSE_TIMEOUT_S", HANG_S)
    arm = Commander(world, control="effort", clock="true", effort_wait="0.01")
    stamp = lambda: seconds(arm.states[-1].header.stamp)  # noqa: E731
    world.until(lambda: stamp() > 0.05, what="time goes on before the first command")
    for _ in range(3):
        before = stamp()
        arm.efforts.publish(Float64MultiArray(data=[0.0, 0.0, 0.0]))
        world.until(lambda before=before: stamp() > before, what="time goes on with a command")
        world.wait(0.3)
        stands = stamp()
        world.wait(0.3)
        assert stamp() == stands, "a command is good for 10 ms"
    monkeypatch.undo()
    world.until(
        lambda: arm.logged("no effort command: zero effort"), what="a controller that is gone is not waited for"
    )


def test_a_robot_that_breaks_down_ends_the_node_with_one_line(world, capfd):
    arm = Commander(world, control="effort", limit_effort="false", latency="10.0")
    arm.efforts.publish(Float64MultiArray(data=[1e300, 0.0, 0.0]))
    world.until(lambda: arm.logged("effort command of joint joint1 is 1e+300, above 1e+09"), what="refusal")
    assert arm.node.end is None
    arm.efforts.publish(Float64MultiArray(data=[9e8, 0.0, 0.0]))
    world.until(lambda: arm.node.end is not None, what="the end of the node")
    assert isinstance(arm.node.end, InputError)
    assert "the simulation broke down" in str(arm.node.end)
    assert "Traceback" not in capfd.readouterr().err


def test_gravity_compensation_from_outside_floats_the_arm(world):
    """The loop closes over DDS: joint state, effort of the model, effort command."""
    arm = Commander(
        world,
        ARM7,
        control="effort",
        viscous="[20.0]",
        coulomb="[5.0]",
        initial_position="[0.0, 0.5, 0.0, -1.0, 0.0, 0.5, 0.0]",
    )
    model = RobotModel.from_file(ARM7)
    dynamics = make_nominal_dynamics(model, np.zeros(7), np.zeros(7), 0.01)
    begin = arm.position
    arm.passes(0.1)
    assert np.abs(arm.position - begin).max() > 2e-3, "without efforts it falls"

    def answer(message):
        arm.efforts.publish(Float64MultiArray(data=dynamics.gravity(np.array(message.position)).tolist()))

    world.probe.create_subscription(JointState, "joint_states", answer, SENSOR)
    world.until(lambda: np.abs(arm.states[-1].effort).max() > 0.1, what="effort")

    def floats():
        begin = arm.position
        arm.passes(0.5)
        return np.abs(arm.position - begin).max() < 1e-3

    # a busy computer may hold the loop up, and the arm moves on with the effort that it had
    assert any(floats() for _ in range(6))
    assert np.abs(arm.states[-1].effort).max() > 1.0, "it does not just hang"


def test_time_runs_faster_than_the_clock_of_the_computer(world):
    clock = world.heard(Clock, "/clock", DEEP)
    arm = Commander(world, clock="true", real_time_factor="0.0", publish_rate="100.0")
    start, begin = world.time, seconds(arm.states[-1].header.stamp)
    arm.passes(10.0)
    passed = seconds(arm.states[-1].header.stamp) - begin
    assert passed / (world.time - start) > 1.5
    assert seconds(arm.states[0].header.stamp) < 5.0, "its time begins at 0"
    assert np.allclose(np.diff([seconds(message.header.stamp) for message in arm.states]), 0.01, atol=1e-9)
    assert seconds(clock[-1].clock) > 10.0


def test_the_description_is_latched_and_the_same_text(world):
    Commander(world)
    descriptions = world.heard(String, "robot_description", LATCHED)
    world.until(lambda: descriptions, what="robot_description")
    assert descriptions[0].data == PLANAR3R.read_text()


def test_a_description_that_comes_late_is_waited_for(world):
    states, log = world.heard(JointState, "joint_states", DEEP), world.heard(Log, "/rosout", DEEP)
    world.add(Simulator)
    world.until(lambda: any("waiting for robot_description" in message.msg for message in log))
    publisher = world.probe.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=str(PLANAR3R)))  # text is never the name of a file
    world.until(lambda: any("refused: robot_description: robot description: broken XML" in m.msg for m in log))
    assert not states
    publisher.publish(String(data=PLANAR3R.read_text()))
    world.until(lambda: states, what="joint states")


def test_a_joint_beyond_its_stop_is_reported(world):
    arm = Commander(world, ARM7, control="effort", initial_position="[0.0, 1.8, 0.0, 0.0, 0.0, 0.0, 0.0]")
    world.until(lambda: arm.logged("beyond the position limits: joint2"), what="warning")


def test_noise_and_resolution_are_in_the_messages(world):
    arm = Commander(world, effort_noise="[0.5]", velocity_noise="0.01", resolution="0.001")
    arm.passes(1.0)
    velocity, effort = (np.array([getattr(m, name) for m in arm.states]) for name in ("velocity", "effort"))
    assert np.allclose(velocity.std(axis=0), 0.01, rtol=0.15)
    assert np.allclose(effort.std(axis=0), 0.5, rtol=0.15)
    steps = np.array([message.position for message in arm.states]) / 1e-3
    assert np.allclose(steps, np.round(steps), atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"urdf": "/none.urdf"}, InputError, "/none.urdf: cannot read"),
        (
            {"urdf": PLANAR3R, "viscous": "[1.0, 2.0]"},
            UsageError,
            "viscous has 2 values, expected 1 or one for each",
        ),
        ({"urdf": PLANAR3R, "joints": "[elbo]"}, InputError, "joint elbo is not a moving joint"),
        ({"urdf": PLANAR3R, "publish_rate": "300.0"}, UsageError, "publish_rate 300 must be rate 1000 over an integer"),
        ({"urdf": PLANAR3R, "real_time_factor": "2.0"}, UsageError, "real_time_factor needs clock"),
        ({"urdf": PLANAR3R, "control": "effort", "effort_wait": "0.01"}, UsageError, "effort_wait needs clock"),
        ({"urdf": PLANAR3R, "clock": "true", "effort_wait": "0.01"}, UsageError, "effort_wait needs clock"),
        ({"urdf": PLANAR3R, "derivative_gains": "[1.0]"}, UsageError, "need proportional_gains"),
        (
            {"urdf": PLANAR3R, "proportional_gains": "[1.0]", "control": "effort"},
            UsageError,
            "need control to be position",
        ),
        ({"urdf": PLANAR3R, "path_tolerance": "[0.1, 0.2]"}, UsageError, "path_tolerance has 2 values"),
        ({"urdf": PLANAR3R, "control": "velocity"}, UsageError, "control must be one of position, effort"),
    ],
)
def test_a_wrong_start_is_refused(world, parameters, error, words):
    with pytest.raises(error, match=words):
        world.add(Simulator, *ros_arguments(**parameters))


@pytest.mark.skipif(not COMPILED, reason="numba is not installed: nothing is compiled")
def test_nothing_is_compiled_after_the_start(world):
    arm = Commander(world, ARM7, viscous="[1.0]", coulomb="[1.0]")
    kernels = evaluate_polynomials, hold_setpoint, advance_driven
    known = [len(kernel.signatures) for kernel in kernels]
    arm.trajectories.publish(trajectory(arm.names, arm.position + 0.1, 0.2))
    arm.passes(0.4)
    assert [len(kernel.signatures) for kernel in kernels] == known == [1, 1, 1]


@pytest.mark.real_time
def test_control_c_ends_it_while_xacro_expands_its_file(tmp_path):
    endless = tmp_path / "endless.xacro"
    head = '<robot name="a" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    endless.write_text(head + '<xacro:property name="b" value="${10 ** 10 ** 10}"/>${b}</robot>')
    command = [
        sys.executable,
        "-c",
        "import sys; from robot_dyn_id.nodes.executables import run_executable; sys.exit(run_executable('simulator'))",
    ]
    with child([*command, "--ros-args", *ros_arguments(urdf=endless)], stderr=subprocess.PIPE, text=True) as process:
        children, end = Path(f"/proc/{process.pid}/task/{process.pid}/children"), time.monotonic() + HANG_S
        while not children.read_text().strip():
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.02)
        time.sleep(0.3)  # into the expression
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (0, "")


@pytest.mark.real_time
def test_control_c_ends_it_with_0():
    command = [
        sys.executable,
        "-c",
        "import sys; from robot_dyn_id.nodes.executables import run_executable; sys.exit(run_executable('simulator'))",
    ]
    arguments = ["--ros-args", *ros_arguments(urdf=PLANAR3R)]
    with child([*command, *arguments], stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "holds its position" in line:
                break
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (0, "")
