# SPDX-License-Identifier: Apache-2.0
"""Comparison of robot descriptions by meaning: comments, order, indentation and spelling of numbers do not count."""

from __future__ import annotations

import hashlib
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.model.urdf import parse_xml

DIGITS = 12
"""Significant digits of numbers that are compared: what tools that rewrite a URDF keep."""

_ORIGIN = {"xyz": "0 0 0", "rpy": "0 0 0"}
_MOMENTS = dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), "0")


def is_same_robot(one: str, other: str) -> bool:
    """Whether two URDFs describe the same robot; see `hash_description`.

    Args:
        one: text of a URDF.
        other: text of a URDF.
    """
    return one == other or hash_description(one) == hash_description(other)


def hash_description(urdf: str, collisions: bool = False) -> str:
    """Hexadecimal SHA-256 of the content of a robot description.

    Compared are the name of the robot; name, mass, center of mass and inertia of the links; name, type, links, frame,
    axis, limits, damping, friction and mimic relation of the joints. Not compared are comments, order, white space,
    omitted defaults, visual elements, and elements of simulators and drivers.

    Args:
        urdf: text of a URDF; any other text is compared literally.
        collisions: whether collision geometry is compared, for motions that were checked for collisions.
    """
    try:
        content = json.dumps(_describe(parse_xml(urdf, "robot description"), collisions))
    except RobotDynIdError:
        content = urdf
    return hashlib.sha256(content.encode()).hexdigest()


def _describe(root: ElementTree.Element, collisions: bool) -> dict[str, Any]:
    """Content of a robot description as plain data."""
    links = {link.get("name", ""): _describe_link(link, collisions) for link in root.findall("link")}
    joints = {joint.get("name", ""): _describe_joint(joint) for joint in root.findall("joint")}
    return {"name": root.get("name", ""), "links": sorted(links.items()), "joints": sorted(joints.items())}


def _describe_link(link: ElementTree.Element, collisions: bool) -> list[Any]:
    shapes = sorted(json.dumps(_describe_element(shape)) for shape in link.findall("collision")) if collisions else []
    inertial = link.find("inertial")
    if inertial is None:
        return [None, shapes]
    origin = _read(inertial.find("origin"), _ORIGIN)
    mass = _read(inertial.find("mass"), {"value": "0"})
    return [[origin, mass, _read(inertial.find("inertia"), _MOMENTS)], shapes]


def _describe_joint(joint: ElementTree.Element) -> list[Any]:
    kind = joint.get("type", "")
    ends = [end.get("link", "") for end in (joint.find("parent"), joint.find("child")) if end is not None]
    origin = _read(joint.find("origin"), _ORIGIN)
    if kind == "fixed":  # all else has no effect
        return [kind, ends, origin]
    mimic = joint.find("mimic")
    return [
        *(kind, ends, origin),
        _read(joint.find("axis"), {"xyz": "1 0 0"}),
        None if joint.find("limit") is None else _read(joint.find("limit"), {"lower": "0", "upper": "0"}),
        _read(joint.find("dynamics"), {"damping": "0", "friction": "0"}),
        None if mimic is None else _read(mimic, {"multiplier": "1", "offset": "0"}),
    ]


def _read(element: ElementTree.Element | None, defaults: Mapping[str, str]) -> dict[str, str]:
    """Attributes of an element, with defaults for those that are omitted; numbers in one spelling."""
    given = {} if element is None else element.attrib
    return {name: _spell(text) for name, text in sorted({**defaults, **given}.items())}


def _describe_element(element: ElementTree.Element) -> list[Any]:
    """An element with everything in it, but its own name."""
    own = {name: text for name, text in element.attrib.items() if name != "name"}
    return [element.tag, _read(None, own), [_describe_element(child) for child in element]]


def _spell(text: str) -> str:
    """Numbers rounded to `DIGITS`, separated by one space; other text as it is."""
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        return text.strip()
    return " ".join(f"{number + 0.0:.{DIGITS}g}" for number in numbers)  # + 0.0: no negative zero
