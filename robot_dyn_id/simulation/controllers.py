# SPDX-License-Identifier: Apache-2.0
"""Model-based control laws: gravity compensation and computed torque (Siciliano et al., Robotics, 2009, 8.5)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import Setpoint
from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.compensation import DriverCompensation
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.servo import hold_setpoint
from robot_dyn_id.kernels.trials import feedback
from robot_dyn_id.model.description import is_same_robot
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.effort_control import LawEffort
from robot_dyn_id.simulation.plant import CompiledDynamics
from robot_dyn_id.simulation.trajectory_tracking import TrajectoryTracker

POSES = 200
"""Number of configurations within the trained positions in which a mass matrix is checked."""


@dataclass(frozen=True)
class Gains:
    """Feedback gains from errors to accelerations; they need not differ by joint, as the model contains the inertia.

    Attributes:
        proportional: proportional gain [1/s^2], one for all joints or one per joint.
        derivative: derivative gain [1/s], one for all joints or one per joint.
        integral: integral gain [1/s^3].
        exponent: exponent of position errors, in (0, 1]; below 1 the feedback converges in finite time, see
            `kernels.trials`, and the gains apply to errors of 1 rad (or m) and 1 rad/s.
    """

    proportional: float | tuple[float, ...]
    derivative: float | tuple[float, ...]
    integral: float = 0.0
    exponent: float = 1.0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: a negative or infinite gain, or an exponent that is not in (0, 1].
        """
        for name in ("proportional", "derivative"):
            gains = np.asarray(getattr(self, name), dtype=np.float64)
            if not (np.isfinite(gains).all() and (gains >= 0.0).all()):
                raise UsageError(f"{name} gains must be finite and not negative, not {getattr(self, name)}")
        if not 0.0 < self.exponent <= 1.0:
            raise UsageError(f"the exponent of the feedback must be above 0 and at most 1, not {self.exponent:g}")

    def per_joint(self, joint_names: Sequence[str]) -> tuple[Array, Array]:
        """Proportional and derivative gains of each joint, shape (n,) each.

        Raises:
            UsageError: wrong number of gains.
        """
        proportional, derivative = (
            make_joint_array(np.atleast_1d(gains), joint_names, f"{name} gains")
            for name, gains in (("proportional", self.proportional), ("derivative", self.derivative))
        )
        return proportional, derivative

    def bandwidths(self, joint_names: Sequence[str]) -> Array:
        """Bandwidth of the position error of each joint [rad/s], shape (n,); that of `from_bandwidth` for its gains.

        Raises:
            UsageError: wrong number of gains.
        """
        proportional, derivative = self.per_joint(joint_names)
        return np.maximum(np.sqrt(proportional), derivative / 2.0)

    @classmethod
    def from_bandwidth(cls, bandwidth: float, integral: bool = False) -> Gains:
        """Gains with all poles of the error at -bandwidth [rad/s]: two poles, or three with integral action."""
        if integral:
            return cls(3.0 * bandwidth**2, 3.0 * bandwidth, bandwidth**3)
        return cls(bandwidth**2, 2.0 * bandwidth)


def compute_wanted_acceleration(setpoint: Setpoint, q: Array, dq: Array, gains: Gains) -> Array:
    """Commanded acceleration with feedback but without integral action [rad/s^2 or m/s^2], shape (n,)."""
    errors = setpoint.q - q, setpoint.dq - dq
    proportional, derivative = (
        np.array(x) if isinstance(x, tuple) else x for x in (gains.proportional, gains.derivative)
    )
    return np.asarray(setpoint.ddq + feedback(*errors, proportional, derivative, gains.exponent))


