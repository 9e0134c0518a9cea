# SPDX-License-Identifier: Apache-2.0
"""SROS2 access policy of the nodes, made from the interfaces that they declare.

`python -m robot_dyn_id.nodes.access_policy [NAMESPACE] > config/sros2_policy.xml`
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable

from robot_dyn_id.nodes.runtime.managed_node import EVENTS, SERVICES, ManagedNode
from robot_dyn_id.nodes.runtime.robot_node import (
    CALLS,
    DIAGNOSTICS,
    EXECUTES,
    PUBLISHES,
    SENDS,
    SERVES,
    SUBSCRIBES,
    RobotNode,
)
from robot_dyn_id.nodes.tables import NODES

ENCLAVES = "/robot_dyn_id"
"""Path above the enclaves; each node has one of its own, `--ros-args --enclave /robot_dyn_id/recorder`."""

RULES = {
    SUBSCRIBES: ("topics", "topic", "subscribe"),
    PUBLISHES: ("topics", "topic", "publish"),
    SERVES: ("services", "service", "reply"),
    EXECUTES: ("actions", "action", "execute"),
    SENDS: ("actions", "action", "call"),
    CALLS: ("services", "service", "request"),
}
"""Elements and permission of each kind of interface."""

EVERY_NODE = {
    SUBSCRIBES: ("/clock", DIAGNOSTICS.name),
    PUBLISHES: ("/parameter_events", "/rosout"),
    SERVES: (
        "~/describe_parameters",
        "~/get_parameter_types",
        "~/get_parameters",
        "~/get_type_description",
        "~/list_parameters",
        "~/set_parameters",
        "~/set_parameters_atomically",
    ),
}
"""Interfaces that rclpy creates for every node, and without which it does not start; and `/diagnostics`, on which a
node looks for another one of its name."""

MANAGED_NODE = {PUBLISHES: (EVENTS,), SERVES: SERVICES}
"""Interfaces that rclpy creates for every node with lifecycle states."""

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!-- Least permissions of the nodes of robot_dyn_id, for `ros2 security create_permission` (docs/security.md).
     Generated from the interfaces that the nodes declare; do not edit, but regenerate for another namespace:
     python -m robot_dyn_id.nodes.access_policy NAMESPACE
     Checked against the node graph, but not tested under security. Names that are remapped, and further topics of the
     recorder, have to be added. -->
"""


def make_policy(namespace: str = "/") -> str:
    """SROS2 policy (XML) of all nodes in a namespace."""
    root = ElementTree.Element("policy", version="0.2.0")
    enclaves = ElementTree.SubElement(root, "enclaves")
    for node in NODES:
        enclave = ElementTree.SubElement(enclaves, "enclave", path=f"{ENCLAVES}/{node.NAME}")
        profiles = ElementTree.SubElement(enclave, "profiles")
        for name, made in {node.NAME: node, **node.COMPANIONS}.items():
            _add_rules(ElementTree.SubElement(profiles, "profile", ns=namespace, node=name), made)
    ElementTree.indent(root)
    return f"{HEAD}{ElementTree.tostring(root, encoding='unicode')}\n"


def _add_rules(profile: ElementTree.Element, node: type[RobotNode]) -> None:
    """Add the permissions of a node."""
    for kind, (group, element, permission) in RULES.items():
        names = _names(node, kind)
        if names:
            rules = ElementTree.SubElement(profile, group, {permission: "ALLOW"})
            for name in names:
                ElementTree.SubElement(rules, element).text = name


def _names(node: type[RobotNode], kind: str) -> list[str]:
    """Sorted names of the interfaces of one kind.

    Raises:
        KeyError: the node declares a kind of interface for which there is no permission.
    """
    declared: Iterable[str] = (item.name for item in (*node.INTERFACES, DIAGNOSTICS) if RULES[item.kind] == RULES[kind])
    managed = MANAGED_NODE.get(kind, ()) if issubclass(node, ManagedNode) else ()
    return sorted({*declared, *EVERY_NODE.get(kind, ()), *managed})


if __name__ == "__main__":
    print(make_policy(sys.argv[1] if len(sys.argv) > 1 else "/"), end="")
