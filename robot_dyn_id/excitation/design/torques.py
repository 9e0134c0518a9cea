# SPDX-License-Identifier: Apache-2.0
"""Model of the torques that a motion needs: of an identified robot, or of its URDF with the friction to be expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.excitation.trajectory import Sample
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription, read_joint_friction
from robot_dyn_id.parameters import ParameterSet

DEFAULT_FRICTION_SHARE = 0.1
"""Default dry friction of a joint relative to its effort limit where the URDF states none [-]."""

SMOOTHING_WIDTH = 0.05
"""Velocity within which the sign of the dry friction is smoothed [rad/s or m/s]."""


@dataclass(frozen=True)
class TorqueModel:
    """Model of the torques needed by a motion, from the URDF or identified.

    Attributes:
        regressor: regressor of the robot and its terms.
        parameters: parameters of all columns, shape (c,).
        friction: origin of the friction, in words.
    """

    regressor: Regressor
    parameters: Array
    friction: str = ""

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> TorqueModel:
        """Torques of an identified model.

        Raises:
            InputError: its drive gains are not known.
        """
        parameters.refuse_unknown_gains()
        values = np.concatenate([parameters.bodies.standard_parameters, parameters.terms.values])
        return cls(Regressor.from_parameters(parameters), values, "the identified friction")

    @classmethod
    def from_model(cls, model: RobotModel, share: float) -> TorqueModel:
        """Torques by the URDF, with its friction, or that of a share of the effort limits for joints without any.

        Args:
            model: robot model with n joints.
            share: assumed dry friction relative to the effort limits [-].
        """
        stated = read_joint_friction(RobotDescription(model.urdf).root())
        viscous, dry = np.array([stated.get(name, (0.0, 0.0)) for name in model.body_names]).T
        known = np.where(np.isfinite(model.limits.effort), model.limits.effort, 0.0)
        limits = dict(zip(model.joint_names, known.tolist(), strict=True))  # not of mimic joints
        usual = share * np.array([limits.get(name, 0.0) for name in model.body_names])
        assumed = (viscous + dry == 0.0) & (usual > 0.0)
        dry = np.where(assumed, usual, dry)
        given = ~assumed & (viscous + dry > 0.0)
        regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(SMOOTHING_WIDTH))))
        words = []
        if given.any():
            words.append(f"friction{_names(model, given)} by the URDF")
        if assumed.any():
            words.append(f"friction{_names(model, assumed)} of {share:.0%} of the effort limit, which is assumed")
        parameters = np.concatenate([model.inertial_parameters, viscous, dry])
        return cls(regressor, parameters, ", and ".join(words) or "no friction")

    def with_load(self, load: Array) -> TorqueModel:
        """The same with the standard parameters of a load added to those of the bodies, shape (10 b,)."""
        parameters = self.parameters.copy()
        parameters[: len(load)] += load
        return TorqueModel(self.regressor, parameters, self.friction)

    def torque(self, motion: Sample) -> Array:
        """Torque or force of every joint [N m or N], shape (n, N)."""
        return self.regressor.torque(Motion(*motion[:3]), self.parameters)

    def at_rest(self, q: Array) -> Array:
        """Torque or force of every joint at rest in configurations of shape (n, N) [N m or N], shape (n, N)."""
        zero = np.zeros_like(q)
        return self.torque((q, zero, zero, zero))


def _names(model: RobotModel, chosen: Mask) -> str:
    """The joints concerned, unless they are all that move."""
    return "" if chosen.all() else f" of {', '.join(np.array(model.body_names)[chosen].tolist())}"
