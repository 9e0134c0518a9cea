# SPDX-License-Identifier: Apache-2.0
"""The paper's own searches: all 108 numbers of Table 1 at once, raw rows, raw units.

Estimators of this package search 82 base parameters, start from least squares, and scale their columns. Nothing of this
is in the paper: here a swarm, a genetic algorithm, Levenberg-Marquardt and a Kalman filter have the numbers of the
table, F = 1/2 sum of squared residuals, and whatever they end with counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion, Regressor

JOINTS, RIGID, FRICTION = 6, 72, 5
"""Joints; inertial parameters, rotors and springs; linear friction parameters of a joint: fc, fb, kv1, kv2, kv3."""

BOX, RATIO = 0.5, 3.0
"""Half width of the box as a share of the nominal value, and largest ratio of vb to it: the paper prints neither."""

NEGLIGIBLE_RATIO = 6.0
"""Ratio of speed to vb beyond which exp(-(v / vb)^2) is below the rounding of 1."""

LEAST_VELOCITY = 1e-6
"""Smallest vb of an iteration [rad/s]: the law is not defined at 0."""

INITIAL_DAMPING, MAX_DAMPING = 1e-2, 1e3
"""First mu, not printed, and the one beyond which PSO-LM restarts its swarm; LM alone has no such limit."""

MARQUARDT_STEPS = 100
"""Steps of Levenberg-Marquardt, after which the last point is the result."""

CONVERGED_COST_DECREASE, CONVERGED_STEPS = 1e-8, 3
"""Relative decrease of F that is negligible, and consecutive steps with it after which the search has converged."""

MAX_SWARMS = 3
"""Most swarms of PSO-LM, which keeps the end with the lowest F."""


def convert_from_columns(values: Array, velocities: Array) -> Array:
    """The 108 numbers from the parameters of all columns, whose second friction parameter is fb - fc."""
    numbers = np.concatenate([values, velocities])
    friction = numbers[RIGID:-JOINTS].reshape(JOINTS, FRICTION)
    friction[:, 1] += friction[:, 0]
    return numbers


def convert_to_columns(numbers: Array) -> tuple[Array, Array]:
    """Parameters of all columns, shape (102,), and vb, shape (6,), from the 108 numbers."""
    values = numbers[:-JOINTS].copy()
    friction = values[RIGID:].reshape(JOINTS, FRICTION)
    friction[:, 1] -= friction[:, 0]
    return values, numbers[-JOINTS:]


@dataclass(frozen=True)
class AllNumbers:
    """The 108 numbers: fc, fb, kv1, kv2, kv3 of each joint follow 72 rigid ones, and the six vb come last.

    Attributes:
        rows: columns of the joints that depend on no vb, shape (N, s) each: rigid ones, v, v^2, v^3.
        supports: numbers of these columns.
        speeds: velocities of the joints, shape (6, N).
        torque: measured torques, shape (6, N).
        lower: lower bounds of the box, shape (108,).
        upper: upper bounds of the box, shape (108,).
    """

    rows: tuple[Array, ...]
    supports: tuple[Integers, ...]
    speeds: Array
    torque: Array
    lower: Array
    upper: Array

    @classmethod
    def from_data(cls, regressor: Regressor, motion: Motion, torque: Array, nominal: Array) -> AllNumbers:
        """Make the box around the nominal numbers.

        Args:
            regressor: bodies, rotors, springs and improved Stribeck friction of every joint.
            motion: recorded motion of N samples.
            torque: measured torques, shape (6, N).
            nominal: nominal numbers, shape (108,).
        """
        dense = regressor.dense(motion)
        rows, supports = [], []
        for joint in range(JOINTS):
            first = RIGID + FRICTION * joint
            taken = np.flatnonzero(np.any(dense[:RIGID, joint] != 0.0, axis=1))
            support = np.concatenate([taken, np.arange(first + 2, first + FRICTION)])
            rows.append(np.ascontiguousarray(dense[support, joint].T))
            supports.append(support)
        half = BOX * np.abs(nominal)
        lower, upper = nominal - half, nominal + half
        lower[-JOINTS:], upper[-JOINTS:] = nominal[-JOINTS:] / RATIO, nominal[-JOINTS:] * RATIO
        return cls(tuple(rows), tuple(supports), motion.dq, torque, lower, upper)

    def at(self, sample: int) -> AllNumbers:
        """The same at one sample."""
        only = slice(sample, sample + 1)
        rows = tuple(rows[only] for rows in self.rows)
        return replace(self, rows=rows, speeds=self.speeds[:, only], torque=self.torque[:, only])

    @cached_property
    def _split(self) -> tuple[tuple[Integers, Array], ...]:
        """For each joint the samples at which its peak counts in the box, and a triangular factor of all others.

        There the torque is linear, and F is that of the rows themselves within rounding.
        """
        parts = []
        for joint in range(JOINTS):
            speed = self.speeds[joint]
            fast = np.abs(speed) > NEGLIGIBLE_RATIO * self.upper[joint - JOINTS]
            linear = np.column_stack([self.rows[joint], np.sign(speed), self.torque[joint]])[fast]
            parts.append((np.flatnonzero(~fast), np.asarray(np.linalg.qr(linear, mode="r"))))
        return tuple(parts)

    def compute_costs(self, points: Array) -> Array:
        """F of m points, shape (m,); `points` has the shape (m, 108)."""
        total = np.zeros(len(points))
        for joint in range(JOINTS):
            fc, fb, vb = self._dry(joint, points)
            linear = points[:, self.supports[joint]].T
            rows: slice | Integers = slice(None)
            if vb.max() <= self.upper[joint - JOINTS]:
                rows, triangle = self._split[joint]
                far = triangle[:, -1:] - triangle[:, :-2] @ linear - triangle[:, -2:-1] * fc
                total += 0.5 * np.einsum("km,km->m", far, far)
            speed = self.speeds[joint][rows]
            share = np.exp(-((speed[:, None] / vb) ** 2))
            rest = self.torque[joint][rows, None] - self.rows[joint][rows] @ linear
            rest -= np.sign(speed)[:, None] * (fc + (fb - fc) * share)
            total += 0.5 * np.einsum("km,km->m", rest, rest)
        return total

    def linearized(self, joint: int, numbers: Array) -> tuple[Array, Integers, Array]:
        """Jacobian of a joint's torque (eq. 12 to 16), shape (N, s + 3), its columns, and the residual, shape (N,)."""
        fc, fb, vb = self._dry(joint, numbers)
        speed, first = self.speeds[joint], RIGID + FRICTION * joint
        sign, share = np.sign(speed), np.exp(-((speed / vb) ** 2))
        by_velocity = sign * (fb - fc) * share * 2.0 * speed**2 / vb**3
        jacobian = np.column_stack([self.rows[joint], sign * (1.0 - share), sign * share, by_velocity])
        columns = np.concatenate([self.supports[joint], [first, first + 1, len(numbers) - JOINTS + joint]])
        torque = self.rows[joint] @ numbers[self.supports[joint]] + sign * (fc + (fb - fc) * share)
        return jacobian, columns, self.torque[joint] - torque

    @staticmethod
    def _dry(joint: int, points: Array) -> tuple[Array, Array, Array]:
        """Sliding and breakaway friction, and vb, of points of shape (..., 108)."""
        first = RIGID + FRICTION * joint
        vb = np.maximum(np.abs(points[..., joint - JOINTS]), LEAST_VELOCITY)
        return points[..., first], points[..., first + 1], vb


