# SPDX-License-Identifier: Apache-2.0
"""The page about the nodes, made from what they declare: `python -m robot_dyn_id.nodes.tables > docs/nodes.md`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING
from typing import Any

from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

from robot_dyn_id.nodes.computed_torque_controller import ComputedTorqueController
from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
from robot_dyn_id.nodes.identifier import Identifier
from robot_dyn_id.nodes.recorder import Recorder
from robot_dyn_id.nodes.runtime.robot_node import DIAGNOSTICS, Interface, RobotNode
from robot_dyn_id.nodes.runtime.ros_parameters import Row, table
from robot_dyn_id.nodes.simulator import Simulator
from robot_dyn_id.nodes.torque_residual_monitor import TorqueResidualMonitor

NODES: tuple[type[RobotNode], ...] = (
    ExcitationPublisher,
    Simulator,
    Recorder,
    Identifier,
    ComputedTorqueController,
    TorqueResidualMonitor,
)
"""All nodes, in the order in which data pass them."""

HEAD = """# The nodes

Made from what the nodes declare; do not edit (`python -m robot_dyn_id.nodes.tables > docs/nodes.md`).

Names of topics and services are relative: they follow the namespace of the node and can be remapped. Parameters are
set in YAML or with `-p name:=value` when a node is started and cannot be changed afterwards; an unknown name, a wrong
type or a value out of range is refused with a reason. `use_sim_time` (true or false) works everywhere.

Only one node of a full name (namespace and name) may run, since services such as `~/start` would reach either of two.
The values `instance` and `process` in `diagnostics` tell them apart: the one that started later ends with exit code 3
and names the process of the other. One that has been silent for 2.5 s is taken for the remains of a killed process,
which the middleware forgets after some 20 s. Until a node knows to be alone, 1 s after its process has joined the
graph, it does not command a robot; while two are alive, `~/start` is refused and the excitation publisher stops the
robot.
"""


def markdown() -> str:
    """The page."""
    return "\n".join([HEAD, *(_node(node) for node in NODES)])


def _node(node: type[RobotNode]) -> str:
    interfaces = [_interface(item) for item in (*node.INTERFACES, DIAGNOSTICS)]
    parameters = [_parameter(row) for row in table(node.SETTINGS)]
    return "\n".join(
        [
            f"## {node.NAME}",
            "",
            f"`ros2 run robot_dyn_id {node.NAME}`: {node.PURPOSE}.",
            "",
            *_grid(("", "name", "type", "QoS", "what"), interfaces),
            "",
            *_grid(("parameter", "type", "default", "unit", "allowed", "what"), parameters),
            "",
        ]
    )


def _grid(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _interface(item: Interface) -> tuple[str, ...]:
    return item.kind, f"`{item.name}`", _type(item.type), _qos(item), item.text


def _type(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    package, group, *_ = kind.__module__.split(".")
    return f"{package}/{group}/{kind.__name__}"


def _qos(item: Interface) -> str:
    if item.qos is None:
        return ""
    reliable = item.qos.reliability == ReliabilityPolicy.RELIABLE
    latched = item.qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
    return ", ".join([*(["reliable"] if reliable else ["best effort"]), *(["transient local"] if latched else [])])


def _parameter(row: Row) -> tuple[str, ...]:
    default = "" if row.default is MISSING else f"`{_literal(row.default)}`"
    return f"`{row.name}`", row.type_name, default, row.rule.unit, row.rule.constraint(), row.rule.description


def _literal(value: Any) -> str:
    """A default as YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value) if value != "" else '""'


if __name__ == "__main__":
    print(markdown(), end="")
