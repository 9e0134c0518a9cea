# SPDX-License-Identifier: Apache-2.0
"""MJCF, the format of MuJoCo: bodies, joints, inertias, motors; no shapes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import convert_to_central
from robot_dyn_id.dynamics.terms.laws import INERTIA, SIGN, VISCOUS
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.model import Exported, ExportModel
from robot_dyn_id.export.urdf import format_numbers
from robot_dyn_id.model.quaternions import convert_to_quaternions
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet

PLACES = {VISCOUS: "damping", SIGN: "frictionloss", INERTIA: "armature"}
"""Friction laws that a `<joint>` carries."""


def make_mjcf(parameters: ParameterSet) -> Exported:
    """The moving bodies of a parameter set, links that are fixed or held lumped in, each named after its joint.

    Raises:
        InputError: parameters that MuJoCo's compiler refuses, or a model of links cannot carry.
    """
    export = ExportModel.from_parameters(parameters, PLACES)
    if export.impossible:
        raise InputError(
            f"MuJoCo refuses inertias that no real robot has ({export.impossible}): identify with "
            f"`estimator: consistent`"
        )
    model = export.regressor.model
    root = make_bodies(model, export.bodies, export.terms)
    _motors(root, model)
    ElementTree.indent(root)
    return Exported(ElementTree.tostring(root, encoding="unicode") + "\n", export.findings)


def make_bodies(
    model: RobotModel, bodies: Sequence[Array] | Array, terms: Mapping[str, Mapping[str, float | str]]
) -> ElementTree.Element:
    """The moving bodies of a robot with their joints, without actuators.

    Args:
        model: robot model.
        bodies: standard parameters of the bodies, shape (10,) each.
        terms: further attributes of the joints, by joint name.
    """
    root = ElementTree.Element("mujoco", model=model.name)
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    ElementTree.SubElement(root, "option", gravity=format_numbers(model.gravity))
    elements = [ElementTree.SubElement(root, "worldbody")]
    for number, name in enumerate(model.body_names):
        parent = elements[int(model.parent[number]) + 1]
        body = _body(model, number, bodies[number])
        _joint(body, model, number, terms.get(name, {}))
        parent.append(body)
        elements.append(body)
    _followers(root, model)
    return root


def _body(model: RobotModel, number: int, parameters: Array) -> ElementTree.Element:
    body = ElementTree.Element(
        "body",
        name=f"{model.body_names[number]}_link",
        pos=format_numbers(model.translation[number]),
        quat=_quaternion(model.rotation[number]),
    )
    mass, center, inertia = convert_to_central(parameters)
    principal, axes = np.linalg.eigh(inertia)  # MuJoCo would find them to nine digits only
    axes[:, 2] *= np.linalg.det(axes)
    ElementTree.SubElement(
        body,
        "inertial",
        pos=format_numbers(center),
        quat=_quaternion(axes),
        mass=format_numbers([mass]),
        diaginertia=format_numbers(principal),
    )
    return body


def _quaternion(rotation: Array) -> str:
    """Scalar first."""
    return format_numbers(np.roll(convert_to_quaternions(rotation), 1))


def _joint(body: ElementTree.Element, model: RobotModel, number: int, terms: Mapping[str, float | str]) -> None:
    name = model.body_names[number]
    kind = "slide" if model.prismatic[number] else "hinge"
    joint = ElementTree.SubElement(body, "joint", name=name, type=kind, axis=format_numbers(model.axis[number]))
    if name in model.joint_names:
        index = model.joint_names.index(name)
        ends = np.array([model.limits.lower[index], model.limits.upper[index]])
        if np.all(np.isfinite(ends)) and ends[0] < ends[1]:
            joint.set("range", format_numbers(ends))
    for key, value in terms.items():
        joint.set(key, value if isinstance(value, str) else format_numbers([value]))


def _followers(root: ElementTree.Element, model: RobotModel) -> None:
    """Mimic joints as equality constraints."""
    followers = [number for number, name in enumerate(model.body_names) if name not in model.joint_names]
    if not followers:
        return
    equality = ElementTree.SubElement(root, "equality")
    for number in followers:
        coefficients = [float(model.offset[number]), float(model.multiplier[number]), 0.0, 0.0, 0.0]
        leader = model.joint_names[int(model.leader[number])]
        ElementTree.SubElement(
            equality, "joint", joint1=model.body_names[number], joint2=leader, polycoef=format_numbers(coefficients)
        )


def _motors(root: ElementTree.Element, model: RobotModel) -> None:
    """One motor per independent joint, named after it, whose control is the effort; limits are those of the URDF."""
    actuators = ElementTree.SubElement(root, "actuator")
    for index, name in enumerate(model.joint_names):
        motor = ElementTree.SubElement(actuators, "motor", name=name, joint=name)
        effort = float(model.limits.effort[index])
        if np.isfinite(effort) and effort > 0.0:
            motor.set("ctrlrange", format_numbers([-effort, effort]))
