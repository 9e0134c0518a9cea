# SPDX-License-Identifier: Apache-2.0
"""Comparison of two identified models: parameters, torque over the common training range, and held-out errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.comparison.words import ParameterColumns, describe_changes
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.identification.diagnosis.fingerprint import REPORTED_SHARE
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, Fingerprint, ParameterSet

FAMILY_ERROR = 0.01
"""Probability that any parameter of two models of one robot is named as different (Holm)."""

SAME_CONSTANT_RATIO = 0.05
"""Relative difference of the constants of a term up to which its columns count as the same."""

SAME_ROW_RATIO = 1e-6
"""Difference, relative to the largest entry, up to which two combinations of columns are the same."""

SHOWN_LOADINGS, LEAST_LOADING = 4, 0.3
"""Number of parameters by which a combination is named, and their least loading as a share of the largest."""

COMPARED_STATES = 1000
"""Random states over the common training range at which torques are compared."""


@dataclass(frozen=True)
class ModelComparison:
    """Differences of a model from a reference model.

    The m compared parameters are base parameters of the model that are combinations of those of the reference too.

    Attributes:
        names: names of the compared parameters, m.
        units: their units.
        reference_values: values in the reference, SI, shape (m,).
        values: values in the model, SI, shape (m,).
        standard_deviations: standard deviations of the differences, shape (m,).
        chi_square: squared Mahalanobis distance of all differences.
        degrees: degrees of freedom, the rank of their covariance.
        p_value: probability of a chi-square at least as large between two models of the same robot.
        differing: parameters that differ at a family-wise error of `FAMILY_ERROR`, shape (m,).
        not_compared: reason for each base parameter of either model that has no counterpart, by name.
        torque: difference of the torques; None if the models have other joints, efforts in other units, or no common
            training range.
        combination: combination of parameters that differs most; None without a covariance.
        shared_data: share of the training samples, or of the training time, of one model that are those of the other.
        in_words: sentences about what differs: friction, rotor inertia, bodies, offsets; empty without a covariance.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    reference_values: Array
    values: Array
    standard_deviations: Array
    chi_square: float
    degrees: int
    p_value: float
    differing: Mask
    not_compared: dict[str, str]
    torque: TorqueDifference | None
    combination: DifferingCombination | None = None
    shared_data: float = 0.0
    in_words: tuple[str, ...] = ()

    @property
    def sigmas(self) -> Array:
        """Differences in standard deviations, shape (m,)."""
        difference = self.values - self.reference_values
        return np.divide(
            difference, self.standard_deviations, out=np.zeros_like(difference), where=self.standard_deviations > 0.0
        )

    @property
    def significant(self) -> bool:
        """Whether the models differ by more than their uncertainty explains."""
        return self.p_value < FAMILY_ERROR


@dataclass(frozen=True)
class DifferingCombination:
    """Uncorrelated combination of parameters that contributes most to the chi-square of their differences.

    Parameters whose estimates are correlated may differ together by far more than each of them alone.

    Attributes:
        names: parameters with the largest loadings, the largest first.
        loadings: weight of each of them, of a unit vector, of the differences in their standard deviations.
        sigmas: difference of the combination in its standard deviations.
        share: share of the chi-square.
    """

    names: tuple[str, ...]
    loadings: tuple[float, ...]
    sigmas: float
    share: float


@dataclass(frozen=True)
class TorqueDifference:
    """Difference of the torques of two models at random states within the common training range.

    Attributes:
        joint_names: names of the n joints.
        units: units of the torques.
        rms: RMS difference of each joint, shape (n,).
        expected: RMS that the covariances of both models explain, shape (n,); inf if a parameter is not identifiable.
        torque_rms: RMS torque of the reference, shape (n,).
    """

    joint_names: tuple[str, ...]
    units: tuple[str, ...]
    rms: Array
    expected: Array
    torque_rms: Array


