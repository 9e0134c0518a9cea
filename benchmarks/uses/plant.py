# SPDX-License-Identifier: Apache-2.0
"""True plant of an arm of `mutation.clean`: rigid bodies by Pinocchio, friction as in its recordings.

It shares no code with the simulation of the package. Friction slides as Dahl elements of the positions do, which
needs no iteration at standstill; steps of a quarter millisecond resolve the stiffest of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pinocchio
from mutation.clean import BREAKAWAY_RAD, Bench

from robot_dyn_id.arrays import Array
from robot_dyn_id.model.robot import parse_with_pinocchio, reduce_pinocchio
from robot_dyn_id.simulation.closed_loop import quantize

STEP_S = 2.5e-4
"""Integration step [s]."""

PERIOD_S = 2e-3
"""Control period [s]."""

ENCODER_BITS = 18
"""Resolution of the encoders that a controller reads, per turn."""

VELOCITY_CUTOFF_HZ = 60.0
"""First-order low-pass of the differences of the readings, which is the velocity that a controller reads."""

RUNAWAY = 50.0
"""Speed above which a motion has become unstable [rad/s or m/s]."""


class UnstableError(Exception):
    """The arm runs away."""


@dataclass
class Reading:
    """Sensor readings of an arm.

    Attributes:
        q: positions [rad or m], shape (n,).
        dq: velocities [rad/s or m/s], shape (n,).
    """

    q: Array
    dq: Array


class Plant:
    """An arm that moves under the torques of its motors, at first at rest with unloaded friction.

    Attributes:
        q: positions [rad or m], shape (n,).
        dq: velocities [rad/s or m/s], shape (n,).
    """

    def __init__(self, bench: Bench, q: Array) -> None:
        """Place the arm."""
        robot, drives = bench.robot, bench.drives
        whole = parse_with_pinocchio(robot.urdf, robot.name, robot.gravity)
        self._model = reduce_pinocchio(whole, robot.joint_names, {})
        order = [self._model.getJointId(name) for name in robot.body_names]
        for joint, values in zip(order, bench.parameters.reshape(-1, 10), strict=True):
            self._model.inertias[joint] = pinocchio.Inertia.FromDynamicParameters(values)
        joints = [self._model.joints[self._model.getJointId(name)] for name in robot.joint_names]
        self._columns = np.array([joint.idx_v for joint in joints])
        self._coordinates = [(joint.idx_q, joint.nq > joint.nv) for joint in joints]
        armature = np.zeros(self._model.nv)
        armature[self._columns] = drives.rotor
        self._model.armature = armature
        self._data = self._model.createData()
        self._drives = drives
        self._limit = np.where(robot.limits.effort > 0.0, robot.limits.effort, np.inf)
        waves = np.random.default_rng((bench.seed, 5))
        self._waves = waves.integers(20, 100, len(q)).astype(np.float64)
        self.q, self.dq = q.astype(np.float64).copy(), np.zeros(len(q))
        self._slip = np.zeros((len(q), len(BREAKAWAY_RAD)))
        self._resolution = 2.0 * np.pi / 2.0**ENCODER_BITS
        self._reading = quantize(self.q, self._resolution)
        self._speed = np.zeros(len(q))

    def read(self) -> Reading:
        """Positions of the encoders, and velocities derived from them; to be called once in a control period."""
        reading = quantize(self.q, self._resolution)
        share = 1.0 - np.exp(-2.0 * np.pi * VELOCITY_CUTOFF_HZ * PERIOD_S)
        self._speed = self._speed + share * ((reading - self._reading) / PERIOD_S - self._speed)
        self._reading = reading
        return Reading(reading, self._speed)

    def gravity(self) -> Array:
        """True torque of gravity [N m or N], shape (n,)."""
        return np.asarray(pinocchio.computeGeneralizedGravity(self._model, self._data, self._places(self.q)))[
            self._columns
        ]

    def inertia(self) -> Array:
        """True diagonal of the mass matrix, rotors included [kg m^2 or kg], shape (n,)."""
        return np.asarray(np.diag(pinocchio.crba(self._model, self._data, self._places(self.q))))[self._columns].copy()

    def torques_of_force(self, q: Array, force: Array) -> Array:
        """Joint torques of a force in the base frame at the origin of the last body [N m or N], shape (n,)."""
        last = self._model.njoints - 1
        frame = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pinocchio.computeJointJacobians(self._model, self._data, self._places(q))
        jacobian = pinocchio.getJointJacobian(self._model, self._data, last, frame)
        return np.asarray(jacobian[:3].T @ force)[self._columns]

    def advance(self, effort: Array) -> None:
        """Advance by one control period under constant torques [N m or N], shape (n,).

        Raises:
            UnstableError: the arm runs away.
        """
        drives = self._drives
        applied = np.clip(effort, -self._limit, self._limit)
        gravity = self.gravity()
        for _ in range(round(PERIOD_S / STEP_S)):
            friction = drives.torque(gravity, self.q, self.dq, (drives.shares * self._slip).sum(axis=1))
            friction += drives.ripple * np.sin(self._waves * self.q)
            torque = np.zeros(self._model.nv)
            torque[self._columns] = applied - friction
            speed = np.zeros(self._model.nv)
            speed[self._columns] = self.dq
            acceleration = pinocchio.aba(self._model, self._data, self._places(self.q), speed, torque)
            self.dq = self.dq + STEP_S * np.asarray(acceleration)[self._columns]
            moved = STEP_S * self.dq
            self.q = self.q + moved
            side = np.sign(moved)[:, None]
            self._slip = side + (self._slip - side) * np.exp(-np.abs(moved)[:, None] / BREAKAWAY_RAD)
        if not np.abs(self.dq).max() < RUNAWAY:
            raise UnstableError

    def _places(self, q: Array) -> Array:
        """Configuration of Pinocchio's model, in which a joint without limits has a cosine and a sine."""
        placed = np.empty(self._model.nq)
        for value, (place, turns) in zip(q.tolist(), self._coordinates, strict=True):
            if turns:
                placed[place : place + 2] = math.cos(value), math.sin(value)
            else:
                placed[place] = value
        return placed
