# SPDX-License-Identifier: Apache-2.0
"""Gains of drives relative to one another, where none is known.

Currents are torques over gains that differ from drive to drive. Links that several joints move couple their torques,
so that all gains but a common factor can follow from the motion alone: bodies and gains are estimated together, and
accepted if that pays.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.chance import compute_jackknife_deviations
from robot_dyn_id.dynamics.terms import Spring
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.cross_validation import Candidate, CrossValidation, compute_relative_loss
from robot_dyn_id.identification.selection.divisions import Divisions
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.payoff import COMPARED_SAMPLES, combine
from robot_dyn_id.identification.selection.wide import COARSE_STRENGTHS, Placed, Wide
from robot_dyn_id.kernels.cholesky import CholeskyFactor
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.blocks import Blocks
from robot_dyn_id.signals.trials import FilteredTrials

STEPS = 50
"""Most Gauss-Newton steps."""

LONGEST_STEP = 0.5
"""Largest step of the logarithm of a gain."""

SETTLED_STEP = 1e-4
"""Step below which the gains are found."""

SMALLEST_DAMPING, LARGEST_DAMPING, DAMPING_STEP = 1e-6, 1e6, 10.0
"""Range of the damping of a step, relative to the information of the data, and its change (Levenberg 1944)."""

RIDGE = 1e-9
"""Ridge of the normal equations relative to their diagonal."""


@dataclass(frozen=True)
class RelativeGains:
    """Gains of joints relative to one another.

    Attributes:
        values: torque per current by joint, as a ratio to the geometric mean of all of these joints; only of those
            whose ratio the motion shows.
        deviations: standard deviations of their logarithms, the larger of those by a jackknife over blocks of time and
            over bands of positions: errors of the model are alike along a motion, and blocks of time then agree.
        row: the alternative.
    """

    values: Mapping[str, float]
    deviations: Mapping[str, float]
    row: Tried

    @property
    def shown(self) -> bool:
        """Whether they pay, and relate at least two joints."""
        return self.row.chosen and len(self.values) > 1

    def describe(self) -> str:
        """Values and deviations by joint, and what they remove of the errors."""
        listed = ", ".join(
            f"{name} {value:.3g} (+- {value * self.deviations[name]:.1g})" for name, value in self.values.items()
        )
        return f"{listed}; this removes {self.row.gain:.0%} (+- {self.row.deviation:.0%}) of the squared error"

    def relative_to(self, joints: Collection[str]) -> RelativeGains:
        """The same as ratios to the geometric mean of some of the joints; as they are if none is related."""
        logarithms = [math.log(self.values[name]) for name in joints if name in self.values]
        mean = math.exp(sum(logarithms) / len(logarithms)) if logarithms else 1.0
        return replace(self, values={name: value / mean for name, value in self.values.items()})

    def of(self, joints: Collection[str]) -> RelativeGains:
        """The gains of some of the joints, as ratios to their own mean."""
        values = {name: value for name, value in self.values.items() if name in joints}
        return replace(self, values=values).relative_to(joints)


def estimate_relative_gains(trials: FilteredTrials, model: RobotModel) -> RelativeGains:
    """Gains with which rigid bodies explain the currents of all joints best; `shown` if they pay.

    Args:
        trials: trials whose efforts are currents.
        model: the robot; the masses of its prior are where the gains start, and what the data do not determine.

    Raises:
        InputError: trials that are too short for cross-validation.
    """
    blocks = trials.blocks()
    excerpt = trials.excerpt(blocks, COMPARED_SAMPLES)
    wide, grams = combine(excerpt, model, blocks, [Spring()])
    divisions = _divide(wide, grams, excerpt)
    sprung = [(name, Spring.name) for name in model.joint_names]
    without, with_springs = (_Relation.from_columns(wide, divisions, placed) for placed in ((), sprung))
    springs_row = divisions.weigh("relative_gains", "springs", without.find_errors, with_springs.find_errors)
    return (with_springs if springs_row.pays else without).estimate()


def correct_relative_gains(trials: FilteredTrials, wide: Wide, blocks: Blocks) -> RelativeGains:
    """The same with a model that was chosen for the present gains; `shown` if others pay.

    A tilt of the base and friction that depends on the load, which the first estimate has not, change the gains.

    Args:
        trials: trials with the present gains.
        wide: the columns of the model.
        blocks: division of the trials.
    """
    excerpt = trials.excerpt(blocks, COMPARED_SAMPLES)
    divisions = _divide(wide, wide.multiply(excerpt, blocks), excerpt)
    return _Relation.from_columns(wide, divisions, ()).estimate()


def _divide(wide: Wide, grams: BlockGrams, excerpt: FilteredTrials) -> Divisions:
    """Divisions of an excerpt by time, from the products of all columns, and by positions."""
    return Divisions.from_grams(wide.judge(grams), BlockGrams.from_bands(excerpt, wide.regressor, grams.block_count))


@dataclass(frozen=True)
class _Relation:
    """Bodies, terms and gains that are fitted together.

    Attributes:
        wide: all candidate columns.
        divisions: the data.
        candidate: columns of the model, and strength of the prior of the bodies.
        pull: strength of the pull of the gains, see `_GainFit`.
        errors: squared errors in the blocks of time, shape (blocks, n).
        loss: their loss.
    """

    wide: Wide
    divisions: Divisions
    candidate: Candidate
    pull: float
    errors: Array
    loss: float

    @classmethod
    def from_columns(cls, wide: Wide, divisions: Divisions, placed: Collection[Placed]) -> _Relation:
        """All families and some terms of single joints, with the better strengths of both pulls."""
        times, columns = divisions.times, wide.columns_of(wide.families, placed=placed)
        reference = times.errors(wide.reference)
        _, strength, _ = wide.least_loss(times, columns, reference)
        candidate = Candidate(columns, strength)
        errors = {pull: _find_errors(wide, candidate, pull, times) for pull in COARSE_STRENGTHS}
        losses = {pull: compute_relative_loss(errors[pull], reference) for pull in COARSE_STRENGTHS}
        pull = min(losses, key=losses.__getitem__)
        return cls(wide, divisions, candidate, pull, errors[pull], losses[pull])

    def find_errors(self, division: CrossValidation) -> Array:
        """Squared errors in each part of bodies and gains that were fitted without it, shape (parts, n)."""
        if division is self.divisions.times:
            return self.errors
        return _find_errors(self.wide, self.candidate, self.pull, division)

    def estimate(self) -> RelativeGains:
        """The gains; `row.chosen` if they pay."""
        times, before = self.divisions.times, partial(self.wide.find_consistent_errors, candidate=self.candidate)
        name = "gains of all joints"
        row = self.divisions.weigh("relative_gains", name, before, self.find_errors, loss=self.loss)
        whole = self._fit(times, None)
        logarithms = whole.solve()
        shown = np.flatnonzero(whole.find_shares(logarithms) > 0.5)  # the data outweigh where the gains start
        deviations = np.max([self._jackknife(division, shown) for division in self.divisions.each], axis=0)
        joints = [self.wide.regressor.model.joint_names[joint] for joint in shown.tolist()]
        return RelativeGains(
            dict(zip(joints, np.exp(-_center(logarithms[shown])).tolist(), strict=True)),
            dict(zip(joints, deviations.tolist(), strict=True)),
            replace(row, chosen=row.pays),
        )

    def _fit(self, division: CrossValidation, left_out: int | None) -> _GainFit:
        return _GainFit(self.wide, division, self.candidate, self.pull, left_out)

    def _jackknife(self, division: CrossValidation, shown: Integers) -> Array:
        """Standard deviations of the relative logarithms of some joints by leaving parts out, one at a time."""
        return compute_jackknife_deviations(
            [_center(self._fit(division, part).solve()[shown]) for part in division.blocks]
        )


def _center(logarithms: Array) -> Array:
    """Logarithms without their mean."""
    return logarithms - logarithms.mean() if len(logarithms) else logarithms


def _find_errors(wide: Wide, candidate: Candidate, pull: float, division: CrossValidation) -> Array:
    """Squared errors in each part of bodies and gains that were fitted without it, shape (parts, n)."""
    errors = []
    for part in division.blocks:
        logarithms = _GainFit(wide, division, candidate, pull, part).solve()
        others = division.on(division.grams.scaled(wide.inertial, np.exp(logarithms)))
        errors.append(others.block_errors(wide.consistent(others, candidate, left_out=part), part))
    return np.array(errors)


@dataclass(frozen=True)
class _GainFit:
    """Fit of bodies and gains without a part of the data.

    Attributes:
        wide: all candidate columns.
        division: the data.
        candidate: columns of the model, and strength of the prior of the bodies.
        pull: strength of the pull of the logarithms to `start`, against residuals of unit variance.
        left_out: part that is left out; None: none is.
    """

    wide: Wide
    division: CrossValidation
    candidate: Candidate
    pull: float
    left_out: int | None

    @cached_property
    def start(self) -> Array:
        """Logarithms of the recorded current of each joint over the torque of the bodies of the prior, shape (n,)."""
        bodies, grams = self.wide.prior.bodies.ravel(), self.division.grams
        found = np.full(len(grams.supports), np.nan)
        for joint, (support, products) in enumerate(zip(grams.supports, grams.matrices, strict=True)):
            total = products.sum(axis=0)
            own = np.flatnonzero(support < self.wide.inertial)
            expected = float(bodies[support[own]] @ total[np.ix_(own, own)] @ bodies[support[own]])
            if expected > 0.0 and total[-1, -1] > 0.0:
                found[joint] = 0.5 * np.log(total[-1, -1] / expected)
        known = np.isfinite(found)
        return np.where(known, found, found[known].mean() if known.any() else 0.0)

    @cached_property
    def products(self) -> Array:
        """Products of each joint's weighted rows without the part that is left out, at gains of 1, shape (n, c+1, c+1).

        Of the columns of the candidate, and of the efforts as the last one.
        """
        columns, grams = self.candidate.columns, self.division.grams
        places = [
            *(part for part in self.division.blocks if part != self.left_out),
            *(grams.block_count, grams.block_count + 1),
        ]
        of_candidate = np.full(grams.columns + 1, -1)
        of_candidate[[*columns, grams.columns]] = np.arange(len(columns) + 1)
        found = np.zeros((len(grams.supports), len(columns) + 1, len(columns) + 1))
        pairs = zip(grams.supports, grams.matrices, self.division.weights.tolist(), strict=True)
        for joint, (support, products, weight) in enumerate(pairs):
            at = of_candidate[[*support, grams.columns]]
            own = weight**2 * products[places].sum(axis=0)
            found[joint][np.ix_(at[at >= 0], at[at >= 0])] = own[np.ix_(at >= 0, at >= 0)]
        return found

    @cached_property
    def bodies(self) -> int:
        """Number of columns of the candidate that are of the bodies; they come first."""
        return int(np.count_nonzero(np.asarray(self.candidate.columns) < self.wide.inertial))

    @cached_property
    def parts(self) -> tuple[Array, Array, Array]:
        """Products that grow with the square of a gain, shape (n, b b), with a gain, (n, b (c+1-b)), and their sum."""
        bodies, products = self.bodies, self.products
        twice, once = products[:, :bodies, :bodies], products[:, :bodies, bodies:]
        return twice.reshape(len(products), -1), once.reshape(len(products), -1), products.sum(axis=0)

    def solve(self) -> Array:
        """Logarithms of current per torque of each joint, shape (n,).

        The cost has several minima: the lower of those that are reached from `start`, and from equal gains.
        """
        equal = np.full_like(self.start, self.start.mean())
        return min((self._descend(one) for one in (self.start, equal)), key=lambda found: self._linearize(found)[0])

    def find_shares(self, logarithms: Array) -> Array:
        """Share of the data in the gain of each joint relative to the others, shape (n,); the rest is the pull's.

        It is 1 where the data alone determine the gain, and 0 where they do not change its distance to `start`. The
        gain that is common to all joints, which no data determine, does not count.
        """
        count = len(logarithms)
        if count < 2:
            return np.zeros(count)
        _, _, curvature = self._linearize(logarithms)
        common = np.ones((count, count)) * (LARGEST_DAMPING * np.trace(curvature))
        covariance = np.linalg.inv(curvature + common)
        return np.asarray(1.0 - self.pull * np.diag(covariance) * count / (count - 1))

    def _descend(self, logarithms: Array) -> Array:
        """Minimum that is reached from some logarithms, shape (n,).

        Gauss-Newton with the bodies eliminated (variable projection, Golub and Pereyra 1973); the prior of the bodies,
        and the pull of the logarithms, keep what the data do not determine.
        """
        damping, joints = SMALLEST_DAMPING, len(logarithms)
        cost, right, matrix = self._linearize(logarithms)
        for _ in range(STEPS):
            while True:
                damped = matrix + damping * np.diag(np.diag(matrix)) + np.ones((joints, joints)) * np.trace(matrix)
                step = np.clip(np.linalg.solve(damped, right), -LONGEST_STEP, LONGEST_STEP)
                following = self._linearize(logarithms + step)
                if following[0] < cost or damping > LARGEST_DAMPING:
                    break
                damping *= DAMPING_STEP
            if following[0] >= cost:
                break
            logarithms, damping = logarithms + step, max(damping / DAMPING_STEP, SMALLEST_DAMPING)
            cost, right, matrix = following
            if np.abs(step).max() < SETTLED_STEP:
                break
        return np.asarray(logarithms)

    def _linearize(self, logarithms: Array) -> tuple[float, Array, Array]:
        """Cost of the best bodies for given gains, and the normal equations of the logarithms: right side, matrix."""
        columns, bodies, products = self.candidate.columns, self.bodies, self.products
        precision, center = self.candidate.strength * self.wide.pull.precision[columns], self.wide.pull.center[columns]
        gains, (twice, once, whole) = np.exp(logarithms), self.parts
        whole = whole.copy()
        whole[:bodies, :bodies] = (gains**2 @ twice).reshape(bodies, bodies)
        whole[:bodies, bodies:] = (gains @ once).reshape(bodies, -1)
        whole[bodies:, :bodies] = whole[:bodies, bodies:].T
        gram, right = whole[:-1, :-1] + np.diag(precision), whole[:-1, -1] + precision * center
        size = np.diag(gram)
        gram += np.diag(np.where(size > 0.0, RIDGE * size, 1.0))  # joints without efforts have no equations
        factor = CholeskyFactor.from_matrix(gram)
        values = factor.solve(right)
        by_bodies = products[:, :, :bodies] @ values[:bodies]
        left = gains[:, None] * by_bodies + products[:, :, bodies:] @ np.append(values[bodies:], -1.0)
        along = gains * by_bodies[:, :-1].T
        along[:bodies] *= gains
        distance = self.start - logarithms
        residual = self.pull * distance - gains * (left[:, :bodies] @ values[:bodies])
        curvature = np.diag(self.pull + gains**2 * (by_bodies[:, :bodies] @ values[:bodies]))
        curvature -= along.T @ factor.solve(along)
        square = whole[-1, -1] + precision @ center**2
        return float(square - right @ values + self.pull * (distance @ distance)), residual, curvature
