# SPDX-License-Identifier: Apache-2.0
"""Two nodes of the same full name: the newer one ends, and neither moves a robot while both are there."""

import os
import signal
import subprocess
import sys
import time

from rclpy.node import Node
from robot_dyn_id.msg import ExcitationStatus as Status
from std_srvs.srv import Trigger
from support.excitation_cell import ARM, QUICK, Cell
from support.model_nodes import message
from support.processes import HANG_S
from support.ros_world import ros_arguments
from support.simulator_scene import Scene

from robot_dyn_id.errors import GraphError
from robot_dyn_id.nodes.computed_torque_controller import ComputedTorqueController
from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
from robot_dyn_id.nodes.runtime import namesakes
from robot_dyn_id.nodes.runtime.diagnostics import OK, Diagnosis
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.nodes.torque_residual_monitor import TorqueResidualMonitorSettings

MAIN = "import sys; from robot_dyn_id.nodes.executables import run_executable; sys.exit(run_executable('{0}'))"


class Plain(RobotNode):
    NAME, PURPOSE, SETTINGS, INTERFACES = "plain", "does nothing", TorqueResidualMonitorSettings, ()

    def diagnosis(self):
        return Diagnosis(OK, "does nothing")


def start(node, *arguments):
    command = [sys.executable, "-c", MAIN.format(node), "--ros-args", *arguments]
    return subprocess.Popen(command, env=dict(os.environ), stderr=subprocess.PIPE, text=True)


def test_a_dry_run_left_open_ends_the_node_that_is_to_move(world):
    cell = Cell(world, dry_run="true")
    world.until(lambda: cell.node.namesakes.settled)
    with start("excitation_publisher", *ros_arguments(urdf=ARM, **QUICK, start="true")) as process:
        world.until(lambda: process.poll() is not None, what="the end of the second node")
        error = process.stderr.read()
    assert process.returncode == 3
    assert "excitation_publisher: another node /excitation_publisher is running in process" in error
    assert f"in process {os.getpid()} on " in error
    assert "dry run: the motion fits the robot" in error, "what the other one does"
    assert "end it, or start this one with another name" in error
    assert cell.follower.received == []
    assert cell.node.end is None
    answer = cell.call("start")
    assert not answer.success and "dry run" in answer.message


def test_a_second_node_while_it_moves_is_an_obstacle(world):
    # making the second holds the process up: joint states are late, and so is what they are compared with
    cell = Cell(world, period="20.0", segments="false", latency=10.0, tracking_error="[3.0]").running()
    second = world.add(ExcitationPublisher, *ros_arguments(urdf=ARM, **QUICK, dry_run="true"))
    cell.until(Status.FAULT)
    assert "another node /excitation_publisher is running" in cell.reason
    world.until(lambda: cell.node._session.supervisor.at_rest, what="rest in the joint states")
    assert cell.follower.at_rest()
    assert isinstance(second.end, GraphError)
    assert cell.node.end is None
    node = cell.node  # both offer the service
    refused = node._requests._by_hand("~/start", node._session.start, Trigger.Request(), Trigger.Response())
    assert not refused.success and "another node /excitation_publisher is" in refused.message
    world.remove(second)
    world.until(lambda: cell.call("start").success, what="a start without the second node")


def test_of_two_that_start_at_the_same_time_one_stays(world):
    first, second = world.add(Plain), world.add(Plain)
    world.until(lambda: second.end is not None, what="the end of the second")
    assert isinstance(second.end, GraphError)
    assert "reports 'does nothing'" in str(second.end)
    assert not second.namesakes.settled
    world.remove(second)
    world.until(lambda: first.namesakes.settled)
    assert first.end is None
    assert first.namesakes.obstacle() == ""


def test_processes_that_start_at_the_same_time_leave_one(world):
    arguments = ("-p", f"urdf:={ARM}", "-r", "__node:=arm", "-r", "__ns:=/cell")
    with start("excitation_publisher", *arguments) as one, start("excitation_publisher", *arguments) as other:
        world.until(lambda: (one.poll() is None) != (other.poll() is None), what="the end of one")
        ended, stays = (one, other) if one.poll() is not None else (other, one)
        assert ended.returncode == 3
        assert "another node /cell/arm is running" in ended.stderr.read()
        world.wait(1.0)
        assert stays.poll() is None
        stays.send_signal(signal.SIGINT)
        assert stays.wait(timeout=HANG_S) == 0


def test_the_remains_of_a_killed_process_do_not_block_for_long(world):
    with start("torque_residual_monitor") as killed:
        world.until(lambda: "torque_residual_monitor" in world.probe.get_node_names(), what="the first node")
        killed.kill()
    world.listens()
    node = world.add(Plain, "-r", "__node:=torque_residual_monitor")
    begin, own = time.monotonic(), world.time
    assert node.namesakes.obstacle() == "looking for other nodes of the same name"
    world.until(lambda: node.namesakes.settled)
    assert time.monotonic() - begin >= namesakes.SILENCE_S and world.time - own < 2.0 * namesakes.SILENCE_S
    assert world.probe.get_node_names().count("torque_residual_monitor") == 2, (
        "discovery has not yet removed the first one"
    )
    assert node.end is None
    assert node.namesakes.refusal() == ""


def test_a_node_that_appears_is_doubted_before_it_is_heard(world):
    node = world.add(Plain)
    world.until(lambda: node.namesakes.settled)
    other = Node("plain", context=world._context)
    assert node.namesakes.refusal().startswith("another node /plain is in the graph: wait 2.5 s")
    assert node.namesakes.obstacle() == "", "a motion goes on"
    other.destroy_node()
    world.until(lambda: node.namesakes.refusal() == "")


def test_nodes_of_other_names_or_namespaces_do_not_matter(world):
    world.listens()
    begin = world.time
    nodes = [world.add(Plain), world.add(Plain, "-r", "__node:=second"), world.add(Plain, namespace="left")]
    world.until(lambda: all(node.namesakes.settled for node in nodes))
    assert world.time - begin < namesakes.SILENCE_S
    assert [node.end for node in nodes] == [None] * 3


def test_in_a_process_that_listens_already_nodes_need_not_wait(world):
    world.listens()
    first = world.add(Plain)
    world.until(lambda: first.namesakes.settled)
    later = world.add(Plain, "-r", "__node:=later")
    begin = world.time
    world.until(lambda: later.namesakes.settled)
    assert world.time - begin < 0.5 * namesakes.LISTENING_S


def test_a_second_controller_commands_no_effort(world, tmp_path):
    scene = Scene(world, tmp_path, control="effort")
    first = Node("computed_torque_controller", context=world._context)  # has not been heard, so that it may be alive
    second = world.add(ComputedTorqueController, *ros_arguments(latency="4.0"))
    scene.parameters.publish(message())
    world.until(lambda: second._law.model is not None, what="a model")
    world.until(lambda: scene.logged("no effort yet: looking for other nodes of the same name"))
    assert not second.namesakes.settled and scene.efforts_heard == []
    first.destroy_node()
    world.until(lambda: scene.efforts_heard, what="efforts")
    assert second.namesakes.settled
