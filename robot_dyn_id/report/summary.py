# SPDX-License-Identifier: Apache-2.0
"""The answer of an identification or validation as plain data: `report.json` and `--json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.explanation import ModelExplanation, explain
from robot_dyn_id.identification.validation.rollout import HORIZONS_S
from robot_dyn_id.identification.validation.uses import UseJudgment, reduce_joints
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.trials import FilteredTrials


def summarize_identification(
    identification: Identification, parameters_file: str, explanation: ModelExplanation | None = None
) -> dict[str, Any]:
    """Answer of `robot-dyn-id identify`. Numbers that are not finite are null.

    Args:
        identification: the identification.
        parameters_file: file of its parameters.
        explanation: its explanation; None: it is made.
    """
    parameters, estimate = identification.parameters, identification.estimate
    training, used = identification.training, estimate.rows
    summary = _summary(identification.evaluation, training, parameters_file, used, parameters.estimate.condition_number)
    return {
        "task": "identify",
        **summary,
        "held_out_sources": list(identification.held_out_sources),
        "sources": list(parameters.provenance.sources),
        "estimator": parameters.provenance.estimator,
        "regularized_towards": estimate.regularized_towards,
        "constants": [{**vars(c), "standard_deviation": _finite(c.standard_deviation)} for c in estimate.constants],
        "physically_consistent": parameters.bodies.physically_consistent,
        "unconstrained_nrmse": _optional(identification.unconstrained_nrmse),
        "noise_rms": [_finite(value) for value in estimate.noise_rms],
        "base_parameters": list_base_parameter_rows(parameters),
        **summarize_explanation(explanation or explain(identification.evaluation, parameters, training)),
        "intervals": None
        if estimate.intervals is None
        else [[_finite(end) for end in pair] for pair in estimate.intervals],
        "identifiability": [vars(entry) for entry in identification.identifiable],
        "essential": _essential(identification),
        "model_choice": _model_choice(identification),
    }


def _model_choice(identification: Identification) -> dict[str, Any] | None:
    """Model that was chosen from the data, and the alternatives; None if it was given."""
    selection = identification.selection
    if selection is None:
        return None
    return {
        "terms": list(dict.fromkeys(term.name for _, term in selection.regressor.terms)),
        "couplings": [row.name for row in selection.tried if row.step == "coupling" and row.chosen],
        "families_left_out": list(selection.left_out),
        "effort_zeros": _effort_zeros(selection.trials),
        "prior_strength": selection.strength,
        "gravity": selection.regressor.model.gravity.tolist(),
        "motion_cutoff": selection.trials.plan.motion_pass.cutoff,
        "tried": [
            {**vars(row), **{key: _finite(getattr(row, key)) for key in ("loss", "gain", "deviation", "required")}}
            for row in identification.tried
        ],
    }


def _effort_zeros(trials: FilteredTrials) -> list[dict[str, Any]]:
    """Zeros of the efforts in each recording, relative to the offsets of the model; empty if they do not differ."""
    if trials.zeros is None:
        return []
    sources = [recording.source for recording in trials.recordings]
    return [
        {"source": source, "zeros": values}
        for source, values, judged in zip(sources, trials.zeros.values.tolist(), trials.zeros.judged, strict=True)
        if judged
    ]


def _essential(identification: Identification) -> dict[str, Any] | None:
    """Steps of the backward elimination."""
    found = identification.essential
    if found is None:
        return None
    uncertain = ("standard_deviation", "relative_deviation")
    steps = [{**vars(e), **{key: _finite(getattr(e, key)) for key in uncertain}} for e in found.left_out]
    return {
        "count": len(found.kept),
        "left_out": steps,
        "objected": None if found.objected is None else found.objected.name,
    }


def summarize_evaluation(
    evaluation: Evaluation, parameters_file: str, parameters: ParameterSet, explanation: ModelExplanation | None = None
) -> dict[str, Any]:
    """Answer of `robot-dyn-id validate`; rows are samples times joints. Without an explanation it is made."""
    held_out, survey = evaluation.held_out, evaluation.trials.survey
    used = held_out.samples * len(held_out.joints)
    summary = _summary(evaluation, evaluation.trials, parameters_file, used, parameters.estimate.condition_number)
    return {
        "task": "validate",
        **summary,
        "held_out_sources": list(survey.sources),
        "sources": list(parameters.provenance.sources),
        **summarize_explanation(explanation or explain(evaluation, parameters)),
    }


def summarize_explanation(explanation: ModelExplanation) -> dict[str, Any]:
    """Figures of an explanation without its curves; see the attributes of `ModelExplanation` and its parts."""
    return {
        "torque_by_cause": {
            joint.name: {
                "unit": joint.unit,
                "rms": {cause: _finite(value) for cause, value in joint.rms.items()},
                "rated": joint.rated,
                "error_of_rated": joint.error_of_rated,
                "coverage_95": _finite(joint.coverage_95),
                "rest_terms": list(joint.rest_terms),
                "merged": list(joint.merged),
                "urdf_friction": None if joint.friction_urdf is None else vars(joint.friction_urdf),
            }
            for joint in explanation.joints
        },
        "links": [
            {
                "name": link.name,
                "joint": link.joint,
                "lumped": list(link.lumped),
                "determined": link.determined,
                "identified": _plain(vars(link.identified)),
                "urdf": None if link.urdf is None else _plain(vars(link.urdf)),
                "parameters": [_plain(vars(row)) for row in link.parameters],
            }
            for link in explanation.links
        ],
        "excitation": {
            joint.name: _plain({key: value for key, value in vars(joint).items() if key != "name"})
            for joint in explanation.excitation
        },
        "data_health": [_plain(vars(row)) for row in explanation.health],
        "urdf_comparison": [_plain(vars(row)) for row in explanation.parameters],
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers and arrays as JSON has them; what is not finite is null."""
    return {key: _plain_value(value) for key, value in values.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain_value(one) for one in value]
    return _finite(value) if isinstance(value, float) else value


