# SPDX-License-Identifier: Apache-2.0
"""The messages of identified models, over real DDS with transient local durability."""

import re
import time
from dataclasses import fields
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from support.parameter_sets import assert_same, awkward_set, field_types
from support.processes import HANG_S

pytest.importorskip("rclpy", reason="rclpy is not installed: no ROS 2 here")
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from robot_dyn_id.msg import ActuatorSet as ActuatorSetMsg
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from support.commanded import assert_same_actuators, make_actuator_set, make_awkward_actuators
from support.hostile_sets import HOSTILE, hostile
from support.model_nodes import identified

import robot_dyn_id as rdi
from robot_dyn_id import msg as messages
from robot_dyn_id.actuators.actuator_set import FORMAT_VERSION as ACTUATORS_VERSION
from robot_dyn_id.actuators.actuator_set import ActuatedRobot, ActuatorJudgment, ActuatorSet
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.uncertainty import ActuatorUncertainty
from robot_dyn_id.errors import InputError, UnsafeDataError
from robot_dyn_id.files.actuators import read_actuators, write_actuators
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.findings import find_definition
from robot_dyn_id.nodes.messages.conversions import (
    make_actuator_set_message,
    make_parameter_set_message,
)
from robot_dyn_id.nodes.messages.outcomes import make_identification_report
from robot_dyn_id.parameters import FORMAT_VERSION, FitFor, ParameterSet, TermState

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def message_leaves(kind, name=""):
    for field, text in kind.get_fields_and_field_types().items():
        path = f"{name}.{field}" if name else field
        if text.startswith("robot_dyn_id/"):
            yield from message_leaves(getattr(messages, text.removeprefix("robot_dyn_id/")), path)
        else:
            yield path


def test_every_field_of_the_message_is_a_field_of_the_value():
    in_message = [name for name in message_leaves(ParameterSetMsg) if name not in ("header", "format_version")]
    assert sorted(in_message) == sorted(name for name, _ in field_types())
    for kind in (TermState, FitFor, ActuatedRobot, ActuatorModel, ActuatorUncertainty, ActuatorJudgment):
        own = getattr(messages, kind.__name__).get_fields_and_field_types()
        assert list(own) == [item.name for item in fields(kind)]
    assert ParameterSetMsg.FORMAT_VERSION == FORMAT_VERSION
    assert ActuatorSetMsg.FORMAT_VERSION == ACTUATORS_VERSION
    parts = list(ActuatorSetMsg.get_fields_and_field_types())
    assert parts == ["header", "format_version", *(item.name for item in fields(ActuatorSet))]


@pytest.mark.real_time
def test_a_late_subscriber_gets_the_set_to_the_last_bit():
    """Publisher first, subscriber afterwards, in two contexts: only a latched topic over DDS can deliver it."""
    sent, received = awkward_set(), []
    contexts = [rclpy.Context(), rclpy.Context()]
    for context in contexts:
        rclpy.init(context=context)
    try:
        publisher_node = rclpy.create_node("source", context=contexts[0])
        publisher = publisher_node.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
        publisher.publish(make_parameter_set_message(sent))
        subscriber_node = rclpy.create_node("sink", context=contexts[1])
        subscriber_node.create_subscription(ParameterSetMsg, "identified_parameters", received.append, LATCHED)
        executor = SingleThreadedExecutor(context=contexts[1])
        executor.add_node(subscriber_node)
        deadline = time.monotonic() + HANG_S
        while not received and time.monotonic() < deadline:
            executor.spin_once(timeout_sec=0.1)
        assert received
        assert_same(ParameterSet.from_message(received[0]), sent)
        executor.shutdown()
    finally:
        for context in contexts:
            rclpy.shutdown(context=context)


def test_yaml_and_message_carry_the_same(tmp_path):
    write_parameters(tmp_path / "p.yaml", awkward_set())
    assert_same(
        ParameterSet.from_message(make_parameter_set_message(read_parameters(tmp_path / "p.yaml"))), awkward_set()
    )


@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1])
def test_a_message_of_another_format_version_is_refused_before_anything_else(version):
    message = make_parameter_set_message(awkward_set())
    message.format_version, message.base.mapping = version, []
    with pytest.raises(InputError, match=r"format_version is .* identify the robot again"):
        ParameterSet.from_message(message)


