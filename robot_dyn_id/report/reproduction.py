# SPDX-License-Identifier: Apache-2.0
"""Page of a reproduced paper: its figures next to ours, and its plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robot_dyn_id.report.assets import number
from robot_dyn_id.report.drawing import Curve, Drawing, Panel
from robot_dyn_id.report.interactive import Plot, PlotAxis, Series, Table, decimate_curves
from robot_dyn_id.report.plots import MAX_PAGE_POINTS, MAX_PLOTTED_POINTS
from robot_dyn_id.report.result import ResultPage, ResultSection

CURVE_COLORS = ("ink", "orange", "blue", "green", "purple", "pink", "teal", "olive")
"""Colors of the curves of a plot, by their names in the style."""

MET = ("reproduced", "beaten", "no difference", "holds", "at the bound", "shown")
"""Verdicts on figures that leave nothing open."""

LEAST_BUCKETS = 100
"""Smallest number of buckets that a curve is decimated to."""

SIDES = {"lower": "\N{LESS-THAN OR EQUAL TO} ", "higher": "\N{GREATER-THAN OR EQUAL TO} ", "same": ""}
"""Sign before a target, by the side that is an improvement."""

COLUMNS = ("figure", "published", "rerun", "ours", "quartiles", "target", "verdict", "explanation")
"""Columns of the table of figures."""


def render_reproduction_page(
    answer: Mapping[str, Any], drawings: Sequence[Drawing], missed: int, software: str
) -> ResultPage:
    """Page of a reproduced paper.

    Args:
        answer: answer of the command: paper, source, figures with their verdicts, notes.
        drawings: counterparts of the paper's plots.
        missed: number of figures that miss their target.
        software: name and version of this package.
    """
    figures = answer["figures"]
    met = sum(one["verdict"] in MET for one in figures)
    verdict, mood = ("reproduced", "good") if met == len(figures) else ("reproduced in part", "suspect")
    if missed:
        verdict, mood = "targets missed", "bad"
    advice = f"{met} of {len(figures)} figures are met, {missed} miss their target."
    if met < len(figures):
        advice += " Read the verdicts on the others first: they are at the top of the table."
    rows = tuple(map(_row, sorted(figures, key=lambda one: one["verdict"] in MET)))
    note = " ".join(f"{one[:1].upper()}{one[1:].rstrip('.')}." for one in answer["notes"])
    sections = [ResultSection("Figures", COLUMNS, rows, note, numbers=(1, 2, 3, 4, 5))]
    count = sum(len(panel.curves) for drawing in drawings for panel in drawing.panels)
    buckets = max(LEAST_BUCKETS, min(MAX_PLOTTED_POINTS, MAX_PAGE_POINTS // max(1, count)) // 2)
    sections += [_drawn(drawing, buckets) for drawing in drawings]
    provenance = {"paper": f"{answer['paper']}: {answer['source']}", "software": software}
    return ResultPage(f"Reproduction of {answer['paper']}", verdict, mood, advice, tuple(sections), (), provenance)


def _row(figure: Mapping[str, Any]) -> tuple[str, ...]:
    """Row of the table of figures."""
    known = ("" if figure[key] is None else number(figure[key], 5) for key in ("published", "rerun", "ours"))
    quartiles = figure["quartiles"] if (figure["draws"] or 0) > 1 else None
    spread = "" if quartiles is None else " \N{HORIZONTAL ELLIPSIS} ".join(number(one, 3) for one in quartiles)
    target = "" if figure["asked"] is None else SIDES[figure["better"]] + number(figure["asked"], 5)
    conditions = f": {figure['conditions']}" if figure["verdict"] == "other conditions" else ""
    return figure["name"], *known, spread, target, figure["verdict"] + conditions, figure["why"]


def _drawn(drawing: Drawing, buckets: int) -> ResultSection:
    """Section with the panels of a drawing as interactive plots."""
    plots = tuple(
        (panel.y, (_plot(f"{drawing.title}, panel {place}", panel, buckets),))
        for place, panel in enumerate(drawing.panels, start=1)
    )
    return ResultSection(drawing.title, plots=plots)


def _plot(title: str, panel: Panel, buckets: int) -> Plot:
    """Panel of a drawing as an interactive plot."""
    tables = tuple(
        _table(curve, CURVE_COLORS[place % len(CURVE_COLORS)], buckets) for place, curve in enumerate(panel.curves)
    )
    return Plot(
        title,
        PlotAxis(panel.x, logarithmic="x" in panel.logarithmic, names=panel.ticks),
        PlotAxis(panel.y, logarithmic="y" in panel.logarithmic),
        tables,
        legend=any(curve.label for curve in panel.curves),
    )


def _table(curve: Curve, color: str, buckets: int) -> Table:
    """Curve of a drawing; one that goes back and forth, and boxes, are drawn as points."""
    there = np.isfinite(curve.x)
    x, y = np.asarray(curve.x, dtype=np.float64)[there], np.asarray(curve.y, dtype=np.float64)[there]
    series = Series(curve.label, y, color)
    if curve.style == "line" and np.all(np.diff(x) >= 0.0):
        x, (y,) = decimate_curves(x, [y], buckets)
        return Table(x, (replace(series, y=y),))
    order = np.argsort(x, kind="stable")[:: max(1, len(x) // (2 * buckets))]
    return Table(x[order], (replace(series, y=y[order], style="points", width=2.0),))
