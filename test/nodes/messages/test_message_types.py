# SPDX-License-Identifier: Apache-2.0
"""Definitions written into bags are those of the types: their hash is the one that the middleware announces."""

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import ParameterDescriptor
from robot_dyn_id.action import IdentifyPayload
from robot_dyn_id.msg import ExcitationStatus, IdentificationReport, ParameterSet, RecordingStatus, TorqueResidual
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from sensor_msgs.msg import BatteryState, Imu, JointState, PointCloud2
from std_msgs.msg import ByteMultiArray, Char, Empty, Float64MultiArray, Header, String
from std_srvs.srv import Trigger
from support.broken_packages import without_library
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.errors import InputError
from robot_dyn_id.nodes.messages.message_types import (
    begins_with_header,
    find_interface_class,
    find_message_class,
    make_definition,
)

STANDARD = (
    *(DiagnosticArray, WrenchStamped, ParameterDescriptor, BatteryState, Imu, JointState, PointCloud2),
    *(ByteMultiArray, Char, Float64MultiArray, Header, String, JointTrajectory),
)
OWN = ExcitationStatus, IdentificationReport, ParameterSet, RecordingStatus, TorqueResidual


def name(kind):
    return f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"


def test_the_hash_is_that_of_the_middleware(world):
    for number, kind in enumerate((*STANDARD, *OWN)):
        world.probe.create_publisher(kind, f"topic_{number}", 1)
        (info,) = world.probe.get_publishers_info_by_topic(f"topic_{number}")
        types = get_typestore(Stores.EMPTY)
        types.register(get_types_from_msg(make_definition(kind), name(kind)))
        assert types.hash_rihs01(name(kind)) == str(info.topic_type_hash), make_definition(kind)
        assert find_message_class(info.topic_type) is kind


def test_the_text_is_that_of_a_msg_file():
    separator = "=" * 80
    assert make_definition(Header).splitlines() == [
        *("builtin_interfaces/Time stamp", "string frame_id", ""),
        *(separator, "MSG: builtin_interfaces/Time", "int32 sec", "uint32 nanosec"),
    ]
    assert make_definition(Imu).count(separator) == make_definition(Imu).count("MSG: ") == 4
    assert "float64[9] angular_velocity_covariance\n" in make_definition(Imu)
    assert "rcl_interfaces/IntegerRange[<=1] integer_range\n" in make_definition(ParameterDescriptor)
    assert "byte[] data\n" in make_definition(ByteMultiArray)


def test_bounded_texts():
    class Own:
        __module__ = "own_msgs.msg._own"

        @classmethod
        def get_fields_and_field_types(cls):
            return {"a": "string<10>", "b": "sequence<string<10>, 3>", "c": "wstring<4>", "d": "string[2]"}

    assert make_definition(Own).splitlines() == ["string<=10 a", "string<=10[<=3] b", "wstring<=4 c", "string[2] d"]


@pytest.mark.parametrize(
    ("kind", "expected"), [(JointState, True), (JointTrajectory, True), (Header, False), (Empty, False)]
)
def test_which_types_are_stamped(kind, expected):
    assert begins_with_header(kind) is expected


@pytest.mark.parametrize("absent", ["no_msgs/msg/Such", "sensor_msgs/msg/Such"])
def test_a_type_that_is_absent(absent):
    package = absent.split("/")[0]
    with pytest.raises(InputError, match=f"message type {absent} is not known here; install {package}, or source"):
        find_message_class(absent)


@pytest.mark.parametrize(
    "text",
    ["HelloWorld", "", "os.path/msg/Join", "../evil/msg/Foo", "Evil/msg/Foo", "a/msg/b", "a/msg/B\n", "a/msg/B/msg/C"],
)
def test_a_type_whose_name_ros_does_not_allow_is_never_imported(text, monkeypatch):
    monkeypatch.setattr(
        "robot_dyn_id.nodes.messages.message_types.import_module", lambda name: pytest.fail(f"imports {name}")
    )
    with pytest.raises(InputError, match="is not a message type of ROS 2"):
        find_message_class(text)


@pytest.mark.parametrize(
    "name", ["control_msgs/msg/JointTrajectoryControllerState", "control_msgs/action/FollowJointTrajectory"]
)
def test_a_type_whose_library_cannot_be_loaded_is_refused_by_name(name, tmp_path):
    pytest.importorskip("control_msgs")
    with without_library("control_msgs", tmp_path), pytest.raises(InputError, match=f"{name} cannot be loaded .*build"):
        find_interface_class(name)
    assert find_interface_class(name) is not None


def test_classes_of_services_and_actions():
    assert find_interface_class("std_srvs/srv/Trigger") is Trigger
    assert find_interface_class("robot_dyn_id/action/IdentifyPayload") is IdentifyPayload
    with pytest.raises(InputError, match="service type no_msgs/srv/Such is not known here; install no_msgs"):
        find_interface_class("no_msgs/srv/Such")
    with pytest.raises(InputError, match="is not a message type"):
        find_message_class("std_srvs/srv/Trigger")
