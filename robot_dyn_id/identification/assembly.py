# SPDX-License-Identifier: Apache-2.0
"""Parts of parameter sets, and sets that differ from others in a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.consistency import is_consistent
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.stored_terms import find_own_classes, list_states, list_stored_constants
from robot_dyn_id.errors import make_storable
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.identification.factor import Factor
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.parameters import (
    LONGEST_LINE,
    BaseEstimate,
    BaseParameters,
    BodyParameters,
    Effort,
    IdentifiedRobot,
    Judgment,
    ParameterSet,
    Provenance,
    Ranges,
    ResidualProfile,
    SignalProcessing,
    TermParameters,
    implied_compensations,
    urdf_hash,
)
from robot_dyn_id.signals.torque_shares import WEAK_TORQUE_SHARE, compute_torque_shares

NO_RESIDUALS = ResidualProfile(np.zeros(0), np.zeros(0))
"""Profile where residuals are not known."""

FROM_FACTORS = "identified from factors: its uses are not judged; validate it on a recording of this robot"
"""Reason why the verdict on a set that was identified without its recordings is at best `suspect`."""


@dataclass(frozen=True)
class HeldOutErrors:
    """Errors on recordings that a model was not identified from.

    Attributes:
        joints: NRMSE of each joint, NaN where nothing was left out, shape (n,).
        all_joints: NRMSE of all joints; NaN where nothing was left out.
    """

    joints: Array
    all_joints: float

    @classmethod
    def from_predictions(cls, recordings: Sequence[RowStatistics], values: Sequence[Array]) -> HeldOutErrors:
        """Errors on recordings, by their statistics alone.

        Args:
            recordings: statistics of the rows of each recording.
            values: base parameters that were identified without each recording, shape (p,) each.
        """
        squares, torques = (np.zeros(len(recordings[0].noise)) for _ in range(2))
        for one, predicted in zip(recordings, values, strict=True):
            squares += one.factors.squared_residuals(predicted)
            torques += one.factors.squared_residuals(np.zeros_like(predicted))
        known = np.where(torques > 0.0, torques, np.nan)
        total = float(torques.sum())
        return cls(np.sqrt(squares / known), float(np.sqrt(squares.sum() / total)) if total else np.nan)

    @classmethod
    def from_recordings(cls, recordings: Sequence[RowStatistics], names: tuple[str, ...]) -> HeldOutErrors:
        """Errors on each recording of the estimate from all others; NaN for a single recording.

        Args:
            recordings: statistics of the rows of each recording.
            names: names of the base parameters, p.
        """
        if len(recordings) < 2:
            return cls(np.full(len(recordings[0].noise), np.nan), np.nan)
        others = [
            RowStatistics.merged([*recordings[:number], *recordings[number + 1 :]]) for number in range(len(recordings))
        ]
        return cls.from_predictions(recordings, [rows.estimate(names).values for rows in others])


def profile_residuals(evaluation: Evaluation) -> ResidualProfile:
    """Residuals of the training data; `NO_RESIDUALS` without valid samples."""
    trace = evaluation.trace
    crossed = evaluation.held_out.method == "cross_validation"  # the training data themselves were held out
    profile = ResidualProfile.from_samples(trace.residual, trace.motion.dq, trace.valid) if crossed else trace.profile
    return profile or NO_RESIDUALS


def assemble_from_factor(
    identified: IdentifiedModel,
    factor: Factor,
    held_out: HeldOutErrors,
    thresholds: Thresholds,
    estimator: str,
    software_version: str,
) -> ParameterSet:
    """Assemble a parameter set that was identified from a factor, without its recordings.

    Its uses are not judged, and its verdict is at best `suspect`, as validation needs a recording.

    Args:
        identified: the identified model.
        factor: the factor.
        held_out: errors on recordings that were left out.
        thresholds: thresholds of the verdict.
        estimator: name of the estimator.
        software_version: version of this package.
    """
    choices = factor.choices
    bad = held_out.all_joints > thresholds.bad_nrmse
    kind = choices["effort_kind"]
    names = "drive_gains", "drive_signs", "relative_gains"
    gains, signs, relative = (np.array(choices[name], dtype=np.float64) for name in names)
    return ParameterSet(
        **describe_model(identified, factor.ranges),
        effort=Effort(kind, implied_compensations(kind), gains, signs, relative, np.zeros(0)),
        processing=SignalProcessing(
            sample_rate=choices["sample_rate"] / choices["decimation"],
            cutoff_frequency=choices["cutoff"],
            motion_cutoff_frequency=choices["motion_cutoff"],
            filter_order=choices["filter_order"],
            velocity_source="recorded" if choices["velocity"] == "recorded" else "derivative",
        ),
        residuals=NO_RESIDUALS,
        provenance=_describe_data(factor, estimator, software_version),
        judgment=Judgment(
            held_out_nrmse=held_out.joints,
            held_out_all_joints_nrmse=held_out.all_joints,
            held_out_method="recordings",
            verdict="bad" if bad else "suspect",
            reasons=(FROM_FACTORS,),
            fit_for=(),
            unexplained_joints=(),
        ),
    )


def add_data_of(parameters: ParameterSet, factor: Factor) -> ParameterSet:
    """Parameter set with the provenance and the ranges of all recordings of a factor."""
    own = parameters.provenance
    data = _describe_data(factor, own.estimator, own.software_version)
    return replace(parameters, provenance=data, ranges=factor.ranges)


def _describe_data(factor: Factor, estimator: str, software_version: str) -> Provenance:
    """Provenance of a parameter set from the recordings of a factor."""
    sources = tuple(make_storable(source, LONGEST_LINE) for source in factor.sources)
    return Provenance(sources, factor.data_sha256, factor.fingerprint, estimator, software_version)


def describe_model(identified: IdentifiedModel, trained: Ranges) -> dict[str, Any]:
    """Parts of a parameter set that follow from a model and the ranges of its training motion."""
    regressor, base, estimate = identified.regressor, identified.base, identified.estimate
    model = regressor.model
    inertial = 10 * len(model.body_names)
    full = _representative(base, estimate)
    spread = compute_column_deviations(base.mapping, base.independent, estimate.standard_deviations)
    intervals = np.zeros((0, 2)) if estimate.intervals is None else estimate.intervals
    shares = compute_torque_shares(regressor, base.independent, estimate.values, estimate.standard_deviations, trained)
    columns = regressor.term_columns
    constants = list_stored_constants(regressor.terms, model.joint_names, model.body_names)
    return {
        "robot": IdentifiedRobot(
            name=model.name,
            urdf=model.urdf,
            urdf_sha256=urdf_hash(model.urdf),
            joint_names=model.joint_names,
            held_joint_names=tuple(model.held),
            held_joint_positions=np.array(list(model.held.values()), dtype=np.float64),
            gravity=model.gravity,
            body_names=model.body_names,
        ),
        "base": base,
        "estimate": BaseEstimate(
            values=estimate.values,
            standard_deviations=estimate.standard_deviations,
            interval_lows=intervals[:, 0],
            interval_highs=intervals[:, 1],
            status=_status(shares, np.isin(base.names, estimate.unexcited)),
            covariance=(estimate.covariance + estimate.covariance.T) / 2,  # products of ill-conditioned factors
            condition_number=estimate.condition_number,
            condition_number_scaling="columns",
            prior_strength=estimate.known_prior_strength,
        ),
        "bodies": BodyParameters(
            standard_parameters=full[:inertial],
            physically_consistent=is_consistent(full[:inertial]),
            load_parameters=np.array(regressor.load_parameters),
        ),
        "terms": TermParameters(
            names=tuple(column.term.name for column in columns),
            joints=tuple(column.coordinate.name for column in columns),
            values=full[inertial:],
            standard_deviations=spread[inertial:],
            constant_names=tuple(name for name, _, _ in constants),
            constant_joints=tuple(joint for _, joint, _ in constants),
            constant_values=np.array([value for _, _, value in constants], dtype=np.float64),
            states=list_states(regressor.terms),
        ),
        "ranges": trained,
        "term_classes": find_own_classes(term for _, term in regressor.terms),
    }


def _representative(base: BaseParameters, estimate: Estimate) -> Array:
    """All parameters from the estimator, or the base parameters with zero in the dependent columns."""
    if estimate.full is not None:
        return estimate.full
    full = np.zeros(len(base.column_names))
    full[base.independent] = estimate.values
    return full


def compute_column_deviations(mapping: Array, independent: Integers, sigma: Array) -> Array:
    """Standard deviation of each column's own parameter, shape (c,); inf where only a combination is identifiable.

    Args:
        mapping: combinations of columns that are the base parameters, shape (p, c).
        independent: column that each base parameter is named after, shape (p,).
        sigma: standard deviations of the base parameters, shape (p,).
    """
    found = np.full(mapping.shape[1], np.inf)
    alone = np.count_nonzero(mapping, axis=1) == 1
    found[independent[alone]] = sigma[alone]
    return found


def _status(shares: Array, unexcited: Mask) -> tuple[str, ...]:
    """Status of each base parameter from its share of the torque, see `compute_torque_shares`."""
    weak = ~(shares <= WEAK_TORQUE_SHARE)
    return tuple(np.where(unexcited | np.isinf(shares), "not excited", np.where(weak, "weak", "good")).tolist())


NOT_VALIDATED = "tracked while the robot works, loads included: not validated on held-out data"


def replace_values(parameters: ParameterSet, values: Array) -> ParameterSet:
    """Parameter set with other base values, shape (p,); its representative moves in the independent columns."""
    estimate, bodies, terms = parameters.estimate, parameters.bodies, parameters.terms
    inertial = len(bodies.standard_parameters)
    full = np.concatenate([bodies.standard_parameters, terms.values])
    full[parameters.base.independent] += values - estimate.values
    standard = full[:inertial]
    return replace(
        parameters,
        estimate=replace(estimate, values=values),
        bodies=replace(bodies, standard_parameters=standard, physically_consistent=is_consistent(standard)),
        terms=replace(terms, values=full[inertial:]),
    )


def replace_covariance(parameters: ParameterSet, covariance: Array, regressor: Regressor | None = None) -> ParameterSet:
    """Parameter set with another covariance of the base values, and the deviations that follow.

    Args:
        parameters: the parameter set.
        covariance: covariance, shape (p, p).
        regressor: robot and terms of the set; None: they are made from the set.
    """
    regressor = regressor or Regressor.from_parameters(parameters)
    base, estimate, terms = parameters.base, parameters.estimate, parameters.terms
    sigma = np.sqrt(np.diag(covariance))
    shares = compute_torque_shares(regressor, base.independent, estimate.values, sigma, parameters.ranges)
    spread = compute_column_deviations(base.mapping, base.independent, sigma)
    return replace(
        parameters,
        estimate=replace(
            estimate,
            covariance=covariance,
            standard_deviations=sigma,
            interval_lows=np.zeros(0),
            interval_highs=np.zeros(0),
            status=_status(shares, np.zeros(len(sigma), dtype=bool)),
        ),
        terms=replace(terms, standard_deviations=spread[len(spread) - len(terms.names) :]),
    )


def make_tracked(
    parameters: ParameterSet, values: Array, covariance: Array, regressor: Regressor | None = None
) -> ParameterSet:
    """Parameter set with the base values, shape (p,), and the covariance, (p, p), that recent motion shows.

    Ranges and held-out errors are those of the identified set. `estimator` and `reasons` say that the set is tracked,
    its verdict is at best `suspect`, and its uses are not judged. `regressor` is that of the set, made if not given.
    """
    provenance, judgment = parameters.provenance, parameters.judgment
    return replace(
        replace_covariance(replace_values(parameters, values), covariance, regressor),
        provenance=replace(provenance, estimator=f"{provenance.estimator}, tracked"),
        judgment=replace(
            judgment,
            fit_for=(),
            verdict="bad" if judgment.verdict == "bad" else "suspect",
            reasons=(NOT_VALIDATED, *judgment.reasons),
        ),
    )
