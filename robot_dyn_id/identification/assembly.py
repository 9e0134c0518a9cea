# SPDX-License-Identifier: Apache-2.0
"""Assembly of the parameter set from the results of an identification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.base_parameters import BaseParameters
from robot_dyn_id.dynamics.consistency import is_consistent
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.stored_terms import find_own_classes, list_states, list_stored_constants
from robot_dyn_id.errors import storable
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.identification.factor import Factor
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.settings import store_drives
from robot_dyn_id.identification.stages.judged import Judged
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.residual_profile import ResidualProfile
from robot_dyn_id.parameters import LONGEST_LINE, ParameterSet, implied_compensations, urdf_hash
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.signals.torque_shares import WEAK_TORQUE_SHARE, torque_shares

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


def assemble(judged: Judged, software_version: str) -> ParameterSet:
    """Assemble a parameter set.

    Args:
        judged: the model, its evaluation, and all that led to them.
        software_version: version of this package.
    """
    fitted, evaluation = judged.fitted, judged.evaluation
    training, examined = fitted.chosen.trials, fitted.chosen.examined
    plan, fingerprint = training.plan, examined.read.fingerprint
    gains, signs = store_drives(training.drives, training.joints)
    return ParameterSet(
        **_describe_model(fitted.model, training.ranges),
        sample_rate=plan.rate,
        cutoff_frequency=plan.low_pass.cutoff,
        motion_cutoff_frequency=plan.motion_pass.cutoff,
        filter_order=plan.low_pass.order,
        velocity_source="recorded" if plan.recorded_velocity else "derivative",
        data_sources=tuple(storable(recording.source, LONGEST_LINE) for recording in training.recordings),
        data_sha256=training.survey.sha256,
        data_digests=fingerprint.digests,
        data_starts=fingerprint.starts,
        data_stops=fingerprint.stops,
        estimator=fitted.fit.estimator,
        software_version=software_version,
        held_out_nrmse=np.array([joint.nrmse for joint in evaluation.held_out.joints]),
        held_out_all_joints_nrmse=evaluation.held_out.all_joints_nrmse,
        held_out_method=evaluation.held_out.method,
        verdict=evaluation.verdict.word,
        reasons=tuple(storable(reason, LONGEST_LINE) for reason in evaluation.verdict.reasons),
        drive_gains=gains,
        drive_signs=signs,
        offset_deviations=training.offset_deviations,
        **_describe_residuals(evaluation),
        fit_for=tuple(judgment.fit for judgment in evaluation.uses),
        effort_kind=examined.effort_kind,
        robot_compensates=examined.read.settings.robot_compensates or implied_compensations(examined.effort_kind),
    )


def _describe_residuals(evaluation: Evaluation) -> dict[str, Any]:
    """Fields of a parameter set about the residuals of the training data."""
    trace = evaluation.trace
    crossed = evaluation.held_out.method == "cross_validation"  # the training data themselves were held out
    profile = ResidualProfile.from_samples(trace.residual, trace.motion.dq, trace.valid) if crossed else trace.profile
    if profile is None:
        return {}
    return {"residual_speeds": profile.speeds, "residual_deviations": profile.deviations}


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
    return ParameterSet(
        **_describe_model(identified, factor.ranges),
        sample_rate=choices["sample_rate"] / choices["decimation"],
        cutoff_frequency=choices["cutoff"],
        motion_cutoff_frequency=choices["motion_cutoff"],
        filter_order=choices["filter_order"],
        velocity_source="recorded" if choices["velocity"] == "recorded" else "derivative",
        **_describe_data(factor),
        estimator=estimator,
        software_version=software_version,
        held_out_nrmse=held_out.joints,
        held_out_all_joints_nrmse=held_out.all_joints,
        held_out_method="recordings",
        verdict="bad" if bad else "suspect",
        reasons=(FROM_FACTORS,),
        drive_gains=np.array(choices["drive_gains"], dtype=np.float64),
        drive_signs=np.array(choices["drive_signs"], dtype=np.float64),
        effort_kind=choices["effort_kind"],
        robot_compensates=implied_compensations(choices["effort_kind"]),
    )


def with_data_of(parameters: ParameterSet, factor: Factor) -> ParameterSet:
    """Parameter set with the provenance and the ranges of all recordings of a factor."""
    ranges = {name: getattr(factor.ranges, name) for name in ("q_min", "q_max", "dq_max", "ddq_max")}
    return replace(parameters, **_describe_data(factor), **ranges)


def _describe_data(factor: Factor) -> dict[str, Any]:
    """Fields of a parameter set that follow from the recordings of a factor."""
    return {
        "data_sources": tuple(storable(source, LONGEST_LINE) for source in factor.sources),
        "data_sha256": factor.data_sha256,
        "data_digests": factor.fingerprint.digests,
        "data_starts": factor.fingerprint.starts,
        "data_stops": factor.fingerprint.stops,
    }


def _describe_model(identified: IdentifiedModel, trained: Ranges) -> dict[str, Any]:
    """Fields of a parameter set that follow from a model and the ranges of its training motion."""
    regressor, base, estimate = identified.regressor, identified.base, identified.estimate
    model = regressor.model
    inertial = 10 * len(model.body_names)
    full = _representative(base, estimate)
    spread = column_deviations(base.mapping, base.independent, estimate.standard_deviations)
    intervals = np.zeros((0, 2)) if estimate.intervals is None else estimate.intervals
    shares = torque_shares(regressor, base.independent, estimate.values, estimate.standard_deviations, trained)
    columns = regressor.term_columns
    constants = list_stored_constants(regressor.terms, model.joint_names, model.body_names)
    return {
        "robot_name": model.name,
        "urdf": model.urdf,
        "urdf_sha256": urdf_hash(model.urdf),
        "joint_names": model.joint_names,
        "held_joint_names": tuple(model.held),
        "held_joint_positions": np.array(list(model.held.values()), dtype=np.float64),
        "gravity": model.gravity,
        "body_names": model.body_names,
        "names": base.names,
        "expressions": base.expressions,
        "units": base.units,
        "values": estimate.values,
        "standard_deviations": estimate.standard_deviations,
        "status": _status(shares, np.isin(base.names, estimate.unexcited)),
        "covariance": (estimate.covariance + estimate.covariance.T) / 2,  # products of ill-conditioned factors
        "column_names": base.column_names,
        "mapping": base.mapping,
        "independent_columns": base.independent.astype(np.uint32),
        "standard_parameters": full[:inertial],
        "physically_consistent": is_consistent(full[:inertial]),
        "term_names": tuple(column.term.name for column in columns),
        "term_joints": tuple(column.coordinate.name for column in columns),
        "term_values": full[inertial:],
        "term_standard_deviations": spread[inertial:],
        "term_constant_names": tuple(name for name, _, _ in constants),
        "term_constant_joints": tuple(joint for _, joint, _ in constants),
        "term_constant_values": np.array([value for _, _, value in constants], dtype=np.float64),
        "prior_strength": estimate.known_prior_strength,
        "condition_number": estimate.condition_number,
        "condition_number_scaling": "columns",
        "q_min": trained.q_min,
        "q_max": trained.q_max,
        "dq_max": trained.dq_max,
        "ddq_max": trained.ddq_max,
        "states": list_states(regressor.terms),
        "load_parameters": np.array(regressor.load_parameters),
        "interval_lows": intervals[:, 0],
        "interval_highs": intervals[:, 1],
        "term_classes": find_own_classes(term for _, term in regressor.terms),
    }


def _representative(base: BaseParameters, estimate: Estimate) -> Array:
    """All parameters from the estimator, or the base parameters with zero in the dependent columns."""
    if estimate.full is not None:
        return estimate.full
    full = np.zeros(len(base.column_names))
    full[base.independent] = estimate.values
    return full


def column_deviations(mapping: Array, independent: Integers, sigma: Array) -> Array:
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
    """Status of each base parameter from its share of the torque, see `torque_shares`."""
    weak = ~(shares <= WEAK_TORQUE_SHARE)
    return tuple(np.where(unexcited | np.isinf(shares), "not excited", np.where(weak, "weak", "good")).tolist())


NOT_VALIDATED = "tracked while the robot works, loads included: not validated on held-out data"


def with_values(parameters: ParameterSet, values: Array) -> ParameterSet:
    """Parameter set with other base values, shape (p,); its representative moves in the independent columns."""
    inertial = len(parameters.standard_parameters)
    full = np.concatenate([parameters.standard_parameters, parameters.term_values])
    full[parameters.independent_columns.astype(np.int64)] += values - parameters.values
    return replace(
        parameters,
        values=values,
        standard_parameters=full[:inertial],
        physically_consistent=is_consistent(full[:inertial]),
        term_values=full[inertial:],
    )


def with_covariance(parameters: ParameterSet, covariance: Array, regressor: Regressor | None = None) -> ParameterSet:
    """Parameter set with another covariance of the base values, and the deviations that follow.

    Args:
        parameters: the parameter set.
        covariance: covariance, shape (p, p).
        regressor: robot and terms of the set; None: they are made from the set.
    """
    regressor = regressor or Regressor.from_parameters(parameters)
    columns = parameters.independent_columns.astype(np.int64)
    sigma = np.sqrt(np.diag(covariance))
    shares = torque_shares(regressor, columns, parameters.values, sigma, Ranges.from_parameters(parameters))
    return replace(
        parameters,
        covariance=covariance,
        standard_deviations=sigma,
        interval_lows=np.zeros(0),
        interval_highs=np.zeros(0),
        status=_status(shares, np.zeros(len(sigma), dtype=bool)),
        term_standard_deviations=column_deviations(parameters.mapping, columns, sigma)[
            len(parameters.standard_parameters) :
        ],
    )


def tracked(
    parameters: ParameterSet, values: Array, covariance: Array, regressor: Regressor | None = None
) -> ParameterSet:
    """Parameter set with the base values, shape (p,), and the covariance, (p, p), that recent motion shows.

    Ranges and held-out errors are those of the identified set. `estimator` and `reasons` say that the set is tracked,
    its verdict is at best `suspect`, and its uses are not judged. `regressor` is that of the set, made if not given.
    """
    return replace(
        with_covariance(with_values(parameters, values), covariance, regressor),
        fit_for=(),
        estimator=f"{parameters.estimator}, tracked",
        verdict="bad" if parameters.verdict == "bad" else "suspect",
        reasons=(NOT_VALIDATED, *parameters.reasons),
    )
