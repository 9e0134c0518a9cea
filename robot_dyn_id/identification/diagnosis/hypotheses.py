# SPDX-License-Identifier: Apache-2.0
"""Hypotheses about a recording: direction of gravity, weight in the efforts, scale and order of the channels.

Each hypothesis is a rigid-body fit with free inertial parameters, without the torque that friction can explain
(`samples.RigidRows`), so that it needs no masses in the URDF. Fits are compared by the residuals of all joints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.chance import compute_jackknife_deviations, find_critical_ratio
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.identification.diagnosis.gain_factors import find_factor
from robot_dyn_id.identification.diagnosis.samples import (
    BLOCKS,
    DRY_FRICTION_COLUMNS,
    FIRST_FRICTION_COLUMN,
    RIDGE,
    MotionSamples,
    RigidFit,
    RigidGrams,
    RigidRows,
    solve_scaled,
)
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel

STANDARD_WEIGHT = math.hypot(*STANDARD_GRAVITY)
"""Magnitude of gravity [m/s^2]."""

DIRECTIONS = tuple(np.array(signs, dtype=np.float64) for signs in product((-1, 0, 1), repeat=3) if any(signs))
"""Directions from which the search for gravity starts: faces, edges and corners of a cube."""

LOADED_RATIO = 0.25
"""Gravity torque of a joint by the URDF, as a ratio to the largest one, above which the joint is loaded."""

FITTED_RATIO = 0.5
"""Residual of a joint, as a ratio to its effort without friction, up to which a factor explains the effort: without
that condition a factor that takes a joint out of the equations would be the best one."""

STRONG_RATIO = 0.3
"""Effort of a joint without friction, as a ratio to the largest one, from which on a factor must explain it."""

REVERSED_FACTOR = 0.3
"""Factor of the URDF's weight below whose negative an effort is opposite to it."""

WEIGHTLESS_FACTOR = 0.2
"""Factor of the URDF's gravity torque in the efforts below which they contain no weight."""

LEAST_INERTIA_FACTOR = 0.5
"""Factor of the URDF's inertial torque from which on efforts are torques."""

DIRECTION_SIGMAS, DIRECTION_FACTOR = 10.0, 0.3
"""Standard deviations, and factor of the URDF's weight, above which the sign of that factor counts."""

SIGN_COST, CONTRADICTION_COST = 0.5, 1.5
"""Sum of the logarithms of the residuals by which an opposite sign must improve the fit, and in addition one that the
URDF's weight contradicts."""

SMALLEST_WEIGHT_RATIO = 1e-3
"""Gravity torque of a joint, as a ratio to the largest one, that counts as zero."""

GAINS = (
    *(-10.0, -3.0, -1.0, -0.3, -0.1, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85),
    *(1.0, 1.2, 1.4, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1e3),
)
"""Factors of one joint's effort that are compared."""