class ComputedTorque:
    """Control law tau = M(q) (ddq_d + Kd e' + Kp e) + h(q, dq), with the friction of the desired motion.

    Friction of the measured velocity would feed back its noise, and a stiff presliding element of the measured position
    would act as a spring of negative stiffness. So velocity and internal states of friction are those along the
    setpoints.

    Attributes:
        dynamics: identified dynamics.
        gains: feedback gains.
        compensation: torque that the driver adds to a command and that is not commanded; None: it adds nothing.
    """

    def __init__(self, dynamics: Dynamics, gains: Gains, compensation: DriverCompensation | None = None) -> None:
        """Start without a history of the motion."""
        self.dynamics, self.gains, self.compensation = dynamics, gains, compensation
        self._states = dynamics.initial_states()
        self._aim: Array | None = None

    def restart(self) -> None:
        """Prepare for setpoints that do not continue the previous ones; the friction states are kept."""
        self._aim = None

    def effort(self, setpoint: Setpoint, q: Array, dq: Array, step: float) -> LawEffort:
        """Effort at a setpoint.

        Args:
            setpoint: desired position, velocity and acceleration.
            q: measured positions [rad or m], shape (n,).
            dq: measured velocities [rad/s or m/s], shape (n,).
            step: time since the previous setpoint [s].
        """
        if self._states and self._aim is not None:
            self._states = self.dynamics.advance(self._states, self._aim, setpoint.q, step)
        self._aim = setpoint.q
        acceleration = compute_wanted_acceleration(setpoint, q, dq, self.gains)
        motor = self.dynamics.inverse_dynamics(q, dq, acceleration, self._states or None, setpoint.dq)
        if self.compensation is None:
            return LawEffort(motor, np.zeros_like(motor))
        added = self.compensation.torque(q, dq, setpoint.dq, self._states or None)
        return LawEffort(motor - added, added)


@dataclass(frozen=True)
class ScaledNominalInertia:
    """Control law for a robot of which only the URDF is known: tau = s M0(q) (ddq_d + Kd e' + Kp e).

    Attributes:
        prior: nominal dynamics of the URDF, without friction; M0 is its mass matrix.
        scale: factor s [-].
    """

    prior: Dynamics
    scale: float

    @classmethod
    def from_gravity_sag(
        cls, sag: float, prior: Dynamics, gains: Gains, q: Array, dq: Array, margin: float = 1.5
    ) -> ScaledNominalInertia:
        """Choose the smallest scale, at least `margin`, for which no joint deviates by more than `sag`.

        Gravity and Coriolis torques h displace the robot by (s M0)^-1 h / Kp from its setpoint; with the feedback
        Kp |e|^a, sag^a replaces the sag. For s >= 1 the feedback is damped as designed. A diagonal matrix instead of
        M0 is not suitable for light wrists: where two axes are nearly parallel, it is many times the inertia that the
        feedback acts on, and sampled feedback becomes unstable.

        Args:
            sag: largest deviation from the setpoint [rad or m].
            prior: nominal dynamics of the URDF, without friction.
            gains: feedback gains of the controller.
            q: positions of the states considered [rad or m], shape (N, n).
            dq: velocities of these states [rad/s or m/s], shape (N, n).
            margin: the true parameters of each body are within 2 - margin and margin times the nominal ones.

        Raises:
            UsageError: the sag or the proportional gain is not positive.
            InputError: the nominal mass matrix is not positive definite.
        """
        proportional, _ = gains.per_joint(prior.regressor.model.joint_names)
        if not (sag > 0.0 and proportional.min() > 0.0):
            raise UsageError(f"the start needs a positive droop and gain, not {sag:g} and {proportional.min():g}")
        if not prior.is_positive_definite(q).all():
            raise InputError(
                "the mass matrix of the URDF is not positive definite: write estimates of inertias into it"
            )
        mass, bodies = prior.mass_matrix(q), prior.columns // 10
        each = [replace(prior, values=np.where(bodies == body, prior.values, 0.0)) for body in np.unique(bodies)]
        pulls = np.array([np.linalg.solve(mass, one.bias(q, dq)[..., None])[..., 0] for one in each])
        falling = np.abs(pulls.sum(axis=0)) + (margin - 1.0) * np.abs(pulls).sum(axis=0)
        need = float((falling / proportional).max()) / sag**gains.exponent
        return cls(prior, max(margin, need))

    @classmethod
    def from_robot(cls, sag: float, model: RobotModel, gains: Gains) -> ScaledNominalInertia:
        """Choose the scale for slow motion in any configuration; see `from_gravity_sag`."""
        prior = Dynamics.from_model(model)
        q = draw_random_motion(model, POSES).q.T
        return cls.from_gravity_sag(sag, prior, gains, q, np.zeros_like(q))

    def effort(self, setpoint: Setpoint, q: Array, dq: Array, gains: Gains) -> Array:
        """Torque [N m or N], shape (n,)."""
        return np.asarray(self.scale * self.prior.mass_matrix(q) @ compute_wanted_acceleration(setpoint, q, dq, gains))


