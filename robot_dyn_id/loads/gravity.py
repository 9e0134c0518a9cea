# SPDX-License-Identifier: Apache-2.0
"""Gravity calibration of an arm without torque sensors, from poses held after an approach from both sides.

The drive of joint j, in any unit (current, PWM), carries the weight and what is left of the dry friction that held the
joint back on its way to the pose:

    u_j = g_j(q) / k_j + c_j d_j + o_j,    g(q) = Y(q) phi,

with the gain k_j [N m per drive unit], masses and first moments phi of the links, and the direction d_j (1 or -1) of
the last motion. Both sides of a pose separate friction from weight. All joints share phi, so that a weight that two
joints feel is fitted once. If all gains and phi are multiplied by the same factor, every u stays the same: the drive's
gravity effort does not need that factor; masses and gains do. It is taken from the total mass of the URDF, or from a
known weight that is held in a part of the poses.

The prior is that of the URDF's masses and centers, wide enough (`PRIOR_RATIO`) for a wrong URDF; it determines what
the poses do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.model.robot import RobotModel

PRIOR_RATIO = 0.5
"""Prior standard deviation of a link's mass relative to its mass in the URDF, and of its center to `reach` [-]."""

TOTAL_MASS_RATIO = 1e-3
"""Standard deviation of the total mass that fixes the common scale, relative to it [-]."""

SIGNIFICANT_SIGMAS = 3.0
"""Number of standard deviations by which the inverse of a gain differs from zero where weight acts on the joint; the
weight's variation over the poses must exceed the noise, too."""

REWEIGHTINGS = 4
"""Number of fits; each but the first has the noise of every joint from the one before."""

BODY_COLUMNS = 4
"""Columns of a body that weight depends on: mass and first moments."""


@dataclass(frozen=True)
class Holds:
    """Poses held at rest, N of them.

    Attributes:
        q: positions [rad or m], shape (n, N).
        drive: mean effort of the drives in their unit, shape (n, N).
        direction: direction of the last motion of each joint before the hold, 1, -1, or 0 if it did not move, shape
            (n, N).
    """

    q: Array
    drive: Array
    direction: Array

    def __len__(self) -> int:
        """Number of holds."""
        return int(self.q.shape[1])


@dataclass(frozen=True)
class GravityCalibration:
    """Weight of an arm in the unit of its drives.

    Attributes:
        inverse_gains: drive units per N m of weight, shape (n,); 0 where no weight was found.
        inverse_gain_deviations: their standard deviations, shape (n,), those of the common scale not included.
        carries_weight: joints on which weight acts, shape (n,).
        friction: effort in drive units by which dry friction holds a joint back after an approach, shape (n,).
        offsets: efforts of the drives at no load in their unit, shape (n,).
        bodies: mass [kg] and first moments [kg m] of each body, shape (b, 4); on a common scale that is arbitrary if
            `scale_deviation` is not finite.
        body_deviations: their standard deviations, shape (b, 4).
        by_joint: drive effort of each joint per mass and first moment of each body, fitted to the joint's own drive
            about the bodies of all, shape (n, 4 b); 0 where no weight was found.
        residuals: drive minus model at each hold, shape (n, N).
        scale_deviation: relative standard deviation of the common scale of masses and gains; inf: arbitrary.
    """

    inverse_gains: Array
    inverse_gain_deviations: Array
    carries_weight: Mask
    friction: Array
    offsets: Array
    bodies: Array
    body_deviations: Array
    by_joint: Array
    residuals: Array
    scale_deviation: float

    def effort(self, model: RobotModel, q: Array) -> Array:
        """Effort of the drives against gravity in their unit at configurations `q` [rad or m], both of shape (n, N)."""
        return np.asarray(np.einsum("jc,cjk->jk", self.by_joint, gravity_regressor(model, q)))


@dataclass(frozen=True)
class KnownWeight:
    """Poses held with a known weight.

    Attributes:
        holds: the poses with it.
        added: mass [kg] and first moments [kg m] that it adds to each body, shape (b, 4).
    """

    holds: Holds
    added: Array


def gravity_regressor(model: RobotModel, q: Array) -> Array:
    """Weight on the joints per mass and first moment of each body.

    Args:
        model: robot model with n joints and b bodies.
        q: configurations [rad or m], shape (n, N).

    Returns:
        Shape (4 b, n, N), m, mx, my, mz of each body [N m/kg, N m/(kg m)].
    """
    bodies = len(model.body_names)
    still = Motion(q, np.zeros_like(q), np.zeros_like(q))
    blocks = Regressor(model).dense(still).reshape(bodies, -1, *q.shape)[:, :BODY_COLUMNS]
    return np.ascontiguousarray(blocks.reshape(BODY_COLUMNS * bodies, *q.shape))


