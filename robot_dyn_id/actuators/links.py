# SPDX-License-Identifier: Apache-2.0
"""Links that the efforts of drives under position commands show, where they pay.

The effort of a drive is known from its gains, so that links, armature and friction are linear in it: the physically
consistent fit of the estimators of torques gives links near those of the robot description. A weaker pull towards these
has to predict parts of the data that it was not fitted to better than a stronger one, and first of all than the links
as they are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.actuators.fit import ActuatorFit, LimbMotion
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.rollout import Limb
from robot_dyn_id.actuators.spread import LEAST_LEFT, LEAST_RECORDINGS, PARTS, solve_scaled
from robot_dyn_id.actuators.start import MECHANICAL
from robot_dyn_id.actuators.validation import find_free_rows
from robot_dyn_id.arrays import Array
from robot_dyn_id.chance import compute_jackknife_deviations, find_critical_ratio
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.estimators.consistent_fit import fit_consistent
from robot_dyn_id.estimators.non_negative import solve_bounded
from robot_dyn_id.identification.selection.engine import weigh
from robot_dyn_id.kernels.actuators import ARMATURE, KP, OFFSET
from robot_dyn_id.model.robot import RobotModel

STRENGTHS = (1000.0, 100.0, 10.0, 1.0)
"""Strengths of the pull towards the described links, see `Consistent`, which is weakened as long as each step pays."""


KEPT = ((ARMATURE, OFFSET), (ARMATURE,), ())
"""Terms of which the present values are kept while links are fitted, as inertia and weight of links can replace them;
fewer are kept as long as that pays."""


@dataclass(frozen=True)
class Links:
    """Links of a robot.

    Attributes:
        robot: the robot.
        gain: share of the weighted square errors of simulations that they remove against those that were given, in
            parts of the data that actuators were not fitted to; 0: those that were given.
        deviations: standard deviations of `MECHANICAL` from the links that other parts of the data would give, shape
            (4, n); 0 for given links.
        scale: 95 % interval of the effort of the drives, by the gains that are given, as a ratio to what the links that
            were given take; not a number without such gains.
    """

    robot: RobotModel = field(repr=False)
    gain: float
    deviations: Array = field(repr=False)
    scale: tuple[float, float]

    @classmethod
    def from_description(cls, robot: RobotModel, scale: tuple[float, float]) -> Links:
        """The links that were given."""
        return cls(robot, 0.0, np.zeros((len(MECHANICAL), len(robot.joint_names))), scale)


@dataclass(frozen=True)
class _LimbGrams:
    """Gram matrices of the weighted rows [links, terms, effort] of a limb.

    Attributes:
        prior: described bodies.
        bodies: present bodies, shape (10 b,).
        terms: present `MECHANICAL` of all joints, shape (4 n,).
        parts: matrices of the parts of the data, shape (parts, c + 1, c + 1); terms are `MECHANICAL` of all joints.
    """

    prior: BodyPrior
    bodies: Array
    terms: Array
    parts: Array

    def fit(self, strength: float, *, kept: tuple[int, ...], left_out: int | None = None) -> Array:
        """All parameters, of the data without a part, shape (c,).

        Args:
            strength: pull towards the described links; infinite: the present links.
            kept: terms that are not fitted.
            left_out: number of the part.
        """
        gram = self._sum_parts(left_out)
        links = np.isfinite(strength)
        kinds = np.tile(MECHANICAL, len(self.terms) // len(MECHANICAL))
        known = np.isin(kinds, kept)
        free = np.append(np.full(len(self.bodies), links), ~known)
        values = np.append(self.bodies, np.where(known, self.terms, 0.0))
        # columns of the free parameters, and of the effort without the others
        merge = np.zeros((len(gram), np.count_nonzero(free) + 1))
        merge[np.flatnonzero(free), np.arange(merge.shape[1] - 1)] = 1.0
        merge[:, -1] = np.append(np.where(free, 0.0, -values), 1.0)
        reduced, bounded = merge.T @ gram @ merge, (kinds != OFFSET)[free[len(self.bodies) :]]
        if links:
            values[free] = fit_consistent(reduced, self.prior, bounded, strength).values
        else:
            values[free] = solve_bounded(reduced[:-1, :-1], reduced[:-1, -1], bounded)
        return values

    def compare_efforts(self, left_out: int | None = None) -> Array:
        """Square of the torque of the present links without what terms explain, and its product with the effort, (2,).

        Zeros where terms, such as the armature of a joint with a vertical axis, explain all but rounding.

        Args:
            left_out: number of the part that is left out.
        """
        gram, size = self._sum_parts(left_out), len(self.bodies)
        links = self.bodies @ gram[:size]
        terms = gram[size:-1]
        explained = solve_scaled(terms[:, size:-1], links[size:-1])
        whole = links[:size] @ self.bodies
        left = whole - links[size:-1] @ explained
        return np.array([left, links[-1] - explained @ terms[:, -1]]) if left > LEAST_LEFT * whole else np.zeros(2)

    def _sum_parts(self, left_out: int | None) -> Array:
        """Matrix of the data without a part."""
        return np.asarray(self.parts.sum(axis=0) - (0.0 if left_out is None else self.parts[left_out]))

    def leave_out(self, strength: float, *, kept: tuple[int, ...]) -> Array:
        """Squared errors of each part by a fit to the others, shape (parts,)."""
        errors = []
        for part, gram in enumerate(self.parts):
            values = np.append(self.fit(strength, kept=kept, left_out=part), -1.0)
            errors.append(values @ gram @ values)
        return np.array(errors)

    def find_deviations(self, strength: float, *, kept: tuple[int, ...]) -> Array:
        """Standard deviations of the terms with links of other parts of the data, by the jackknife, shape (4, n)."""
        found = self.fit(strength, kept=kept)
        size, count = len(self.bodies), len(self.parts)
        fixed = replace(self, bodies=found[:size])
        changes = np.array(
            [
                self.fit(strength, kept=kept, left_out=part) - fixed.fit(np.inf, kept=kept, left_out=part)
                for part in range(count)
            ]
        )[:, size:]
        variances = (count - 1) * changes.var(axis=0)
        return np.asarray(np.sqrt(variances)).reshape(-1, len(MECHANICAL)).T


def fit_links(
    links: Links,
    described: Sequence[Limb],
    limbs: Sequence[Limb],
    stretches: Sequence[LimbMotion],
    fit: ActuatorFit,
) -> tuple[Links, ActuatorModel]:
    """Links that pay in efforts, and actuators to start from; the same if none pay or gains are not known.

    One recording does not separate the weight of links from offsets, which are others in each: there must be
    `LEAST_RECORDINGS`.
    Armature and offset are kept unless their fit pays too.

    Args:
        links: present links.
        described: limbs with the links that are described, which the others stay near to.
        limbs: limbs with the present links.
        stretches: windows of the motions.
        fit: fitted actuators, whose gains, delays and ends give the efforts.
    """
    as_given, model = (links, fit.actuators), links.robot
    scaled = (fit.layout.index[KP] >= 0).any()  # by the described masses
    if scaled or len({stretch.recording for stretch in stretches}) < LEAST_RECORDINGS:
        return as_given
    grams = _make_all_grams(described, limbs, stretches, fit)
    best, kept = _choose(grams)
    if np.isinf(best):
        return as_given
    bodies, values = model.inertial_parameters.reshape(-1, 10).copy(), fit.actuators.values
    deviations = np.zeros((len(MECHANICAL), len(fit.errors)))
    for limb, one in zip(limbs, grams, strict=True):
        found = one.fit(best, kept=kept)
        numbers = [model.body_names.index(name) for name in limb.model.body_names]
        joints = [fit.actuators.joint_names.index(name) for name in limb.joint_names]
        bodies[numbers] = found[: 10 * len(numbers)].reshape(-1, 10)
        values[np.ix_(MECHANICAL, joints)] = found[10 * len(numbers) :].reshape(len(joints), -1).T
        deviations[:, joints] = one.find_deviations(best, kept=kept)
    return (
        replace(links, robot=replace(model, inertial_parameters=bodies.ravel()), deviations=deviations),
        ActuatorModel.from_values(fit.actuators.joint_names, values),
    )


def _choose(grams: Sequence[_LimbGrams]) -> tuple[float, tuple[int, ...]]:
    """Strength of the pull, infinite for the present links, and the terms that are kept."""

    def leave_out(strength: float, kept: tuple[int, ...]) -> Array:
        return np.asarray(np.sum([one.leave_out(strength, kept=kept) for one in grams], axis=0))

    best: tuple[float, tuple[int, ...]] = (np.inf, KEPT[0])
    errors = leave_out(*best)
    for kept in KEPT:
        for strength in [one for one in STRENGTHS if one <= best[0]]:
            found = leave_out(strength, kept)
            if not weigh("actuators", f"links {strength:g}", errors, found, len(STRENGTHS)).pays:
                break
            best, errors = (strength, kept), found
    return best


def find_scale(limbs: Sequence[Limb], stretches: Sequence[LimbMotion], fit: ActuatorFit) -> tuple[float, float]:
    """95 % interval of the effort of the drives, by their gains, as a ratio to what links and free terms take.

    Not a number if gains are not known, or terms explain the torque of the links. The interval is that of `PARTS` parts
    that are left out in turn.

    Args:
        limbs: limbs with the links that are described.
        stretches: windows of the motions.
        fit: fitted actuators, whose gains, delays and ends give the efforts.
    """
    if (fit.layout.index[KP] >= 0).any():
        return np.nan, np.nan
    grams = _make_all_grams(limbs, limbs, stretches, fit)

    def solve(left_out: int | None = None) -> float:
        square, product = np.sum([one.compare_efforts(left_out) for one in grams], axis=0)
        return float(product / square) if square else np.nan

    scale, changes = solve(), np.array([solve(part) for part in range(PARTS)])
    half_width = find_critical_ratio(PARTS, 2) * float(compute_jackknife_deviations(changes))
    return scale - half_width, scale + half_width


def _make_all_grams(
    described: Sequence[Limb], limbs: Sequence[Limb], stretches: Sequence[LimbMotion], fit: ActuatorFit
) -> list[_LimbGrams]:
    return [
        _make_grams(prior, limb, [one for one in stretches if one.limb is limb], fit)
        for prior, limb in zip(described, limbs, strict=True)
    ]


def _make_grams(described: Limb, limb: Limb, stretches: Sequence[LimbMotion], fit: ActuatorFit) -> _LimbGrams:
    n, regressor, width = len(limb.joint_names), Regressor(limb.model), len(MECHANICAL)
    own = fit.actuators.select(limb.joint_names)
    terms = own.values[list(MECHANICAL)]
    stacked: list[tuple[Array, Array]] = []
    for stretch in stretches:
        rows, given, free = find_free_rows(stretch, own)
        q, dq, ddq = (np.ascontiguousarray(values) for values in rows.motion)
        links = regressor.dense(Motion(q, dq, ddq)).transpose(1, 2, 0)
        columns = np.zeros((n, given.shape[1], width * n))
        for j in range(n):
            columns[j, :, width * j : width * (j + 1)] = rows.columns[:width, j].T
        block = np.concatenate([links, columns, given[:, :, None]], axis=2) * free[:, :, None]
        stacked.append((block, free * (given - rows.links - np.einsum("kj,kjs->js", terms, rows.columns[:width]))))
    counts = sum(block.shape[1] for block, _ in stacked)
    missed = sum(np.sum(error**2, axis=1) for _, error in stacked)
    weights = counts / np.maximum(missed, np.finfo(float).tiny)
    pieces = [piece for block, _ in stacked for piece in np.array_split(block, PARTS, axis=1)]
    grams = np.array([np.einsum("j,jsa,jsb->ab", weights, piece, piece, optimize=True) for piece in pieces])
    parts = np.array([part.sum(axis=0) for part in np.array_split(grams, PARTS)])
    prior = BodyPrior.from_bodies("the robot", described.model.inertial_parameters, described.model)
    return _LimbGrams(prior, limb.model.inertial_parameters, terms.T.ravel(), parts)
