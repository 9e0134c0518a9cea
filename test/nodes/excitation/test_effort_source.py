# SPDX-License-Identifier: Apache-2.0
"""Feed-forward efforts of the excitation publisher, with a simulated arm whose controller commands efforts."""

import importlib.util

import numpy as np
import pytest
from robot_dyn_id.msg import ExcitationStatus as Status
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from std_srvs.srv import SetBool
from support.altered import altered
from support.excitation_cell import Cell
from support.lifecycle import ACTIVATE, CLEANUP, CONFIGURE, DEACTIVATE, change
from support.model_nodes import ARM, identified, message
from support.ros_world import ros_arguments
from support.simulator_scene import FRICTION
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.errors import MotionError
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE
from robot_dyn_id.nodes.simulator import Simulator
from robot_dyn_id.parameters import urdf_hash

GAINS = {"proportional_gains": "[60.0]", "derivative_gains": "[6.0]"}
"""Gains with which the arm sags and lags."""

WITHOUT_ACTION = importlib.util.find_spec("control_msgs") is None


class Cart:
    """A simulated arm with weak gains, and excitations of it, in its time: a busy computer simulates more slowly.

    Attributes:
        parameters: file of its identified parameters.
    """

    def __init__(self, world, folder, compensates="none", pace=1.0):
        self.world, self.urdf, self.parameters = world, folder / "arm.urdf", folder / "parameters.yaml"
        self.urdf.write_text(ARM)
        write_parameters(self.parameters, altered(identified(), effort={"robot_compensates": (compensates,)}))
        driver = {} if compensates == "none" else {"robot_compensates": f"[{compensates}]"}
        arm = {"urdf": self.urdf, **FRICTION, **GAINS, **driver, "rate": "400.0", "publish_rate": "200.0"}
        world.keep_time(pace)
        world.add(Simulator, *ros_arguments(**arm))

    def cell(self, **parameters):
        given = {
            "allow_unchecked_collisions": "true",
            "tracking_error": "[2.0]",
            "period": 2.0,
        }
        return Cell(self.world, follower=False, urdf=self.urdf, **{**given, **parameters})

    def worst(self, **parameters):
        """Largest tracking errors of an excitation [rad]."""
        cell = self.cell(**parameters)
        cell.running(0.0)
        first = len(cell.statuses)
        cell.until(Status.DONE)
        self.world.remove(cell.node)
        return np.max([status.tracking_error for status in cell.statuses[first:]], axis=0)


@pytest.mark.parametrize(
    ("mode", "compensates"),
    [
        ("trajectory", "none"),
        pytest.param("action", "gravity", marks=pytest.mark.skipif(WITHOUT_ACTION, reason="control_msgs is absent")),
    ],
)
def test_feed_forward_removes_almost_all_of_the_tracking_error(world, tmp_path, mode, compensates):
    # a goal begins when it arrives, late by its way and by a step of the clock: both are short here
    arm = Cart(world, tmp_path, compensates, pace=0.4 if mode == "action" else 1.0)
    pieces = {"mode": mode, "segments": "true" if mode == "trajectory" else "false", "latency": 0.33}
    without, with_efforts = (np.abs(arm.worst(feed_forward=file, **pieces)) for file in ("", arm.parameters))
    assert with_efforts.max() < 0.1 * without.max()


def test_without_a_model_and_with_a_model_of_another_robot_nothing_moves(world, tmp_path):
    cell = Cart(world, tmp_path).cell(feed_forward="identified_parameters")
    models = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
    cell.until(Status.READY)
    answer = cell.call("start")
    assert (answer.success, answer.message) == (
        False,
        "feed_forward: no model has been received on identified_parameters",
    )
    other = identified()
    for changed, words in (
        (altered(other, effort={"robot_compensates": ("unknown",)}), "robot_compensates is unknown"),
        (altered(other, judgment={"verdict": "bad", "reasons": ("a joint is at rest",)}), "a joint is at rest"),
    ):
        models.publish(message(changed))
        world.until(lambda words=words: words in cell.call("start").message, what=words)
    models.publish(message(other))
    world.until(lambda: cell.call("start").success, what="the start")


def test_a_motion_beyond_the_effort_limits_is_refused_before_it_begins(world, tmp_path):
    urdf, parameters = tmp_path / "arm.urdf", tmp_path / "parameters.yaml"
    urdf.write_text(ARM)
    write_parameters(parameters, identified())
    fast = {"period": 0.2, "acceleration": "[2000.0]", "rate": "1000.0", "amplitude_share": 1.0}
    with pytest.raises(MotionError, match="the excitation may exceed the effort limits by this model: joint"):
        Cell(world, follower=False, urdf=urdf, feed_forward=parameters, allow_unchecked_collisions="true", **fast)


@pytest.mark.parametrize("source", ["topic", "file"])
def test_a_node_that_is_configured_for_another_robot_does_not_use_the_model_of_the_one_before(world, tmp_path, source):
    arm = Cart(world, tmp_path)
    topic = source == "topic"
    cell = arm.cell(feed_forward="identified_parameters" if topic else arm.parameters)
    models = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
    models.publish(message(identified()))
    cell.running()
    assert cell.call("stop").success
    cell.until(Status.READY)
    assert change(world, DEACTIVATE) and change(world, CLEANUP)
    other = ARM.replace('name="small"', 'name="other"')
    arm.urdf.write_text(other)
    words = "the parameters are those of another URDF"
    if not topic:  # no other model can come
        world.wait(0.2)
        assert not change(world, CONFIGURE)
        assert words in str(cell.node._failure)
        return
    world.until(lambda: change(world, CONFIGURE), what="configuration")
    assert change(world, ACTIVATE)
    cell.until(Status.READY)
    world.until(lambda: words in cell.call("start").message, what="refusal")
    models.publish(
        message(altered(identified(), robot={"urdf": other, "urdf_sha256": urdf_hash(other), "name": "other"}))
    )
    world.until(lambda: cell.call("start").success, what="start with the model of this robot")


def test_a_model_that_comes_during_the_motion_is_not_taken_over_by_a_refused_request(world, tmp_path):
    cell = Cart(world, tmp_path).cell(feed_forward="identified_parameters", periods=4)
    commands = world.heard(JointTrajectory, "joint_trajectory_controller/joint_trajectory", RELIABLE)
    models = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
    models.publish(message(identified()))
    world.until(lambda: cell.node._efforts._parameters is not None, what="model")
    cell.running()
    refused = altered(identified(), judgment={"verdict": "bad", "reasons": ("a joint is at rest",)})
    before = cell.node._efforts._parameters
    models.publish(message(refused))
    world.until(lambda: cell.node._efforts._parameters is not before, what="the second model")
    for name, request in (("start", None), ("pause", SetBool.Request(data=False))):
        assert not cell.call(name, request).success
    assert cell.call("stop").success
    cell.until(Status.READY)
    world.wait(0.2)
    assert commands and all(len(point.effort) for command in commands for point in command.points)
    count = len(commands)
    for _ in range(2):
        world.until(lambda: "a joint is at rest" in cell.call("return_to_start").message, what="refusal of the return")
    assert "a joint is at rest" in cell.call("start").message
    assert len(commands) == count
    models.publish(message(identified()))
    world.until(lambda: cell.call("return_to_start").success, what="the return")
    cell.until(Status.RETURNING)
    world.until(lambda: len(commands) > count, what="points of the return")
    assert all(len(point.effort) for point in commands[-1].points)
