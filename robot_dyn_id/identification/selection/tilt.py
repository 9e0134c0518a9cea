# SPDX-License-Identifier: Apache-2.0
"""Columns of a small tilt of the base: what a horizontal component of gravity adds to the torque of known bodies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.model.robot import RobotModel

DIRECTIONS = 2
"""Number of directions in which the base can tilt."""


def find_tilt_directions(gravity: Array) -> Array:
    """Two unit vectors that are orthogonal to gravity and to each other, shape (2, 3).

    Args:
        gravity: gravity in the base frame [m/s^2], shape (3,).
    """
    return np.asarray(np.linalg.svd(gravity[None, :])[2][1:])


def tilt_robot(model: RobotModel, components: Array) -> RobotModel:
    """The robot with gravity of the same magnitude, turned towards `find_tilt_directions`.

    Args:
        model: the robot.
        components: components of the new gravity along the two directions [m/s^2], shape (2,).
    """
    gravity = model.gravity + components @ find_tilt_directions(model.gravity)
    return replace(model, gravity=gravity * (np.linalg.norm(model.gravity) / np.linalg.norm(gravity)))


@dataclass(frozen=True)
class TiltedRegressor(Regressor):
    """A regressor with two more columns: the torque of given bodies in unit gravity along the `find_tilt_directions`.

    To first order, their parameters are the components of the true gravity along these [m/s^2].

    Attributes:
        tilted_bodies: standard parameters of the bodies, 10 per body.
    """

    tilted_bodies: tuple[float, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """See `Regressor.names`."""
        return (*super().names, "gravity_1", "gravity_2")

    @cached_property
    def units(self) -> tuple[str, ...]:
        """See `Regressor.units`."""
        return (*super().units, *("m/s^2",) * DIRECTIONS)

    @cached_property
    def structure(self) -> Mask:
        """See `Regressor.structure`."""
        own = super().structure
        return np.concatenate([own[: len(self.names) - DIRECTIONS], np.ones((DIRECTIONS, own.shape[1]), dtype=bool)])

    @cached_property
    def _in_unit_gravity(self) -> tuple[Regressor, ...]:
        """Rigid bodies in unit gravity along each direction."""
        return tuple(
            Regressor(replace(self.model, gravity=along)) for along in find_tilt_directions(self.model.gravity)
        )

    def fill(self, motion: Motion, slots: Integers, out: Array) -> None:
        """See `Regressor.fill`."""
        super().fill(motion, slots, out)
        rest = np.zeros_like(motion.q)
        for regressor, of_joints in zip(self._in_unit_gravity, slots[-DIRECTIONS:], strict=True):
            if (of_joints >= 0).any():
                torque = regressor.torque(Motion(motion.q, rest, rest), np.array(self.tilted_bodies))
                out[of_joints[of_joints >= 0]] = torque[of_joints >= 0]
