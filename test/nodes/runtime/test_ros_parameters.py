# SPDX-License-Identifier: Apache-2.0
"""ROS parameters: one declaration, every mistake refused with a reason, visible to ROS's own tools."""

from dataclasses import dataclass

import pytest
import rclpy
from rcl_interfaces.msg import Parameter as ParameterMsg
from rcl_interfaces.msg import ParameterEvent, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile

from robot_dyn_id.errors import UsageError
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.nodes.runtime.ros_parameters import changeable, declare, list_ros_parameters, ros_parameter


@dataclass(frozen=True)
class Settings:
    rate: float = ros_parameter(100.0, "Samples per second", unit="Hz", minimum=1.0, maximum=1000.0)
    count: int = ros_parameter(5, "How many", minimum=1)
    on: bool = ros_parameter(False, "Whether")
    kind: str = ros_parameter("sine", "Which", choices=("sine", "fourier"))
    joints: tuple[str, ...] = ros_parameter((), "Which joints")
    gains: tuple[float, ...] = ros_parameter((), "Of each joint", unit="N m/A", minimum=0.0)


@pytest.fixture(scope="module")
def context():
    context = rclpy.Context()
    rclpy.init(context=context)
    yield context
    rclpy.shutdown(context=context)


@pytest.fixture
def node(context):
    made = []

    def make(*arguments, file=None):
        cli = ["--ros-args"]
        for argument in arguments:
            cli += ["-p", argument]
        if file:
            cli += ["--params-file", str(file)]
        made.append(Node("probe", context=context, cli_args=cli, automatically_declare_parameters_from_overrides=True))
        return made[-1]

    yield make
    for item in made:
        item.destroy_node()


def test_defaults(node):
    assert declare(node(), Settings) == Settings()


def test_values_from_the_command_line_and_whole_numbers_for_numbers(node):
    given = declare(
        node("rate:=50", "count:=2", "on:=true", "kind:=fourier", "joints:=[a, b]", "gains:=[1, 2]"), Settings
    )
    assert given == Settings(50.0, 2, True, "fourier", ("a", "b"), (1.0, 2.0))
    assert type(given.rate) is float


def test_values_from_a_file(node, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("/**:\n  ros__parameters:\n    rate: 250.0\n    joints: [x]\n    use_sim_time: true\n")
    assert declare(node(file=file), Settings) == Settings(rate=250.0, joints=("x",))


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("rate:=0.5", r"rate must be within 1 and 1000 \[Hz\], not 0.5"),
        ("rate:=.nan", "rate must be within 1 and 1000"),
        ("rate:=fast", "rate must be of type double, not 'fast'"),
        ("rate:=true", "rate must be of type double, not True"),
        ("count:=1.5", "count must be of type integer, not 1.5"),
        ("count:=0", "count must be at least 1, not 0"),
        ("on:=1", "on must be of type bool, not 1"),
        ("kind:=chirp", "kind must be one of sine, fourier, not 'chirp'"),
        ("joints:=a", "joints must be of type string_array, not 'a'"),
        ("joints:=[1, 2]", "joints must be of type string_array"),
        ("gains:=[1.0, -2.0]", "gains must be at least 0"),
        ("gains:=[a]", "gains must be of type double_array"),
        ("ratte:=5", "unknown parameter 'ratte'; did you mean 'rate'?"),
        ("deep.rate:=5", "unknown parameter 'deep.rate'"),
    ],
)
def test_a_wrong_value_is_refused_with_a_reason(node, argument, words):
    with pytest.raises(UsageError, match=words):
        declare(node(argument), Settings)


def test_tools_of_ros_see_description_range_and_value_and_cannot_change_it(node):
    made = node("rate:=50")
    declare(made, Settings)
    descriptor = made.describe_parameter("rate")
    assert descriptor.description == "Samples per second [Hz]"
    assert descriptor.type == ParameterType.PARAMETER_DOUBLE
    assert descriptor.floating_point_range[0].to_value == 1000.0
    assert made.get_parameter("rate").value == 50.0
    (answer,) = made.set_parameters([Parameter("rate", value=60.0)])
    assert not answer.successful
    assert made.get_parameter("rate").value == 50.0


def test_the_table_has_every_field():
    assert [row.name for row in list_ros_parameters(Settings)] == ["rate", "count", "on", "kind", "joints", "gains"]
    assert [row.rule.constraint() for row in list_ros_parameters(Settings)][:4] == [
        "within 1 and 1000",
        "at least 1",
        "",
        "one of sine, fourier",
    ]


@pytest.mark.parametrize("given", ["yes_please", "1", "[true]"])
def test_simulated_time_is_true_or_false(node, given):
    with pytest.raises(UsageError, match="parameter use_sim_time must be of type bool, not"):
        declare(node(f"use_sim_time:={given}"), Settings)


@dataclass(frozen=True)
class ChangeableSettings:
    fixed: float = ros_parameter(1.0, "One that stays", minimum=0.0)
    share: float = changeable(ros_parameter(0.5, "One that can be changed", minimum=0.0, maximum=1.0))


class Changed(RobotNode):
    NAME, PURPOSE, SETTINGS, INTERFACES = "changed", "follows its parameters", ChangeableSettings, ()

    def begin(self):
        self.followed = []

    def follow_settings(self):
        self.followed.append(self.settings.share)


def set_parameter(world, name, value):
    number = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
    request = SetParameters.Request(parameters=[ParameterMsg(name=name, value=number)])
    (result,) = world.call(SetParameters, "changed/set_parameters", request).results
    return result


def test_what_may_change_is_followed_with_an_event_and_the_rest_is_refused_with_a_reason(world):
    events = world.heard(ParameterEvent, "/parameter_events", QoSProfile(depth=100))
    node = world.add(Changed)
    assert set_parameter(world, "share", 0.25).successful
    world.until(lambda: any(one.name == "share" for event in events for one in event.changed_parameters))
    assert (node.settings, node.followed) == (ChangeableSettings(share=0.25), [0.25])
    for name, value, words in (
        ("share", 1.5, "share"),
        ("share", float("nan"), "share"),
        ("fixed", 2.0, "read-only"),
    ):
        refused = set_parameter(world, name, value)
        assert not refused.successful and words in refused.reason.lower(), refused.reason
    assert (node.settings, node.followed) == (ChangeableSettings(share=0.25), [0.25])
