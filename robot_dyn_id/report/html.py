# SPDX-License-Identifier: Apache-2.0
"""The report page: one file that needs nothing else, with the verdict first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from robot_dyn_id.dynamics.crosscheck import MAX_DIFFERENCE_RATIO
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.validation.explanation import ModelExplanation
from robot_dyn_id.identification.validation.explanation.joints import JointExplanation
from robot_dyn_id.identification.validation.uses import format_figure_texts
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report import plots
from robot_dyn_id.report.advice import RunFiles, advise
from robot_dyn_id.report.assets import MAX_SHOWN_FINDINGS, format_plus_minus, make_page_environment, number
from robot_dyn_id.report.bodies import make_bodies_scene
from robot_dyn_id.report.friction import compute_friction_curve, compute_reversal_curve
from robot_dyn_id.report.interactive import PlotSheet, escape_script
from robot_dyn_id.report.ranking import find_worst_answers, rank_findings
from robot_dyn_id.report.summary import list_base_parameter_rows
from robot_dyn_id.report.uses import APART_MEANS, LIMITED_MEANS, format_after, list_joints
from robot_dyn_id.signals.torque_shares import WEAK_TORQUE_SHARE, compute_torque_shares_of
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.uses import APART


def write_html(
    path: Path,
    summary: dict[str, Any],
    explanation: ModelExplanation,
    parameters: ParameterSet,
    files: RunFiles | None = None,
) -> None:
    """Write the page.

    Args:
        path: the file.
        summary: from `report.summary`.
        explanation: what is shown.
        parameters: parameter set of the model that was evaluated.
        files: files of the identification, for the commands of the next steps; None: those that the summary names.

    Raises:
        InputError: the file cannot be written.
    """
    regressor = Regressor.from_parameters(parameters)
    sheet = PlotSheet()
    axis = plots.DisplayTime.from_stamps(explanation.time.t, len(parameters.robot.joint_names))
    metrics = summary["held_out"]["joints"]
    rows = _parameter_rows(parameters, regressor, explanation)
    page = (
        make_page_environment()
        .get_template("report.html.j2")
        .render(
            sheet=sheet,
            summary=summary,
            parameters=parameters,
            explanation=explanation,
            uses=[
                {
                    **fit,
                    "use": use,
                    "texts": _use_texts(fit),
                    "after": format_after(math.nan if fit["after"] is None else fit["after"]),
                    "limited_by": list_joints(fit["joints"], parameters.robot.joint_names),
                }
                for use, fit in summary["fit_for"].items()
            ],
            without=_without(summary),
            limited_means=LIMITED_MEANS,
            apart={"answer": APART, "means": APART_MEANS},
            findings=_ranked(summary),
            max_findings=MAX_SHOWN_FINDINGS,
            steps=_list_steps(parameters, summary, files or RunFiles.from_summary(summary)),
            rows=rows,
            counts=_counted("zero" if row["zero"] else row["status"] for row in rows),
            zero_reasons=_zero_reasons(rows),
            results=_counted(row.result for row in explanation.health),
            joints=[
                {
                    **metrics[number],
                    "worse": _worse_than_constant(metrics[number]),
                    "explained_by": joint,
                    "torque": sheet.add(f"torque-{number}", plots.plot_torque(axis, joint)),
                    "residual": sheet.add(f"residual-{number}", plots.plot_residual(axis, joint)),
                    "parts": sheet.add(f"parts-{number}", plots.plot_parts(axis, joint)),
                    "details": _details(sheet, joint, number),
                    "coverage": sheet.add(
                        f"coverage-{number}", plots.plot_coverage(joint, explanation.excitation[number])
                    ),
                    **_friction(sheet, parameters, regressor, joint, number),
                }
                for number, joint in enumerate(explanation.joints)
            ],
            parts=plots.PART_LOOKS,
            units=regressor.model.effort_units,
            axis=axis,
            samples=len(explanation.time.t),
            coverage=explanation.coverage_95,
            has_nominal=bool(regressor.model.inertial_parameters.any()),
            weak=WEAK_TORQUE_SHARE,
            contains_prior=parameters.estimate.prior_strength != 0.0,
            tolerance=MAX_DIFFERENCE_RATIO,
            scene=escape_script(make_bodies_scene(regressor.model, parameters, explanation.links)),
        )
    )
    write_atomically(path, page)


def _list_steps(
    parameters: ParameterSet, summary: dict[str, Any], files: RunFiles
) -> list[tuple[str, tuple[str, ...]]]:
    """Next steps in words, each with its commands."""
    return [(step.text[0].upper() + step.text[1:], files.list_commands(step)) for step in advise(parameters, summary)]


def _use_texts(fit: dict[str, Any]) -> tuple[str, str]:
    """Figure of a use and its limit without their unit; a dash where they are unknown."""
    figure, threshold = (math.nan if fit[key] is None else fit[key] for key in ("figure", "threshold"))
    one, other = format_figure_texts(figure, threshold, fit["unit"])
    return _for_page(one), _for_page(other)


def _for_page(text: str) -> str:
    """A figure as the page writes numbers."""
    return text.replace("unknown", number(None)).replace("%", "\N{NO-BREAK SPACE}%")


def _without(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Uses that fewer joints are fit for, with the joints that are left out as text."""
    order = [joint["name"] for joint in summary["held_out"]["joints"]]
    return [{**one, "without_text": list_joints(one["without"], order)} for one in summary["fit_for_without"]]


