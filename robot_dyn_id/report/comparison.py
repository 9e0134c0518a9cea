# SPDX-License-Identifier: Apache-2.0
"""Comparison of identified models as text, plain data and a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robot_dyn_id.comparison.models import FAMILY_ERROR, ModelComparison
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.parameters import ParameterSet, describe_unknown_gains
from robot_dyn_id.report.assets import make_page_environment
from robot_dyn_id.report.friction import compute_friction_curve
from robot_dyn_id.report.interactive import Plot, PlotAxis, PlotRule, PlotSheet, Series, Table
from robot_dyn_id.report.plots import TIME_GROUP, DisplayTime, plot_effort_series

MODEL_COLORS = ("ink", "orange", "blue", "green", "purple", "pink", "teal", "olive")
"""Colors of the models, by their names in the style."""

MAX_LISTED = 10
"""Largest number of names in a line of text; the page, where more are folded, and `--json` have all."""

Models = Sequence[ParameterSet]
Differences = Sequence[ModelComparison]
Evaluations = Sequence[Evaluation]


def format_comparison(names: Sequence[str], models: Models, differences: Differences, evaluations: Evaluations) -> str:
    """Tables for a terminal: the models, then each but the first one against the first."""
    return "\n".join(_lines(names, models, differences, evaluations))


def _lines(names: Sequence[str], models: Models, differences: Differences, evaluations: Evaluations) -> Iterator[str]:
    for number, (name, model) in enumerate(zip(names, models, strict=True)):
        error = model.judgment.held_out_all_joints_nrmse
        yield (
            f"{'reference  ' if number == 0 else '           '}{name}: {model.robot.name}, {model.judgment.verdict}, "
            f"{len(model.base.names)} base parameters, held-out NRMSE of its own "
            + ("unknown" if math.isnan(error) else f"{error:.2%}")
        )
    kinds = list(dict.fromkeys(model.effort.kind for model in models))
    if len(kinds) > 1:
        yield f"the models were identified from efforts of different kinds: {', '.join(kinds)}"
    for name, model in zip(names, models, strict=True):
        if model.unknown_gains:
            yield f"{name}: {describe_unknown_gains(model.drive_units)}"
    if evaluations:
        yield ""
        yield from _error_lines(names, evaluations)
    for name, difference in zip(names[1:], differences, strict=True):
        yield ""
        yield from _difference_lines(name, names[0], difference)


def _error_lines(names: Sequence[str], evaluations: Evaluations) -> Iterator[str]:
    """RMS error of each joint on the common recordings, a column per model."""
    yield f"{'RMS error on the recordings':<28}" + "".join(f"{name[-14:]:>16}" for name in names)
    for row in _error_rows(evaluations):
        values = "".join(f"{'-' if value is None else f'{value:.4g}':>16}" for value in row["rms_error"])
        yield f"{row['joint']:<28}{values}  {row['unit']}"
    yield f"{'all joints, NRMSE':<28}" + "".join(f"{one.held_out.all_joints_nrmse:>16.2%}" for one in evaluations)
    yield from (f"  {note}" for note in note_trained(names, evaluations))


def _difference_lines(name: str, reference: str, difference: ModelComparison) -> Iterator[str]:
    """Test of all parameters, those that differ, and the difference of the torques."""
    if difference.degrees:
        word = "differ" if difference.significant else "do not differ significantly"
        yield (
            f"{name} and {reference} {word}: {len(difference.names)} parameters compared, chi-square "
            f"{difference.chi_square:.4g} with {difference.degrees} degrees of freedom, p = {difference.p_value:.2g}"
        )
    elif difference.names:
        yield f"{name} and {reference}: {len(difference.names)} parameters, not tested: the models have no covariance"
        for row in _parameter_rows(difference):
            if row["value"] != row["reference"]:
                yield f"  {row['name']:<10} {row['reference']:>11.4g} -> {row['value']:<11.4g} {row['unit']}"
    else:
        yield f"{name} and {reference} have no parameter in common"
    if difference.in_words:
        yield f"  {'; '.join(difference.in_words)}"
    for i in sorted(np.flatnonzero(difference.differing).tolist(), key=lambda i: -abs(difference.sigmas[i])):
        yield (
            f"  {difference.names[i]:<10} {difference.reference_values[i]:>11.4g} -> {difference.values[i]:<11.4g} "
            f"{difference.units[i]:<9} {difference.sigmas[i]:+.1f} sigma"
        )
    if note := describe_combination(difference):
        yield f"  {note}"
    if note := note_shared_data(difference):
        yield f"  {note}"
    if difference.not_compared:
        missing = list(difference.not_compared)
        more = f" and {len(missing) - MAX_LISTED} more" if len(missing) > MAX_LISTED else ""
        yield f"  not compared: {', '.join(missing[:MAX_LISTED])}{more}"
    torque = difference.torque
    if torque is None:
        yield "  torques are not compared: other joints, other units, or no common training range"
        return
    yield f"  {'torque over the common training range':<38}{'RMS':>10}{'difference':>12}{'expected':>10}"
    for values in zip(torque.joint_names, torque.torque_rms, torque.rms, torque.expected, torque.units, strict=True):
        joint, rms, found, expected, unit = values
        yield f"  {joint:<38}{rms:>10.4g}{found:>12.3g}{expected:>10.2g}  {unit}"


def describe_combination(difference: ModelComparison) -> str:
    """The combination that differs, where a significant difference is that of no single parameter; else empty."""
    combination = difference.combination
    if combination is None or not difference.significant or difference.differing.any():
        return ""
    terms = [f"{loading:+.2g} {name}" for name, loading in zip(combination.names, combination.loadings, strict=True)]
    text = " ".join(terms).replace("+", "+ ").replace("-", "- ").removeprefix("+ ")
    return (
        f"no single parameter differs significantly, but a combination does: {text} (each in its standard deviations) "
        f"by {combination.sigmas:+.1f} sigma, {combination.share:.0%} of the chi-square: estimates that are correlated"
    )


def note_shared_data(difference: ModelComparison) -> str:
    """Note on common training data and the test; empty without them."""
    if not difference.shared_data or not difference.degrees:
        return ""
    return (
        f"{difference.shared_data:.0%} of the training data of one are those of the other: the test takes the models "
        "for independent, and finds fewer differences than there are"
    )


def note_trained(names: Sequence[str], evaluations: Evaluations) -> list[str]:
    """Notes on the models that were identified from the recordings on which they are compared."""
    return [
        f"{name}: {finding.message}"
        for name, evaluation in zip(names, evaluations, strict=False)
        for finding in evaluation.findings
        if finding.code == "held_out_in_training"
    ]


def summarize_comparison(
    names: Sequence[str], models: Models, differences: Differences, evaluations: Evaluations
) -> dict[str, Any]:
    """Answer of `robot-dyn-id compare`. Numbers that are not finite are null."""
    return {
        "task": "compare",
        "models": [
            {
                "name": name,
                "robot": model.robot.name,
                "urdf_sha256": model.robot.urdf_sha256,
                "verdict": model.judgment.verdict,
                "estimator": model.provenance.estimator,
                "effort_kind": model.effort.kind,
                "unknown_gains": list(model.unknown_gains),
                "terms": list(dict.fromkeys(model.terms.names)),
                "base_parameters": len(model.base.names),
                "held_out_all_joints_nrmse": _finite(model.judgment.held_out_all_joints_nrmse),
                "data_sources": list(model.provenance.sources),
            }
            for name, model in zip(names, models, strict=True)
        ],
        "reference": names[0],
        "differences": [
            _difference_summary(name, difference) for name, difference in zip(names[1:], differences, strict=True)
        ],
        "errors": _error_rows(evaluations),
        "all_joints_nrmse": [_finite(one.held_out.all_joints_nrmse) for one in evaluations],
        "trained_notes": note_trained(names, evaluations),
        "low_pass": models[0].processing.cutoff_frequency
        if not evaluations
        else min(one.processing.cutoff_frequency for one in models),
    }


def _difference_summary(name: str, difference: ModelComparison) -> dict[str, Any]:
    torque = difference.torque
    return {
        "name": name,
        "chi_square": _finite(difference.chi_square),
        "degrees": difference.degrees,
        "p_value": _finite(difference.p_value),
        "significant": difference.significant,
        "combination": None if difference.combination is None else vars(difference.combination),
        "in_words": list(difference.in_words),
        "note": describe_combination(difference),
        "shared_data": difference.shared_data,
        "shared_data_note": note_shared_data(difference),
        "family_error": FAMILY_ERROR,
        "parameters": _parameter_rows(difference),
        "not_compared": difference.not_compared,
        "torque": None
        if torque is None
        else [
            {
                "joint": torque.joint_names[joint],
                "unit": torque.units[joint],
                "rms": float(torque.torque_rms[joint]),
                "rms_difference": float(torque.rms[joint]),
                "expected": _finite(float(torque.expected[joint])),
            }
            for joint in range(len(torque.joint_names))
        ],
    }


def _parameter_rows(difference: ModelComparison) -> list[dict[str, Any]]:
    """Compared parameters, the most different one first."""
    order = np.argsort(-np.abs(difference.sigmas), kind="stable").tolist()
    return [
        {
            "name": difference.names[i],
            "unit": difference.units[i],
            "reference": float(difference.reference_values[i]),
            "value": float(difference.values[i]),
            "standard_deviation": float(difference.standard_deviations[i]),
            "sigmas": float(difference.sigmas[i]),
            "differs": bool(difference.differing[i]),
        }
        for i in order
    ]


def _error_rows(evaluations: Evaluations) -> list[dict[str, Any]]:
    """RMS error of each model on each joint; None for a joint that a model does not have."""
    found = [{joint.name: joint for joint in one.held_out.joints} for one in evaluations]
    joints = dict.fromkeys(name for one in found for name in one)
    return [
        {
            "joint": name,
            "unit": next(one[name].unit for one in found if name in one),
            "rms_error": [_finite(one[name].rmse) if name in one else None for one in found],
        }
        for name in joints
    ]


def render_comparison_page(
    names: Sequence[str], models: Models, differences: Differences, evaluations: Evaluations
) -> str:
    """Page with tables, friction curves over each other and predicted torques."""
    sheet = PlotSheet()
    template = make_page_environment().get_template("comparison.html.j2")
    return template.render(
        summary=summarize_comparison(names, models, differences, evaluations),
        colors=[_color(number) for number in range(len(models))],
        most_listed=MAX_LISTED,
        frictions=list(_frictions(sheet, names, models)),
        torques=list(_torques(sheet, names, evaluations)),
        sheet=sheet,
    )


def _color(number: int) -> str:
    """Color of a model; repeated if there are more models than colors."""
    return MODEL_COLORS[number % len(MODEL_COLORS)]


def _frictions(sheet: PlotSheet, names: Sequence[str], models: Models) -> Iterator[tuple[str, str]]:
    """Name of each joint with friction, and the plot of the curves of all models with bands of two sigma."""
    regressors = [Regressor.from_parameters(model) for model in models]
    for joint in dict.fromkeys(name for model in models for name in model.robot.joint_names):
        curves = [
            (number, compute_friction_curve(model, regressor, model.robot.joint_names.index(joint)))
            for number, (model, regressor) in enumerate(zip(models, regressors, strict=True))
            if joint in model.robot.joint_names
        ]
        shown = [(number, curve) for number, curve in curves if curve is not None]
        if shown:
            first = shown[0][1]
            plot = Plot(
                f"Friction of {joint} over speed",
                PlotAxis(f"speed [{first.speed_unit}]"),
                PlotAxis(f"effort [{first.unit}]"),
                tuple(
                    Table(
                        curve.speed, tuple(plot_effort_series(names[number], curve.effort, curve.sigma, _color(number)))
                    )
                    for number, curve in shown
                ),
                rules=(PlotRule(0.0), PlotRule(0.0, vertical=True)),
            )
            yield joint, sheet.add(f"friction-{joint}", plot)


def _torques(sheet: PlotSheet, names: Sequence[str], evaluations: Evaluations) -> Iterator[tuple[str, list[str]]]:
    """Name of each joint, and the plots of its efforts and of the residuals of all models."""
    rows = _error_rows(evaluations)
    axes = [DisplayTime.from_stamps(one.trace.t, len(rows) * len(evaluations)) for one in evaluations]
    for row in rows:
        efforts, residuals = list[Table](), list[Table]()
        for number, (one, axis) in enumerate(zip(evaluations, axes, strict=True)):
            joint = next((i for i, entry in enumerate(one.held_out.joints) if entry.name == row["joint"]), None)
            if joint is None:
                continue
            measured, predicted = one.trace.measured[joint], one.trace.predicted[joint]
            series = [Series(names[number], predicted, _color(number), width=1.2)]
            if not efforts:
                series.insert(0, Series("measured", measured, "pale", width=2.4))
            efforts.append(axis.table(series))
            residuals.append(axis.table([replace(series[-1], y=measured - predicted)]))
        label, unit = axes[0].label, row["unit"]
        effort = Plot(
            f"Effort of {row['joint']} over time",
            PlotAxis(label),
            PlotAxis(f"effort [{unit}]"),
            tuple(efforts),
            TIME_GROUP,
        )
        residual = replace(
            effort,
            title=f"Residual of {row['joint']} over time",
            y=PlotAxis(f"residual [{unit}]"),
            tables=tuple(residuals),
            height=130,
        )
        yield (
            row["joint"],
            [sheet.add(f"effort-{row['joint']}", effort), sheet.add(f"residual-{row['joint']}", residual)],
        )


def _finite(value: float) -> float | None:
    """A number, or None if it is not finite."""
    return float(value) if math.isfinite(value) else None
