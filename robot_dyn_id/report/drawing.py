# SPDX-License-Identifier: Apache-2.0
"""Drawings as values, and how they become a file: panels one below the other, each with curves."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.text.files import write_atomically

COLORS = ("#243b53", "#e8590c", "#1c7ed6", "#2b8a3e", "#9c36b5", "#e67700")
"""Colors of curves, in their order."""

AXIS, GRID = "#9fb3c8", "#e4e9ee"
"""Colors of axes and ticks, and of grid lines."""


@dataclass(frozen=True)
class Curve:
    """Values over others.

    Attributes:
        label: text in the legend; empty: none.
        x: shape (N,).
        y: shape (N,); NaN interrupts.
        style: a line, points, or boxes: x holds the group of each value of y.
    """

    label: str
    x: Array
    y: Array
    style: Literal["line", "points", "boxes"] = "line"


@dataclass(frozen=True)
class Panel:
    """Axes with curves.

    Attributes:
        x: label of the horizontal axis, with its unit.
        y: label of the vertical axis, with its unit.
        curves: drawn in this order.
        logarithmic: which axes are: any of `x` and `y`.
        ticks: names of the places 0, 1, ... on the horizontal axis; empty: numbers.
    """

    x: str
    y: str
    curves: tuple[Curve, ...]
    logarithmic: str = ""
    ticks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """Panels one below the other.

    Attributes:
        name: name of its file, without suffix.
        title: above it.
        panels: the upper one first.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]


def write_drawing(drawing: Drawing, folder: Path) -> Path:
    """Write a drawing as SVG into an existing folder, and return its file.

    Raises:
        InputError: the folder cannot be written to.
    """
    figure, places = _axes(7.2, 0.6 + 2.3 * len(drawing.panels), len(drawing.panels))
    figure.set_layout_engine("constrained")
    figure.suptitle(drawing.title, fontsize=10)
    for axis, panel in zip(places, drawing.panels, strict=True):
        for curve, color in zip(panel.curves, COLORS * (1 + len(panel.curves) // len(COLORS)), strict=False):
            _draw(axis, curve, color)
        axis.set_xlabel(panel.x)
        axis.set_ylabel(panel.y)
        if "x" in panel.logarithmic:
            axis.set_xscale("log")
        if "y" in panel.logarithmic:
            axis.set_yscale("log")
        if panel.ticks:
            axis.set_xticks(range(len(panel.ticks)), panel.ticks, fontsize=8)
        if any(curve.label for curve in panel.curves):
            # above the panel: inside it the legend may cover values
            axis.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4)
    file = folder / f"{drawing.name}.svg"
    write_atomically(file, _svg(figure))
    return file


def _draw(axis: Any, curve: Curve, color: str) -> None:
    label = curve.label or None
    if curve.style == "boxes":
        groups = np.unique(curve.x)
        boxes = axis.boxplot([curve.y[curve.x == group] for group in groups], positions=groups, widths=0.5)
        for line in (line for lines in boxes.values() for line in lines):
            line.set_color(color)
    else:
        style = {"ls": "", "marker": "o", "ms": 3.5} if curve.style == "points" else {"lw": 1.2}
        axis.plot(curve.x, curve.y, color=color, label=label, **style)


def _axes(width: float, height: float, rows: int = 1, **options: Any) -> tuple[Any, list[Any]]:
    """A figure of that size [inch] and its axes, the upper one first."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    panels = list(figure.subplots(rows, 1, squeeze=False, **options)[:, 0])
    for axis in panels:
        axis.spines[["top", "right"]].set_visible(False)
        axis.spines[["left", "bottom"]].set_color(AXIS)
        axis.tick_params(labelsize=8, color=AXIS)
        axis.xaxis.label.set_fontsize(8.5)
        axis.yaxis.label.set_fontsize(8.5)
        axis.grid(axis="y", color=GRID, lw=0.6)
        axis.set_axisbelow(True)
    return figure, panels


def _svg(figure: Any) -> str:
    """SVG of a figure, text to be put into a file."""
    import matplotlib

    text = io.StringIO()
    # text stays text, and the same input gives the same bytes
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "robot_dyn_id"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawn = text.getvalue()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.S)
    drawn = re.sub(r'<g id="[^"]*"', "<g", drawn)  # nothing refers to them
    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), drawn)
