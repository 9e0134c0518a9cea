# SPDX-License-Identifier: Apache-2.0
"""MJCF files, MuJoCo's format, as plain URDF: bodies, joints, inertias and limits, as Pinocchio reads them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.errors import ModelError

ROOT = "mujoco"
"""Root element of an MJCF file."""

BASE = "base_of_mjcf"
"""Name of the root link where the file has no body that does not move."""

UNLIMITED = 0.0
"""Effort and velocity limits that the file does not have, a placeholder of URDFs: infinite numbers are not allowed."""


def convert_mjcf(path: Path) -> str:
    """Read an MJCF file and write it as the text of a plain URDF.

    A free joint between world and first body is left out: the base is fixed, as that of every URDF. The armature of
    joints, actuators, contacts, equality constraints and shapes have no place in a URDF and are not read.

    Args:
        path: the file; files that it includes are read too, meshes are not.

    Raises:
        ModelError: Pinocchio cannot read the file, or it has a joint with several degrees of freedom or a slide
            joint without range.
    """
    import pinocchio

    try:
        model = pinocchio.buildModelFromMJCF(str(path))
    except Exception as error:  # any of the C++ reader
        reason = " ".join(str(error).split())[:200] or "rejected by Pinocchio"
        raise ModelError(f"{path}: broken MJCF ({reason})") from None
    free = _find_free_joint(model)
    root = ElementTree.Element("robot", name=model.name or path.stem)
    links = _name_links(model, free)
    for name in dict.fromkeys(links):
        ElementTree.SubElement(root, "link", name=name)
    elements = {element.get("name"): element for element in root.findall("link")}
    for number in range(1, model.njoints):
        if number == free:
            continue
        _add_inertia(elements[links[number]], model.inertias[number])
        parent = int(model.parents[number])
        _add_joint(root, model, number, links[0 if parent == free else parent], links[number], path)
    for frame in model.frames:
        if frame.type == pinocchio.BODY and frame.name not in elements:
            parent = int(frame.parentJoint)
            _add_fixed(root, frame, links[0 if parent == free else parent])
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode")


def _find_free_joint(model: Any) -> int:
    """Number of the free joint of the base; -1 if there is none."""
    free = model.njoints > 1 and model.joints[1].nv == 6 and int(model.parents[1]) == 0
    return 1 if free else -1


def _name_links(model: Any, free: int) -> list[str]:
    """Names of the links that joints move, with that of the base first, by number of the joint."""
    import pinocchio

    links = [""] * model.njoints
    for frame in model.frames:
        number = int(frame.parentJoint)
        if frame.type == pinocchio.BODY and not links[number]:
            links[number] = frame.name
    if free >= 0:
        links[0] = links[free]
    links[0] = links[0] or BASE
    return [name or f"link_of_{model.names[number]}" for number, name in enumerate(links)]


def _add_inertia(link: ElementTree.Element, inertia: Any) -> None:
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=_format(inertia.lever))
    ElementTree.SubElement(inertial, "mass", value=_format([inertia.mass]))
    moments = np.asarray(inertia.inertia)
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    attributes = {name: _format([moments["xyz".index(name[1]), "xyz".index(name[2])]]) for name in names}
    ElementTree.SubElement(inertial, "inertia", attributes)


def _add_joint(root: ElementTree.Element, model: Any, number: int, parent: str, child: str, path: Path) -> None:
    """Add a hinge or slide with axis, limits, damping and friction.

    Raises:
        ModelError: a joint with several degrees of freedom, or a slide joint without range.
    """
    joint, name = model.joints[number], model.names[number]
    if joint.nv != 1:
        raise ModelError(f"{path}: joint {name} has {joint.nv} degrees of freedom; only hinge and slide joints do")
    data = joint.createData()
    joint.calc(data, np.array([1.0, 0.0]) if joint.nq == 2 else np.zeros(1))
    subspace = np.asarray(data.S, dtype=np.float64).reshape(6)
    slides = np.linalg.norm(subspace[:3]) > 0.5
    lower, upper = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
    limited = joint.nq == 1 and np.isfinite([lower, upper]).all()
    kind = "prismatic" if slides else "revolute" if limited else "continuous"
    element = ElementTree.SubElement(root, "joint", name=name, type=kind)
    _place(element, model.jointPlacements[number], parent, child)
    ElementTree.SubElement(element, "axis", xyz=_format(subspace[:3] if slides else subspace[3:]))
    effort = model.effortLimit[joint.idx_v]
    limit = {"effort": _format([effort if np.isfinite(effort) else UNLIMITED]), "velocity": _format([UNLIMITED])}
    if limited:
        limit |= {"lower": _format([lower]), "upper": _format([upper])}
    elif slides:
        raise ModelError(f"{path}: slide joint {name} has no range; add one")
    ElementTree.SubElement(element, "limit", limit)
    damping, friction = model.damping[joint.idx_v], model.friction[joint.idx_v]
    ElementTree.SubElement(element, "dynamics", damping=_format([damping]), friction=_format([friction]))


def _add_fixed(root: ElementTree.Element, frame: Any, parent: str) -> None:
    """Add a body that is fixed to a moving one, whose inertia is part of that of the moving one, as a frame."""
    ElementTree.SubElement(root, "link", name=frame.name)
    element = ElementTree.SubElement(root, "joint", name=f"fixes_{frame.name}", type="fixed")
    _place(element, frame.placement, parent, frame.name)


def _place(joint: ElementTree.Element, placement: Any, parent: str, child: str) -> None:
    import pinocchio

    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    angles = pinocchio.rpy.matrixToRpy(placement.rotation)
    ElementTree.SubElement(joint, "origin", xyz=_format(placement.translation), rpy=_format(angles))


def _format(numbers: Any) -> str:
    return " ".join(repr(float(number)) for number in numbers)
