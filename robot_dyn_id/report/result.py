# SPDX-License-Identifier: Apache-2.0
"""Page of a result: verdict, what to do first, tables with plots, findings and provenance.

One template shows every `ResultPage`; what differs between the commands are the values that their pages are made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.findings import Finding
from robot_dyn_id.report.assets import MAX_SHOWN_FINDINGS, format_plus_minus, make_page_environment
from robot_dyn_id.report.interactive import Plot, PlotAxis, PlotSheet, Series, Table
from robot_dyn_id.report.plots import TIME_GROUP, DisplayTime
from robot_dyn_id.report.ranking import rank_findings
from robot_dyn_id.text.files import write_atomically

VALUE_COLUMNS = ("quantity", "value", "± sigma", "unit")
"""Titles of the columns of `make_value_row`."""


@dataclass(frozen=True)
class ResultSection:
    """Section of a page.

    Attributes:
        title: title of the section.
        columns: titles of the columns of its table.
        rows: cells of each row, as text; empty: no table.
        note: sentences above the table.
        plots: plots below one another with their caption; every plot of a page has a title of its own.
        numbers: columns of numbers, which are aligned to the right.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    plots: tuple[tuple[str, tuple[Plot, ...]], ...] = ()
    numbers: tuple[int, ...] = (1, 2)

    @property
    def over_time(self) -> bool:
        """Whether a plot shares its time with others."""
        return any(plot.group == TIME_GROUP for _, drawn in self.plots for plot in drawn)


@dataclass(frozen=True)
class ResultPage:
    """Content of the page of a result.

    Attributes:
        title: what was identified, and of which robot.
        verdict: word or words of the verdict.
        mood: color of the verdict: that of `good`, `suspect` or `bad`.
        advice: what the result may be used for, in a sentence.
        sections: tables and plots.
        findings: findings, in any order.
        provenance: origin of the result, by name.
    """

    title: str
    verdict: str
    mood: str
    advice: str
    sections: tuple[ResultSection, ...]
    findings: tuple[Finding, ...]
    provenance: Mapping[str, str]


def write_result_page(path: Path, page: ResultPage) -> None:
    """Write a page.

    Raises:
        InputError: the file cannot be written.
    """
    sheet, names = PlotSheet(), dict[str, str]()
    for section in page.sections:
        for plot in (plot for _, drawn in section.plots for plot in drawn):
            names[plot.title] = sheet.add(f"plot-{len(names)}", plot)
    template = make_page_environment().get_template("result.html.j2")
    findings = rank_findings(page.findings)
    text = template.render(page=page, names=names, findings=findings, max_findings=MAX_SHOWN_FINDINGS, sheet=sheet)
    write_atomically(path, text)


def make_value_row(name: str, value: float, sigma: float | None, unit: str) -> tuple[str, ...]:
    """Row of a table with `VALUE_COLUMNS`; a value that is not identified has no sigma, or an infinite one."""
    if sigma is None or not np.isfinite(sigma) or not np.isfinite(value):
        return name, "not identified", "", format_unit(unit)
    value_text, sigma_text = format_plus_minus(value, sigma)
    return name, value_text, sigma_text, format_unit(unit)


def format_unit(unit: str) -> str:
    """A unit as pages write it."""
    return unit.replace("^2", "²")


def fit_plots(
    name: str, curves: tuple[Array, Array, Array], unit: str, count: int, at_rest: bool = False
) -> tuple[Plot, ...]:
    """Measured and predicted values over time with their residual below, decimated for display.

    Args:
        name: what is measured; unique within the page.
        curves: stamps [s], which may jump, measured and predicted values, shape (N,) each.
        unit: unit of the values.
        count: number of such pairs of plots of the page.
        at_rest: whether the samples are poses at rest, and the stamps their numbers.
    """
    t, measured, predicted = curves
    if at_rest:
        return _pose_plots(name, curves, unit)
    axis = DisplayTime.from_stamps(t, 2 * count)
    both = Series("measured", measured, "ink", width=1.8), Series("predicted", predicted, "orange", width=1.2)
    residual = Series("residual", measured - predicted, "blue", width=1.2)
    return (
        axis.plot(f"Measured and predicted: {name}", f"values [{unit}]", both),
        axis.plot(f"Residual: {name}", f"residual [{unit}]", (residual,), 130),
    )


def _pose_plots(name: str, curves: tuple[Array, Array, Array], unit: str) -> tuple[Plot, ...]:
    """Measured and predicted values of poses at rest."""
    pose, measured, predicted = curves
    series = Series("measured", measured, "ink", "points", 4.0), Series("predicted", predicted, "orange", "points", 2.0)
    axes = PlotAxis("pose"), PlotAxis(f"values [{unit}]")
    return (Plot(f"Measured and predicted: {name}", *axes, (Table(pose, series),)),)
