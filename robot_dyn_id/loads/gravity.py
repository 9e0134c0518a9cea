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
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.loads.holds import Holds
from robot_dyn_id.loads.payload import check_carrier, transform_parameters
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.model.robot import RobotModel

GRAVITY_SCALE_UNKNOWN = Definition(
    "gravity_scale_unknown",
    Section.LOADS,
    "info",
    "Only the products of gains and masses are identifiable from drives at rest, so that gravity is known in "
    "drive units, and neither masses nor gains are.",
    "trust the total mass of the URDF, or hold a known weight in further poses",
)

GRAVITY_JOINT_WITHOUT_WEIGHT = Definition(
    "gravity_joint_without_weight",
    Section.LOADS,
    "info",
    "The drive of a joint shows no weight: its axis is vertical, its links are balanced or light, or the weight "
    "is smaller than the noise of the drive.",
)

GRAVITY_RESIDUAL_LARGE = Definition(
    "gravity_residual_large",
    Section.LOADS,
    "warning",
    "Poses held at rest do not fit weight and dry friction: the arm was still settling, touched something, "
    "carried another weight, or has springs.",
    "record again: hold each pose for a second, from both sides, without contact",
)

PRIOR_RATIO = 0.5
"""Prior standard deviation of a link's mass relative to its mass in the URDF, and of its center to `reach` [-]."""

TOTAL_MASS_RATIO = 1e-3
"""Standard deviation of the total mass that fixes the common scale, relative to it [-]."""

REWEIGHTINGS = 4
"""Number of fits; each but the first has the noise of every joint from the one before."""

LARGEST_RESIDUAL_RATIO = 0.1
"""Residual of a joint relative to its gravity effort (RMS) that is reported [-]: more than friction and backlash that
repeat leave."""

LARGEST_SCALE_DEVIATION = 0.2
"""Relative standard deviation of the scale by a known weight above which it is refused [-]: the URDF is as good."""

MISFIT_PROBABILITY = 1e-6
"""Probability at which the residual of the known weight is larger by chance than that of an unknown one [-]."""

LARGEST_WEIGHT_RATIO = 1.0 + 4.0 * PRIOR_RATIO
"""Ratio of the arm's weight to the URDF's above which, or below whose inverse, a known weight is refused [-]: four
standard deviations of the prior in all links at once."""

ROWS_PER_UNKNOWN = 2.0
"""Smallest number of drive values per unknown."""

SATURATED_HOLDS = 3
"""Number of holds, from both sides among them, at exactly the same largest effort that a drive at its limit shows."""

UNUSABLE_RESIDUAL_RATIO = 0.5
"""Residual of a joint relative to its gravity effort (RMS) from which on its compensation is refused [-]: two standard
deviations of the error are then as large as the effort, whose sign is not known."""

BODY_COLUMNS = 4
"""Columns of a body that weight depends on: mass and first moments."""