def list_base_parameter_rows(parameters: ParameterSet) -> list[dict[str, Any]]:
    """One entry per base parameter; `interval` is null if the estimator has none."""
    intervals: list[list[float | None] | None] = [None] * len(parameters.base.names)
    if len(parameters.estimate.interval_lows):
        ends = zip(parameters.estimate.interval_lows, parameters.estimate.interval_highs, strict=True)
        intervals = [[_finite(low), _finite(high)] for low, high in ends]
    return [
        {
            "name": name,
            "expression": expression,
            "value": _finite(value),
            "standard_deviation": _finite(sigma),
            "interval": interval,
            "unit": unit,
            "status": status,
        }
        for name, expression, value, sigma, interval, unit, status in zip(
            parameters.base.names,
            parameters.base.expressions,
            parameters.estimate.values,
            parameters.estimate.standard_deviations,
            intervals,
            parameters.base.units,
            parameters.estimate.status,
            strict=True,
        )
    ]


def _fit_for(judgment: UseJudgment) -> dict[str, Any]:
    """Answer about one use."""
    fit = judgment.fit
    return {
        "answer": fit.answer,
        "figure": _finite(fit.figure),
        "unit": fit.unit,
        "threshold": _finite(fit.threshold),
        "because": list(fit.because),
        "after": _finite(judgment.after),
        "reason": judgment.reason,
        "joints": list(fit.joints),
        "by_joint": dict(judgment.joints),
    }


def _optional(value: float | None) -> float | None:
    return None if value is None else _finite(value)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _summary(
    evaluation: Evaluation, trials: FilteredTrials, parameters_file: str, used: int, condition_number: float
) -> dict[str, Any]:
    held_out, check, plan, survey = evaluation.held_out, evaluation.cross_check, evaluation.plan, trials.survey
    dropped, uses = survey.repairs.total_dropped, evaluation.uses
    joints = [
        {
            "name": joint.name,
            "unit": joint.unit,
            "explained": _finite(joint.explained),
            "fit_for": {judgment.fit.use: judgment.joints[joint.name] for judgment in uses},
            **{
                key: _finite(getattr(joint, key))
                for key in (
                    "rmse",
                    "nrmse",
                    "correlation",
                    "max_error",
                    "mean_error",
                    "rms",
                    "raw_nrmse",
                    "constant_nrmse",
                    "nominal_nrmse",
                    "own_nrmse",
                    "peak",
                    "detectable",
                    "rated",
                    "friction",
                )
            },
        }
        for joint in held_out.joints
    ]
    return {
        "verdict": evaluation.verdict.word,
        "reasons": list(evaluation.verdict.reasons),
        "fit_for": {judgment.fit.use: _fit_for(judgment) for judgment in uses},
        "fit_for_without": [
            {"without": list(one.without), "identify": list(one.identify), "uses": list(one.uses)}
            for one in reduce_joints(uses)
        ],
        "held_out": {
            "method": held_out.method,
            "all_joints_nrmse": _finite(held_out.all_joints_nrmse),
            "nominal_all_joints_nrmse": _finite(held_out.nominal_all_joints_nrmse),
            "outside": held_out.outside,
            "outside_of": {excess.name: excess.share for excess in held_out.outside_of},
            "slow": dict(held_out.slow),
            "samples": held_out.samples,
            "apparent_load": _finite(held_out.apparent_load),
            "joints": joints,
        },
        "rollouts": {
            "count": evaluation.rollouts.count,
            "problem": evaluation.rollouts.problem,
            "errors": {
                f"{horizon:g} s": [_finite(error) for error in errors]
                for horizon, errors in zip(HORIZONS_S, evaluation.rollouts.errors.tolist(), strict=True)
            },
        },
        "condition_number": {"value": _finite(condition_number), "scaling": "columns"},
        "cross_check": {
            "max_difference": _finite(check.max_difference),
            "passed": check.passed,
            "rank_ours": check.rank_ours,
            "rank_pinocchio": check.rank_pinocchio,
            "regressor": _finite(check.regressor),
            "kronecker": _finite(check.kronecker),
            "torque": _finite(check.torque),
            "mass_matrix": _finite(check.mass_matrix),
            "samples": check.samples,
        },
        "mass_matrix_indefinite": evaluation.indefinite,
        "rows": {
            "used": used,
            "dropped": dropped,
            "reasons": dict(sorted(survey.repairs.dropped.items())),
            "left_out": sum(survey.left_out.values()),
            "left_out_reasons": dict(survey.left_out),
        },
        "signals": {
            "rate": plan.rate,
            "cutoff": plan.low_pass.cutoff,
            "filter_order": plan.low_pass.order,
            "velocity": plan.velocity_source,
            "efforts": {joint.name: text for joint, text in zip(held_out.joints, evaluation.efforts, strict=True)},
            "gaps": survey.repairs.gaps,
            "seconds": sum(survey.durations),
        },
        **summarize_findings(evaluation.findings),
        "parameters_file": parameters_file,
    }
