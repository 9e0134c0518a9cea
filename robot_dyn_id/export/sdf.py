# SPDX-License-Identifier: Apache-2.0
"""SDF, the format of Gazebo: links, joints, inertias, friction; no shapes (sdformat.org, version 1.11)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import convert_to_central
from robot_dyn_id.dynamics.terms.laws import SIGN, VISCOUS
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.model import Exported, ExportModel
from robot_dyn_id.export.urdf import format_numbers
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.model.quaternions import convert_to_quaternions
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet

NAME_NOT_EXPORTED = Definition(
    "name_not_exported",
    Section.PREDICTION,
    "info",
    "The format reserves a joint's name, or has it already: the joint is written with another one.",
    "use the name of the message where the exported file is used",
)

PLACES = {VISCOUS: "damping", SIGN: "friction"}
"""Friction laws that `<dynamics>` carries."""

VERSION = "1.11"
"""Version of SDF; poses by quaternions need 1.9, mimic joints 1.11."""

BASE_LINK, FIXED_JOINT = "base", "fixed_to_world"
"""Names of the link that is fixed to the world, and of the joint that does."""

RESERVED = re.compile(r"__.*__|world")
"""Names that SDF keeps for itself."""


@dataclass(frozen=True)
class _Names:
    """Names of the bodies' joints and links: unique in the file, for SDF has one scope for both, and none reserved."""

    joints: tuple[str, ...]
    links: tuple[str, ...]

    @classmethod
    def from_model(cls, model: RobotModel) -> _Names:
        """Names of the URDF's joints, where SDF allows them, and links named after them."""
        taken = {BASE_LINK, FIXED_JOINT}
        plain = [name for name in model.body_names if _is_allowed(name) and name not in taken]
        taken.update(plain)
        joints = tuple(name if name in plain else _free(_allowed(name), taken) for name in model.body_names)
        return cls(joints, tuple(_free(f"{name}_link", taken) for name in joints))

    def link(self, body: int) -> str:
        """Name of the link of a body; -1: the base."""
        return self.links[body] if body >= 0 else BASE_LINK

    def report(self, model: RobotModel) -> tuple[Finding, ...]:
        """Finding about joints that have other names than in the URDF."""
        pairs = zip(model.body_names, self.joints, strict=True)
        changed = {name: new for name, new in pairs if name != new}
        if not changed:
            return ()
        listed = ", ".join(f"{name!r} is written as {new!r}" for name, new in changed.items())
        return (NAME_NOT_EXPORTED.found(f"SDF does not allow every name: {listed}", tuple(changed)),)


def _is_allowed(name: str) -> bool:
    return "::" not in name and not RESERVED.fullmatch(name)


def _allowed(name: str) -> str:
    """A name like another one that SDF allows."""
    name = name.replace("::", "_")
    return name if _is_allowed(name) else f"joint_{name.strip('_')}"


