# SPDX-License-Identifier: Apache-2.0
"""Prior bodies of a robot, with the mass and the length that measure how far others are from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import convert_to_central, convert_to_parameters, make_consistent
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel

PRIOR_FROM_GEOMETRY = Definition(
    "prior_from_geometry",
    Section.ESTIMATES,
    "info",
    "The URDF has no masses, or placeholders: bodies that are made from its geometry and the rated efforts of its "
    "joints determine what the data do not.",
    "write estimates of masses and inertias into the URDF if they are known",
)

MIN_MASS_SHARE = 0.1
"""Least mass of the scales of a body, as a share of the median over the bodies."""

MIN_LENGTH_SHARE = 0.09
"""Least length of the scales of a body, as a share of the longest chain of joints: 0.08 m on an arm of 0.9 m."""

PAYLOAD_SHARE = 0.1
"""Share of a joint's rated effort that holds the next link at its length, where the URDF has no masses."""

MIN_COMPARED_BODIES = 3
"""Least number of bodies whose equal masses and inertias are taken for placeholders."""

SAME = 1e-6
"""Relative difference of masses and principal moments below which they are the same."""

DEFAULT_GRAVITY = math.hypot(*STANDARD_GRAVITY)
"""Gravity that ratings refer to [m/s^2]."""

GYRATION_SHARE = 0.3
"""Radius of gyration of a body that is made from geometry, as a share of its length: that of a uniform rod."""


RANK_TOLERANCE = 1e-9
"""Singular values of the products of columns of unit norm below this share of the largest are zero."""


@dataclass(frozen=True)
class BodyPrior:
    """Expected bodies, physically consistent, and the scales of their errors.

    Attributes:
        source: what it comes from, for messages.
        bodies: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz of each body about its joint frame's origin, shape (b, 10).
        masses: mass m0 of the scales [kg], shape (b,).
        lengths: length L of the scales [m], shape (b,).
        findings: findings about bodies that had to be changed.
        weighed: whether the bodies have masses that were given; those of a geometry have no size of their own.
    """

    source: str
    bodies: Array
    masses: Array
    lengths: Array
    findings: tuple[Finding, ...] = ()
    weighed: bool = True

    @property
    def scales(self) -> Array:
        """Scales of the parameters: m0, m0 L (three times), m0 L^2 (six times), shape (b, 10)."""
        powers = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
        return np.asarray(self.masses[:, None] * self.lengths[:, None] ** powers)

    @classmethod
    def from_model(cls, model: RobotModel) -> BodyPrior:
        """The URDF's bodies, unless its masses are missing or placeholders; else bodies from its geometry."""
        if has_placeholder_masses(model):
            return cls.from_geometry(model)
        return cls.from_bodies(f"URDF of {model.name}", model.inertial_parameters, model)

    @classmethod
    def from_bodies(cls, source: str, parameters: Array, model: RobotModel) -> BodyPrior:
        """Given bodies, with the least changes that make them physically consistent.

        Args:
            source: what they come from, for messages.
            parameters: standard parameters, shape (10 b,).
            model: robot whose lengths give the scales.

        Raises:
            InputError: no masses, or no inertias.
        """
        bodies, findings = make_consistent(parameters.reshape(-1, 10), model.body_names)
        masses = np.maximum(bodies[:, 0], MIN_MASS_SHARE * np.median(bodies[:, 0]))
        return cls(source, bodies, masses, link_lengths(model), findings)

    def scaled(self, factor: float) -> BodyPrior:
        """The same bodies, all heavier or lighter by one factor."""
        return replace(self, bodies=factor * self.bodies, masses=factor * self.masses)

    def find_factor(self, gram: Array) -> float:
        """Factor of the bodies by which they need as large torques as the data show.

        Their torque without what the terms explain is then as large as what free bodies explain; 1 where the motion
        needs no torque of any body.

        Args:
            gram: Gram matrix of weighted rows [Y tau] of all columns, the inertial ones first, shape (c + 1, c + 1).
        """
        inertial, last = self.bodies.size, len(gram) - 1
        own = np.zeros(last + 1)
        own[:inertial] = self.bodies.ravel()
        expected = own @ gram @ own - _explained(gram, inertial, gram @ own)
        measured = _explained(gram, 0, gram[:, last]) - _explained(gram, inertial, gram[:, last])
        return float(np.sqrt(measured / expected)) if expected > 0.0 and measured > 0.0 else 1.0

    @classmethod
    def from_geometry(cls, model: RobotModel) -> BodyPrior:
        """Bodies whose weight at their length takes `PAYLOAD_SHARE` of their joint's rated effort.

        The center of mass is halfway to the next joint. Joints without a rated effort have the median of the others;
        without any the unit of mass is arbitrary, 1 kg.
        """
        lengths = link_lengths(model)
        efforts = model.limits.effort[model.leader]
        holding = efforts / (DEFAULT_GRAVITY * np.where(model.prismatic, 1.0, lengths))
        rated = np.isfinite(holding) & (holding > 0.0)
        masses = np.where(rated, PAYLOAD_SHARE * holding, np.nan)
        masses = np.where(rated, masses, np.nanmedian(masses) if rated.any() else 1.0)
        centers = np.zeros((len(lengths), 3))
        for body, parent in enumerate(model.parent.tolist()):
            if parent >= 0:
                centers[parent] = 0.5 * model.translation[body]
        second = (GYRATION_SHARE * lengths[:, None, None]) ** 2 * np.eye(3) + centers[:, :, None] * centers[:, None, :]
        pseudo = np.block([[second, centers[:, :, None]], [centers[:, None, :], np.ones((len(lengths), 1, 1))]])
        bodies = convert_to_parameters(masses[:, None, None] * pseudo)
        message = "the URDF's masses are missing or placeholders: the prior is made from its geometry and rated efforts"
        finding = PRIOR_FROM_GEOMETRY.found(message)
        return cls(f"geometry of {model.name}", bodies, masses, lengths, (finding,), weighed=False)