def compare_models(reference: ParameterSet, other: ParameterSet) -> ModelComparison:
    """Compare an identified model with a reference.

    The base parameters of two sets may be named after other columns and combine other ones. Each base parameter of
    `other` that is a linear combination of those of `reference`, column by column, is compared with this combination.
    The two sets count as independent: common training data, or a common prior, make the differences smaller
    than their standard deviations state.

    Args:
        reference: the model that differences refer to.
        other: a model of the same robot, of another one of its type, or with other terms.

    Raises:
        InputError: a set that this version cannot read.
    """
    first, second = (Regressor.from_parameters(one) for one in (reference, other))
    place = _matching_columns(reference, first, other, second)
    rows, reasons = _common_rows(reference, other, place)
    chosen = np.array(sorted(rows), dtype=np.int64)
    weights = np.array([rows[i] for i in chosen.tolist()]).reshape(len(chosen), len(reference.base.names))
    known_first = np.isfinite(reference.estimate.standard_deviations)
    usable = np.isfinite(other.estimate.standard_deviations[chosen]) & ~(weights[:, ~known_first] != 0.0).any(axis=1)
    for number in chosen[~usable].tolist():
        reasons[other.base.names[number]] = "not identifiable from the training data of one of the models"
    chosen, weights = chosen[usable], weights[usable][:, known_first]
    covariance = (
        other.estimate.covariance[np.ix_(chosen, chosen)]
        + weights @ reference.estimate.covariance[np.ix_(known_first, known_first)] @ weights.T
    )
    reference_values, values = weights @ reference.estimate.values[known_first], other.estimate.values[chosen]
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    chi_square, degrees = mahalanobis(values - reference_values, covariance)
    sigmas = np.divide(np.abs(values - reference_values), deviations, out=np.zeros(len(chosen)), where=deviations > 0.0)
    return ModelComparison(
        names=tuple(other.base.names[i] for i in chosen.tolist()),
        units=tuple(other.base.units[i] for i in chosen.tolist()),
        reference_values=reference_values,
        values=values,
        standard_deviations=deviations,
        chi_square=chi_square,
        degrees=degrees,
        p_value=float(chdtrc(degrees, chi_square)) if degrees else math.nan,
        differing=adjust_holm(np.asarray(2.0 * ndtr(-sigmas))) <= FAMILY_ERROR,
        not_compared=reasons,
        torque=_compare_torques((reference, first), (other, second)),
        combination=_find_combination(
            tuple(other.base.names[i] for i in chosen.tolist()), values - reference_values, covariance
        ),
        shared_data=_share_data(reference.provenance.fingerprint, other.provenance.fingerprint),
        in_words=describe_changes(
            values - reference_values,
            covariance,
            other.base.mapping[chosen],
            ParameterColumns.from_regressor(second, _values_of(reference, place)),
            [other.base.names[i] for i in chosen.tolist()],
        )
        if degrees
        else (),
    )


def _values_of(reference: ParameterSet, place: Integers) -> Array:
    """Value of each column of the other set in the reference, shape (c,); 0 if it has no such column."""
    values = np.append(reference.bodies.standard_parameters, reference.terms.values)
    return np.where(place >= 0, values[place], 0.0)


def _share_data(one: Fingerprint, other: Fingerprint) -> float:
    """Share of the data of one fingerprint that are those of the other; 0 up to the share that counts as chance."""
    share = max(one.common_with(other), one.overlap_with(other), other.overlap_with(one))
    return share if share > REPORTED_SHARE else 0.0


def mahalanobis(difference: Array, covariance: Array) -> tuple[float, int]:
    """Squared Mahalanobis distance of a difference, and the rank of its covariance.

    Args:
        difference: shape (m,).
        covariance: shape (m, m); directions whose variance is rounding are left out.
    """
    along, _, _ = _uncorrelated(difference, covariance)
    return float(np.sum(along**2)), len(along)


def _uncorrelated(difference: Array, covariance: Array) -> tuple[Array, Array, Integers]:
    """A difference along the principal directions of its correlation.

    Returns:
        Its components in their standard deviations, shape (r,); the directions as columns, shape (k, r); numbers of the
        k parameters that have a variance.
    """
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    kept = np.flatnonzero(scale > 0.0)
    if not len(kept):
        return np.zeros(0), np.zeros((0, 0)), kept
    correlation = covariance[np.ix_(kept, kept)] / scale[kept] / scale[kept][:, None]
    variances, directions = np.linalg.eigh(correlation)
    strong = variances > len(variances) * np.finfo(np.float64).eps * variances[-1]
    along = directions[:, strong].T @ (difference[kept] / scale[kept]) / np.sqrt(variances[strong])
    return along, directions[:, strong], kept


def _find_combination(names: tuple[str, ...], difference: Array, covariance: Array) -> DifferingCombination | None:
    """Principal direction of the correlation along which the difference is the most significant."""
    along, directions, kept = _uncorrelated(difference, covariance)
    if not len(along):
        return None
    number = int(np.argmax(np.abs(along)))
    loadings = directions[:, number]
    shown = np.argsort(-np.abs(loadings))[:SHOWN_LOADINGS]
    shown = shown[np.abs(loadings[shown]) >= LEAST_LOADING * np.abs(loadings[shown[0]])]
    turned = float(np.sign(loadings[shown[0]]))
    return DifferingCombination(
        names=tuple(names[kept[i]] for i in shown.tolist()),
        loadings=tuple((turned * loadings[shown]).tolist()),
        sigmas=turned * float(along[number]),
        share=float(along[number] ** 2 / max(float(np.sum(along**2)), 1e-300)),
    )


