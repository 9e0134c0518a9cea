"""The ParameterSet message, over real DDS with transient local durability."""

import time
from dataclasses import fields

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed: no ROS 2 here")
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg

from robot_dyn_id.errors import InputError
from robot_dyn_id.nodes.conversions import parameter_set, parameter_set_message
from robot_dyn_id.parameter_io import read_parameters, write_parameters
from robot_dyn_id.parameters import ParameterSet, urdf_hash

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def awkward_set() -> ParameterSet:
    """Values that a careless conversion would change: subnormal, infinite, NaN, 1/3, -0.0, unicode, matrices."""
    rng = np.random.default_rng(3)
    values = np.array([1 / 3, 5e-324, -0.0])
    urdf = "<robot name='bras_é'>\n</robot>\n"
    return ParameterSet(
        robot_name="bras_é", urdf=urdf, urdf_sha256=urdf_hash(urdf), joint_names=("a", "ß"),
        held_joint_names=("h",), held_joint_positions=np.array([0.1]), gravity=np.array([0.0, 0.1, -9.81]),
        body_names=("a",), names=("m1", "mx1", "fv1"),
        expressions=("m1 + m2", "mx1", "fv1"), units=("kg", "kg m", "N m s"),
        values=values, standard_deviations=np.array([np.inf, 1e-300, np.nan]), status=("not excited", "good", "weak"),
        covariance=rng.normal(size=(3, 3)), column_names=tuple(f"c{i}" for i in range(12)),
        mapping=rng.normal(size=(3, 12)), independent_columns=np.array([0, 1, 11], dtype=np.uint32),
        standard_parameters=rng.normal(size=10), physically_consistent=True, term_names=("viscous", "offset"),
        term_joints=("a", "a"), term_values=np.array([0.3, 0.7]), term_standard_deviations=np.array([np.inf, 0.1]),
        term_constant_names=("coulomb.smoothing_width",), term_constant_joints=("a",),
        term_constant_values=np.array([0.02]), sample_rate=1000 / 3, cutoff_frequency=4.1, filter_order=4,
        data_sources=("bag",), data_sha256="cd", estimator="weighted", software_version="0",
        held_out_nrmse=np.array([0.1, 0.2]), held_out_all_joints_nrmse=0.15, condition_number=float("inf"),
        condition_number_scaling="columns", verdict="suspect", reasons=("joint ß: …",), q_min=np.array([-1.0, 0]),
        q_max=np.array([1.0, 2]), dq_max=np.array([1.0, 2]), ddq_max=np.array([1.0, 2]),
    )  # fmt: skip


def assert_same(one: ParameterSet, other: ParameterSet) -> None:
    for item in fields(ParameterSet):
        a, b = getattr(one, item.name), getattr(other, item.name)
        if isinstance(a, np.ndarray):
            assert a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes(), item.name
        else:
            assert a == b and type(a) is type(b), item.name


def test_every_field_of_the_message_is_a_field_of_the_value():
    in_message = set(ParameterSetMsg.get_fields_and_field_types()) - {"header"}
    assert in_message == {item.name for item in fields(ParameterSet)}


def test_a_late_subscriber_gets_the_set_to_the_last_bit():
    """Publisher first, subscriber afterwards, in two contexts: only a latched topic over DDS can deliver it."""
    sent, received = awkward_set(), []
    contexts = [rclpy.Context(), rclpy.Context()]
    for context in contexts:
        rclpy.init(context=context)
    try:
        publisher_node = rclpy.create_node("source", context=contexts[0])
        publisher = publisher_node.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
        publisher.publish(parameter_set_message(sent))
        subscriber_node = rclpy.create_node("sink", context=contexts[1])
        subscriber_node.create_subscription(ParameterSetMsg, "identified_parameters", received.append, LATCHED)
        executor = SingleThreadedExecutor(context=contexts[1])
        executor.add_node(subscriber_node)
        deadline = time.monotonic() + 20
        while not received and time.monotonic() < deadline:
            executor.spin_once(timeout_sec=0.1)
        assert received, "nothing arrived within 20 s"
        assert_same(parameter_set(received[0]), sent)
        executor.shutdown()
    finally:
        for context in contexts:
            rclpy.shutdown(context=context)


def test_yaml_and_message_carry_the_same(tmp_path):
    write_parameters(tmp_path / "p.yaml", awkward_set())
    assert_same(parameter_set(parameter_set_message(read_parameters(tmp_path / "p.yaml"))), awkward_set())


@pytest.mark.parametrize("field", ["covariance", "mapping", "values", "standard_parameters"])
def test_a_message_whose_fields_do_not_fit_together_is_refused(field):
    message = parameter_set_message(awkward_set())
    setattr(message, field, getattr(message, field)[:-1])
    with pytest.raises(InputError, match=field):
        parameter_set(message)