def _explained(gram: Array, first: int, products: Array) -> float:
    """Squared norm of what the columns from one on, but for the last, explain of a vector with known products."""
    size = np.sqrt(np.maximum(np.diag(gram)[first:-1], 1e-300))
    along = products[first:-1] / size
    found = np.linalg.lstsq(gram[first:-1, first:-1] / size / size[:, None], along, rcond=RANK_TOLERANCE)[0]
    return float(along @ found)


def has_placeholder_masses(model: RobotModel) -> bool:
    """Whether the URDF's masses say nothing: none at all, no inertia, or the same mass and inertia for every link.

    Equal links count as placeholders only if their three principal moments are equal, too, as those of no real link.
    Where joints are locked, links that are equal in the URDF are parts of bodies that are not.
    """
    bodies = model.inertial_parameters
    return _are_placeholders(bodies) or (bool(model.held) and _are_placeholders(_read_bodies(model.urdf)))


@lru_cache(maxsize=8)
def _read_bodies(urdf: str) -> Array:
    """Standard parameters of the bodies of a URDF without locked joints, shape (10 b,)."""
    return RobotModel.from_urdf(urdf).inertial_parameters


def _are_placeholders(parameters: Array) -> bool:
    """Whether standard parameters of bodies say nothing, see `has_placeholder_masses`."""
    bodies = parameters.reshape(-1, 10)
    if not bodies[:, 0].any() or not bodies[:, 1:].any():
        return True
    if len(bodies) < MIN_COMPARED_BODIES or not bodies[:, 0].all():
        return False
    moments = np.array([np.linalg.eigvalsh(convert_to_central(body)[2]) for body in bodies])
    equal_masses = np.ptp(bodies[:, 0]) <= SAME * bodies[:, 0].max()
    return bool(equal_masses and np.ptp(moments) <= SAME * np.abs(moments).max())


def link_lengths(model: RobotModel) -> Array:
    """Length of each body [m], shape (b,): the distance to its farthest child joint, with a floor.

    The floor scales with the longest chain of joints from the first one, wherever the base is; a robot whose joints all
    share one origin has the length 1 m.
    """
    distance = np.linalg.norm(model.translation, axis=1)
    reach = np.zeros(len(distance))
    lengths = np.zeros(len(distance))
    for body, parent in enumerate(model.parent.tolist()):
        if parent >= 0:
            reach[body] = reach[parent] + distance[body]
            lengths[parent] = max(lengths[parent], distance[body])
    longest = float(reach.max(initial=0.0))
    return np.maximum(lengths, MIN_LENGTH_SHARE * longest) if longest > 0.0 else np.ones(len(distance))