@dataclass(frozen=True)
class GravityCalibration:
    """Weight of an arm in the unit of its drives.

    Attributes:
        inverse_gains: drive units per N m of weight, shape (n,); 0 where no weight was found.
        inverse_gain_deviations: their standard deviations, shape (n,); without that of the common scale if it is
            arbitrary.
        carries_weight: joints on which weight acts, shape (n,).
        friction: effort in drive units by which dry friction holds a joint back after an approach, shape (n,).
        offsets: efforts of the drives at no load in their unit, shape (n,).
        bodies: mass [kg] and first moments [kg m] of each body, shape (b, 4); on a common scale that is arbitrary if
            `scale_deviation` is not finite.
        body_deviations: their standard deviations, shape (b, 4).
        by_joint: drive effort of each joint per mass and first moment of each body, fitted to the joint's own drive
            about the bodies of all, shape (n, 4 b); 0 where no weight was found.
        weights: gravity effort of each drive at each hold by the model, in drive units, shape (n, N).
        residuals: drive minus model at each hold, shape (n, N).
        largest: largest magnitude of each drive's effort at the holds, shape (n,).
        scale_deviation: relative standard deviation of the common scale of masses and gains: that of the gain known
            best; inf: arbitrary.
    """

    inverse_gains: Array
    inverse_gain_deviations: Array
    carries_weight: Mask
    friction: Array
    offsets: Array
    bodies: Array
    body_deviations: Array
    by_joint: Array
    weights: Array
    residuals: Array
    largest: Array
    scale_deviation: float

    @property
    def has_scale(self) -> bool:
        """Whether masses and gains are known, rather than only their products."""
        return bool(np.isfinite(self.scale_deviation))

    @property
    def gravity_rms(self) -> Array:
        """RMS of the effort against gravity at the holds in drive units, shape (n,)."""
        return np.asarray(np.sqrt((self.weights**2).mean(axis=1)))

    @property
    def residual_rms(self) -> Array:
        """RMS of the residuals of each joint in drive units, shape (n,)."""
        return np.asarray(np.sqrt((self.residuals**2).mean(axis=1)))

    def effort(self, model: RobotModel, q: Array) -> Array:
        """Effort of the drives against gravity in their unit at configurations `q` [rad or m], both of shape (n, N)."""
        return compute_gravity_effort(self.by_joint, model, q)


@dataclass(frozen=True)
class KnownWeight:
    """Poses held with a known weight.

    Attributes:
        holds: the poses with it.
        added: mass [kg] and first moments [kg m] that it adds to each body, shape (b, 4).
    """

    holds: Holds
    added: Array

    @classmethod
    def at_link(cls, model: RobotModel, holds: Holds, mass: float, link: str, center: Array) -> KnownWeight:
        """Weight on a link.

        Args:
            model: robot model with b bodies.
            holds: the poses with it.
            mass: its mass [kg].
            link: link that carries it.
            center: its center of mass in the frame of the link [m], shape (3,).

        Raises:
            ModelError: the URDF has no such link.
            InputError: a link that does not move, or a mass that is not positive and finite.
        """
        if not (np.isfinite(mass) and mass > 0.0 and np.isfinite(center).all()):
            raise InputError(f"the known mass must be positive and finite, and so must its center: not {mass:g} kg")
        at = find_placement_of(model, link)
        check_carrier(link, at)
        body = np.concatenate([[mass], mass * np.asarray(center), np.zeros(6)])
        added = np.zeros((len(model.body_names), BODY_COLUMNS))
        added[at.body] = (transform_parameters(at) @ body)[:BODY_COLUMNS]
        return cls(holds, added)


def compute_gravity_regressor(model: RobotModel, q: Array) -> Array:
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


