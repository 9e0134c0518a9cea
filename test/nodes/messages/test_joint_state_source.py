# SPDX-License-Identifier: Apache-2.0
"""Live joint states of drivers' types, over real DDS, and nodes where the driver's package is not installed."""

import sys

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.msg import TorqueResidual
from support.model_nodes import identified, message
from support.ros_world import ros_arguments
from support.simulator_scene import DEEP

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.nodes.identifier import Identifier
from robot_dyn_id.nodes.messages.joint_state_source import make_reader
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, STREAM
from robot_dyn_id.nodes.torque_residual_monitor import TorqueResidualMonitor
from robot_dyn_id.recordings import open_recording

NAMES = list(identified().robot.joint_names)
T = np.arange(150) / 100.0
Q, DQ, TAU = (np.stack([scale * np.sin(T + j) for j in range(3)], axis=1) for scale in (0.3, 0.2, 4.0))


@pytest.fixture(scope="module")
def types():
    """Packages of drivers, real or from test/interfaces."""
    return {name: pytest.importorskip(f"{name}.msg") for name in ("control_msgs", "franka_msgs", "lbr_fri_idl")}


def stamp(state, row):
    state.header.stamp.sec, hundredth = divmod(row, 100)
    state.header.stamp.nanosec = 10_000_000 * hundredth
    return state


def dynamic(types, row, names=NAMES):
    value, interfaces = types["control_msgs"].InterfaceValue, ["effort", "position", "velocity", "temperature"]
    values = [
        value(interface_names=interfaces, values=[TAU[row, j], Q[row, j], DQ[row, j], 30.0]) for j in range(len(names))
    ]
    return stamp(types["control_msgs"].DynamicJointState(joint_names=names, interface_values=values), row)


def franka(types, row):
    state = types["franka_msgs"].FrankaRobotState()
    measured = state.measured_joint_state
    measured.name, measured.position = NAMES, Q[row].tolist()
    measured.velocity, measured.effort = DQ[row].tolist(), TAU[row].tolist()
    return stamp(state, row)


@pytest.mark.parametrize("kind", ["control_msgs/msg/DynamicJointState", "franka_msgs/msg/FrankaRobotState"])
def test_what_rclpy_sends_is_read_message_by_message(types, kind):
    make, read = (dynamic if "Dynamic" in kind else franka), make_reader(kind)
    for row in range(5):
        state = read(bytes(serialize_message(make(types, row))))
        assert list(state.name) == NAMES and (state.header.stamp.sec, state.header.stamp.nanosec) == (0, row * 10**7)
        np.testing.assert_array_equal([state.position, state.velocity, state.effort], [Q[row], DQ[row], TAU[row]])
    with pytest.raises(InputError, match=f"not a {kind}"):
        read(b"\x00\x01\x00\x00")


def test_axes_without_names_velocities_or_a_header(types):
    state = types["lbr_fri_idl"].LBRState(time_stamp_sec=7, time_stamp_nano_sec=9)
    state.measured_torque[:] = np.arange(7.0)
    read = make_reader("lbr_fri_idl/msg/LBRState", [f"lbr_A{number}" for number in range(1, 8)])
    found = read(bytes(serialize_message(state)))
    assert (found.name[0], found.header.stamp.sec, found.header.stamp.nanosec) == ("lbr_A1", 7, 9)
    assert list(found.effort) == list(range(7)) and not len(found.velocity)
    with pytest.raises(InputError, match="do not fit the joint names"):
        make_reader("lbr_fri_idl/msg/LBRState", ["one"])(bytes(serialize_message(state)))


def test_the_monitor_reads_dynamic_joint_states(world, types):
    residuals = world.heard(TorqueResidual, "torque_residual", STREAM)
    states = world.probe.create_publisher(types["control_msgs"].DynamicJointState, "joint_states", DEEP)
    kind = "control_msgs/msg/DynamicJointState"
    node = world.add(TorqueResidualMonitor, *ros_arguments(joint_states_type=kind, latency="10.0"))
    world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED).publish(message())
    world.until(lambda: states.get_subscription_count() and node._monitor is not None, what="monitor's topic")
    for row in range(len(T)):
        states.publish(dynamic(types, row))
    world.until(lambda: residuals, what="a residual")
    assert residuals[-1].joint_names == NAMES


def test_the_identifier_records_the_type_of_the_driver(world, types, tmp_path):
    kind = "franka_msgs/msg/FrankaRobotState"
    node = world.add(Identifier, *ros_arguments(joint_states_type=kind, folder=tmp_path / "run"))
    states = world.probe.create_publisher(types["franka_msgs"].FrankaRobotState, "joint_states", DEEP)
    world.until(lambda: states.get_subscription_count(), what="identifier's topic")
    for row in range(len(T)):
        states.publish(franka(types, row))
    world.until(lambda: node._recording.received == len(T), what="all messages")
    node._recording.close_part()
    world.until(node._recording.finished, what="the bag")
    recording = open_recording(tmp_path / "run/stream_1")
    chunk = next(iter(recording.chunks(NAMES)))
    assert recording.effort_is_torque
    np.testing.assert_array_equal(np.stack([chunk.q, chunk.dq, chunk.tau]), [Q, DQ, TAU])


@pytest.mark.parametrize("node", [TorqueResidualMonitor, Identifier])
def test_without_the_package_of_the_driver_the_node_ends_with_its_name(world, monkeypatch, tmp_path, node):
    monkeypatch.setitem(sys.modules, "franka_msgs.msg", None)
    folder = {"folder": tmp_path / "run"} if node is Identifier else {}
    with pytest.raises(UsageError, match=r"joint_states_type: .*install franka_msgs"):
        world.add(node, *ros_arguments(joint_states_type="franka_msgs/msg/FrankaRobotState", **folder))