def calibrate_gravity(
    model: RobotModel, bare: Holds, known: KnownWeight | None = None, trust_mass: bool = False
) -> GravityCalibration:
    """Identify the weight of an arm in the unit of its drives.

    Args:
        model: robot model with n joints; its masses and centers are the prior.
        bare: poses held without a known weight.
        known: poses held with a known weight, which fixes the common scale of masses and gains.
        trust_mass: whether the URDF's total mass fixes the common scale; only without a known weight.

    Raises:
        InputError: fewer holds than needed for a joint, a joint that was approached from one side only, or a URDF
            without masses.
    """
    fit = _Fit.prepare(model, [(bare, 0.0), *([(known.holds, 1.0)] if known else [])], known)
    return fit.solve(scale_deviation=TOTAL_MASS_RATIO if trust_mass else np.inf)


def nominal_bodies(model: RobotModel) -> Array:
    """Mass [kg] and first moments [kg m] of each body by the URDF, shape (b, 4)."""
    return np.array(model.inertial_parameters.reshape(len(model.body_names), -1)[:, :BODY_COLUMNS])


@dataclass
class _Fit:
    """Rows of all holds, and the fit to them.

    x contains the inverse gains, frictions and offsets of the n joints and mass and first moments of the b bodies.
    """

    regressor: Array
    direction: Array
    drive: Array
    nominal: Array
    reach: float
    added: Array
    anchored: bool

    @classmethod
    def prepare(cls, model: RobotModel, runs: Sequence[tuple[Holds, float]], known: KnownWeight | None) -> _Fit:
        nominal = nominal_bodies(model)
        if not nominal[:, 0].sum() > 0.0:
            raise InputError("the URDF has no masses: calibration of gravity starts from them; give plausible ones")
        _check(model, [holds for holds, _ in runs])
        blocks = [gravity_regressor(model, holds.q) for holds, _ in runs]
        felt = np.zeros_like(nominal) if known is None else known.added
        added = np.concatenate(
            [share * np.tensordot(felt.ravel(), block, 1) for (_, share), block in zip(runs, blocks, strict=True)],
            axis=1,
        )
        return cls(
            np.concatenate(blocks, axis=2),
            np.concatenate([holds.direction for holds, _ in runs], axis=1),
            np.concatenate([holds.drive for holds, _ in runs], axis=1),
            nominal,
            _reach(blocks[0]),
            added,
            known is None,
        )

    def solve(self, scale_deviation: float) -> GravityCalibration:
        """Fit with the noise of every joint from the fit before."""
        from scipy.optimize import least_squares  # slow to import

        n, count = self.drive.shape
        x, noise = self._start()
        least = np.full(len(x), -np.inf)
        least[3 * n :: BODY_COLUMNS] = 0.0
        for _ in range(REWEIGHTINGS):
            found = least_squares(self._excess, x, self._jacobian, args=(noise,), bounds=(least, np.inf), x_scale="jac")
            x = found.x
            errors = self._errors(x)
            # three numbers of a joint and its share of the bodies are fitted
            freedom = max(1.0, count - 3.0 - min(self.nominal.size, count - 4) / n)
            noise = np.maximum(np.sqrt((errors**2).sum(axis=1) / freedom), _resolution(self.drive))
        jacobian = self._jacobian(x, noise)
        covariance = np.linalg.pinv(jacobian.T @ jacobian, rcond=1e-14, hermitian=True)
        deviation = np.sqrt(covariance.diagonal())
        inverse = x[:n]
        felt = inverse[:, None] * (np.tensordot(x[3 * n :], self.regressor, 1) + self.added)
        weight = (np.abs(inverse) > SIGNIFICANT_SIGMAS * deviation[:n]) & (np.std(felt, axis=1) > noise)
        if not self.anchored:  # by the known weight: the deviation of the common scale is that of the total mass
            total = slice(3 * n, None, BODY_COLUMNS)
            mass = x[total].sum()
            scale_deviation = float(np.sqrt(covariance[total, total].sum()) / mass) if mass > 0.0 else np.inf
        own, friction, offsets, errors = self._by_joint(x, noise)
        return GravityCalibration(
            np.where(weight, inverse, 0.0),
            deviation[:n],
            weight,
            friction,
            offsets,
            x[3 * n :].reshape(-1, BODY_COLUMNS),
            deviation[3 * n :].reshape(-1, BODY_COLUMNS),
            np.where(weight[:, None], own, 0.0),
            -errors,
            scale_deviation,
        )

    def _by_joint(self, x: Array, noise: Array) -> tuple[Array, Array, Array, Array]:
        """Fit of each joint's drive on its own, with the bodies of all as the prior.

        A joint with little weight would inherit the errors of those that carry the arm, which backlash makes
        systematic.

        Returns:
            Coefficients of mass and first moments, shape (n, 4 b), friction and offsets, shape (n,) each, and errors
            of the model, shape (n, N).
        """
        n = len(self.drive)
        bodies, own, further, errors = x[3 * n :], [], [], []
        for joint, (direction, drive) in enumerate(zip(self.direction, self.drive, strict=True)):
            rows = np.column_stack([self.regressor[:, joint].T, direction, np.ones(len(drive))])
            known = x[joint] * (self.regressor[:, joint].T @ bodies + self.added[joint])
            width = np.append(np.abs(x[joint]) * self._prior.ravel(), [np.inf, np.inf])
            stacked = np.concatenate([rows / noise[joint], np.diag(1.0 / width)])
            wanted = np.concatenate([(drive - known) / noise[joint], np.zeros(len(width))])
            change = np.linalg.lstsq(stacked, wanted, rcond=None)[0]
            own.append(x[joint] * bodies + change[:-2])
            further.append(change[-2:])
            errors.append(known + rows @ change - drive)
        friction, offsets = np.array(further).T
        return np.array(own), friction, offsets, np.array(errors)

    def _start(self) -> tuple[Array, Array]:
        """Every joint on its own with the URDF's bodies: coefficients, and noise of each joint, shape (n,)."""
        weight = np.tensordot(self.nominal.ravel(), self.regressor, 1) + self.added
        numbers, noise = [], []
        for felt, direction, drive in zip(weight, self.direction, self.drive, strict=True):
            columns = np.column_stack([felt, direction, np.ones(len(drive))])
            solution = np.linalg.lstsq(columns, drive, rcond=1e-9)[0]
            numbers.append(solution)
            noise.append(np.std(drive - columns @ solution))
        start = np.concatenate([np.array(numbers).T.ravel(), self.nominal.ravel()])
        return start, np.maximum(noise, _resolution(self.drive))

    def _errors(self, x: Array) -> Array:
        """Model minus drive, shape (n, N)."""
        n = len(self.drive)
        inverse, friction, offsets = x[: 3 * n].reshape(3, n, 1)
        weight = np.tensordot(x[3 * n :], self.regressor, 1) + self.added
        return np.asarray(inverse * weight + friction * self.direction + offsets - self.drive)

    def _excess(self, x: Array, noise: Array) -> Array:
        """Residuals of all holds, of the prior and of the common scale in their standard deviations."""
        bodies = x[3 * len(self.drive) :].reshape(self.nominal.shape)
        rows = [(self._errors(x) / noise[:, None]).ravel(), ((bodies - self.nominal) / self._prior).ravel()]
        if self.anchored:
            total = self.nominal[:, 0].sum()
            rows.append(np.array([(bodies[:, 0].sum() - total) / (TOTAL_MASS_RATIO * total)]))
        return np.concatenate(rows)

    def _jacobian(self, x: Array, noise: Array) -> Array:
        n, count = self.drive.shape
        inverse, bodies = x[:n], x[3 * n :]
        weight = np.tensordot(bodies, self.regressor, 1) + self.added
        rows = np.zeros((n, count, len(x)))
        for joint in range(n):
            for column, values in enumerate((weight[joint], self.direction[joint], np.ones(count))):
                rows[joint, :, column * n + joint] = values
        rows[:, :, 3 * n :] = inverse[:, None, None] * self.regressor.transpose(1, 2, 0)
        prior = np.zeros((len(bodies), len(x)))
        prior[:, 3 * n :] = np.diag(1.0 / self._prior.ravel())
        parts = [(rows / noise[:, None, None]).reshape(n * count, -1), prior]
        if self.anchored:
            total = np.zeros((1, len(x)))
            total[0, 3 * n :: BODY_COLUMNS] = 1.0 / (TOTAL_MASS_RATIO * self.nominal[:, 0].sum())
            parts.append(total)
        return np.concatenate(parts)

    @property
    def _prior(self) -> Array:
        """Standard deviations of the prior, shape (b, 4); bodies without mass have a thousandth of the arm's."""
        mass = np.maximum(self.nominal[:, :1], 1e-3 * self.nominal[:, 0].sum())
        return np.asarray(PRIOR_RATIO * mass * np.array([1.0, *([self.reach] * 3)]))


