# SPDX-License-Identifier: Apache-2.0
"""Interactive plots of a page as values, and the data that its script draws them from.

A page holds each column of numbers once, whatever number of plots use it. Long columns are quantized to 16 bits.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from robot_dyn_id.arrays import Array, Integers

QUANTIZED_LENGTH = 48
"""Number of values from which a column is quantized; shorter ones are written as numbers."""

LEVELS = 65534
"""Quantization levels between the smallest and the largest value of a column; one more code means unknown."""

SIGNIFICANT_DIGITS = 7
"""Digits of numbers in columns that are not quantized."""


@dataclass(frozen=True)
class Series:
    """Values over those of its table.

    Attributes:
        label: text in the legend.
        y: shape (N,); NaN interrupts. For a band: its lower edge.
        color: name of a color of the style.
        style: a line, points, bars, or a band between two edges.
        width: [px], of lines.
        high: upper edge of a band, shape (N,).
        scaled: whether the vertical axis makes room for it.
        shown: whether it is drawn before the user chooses.
        dash: lengths of dashes and gaps [px]; empty: solid.
        extremes: smallest and largest value from each place up to the next one, for decimation, shape (2, N); None: y
            holds all values.
    """

    label: str
    y: Array
    color: str
    style: Literal["line", "points", "bars", "band"] = "line"
    width: float = 1.4
    high: Array | None = None
    scaled: bool = True
    shown: bool = True
    dash: tuple[float, ...] = ()
    extremes: Array | None = None


@dataclass(frozen=True)
class Table:
    """Series over one set of ascending places.

    Attributes:
        x: shape (N,), ascending, without NaN.
        series: their values.
    """

    x: Array
    series: tuple[Series, ...]


@dataclass(frozen=True)
class PlotAxis:
    """Axis of a plot.

    Attributes:
        label: quantity and unit.
        limits: ends; None: those of the data.
        room: ends that are shown at least, as long as the plot is not zoomed.
        logarithmic: whether equal distances are equal ratios.
        names: names of the places 0, 1, ...; empty: numbers.
    """

    label: str
    limits: tuple[float, float] | None = None
    room: tuple[float, float] | None = None
    logarithmic: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlotRule:
    """Line across a plot.

    Attributes:
        at: its place.
        vertical: whether it crosses the horizontal axis.
        color: name of a color of the style.
        label: text at the line.
    """

    at: float
    vertical: bool = False
    color: str = "soft"
    label: str = ""


@dataclass(frozen=True)
class Plot:
    """Curves over a common axis.

    Attributes:
        title: for those who cannot see it: what over what.
        x: horizontal axis.
        y: vertical axis.
        tables: series, drawn in this order.
        group: plots of one group share cursor and zoom; empty: alone.
        rules: lines across the plot.
        height: [px].
        legend: whether names of the series are shown, which turn them off and on.
    """

    title: str
    x: PlotAxis
    y: PlotAxis
    tables: tuple[Table, ...]
    group: str = ""
    rules: tuple[PlotRule, ...] = ()
    height: int = 220
    legend: bool = True


@dataclass
class PlotSheet:
    """Plots of a page. Plots are added while the page is written.

    Attributes:
        columns: packed columns of numbers.
        plots: descriptions by name, which refer to columns by number.
    """

    columns: list[Any] = field(default_factory=list)
    plots: dict[str, Any] = field(default_factory=dict)
    _known: dict[bytes, int] = field(default_factory=dict, repr=False)

    def add(self, name: str, plot: Plot) -> str:
        """Add a plot under a name that is unique within the page, and return the name."""
        self.plots[name] = {
            "title": plot.title,
            "x": _axis(plot.x),
            "y": _axis(plot.y),
            "tables": [self._table(table, plot.x.logarithmic, plot.y.logarithmic) for table in plot.tables],
            "group": plot.group,
            "rules": [vars(rule) for rule in plot.rules if math.isfinite(rule.at)],
            "height": plot.height,
            "legend": plot.legend,
        }
        return name

    def json(self) -> str:
        """Data of all plots, to be put into a script element."""
        return escape_script({"columns": self.columns, "plots": self.plots})

    def _table(self, table: Table, ratio_x: bool, ratio_y: bool) -> dict[str, Any]:
        entries = []
        for one in table.series:
            entry = {key: getattr(one, key) for key in ("label", "color", "style", "width", "scaled", "shown", "dash")}
            entry["y"] = self._column(one.y, ratio_y)
            if one.high is not None:
                entry["high"] = self._column(one.high, ratio_y)
            entries.append(entry)
        return {"x": self._column(table.x, ratio_x), "series": entries}

    def _column(self, values: Array, ratio: bool) -> int:
        values = np.ascontiguousarray(values, dtype=np.float64)
        key = values.tobytes() + bytes([ratio])
        if key not in self._known:
            self._known[key] = len(self.columns)
            self.columns.append(pack_column(values, ratio))
        return self._known[key]


def pack_column(values: Array, ratio: bool = False) -> list[float | None] | dict[str, Any]:
    """A column of numbers as plain data: numbers, or base64 of 16-bit codes between `low` and `high`.

    Args:
        values: shape (N,); what is not finite is unknown.
        ratio: whether ratios matter: logarithms of the values are quantized, and only positive ones are known.
    """
    known = np.isfinite(values) & (values > 0.0 if ratio else True)
    if len(values) < QUANTIZED_LENGTH or not known.any():
        return [
            float(f"{value:.{SIGNIFICANT_DIGITS}g}") + 0.0 if there else None
            for value, there in zip(values.tolist(), known.tolist(), strict=True)
        ]
    quantized = np.log10(np.where(known, values, 1.0)) if ratio else np.where(known, values, 0.0)
    low, high = float(quantized[known].min()), float(quantized[known].max())
    step = (high - low) / LEVELS or 1.0
    codes = np.where(known, np.round((quantized - low) / step) - LEVELS // 2, -LEVELS // 2 - 1)
    return {
        "codes": base64.b64encode(codes.astype("<i2").tobytes()).decode(),
        "low": low,
        "step": step,
        "log": ratio,
    }


def escape_script(content: Any) -> str:
    """JSON that cannot end the script element it is in."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def decimate_curves(
    x: Array, curves: Iterable[Array], buckets: int, breaks: Integers | None = None
) -> tuple[Array, list[Array]]:
    """Decimate curves for display: the smallest and the largest value of each bucket, in their order.

    Every curve keeps its extremes; the place of an extreme is exact to half a bucket.

    Args:
        x: shape (N,).
        curves: values over x, each of shape (N,), or smallest and largest values from each place up to the next one,
            (2, N); NaN remains where a bucket holds nothing else.
        buckets: number of buckets.
        breaks: samples at which all curves are interrupted, ascending; each has a bucket of its own in addition, so
            that no bucket joins both sides and NaN remains there.

    Returns:
        Places, shape (2 B,) with B buckets, and the decimated curves; the input where it has no more samples than that
        and no curve has extremes.
    """
    curves = [np.asarray(curve, dtype=np.float64) for curve in curves]
    if len(x) <= 2 * buckets and all(curve.ndim == 1 for curve in curves):
        return x, curves
    buckets = min(buckets, len(x))
    alone = np.zeros(0, dtype=np.int64) if breaks is None else np.asarray(breaks, dtype=np.int64)
    edges = np.linspace(0, len(x), buckets + 1).astype(np.int64)
    edges = np.unique(np.concatenate([edges, alone, alone + 1]))
    starts = edges[:-1]
    places = np.empty(2 * len(starts))
    places[0::2], places[1::2] = x[starts], x[(starts + edges[1:]) // 2]
    decimated = []
    for curve in curves:
        least, most = curve if curve.ndim == 2 else (curve, curve)
        low = np.minimum.reduceat(np.where(np.isnan(least), np.inf, least), starts)
        high = np.maximum.reduceat(np.where(np.isnan(most), -np.inf, most), starts)
        rising = least[starts] + most[starts] <= least[edges[1:] - 1] + most[edges[1:] - 1]
        pairs = np.column_stack([np.where(rising, low, high), np.where(rising, high, low)]).reshape(-1)
        decimated.append(np.where(np.isfinite(pairs), pairs, np.nan))
    return places, decimated


def _axis(axis: PlotAxis) -> dict[str, Any]:
    return {"label": axis.label, "limits": axis.limits, "room": axis.room, "log": axis.logarithmic, "names": axis.names}
