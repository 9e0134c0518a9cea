# SPDX-License-Identifier: Apache-2.0
"""Twists, wrenches and rigid transforms as plain matrices, and the geometry of a tree in these terms.

Twists are (angular; linear), wrenches (moment; force). A transform T_ab, 4 x 4, takes coordinates in frame b
to frame a.
Lynch and Park, Modern Robotics, 2017, chapters 3 and 8.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask


class Mechanism(Protocol):
    """Geometry of a tree of b bodies; for the attributes see `RobotModel`."""

    @property
    def parent(self) -> Integers:
        """Shape (b,)."""

    @property
    def rotation(self) -> Array:
        """Shape (b, 3, 3)."""

    @property
    def translation(self) -> Array:
        """Shape (b, 3) [m]."""

    @property
    def axis(self) -> Array:
        """Shape (b, 3)."""

    @property
    def prismatic(self) -> Mask:
        """Shape (b,)."""

    @property
    def coupling(self) -> Array:
        """Shape (b, n)."""

    @property
    def offset(self) -> Array:
        """Shape (b,) [rad or m]."""

    @property
    def gravity(self) -> Array:
        """Shape (3,) [m/s^2]."""


def skew(vector: Array) -> Array:
    """[v] of shape (3, 3), with [v] u = v x u."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def transform(rotation: Array, translation: Array) -> Array:
    """T of shape (4, 4) from a rotation (3, 3) and a translation (3,) [m]."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, translation
    return matrix


def inverse(matrix: Array) -> Array:
    """T_ba of shape (4, 4) from T_ab."""
    return transform(matrix[:3, :3].T, -matrix[:3, :3].T @ matrix[:3, 3])


def exponential(screw: Array, displacement: float) -> Array:
    """exp([screw] displacement), shape (4, 4); a screw with an angular part has it of unit length.

    Args:
        screw: (w; v), shape (6,).
        displacement: [rad], or [m] where w = 0.
    """
    w, v = skew(screw[:3]), screw[3:]
    sine, versine = np.sin(displacement), 1.0 - np.cos(displacement)
    rotation = np.eye(3) + sine * w + versine * w @ w
    slide = displacement * np.eye(3) + versine * w + (displacement - sine) * w @ w
    return transform(rotation, slide @ v)


def adjoint(matrix: Array) -> Array:
    """Ad_T of shape (6, 6): twists in frame b to twists in frame a, for T_ab."""
    rotation, translation = matrix[:3, :3], matrix[:3, 3]
    return np.block([[rotation, np.zeros((3, 3))], [skew(translation) @ rotation, rotation]])


def bracket(twist: Array) -> Array:
    """ad_V of shape (6, 6), with ad_V U the Lie bracket of the twists V and U."""
    w, v = skew(twist[:3]), skew(twist[3:])
    return np.block([[w, np.zeros((3, 3))], [v, w]])


def compute_joint_screws(mechanism: Mechanism) -> Array:
    """Screw of each joint in its own frame, shape (b, 6)."""
    screws = np.zeros((len(mechanism.parent), 6))
    for screw, axis, slides in zip(screws, mechanism.axis, mechanism.prismatic, strict=True):
        screw[3 if slides else 0 :][:3] = axis
    return screws


def compute_body_transforms(mechanism: Mechanism, displacements: Array) -> Array:
    """T_0i of every body by the product of exponentials, T_0i = T_0p M_pi exp([xi_i] q_i), shape (b, 4, 4).

    Args:
        mechanism: tree of b bodies.
        displacements: displacements of all bodies, mimic followers included [rad or m], shape (b,).
    """
    placed = np.zeros((len(mechanism.parent), 4, 4))
    for body, screw in enumerate(compute_joint_screws(mechanism)):
        home = transform(mechanism.rotation[body], mechanism.translation[body])
        parent = mechanism.parent[body]
        base = np.eye(4) if parent < 0 else placed[parent]
        placed[body] = base @ home @ exponential(screw, displacements[body])
    return placed
