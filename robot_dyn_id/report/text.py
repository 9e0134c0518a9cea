# SPDX-License-Identifier: Apache-2.0
"""Results as text for a terminal: the tables that commands and `print(result)` show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from robot_dyn_id.findings import SIGNS, Finding, format_finding
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.uses import UseJudgment, reduce_joints
from robot_dyn_id.loads.fit import LoadFit
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.ranking import NONE_DECISIVE, find_worst_answers, rank_findings
from robot_dyn_id.report.uses import (
    APART_MEANS,
    HEADS,
    LIMITED_MEANS,
    answer_rows,
    format_reduced,
    has_apart,
    has_limited,
    identify_line,
    use_rows,
)
from robot_dyn_id.uses import ANSWERS

if TYPE_CHECKING:
    from robot_dyn_id.excitation.design.search import Design

MAX_PRINTED_FINDINGS = 3
"""Number of findings that are printed in full; the report has all."""

LARGEST_PRINTED_RATIO = 9.995
"""Ratio above which a percentage no longer fits its column."""


def format_evaluation(evaluation: Evaluation) -> str:
    """Table of the held-out errors per joint, the cross-check, the warnings and the verdict."""
    return "\n".join(_evaluation_lines(evaluation))


def format_identification(result: Identification) -> str:
    """Errors per joint, the model and how it was chosen, uses, findings and verdict."""
    return "\n".join(_evaluation_lines(result.evaluation, model_lines(result)))


def model_lines(result: Identification) -> Iterator[str]:
    """The size of the model, the cost of physical consistency, what a reduction has left out, and the chosen terms."""
    yield format_parameter_count(result.parameters)
    yield from _consistency_lines(result)
    yield from _essential_lines(result)
    yield from _choice_lines(result)


def _choice_lines(result: Identification) -> Iterator[str]:
    """The terms that were chosen from the data."""
    if result.selection is not None:
        words = {
            "terms": "",
            "relative_gains": "relative ",
            "delay": "delay of ",
            "effort_zero": "zero per recording of ",
            "position": "",
            "coupling": "coupling ",
            "sign": "free sign of ",
            "base_tilt": "base tilt ",
            "prior_size": "prior bodies scaled by ",
            "prior_strength": "prior strength ",
        }
        taken = [
            words[row.step] + (row.name if words[row.step] else row.name.replace("_", " "))
            for row in result.tried
            if row.chosen and row.step in words
        ]
        left_out = [name.replace("_", " ") for name in result.selection.left_out]
        text = f"chosen by cross-validation: {', '.join(taken)}"
        yield text + (f"; left out: {', '.join(left_out)}" if left_out else "")


def fit_text(fit: LoadFit, verdict: str) -> str:
    """Fit of a load by joint or channel, and the verdict."""
    rows = zip(fit.rows, fit.errors, strict=True)
    errors = ", ".join(f"{row} {error:.1%}" for row, error in rows if math.isfinite(error))
    return f"fit: error {fit.overall:.2%} of the measured values ({errors})\nverdict: {verdict}"


def format_parameter_count(parameters: ParameterSet) -> str:
    """Number of base parameters by kind, of those that are zero, and of the others that are poorly identified."""
    inertial = int(np.count_nonzero(parameters.base.independent < 10 * len(parameters.robot.body_names)))
    count, zero = len(parameters.base.names), np.asarray(parameters.estimate.values) == 0.0
    weak = sum(word != "good" for word, none in zip(parameters.estimate.status, zero, strict=True) if not none)
    kinds = f"{inertial} of inertia, {count - inertial} of other terms"
    return f"{count} base parameters ({kinds}; {np.count_nonzero(zero)} zero, {weak} weak)"


def design_text(found: Design) -> str:
    """Margins to every limit, the objective, and the condition number of a designed motion."""
    width = max(len(margin.name) for margin in found.margins)
    lines = [
        f"{margin.name:<{width}}  {margin.reached:>10.4g}  of {margin.limit:>10.4g} {margin.unit:<8} "
        f"left {margin.margin:.3g}"
        for margin in found.margins
    ]
    lines.append(
        f"objective {found.objective_value:.5g}; random motions: best {found.random_objective_values[0]:.5g}, median "
        f"{np.median(found.random_objective_values):.5g}"
    )
    lines.append(
        f"condition number {found.condition_numbers['columns']:.4g} (unit-norm columns), "
        f"{found.condition_numbers['none']:.4g} (raw, noise-weighted)"
    )
    return "\n".join(lines)


def _evaluation_lines(evaluation: Evaluation, model: Iterable[str] = ()) -> Iterator[str]:
    """Errors and cross-check, lines about the model, uses, findings, and at the end the verdict."""
    yield (
        f"{'joint':<24} {'RMS':>9} {'error':>9} {'NRMSE':>7} {'URDF':>7} {'corr.':>7}  (held-out effort; NRMSE of "
        "this model and of the URDF's own)"
    )
    for name, rms, error, nrmse, nominal, correlation, unit in list_joint_rows(evaluation):
        yield f"{name:<24} {rms:>9} {error:>9} {nrmse:>7} {nominal:>7} {correlation:>7}  {unit}"
    yield from check_lines(evaluation)
    yield from model
    yield from use_lines(evaluation.uses)
    yield from format_findings_briefly(evaluation.findings, list_decisive_codes(evaluation))
    yield f"verdict: {evaluation.verdict.word}"


def list_joint_rows(evaluation: Evaluation) -> Iterator[tuple[str, str, str, str, str, str, str]]:
    """Name, RMS, error, NRMSE, NRMSE of the URDF, correlation and unit of the held-out effort of each joint."""
    for joint in evaluation.held_out.joints:
        yield (
            joint.name,
            _figure(joint.rms, ".3g"),
            _figure(joint.rmse, ".3g"),
            _percent(joint.nrmse),
            _percent(joint.nominal_nrmse),
            _figure(joint.correlation, ".3f"),
            joint.unit,
        )


def check_lines(evaluation: Evaluation) -> Iterator[str]:
    """Error of all joints, and the cross-check of the regressor."""
    held_out, check = evaluation.held_out, evaluation.cross_check
    nominal = held_out.nominal_all_joints_nrmse
    urdf = "not known" if math.isnan(nominal) else f"{nominal:.2%}"
    yield (
        f"all joints: NRMSE {held_out.all_joints_nrmse:.2%} (the URDF's own parameters: "
        f"{urdf}), low-pass {evaluation.plan.low_pass.cutoff:.3g} Hz"
        f"{', cross-validated' if held_out.method == 'cross_validation' else ''}"
    )
    yield (
        f"cross-check: largest difference {check.max_difference:.1e}, rank {check.rank_ours} (Pinocchio: "
        f"{check.rank_pinocchio})"
    )


def use_lines(judgments: Sequence[UseJudgment]) -> Iterator[str]:
    """A table of answers by joint, a line about the arm for each use, and what fewer joints are fit for."""
    if not judgments:
        return
    heads = [HEADS[one.fit.use] for one in judgments]
    widths = [max(map(len, (*head, *ANSWERS))) for head in heads]
    first = max(map(len, (*judgments[0].joints, "uses by joint")))
    table = [("uses by joint", *(head[0] for head in heads)), ("", *(head[1] for head in heads))]
    for cells in (*table, *((name, *answers) for name, answers in answer_rows(judgments))):
        row = [f"{cell:<{width}}" for cell, width in zip(cells, (first, *widths), strict=True)]
        yield "  ".join(row).rstrip()
    for use, answer, figures, joint in use_rows(judgments):
        yield f"fit for {use + ':':<22} {answer:<8} {figures}{f'  ({joint})' if joint else ''}"
    yield from note_lines(judgments)


def note_lines(judgments: Sequence[UseJudgment]) -> Iterator[str]:
    """Explanation of limited answers and of joints without one, and what fewer joints are fit for."""
    if has_limited(judgments):
        yield LIMITED_MEANS
    if has_apart(judgments):
        yield APART_MEANS
    for reduced in reduce_joints(judgments):
        yield format_reduced(reduced)
        yield f"    {identify_line(reduced)}"


def list_decisive_codes(evaluation: Evaluation) -> dict[str, str]:
    """Codes of the findings that answers about uses rest on, each with the worst of these answers."""
    return find_worst_answers((one.fit.because, one.fit.answer) for one in evaluation.uses)


def format_findings_briefly(
    findings: Iterable[Finding],
    decisive: Mapping[str, str] = NONE_DECISIVE,
    most: int = MAX_PRINTED_FINDINGS,
) -> Iterator[str]:
    """At most some findings with their codes, the most useful first; see `rank_findings`.

    Findings of one code share a line, which shows the first of them and the joints of the others.

    Args:
        findings: the findings.
        decisive: codes that answers about uses rest on, each with the worst of these answers.
        most: number of lines; the number of all others follows in one.
    """
    ranked = rank_findings(findings, decisive)
    for group in ranked[:most]:
        first = group[0]
        yield f"  {SIGNS[first.severity]} {first.severity} {first.code}: {format_finding(first)}{name_others(group)}"
    rest = ranked[most:]
    if rest:
        sign = "!" if any(SIGNS[one.severity] == "!" for group in rest for one in group) else "-"
        yield f"  {sign} {count_more_findings(rest)}"


def count_more_findings(groups: Sequence[Sequence[Finding]]) -> str:
    """Number of the findings that are not printed."""
    return f"and {len(groups)} more: see the report"


def name_others(group: Sequence[Finding]) -> str:
    """Joints that all but the first finding of a group are about, or the number of findings without joints."""
    if len(group) == 1:
        return ""
    first, *others = group
    joints = [joint for one in others for joint in one.joints if joint not in first.joints]
    return (
        f" (other findings with this code: {', '.join(dict.fromkeys(joints))})"
        if joints
        else f" (and {len(others)} more)"
    )


def _consistency_lines(result: Identification) -> Iterator[str]:
    """Held-out error with and without the bounds of an estimator that has any."""
    if result.unconstrained_nrmse is not None:
        bounded = result.evaluation.held_out.all_joints_nrmse
        yield (
            f"physical consistency: all links are physically consistent; NRMSE {bounded:.2%}, without these bounds "
            f"{result.unconstrained_nrmse:.2%}"
        )


def _essential_lines(result: Identification) -> Iterator[str]:
    """Steps of a backward elimination, if one was requested."""
    if result.essential is None:
        return
    yield (
        f"essential parameters: {len(result.essential.kept)}; left out, each with its value and standard deviation, "
        "its relative standard deviation at that step, the growth of the residual and the F-test of all steps so far:"
    )
    for step in result.essential.left_out:
        yield (
            f"  {step.name:<10} {step.value:>10.3g} +- {step.standard_deviation:<9.2g} "
            f"{step.relative_deviation:>9.1%} {step.residual_growth:>10.4%}   "
            f"F {step.statistic:.3g}, p {step.probability:.3g}"
        )
    if result.essential.objected is not None:
        step = result.essential.objected
        yield f"  the F-test keeps {step.name} ({step.relative_deviation:.1%}; p {step.probability:.2g})"


def _figure(value: float, form: str) -> str:
    """A number, or a dash where nothing is measured."""
    return "-" if math.isnan(value) else format(value, form)


def _percent(ratio: float) -> str:
    """A ratio in percent, at most seven characters wide."""
    if math.isnan(ratio):
        return "-"
    return f"{ratio:.1%}" if ratio < LARGEST_PRINTED_RATIO else ">999%"
