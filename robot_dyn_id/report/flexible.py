# SPDX-License-Identifier: Apache-2.0
"""Page of an identified arm with flexible joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robot_dyn_id.findings import Finding
from robot_dyn_id.flexible.curves import EquationCurve
from robot_dyn_id.report.assets import format_percent, number
from robot_dyn_id.report.result import VALUE_COLUMNS, ResultPage, ResultSection, fit_plots, make_value_row

ADVICE = {
    "good": "No check of data and model failed.",
    "suspect": "Read the findings before this model is used.",
    "bad": "Do not use this model.",
}
"""Sentence of the page by verdict."""


def render_flexible_page(
    answer: Mapping[str, Any],
    curves: Sequence[EquationCurve],
    units: Mapping[str, str],
    findings: Sequence[Finding],
    provenance: Mapping[str, str],
) -> ResultPage:
    """Page of an identified arm with flexible joints.

    Args:
        answer: answer of the command: verdict, parameters, plan, errors of the equations.
        curves: measured and predicted torques of the held-out experiments, or of the others if none is held out.
        units: unit of the effort of each joint.
        findings: findings about recordings and result.
        provenance: origin of the result, by name.
    """
    parameters = tuple(
        (*make_value_row(one["name"], one["value"], one["standard_deviation"], one["unit"]), one["expression"])
        for one in answer["parameters"]
    )
    sections = [ResultSection("Parameters", (*VALUE_COLUMNS, "expression"), parameters)]
    if answer["unidentified"]:
        rows = tuple(answer["unidentified"].items())
        sections.append(ResultSection("Not identified", ("group", "reason"), rows, numbers=()))
    sections += [_prediction(answer, curves, units), _steps(answer["plan"]["steps"])]
    verdict = answer["verdict"]
    return ResultPage(
        "Arm with flexible joints", verdict, verdict, ADVICE[verdict], tuple(sections), tuple(findings), provenance
    )


def _prediction(answer: Mapping[str, Any], curves: Sequence[EquationCurve], units: Mapping[str, str]) -> ResultSection:
    """Errors of the equations, measured and predicted torque over time."""
    held_out = bool(answer["held_out"])
    rows = tuple(
        (one["equation"], number(one["rms"], 3), number(one["error"], 3), format_percent(one["nrmse"]))
        for one in answer["held_out" if held_out else "fit"]
    )
    plots = []
    for one in curves:
        kind, _, joint = one.equation.rpartition(": ")[2].partition(" of ")
        unit = "N m" if kind == "motor" else units[joint]
        sides = one.t, one.measured, one.predicted
        plots.append((one.equation, fit_plots(one.equation, sides, unit, len(curves), one.at_rest)))
    shown = "Held-out experiments." if held_out else "Experiments of the identification: nothing is held out."
    note = (
        f"{shown} RMS torque and RMS error in N m or N, filtered alike; NRMSE is their ratio. Equations are of the "
        "link side, of the torque of the spring and of the motor side. Samples that do not count are not drawn."
    )
    columns = ("equation", "RMS torque", "RMS error", "NRMSE")
    return ResultSection("Prediction", columns, rows, note, tuple(plots), numbers=(1, 2, 3))


def _steps(steps: Sequence[Mapping[str, Any]]) -> ResultSection:
    """Steps of the identification, with their conditioning."""
    rows = tuple(
        (
            str(place),
            ", ".join(step["groups"]),
            ", ".join(step["equations"]),
            f"{step['observability']['rank']} of {step['observability']['columns']}",
            number(step["observability"]["condition_numbers"]["columns"], 3),
        )
        for place, step in enumerate(steps, start=1)
    )
    columns = ("step", "groups", "equations", "rank", "condition number")
    return ResultSection("Steps", columns, rows, "Condition numbers are those of unit-norm columns.", numbers=(3, 4))