def check_robot(parameters: ParameterSet, urdf: str) -> None:
    """Check that a parameter set belongs to a robot and has no bad verdict.

    Args:
        parameters: parameter set.
        urdf: text of the robot's URDF.

    Raises:
        InputError: the set belongs to another robot (see `is_same_robot`), or its verdict is bad.
    """
    if not is_same_robot(parameters.robot.urdf, urdf):
        raise InputError(
            f"the parameters are those of another URDF ({parameters.robot.name}; names, inertias, joints or limits "
            "differ from this robot's): identify this robot"
        )
    parameters.refuse_bad_verdict()


def make_usable_dynamics(
    parameters: ParameterSet, urdf: str, joint_names: Collection[str], needs_mass_matrix: bool
) -> Dynamics:
    """Make the dynamics of a parameter set for the control of a robot.

    Args:
        parameters: parameter set.
        urdf: text of the robot's URDF.
        joint_names: names of the robot's joints.
        needs_mass_matrix: whether the mass matrix is used. Feedback through a mass matrix that is not positive definite
            is unstable.

    Raises:
        InputError: the set belongs to another URDF, its verdict is bad, it has other joints, or its mass matrix is
            needed but not positive definite within the trained positions.
    """
    check_robot(parameters, urdf)
    missing = [name for name in parameters.robot.joint_names if name not in joint_names]
    if missing:
        raise InputError(f"joint {missing[0]} of the parameters is not in the joint states")
    dynamics = Dynamics.from_parameters(parameters)
    if needs_mass_matrix:
        poses = np.random.default_rng(0).uniform(
            parameters.ranges.q_min, parameters.ranges.q_max, (POSES, len(parameters.ranges.q_min))
        )
        share = 1.0 - float(dynamics.is_positive_definite(poses).mean())
        if share:
            raise InputError(
                f"the identified mass matrix is not positive definite in {share:.0%} of the trained poses: the model "
                f"is good for torques (gravity compensation) only; excite faster or longer"
            )
    return dynamics


def refuse_unsafe(
    parameters: ParameterSet, dynamics: Dynamics, rated: Array, action: str = "identify again", q: Array | None = None
) -> None:
    """Refuse a model that must not command torques, as every controller and every export does.

    Args:
        parameters: parameter set.
        dynamics: its dynamics.
        rated: rated efforts [N m or N], shape (n,); inf where none is known.
        action: advice to the user.
        q: present positions [rad or m], shape (n,); see `check_static_efforts`.

    Raises:
        InputError: a bad verdict, drive gains that are not known, or a static effort above the rated one.
    """
    parameters.refuse_bad_verdict(action)
    check_static_efforts(dynamics, rated, action, q)


def find_effort_limits(model: RobotModel) -> Array:
    """Effort limits of a robot [N m or N], shape (n,); inf where its URDF has none, 0 included."""
    effort = model.limits.effort
    return np.where(np.isfinite(effort) & (effort > 0.0), effort, np.inf)


def find_credible_limits(model: RobotModel) -> Array:
    """Effort limits by which a model can be refused [N m or N], shape (n,); inf where the URDF has none.

    Several joints that all have the same limit have placeholders.
    """
    limits = find_effort_limits(model)
    return np.full(len(limits), np.inf) if len(limits) > 1 and (limits == limits[0]).all() else limits


def find_rated_efforts(model: RobotModel, given: Sequence[float] = ()) -> Array:
    """Largest efforts that may be commanded [N m or N], shape (n,).

    Args:
        model: robot model with the effort limits of its URDF; 0 and infinity count as missing.
        given: limits set by the user, one for all joints or one per joint. They replace missing limits and lower those
            of the URDF, but do not raise them.

    Raises:
        UsageError: wrong number of efforts, or values that are not positive.
        InputError: a joint has no limit.
    """
    if not all(0.0 < effort < np.inf for effort in given):
        raise UsageError(f"effort_limit {list(given)} must hold positive, finite efforts")
    limits = make_joint_array(given, model.joint_names, "effort_limit", np.inf)
    rated = np.minimum(limits, find_effort_limits(model))
    unknown = np.flatnonzero(np.isinf(rated))
    if len(unknown):
        missing = model.limits.effort[unknown[0]]
        raise InputError(
            f"joint {model.joint_names[unknown[0]]} has no effort limit in the URDF ({missing:g}): write its "
            "rated effort into the URDF, or set the parameter effort_limit"
        )
    return np.asarray(rated)