def _reach(regressor: Array) -> float:
    """Typical lever arm of the links [m]: median of the largest weights per mass and per first moment."""
    peaks = np.abs(regressor).max(axis=(1, 2)).reshape(-1, BODY_COLUMNS)
    levers = peaks[:, 0] / np.maximum(peaks[:, 1:].max(axis=1), 1e-12)
    return float(np.median(levers[levers > 0.0])) if np.any(levers > 0.0) else 0.1


def _resolution(drive: Array) -> Array:
    """Standard deviation of rounding to the smallest step that the drive's values have, shape (n,)."""
    steps = [np.diff(np.unique(row)) for row in drive]
    smallest = [float(step.min(initial=np.inf)) if len(step) else 0.0 for step in steps]
    size = np.abs(drive).max(axis=1)
    return np.maximum(np.where(np.isfinite(smallest), smallest, 0.0) / np.sqrt(12.0), 1e-9 * (size + 1e-9))


def _check(model: RobotModel, runs: Sequence[Holds]) -> None:
    """Refuse holds that cannot separate friction from weight."""
    for joint, name in enumerate(model.joint_names):
        direction = np.concatenate([holds.direction[joint] for holds in runs])
        if not (np.any(direction > 0) and np.any(direction < 0)):
            sides = "not moved between the poses" if not direction.any() else "approached from one side only"
            raise InputError(f"joint {name}: {sides}: friction cannot be told from weight; hold each pose from both")
