# SPDX-License-Identifier: Apache-2.0
"""Where nodes get their robot: a file at once, a latched topic when it comes, a line for whatever is wrong."""

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from rcl_interfaces.msg import Log
from std_msgs.msg import String
from support.processes import HANG_S

from robot_dyn_id.errors import ModelError, UsageError
from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, RobotNode
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.runtime.ros_parameters import ros_parameter

ARM = Path(__file__).resolve().parents[3] / "urdf" / "arm7.urdf"


@dataclass(frozen=True)
class Settings:
    urdf: str = ros_parameter("", "URDF")
    joints: tuple[str, ...] = ros_parameter((), "Joints")


class Reader(RobotNode):
    NAME, PURPOSE, SETTINGS, INTERFACES = "reader", "reads", Settings, (DESCRIPTION,)

    refuse = ""

    def begin(self):
        self.models = []
        self.source = RobotSource(self, self.settings.urdf, self.settings.joints, self.take)

    def take(self, model):
        if self.refuse == model.name:
            raise UsageError("not this one")
        self.models.append(model)


@pytest.fixture
def log(world):
    """Texts of the log."""
    messages = world.heard(Log, "/rosout", RELIABLE)
    return lambda: [message.msg for message in messages if message.name == "reader"]


def test_a_file_is_read_at_once(world):
    node = world.add(Reader, "-p", f"urdf:={ARM}", "-p", "joints:=[joint2, joint4]")
    (model,) = node.models
    assert model.joint_names == ("joint2", "joint4")
    assert node.source.problem == ""


def test_a_file_that_cannot_be_used_ends_the_node(world):
    with pytest.raises(ModelError, match=r"/none.urdf: cannot read the robot description"):
        world.add(Reader, "-p", "urdf:=/none.urdf")
    with pytest.raises(UsageError, match="not this one"):
        world.add(type("Reader", (Reader,), {"refuse": "arm7"}), "-p", f"urdf:={ARM}")


def test_a_node_that_is_refused_is_gone_from_the_graph(world):
    def readers():
        return [name for name in world.probe.get_node_names() if name == "reader"]

    with pytest.raises(ModelError) as refusal:  # which holds the node, as a traceback does
        world.add(Reader, "-p", "urdf:=/none.urdf")
    world.until(lambda: not readers(), what="no node")
    assert refusal.tb is not None
    assert world.probe.count_publishers("/diagnostics") == 0


def test_a_topic_is_waited_for_and_reminded_of(world, log):
    node = world.add(Reader)
    words = "waiting for /robot_description: no publisher yet; or name a file by the parameter urdf"
    assert node.source.problem == words
    world.until(lambda: log().count(words) == 1)
    world.until(lambda: log().count(words) == 2)
    world.probe.create_publisher(String, "robot_description", LATCHED).publish(String(data=ARM.read_text()))
    world.until(lambda: bool(node.models))
    assert node.source.problem == ""


def test_messages_are_handled_while_a_robot_is_read(world):
    go, others = threading.Event(), []

    class Slow(Reader):
        def begin(self):
            self.models = []
            self.source = RobotSource(self, "", (), self.take, prepare=lambda model: go.wait(HANG_S) and model)

    node = world.add(Slow)
    node.create_subscription(String, "other", others.append, LATCHED)
    world.probe.create_publisher(String, "robot_description", LATCHED).publish(String(data=ARM.read_text()))
    world.until(lambda: "prepared" in node.source.problem)
    world.probe.create_publisher(String, "other", LATCHED).publish(String())
    world.until(lambda: others)
    assert not node.models
    go.set()
    world.until(lambda: node.models)


def test_a_node_that_logs_its_state_does_not_log_the_wait_twice(world):
    lines = world.heard(Log, "/rosout", RELIABLE)
    node = world.add(ExcitationPublisher)
    world.until(lambda: any("waiting for /robot_description" in line.msg for line in lines), what="the state")
    world.wait(0.5)
    assert [line.msg for line in lines if "waiting for" in line.msg] == [node._source.problem]


def test_what_cannot_be_used_is_reported_and_the_next_one_taken(world, log):
    node = world.add(type("Reader", (Reader,), {"refuse": "other"}), "-p", "joints:=[joint1]")
    topic = world.probe.create_publisher(String, "robot_description", LATCHED)
    text = ARM.read_text()
    for given, words in (
        ("", "robot description: broken XML"),
        (str(ARM), "robot description: broken XML"),
        (text.replace('mass value="', 'mass value="$(eval 10 ** 10 ** 10)', 1), "holds xacro ($(eval 10 ** 10 ** 10)"),
        ("<robot>", "robot description: broken XML"),
        (text.replace("joint1", "first"), "robot description: joint joint1 is not a moving joint of the robot"),
        (text.replace('robot name="arm7"', 'robot name="other"'), "not this one"),
    ):
        topic.publish(String(data=given))
        world.until(lambda words=words: words in node.source.problem)
        world.until(lambda: node.source.problem in log())
        assert "\n" not in node.source.problem
    topic.publish(String(data=text))
    world.until(lambda: node.source.problem == "")
    topic.publish(String(data=text.replace("joint7", "wrist")))
    world.until(lambda: any("robot_description has changed: start the node again" in line for line in log()))
    assert len(node.models) == 1