def compute_gravity_effort(by_joint: Array, model: RobotModel, q: Array) -> Array:
    """Effort of the drives against gravity in their unit, shape (n, N).

    Args:
        by_joint: see `GravityCalibration`, shape (n, 4 b).
        model: robot model with n joints and b bodies.
        q: configurations [rad or m], shape (n, N).
    """
    return np.asarray(np.einsum("jc,cjk->jk", by_joint, compute_gravity_regressor(model, q)))


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
        InputError: fewer holds than unknowns need, a joint that was not moved or was approached from one side only, a
            drive at its limit, a known weight that changes nothing or contradicts the poses or the URDF, or a URDF
            without masses.
    """
    if known is not None:
        _refuse_repeated(bare, known.holds)
    fit = _Fit.prepare(model, [(bare, 0.0), *([(known.holds, 1.0)] if known else [])], known)
    found = fit.solve(scaled=trust_mass or known is not None)
    fit.check_saturation(model.joint_names, found.carries_weight)
    if known is not None:
        if not found.scale_deviation < LARGEST_SCALE_DEVIATION:
            raise InputError(
                "the known weight changes the drives too little to fix the scale of the masses "
                f"(to {100.0 * found.scale_deviation:.0f} %): hold a heavier weight, in more poses"
            )
        fit.check_known(model.joint_names, known, len(bare.q.T))
        fit.check_scale(found)
    return found


def report_calibration(model: RobotModel, found: GravityCalibration) -> tuple[Finding, ...]:
    """Findings about a calibration.

    Args:
        model: robot model with n joints.
        found: calibration of this robot.
    """
    names = np.array(model.joint_names)
    findings = []
    if not found.has_scale:
        message = (
            "gravity is known in drive units alone: masses and gains need a scale, none of them are written, and the "
            "standard deviations do not contain it"
        )
        findings.append(GRAVITY_SCALE_UNKNOWN.found(message))
    light = names[~found.carries_weight].tolist()
    if light:
        message = f"no weight was found on joint {', '.join(light)}: the effort against gravity is zero"
        findings.append(GRAVITY_JOINT_WITHOUT_WEIGHT.found(message, light))
    weight = found.gravity_rms
    for joint in np.flatnonzero(found.carries_weight & (found.residual_rms > LARGEST_RESIDUAL_RATIO * weight)):
        share = 100.0 * found.residual_rms[joint] / weight[joint]
        message = f"joint {names[joint]}: the residual is {share:.0f} % of the drive's gravity effort (RMS)"
        findings.append(GRAVITY_RESIDUAL_LARGE.found(message, [str(names[joint])]))
    return tuple(findings)


@dataclass(frozen=True)
class DriveQuality:
    """Accuracy of a calibration, joint by joint, in drive units, shape (n,) each.

    Attributes:
        carries_weight: joints on which weight acts.
        friction: effort by which dry friction holds a joint.
        gravity_rms: RMS of the effort against gravity at the holds.
        residual_rms: RMS of the residuals.
        largest: largest magnitude of the effort at the holds.
    """

    carries_weight: Mask
    friction: Array
    gravity_rms: Array
    residual_rms: Array
    largest: Array

    def refuse_uncertain(self, joint_names: Sequence[str]) -> None:
        """Refuse a calibration that may push a joint the wrong way.

        Raises:
            InputError: the residual of a joint is above `UNUSABLE_RESIDUAL_RATIO` times its gravity effort.
        """
        wrong = self.carries_weight & (self.residual_rms > UNUSABLE_RESIDUAL_RATIO * self.gravity_rms)
        for joint in np.flatnonzero(wrong).tolist():
            raise InputError(
                f"joint {joint_names[joint]}: the calibration leaves a residual of {self.residual_rms[joint]:.3g}, as "
                f"large as its gravity effort ({self.gravity_rms[joint]:.3g} RMS in drive units): calibrate again"
            )

    def drifting(self, joint_names: Sequence[str]) -> tuple[str, ...]:
        """Names of the joints that may drift under compensation: their friction is below twice their residual."""
        weak = self.carries_weight & (np.abs(self.friction) < 2.0 * self.residual_rms)
        return tuple(name for name, may in zip(joint_names, weak, strict=True) if may)


def list_nominal_bodies(model: RobotModel) -> Array:
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
    unknown: int = 0
    """Number of bodies, the last ones, of which nothing is known before: they may be negative."""

    @classmethod
    def prepare(cls, model: RobotModel, runs: Sequence[tuple[Holds, float]], known: KnownWeight | None) -> _Fit:
        nominal = list_nominal_bodies(model)
        if not nominal[:, 0].sum() > 0.0:
            raise InputError("the URDF has no masses: calibration of gravity starts from them; give plausible ones")
        _check(model, [holds for holds, _ in runs])
        blocks = [compute_gravity_regressor(model, holds.q) for holds, _ in runs]
        _check_count(np.concatenate(blocks, axis=2))
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

    def solve(self, scaled: bool) -> GravityCalibration:
        """Fit with the noise of every joint from the fit before.

        Args:
            scaled: whether the common scale of masses and gains is known.

        Raises:
            InputError: no joint carries weight.
        """
        n = len(self.drive)
        x, noise, _ = self._converged()
        jacobian = self._jacobian(x, noise)
        size = np.linalg.norm(jacobian, axis=0)  # columns differ by units: only scaled ones have a sensible rank
        size[size == 0.0] = 1.0
        covariance = np.linalg.pinv((jacobian / size).T @ (jacobian / size), rcond=1e-12, hermitian=True)
        covariance /= np.outer(size, size)
        deviation = np.sqrt(covariance.diagonal())
        inverse = x[:n]
        felt = inverse[:, None] * (np.tensordot(x[3 * n :], self.regressor, 1) + self.added)
        # the common scale, which the inverse gains' deviations contain, does not matter here
        weight = np.std(felt, axis=1) > noise
        if not weight.any():
            raise InputError(
                "no joint carries weight beyond the noise of its drive: check the gravity vector, and which topic has "
                "the efforts"
            )
        scale_deviation = float((deviation[:n] / np.abs(inverse))[weight].min()) if scaled else np.inf
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
            np.where(weight[:, None], self.drive + errors - friction[:, None] * self.direction - offsets[:, None], 0.0),
            -errors,
            np.abs(self.drive).max(axis=1),
            scale_deviation,
        )

    def check_known(self, names: Sequence[str], known: KnownWeight, bare: int) -> None:
        """Refuse a known weight that does not explain the poses that are held with it.

        The same poses are fitted with an unknown weight on the same bodies. Its residual is smaller by chance alone if
        mass, link and center of the known one are right (F test of the two residuals, joint by joint).

        Args:
            names: names of the n joints.
            known: the known weight.
            bare: number of holds without it, which are the first ones.

        Raises:
            InputError: the residual of the known weight is too large.
        """
        from scipy.stats import f as fisher  # slow to import

        carriers = np.flatnonzero(known.added.any(axis=1))
        felt = self.regressor.reshape(-1, BODY_COLUMNS, *self.drive.shape)[carriers].copy()
        felt[..., :bare] = 0.0
        free = replace(
            self,
            regressor=np.concatenate([self.regressor, felt.reshape(-1, *self.drive.shape)]),
            nominal=np.concatenate([self.nominal, np.zeros((len(carriers), BODY_COLUMNS))]),
            added=np.zeros_like(self.added),
            unknown=len(carriers),
        )
        _, noise, freedom = self._converged()
        _, least, free_freedom = free._converged()
        ratio = (noise / least) ** 2
        worst = int(ratio.argmax())
        if ratio[worst] > fisher.isf(MISFIT_PROBABILITY / len(ratio), freedom, free_freedom):
            raise InputError(
                f"the known weight does not explain the poses that are held with it: joint {names[worst]} has a "
                f"residual of {noise[worst]:.3g} in drive units, and {least[worst]:.3g} with a weight that is not "
                "known: check its mass, the link, its center in the frame of the link, and which recordings hold it"
            )

    def check_scale(self, found: GravityCalibration) -> None:
        """Refuse a scale by a known weight that contradicts the masses of the URDF.

        Raises:
            InputError: the weight on the joints is not that of the URDF by a factor above `LARGEST_WEIGHT_RATIO`.
        """
        weights = [np.tensordot(bodies.ravel(), self.regressor, 1) for bodies in (found.bodies, self.nominal)]
        ratio = float(np.linalg.norm(weights[0]) / np.linalg.norm(weights[1]))
        if not 1.0 / LARGEST_WEIGHT_RATIO < ratio < LARGEST_WEIGHT_RATIO:
            raise InputError(
                f"by the known weight the arm is {ratio:.2g} times as heavy as in the URDF: check the known mass in "
                "kg, or correct the masses in the URDF"
            )

    def _converged(self) -> tuple[Array, Array, float]:
        """Solution, noise of each joint, shape (n,), and the noise's degrees of freedom."""
        from scipy.optimize import least_squares  # slow to import

        n, count = self.drive.shape
        x, noise = self._start()
        least = np.full(len(x), -np.inf)
        least[3 * n : len(x) - BODY_COLUMNS * self.unknown : BODY_COLUMNS] = 0.0
        # three numbers of a joint and its share of the bodies are fitted
        freedom = max(1.0, count - 3.0 - min(self.nominal.size, count - 4) / n)
        for _ in range(REWEIGHTINGS):
            found = least_squares(self._excess, x, self._jacobian, args=(noise,), bounds=(least, np.inf), x_scale="jac")
            x = found.x
            noise = np.sqrt((self._errors(x) ** 2).sum(axis=1) / freedom)
            noise = np.maximum(noise, _resolution(self.drive))
        return x, noise, freedom

    def check_saturation(self, names: Sequence[str], carries_weight: Mask) -> None:
        """Refuse drives at their limit: friction would show between both sides, and weight between poses.

        Args:
            names: names of the n joints.
            carries_weight: joints on which weight acts, shape (n,).

        Raises:
            InputError: a drive at its limit.
        """
        for joint in np.flatnonzero(carries_weight).tolist():
            drive, direction = self.drive[joint], self.direction[joint]
            for end in (drive.max(), drive.min()):
                at = np.abs(drive - end) <= 1e-9 * np.abs(drive).max()
                sides = np.any(direction[at] > 0) and np.any(direction[at] < 0)
                if at.sum() >= SATURATED_HOLDS and sides:
                    raise InputError(
                        f"joint {names[joint]}: the drive is at its limit ({end:g} in {at.sum()} holds), so that it "
                        "does not show the weight: choose poses with less load, or raise the limit of the drive"
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
        """Standard deviations of the prior, shape (b, 4).

        Bodies without mass have those of a thousandth of the arm's; those of unknown bodies are infinite.
        """
        mass = np.maximum(self.nominal[:, :1], 1e-3 * self.nominal[:, 0].sum())
        mass[len(mass) - self.unknown :] = np.inf
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
    rounding = np.where(np.isfinite(smallest), smallest, 0.0) / np.sqrt(12.0)
    return np.asarray(np.maximum(rounding, 1e-9 * (size + 1e-9)))


def _refuse_repeated(bare: Holds, loaded: Holds) -> None:
    """Refuse a recording that is given both without and with the known weight: no weight was held in it."""
    both = [set(map(bytes, np.concatenate([holds.q, holds.drive]).T.copy())) for holds in (bare, loaded)]
    if 2 * len(both[0] & both[1]) > len(both[1]):
        raise InputError(
            "the poses with the known weight are those without it: the same recording is given twice; record poses "
            "again with the weight"
        )


def _check_count(regressor: Array) -> None:
    """Refuse fewer holds than the unknowns need, by the regressor of all holds, shape (4 b, n, N)."""
    _, n, count = regressor.shape
    bodies = int(np.linalg.matrix_rank(regressor.reshape(len(regressor), -1), rtol=1e-9))
    needed = int(np.ceil(ROWS_PER_UNKNOWN * (3 * n + bodies) / n))
    if count < needed:
        raise InputError(f"{count} poses are held, and at least {needed} are needed: record more of them")


def _check(model: RobotModel, runs: Sequence[Holds]) -> None:
    """Refuse holds that cannot separate friction from weight."""
    for joint, name in enumerate(model.joint_names):
        direction = np.concatenate([holds.direction[joint] for holds in runs])
        if not (np.any(direction > 0) and np.any(direction < 0)):
            cause = "not moved between the poses" if not direction.any() else "all poses were reached from one side"
            raise InputError(
                f"joint {name}: {cause}, so that friction is not separated from weight: reach each pose from both sides"
            )
