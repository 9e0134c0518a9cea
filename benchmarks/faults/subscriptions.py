# SPDX-License-Identifier: Apache-2.0
"""Fuzzed bytes on every live subscription of every node, whether of another version of the type or damaged.

What must hold: no node ends, none meets an exception that its code does not expect, what cannot be decoded is reported,
and the subscription goes on to receive.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from faults import ROOT
from faults import mutations as mutate
from faults.results import Result

sys.path.insert(0, str(ROOT / "test"))

PROMISE = "refused with the reason, no node ends or is in fault, goes on to receive"

BATCH = 5
"""Most messages that are published before all of them must have arrived."""

ARRIVAL_S = 30.0
"""Longest time until messages arrive."""

TRUNCATED = b"\x00\x01\x00\x00\xff"
"""Bytes that are not a message of any type."""

RECORDED = {("identifier", "/joint_states"), ("gravity_calibrator", "/joint_states")}
"""Topics whose bytes are recorded and not decoded, by node."""


def nodes(folder: Path) -> dict[str, tuple[Any, dict[str, object]]]:
    """Classes and parameters of nodes by a name of their own, so that every subscription of `INTERFACES` is live."""
    from robot_dyn_id.nodes.computed_torque_controller import ComputedTorqueController
    from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
    from robot_dyn_id.nodes.external_torque_estimator import ExternalTorqueEstimator
    from robot_dyn_id.nodes.gravity_calibrator import GravityCalibrator
    from robot_dyn_id.nodes.gravity_compensator import GravityCompensator
    from robot_dyn_id.nodes.identifier import Identifier
    from robot_dyn_id.nodes.marker_publisher import MarkerPublisher
    from robot_dyn_id.nodes.payload_identifier import PayloadIdentifier
    from robot_dyn_id.nodes.recorder import Recorder
    from robot_dyn_id.nodes.simulator import Simulator
    from robot_dyn_id.nodes.torque_residual_monitor import TorqueResidualMonitor

    return {
        "computed_torque_controller": (ComputedTorqueController, {}),
        "gravity_compensator": (GravityCompensator, {}),
        "gravity_calibrator": (GravityCalibrator, {"folder": folder / "gravity"}),
        "simulator": (Simulator, {}),
        "simulator of a model": (Simulator, {"model": "parameters"}),
        "simulator of actuators": (Simulator, {"model": "actuators", "actuator_draw": 1}),
        "excitation_publisher": (ExcitationPublisher, {"feed_forward": "identified_parameters"}),
        "recorder": (Recorder, {"start": False, "folder": folder / "bag", "topics": "[joint_states]"}),
        "identifier": (Identifier, {"folder": folder / "identified"}),
        "torque_residual_monitor": (TorqueResidualMonitor, {}),
        "external_torque_estimator": (ExternalTorqueEstimator, {}),
        "payload_identifier": (PayloadIdentifier, {"folder": folder / "payload", "link": "l3"}),
        "marker_publisher": (MarkerPublisher, {}),
    }


def fuzzed(message: Any, rng: random.Random) -> bytes:
    """Bytes made from a valid message: other values, damaged bytes, or both."""
    from rclpy.serialization import serialize_message

    if rng.random() < 0.5:
        changed = mutate.mutate_message(message, rng)
        try:
            data = serialize_message(changed)
        except Exception:  # what the libraries of ROS raise has no common base
            data = serialize_message(message)
        if rng.random() < 0.5:
            return bytes(data)
    else:
        data = serialize_message(message)
    return mutate.mutate_bytes(bytes(data), rng)


class _Tap:
    """Publisher to a live subscription, and a count of what it has received."""

    def __init__(self, world: Any, subscription: Any) -> None:
        from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

        self._world, self._subscription, self._count = world, subscription, 0
        self._callback: Callable[..., None] = subscription.callback

        @functools.wraps(self._callback)  # rclpy reads from the signature whether it takes information on the message
        def take(*arguments: Any) -> None:
            self._count += 1
            self._callback(*arguments)

        subscription.callback = take
        profile = QoSProfile(
            depth=100, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        self._publisher = world.probe.create_publisher(subscription.msg_type, subscription.topic_name, profile)
        world.until(self._publisher.get_subscription_count, what=f"subscription of {subscription.topic_name}")

    def send(self, messages: Sequence[bytes]) -> None:
        """Publish bytes, and wait until they have been received."""
        size = min(BATCH, self._subscription.qos_profile.depth)
        for first in range(0, len(messages), size):
            batch = messages[first : first + size]
            wanted = self._count + len(batch)
            for data in batch:
                self._publisher.publish(data)
            self._world.until(lambda wanted=wanted: self._count >= wanted, ARRIVAL_S, "arrival of a message")

    def close(self) -> None:
        """Take the publisher away."""
        self._world.probe.destroy_publisher(self._publisher)
        self._subscription.callback = self._callback


def run(world: Any, folder: Path, runs: int, chosen: Sequence[str] = ()) -> list[Result]:
    """Fuzz the subscriptions of nodes in the process of the suite.

    Args:
        world: world of `ros_world`.
        folder: for what the nodes write.
        runs: number of messages on each subscription.
        chosen: names of `nodes`; empty: all.
    """
    return list(_rows(world, folder, runs, chosen))


def _rows(world: Any, folder: Path, runs: int, chosen: Sequence[str]) -> Iterator[Result]:
    world.faults_expected = True  # they are failures of their row, and not of the world
    known, samples = nodes(folder), _samples()
    for name in chosen or known:
        make, parameters = known[name]
        words = [word for key, value in parameters.items() for word in ("-p", f"{key}:={_yaml(value)}")]
        node = world.add(make, *words)
        for topic in sorted(one.topic_name for one in node.subscriptions):
            broken = _break(world, node, topic, runs, samples)
            yield Result(PROMISE, f"fuzzed bytes, {name}, {topic}", runs, int(bool(broken)), notes=broken)
            print(f"  {name}, {topic}: {', '.join(broken) or 'kept'}", flush=True)
            if broken:
                world.remove(node)
                node = world.add(make, *words)
        world.remove(node)


def _samples() -> list[Any]:
    """Valid messages of the types that nodes make much of; of other types, those of default values are valid."""
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String
    from support.commanded import make_actuator_set
    from support.model_nodes import identified, message

    from robot_dyn_id.nodes.messages.conversions import make_actuator_set_message

    parameters = identified()
    rest = [0.1] * len(parameters.robot.joint_names)
    state = JointState(name=list(parameters.robot.joint_names), position=rest, velocity=rest, effort=rest)
    return [message(), make_actuator_set_message(make_actuator_set()), String(data=parameters.robot.urdf), state]


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _break(world: Any, node: Any, topic: str, runs: int, samples: Sequence[Any]) -> tuple[str, ...]:
    """Fuzz one subscription of a node; returns what did not hold."""
    from rclpy.serialization import serialize_message

    subscription = next(one for one in node.subscriptions if one.topic_name == topic)
    valid = next((one for one in samples if isinstance(one, subscription.msg_type)), None) or subscription.msg_type()
    rng, refused, refuse = random.Random(f"{node.get_name()} {topic}"), [], node.refuse
    tap = _Tap(world, subscription)
    try:
        tap.send([bytes(serialize_message(valid)), *(fuzzed(valid, rng) for _ in range(runs))])
        node.refuse = lambda what: (refused.append(what), refuse(what))
        tap.send([TRUNCATED])
    except Exception as error:
        return (" ".join(str(error).split())[:200],)
    finally:
        node.refuse = refuse
        tap.close()
    found = [node.internal_error] if node.internal_errors else []
    found += [f"ended: {node.end}"] if node.end is not None else []
    if (node.get_name(), topic) not in RECORDED and not any("damaged" in what for what in refused):
        found.append("what cannot be decoded is not reported")
    return tuple(found)
