# SPDX-License-Identifier: Apache-2.0
"""Observation of a running ROS graph for `robot-dyn-id watch`: a node that only subscribes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from robot_dyn_id.errors import InputError
from robot_dyn_id.msg import (
    ExcitationStatus,
    ExternalTorque,
    IdentificationReport,
    ParameterSet,
    RecordingStatus,
    TorqueResidual,
)
from robot_dyn_id.nodes.runtime.decoding import decode
from robot_dyn_id.nodes.runtime.running import make_executor, spin

WINDOW_S = 2.0
"""Time over which rates and RMS residuals are computed [s]."""

DISCOVERY_PERIOD_S = 0.5
"""Time between two looks for new topics [s]."""

SILENT_S = 3.0
"""Age of the latest message at which a node or a stream is silent [s]; diagnostics come once a second."""

STREAMS = (JointState, TorqueResidual, ExternalTorque, RecordingStatus, ExcitationStatus)
"""Messages that are repeated as long as their publisher runs; others are published once."""

ARRAYS: Mapping[type, tuple[str, tuple[str, ...]]] = {
    TorqueResidual: ("joint_names", ("measured", "predicted", "residual", "standard_deviation")),
    ExternalTorque: ("joint_names", ("torque", "standard_deviation", "limit")),
}
"""Field with the names, and those with a value of each, of messages that are refused with other lengths."""

LATEST = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Subscriber to streams of publishers of either reliability."""

KEPT = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Subscriber to messages that publishers keep for those that come later."""

VOLATILE = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
"""Subscriber to diagnostics."""

OBSERVED: Mapping[type, QoSProfile] = {
    JointState: LATEST,
    TorqueResidual: LATEST,
    ExternalTorque: LATEST,
    RecordingStatus: KEPT,
    ExcitationStatus: KEPT,
    IdentificationReport: KEPT,
    ParameterSet: KEPT,
    DiagnosticArray: VOLATILE,
}
"""Message types of the topics that are observed, with the QoS of the subscription."""

LEVELS = ("ok", "warn", "error", "stale")
"""Levels of diagnostics."""

HISTORY = 10
"""Number of reports and parameter sets that are kept for the course of an identification."""


@dataclass
class _Topic:
    """Messages of a topic: arrival times of the latest ones [s], and some with their arrival times."""

    message_type: type
    arrivals: deque[float] = field(default_factory=lambda: deque(maxlen=4000))
    contents: deque[tuple[float, bytes]] = field(default_factory=lambda: deque(maxlen=1))

    def take(self, content: bytes) -> None:
        now = time.monotonic()
        self.arrivals.append(now)
        self.contents.append((now, content))

    def messages(self, window: float = np.inf) -> list[Any]:
        """Stored messages of the last `window` seconds that can be decoded, the oldest first, and always the latest.

        Raises:
            InputError: the latest cannot be decoded.
        """
        begin = min(time.monotonic() - window, self.contents[-1][0])
        stored = [content for arrival, content in list(self.contents) if arrival >= begin]
        found = []
        for content in stored[:-1]:
            with suppress(InputError):
                found.append(decode(content, self.message_type))
        return [*found, decode(stored[-1], self.message_type)]

    def age(self) -> float | None:
        """Time since the latest message [s]; None without one."""
        return time.monotonic() - self.arrivals[-1] if self.arrivals else None

    def rate(self) -> tuple[float, float]:
        """Rate [Hz] and standard deviation of the time between messages [s] in the window."""
        now = time.monotonic()
        recent = np.array([t for t in list(self.arrivals) if now - t <= WINDOW_S])
        if len(recent) < 3:
            return 0.0, 0.0
        steps = np.diff(recent)
        return float(1.0 / steps.mean()), float(steps.std())


class Watcher:
    """Observer of the topics of robots and of this package's nodes; a context manager that leaves the graph."""

    def __init__(self, namespace: str = "") -> None:
        """Join the graph.

        Args:
            namespace: absolute namespace whose topics are observed; empty: all of them.
        """
        self._namespace = namespace.rstrip("/")
        self._topics: dict[str, _Topic] = {}
        self._nodes: dict[str, tuple[float, Any]] = {}
        self._looked = -np.inf
        self._context = rclpy.Context()
        rclpy.init(context=self._context, args=[], signal_handler_options=SignalHandlerOptions.NO)
        self._node = Node("robot_dyn_id_watch", context=self._context, start_parameter_services=False)
        self._executor = make_executor(self._context)
        self._executor.add_node(self._node)

    def __enter__(self) -> Watcher:
        """The watcher itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the graph."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def observe(self, seconds: float) -> None:
        """Receive messages for a while, and subscribe to new topics."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            if now - self._looked >= DISCOVERY_PERIOD_S:
                self._looked = now
                self._discover()
            spin(self._executor, lambda: False, min(DISCOVERY_PERIOD_S, end - now))

    def _discover(self) -> None:
        """Subscribe to the topics of observed types."""
        types = {f"{one.__module__.partition('.')[0]}/msg/{one.__name__}": one for one in OBSERVED}
        for name, found in self._node.get_topic_names_and_types():
            inside = not self._namespace or name.startswith(f"{self._namespace}/")
            known = next((types[word] for word in found if word in types), None)
            if known is None or name in self._topics or not (inside or known is DiagnosticArray):
                continue
            if not self._node.count_publishers(name):
                continue
            topic = _Topic(known)
            if known in (TorqueResidual, IdentificationReport, ParameterSet):
                topic.contents = deque(maxlen=HISTORY if known is not TorqueResidual else topic.arrivals.maxlen)
            self._topics[name] = topic
            take = partial(self._take_diagnostics, topic, inside) if known is DiagnosticArray else topic.take
            self._node.create_subscription(known, name, take, OBSERVED[known], raw=True)

    def _take_diagnostics(self, topic: _Topic, inside: bool, content: bytes) -> None:
        topic.take(content)
        if _refusal(topic):
            return
        for status in topic.messages()[-1].status:
            if inside or status.name.startswith(f"{self._namespace}/"):  # a topic of all robots
                self._nodes[status.name] = (time.monotonic(), status)

    def snapshot(self) -> dict[str, Any]:
        """Present state of the graph, ready for JSON.

        Returns:
            `joint_states`, `recordings`, `excitations`, `residuals`, `external_torques`, `identifications` and
            `models`: lists with one entry per topic; `refused`: topics whose latest message cannot be used, and why;
            and `nodes`: their diagnostics.
        """
        found: dict[str, Any] = {"namespace": self._namespace or "/", "time": time.time()}
        for key, message_type, describe in (
            ("joint_states", JointState, _joint_states),
            ("recordings", RecordingStatus, _recording),
            ("excitations", ExcitationStatus, _excitation),
            ("residuals", TorqueResidual, _residual),
            ("external_torques", ExternalTorque, _external_torque),
            ("identifications", IdentificationReport, _identification),
            ("models", ParameterSet, _model),
        ):
            found[key] = [
                _entry(name, topic, describe, self._node.count_publishers(name))
                for name, topic in sorted(self._topics.items())
                if topic.message_type is message_type and topic.contents and not _refusal(topic)
            ]
        found["refused"] = [
            {"topic": name, "reason": reason}
            for name, topic in sorted(self._topics.items())
            if topic.contents and (reason := _refusal(topic))
        ]
        now = time.monotonic()
        found["nodes"] = [
            {
                "name": name,
                "level": "silent" if now - heard > SILENT_S else _level(status.level),
                "message": status.message,
                "age": now - heard,
                "values": {item.key: item.value for item in status.values},
            }
            for name, (heard, status) in sorted(self._nodes.items())
        ]
        return found