@dataclass(frozen=True)
class Ended:
    """End of a search.

    Attributes:
        numbers: the last point, shape (108,).
        course: F after each step.
        converged: whether F has stopped to decrease.
        exceeded: whether mu has exceeded its limit, where PSO-LM restarts.
    """

    numbers: Array
    course: Array
    converged: bool
    exceeded: bool = False


def run_marquardt(space: AllNumbers, start: Array, max_damping: float = np.inf) -> Ended:
    """Levenberg-Marquardt with J'J + mu I, mu halved after a successful step and doubled otherwise (eq. 17 to 19).

    Args:
        space: the 108 numbers and their data.
        start: first point, shape (108,).
        max_damping: mu beyond which the search ends without convergence.
    """
    numbers, damping, negligible = start.copy(), INITIAL_DAMPING, 0
    cost = float(space.compute_costs(numbers[None])[0])
    course = [cost]
    normal, gradient = _normal_equations(space, numbers)
    for _ in range(MARQUARDT_STEPS):
        trial = numbers + np.linalg.solve(normal + damping * np.eye(len(numbers)), gradient)
        then = float(space.compute_costs(trial[None])[0])
        negligible = negligible + 1 if abs(cost - then) <= CONVERGED_COST_DECREASE * cost else 0
        if then < cost:
            numbers, cost, damping = trial, then, damping / 2.0
            normal, gradient = _normal_equations(space, numbers)
        else:
            damping *= 2.0
        course.append(cost)
        if negligible == CONVERGED_STEPS:
            return Ended(numbers, np.array(course), True)
        if damping > max_damping:
            return Ended(numbers, np.array(course), False, exceeded=True)
    return Ended(numbers, np.array(course), False)


def _normal_equations(space: AllNumbers, numbers: Array) -> tuple[Array, Array]:
    """J'J, shape (108, 108), and J' times the residual, shape (108,)."""
    normal, gradient = np.zeros((len(numbers), len(numbers))), np.zeros(len(numbers))
    for joint in range(JOINTS):
        jacobian, columns, rest = space.linearized(joint, numbers)
        normal[np.ix_(columns, columns)] += jacobian.T @ jacobian
        gradient[columns] += jacobian.T @ rest
    return normal, gradient


def run_kalman_filter(space: AllNumbers, nominal: Array, noise: Array) -> Ended:
    """Extended Kalman filter of constant numbers, sample by sample, every torque a measurement.

    Args:
        space: box, whose uniform distribution has the initial covariance.
        nominal: initial numbers, shape (108,).
        noise: standard deviation of the measured torques [N m], shape (6,).
    """
    numbers, covariance = nominal.copy(), np.diag((space.upper - space.lower) ** 2 / 12.0)
    for sample in range(space.torque.shape[1]):
        one = space.at(sample)
        for joint in range(JOINTS):
            jacobian, columns, rest = one.linearized(joint, numbers)
            spread = covariance[:, columns] @ jacobian[0]
            gain = spread / (jacobian[0] @ spread[columns] + noise[joint] ** 2)
            numbers = numbers + gain * rest[0]
            covariance -= np.outer(gain, spread)
    return Ended(numbers, space.compute_costs(np.array([nominal, numbers])), bool(np.isfinite(numbers).all()))
