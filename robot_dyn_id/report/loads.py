# SPDX-License-Identifier: Apache-2.0
"""Pages of identified payloads and drive gains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from robot_dyn_id.findings import Finding
from robot_dyn_id.loads.drive_gains import DriveGains
from robot_dyn_id.loads.fit import LoadFit
from robot_dyn_id.loads.wrench import CHANNELS
from robot_dyn_id.report.assets import format_percent, number
from robot_dyn_id.report.result import (
    VALUE_COLUMNS,
    ResultPage,
    ResultSection,
    fit_plots,
    make_value_row,
)

ADVICE = {
    "good": "Everything that was to be identified is, and the fit explains the recordings.",
    "suspect": "Something that was to be identified is not, or is in doubt: read the findings.",
    "bad": "Do not use this result: the fit does not explain the recordings.",
}
"""Sentence of the page by verdict."""

SENSOR_UNITS = {channel: "N m" if channel.startswith("moment") else "N" for channel in CHANNELS}
"""Unit of each channel of a 6-axis sensor."""

REJECTED = "What is declared is not what the arm carried."
"""Sentence of the page where the test rejects what was declared."""


def render_payload_page(
    answer: Mapping[str, Any],
    fit: LoadFit,
    units: Mapping[str, str],
    findings: Sequence[Finding],
    provenance: Mapping[str, str],
) -> ResultPage:
    """Page of an identified payload.

    Args:
        answer: answer of the command: verdict, `files.payload.summarize_payload` where there is a body,
            `files.payload.summarize_declared`, offsets of the sensor.
        fit: fit to the recordings.
        units: unit of each joint or channel of the fit.
        findings: findings about recordings and result.
        provenance: origin of the result, by name.
    """
    sections, declared, verdict = list[ResultSection](), answer.get("declared"), answer["verdict"]
    if "mass" in answer:
        sections.append(_body_section(answer))
    if answer.get("sensor_offsets"):
        pairs = answer["sensor_offsets"].items()
        rows = tuple(make_value_row(name, value, sigma, SENSOR_UNITS[name]) for name, (value, sigma) in pairs)
        sections.append(ResultSection("Offsets of the sensor", VALUE_COLUMNS, rows))
    advice, word, mood = ADVICE[verdict], verdict, verdict
    if declared is not None:
        sections.append(_declared_section(declared))
        if not declared["accepted"]:
            advice, word, mood = f"{REJECTED} {advice}", "declared payload rejected", "bad"
    sections.append(_fit_section(fit, units))
    title = "Identified payload" if "mass" in answer else "Test of a declared payload"
    return ResultPage(title, word, mood, advice, tuple(sections), tuple(findings), provenance)


def render_gains_page(
    gains: DriveGains, verdict: str, findings: Sequence[Finding], provenance: Mapping[str, str]
) -> ResultPage:
    """Page of identified drive gains.

    Args:
        gains: gain of each joint, and the fit to the currents.
        verdict: verdict on them.
        findings: findings about recordings and result.
        provenance: origin of the result, by name.
    """
    rows = tuple(
        (
            *make_value_row(one.joint, one.value, one.standard_deviation, "effort per current"),
            f"{number(100.0 * one.standard_deviation / abs(one.value), 2)} %" if math.isfinite(one.value) else "",
        )
        for one in gains.gains
    )
    table = ResultSection(
        "Gains",
        ("joint", *VALUE_COLUMNS[1:], "relative sigma"),
        rows,
        "N m/A or N/A for currents in A. With a negative gain, positive current gives negative effort.",
        numbers=(1, 2, 4),
    )
    fit = _fit_section(gains.fit, dict.fromkeys(gains.fit.rows, "raw"))
    return ResultPage(
        "Gains of the drives", verdict, verdict, ADVICE[verdict], (table, fit), tuple(findings), provenance
    )


def _body_section(answer: Mapping[str, Any]) -> ResultSection:
    """Mass, center of mass and moments of inertia with their standard deviations."""
    sigma = answer["standard_deviations"]
    rows = [make_value_row("mass", answer["mass"], sigma["mass"], "kg")]
    centers = zip("xyz", answer["center_of_mass"], sigma["center_of_mass"], strict=True)
    rows += [make_value_row(f"center of mass, {axis}", value, spread, "m") for axis, value, spread in centers]
    rows += [
        make_value_row(f"inertia {name[1:]}", value, sigma["inertia"][name], "kg m^2")
        for name, value in answer["inertia"].items()
    ]
    note = f"In the frame of {answer['link']}; inertia about the center of mass."
    return ResultSection("Body", VALUE_COLUMNS, tuple(rows), note)


def _declared_section(declared: Mapping[str, Any]) -> ResultSection:
    """Test of a declared payload."""
    rows = []
    for name, (difference, sigma) in declared["differences"].items():
        unit = "kg" if name == "mass" else "kg m^2" if name.startswith("I") else "m"
        sigmas = difference / sigma if sigma else math.nan
        rows.append((*make_value_row(name, difference, sigma, unit), number(sigmas, 3)))
    word = "accepted" if declared["accepted"] else "rejected"
    note = (
        f"{declared['part'].capitalize()} of {number(declared['mass'])} kg {word}: chi-square "
        f"{number(declared['chi_square'])} with {declared['degrees_of_freedom']} degrees of freedom, "
        f"p = {number(declared['p_value'], 2)}, significance level {number(declared['significance'], 2)}. "
        "Differences are identified less declared."
    )
    columns = ("quantity", "difference", "± sigma", "unit", "difference [sigma]")
    return ResultSection("Declared payload", columns, tuple(rows), note, numbers=(1, 2, 4))


def _fit_section(fit: LoadFit, units: Mapping[str, str]) -> ResultSection:
    """Errors by joint or channel, measured and predicted values over time."""
    curves = fit.curves()
    plots = tuple(
        (one.row, fit_plots(one.row, (one.t, one.measured, one.predicted), units[one.row], len(curves)))
        for one in curves
    )
    rows = [(row, format_percent(error)) for row, error in zip(fit.rows, fit.errors.tolist(), strict=True)]
    note = (
        "RMS of the residual over the RMS of the measured values, low-passed alike, on the recordings that the result "
        "was identified from."
    )
    return ResultSection(
        "Fit", ("row", "error"), (*rows, ("all", format_percent(fit.overall))), note, plots, numbers=(1,)
    )
