# SPDX-License-Identifier: Apache-2.0
"""A reader of exported SDF, by its specification: the same robot as the text of a URDF."""

import warnings
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation


def _numbers(text):
    return np.array([float(word) for word in text.split()])


def _text(values):
    return " ".join(f"{value:.17g}" for value in values)


def _pose(element):
    """Position, and roll, pitch, yaw of a pose by quaternion x y z w."""
    assert element.get("rotation_format") == "quat_xyzw"
    values = _numbers(element.text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # angles are not unique at a pitch of 90 degrees; any of them will do
        return values[:3], Rotation.from_quat(values[3:]).as_euler("xyz")


def urdf_of(text):
    """Text of a URDF with the links and joints of an SDF world, and the gravity vector of the world."""
    world = ElementTree.fromstring(text).find("world")
    (model,) = world.findall("model")
    links, joints = {link.get("name"): link for link in model.findall("link")}, model.findall("joint")
    (root,) = [joint for joint in joints if joint.get("type") == "fixed"]
    assert root.findtext("parent") == "world"
    robot = ElementTree.Element("robot", name=model.get("name"))
    for name, link in links.items():
        new = ElementTree.SubElement(robot, "link", name=name)
        given = link.find("inertial")
        if given is None:
            continue
        inertial = ElementTree.SubElement(new, "inertial")
        center = _numbers(given.findtext("pose"))
        ElementTree.SubElement(inertial, "origin", xyz=_text(center[:3]), rpy=_text(center[3:]))
        ElementTree.SubElement(inertial, "mass", value=given.findtext("mass").strip())
        tensor = {part.tag: part.text for part in given.find("inertia")}
        ElementTree.SubElement(inertial, "inertia", **tensor)
    for joint in joints:
        if joint is not root:
            robot.append(_joint(joint, links))
    return ElementTree.tostring(robot, encoding="unicode"), _numbers(world.findtext("gravity"))


def _joint(joint, links):
    """A joint whose frame is that of its child link, which is placed relative to its parent link."""
    child, parent, axis = joint.findtext("child"), joint.findtext("parent"), joint.find("axis")
    pose = links[child].find("pose")
    assert pose.get("relative_to") == parent
    position, angles = _pose(pose)
    limits = {part.tag: part.text for part in axis.find("limit")} if axis.find("limit") is not None else {}
    kind = joint.get("type") if joint.get("type") == "prismatic" or "lower" in limits else "continuous"
    new = ElementTree.Element("joint", name=joint.get("name"), type=kind)
    ElementTree.SubElement(new, "parent", link=parent)
    ElementTree.SubElement(new, "child", link=child)
    ElementTree.SubElement(new, "origin", xyz=_text(position), rpy=_text(angles))
    ElementTree.SubElement(new, "axis", xyz=axis.findtext("xyz"))
    ElementTree.SubElement(new, "limit", **{"effort": "0", "velocity": "0"} | limits)
    for tag in ("dynamics",):
        if axis.find(tag) is not None:
            ElementTree.SubElement(new, tag, **{part.tag: part.text for part in axis.find(tag)})
    mimic = axis.find("mimic")
    if mimic is not None:
        assert (mimic.get("axis"), mimic.findtext("reference")) == ("axis", "0")
        law = {tag: mimic.findtext(tag) for tag in ("multiplier", "offset")}
        ElementTree.SubElement(new, "mimic", joint=mimic.get("joint"), **law)
    return new
