# SPDX-License-Identifier: Apache-2.0
"""Comparison of identified models as text, plain data and a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.identification.comparison import FAMILY_ERROR, ModelComparison
from robot_dyn_id.identification.evaluation import Evaluation
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.chart import Axis, Band, ChartPanel, CrossLine, Line, chart
from robot_dyn_id.report.friction import FrictionCurve, friction_curve
from robot_dyn_id.report.html import page_environment
from robot_dyn_id.report.plots import timeline

COLORS = ("#243b53", "#e8590c", "#1c7ed6", "#2b8a3e", "#9c36b5", "#c92a2a", "#0b7285", "#846358")
"""Colors of the models, repeated if there are more."""

MEASURED = "#9fb3c8"
"""Color of measured efforts."""

MAX_LISTED = 10
"""Largest number of names in a line of text; the page and `--json` have all."""

Models = Sequence[ParameterSet]
Differences = Sequence[ModelComparison]
Evaluations = Sequence[Evaluation]


def comparison_text(names: Sequence[str], models: Models, differences: Differences, evaluations: Evaluations) -> str:
    """Tables for a terminal: the models, then each but the first one against the first."""
    return "\n".join(_lines(names, models, differences, evaluations))


def _lines(names: Sequence[str], models: Models, differences: Differences, evaluations: Evaluations) -> Iterator[str]:
    for number, (name, model) in enumerate(zip(names, models, strict=True)):
        error = model.held_out_all_joints_nrmse
        yield (
            f"{'reference  ' if number == 0 else '           '}{name}: {model.robot_name}, {model.verdict}, "
            f"{len(model.names)} base parameters, held-out NRMSE of its own "
            + ("unknown" if math.isnan(error) else f"{error:.2%}")
        )
    kinds = list(dict.fromkeys(model.effort_kind for model in models))
    if len(kinds) > 1:
        yield f"the models were identified from efforts of different kinds: {', '.join(kinds)}"
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
    for i in sorted(np.flatnonzero(difference.differing).tolist(), key=lambda i: -abs(difference.sigmas[i])):
        yield (
            f"  {difference.names[i]:<10} {difference.reference_values[i]:>11.4g} -> {difference.values[i]:<11.4g} "
            f"{difference.units[i]:<9} {difference.sigmas[i]:+.1f} sigma"
        )
    if difference.not_compared:
        missing = list(difference.not_compared)
        more = f" and {len(missing) - MAX_LISTED} more" if len(missing) > MAX_LISTED else ""
        yield f"  not compared: {', '.join(missing[:MAX_LISTED])}{more}"
    torque = difference.torque
    if torque is None:
        yield "  torques are not compared: other joints, or no common training range"
        return
    yield f"  {'torque over the common training range':<38}{'RMS':>10}{'difference':>12}{'expected':>10}"
    for values in zip(torque.joint_names, torque.torque_rms, torque.rms, torque.expected, torque.units, strict=True):
        joint, rms, found, expected, unit = values
        yield f"  {joint:<38}{rms:>10.4g}{found:>12.3g}{expected:>10.2g}  {unit}"


def comparison_summary(
    names: Sequence[str], models: Models, differences: Differences, evaluations: Evaluations
) -> dict[str, Any]:
    """Answer of `robot-dyn-id compare`. Numbers that are not finite are null."""
    return {
        "task": "compare",
        "models": [
            {
                "name": name,
                "robot": model.robot_name,
                "urdf_sha256": model.urdf_sha256,
                "verdict": model.verdict,
                "estimator": model.estimator,
                "effort_kind": model.effort_kind,
                "terms": list(dict.fromkeys(model.term_names)),
                "base_parameters": len(model.names),
                "held_out_all_joints_nrmse": _finite(model.held_out_all_joints_nrmse),
                "data_sources": list(model.data_sources),
            }
            for name, model in zip(names, models, strict=True)
        ],
        "reference": names[0],
        "differences": [
            _difference_summary(name, difference) for name, difference in zip(names[1:], differences, strict=True)
        ],
        "errors": _error_rows(evaluations),
        "all_joints_nrmse": [_finite(one.held_out.all_joints_nrmse) for one in evaluations],
        "low_pass": models[0].cutoff_frequency if not evaluations else min(one.cutoff_frequency for one in models),
    }


def _difference_summary(name: str, difference: ModelComparison) -> dict[str, Any]:
    torque = difference.torque
    return {
        "name": name,
        "chi_square": _finite(difference.chi_square),
        "degrees": difference.degrees,
        "p_value": _finite(difference.p_value),
        "significant": difference.significant,
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


def comparison_page(names: Sequence[str], models: Models, differences: Differences, evaluations: Evaluations) -> str:
    """Page with tables, friction curves over each other and predicted torques."""
    template = page_environment().get_template("comparison.html.j2")
    return template.render(
        summary=comparison_summary(names, models, differences, evaluations),
        colors=[COLORS[number % len(COLORS)] for number in range(len(models))],
        measured=MEASURED,
        frictions=list(_frictions(models)),
        torques=list(_torques(evaluations)),
    )


def _frictions(models: Models) -> Iterator[tuple[str, str]]:
    """Name of each joint with friction, and the chart of the curves of all models."""
    regressors = [Regressor.from_parameters(model) for model in models]
    for name in dict.fromkeys(name for model in models for name in model.joint_names):
        curves = [
            (COLORS[number % len(COLORS)], friction_curve(model, regressor, model.joint_names.index(name)))
            for number, (model, regressor) in enumerate(zip(models, regressors, strict=True))
            if name in model.joint_names
        ]
        shown = [(color, curve) for color, curve in curves if curve is not None]
        if shown:
            yield name, _friction_chart(shown)


def _friction_chart(curves: Sequence[tuple[str, FrictionCurve]]) -> str:
    """Friction of a joint over its speed, a curve and a band of two standard deviations per model."""
    bands = [
        Band(curve.speed, curve.effort - 2.0 * curve.sigma, curve.effort + 2.0 * curve.sigma, color)
        for color, curve in curves
        if curve.sigma is not None
    ]
    lines = [Line(curve.speed, curve.effort, color, 1.5) for color, curve in curves]
    fastest, (_, first) = max(float(curve.speed[-1]) for _, curve in curves), curves[0]
    panel = ChartPanel(
        (CrossLine(0.0), CrossLine(0.0, vertical=True), *bands, *lines),
        x=Axis(f"speed [{first.speed_unit}]", (-fastest, fastest)),
        y=Axis(f"effort [{first.unit}]"),
    )
    return chart(288.0, 173.0, (panel,))


def _torques(evaluations: Evaluations) -> Iterator[tuple[str, str]]:
    """Name of each joint, and the chart of its measured effort and of the errors of all models."""
    for row in _error_rows(evaluations):
        lines = list[Line]()
        errors = list[Line]()
        for number, one in enumerate(evaluations):
            joint = next((i for i, entry in enumerate(one.held_out.joints) if entry.name == row["joint"]), None)
            if joint is None:
                continue
            time, breaks, _ = timeline(one.trace.t)
            measured, predicted = (
                np.insert(values[joint], breaks, np.nan) for values in (one.trace.measured, one.trace.predicted)
            )
            if not lines:
                lines.append(Line(time, measured, MEASURED, 2.0))
            lines.append(Line(time, predicted, COLORS[number % len(COLORS)], 0.9))
            errors.append(Line(time, predicted - measured, COLORS[number % len(COLORS)], 0.8))
        above = ChartPanel(tuple(lines), y=Axis(f"effort [{row['unit']}]"), share=2.0)
        below = ChartPanel((CrossLine(0.0), *errors), x=Axis("time [s]"), y=Axis(f"error [{row['unit']}]"))
        yield row["joint"], chart(475.0, 209.0, (above, below))


def _finite(value: float) -> float | None:
    """A number, or None if it is not finite."""
    return float(value) if math.isfinite(value) else None
