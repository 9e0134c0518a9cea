# SPDX-License-Identifier: Apache-2.0
"""ParameterSets of the network that are wrong: refused with the reason, and no node commands or breaks by them."""

import re
import time

import numpy as np
import pytest
from support.processes import HANG_S
from support.ros_world import ros_arguments

pytest.importorskip("rclpy", reason="rclpy is not installed: no ROS 2 here")
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.serialization import serialize_message
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.msg import TorqueResidual
from support.hostile_sets import HOSTILE, heavy, hostile
from support.model_nodes import RATED, identified, message
from support.simulator_scene import Scene

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.identification.assembly import make_tracked
from robot_dyn_id.nodes.computed_torque_controller import ComputedTorqueController
from robot_dyn_id.nodes.runtime.decoding import decode
from robot_dyn_id.nodes.runtime.robot_node import STREAM
from robot_dyn_id.nodes.simulator import Simulator
from robot_dyn_id.nodes.torque_residual_monitor import TorqueResidualMonitor
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation import model_law
from robot_dyn_id.simulation.controllers import make_usable_dynamics


@pytest.mark.parametrize("name", HOSTILE)
def test_every_wrong_field_is_refused_with_the_reason(name):
    begin = time.process_time()
    with pytest.raises(RobotDynIdError) as error:
        Regressor.from_parameters(ParameterSet.from_message(hostile(name)))
    assert time.process_time() - begin < 5.0
    assert re.search(HOSTILE[name][1], str(error.value)), str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_is_checked_as_a_message_is(tmp_path):
    file = tmp_path / "parameters.yaml"
    write_parameters(file, identified())
    file.write_text(file.read_text().replace("gravity: [0.0, 0.0, -9.81]", "gravity: [0.0, 0.0, -1.0e+6]"))
    with pytest.raises(RobotDynIdError, match=r"parameters\.yaml: parameter set: robot\.gravity is 1e\+06 m/s\^2"):
        read_parameters(file)


def test_tracked_sets_meet_every_check():
    known = identified()
    one = make_tracked(known, 1.01 * known.estimate.values, 1.3 * known.estimate.covariance)
    assert Regressor.from_parameters(one).names == known.base.column_names


def test_a_message_that_is_too_large_is_not_read():
    one = message()
    one.judgment.reasons = ["x" * 1000] * 5_000
    with pytest.raises(RobotDynIdError, match="is larger than the"):
        decode(serialize_message(one), ParameterSetMsg)


def without_version(data):
    """The set as 0.1.0 wrote it: without the format version, which follows the empty frame of the header."""
    return data[:20] + data[24:]


DAMAGED = {
    "set of an earlier version": without_version,
    "truncated set": lambda data: data[: len(data) // 2],
    "encapsulation alone": lambda data: data[:4],
    "no bytes": lambda data: b"",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_bytes_that_are_no_set_are_refused_input(name):
    with pytest.raises(RobotDynIdError, match="a message of another version of the type, or damaged"):
        decode(DAMAGED[name](bytes(serialize_message(message()))), ParameterSetMsg)


def test_an_arm_is_held_while_another_model_is_prepared(world, tmp_path, monkeypatch):
    """Prepared is the other model when 100 more efforts by the one in use have been heard: never, if it halts them."""
    scene = Scene(world, tmp_path, control="effort", latency="4.0", brakes="true")
    controller = world.add(ComputedTorqueController, *ros_arguments(latency="4.0"))
    scene.parameters.publish(message())
    world.until(lambda: scene.logged("commands efforts by gravity_compensation"), what="controller")
    world.until(lambda: scene.efforts_heard, what="efforts")
    used, prepared = controller._law.dynamics, []

    def slow(*arguments, **options):
        begin, end = len(scene.efforts_heard), time.monotonic() + 0.5 * HANG_S
        while len(scene.efforts_heard) < begin + 100 and time.monotonic() < end:
            time.sleep(0.01)
        prepared.append(len(scene.efforts_heard) - begin)
        return make_usable_dynamics(*arguments, **options)

    monkeypatch.setattr(model_law, "make_usable_dynamics", slow)
    scene.parameters.publish(message())
    world.until(lambda: controller._law.dynamics is not used, what="the other model")
    assert prepared[0] >= 100 and np.abs(scene.efforts_heard[-1].data).max() > 0.0


def test_hostile_sets_move_nothing_and_end_no_node(world, tmp_path):
    """Every hostile set against a controller, a monitor and a simulator that run: the model in use stays."""
    scene = Scene(world, tmp_path, control="effort", latency="4.0", brakes="true")
    residuals = world.heard(TorqueResidual, "torque_residual", STREAM)
    controller, monitor = (
        world.add(ComputedTorqueController, *ros_arguments(latency="4.0")),
        world.add(TorqueResidualMonitor, *ros_arguments(latency="10.0")),
    )
    twin = world.add(
        Simulator,
        *ros_arguments(model="parameters"),
        "-r",
        "identified_parameters:=/identified_parameters",
        namespace="twin",
    )
    nodes = (controller, monitor, twin)
    for name in HOSTILE:
        before = [node.refused for node in nodes[1:]]
        scene.parameters.publish(hostile(name))
        world.until(
            lambda before=before: all(n.refused > b for n, b in zip(nodes[1:], before, strict=True)),
            what=name,
        )
        world.until(lambda name=name: re.search(HOSTILE[name][1], controller._refused), what=name)
    assert not scene.efforts_heard
    scene.parameters.publish(message())
    world.until(lambda: scene.logged("commands efforts by gravity_compensation"), what="controller")
    world.until(lambda: residuals, what="monitor")
    for name in HOSTILE:
        before = [node.refused for node in (controller, monitor)]
        scene.parameters.publish(hostile(name))
        world.until(
            lambda before=before: all(n.refused > b for n, b in zip(nodes[:2], before, strict=True)),
            what=name,
        )
    for name, damage in DAMAGED.items():
        before = [node.refused for node in (controller, monitor)]
        scene.parameters.publish(damage(bytes(serialize_message(message()))))
        world.until(
            lambda before=before: all(n.refused > b for n, b in zip(nodes[:2], before, strict=True)),
            what=name,
        )
        assert "damaged" in controller.refusal
    world.remove(monitor)  # to which the arm is only another one
    before = controller.refused
    scene.parameters.publish(heavy())
    world.until(lambda: controller.refused > before, what="heavy arm")
    world.until(lambda: "above the rated" in scene.values("computed_torque_controller")["last refused"], what="reason")
    scene.passes(0.3)
    assert scene.level("computed_torque_controller") == (
        DiagnosticStatus.OK,
        "commands efforts by gravity_compensation",
    )
    efforts = np.array([one.data for one in scene.efforts_heard])
    assert np.isfinite(efforts).all() and np.abs(efforts).max() <= RATED
    expected = Dynamics.from_parameters(identified()).gravity(scene.position)
    assert np.allclose(efforts[-1], expected, atol=0.05 * np.abs(expected).max())
    assert all(node.end is None and node.internal_errors == 0 for node in (*nodes, scene.node))
