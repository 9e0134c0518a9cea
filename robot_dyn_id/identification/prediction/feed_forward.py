# SPDX-License-Identifier: Apache-2.0
"""Feed-forward efforts of a trajectory: commanded torques of the identified model, and the check of torque limits.

A joint trajectory controller adds the `effort` of the trajectory points to its feedback. What the driver adds itself
(`robot_compensates`) is subtracted. The motors give both; the effort limits apply to the commands and to the motors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.dynamics.compensation import DriverCompensation, limit_command
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.validation.extrapolation import (
    compute_torque_deviation,
    flag_far_outside,
    list_excesses,
    report_excesses,
)
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.controllers import find_credible_limits, find_effort_limits, refuse_unsafe

TRAJECTORY_WITHOUT_VELOCITIES = Definition(
    "trajectory_without_velocities",
    Section.PREDICTION,
    "warning",
    "Points of a trajectory have positions alone: joint trajectory controllers interpolate them linearly, with "
    "jumps of the velocity that no feed-forward can follow.",
    "give velocities and accelerations at every point",
)

TRAJECTORY_WITHOUT_ACCELERATIONS = Definition(
    "trajectory_without_accelerations",
    Section.PREDICTION,
    "info",
    "Points of a trajectory have no accelerations: joint trajectory controllers interpolate cubics, whose "
    "accelerations jump at the points. The feed-forward there is that of the segment that begins.",
    "give accelerations at every point",
)

EFFORT_LIMIT_MISSING = Definition(
    "effort_limit_missing",
    Section.PREDICTION,
    "warning",
    "The URDF has no effort limit for a joint, so that its torque cannot be checked.",
    "write the rated effort into the URDF",
)

LIMITS_WITHOUT_GRAVITY = Definition(
    "limits_without_gravity",
    Section.PREDICTION,
    "warning",
    "The model was identified from efforts without gravity: the motors carry it in addition to the torques that "
    "are checked.",
    "identify from complete joint torques, or lower the effort limits of the URDF by the gravity torque",
)

BOUND_WITHOUT_HELD_OUT_ERROR = Definition(
    "bound_without_held_out_error",
    Section.PREDICTION,
    "warning",
    "The parameter set has no error on held-out data: the 95 % upper bounds of torques contain the covariance of "
    "the parameters only, and may be too low.",
    "identify again with held-out data",
)

SPACING_S = 0.005
"""Time between two samples at which torque limits are checked [s]."""

MOST_SAMPLES = 200_000
"""Number of samples above which they are further apart than `SPACING_S`."""

ONE_SIDED_95 = 1.6448536269514722
"""Number of standard deviations below which 95 % of a normal distribution lie."""

SLOWEST = 0.01
"""Smallest speed that is tried to keep the torque limits, relative to that of the trajectory."""

SPEEDS = tuple(np.geomspace(1.0, SLOWEST, 9)[1:].tolist())
"""Speeds that are tried one after the other; friction that falls with the speed may need more torque at a lower one."""

EXCITE = "identify with an excitation in which this joint and those after it move, or with a simpler friction model"
"""Action against a torque without an upper bound."""


MOTOR, COMMAND = "motor", "command"
"""Efforts that are compared with the limits: of the motors, and of the commands, which lack what the driver adds."""


class LargestEffort(NamedTuple):
    """Largest torque of a joint along a trajectory, relative to its limit.

    Attributes:
        joint: name of the joint.
        of: `MOTOR` or `COMMAND`, whichever is larger.
        time: time of the largest upper bound [s from the start of the trajectory].
        effort: magnitude of the torque there [N m or N].
        bound: 95 % upper bound of that magnitude; inf where the torque depends on a parameter that is not identifiable.
        limit: effort limit; inf where there is none.
        unit: N m or N.
    """

    joint: str
    of: str
    time: float
    effort: float
    bound: float
    limit: float
    unit: str


@dataclass(frozen=True)
class FeedForwardEfforts:
    """Efforts along a trajectory of n joints, at N samples and k points.

    Attributes:
        points: trajectory, in the model's order of joints.
        samples: samples of the path that the controller interpolates.
        numbers: sample of each point, shape (k,).
        motor: torque of the motors [N m or N], shape (N, n).
        commanded: torque without what the driver adds, shape (N, n).
        deviation: standard deviation of the motor torque, shape (N, n): parameter covariance, and held-out NRMSE times
            the RMS torque of this trajectory. It is also that of the command, to which a controller's feedback adds the
            error of the model.
        largest: largest torque of each joint, n.
        compensated: parts that the driver adds, of `COMPENSATED_PARTS`.
        findings: what the trajectory lacks, and where it extrapolates.
    """

    points: TrajectoryPoints
    samples: TrajectoryPoints
    numbers: Integers
    motor: Array
    commanded: Array
    deviation: Array
    largest: tuple[LargestEffort, ...]
    compensated: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def efforts(self) -> Array:
        """Efforts of the trajectory points, shape (k, n)."""
        return np.asarray(self.commanded[self.numbers])

    @property
    def violations(self) -> tuple[LargestEffort, ...]:
        """Joints whose torque may exceed the limit."""
        return tuple(joint for joint in self.largest if joint.bound > joint.limit)


@dataclass(frozen=True)
class FeedForward:
    """Feed-forward of one robot.

    Example:
        ```python
        feed_forward = rdi.FeedForward.from_parameters(rdi.load_parameters("run/parameters.yaml"), ("none",))
        effort = feed_forward.effort(q, dq, ddq)
        ```

    Attributes:
        parameters: identified parameter set.
        dynamics: its dynamics.
        compensation: torque that the driver adds to a command.
        limit: effort limits of the motors [N m or N], shape (n,), at first those of the URDF; inf where there is none.
    """

    parameters: ParameterSet
    dynamics: Dynamics
    compensation: DriverCompensation
    limit: Array

    @classmethod
    def from_parameters(cls, parameters: ParameterSet, robot_compensates: Sequence[str] = ()) -> FeedForward:
        """Make the feed-forward of a parameter set.

        Args:
            parameters: identified parameter set.
            robot_compensates: torques that the driver adds to a command, of `COMPENSATIONS`; empty: as the parameter
                set states.

        Raises:
            InputError: a model that must not command torques (see `refuse_unsafe`), or it is not known what the driver
                adds.
            UsageError: `robot_compensates` contradicts the parameter set.
        """
        parameters.refuse_bad_verdict()
        dynamics = Dynamics.from_parameters(parameters)
        refuse_unsafe(parameters, dynamics, find_credible_limits(dynamics.regressor.model))
        compensation = DriverCompensation.from_parameters(parameters, dynamics, robot_compensates)
        return cls(parameters, dynamics, compensation, find_effort_limits(dynamics.regressor.model))

    def effort(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, limit: ArrayLike | None = None) -> Array:
        """Effort to be commanded for a motion [N m or N], shape (n,) or (N, n).

        Friction is that of a long motion at the given velocity; `along` integrates presliding friction.

        Args:
            q: positions [rad or m], shape (n,) or (N, n).
            dq: velocities, of the same shape.
            ddq: accelerations, of the same shape.
            limit: largest effort, and largest torque of the motors, which give the effort and what the driver adds to
                it [N m or N], of all joints or shape (n,); by default the attribute `limit`.
        """
        limit = self.limit if limit is None else limit
        added = self.compensation.torque(q, dq)
        return limit_command(self.dynamics.inverse_dynamics(q, dq, ddq) - added, added, limit)

    def along(self, points: TrajectoryPoints) -> FeedForwardEfforts:
        """Efforts along a trajectory, as a joint trajectory controller interpolates it, with the check of the limits.

        Args:
            points: trajectory of all joints of the model.
        """
        duration = float(points.t[-1] - points.t[0])
        samples, numbers = points.sample(max(SPACING_S, duration / MOST_SAMPLES))
        states = self._states(samples)
        motor = self.dynamics.inverse_dynamics(samples.q, samples.dq, samples.ddq, states)
        commanded = motor - self.compensation.torque(samples.q, samples.dq, states=states)
        q, dq, ddq = (np.ascontiguousarray(x.T) for x in (samples.q, samples.dq, samples.ddq))
        motion = Motion(q, dq, ddq, states=states)
        deviation = self._deviation(motion, motor)
        largest = self._largest(samples.t, motor, commanded, deviation)
        findings = (
            *self._report_derivatives(points),
            *self._report_limits(),
            *self._report_held_out_error(),
            *self._report_range(motion),
        )
        parts = self.compensation.parts
        return FeedForwardEfforts(points, samples, numbers, motor, commanded, deviation, largest, parts, findings)

    def slowed(self, points: TrajectoryPoints) -> tuple[float, FeedForwardEfforts]:
        """Slow a trajectory down, on the same path, until its torques are within the limits.

        Returns:
            Speed relative to the given one, at most 1, and the efforts of the slowed trajectory.

        Raises:
            InputError: the limits are exceeded at all speeds that are tried, or no speed could keep them, since a
                torque has no upper bound.
        """
        efforts = self.along(points)
        if not efforts.violations:
            return 1.0, efforts
        high = 1.0
        for low in SPEEDS:
            efforts = self.along(_slow_down(points, low))
            if not efforts.violations:
                break
            high = low
        else:
            violation = efforts.violations[0]
            text = f"of {len(SPEEDS)} speeds none keeps the torque limits: at {low:g} of the speed "
            text += format_violation(violation)
            raise InputError(text) if np.isfinite(violation.bound) else InputError(f"{text}; {EXCITE}", EXCITE)
        while high / low > 1.01:
            middle = (low * high) ** 0.5
            tried = self.along(_slow_down(points, middle))
            if tried.violations:
                high = middle
            else:
                low, efforts = middle, tried
        return low, efforts

    def _states(self, samples: TrajectoryPoints) -> dict[Term, Array] | None:
        """States of the friction along the path, of an unknown past at its start; None if no term has any."""
        states = self.dynamics.initial_states()
        if not states:
            return None
        passed = [states]
        for k in range(1, len(samples.t)):
            step = float(samples.t[k] - samples.t[k - 1])
            if step > 0.0:
                states = self.dynamics.advance(states, samples.q[k - 1], samples.q[k], step)
            passed.append(states)
        return {term: np.concatenate([one[term] for one in passed], axis=-1) for term in states}

    def _deviation(self, motion: Motion, motor: Array) -> Array:
        """Standard deviation of the motor torque, shape (N, n)."""
        parameters, regressor, columns = self.parameters, self.dynamics.regressor, self.dynamics.columns
        known = np.isfinite(parameters.estimate.standard_deviations)
        covariance = np.where(known[:, None] & known, parameters.estimate.covariance, 0.0)
        deviation = compute_torque_deviation(regressor, columns, covariance, motion)
        if not known.all():
            open_columns = compute_torque_deviation(regressor, columns, np.diag(np.where(known, 0.0, 1.0)), motion)
            deviation = np.where(open_columns > 1e-9, np.inf, deviation)
        return np.asarray(np.hypot(deviation.T, np.nan_to_num(parameters.judgment.held_out_error(motor))))

    def _largest(self, t: Array, motor: Array, commanded: Array, deviation: Array) -> tuple[LargestEffort, ...]:
        model = self.dynamics.regressor.model
        of = np.where(np.abs(motor) >= np.abs(commanded), MOTOR, COMMAND)
        effort = np.maximum(np.abs(motor), np.abs(commanded))
        bound = effort + ONE_SIDED_95 * deviation
        at = (np.argmax(bound, axis=0), np.arange(bound.shape[1]))
        values = (of[at], t[at[0]], effort[at], bound[at], self.limit)
        return tuple(map(LargestEffort, model.joint_names, *(x.tolist() for x in values), model.effort_units))

    def _report_derivatives(self, points: TrajectoryPoints) -> tuple[Finding, ...]:
        orders = points.orders() if len(points.t) > 1 else np.full(1, 3)
        linear, cubic = (int(np.count_nonzero(orders == order)) for order in (1, 2))
        findings = []
        if linear:
            message = (
                f"{linear} of {len(orders)} segments have no velocities: controllers interpolate them linearly, with "
                "jumps of the velocity, and their efforts contain no acceleration"
            )
            findings.append(TRAJECTORY_WITHOUT_VELOCITIES.found(message))
        if cubic:
            message = (
                f"{cubic} of {len(orders)} segments have no accelerations: those of the cubic splines that controllers "
                "interpolate were used"
            )
            findings.append(TRAJECTORY_WITHOUT_ACCELERATIONS.found(message))
        return tuple(findings)

    def _report_limits(self) -> tuple[Finding, ...]:
        model, findings = self.dynamics.regressor.model, []
        without = [name for name, limit in zip(model.joint_names, self.limit, strict=True) if np.isinf(limit)]
        if without:
            message = f"no effort limit in the URDF for {', '.join(without)}: their torque was not checked"
            findings.append(EFFORT_LIMIT_MISSING.found(message, without))
        if not model.gravity.any():
            message = (
                "the model has no gravity: the torque that the driver adds against it is not part of the limit check"
            )
            findings.append(LIMITS_WITHOUT_GRAVITY.found(message))
        return tuple(findings)

    def _report_held_out_error(self) -> tuple[Finding, ...]:
        if np.isfinite(self.parameters.judgment.held_out_shares).all():
            return ()
        message = "the parameter set has no held-out error: the 95 % bounds contain the covariance of the parameters"
        return (BOUND_WITHOUT_HELD_OUT_ERROR.found(message),)

    def _report_range(self, motion: Motion) -> tuple[Finding, ...]:
        shares = flag_far_outside(motion, self.parameters.ranges).mean(axis=2)
        return report_excesses(list_excesses(self.parameters.robot.joint_names, shares), "warning")


def format_violation(violation: LargestEffort) -> str:
    """A violation as text."""
    joint, of, time, effort, bound, limit, unit = violation
    needed = f"{effort:.4g} {unit}" if of == MOTOR else f"a command of {effort:.4g} {unit}"
    if not np.isfinite(bound):
        return (
            f"joint {joint} needs {needed} at {time:.3f} s, without an upper bound to compare with its "
            f"limit of {limit:.4g} {unit}: a parameter in it is not identifiable"
        )
    return (
        f"joint {joint} needs {needed} (95 % upper bound {bound:.4g}) at {time:.3f} s, above its limit of "
        f"{limit:.4g} {unit}"
    )


def _slow_down(points: TrajectoryPoints, speed: float) -> TrajectoryPoints:
    return replace(points, t=points.t / speed, dq=speed * points.dq, ddq=speed**2 * points.ddq)
