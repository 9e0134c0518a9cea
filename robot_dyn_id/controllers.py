"""Control laws that use a model: gravity compensation and computed torque (Siciliano et al., Robotics, 2009, 8.5)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.base_parameters import random_motion
from robot_dyn_id.dataset import Array
from robot_dyn_id.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.trials import feedback
from robot_dyn_id.parameters import ParameterSet, urdf_hash
from robot_dyn_id.plant import CompiledDynamics
from robot_dyn_id.robot import RobotModel
from robot_dyn_id.trajectory_tracking import Setpoint

POSES = 200
"""Poses within the trained positions in which a mass matrix is looked at."""


@dataclass(frozen=True)
class Gains:
    """Feedback of position errors, in accelerations: the same for every joint, as the model takes care of inertia.

    Attributes:
        proportional: [1/s^2].
        derivative: [1/s].
        integral: [1/s^3].
        exponent: of position errors, within 0 and 1: below 1, the feedback of finite time, see `kernels.trials`; the
            gains are then those of errors of 1 rad (or m) and 1 rad/s.
    """

    proportional: float
    derivative: float
    integral: float = 0.0
    exponent: float = 1.0

    @staticmethod
    def of_bandwidth(bandwidth: float, integral: bool = False) -> Gains:
        """All poles of the error at -bandwidth [rad/s]; two without integral, three with it."""
        if integral:
            return Gains(3.0 * bandwidth**2, 3.0 * bandwidth, bandwidth**3)
        return Gains(bandwidth**2, 2.0 * bandwidth)


def wanted_acceleration(setpoint: Setpoint, q: Array, dq: Array, gains: Gains) -> Array:
    """Acceleration that brings the joints to the setpoint [rad/s^2 or m/s^2], shape (n,); no integral."""
    errors = setpoint.q - q, setpoint.dq - dq
    return np.asarray(setpoint.ddq + feedback(*errors, gains.proportional, gains.derivative, gains.exponent))


def computed_torque(dynamics: Dynamics, setpoint: Setpoint, q: Array, dq: Array, gains: Gains) -> Array:
    """M(q) (ddq_d + Kd e' + Kp e) + h(q, dq), with the friction of the setpoint's velocity [N m or N], shape (n,).

    Friction of the measured velocity would be positive feedback of its noise where Coulomb friction is steep.
    """
    torque = dynamics.inverse_dynamics(q, dq, wanted_acceleration(setpoint, q, dq, gains))
    return np.asarray(torque - dynamics.friction(q, dq) + dynamics.friction(q, setpoint.dq))


@dataclass(frozen=True)
class StartInertia:
    """What moves a robot while nothing of it is known but its URDF: tau = s M0(q) (ddq_d + Kd e' + Kp e).

    Attributes:
        prior: of the URDF, without friction; M0 is its mass matrix.
        scale: s.
    """

    prior: Dynamics
    scale: float

    @staticmethod
    def within(droop: float, prior: Dynamics, gains: Gains, q: Array, dq: Array, margin: float = 1.5) -> StartInertia:
        """With the least s at which the robot hangs no farther from its setpoint than `droop`, and at least `margin`.

        The weight and Coriolis torque h of the robot keep it (s M0)^-1 h / Kp away from its setpoint; with feedback
        Kp |e|^a, droop^a takes the place of the droop. With s of at least 1 the feedback is damped as designed. A
        diagonal start inertia would not do for light wrists: where two axes are nearly parallel it is many times the
        inertia that the feedback sees, and sampled feedback becomes unstable.

        Args:
            droop: [rad or m].
            prior: of the URDF, without friction.
            gains: of the controller.
            q: states in which this holds, shape (N, n).
            dq: alike.
            margin: the parameters of each body are truly 2 - margin to margin times those of the prior.

        Raises:
            UsageError: a droop or proportional gain that is not positive.
            InputError: the prior's mass matrix is not positive definite.
        """
        if not (droop > 0.0 and gains.proportional > 0.0):
            raise UsageError(f"the start needs a positive droop and gain, not {droop:g} and {gains.proportional:g}")
        if not prior.is_positive_definite(q).all():
            raise InputError(
                "the mass matrix of the URDF is not positive definite: write estimates of inertias into it"
            )
        mass, bodies = prior.mass_matrix(q), prior.columns // 10
        each = [replace(prior, values=np.where(bodies == body, prior.values, 0.0)) for body in np.unique(bodies)]
        pulls = np.array([np.linalg.solve(mass, one.bias(q, dq)[..., None])[..., 0] for one in each])
        falling = np.abs(pulls.sum(axis=0)) + (margin - 1.0) * np.abs(pulls).sum(axis=0)
        need = float(falling.max()) / (gains.proportional * droop**gains.exponent)
        return StartInertia(prior, max(margin, need))

    @staticmethod
    def anywhere(droop: float, model: RobotModel, gains: Gains) -> StartInertia:
        """For a robot that moves slowly in any pose; see `within`."""
        prior = Dynamics.of_bodies(model)
        q = random_motion(model, POSES).q.T
        return StartInertia.within(droop, prior, gains, q, np.zeros_like(q))

    def effort(self, setpoint: Setpoint, q: Array, dq: Array, gains: Gains) -> Array:
        """Torque [N m or N], shape (n,)."""
        return np.asarray(self.scale * self.prior.mass_matrix(q) @ wanted_acceleration(setpoint, q, dq, gains))


def usable_dynamics(
    parameters: ParameterSet, urdf: str, joint_names: Collection[str], needs_mass_matrix: bool
) -> Dynamics:
    """The dynamics of a parameter set for a robot that is to be moved by it.

    Args:
        parameters: the set.
        urdf: text of the robot's URDF.
        joint_names: joints that the robot has.
        needs_mass_matrix: whether it is used for more than torques. Feedback through a mass matrix that is not positive
            definite drives a joint away from where it should be.

    Raises:
        InputError: the set is of another URDF, its verdict is bad, it has joints that the robot has not, or its mass
            matrix is needed and not positive definite somewhere within the trained positions.
    """
    if parameters.urdf_sha256 != urdf_hash(urdf):
        raise InputError(
            f"the parameters are those of another URDF ({parameters.robot_name}, hash "
            f"{parameters.urdf_sha256[:12]}...; this robot's is {urdf_hash(urdf)[:12]}...): identify this robot"
        )
    if parameters.verdict == "bad":
        raise InputError(f"the verdict on the parameters is bad ({'; '.join(parameters.reasons)}): identify again")
    missing = [name for name in parameters.joint_names if name not in joint_names]
    if missing:
        raise InputError(f"joint {missing[0]} of the parameters is not in the joint states")
    dynamics = Dynamics.of(parameters)
    if needs_mass_matrix:
        poses = np.random.default_rng(0).uniform(parameters.q_min, parameters.q_max, (POSES, len(parameters.q_min)))
        share = 1.0 - float(dynamics.is_positive_definite(poses).mean())
        if share:
            raise InputError(
                f"the identified mass matrix is not positive definite in {share:.0%} of the trained poses: the model "
                f"is good for torques (gravity compensation) only; excite faster or longer"
            )
    return dynamics


class PositionServo:
    """The stiff position controller of a position-controlled robot: with integral action, and an exact model."""

    def __init__(self, dynamics: CompiledDynamics, bandwidth: float, period: float) -> None:
        """Make it.

        Args:
            dynamics: of the plant.
            bandwidth: of the error [rad/s].
            period: time between two calls of `effort` [s].
        """
        self._dynamics, self._period = dynamics, period
        self._gains = Gains.of_bandwidth(bandwidth, integral=True)
        self._sum = np.zeros(len(dynamics.model.joint_names))

    def effort(self, setpoint: Setpoint, q: Array, dq: Array, limit: Array) -> Array:
        """Torque for the next period [N m or N]; joints at their effort limits do not wind up. Shape (n,) all."""
        acceleration = wanted_acceleration(setpoint, q, dq, self._gains) + self._gains.integral * self._sum
        torque = self._dynamics.effort(q, dq, acceleration, setpoint.dq)
        self._sum += np.where(np.abs(torque) < limit, self._period * (setpoint.q - q), 0.0)
        return torque