def check_static_efforts(
    dynamics: Dynamics, rated: Array, action: str = "identify again", q: Array | None = None
) -> None:
    """Check that the arm can be held within the rated efforts.

    Args:
        dynamics: dynamics of the arm.
        rated: rated efforts [N m or N], shape (n,); inf where none is known.
        action: advice to the user.
        q: present positions [rad or m], shape (n,), checked in addition to configurations within the position limits.

    Raises:
        InputError: the static effort of a joint exceeds its rated effort.
    """
    model = dynamics.regressor.model
    reach = np.where(model.slides, 1.0, np.pi)  # for joints without limits
    lower = np.where(np.isfinite(model.limits.lower), model.limits.lower, -reach)
    upper = np.where(np.isfinite(model.limits.upper), model.limits.upper, reach)
    poses = np.random.default_rng(0).uniform(lower, np.maximum(lower, upper), (POSES, len(lower)))
    effort = np.abs(dynamics.gravity(poses if q is None else np.vstack([poses, q])))
    excess = np.where(np.isfinite(effort), effort, np.inf).max(axis=0)
    beyond = np.flatnonzero(excess > rated)
    if len(beyond):
        joint = beyond[np.argmax(excess[beyond] / rated[beyond])]
        raise InputError(
            f"the model needs {excess[joint]:.4g} {model.effort_units[joint]} to hold joint {model.joint_names[joint]} "
            f"within its position limits, above the rated {rated[joint]:.4g}: check units, gravity and URDF, "
            f"and {action}"
        )


@dataclass(frozen=True)
class EffortGains:
    """Gains of a joint trajectory controller that commands efforts; one value for all joints or one per joint.

    Attributes:
        proportional: effort per position error [N m/rad or N/m].
        derivative: effort per velocity error [N m s/rad or N s/m].
        integral: effort per integrated position error [N m/(rad s) or N/(m s)].
    """

    proportional: Array
    derivative: Array
    integral: Array


class EffortServo:
    """Controller of each joint on its own: tau = Kp e + Kd e' + Ki integral(e) + feed-forward effort of the trajectory.

    This is joint_trajectory_controller with the command interface `effort`. It has no model: what the feed-forward
    effort leaves out becomes a tracking error.
    """

    def __init__(self, gains: EffortGains, period: float) -> None:
        """Initialize the integrator.

        Args:
            gains: gains, shape (n,) each.
            period: time between two calls of `effort` [s].
        """
        self._gains, self._period = gains, period
        self._sum = np.zeros(len(gains.proportional))

    def effort(self, tracker: TrajectoryTracker, now: float, q: Array, dq: Array, limit: Array) -> Array:
        """Torque for the next period [N m or N], shape (n,); see `PositionServo.effort`."""
        setpoint, gains = tracker.setpoint(now), self._gains
        error = setpoint.q - q
        torque = gains.proportional * error + gains.derivative * (setpoint.dq - dq) + gains.integral * self._sum
        torque = torque + tracker.effort(now)
        self._sum += np.where(np.abs(torque) < limit, self._period * error, 0.0)
        return np.asarray(torque)


class PositionServo:
    """Stiff position controller with integral action and an exact model."""

    def __init__(self, dynamics: CompiledDynamics, bandwidth: float, period: float) -> None:
        """Initialize the integrator, and the friction states of the model at rest.

        Args:
            dynamics: dynamics of the plant.
            bandwidth: bandwidth of the feedback [rad/s].
            period: time between two calls of `effort` [s].
        """
        self._dynamics, self._period = dynamics, period
        gains = Gains.from_bandwidth(float(bandwidth), integral=True)
        self._gains = gains.proportional, gains.derivative, gains.integral, gains.exponent
        self._sum = np.zeros(len(dynamics.model.joint_names))
        self._slip, self._aim = dynamics.slip(), np.full(len(self._sum), np.nan)

    def effort(self, tracker: TrajectoryTracker, now: float, q: Array, dq: Array, limit: Array) -> Array:
        """Torque for the next period [N m or N], shape (n,), with anti-windup at the effort limits.

        Friction, its internal states included, is that of the setpoints, see `ComputedTorque`.

        Args:
            tracker: setpoints.
            now: present time [s].
            q: positions [rad or m], shape (n,).
            dq: velocities [rad/s or m/s], shape (n,).
            limit: effort limits [N m or N], shape (n,).
        """
        setpoint, arrays = tracker.setpoint(now), self._dynamics.arrays
        memory = self._aim, self._slip, self._sum
        return np.asarray(hold_setpoint(arrays, *setpoint, q, dq, self._gains, self._period, limit, *memory))