def _parameter_rows(
    parameters: ParameterSet, regressor: Regressor, explanation: ModelExplanation
) -> list[dict[str, Any]]:
    """Base parameters with the values of the URDF, as numbers and as text; what is not known is None."""
    shares = compute_torque_shares_of(parameters, regressor).tolist()
    rows = zip(list_base_parameter_rows(parameters), shares, explanation.parameters, strict=True)
    return [
        {
            **row,
            **_written(row),
            "zero": row["value"] == 0.0,
            **{
                key: value if math.isfinite(value) else None
                for key, value in {
                    "share": share,
                    "significance": compared.significance,
                    "urdf": compared.urdf,
                    "difference": compared.difference,
                }.items()
            },
        }
        for row, share, compared in rows
    ]


def _details(sheet: PlotSheet, joint: JointExplanation, number: int) -> list[tuple[str, str]]:
    """Captions and names of the plots of a residual over speed and position and as a spectrum."""
    found = [
        ("Residual over speed", sheet.add(f"speed-{number}", plots.plot_scatter(joint, "speed"))),
        ("Residual over position", sheet.add(f"position-{number}", plots.plot_scatter(joint, "position"))),
    ]
    if joint.spectrum is not None:
        plot = plots.plot_spectrum(joint.unit, joint.spectrum)
        found.append(("Spectrum of the effort as recorded", sheet.add(f"spectrum-{number}", plot)))
    return found


def _ranked(summary: dict[str, Any]) -> list[list[Finding]]:
    """Findings by code, the most useful first; see `rank_findings`."""
    decisive = find_worst_answers((fit["because"], fit["answer"]) for fit in summary["fit_for"].values())
    return rank_findings(map(Finding.from_summary, summary["findings"]), decisive)


def _worse_than_constant(metrics: dict[str, Any]) -> bool:
    """Whether the best constant would predict a joint's effort as well."""
    error, constant = metrics["nrmse"], metrics["constant_nrmse"]
    return error is None or constant is None or error >= constant


def _counted(words: Iterable[str]) -> str:
    """Number of each word, the most frequent first: `13 passed, 2 not checked`."""
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common())


def _zero_reasons(rows: Sequence[dict[str, Any]]) -> str:
    """Reasons for parameters that are exactly zero, with their number."""
    words = {True: "not identifiable from these data", False: "at their bound, as these data need none of them"}
    return _counted(words[row["status"] == "not excited"] for row in rows if row["zero"])


def _written(row: dict[str, Any]) -> dict[str, Any]:
    """A base parameter's value, sigma and 95 % interval as text."""
    value, sigma = row["value"], row["standard_deviation"]
    if value is None or sigma is None:
        return {"value_text": number(value), "sigma_text": "not known", "interval_text": number(None)}
    value_text, sigma_text = format_plus_minus(value, sigma)
    ends = row["interval"]
    interval = number(None) if ends is None else " \N{HORIZONTAL ELLIPSIS} ".join(number(end) for end in ends)
    return {"value_text": value_text, "sigma_text": sigma_text, "interval_text": interval}


def _friction(
    sheet: PlotSheet, parameters: ParameterSet, regressor: Regressor, joint: JointExplanation, number: int
) -> dict[str, Any]:
    """Friction curve of a joint, that of presliding, and their parameters; None where there is none."""
    curve = compute_friction_curve(parameters, regressor, number)
    if curve is None:
        return {"friction": None, "presliding": None, "friction_terms": [], "friction_known": True}
    reversal, rows = compute_reversal_curve(parameters, regressor, number), list_base_parameter_rows(parameters)
    return {
        "friction": sheet.add(f"friction-{number}", plots.plot_friction(curve, joint)),
        "presliding": None if reversal is None else sheet.add(f"presliding-{number}", plots.plot_reversal(reversal)),
        "friction_terms": [{**rows[i], **_written(rows[i])} for i in curve.parameters],
        "friction_known": curve.sigma is not None,
    }