def _free(name: str, taken: set[str]) -> str:
    """A name that is not taken, with a number if needed; it is taken from now on."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found


def make_sdf(parameters: ParameterSet) -> Exported:
    """The moving bodies of a parameter set, links that are fixed or held lumped in, each named after its joint.

    Raises:
        InputError: parameters that Gazebo refuses, or a model of links cannot carry.
    """
    export = ExportModel.from_parameters(parameters, PLACES)
    if export.impossible:
        raise InputError(
            f"Gazebo refuses inertias that no real robot has ({export.impossible}): identify with "
            "`estimator: consistent`"
        )
    world = SdfWorld.from_robot(export.regressor.model, export.bodies, export.terms)
    return Exported(world.text, (*export.findings, *world.findings))


@dataclass(frozen=True)
class SdfWorld:
    """World with one robot, whose base is fixed.

    Attributes:
        root: element of the whole.
        robot: element of the robot.
        joints: name of the joint of each body.
        findings: findings about joints that have other names than in the URDF.
    """

    root: ElementTree.Element
    robot: ElementTree.Element
    joints: tuple[str, ...]
    findings: tuple[Finding, ...]

    @classmethod
    def from_robot(
        cls, model: RobotModel, bodies: Sequence[Array] | Array, terms: Mapping[str, Mapping[str, float]]
    ) -> SdfWorld:
        """The moving bodies of a robot with their joints.

        Args:
            model: robot model.
            bodies: standard parameters of the bodies, shape (10,) each.
            terms: friction of the joints, by joint name.
        """
        root = ElementTree.Element("sdf", version=VERSION)
        world = ElementTree.SubElement(root, "world", name="default")
        _add(world, "gravity", format_numbers(model.gravity))
        robot = ElementTree.SubElement(world, "model", name=model.name)
        ElementTree.SubElement(robot, "link", name=BASE_LINK)
        held = ElementTree.SubElement(robot, "joint", name=FIXED_JOINT, type="fixed")
        _add(held, "parent", "world")
        _add(held, "child", BASE_LINK)
        names = _Names.from_model(model)
        for number, name in enumerate(model.body_names):
            _add_body(robot, model, names, number, bodies[number])
            _add_joint(robot, model, names, number, terms.get(name, {}))
        return cls(root, robot, names.joints, names.report(model))

    @property
    def text(self) -> str:
        """The file."""
        ElementTree.indent(self.root)
        return ElementTree.tostring(self.root, encoding="unicode") + "\n"


def _add(parent: ElementTree.Element, tag: str, text: str, **attributes: str) -> ElementTree.Element:
    """Add an element with a text."""
    element = ElementTree.SubElement(parent, tag, attributes)
    element.text = text
    return element


def _pose(position: Array, rotation: Array) -> str:
    """Position and quaternion x y z w."""
    return f"{format_numbers(position)} {format_numbers(convert_to_quaternions(rotation))}"


def _add_body(robot: ElementTree.Element, model: RobotModel, names: _Names, number: int, parameters: Array) -> None:
    """Add a link in the position 0 of its joint."""
    link = ElementTree.SubElement(robot, "link", name=names.link(number))
    place = _pose(model.translation[number], model.rotation[number])
    _add(link, "pose", place, relative_to=names.link(int(model.parent[number])), rotation_format="quat_xyzw")
    mass, center, inertia = convert_to_central(parameters)
    inertial = ElementTree.SubElement(link, "inertial")
    _add(inertial, "pose", f"{format_numbers(center)} 0 0 0")
    _add(inertial, "mass", format_numbers([mass]))
    tensor = ElementTree.SubElement(inertial, "inertia")
    for row, column in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        _add(tensor, f"i{'xyz'[row]}{'xyz'[column]}", format_numbers([inertia[row, column]]))


def _add_joint(
    robot: ElementTree.Element, model: RobotModel, names: _Names, number: int, terms: Mapping[str, float]
) -> None:
    name = model.body_names[number]
    ends = _limits(model, name)
    kind = "prismatic" if model.prismatic[number] else "revolute"
    joint = ElementTree.SubElement(robot, "joint", name=names.joints[number], type=kind)
    _add(joint, "parent", names.link(int(model.parent[number])))
    _add(joint, "child", names.link(number))
    axis = ElementTree.SubElement(joint, "axis")
    _add(axis, "xyz", format_numbers(model.axis[number]))
    if ends:
        limit = ElementTree.SubElement(axis, "limit")
        for tag, value in ends.items():
            _add(limit, tag, format_numbers([value]))
    if terms:
        dynamics = ElementTree.SubElement(axis, "dynamics")
        for tag, value in terms.items():
            _add(dynamics, tag, format_numbers([value]))
    if name not in model.joint_names:
        # follower = multiplier (leader - reference) + offset
        leader = names.joints[model.body_names.index(model.joint_names[int(model.leader[number])])]
        mimic = ElementTree.SubElement(axis, "mimic", joint=leader, axis="axis")
        _add(mimic, "multiplier", format_numbers([model.multiplier[number]]))
        _add(mimic, "offset", format_numbers([model.offset[number]]))
        _add(mimic, "reference", "0")


def _limits(model: RobotModel, name: str) -> dict[str, float]:
    """Limits of a joint that the URDF states."""
    if name not in model.joint_names:
        return {}
    index, limits = model.joint_names.index(name), model.limits
    found = {"lower": limits.lower[index], "upper": limits.upper[index]}
    if not (np.isfinite([*found.values()]).all() and found["lower"] < found["upper"]):
        found = {}
    for tag, most in (("effort", limits.effort[index]), ("velocity", limits.velocity[index])):
        if np.isfinite(most) and most > 0.0:
            found[tag] = most
    return {key: float(value) for key, value in found.items()}