def _entry(name: str, topic: _Topic, describe: Callable[[list[Any], _Topic], dict[str, Any]], publishers: int) -> Any:
    """Entry of a topic; nothing of a silent one is shown as its present state.

    Args:
        name: name of the topic.
        topic: its messages, at least one.
        describe: makes the content of the entry.
        publishers: number of its publishers.
    """
    age = topic.age()
    silent = publishers == 0 or (topic.message_type in STREAMS and (age is None or age > SILENT_S))
    messages = topic.messages(0.0 if topic.message_type in STREAMS else np.inf)
    found = {"topic": name, "age": age, "silent": silent, **describe(messages, topic)}
    if silent and "state" in found:
        found["state"], found["last_state"] = "silent", found["state"]
    if silent and topic.message_type in (TorqueResidual, ExternalTorque):
        found["joints"] = [{key: one[key] if key == "joint" else None for key in one} for one in found["joints"]]
        found |= {key: None for key in ("contact", "learning") if key in found}
    return found


def _refusal(topic: _Topic) -> str:
    """Why the latest message cannot be used: damage, or an array that has not one value per name; empty if it can."""
    try:
        latest = topic.messages(0.0)[-1]
    except InputError as error:
        return str(error)
    if topic.message_type not in ARRAYS:
        return ""
    names, arrays = ARRAYS[topic.message_type]
    count = len(getattr(latest, names))
    wrong = [f"{len(getattr(latest, name))} of {name}" for name in arrays if len(getattr(latest, name)) != count]
    return f"{count} {names}, and {', '.join(wrong)}" if wrong else ""