@dataclass(frozen=True)
class GravityFits:
    """Rigid-body fits under any gravity vector.

    Attributes:
        grams: Gram matrices of four groups of columns: without gravity, and the change per m/s^2 along x, y and z.
    """

    grams: RigidGrams

    @classmethod
    def from_samples(cls, samples: MotionSamples, model: RobotModel) -> GravityFits:
        """Evaluate the regressor without gravity and for one m/s^2 along each axis."""
        models = [replace(model, gravity=gravity) for gravity in (np.zeros(3), *np.eye(3))]
        rows = RigidRows.from_samples(samples, models)
        free, *along = np.split(rows.columns, 4, axis=2)
        columns = np.concatenate([free, *(axis - free for axis in along)], axis=2)
        return cls(replace(rows, columns=columns).grams())

    def fit(self, gravity: Array) -> RigidFit:
        """Fit under a gravity vector [m/s^2], shape (3,)."""
        return self._under(gravity).fit()

    def without_gravity(self) -> RigidFit:
        """Fit of efforts that contain no weight."""
        return self.fit(np.zeros(3))

    def refine(self, gravity: Array, steps: int = 8) -> Array:
        """Direction of gravity with the smallest residual near another one, by Gauss-Newton with free parameters.

        Args:
            gravity: start [m/s^2], shape (3,), not zero.
            steps: number of steps.
        """
        magnitude = float(np.linalg.norm(gravity))
        best, least = gravity, self.fit(gravity)
        for _ in range(steps):
            tangent = np.linalg.svd(best[None] / magnitude)[2][1:]  # two directions at right angles to gravity
            turn = self._turn(best, least, tangent)
            size = float(np.linalg.norm(turn))
            turn *= min(1.0, 0.5 * magnitude / max(size, 1e-12))
            following = best + tangent.T @ turn
            following *= magnitude / np.linalg.norm(following)
            fit = self.fit(following)
            if fit.advantage(least) <= 0.0:
                break
            best, least = following, fit
            if size < 1e-4 * magnitude:
                break
        return best

    def best_direction(self, magnitude: float = STANDARD_WEIGHT) -> Array:
        """Gravity of a magnitude [m/s^2] with the smallest residual, shape (3,)."""
        starts = [magnitude * direction / np.linalg.norm(direction) for direction in DIRECTIONS]
        none = self.without_gravity()
        first = max(starts, key=lambda gravity: self.fit(gravity).advantage(none))
        return self.refine(first)

    def _groups(self, array: Array, axes: Sequence[int]) -> Array:
        """An array of columns with each axis of 4 c entries split into (4, c)."""
        shape: list[int] = []
        for axis, size in enumerate(array.shape):
            shape += [4, size // 4] if axis in axes else [size]
        return array.reshape(shape)

    def _under(self, gravity: Array) -> RigidGrams:
        mix = np.concatenate([[1.0], gravity])
        joints, columns = len(self.grams.grams), self.grams.grams.shape[1] // 4
        grams = (np.outer(mix, mix).ravel() @ self._pairs).reshape(joints, columns, columns)
        products = np.einsum("a,jai->ji", mix, self._groups(self.grams.products, (1,)))
        return replace(self.grams, grams=grams, products=products)

    @cached_property
    def _split(self) -> Array:
        return self._groups(self.grams.grams, (1, 2))

    @cached_property
    def _pairs(self) -> Array:
        """Products of each pair of groups, shape (16, n c c): a sum over them is one product of BLAS."""
        return self._split.transpose(1, 3, 0, 2, 4).reshape(16, -1)

    def _turn(self, gravity: Array, fit: RigidFit, tangent: Array) -> Array:
        """Gauss-Newton step of gravity along two tangents [m/s^2], shape (2,), with the parameters free."""
        mix = np.concatenate([[1.0], gravity])
        turns = np.concatenate([np.zeros((2, 1)), tangent], axis=1)
        values, weights = fit.values, fit.weights
        weighted = np.tensordot(weights, self._split, 1)  # (4, c, 4, c)
        targets = np.tensordot(weights, self._groups(self.grams.products, (1,)), 1)  # (4, c)
        by_values = np.einsum("aibk,k->aib", weighted, values)
        free = np.einsum("a,aibk,b->ik", mix, weighted, mix, optimize=True)
        cross = np.einsum("a,aib,tb->it", mix, by_values, turns, optimize=True)
        both = np.einsum("i,aib,ta,ub->tu", values, by_values, turns, turns, optimize=True)
        right = np.concatenate([mix @ targets, np.einsum("ta,ai,i->t", turns, targets, values)])
        matrix = np.block([[free, cross], [cross.T, both]])
        return solve_scaled(matrix, right - matrix @ np.concatenate([values, np.zeros(2)]))[-2:]


@dataclass(frozen=True)
class WeightFactors:
    """Weight in the efforts, as factors of the gravity torque of the URDF's own masses.

    Attributes:
        factors: factor of each joint's gravity torque, shape (n,); NaN where the URDF has no gravity torque.
        deviations: their standard deviations (1 sigma) for white residuals, shape (n,).
        rms: RMS of the URDF's gravity torque that friction does not explain [N m or N], shape (n,).
        inertia: factor of each joint's inertial torque, shape (n,); NaN like `factors`.
    """

    factors: Array
    deviations: Array
    rms: Array
    inertia: Array

    @classmethod
    def from_samples(cls, samples: MotionSamples, model: RobotModel) -> WeightFactors:
        """Fit efforts by the URDF's gravity torque, its inertial torque, and friction, joint by joint."""
        still = Motion(samples.motion.q, np.zeros_like(samples.motion.dq), np.zeros_like(samples.motion.ddq))
        regressor = Regressor(model)
        weight = regressor.torque(still, model.inertial_parameters)
        inertia = regressor.torque(samples.motion, model.inertial_parameters) - weight
        rows = RigidRows.from_samples(samples, [model])
        columns = rows.project(np.stack([weight, inertia], axis=2) * samples.valid[..., None])
        smallest = SMALLEST_WEIGHT_RATIO**2 * max(float((weight**2).sum(axis=1).max()), 1e-300)
        factors, deviations, inertias = (np.full(len(weight), np.nan) for _ in range(3))
        for joint, of_joint in enumerate(columns):
            gram = of_joint.T @ of_joint
            if gram[0, 0] <= smallest:
                continue
            gram[np.diag_indices(2)] = gram[np.diag_indices(2)] * (1.0 + RIDGE) + smallest * RIDGE
            solution = np.linalg.solve(gram, of_joint.T @ rows.tau[joint])
            residual = rows.tau[joint] - of_joint @ solution
            factors[joint], inertias[joint] = solution
            deviations[joint] = np.sqrt(np.linalg.inv(gram)[0, 0] * (residual**2).sum() / rows.counts[joint])
        return cls(factors, deviations, np.sqrt((columns[..., 0] ** 2).sum(axis=1) / rows.counts), inertias)

    @property
    def loaded(self) -> Mask:
        """Joints that carry a considerable weight by the URDF, shape (n,)."""
        return np.asarray(np.isfinite(self.factors) & (self.rms > LOADED_RATIO * self.rms.max(initial=0.0)))

    @property
    def weightless(self) -> bool:
        """Whether the efforts of all loaded joints hold hardly any weight."""
        size = np.abs(self.factors) + 2.0 * self.deviations
        return self.known and bool((size[self.loaded] < WEIGHTLESS_FACTOR).all())

    @property
    def has_inertia(self) -> bool:
        """Whether the efforts of the loaded joints hold the URDF's inertia, unlike small currents."""
        return self.known and float(np.median(self.inertia[self.loaded])) > LEAST_INERTIA_FACTOR

    @property
    def known(self) -> bool:
        """Whether the URDF has masses that a loaded joint carries."""
        return bool(self.loaded.any())

    @property
    def reversed(self) -> bool:
        """Whether the efforts of several loaded joints, and of all, are opposite to the URDF's weight."""
        factors = self.factors[self.loaded]
        return len(factors) > 1 and bool((factors < -REVERSED_FACTOR).all())

    @property
    def directions(self) -> Array:
        """1 or -1 where the efforts clearly have, or oppose, the URDF's weight; 0 elsewhere, shape (n,)."""
        clear = np.abs(self.factors) > np.maximum(DIRECTION_SIGMAS * self.deviations, DIRECTION_FACTOR)
        return np.where(clear & np.isfinite(self.factors), np.sign(self.factors), 0.0)

    @property
    def precise(self) -> Mask:
        """Joints whose factor is known within 10 %, shape (n,)."""
        return np.asarray(np.isfinite(self.factors) & (self.deviations < 0.1 * np.abs(self.factors)))

    @property
    def confirmed(self) -> Mask:
        """Joints whose effort agrees with the URDF's weight within a factor of three, shape (n,)."""
        return np.asarray(self.precise & (self.factors > 1.0 / 3.0) & (self.factors < 3.0))


@dataclass(frozen=True)
class ScaleProfile:
    """Residuals of all joints as a function of a factor of one joint's effort.

    Attributes:
        factors: factors of each joint: those of `GAINS`, and the best one, or 1 where that is near 1, shape (n, k).
        losses: sum of the logarithms of the joints' residuals for each joint and factor, shape (n, k).
        fitting: whether the factor explains the effort of the joint, shape (n, k).
    """

    factors: Array
    losses: Array
    fitting: Mask

    @classmethod
    def from_grams(cls, grams: RigidGrams) -> ScaleProfile:
        """Compare factors of every joint, the others unchanged."""
        joints = len(grams.scale)
        factors = np.column_stack([np.tile(GAINS, (joints, 1)), np.ones(joints)])
        losses, fitting = np.empty(factors.shape), np.ones(factors.shape, dtype=bool)
        effort = np.sqrt(grams.squares / grams.counts)
        strong = effort >= STRONG_RATIO * effort.max(initial=0.0)
        below, above = (GAINS[GAINS.index(1.0) + side] for side in (-1, 1))  # smaller ones: `estimate_gain_factors`

        def compare(joint: int, place: int) -> None:
            scale = np.ones(joints)
            scale[joint] = factors[joint, place]
            fit = grams.scaled(scale).fit()
            losses[joint, place] = np.log(fit.rms).sum()
            left = fit.rms / np.maximum(effort, 1e-300)
            explains = left[joint] < FITTED_RATIO and float(np.median(left[strong])) < FITTED_RATIO
            fitting[joint, place] = factors[joint, place] == 1.0 or explains

        for joint in range(joints):
            for place in range(len(GAINS)):
                compare(joint, place)
            best = find_factor(grams, joint)
            if not below < best < above:
                factors[joint, -1] = best
            compare(joint, len(GAINS))
        return cls(factors, losses, fitting)

    def alternatives(self, margin: float) -> list[tuple[int, float]]:
        """Joints with their best factors whose residuals are about the smallest ones, the best first.

        Efforts of few joints do not show which of two gains is the wrong one.

        Args:
            margin: distance from the smallest sum of logarithms of the residuals.
        """
        least = self._explaining.min(axis=1)
        near = [joint for joint in np.argsort(least, kind="stable").tolist() if least[joint] < least.min() + margin]
        best = self.factors[np.arange(len(least)), self._explaining.argmin(axis=1)].tolist()
        return [(joint, best[joint]) for joint in near if best[joint] != 1.0]

    @property
    def least(self) -> float:
        """Smallest sum of the logarithms of the joints' residuals."""
        return float(self._explaining.min())

    @property
    def advantage(self) -> float:
        """Advantage of the best factor over the efforts as they are; see `RigidFit.advantage`."""
        return float(self._present - self.least)

    def sharpness(self) -> Array:
        """Loss of a third and of three times each joint's effort, the smaller of both, above the present one."""
        apart = self.losses[:, [GAINS.index(0.3), GAINS.index(3.0)]].min(axis=1)
        return np.asarray(apart - self._present)

    @property
    def _explaining(self) -> Array:
        return np.where(self.fitting, self.losses, np.inf)

    @property
    def _present(self) -> float:
        return float(self.losses[0, GAINS.index(1.0)])


@dataclass(frozen=True)
class SignPattern:
    """Signs of the efforts of all joints with which rigid-body dynamics fit best.

    A pattern and its opposite fit equally well, as do the opposite signs of joints without common links: the URDF's
    weight, and then the number of opposite signs, decide.

    Attributes:
        signs: 1, or -1 where the effort is opposite, shape (n,).
        advantage: advantage over the efforts as they are; see `RigidFit.advantage`.
        cost: sum of the logarithms of the residuals, with the `compute_pattern_cost`.
        fitting: whether the fit explains the efforts.
        undetermined: joints whose sign neither the fit nor the URDF's weight determines, shape (n,).
    """

    signs: Array
    advantage: float
    cost: float
    fitting: bool
    undetermined: Mask

    @classmethod
    def from_grams(cls, grams: RigidGrams, factors: WeightFactors) -> SignPattern:
        """Search by reversing one or two joints at a time, from the signs as recorded and from those of the weight."""
        joints, evidence = len(grams.scale), factors.directions
        losses: dict[tuple[float, ...], float] = {}

        def loss(signs: Array) -> float:
            key = tuple((signs * signs[0]).tolist())  # the opposite pattern fits equally well
            if key not in losses:
                losses[key] = float(np.log(grams.scaled(signs).fit().rms).sum())
            return losses[key]

        def cost(signs: Array) -> float:
            return loss(signs) + compute_pattern_cost(signs, evidence)

        moves = [np.where(np.isin(np.arange(joints), pair), -1.0, 1.0) for pair in _small_sets(joints)]
        best = np.ones(joints)
        for start in (best, np.where(evidence < 0.0, -1.0, 1.0)):
            reached = _descend(start, moves, cost)
            best = reached if cost(reached) < cost(best) else best
        present, single = loss(np.ones(joints)), moves[:joints]
        changes = np.array([loss(best * move) - loss(best) for move in single])
        fit = grams.scaled(best).fit()
        effort = np.sqrt(grams.squares / grams.counts)
        left = fit.rms / np.maximum(effort, 1e-300)
        strong = effort >= STRONG_RATIO * effort.max(initial=0.0)
        fitting = float(np.median(left[strong])) < FITTED_RATIO
        return cls(best, present - loss(best), cost(best), fitting, (changes < SIGN_COST) & (evidence == 0.0))

    @property
    def opposite(self) -> Mask:
        """Joints whose effort has the opposite sign, shape (n,)."""
        return np.asarray(self.signs < 0.0)

    @property
    def several(self) -> bool:
        """Whether the pattern explains the efforts by more than one opposite sign that is determined."""
        return self.fitting and int((self.opposite & ~self.undetermined).sum()) > 1


def compute_pattern_cost(signs: Array, evidence: Array) -> float:
    """Cost of opposite signs, in the unit of the sum of the logarithms of the residuals.

    Args:
        signs: 1 or -1 of each joint, shape (n,).
        evidence: direction of the URDF's weight in the efforts, shape (n,); 0 where it is not known.
    """
    return SIGN_COST * float((signs < 0.0).sum()) + CONTRADICTION_COST * float((signs * evidence < 0.0).sum())


def _small_sets(joints: int) -> list[tuple[int, ...]]:
    """Single joints, then pairs."""
    return [(joint,) for joint in range(joints)] + list(combinations(range(joints), 2))


def _descend(signs: Array, moves: Sequence[Array], cost: Callable[[Array], float]) -> Array:
    """Pattern from which no move lowers the cost."""
    least = cost(signs)
    while True:
        following = min((signs * move for move in moves), key=cost)
        if not cost(following) < least - 1e-9:
            return signs
        signs, least = following, cost(following)


@dataclass(frozen=True)
class Exchange:
    """Another order of the joints of a recording.

    Attributes:
        order: channel that belongs to each joint, by number.
        channels: channels that have this order, one of `EXCHANGED`.
        advantage: advantage of correcting it; see `RigidFit.advantage`.
    """

    order: tuple[int, ...]
    channels: str
    advantage: float

    @property
    def joints(self) -> tuple[int, ...]:
        """Joints with the channels of others, by number."""
        return tuple(joint for joint, channel in enumerate(self.order) if channel != joint)

    def undo(self, samples: MotionSamples) -> MotionSamples:
        """The samples with these channels at their joints."""
        order, as_recorded = np.array(self.order), np.arange(len(self.order))
        moved = samples if self.channels == EXCHANGED[1] else samples.with_order(order)
        efforts = as_recorded if self.channels == EXCHANGED[2] else order
        return replace(moved, tau=samples.tau[efforts], valid=samples.valid[efforts])


EXCHANGED = ("all channels", "efforts", "positions")
"""Channels that may have another order; velocities go with the positions."""


def find_exchange(samples: MotionSamples, model: RobotModel) -> Exchange | None:
    """Other order of the joints that lowers the residuals most; None if the robot has one joint.

    Two joints may be exchanged, and names may be reversed, or shifted by one. Samples count in which the efforts of all
    joints are usable, so that one set of rows serves every order of efforts.
    """
    joints, usable = len(model.joint_names), samples.valid.all(axis=0)
    samples = replace(samples, valid=np.broadcast_to(usable, samples.valid.shape))
    as_recorded = tuple(range(joints))
    recorded = RigidRows.from_samples(samples, [model])

    def loss(rows: RigidRows, order: Sequence[int]) -> float:
        efforts = np.where(usable, samples.tau[list(order)], 0.0)
        return float(np.log(rows.with_efforts(efforts).grams().fit().rms).sum())

    present, exchanges = loss(recorded, as_recorded), []
    for order in _list_orders(joints):
        moved = RigidRows.from_samples(samples.with_order(np.array(order)), [model])
        of_channels = ((moved, order), (recorded, order), (moved, as_recorded))
        exchanges += [
            Exchange(order, channels, present - loss(rows, efforts))
            for channels, (rows, efforts) in zip(EXCHANGED, of_channels, strict=True)
        ]
    return max(exchanges, key=lambda exchange: exchange.advantage, default=None)


def _list_orders(joints: int) -> list[tuple[int, ...]]:
    """Orders with two joints exchanged, the reversed one, and those that are shifted by one."""
    recorded = tuple(range(joints))
    orders = []
    for one, other in combinations(recorded, 2):
        exchanged = list(recorded)
        exchanged[one], exchanged[other] = other, one
        orders.append(tuple(exchanged))
    further = (recorded[::-1], recorded[1:] + recorded[:1], recorded[-1:] + recorded[:-1])
    return [*orders, *(order for order in dict.fromkeys(further) if order not in (recorded, *orders))]


@dataclass(frozen=True)
class Convention:
    """Convention of one joint in a recording, which is not that of the URDF.

    Attributes:
        joint: the joint, by number.
        turn: angle that has to be added to its positions [rad].
        signs: factors of its positions and efforts, 1 or -1.
        advantage: advantage of this correction; see `RigidFit.advantage`.
        half_width: half width of the 95 % interval of an angle that is estimated, by a jackknife over blocks of time
            [rad]; 0 for those of `CONVENTIONS`.
    """

    joint: int
    turn: float
    signs: tuple[float, float]
    advantage: float
    half_width: float = 0.0

    def undo(self, samples: MotionSamples) -> MotionSamples:
        """The samples in the convention of the URDF."""
        return samples.with_convention(self.joint, self.turn, self.signs)


CONVENTIONS = (
    *((turn, (1.0, 1.0)) for turn in (0.5 * math.pi, math.pi, -0.5 * math.pi)),
    *((0.0, signs) for signs in ((-1.0, -1.0), (-1.0, 1.0))),
)
"""Turns and signs that drivers and URDFs differ by: zeros by quarter turns, and directions."""


TIME_OCTAVES, TIME_STEPS = (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0), (-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75)
"""Factors of time, as powers of two, from which the search for it starts, and those around the best of them."""


def compare_conventions(samples: MotionSamples, model: RobotModel) -> list[Convention]:
    """Other conventions of one joint, that which lowers the residuals most first; empty if the robot has one joint.

    The zero and the direction of the last joint cannot be found: free bodies absorb them.
    """
    present, found = RigidRows.from_samples(samples, [model]).grams().fit(), []
    for joint, slides in enumerate(model.slides[:-1].tolist()):
        for turn, signs in CONVENTIONS:
            if not (turn and slides):
                rows = RigidRows.from_samples(samples.with_convention(joint, turn, signs), [model])
                found.append(Convention(joint, turn, signs, rows.grams().fit().advantage(present)))
    return sorted(found, key=lambda one: -one.advantage)


ZERO_STEPS, LONGEST_TURN, SETTLED_TURN = 6, 0.5, 1e-3
"""Largest number of Gauss-Newton steps of a zero, the longest one, and that below which it counts as settled [rad]."""

LEAST_ZERO_ADVANTAGE = 0.5
"""Advantage from which on another zero is reported, also of its first step as the derivatives predict it: other errors
of a model, from which a search would end at any angle, promise at most half of it in fifteen measured recordings."""


def find_zero(samples: MotionSamples, model: RobotModel) -> Convention | None:
    """Zero of the positions of one joint that lowers the residuals most, by Gauss-Newton from that of the recording.

    Free bodies absorb the zero of the last joint, gravity along its axis that of the first one. None if no joint has a
    zero that would.
    """
    regressor, recorded = Regressor(model), RigidRows.from_samples(samples, [model])
    present = recorded.grams().fit()

    def turned(joint: int, turn: float) -> MotionSamples:
        return samples.with_convention(joint, turn, (1.0, 1.0))

    def along(rows: RigidRows, joint: int, turn: float, values: Array) -> RigidRows:
        """Rows with the change of the torque per angle as a further column."""
        turns = turn + 0.5 * SETTLED_TURN, turn - 0.5 * SETTLED_TURN
        above, below = (regressor.torque(turned(joint, one).motion, values) for one in turns)
        return rows.with_columns(rows.project(((above - below) / SETTLED_TURN * samples.valid)[..., None]))

    def search(joint: int) -> Convention | None:
        turn, fit, changes = 0.0, present, along(recorded, joint, 0.0, present.values)
        if changes.grams().fit().advantage(present) < LEAST_ZERO_ADVANTAGE:
            return None
        for _ in range(ZERO_STEPS):
            step = float(np.clip(changes.grams().fit(fit.weights).values[-1], -LONGEST_TURN, LONGEST_TURN))
            rows = RigidRows.from_samples(turned(joint, turn + step), [model])
            better = rows.grams().fit()
            if better.advantage(fit) <= 0.0:
                break
            turn, fit, changes = turn + step, better, along(rows, joint, turn + step, better.values)
            if abs(step) < SETTLED_TURN:
                break
        left = [changes.grams(samples.blocks != block).fit(fit.weights).values[-1] for block in range(BLOCKS)]
        half_width = find_critical_ratio(BLOCKS, 2) * float(compute_jackknife_deviations(left))
        return Convention(joint, turn, (1.0, 1.0), fit.advantage(present), half_width)

    found = [search(joint) for joint, slides in enumerate(model.slides[:-1].tolist()) if not slides]
    return max((one for one in found if one is not None), key=lambda one: one.advantage, default=None)


@dataclass(frozen=True)
class TimeScale:
    """Speed of a recording, which is not that of the robot.

    Attributes:
        factor: how many times as fast the robot moved as the time stamps state.
        advantage: advantage of this correction; see `RigidFit.advantage`.
    """

    factor: float
    advantage: float

    def undo(self, samples: MotionSamples) -> MotionSamples:
        """The samples at the speed of the robot."""
        return samples.with_time(self.factor)


def find_time_scale(samples: MotionSamples, model: RobotModel) -> TimeScale:
    """Speed of the motion that lowers the residuals most.

    First moments of the bodies are both in their weight, which does not depend on the speed, and in the inertial
    torques, which do with its square: one scale of time fits both.

    Args:
        samples: the samples.
        model: the robot.
    """
    rows, at_rest = RigidRows.from_samples(samples, [model]), np.zeros_like(samples.motion.q)
    columns = Regressor(model).dense(Motion(samples.motion.q, at_rest, at_rest)).transpose(1, 2, 0)
    weight = rows.project(columns * samples.valid[..., None])
    present = rows.grams().fit()

    def advantage(octaves: float) -> float:
        columns = weight + 4.0**octaves * (rows.columns - weight)
        return replace(rows, columns=columns).grams().fit().advantage(present)

    near = max(TIME_OCTAVES, key=advantage)
    best = max((near + step for step in TIME_STEPS), key=advantage)
    return TimeScale(2.0**best, advantage(best))


def find_friction_directions(samples: MotionSamples, model: RobotModel, values: Array) -> tuple[Array, Array]:
    """Whether friction brakes or drives each joint, both at reversals of the velocity and over the motion.

    A drive may compensate more viscous friction than there is, and its efforts then fall with the speed; the step of
    dry friction at a reversal still has the sign of the velocity.

    Args:
        samples: the samples.
        model: the robot.
        values: its inertial parameters, shape (c,).

    Returns:
        Power of friction over the product of the RMS of friction and velocity, from -1 (drives) to 1 (brakes), of all
        friction or of dry friction alone, whichever is greater, shape (n,); share of the effort's variance without
        the rigid-body torque that friction explains, shape (n,).
    """
    left = samples.tau - Regressor(model).torque(samples.motion, values)
    directions, shares = np.zeros(len(left)), np.zeros(len(left))
    for joint, (columns, usable) in enumerate(zip(samples.friction.transpose(1, 2, 0), samples.valid, strict=True)):
        if usable.sum() <= columns.shape[1]:
            continue
        columns, torque, dq = columns[usable], left[joint, usable], samples.motion.dq[joint, usable]
        solution = np.linalg.lstsq(columns, torque, rcond=1e-8)[0]
        friction = columns[:, FIRST_FRICTION_COLUMN:] @ solution[FIRST_FRICTION_COLUMN:]
        dry = columns[:, DRY_FRICTION_COLUMNS] @ solution[DRY_FRICTION_COLUMNS]
        directions[joint] = max(_correlate(friction, dq), _correlate(dry, dq))
        without = torque - columns[:, :FIRST_FRICTION_COLUMN] @ solution[:FIRST_FRICTION_COLUMN]
        total = float((without**2).sum())
        shares[joint] = 1.0 - float(((without - friction) ** 2).sum()) / total if total > 0.0 else 0.0
    return directions, shares


def _correlate(one: Array, other: Array) -> float:
    """Mean product of two series over the product of their RMS; 0 if one of them is zero."""
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float(one @ other) / size if size > 0.0 else 0.0