def adjust_holm(probabilities: Array) -> Array:
    """Probabilities with Holm's step-down correction for their number, shape (m,).

    Those up to an error are rejected with that probability of rejecting any true hypothesis (Scandinavian Journal of
    Statistics 6, 1979).

    Args:
        probabilities: shape (m,).
    """
    order = np.argsort(probabilities)
    steps = probabilities[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty_like(probabilities)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def _matching_columns(reference: ParameterSet, first: Regressor, other: ParameterSet, second: Regressor) -> Integers:
    """Column of the reference that equals each column of the other set, shape (c,); -1 if there is none.

    Columns with parameters in other units, as drive gains are not known, are not equal.
    """
    bodies = {name: number for number, name in enumerate(reference.robot.body_names)}
    place = [
        10 * bodies[name] + number if name in bodies else -1
        for name in other.robot.body_names
        for number in range(len(INERTIAL_SYMBOLS))
    ]
    offset, used = 10 * len(reference.robot.body_names), set[int]()
    for column in second.term_columns:
        found = -1
        for number, candidate in enumerate(first.term_columns):
            same = (column.term.name, column.coordinate.name, column.index) == (
                candidate.term.name,
                candidate.coordinate.name,
                candidate.index,
            )
            if same and number not in used and _same_constants(column.term.constants, candidate.term.constants):
                found = offset + number
                used.add(number)
                break
        place.append(found)
    alike = [column >= 0 and first.units[column] == unit for column, unit in zip(place, second.units, strict=True)]
    return np.where(alike, place, -1)


def _same_constants(one: dict[str, float], two: dict[str, float]) -> bool:
    """Whether two terms have nearly the same constants."""
    return one.keys() == two.keys() and all(
        math.isclose(one[name], two[name], rel_tol=SAME_CONSTANT_RATIO) for name in one
    )


def _common_rows(
    reference: ParameterSet, other: ParameterSet, place: Integers
) -> tuple[dict[int, Array], dict[str, str]]:
    """Base parameters of the other set as combinations of those of the reference, by number, and why others are not.

    Returns:
        Weights of the base parameters of the reference, shape (p,), of each base parameter that can be compared;
        reasons by name for all others, those of the reference that occur in no combination included.
    """
    rows, reasons = dict[int, Array](), dict[str, str]()
    missing = place < 0
    for number, row in enumerate(other.base.mapping):
        if np.any(row[missing]):
            reasons[other.base.names[number]] = "the reference has no such term, or other constants or units"
            continue
        own = np.zeros(len(reference.base.column_names))
        own[place[~missing]] = row[~missing]
        weights = own[reference.base.independent]
        if np.abs(weights @ reference.base.mapping - own).max() > SAME_ROW_RATIO * np.abs(own).max():
            reasons[other.base.names[number]] = "another combination of columns: geometry or terms differ"
            continue
        rows[number] = weights
    used = np.any([*rows.values(), np.zeros(len(reference.base.names))], axis=0)
    for number in np.flatnonzero(~used).tolist():
        reasons.setdefault(reference.base.names[number], "only in the reference")
    return rows, reasons


def _compare_torques(
    reference: tuple[ParameterSet, Regressor], other: tuple[ParameterSet, Regressor]
) -> TorqueDifference | None:
    """Difference of the torques at random states within the common training range; None if they cannot be compared."""
    one, two = reference[0], other[0]
    if set(one.robot.joint_names) != set(two.robot.joint_names) or one.drive_units != two.drive_units:
        return None
    order = np.array([two.robot.joint_names.index(name) for name in one.robot.joint_names])
    ours, theirs = one.ranges, two.ranges
    low, high = np.maximum(ours.q_min, theirs.q_min[order]), np.minimum(ours.q_max, theirs.q_max[order])
    if np.any(low > high):
        return None
    speed, acceleration = (
        np.minimum(getattr(ours, name), getattr(theirs, name)[order])[:, None] for name in ("dq_max", "ddq_max")
    )
    q, dq, ddq = np.random.default_rng(0).uniform(-1.0, 1.0, (3, len(low), COMPARED_STATES))
    motion = Motion(0.5 * (low + high)[:, None] + 0.5 * (high - low)[:, None] * q, speed * dq, acceleration * ddq)
    torque, variance = _torques(*reference, motion)
    back = np.argsort(order)
    reordered = Motion(motion.q[back], motion.dq[back], motion.ddq[back])
    torque_2, variance_2 = (values[order] for values in _torques(*other, reordered))
    return TorqueDifference(
        joint_names=one.robot.joint_names,
        units=reference[1].model.effort_units,
        rms=_rms(torque_2 - torque),
        expected=np.sqrt(np.mean(variance + variance_2, axis=1)),
        torque_rms=_rms(torque),
    )


def _torques(parameters: ParameterSet, regressor: Regressor, motion: Motion) -> tuple[Array, Array]:
    """Torques and their variances at N states, each of shape (n, N); terms are evaluated without a history."""
    columns = regressor.dense(motion)[parameters.base.independent]
    known = np.isfinite(parameters.estimate.standard_deviations)
    covariance = np.where(known[:, None] & known, parameters.estimate.covariance, 0.0)
    variance = np.einsum("pjn,pq,qjn->jn", columns, covariance, columns, optimize=True)
    variance[np.any(columns[~known] != 0.0, axis=(0, 2))] = np.inf
    return np.asarray(np.einsum("p,pjn->jn", parameters.estimate.values, columns)), variance


def _rms(values: Array) -> Array:
    """RMS along the samples of values of shape (n, N)."""
    return np.asarray(np.sqrt(np.mean(values**2, axis=1)))
