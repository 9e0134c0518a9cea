# SPDX-License-Identifier: Apache-2.0
"""Simulated 6-axis sensor under the base of a robot.

With the momentum P and the angular momentum L of all moving bodies about the origin of the base, the robot exerts

    f = M g - dP/dt + f_e,    n = s x g - dL/dt + n_e

on its base, with their mass M, first moment s, and the wrench (n_e, f_e) of the environment. Derivatives are those of
the tick before and the tick after, as the simulated effort is the mean of both. What is at rest is not included.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.model.kinematics import Kinematics
from robot_dyn_id.simulation.simulated_robot import SimulatedRobot


@dataclass(frozen=True)
class WrenchErrors:
    """Errors of a 6-axis sensor.

    Attributes:
        force: standard deviation of the forces [N].
        moment: standard deviation of the moments [N m].
        delay: delay [s].
        seed: seed of the noise.
    """

    force: float = 0.0
    moment: float = 0.0
    delay: float = 0.0
    seed: int = 0


def compute_momentum(kinematics: Kinematics, parameters: Array, q: Array, dq: Array) -> tuple[Array, Array]:
    """Momentum of the moving bodies, and their weight, about the origin and along the axes of the base.

    Args:
        kinematics: the robot.
        parameters: standard parameters (`INERTIAL_SYMBOLS`) of its b bodies, shape (10 b,).
        q: positions [rad or m], shape (n,).
        dq: velocities, shape (n,).

    Returns:
        Momentum (linear; angular) [kg m/s, kg m^2/s] and weight (force; moment) [N, N m], shape (6,) each.
    """
    model, poses = kinematics.model, kinematics.poses(q[:, None])
    rotation, place = poses.rotation[0, :-1], poses.position[0, :-1]
    twists = poses.screws[0] * (model.coupling @ dq)[:, None]
    for body, parent in enumerate(model.parent):
        if parent >= 0:
            twists[body] += twists[parent]
    own = parameters.reshape(-1, 10)
    mass, inertia = own[:, :1], own[:, [4, 5, 7, 5, 6, 8, 7, 8, 9]].reshape(-1, 3, 3)
    first = np.einsum("bij,bj->bi", rotation, own[:, 1:4])
    rate = twists[:, 3:]
    speed = twists[:, :3] + _cross(rate, place)  # of the frame's origin
    linear = mass * speed + _cross(rate, first)
    spin = (rotation @ (inertia @ (rotation.transpose(0, 2, 1) @ rate[:, :, None])))[:, :, 0]
    angular = spin + _cross(first, speed) + _cross(place, linear)
    weight = mass * np.asarray(model.gravity)
    moment = _cross(place, weight) + _cross(first, np.asarray(model.gravity)[None])
    return np.concatenate([linear.sum(0), angular.sum(0)]), np.concatenate([weight.sum(0), moment.sum(0)])


def _cross(one: Array, other: Array) -> Array:
    """Cross products of rows: that of NumPy takes several times as long for a few of them."""
    return one[:, _NEXT] * other[:, _LAST] - one[:, _LAST] * other[:, _NEXT]


_NEXT, _LAST = [1, 2, 0], [2, 0, 1]


class BaseSensor:
    """Sensor under the base of a simulated robot: what the robot exerts on it, in the frame of the base."""

    def __init__(self, robot: SimulatedRobot, errors: WrenchErrors) -> None:
        """Begin with a robot at rest."""
        self._robot, self._rng = robot, np.random.default_rng((errors.seed, 1))
        self._kinematics = Kinematics(robot.plant.dynamics.model)
        self._sigmas = np.repeat([errors.force, errors.moment], 3)
        self._past: deque[Array] = deque(maxlen=round(errors.delay / robot.period) + 1)
        momentum, self._weight = self._look()
        self._momenta = momentum, momentum  # of the tick before, and of the present state
        self._external = np.zeros(6)

    def _look(self) -> tuple[Array, Array]:
        plant = self._robot.plant
        return compute_momentum(self._kinematics, plant.inertial_parameters, plant.q, plant.dq)

    def follow(self, external: Array) -> None:
        """Follow the robot over a tick, after it.

        Args:
            external: wrench of the environment in this tick (force; moment) about the origin of the base [N, N m].
        """
        momentum, weight = self._look()
        before, present = self._momenta
        change = (momentum - before) / (2.0 * self._robot.period)
        self._past.append(self._weight - change + 0.5 * (self._external + external))
        self._momenta, self._weight, self._external = (present, momentum), weight, external

    def measure(self) -> Array:
        """Measured force and moment at the beginning of the latest tick [N, N m], shape (6,)."""
        return np.asarray(self._past[0] + self._sigmas * self._rng.normal(size=6))
