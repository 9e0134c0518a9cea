# SPDX-License-Identifier: Apache-2.0
"""URDF: the text that was identified, with other inertias and friction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.dom import minidom

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import convert_to_central, convert_to_parameters, is_consistent, pseudo_inertia
from robot_dyn_id.dynamics.terms.laws import SIGN, VISCOUS
from robot_dyn_id.export.model import Exported, ExportModel, report_gravity
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.model.kinematics import BASE, link_placements
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.screw import exponential, transform
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, ParameterSet

INERTIA_NOT_PHYSICAL = Definition(
    "inertia_not_physical",
    Section.PREDICTION,
    "info",
    "The identified inertias are not physically consistent; simulators may refuse them.",
    "identify with `estimator: consistent`",
)

HELD_LINKS_EMPTIED = Definition(
    "held_links_emptied",
    Section.PREDICTION,
    "info",
    "The links of fixed joints have more mass in the URDF than was identified for them and their carrier.",
    "correct the masses in the URDF",
)

PLACES = {VISCOUS: "damping", SIGN: "friction"}
"""Friction laws that `<dynamics>` carries."""


def make_urdf(parameters: ParameterSet) -> Exported:
    """The URDF of a parameter set with the identified inertias and friction; all else is kept.

    A body's parameters go to the link that its joint carries, and links fixed to that one lose their own. Joints that
    were held keep their links' inertias, which are taken off the body that they were part of, unless what is left of it
    could not exist.

    Raises:
        InputError: parameters that a URDF cannot carry; see `ExportModel.of`.
    """
    model = ExportModel.from_parameters(parameters, PLACES)
    document = minidom.parseString(parameters.robot.urdf)
    robot = _Robot.from_document(document)
    findings = robot.set_bodies(model.regressor.model, model.bodies)
    for joint in model.regressor.model.body_names:
        robot.set_dynamics(joint, model.terms[joint])
    if model.impossible:
        message = f"the inertias are not physically consistent, simulators may refuse them ({model.impossible})"
        findings.insert(0, INERTIA_NOT_PHYSICAL.found(message))
    text = document.toxml()
    document.unlink()
    return Exported(text + "\n", (*findings, *report_gravity(model.regressor.model), *model.findings))


def make_urdf_with_masses(model: RobotModel, bodies: Array) -> Exported:
    """The URDF of a robot with other masses and centers of mass, for a calibration that does not determine inertias.

    The mass of every link of a body is scaled by the same factor, its inertia about its center of mass with it, and its
    center of mass is moved by the same vector: links behind fixed and held joints keep their share.

    Args:
        model: robot model with b bodies.
        bodies: mass [kg] and first moments [kg m] of each body in its frame, shape (b, 4).
    """
    document = minidom.parseString(model.urdf)
    robot = _Robot.from_document(document)
    placements = link_placements(model)
    nominal = model.inertial_parameters.reshape(-1, len(INERTIAL_SYMBOLS))
    findings = []
    for number, name in enumerate(model.body_names):
        (mass, *moments), (given, *before) = bodies[number], nominal[number, :4]
        if not (mass > 0.0 and given > 0.0):
            message = f"joint {name}: no positive mass was found for its link, which keeps that of the URDF"
            findings.append(INERTIA_NOT_PHYSICAL.found(message, [name]))
            continue
        shift = np.array(moments) / mass - np.array(before) / given
        for link, place in placements.items():
            if place.body == number and place.body != BASE and link in robot.links:
                robot.scale_mass(link, mass / given, place.rotation.T @ shift)
    text = document.toxml()
    document.unlink()
    return Exported(text + "\n", tuple(findings))


def make_urdf_with_friction(
    model: RobotModel, terms: Mapping[str, Mapping[str, float]], comment: str, *, links: bool = False
) -> str:
    """The URDF of a robot with other friction of its joints.

    Args:
        model: robot model.
        terms: attributes of `<dynamics>`, by joint name.
        comment: comment at the beginning of the robot.
        links: whether the bodies of the model are written too.
    """
    document = minidom.parseString(model.urdf)
    robot = _Robot.from_document(document)
    if links:
        robot.set_bodies(model, model.inertial_parameters.reshape(-1, 10))
    for name, values in terms.items():
        robot.set_dynamics(name, values)
    root = document.documentElement
    assert root is not None, "a URDF that was identified has a root"
    root.insertBefore(document.createComment(comment), root.firstChild)
    text = document.toxml()
    document.unlink()
    return text + "\n"


def _without_held(identified: RobotModel, bodies: Array) -> tuple[Array, list[str], list[Finding]]:
    """Bodies less the held joints' own links, (b, 10); held joints whose links are emptied instead; findings."""
    whole = RobotModel.from_urdf(identified.urdf, gravity=tuple(identified.gravity))
    bodies, emptied, findings = bodies.copy(), [], []
    carried: dict[str, list[tuple[str, Array]]] = {}
    for number, name in enumerate(whole.body_names):
        if name in identified.body_names:
            continue
        carrier, placement = _carrier(whole, identified, number)
        if carrier:
            pseudo = pseudo_inertia(whole.inertial_parameters[10 * number : 10 * number + 10])
            carried.setdefault(carrier, []).append((name, convert_to_parameters(placement @ pseudo @ placement.T)))
    for carrier, held in carried.items():
        body = identified.body_names.index(carrier)
        rest = bodies[body] - sum(own for _, own in held)
        if is_consistent(rest) or not is_consistent(bodies[body]):
            bodies[body] = rest
        else:
            names = [name for name, _ in held]
            emptied += names
            message = (
                f"joint {carrier}: the held joints {', '.join(names)} have more mass in the URDF than was identified: "
                "their links are written without mass, as a part of its own link"
            )
            findings.append(HELD_LINKS_EMPTIED.found(message, [carrier, *names]))
    return bodies, emptied, findings