@pytest.mark.parametrize(
    "path",
    [
        *("estimate.covariance", "base.mapping", "estimate.values", "bodies.standard_parameters", "residuals.speeds"),
        *("residuals.deviations", "terms.values", "terms.constant_joints", "provenance.fingerprint.starts"),
    ],
)
def test_a_message_whose_fields_do_not_fit_together_is_refused(path):
    message = make_parameter_set_message(awkward_set())
    *parts, field = path.split(".")
    part = reduce(getattr, parts, message)
    setattr(part, field, getattr(part, field)[:-1])
    with pytest.raises(InputError, match=f"{field}|deviations"):
        ParameterSet.from_message(message)


def test_actuators_of_a_file_and_of_its_message_are_the_same_to_the_last_bit(tmp_path):
    """Through the bytes that DDS transports."""
    for number, one in enumerate((make_actuator_set(), make_awkward_actuators())):
        write_actuators(tmp_path / f"{number}.yaml", one)
        stored = serialize_message(make_actuator_set_message(read_actuators(tmp_path / f"{number}.yaml")))
        assert_same_actuators(ActuatorSet.from_message(deserialize_message(stored, ActuatorSetMsg)), one)


@pytest.mark.parametrize("version", [0, 1, ACTUATORS_VERSION + 1])
def test_actuators_of_another_format_version_are_refused_before_anything_else(version):
    message = make_actuator_set_message(make_actuator_set())
    message.format_version, message.uncertainty.low = version, []
    with pytest.raises(InputError, match=r"^actuator set: format_version is .* identify the actuators again") as caught:
        ActuatorSet.from_message(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        *((f"actuators.{name}", f"{name} has shape") for name in ("armature", "upper_reference")),
        *((f"uncertainty.{name}", f"{name} has 41 numbers") for name in ("index", "low", "high", "between")),
        ("uncertainty.correlation", "correlation has 48 numbers"),
        ("actuators.joint_names", "armature has shape"),
    ],
)
def test_actuators_whose_fields_do_not_fit_together_are_refused(path, words):
    message = make_actuator_set_message(make_actuator_set())
    part, field = path.split(".")
    owner = getattr(message, part)
    setattr(owner, field, getattr(owner, field)[:-1])
    with pytest.raises(InputError, match=f"^actuator set: .*{words}"):
        ActuatorSet.from_message(message)


def test_values_of_actuators_that_no_drive_has_are_refused_in_one_line():
    message = make_actuator_set_message(make_actuator_set())
    message.actuators.joint_names[1] = "elbow\n" * 3000
    message.actuators.kp[1] = -1.0
    with pytest.raises(InputError, match=r"kp of elbow.* must be a number of 0 or more") as caught:
        ActuatorSet.from_message(message)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 5000


def test_a_report_of_refused_data_carries_the_findings():
    finding = find_definition("effort_sign").found("the effort of elbow is reversed", ["elbow"])
    message = make_identification_report(UnsafeDataError.from_findings([finding], ["bag"]), Path("run"))
    assert message.verdict == "failed" and "effort_sign" in message.reasons[0]
    (sent,) = message.findings
    fields = {name: getattr(sent, name) for name in sent.get_fields_and_field_types()}
    assert fields == finding.summary()


def test_dynamics_of_a_message_are_those_of_its_set():
    """Through the bytes that DDS transports."""
    parameters = identified()
    stored = serialize_message(make_parameter_set_message(parameters))
    dynamics = rdi.Dynamics.from_message(deserialize_message(stored, ParameterSetMsg))
    expected = rdi.make_dynamics(parameters)
    motion = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 20, len(parameters.robot.joint_names)))
    assert np.array_equal(dynamics.inverse_dynamics(*motion), expected.inverse_dynamics(*motion))
    assert np.array_equal(dynamics.mass_matrix(motion[0]), expected.mass_matrix(motion[0]))


def test_dynamics_of_a_hostile_message_are_refused():
    for name, (_, reason) in HOSTILE.items():
        with pytest.raises(InputError) as caught:
            rdi.Dynamics.from_message(hostile(name))
        assert re.search(reason, str(caught.value)), name
