"""Inverse and forward dynamics of an identified robot, from its base parameters alone.

The torque is linear in the accelerations, tau = M(q) ddq + h(q, dq), and the base regressor gives both parts without
any other parameter: h is the torque at ddq = 0, and column j of M is the change of the torque when ddq is the unit
vector j (Wang et al. 2025, eq. 26 and 28; rotor inertias are in M, friction is in h).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.regressor import Integers, Layout, Motion, Regressor, regressor_of
from robot_dyn_id.robot import RobotModel


def check_robot(parameters: ParameterSet, model: RobotModel) -> None:
    """Refuse a parameter set that was identified for another robot description.

    Raises:
        InputError: the URDF's hash is another one.
    """
    if hashlib.sha256(model.urdf.encode()).hexdigest() != parameters.urdf_sha256:
        raise InputError(
            f"the parameters were identified for another description of {parameters.robot_name}: "
            f"their URDF has the hash {parameters.urdf_sha256[:12]}..., the one given has not"
        )


@dataclass(frozen=True)
class Dynamics:
    """Dynamics of a robot with n joints. States are vectors (n,), or batches (N, n), one row per state.

    Attributes:
        regressor: robot and terms.
        columns: the independent columns, shape (p,).
        values: base parameters, shape (p,).
    """

    regressor: Regressor
    columns: Integers
    values: Array

    @staticmethod
    def of(parameters: ParameterSet) -> Dynamics:
        """The dynamics of an identified parameter set.

        Raises:
            InputError: a set that this version cannot read.
        """
        return Dynamics(regressor_of(parameters), parameters.independent_columns.astype(np.int64), parameters.values)

    @cached_property
    def _layout(self) -> Layout:
        return Layout.of(self.regressor, self.columns)

    def inverse_dynamics(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torque of a motion [N m or N], friction and offsets included.

        Raises:
            InputError: arrays of another number of joints.
        """
        states = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (q, dq, ddq)))
        joints = len(self.regressor.model.joint_names)
        if states[0].shape[-1:] != (joints,) or states[0].ndim > 2:
            raise InputError(f"states of shape {states[0].shape} do not fit {joints} joints")
        motion = Motion(*(np.ascontiguousarray(np.atleast_2d(x).T) for x in states))
        packed = np.empty((self._layout.starts[-1], len(motion)))
        self.regressor.fill(motion, self._layout.slots, packed)
        torque = [
            self.values[support] @ self._layout.block(packed, joint)[:-1]
            for joint, support in enumerate(self._layout.supports)
        ]
        return np.asarray(np.array(torque).T.reshape(states[0].shape))

    def bias(self, q: Array, dq: Array) -> Array:
        """Torque at zero acceleration: Coriolis, centrifugal, gravity, friction, offsets [N m or N]."""
        return self.inverse_dynamics(q, dq, np.zeros_like(np.asarray(q, dtype=np.float64)))

    def gravity(self, q: Array) -> Array:
        """Torque of an arm at rest, sensor offsets included [N m or N]."""
        return self.bias(q, np.zeros_like(np.asarray(q, dtype=np.float64)))

    def mass_matrix(self, q: Array) -> Array:
        """Mass matrix, rotor inertias included, shape (..., n, n)."""
        q = np.asarray(q, dtype=np.float64)
        joints, states = q.shape[-1], np.atleast_2d(q)
        count = len(states)
        accelerations = np.repeat(np.vstack([np.zeros(joints), np.eye(joints)]), count, axis=0)
        torque = self.inverse_dynamics(np.tile(states, (joints + 1, 1)), np.zeros_like(accelerations), accelerations)
        columns = torque.reshape(joints + 1, count, joints)
        matrix = np.moveaxis(columns[1:] - columns[0], 0, -1)
        matrix = 0.5 * (matrix + np.swapaxes(matrix, -1, -2))  # symmetric but for rounding
        return np.asarray(matrix.reshape(*q.shape, joints))

    def forward_dynamics(self, q: Array, dq: Array, tau: Array) -> Array:
        """Accelerations under the torques `tau` [rad/s^2 or m/s^2].

        Raises:
            InputError: the mass matrix is not positive definite at a state, which is named: parameters that no real
                robot has.
        """
        matrix = self.mass_matrix(np.atleast_2d(q))
        force = np.atleast_2d(np.asarray(tau, dtype=np.float64) - self.bias(q, dq))
        smallest = np.linalg.eigvalsh(matrix)[:, 0]
        if not np.all(smallest > 0.0):
            state = int(np.argmin(smallest))
            where = np.array2string(np.atleast_2d(q)[state], precision=3)
            raise InputError(f"the mass matrix is not positive definite at q = {where} (state {state})")
        return np.asarray(np.linalg.solve(matrix, force[..., None])[..., 0].reshape(np.shape(tau)))