def _carrier(whole: RobotModel, identified: RobotModel, number: int) -> tuple[str, Array]:
    """The identified body that a held joint's link is part of (empty: the base), and where the link is in its frame."""
    placement = np.eye(4)
    while number >= 0 and whole.body_names[number] not in identified.body_names:
        position, axis = identified.held[whole.body_names[number]], whole.axis[number]
        screw = np.concatenate([np.zeros(3), axis] if whole.prismatic[number] else [axis, np.zeros(3)])
        moved = transform(whole.rotation[number], whole.translation[number]) @ exponential(screw, position)
        placement, number = moved @ placement, int(whole.parent[number])
    return (whole.body_names[number] if number >= 0 else ""), placement


@dataclass(frozen=True)
class _Robot:
    """The elements of a URDF.

    Attributes:
        document: the whole.
        links: link elements by name.
        joints: joint elements by name.
        child: child link of each joint.
    """

    document: minidom.Document
    links: dict[str, minidom.Element]
    joints: dict[str, minidom.Element]
    child: dict[str, str]

    @classmethod
    def from_document(cls, document: minidom.Document) -> _Robot:
        root = document.documentElement
        assert root is not None, "a URDF that was identified has a root"
        links = {link.getAttribute("name"): link for link in _children(root, "link")}
        joints = {joint.getAttribute("name"): joint for joint in _children(root, "joint")}
        child = {name: _children(joint, "child")[0].getAttribute("link") for name, joint in joints.items()}
        return cls(document, links, joints, child)

    def fixed_to(self, link: str) -> list[str]:
        """Links behind fixed joints of a link, and of those."""
        found = []
        for name, joint in self.joints.items():
            if joint.getAttribute("type") == "fixed" and _children(joint, "parent")[0].getAttribute("link") == link:
                found += [self.child[name], *self.fixed_to(self.child[name])]
        return found

    def set_bodies(self, model: RobotModel, bodies: Array) -> list[Finding]:
        """Write the bodies of a model, shape (b, 10); returns findings about joints that were held."""
        bodies, emptied, findings = _without_held(model, bodies)
        for joint, body in zip(model.body_names, bodies, strict=True):
            self.set_inertia(self.child[joint], body)
            for link in self.fixed_to(self.child[joint]):
                self.remove_inertia(link)
        for joint in emptied:
            for link in (self.child[joint], *self.fixed_to(self.child[joint])):
                self.remove_inertia(link)
        return findings

    def remove_inertia(self, link: str) -> None:
        """Take a link's mass away."""
        for element in _children(self.links[link], "inertial"):
            self.links[link].removeChild(element)

    def set_inertia(self, link: str, body: Array) -> None:
        """Give a link the standard parameters of a body in its frame."""
        self.remove_inertia(link)
        inertial = _inertial(self.document, body)
        self.links[link].insertBefore(inertial, self.links[link].firstChild)

    def scale_mass(self, link: str, factor: float, shift: Array) -> None:
        """Scale mass and inertia of a link, and move its center of mass by a vector in the frame of the link [m]."""
        for inertial in _children(self.links[link], "inertial"):
            for tag in ("mass", "inertia"):
                for element in _children(inertial, tag):
                    for key, value in list(element.attributes.items()):
                        element.setAttribute(key, format_numbers([factor * float(value)]))
            origin = next(iter(_children(inertial, "origin")), None)
            if origin is None:
                origin = inertial.insertBefore(self.document.createElement("origin"), inertial.firstChild)
            center = [float(value) for value in (origin.getAttribute("xyz") or "0 0 0").split()]
            origin.setAttribute("xyz", format_numbers(np.array(center) + shift))

    def set_dynamics(self, joint: str, terms: Mapping[str, float]) -> None:
        """Write a joint's friction."""
        if not terms:
            return
        element = next(iter(_children(self.joints[joint], "dynamics")), None)
        if element is None:
            element = self.joints[joint].appendChild(self.document.createElement("dynamics"))
        for key, value in terms.items():
            element.setAttribute(key, format_numbers([value]))


def format_inertial(body: Array) -> str:
    """The `<inertial>` of a link for the standard parameters of a body in its frame, shape (10,)."""
    return _inertial(minidom.Document(), body).toprettyxml(indent="  ")


def _inertial(document: minidom.Document, body: Array) -> minidom.Element:
    mass, center, inertia = convert_to_central(body)
    pairs = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    inertial = document.createElement("inertial")
    for tag, attributes in (
        ("origin", {"xyz": format_numbers(center), "rpy": "0 0 0"}),
        ("mass", {"value": format_numbers([mass])}),
        ("inertia", {key: format_numbers([inertia[pair]]) for key, pair in pairs.items()}),
    ):
        element = document.createElement(tag)
        for key, value in attributes.items():
            element.setAttribute(key, value)
        inertial.appendChild(element)
    return inertial


def _children(element: minidom.Element, tag: str) -> list[minidom.Element]:
    return [node for node in element.childNodes if isinstance(node, minidom.Element) and node.tagName == tag]


def format_numbers(values: Array | list[float]) -> str:
    """Numbers as text that reads back as the same to the last bit (17 digits)."""
    return " ".join(f"{float(value):.17g}" for value in values)