def _joint_states(messages: list[Any], topic: _Topic) -> dict[str, Any]:
    rate, jitter = topic.rate()
    latest = messages[-1]
    fields = [name for name in ("position", "velocity", "effort") if len(getattr(latest, name))]
    return {"rate": rate, "jitter": jitter, "joints": list(latest.name), "fields": fields}


def _recording(messages: list[Any], topic: _Topic) -> dict[str, Any]:
    latest = messages[-1]
    return {
        "recorder": latest.recorder,
        "state": _constant(RecordingStatus, latest.state, ("IDLE", "RECORDING", "FINISHED", "FAILED", "PAUSED")),
        "reason": latest.reason,
        "folder": latest.folder,
        "messages": int(sum(latest.counts)),
        "lost": int(sum(latest.lost)),
        "rates": dict(zip(latest.topics, map(float, latest.rates), strict=False)),
    }


def _excitation(messages: list[Any], topic: _Topic) -> dict[str, Any]:
    latest = messages[-1]
    states = (
        *("WAITING", "READY", "APPROACHING", "RUNNING", "PAUSED", "STOPPING", "DONE", "FAULT"),
        "RETURNING",
    )
    return {
        "node": latest.node,
        "state": _constant(ExcitationStatus, latest.state, states),
        "reason": latest.reason,
        "elapsed": float(latest.elapsed),
        "duration": float(latest.duration),
        "rehearsing": bool(latest.rehearsing),
        "worst_margin": float(latest.worst_margin),
        "worst_margin_cause": latest.worst_margin_cause,
        "tracking_error": dict(zip(latest.joint_names, map(float, latest.tracking_error), strict=False)),
    }


def _residual(messages: list[Any], topic: _Topic) -> dict[str, Any]:
    latest = messages[-1]
    alike = [one.residual for one in topic.messages(WINDOW_S) if list(one.joint_names) == list(latest.joint_names)]
    rest = np.array([residual for residual in alike if len(residual) == len(latest.joint_names)])
    return {"rate": topic.rate()[0], "joints": _joints(latest, rms=np.sqrt(np.mean(rest**2, axis=0)))}


def _external_torque(messages: list[Any], topic: _Topic) -> dict[str, Any]:
    latest = messages[-1]
    return {
        "rate": topic.rate()[0],
        "contact": bool(latest.contact),
        "contact_joints": list(latest.contact_joints),
        "learning": float(latest.learning),
        "joints": _joints(latest),
    }


def _joints(message: Any, **further: Any) -> list[dict[str, Any]]:
    """The values of each joint in a message of `ARRAYS`, and further ones, by their names."""
    names, arrays = ARRAYS[type(message)]
    columns = {**{name: getattr(message, name) for name in arrays}, **further}
    return [
        {"joint": joint, **{name: float(values[place]) for name, values in columns.items()}}
        for place, joint in enumerate(getattr(message, names))
    ]


def _identification(messages: list[Any], topic: _Topic) -> dict[str, Any]:
    latest = messages[-1]
    return {
        "verdict": latest.verdict,
        "all_joints_nrmse": float(latest.held_out_all_joints_nrmse),
        "history": [float(one.held_out_all_joints_nrmse) for one in messages],
        "condition_number": float(latest.condition_number),
        "findings": [f"{one.severity} {one.code}" for one in latest.findings],
        "folder": latest.folder,
    }


def _model(messages: list[Any], topic: _Topic) -> dict[str, Any]:
    """Number of well-identified parameters, and the change from the set before in standard deviations."""
    latest, names = messages[-1], list(messages[-1].base.names)
    values, sigma = np.array(latest.estimate.values), np.array(latest.estimate.standard_deviations)
    change = None
    same = len(messages) > 1 and list(messages[-2].base.names) == names
    if same and len(messages[-2].estimate.values) == len(values) == len(sigma):
        known = np.isfinite(sigma) & (sigma > 0.0)
        steps = np.abs(values - np.array(messages[-2].estimate.values))[known] / sigma[known]
        change = float(steps.max(initial=0.0))
    return {
        "robot": latest.robot.name,
        "verdict": latest.judgment.verdict,
        "estimator": latest.provenance.estimator,
        "parameters": len(names),
        "good": sum(word == "good" for word in latest.estimate.status),
        "largest_change": change,
    }


def _level(value: bytes) -> str:
    """Word of a level of diagnostics."""
    number = int.from_bytes(value, "little")
    return LEVELS[number] if number < len(LEVELS) else f"level {number}"


def _constant(message_type: Any, value: int, names: tuple[str, ...]) -> str:
    """Name of a constant of a message, in lower case."""
    return next((name.lower() for name in names if getattr(message_type, name) == value), str(value))
