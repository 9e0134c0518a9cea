# SPDX-License-Identifier: Apache-2.0
"""Charts of lines, bands and points, written as SVG.

The report of an arm holds some twenty small plots. A plotting library lays out every tick of them, which takes longer
than the identification of a short recording.
"""

from __future__ import annotations

import hashlib
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array

AXIS = "#9fb3c8"
"""Color of axes and ticks."""

GRID = "#e4e9ee"
"""Color of grid lines."""

INK = "#243b53"
"""Color of texts and of lines at zero."""

LEFT_PT, RIGHT_PT, TOP_PT, BOTTOM_PT = 50.0, 5.0, 6.0, 30.0
"""Margins around the panels, for tick labels and titles of axes."""

GAP_PT = 6.0
"""Distance between panels one below the other."""

LABEL_PT, TITLE_PT = 8.0, 8.5
"""Sizes of tick labels and of titles of axes."""

TICK_PT = 3.5
"""Length of a tick."""

TICK_DISTANCE_PT = (52.0, 26.0)
"""Least distance of ticks on the horizontal and the vertical axis."""

NICE_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Steps of ticks, times powers of ten."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Characters of exponents."""

ROOM = 0.05
"""Space above and below curves, as a share of their extent."""

MAX_OVERSHOOT = 1000.0
"""Largest distance of a drawn point from its axis, as a multiple of the axis: renderers overflow at larger numbers."""


@dataclass(frozen=True)
class Line:
    """Values over others.

    Attributes:
        x: shape (N,).
        y: shape (N,); NaN interrupts.
        color: color of the line.
        width: [pt].
    """

    x: Array
    y: Array
    color: str
    width: float = 1.0


@dataclass(frozen=True)
class Band:
    """Area between two curves.

    Attributes:
        x: shape (N,).
        low: lower edge, shape (N,).
        high: upper edge, shape (N,).
        color: color of the area, which is translucent.
    """

    x: Array
    low: Array
    high: Array
    color: str


@dataclass(frozen=True)
class Stems:
    """Points on stems from the lower end of the vertical axis.

    Attributes:
        x: shape (N,).
        y: shape (N,).
        color: color of points and stems.
    """

    x: Array
    y: Array
    color: str


@dataclass(frozen=True)
class CrossLine:
    """Line across a panel.

    Attributes:
        at: where.
        vertical: whether it crosses the horizontal axis.
        color: color of the line.
        width: [pt].
        dash: lengths of dashes and gaps; empty: solid.
    """

    at: float
    vertical: bool = False
    color: str = INK
    width: float = 0.5
    dash: str = ""


@dataclass(frozen=True)
class Axis:
    """Axis of a panel.

    Attributes:
        title: quantity and unit; empty: neither title nor tick labels.
        limits: ends; None: those of the curves.
        logarithmic: whether equal distances are equal ratios.
        names: names of the places 0, 1, ...; empty: numbers.
    """

    title: str = ""
    limits: tuple[float, float] | None = None
    logarithmic: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChartPanel:
    """Curves in a frame.

    Attributes:
        marks: lines, bands, stems and rules, drawn in this order.
        x: horizontal axis.
        y: vertical axis.
        share: height relative to those of the other panels.
    """

    marks: tuple[Line | Band | Stems | CrossLine, ...]
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    share: float = 1.0


def chart(width: float, height: float, panels: Sequence[ChartPanel], bottom: float = BOTTOM_PT) -> str:
    """Panels one below the other, as an SVG element to be put into a page.

    Args:
        width: [pt].
        height: [pt].
        panels: the upper one first.
        bottom: margin below the last panel [pt].
    """
    shares = np.array([panel.share for panel in panels])
    heights = (height - TOP_PT - bottom - GAP_PT * (len(panels) - 1)) * shares / shares.sum()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}pt" height="{height:g}pt" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" fill="none">'
    ]
    top = TOP_PT
    for panel, own in zip(panels, heights.tolist(), strict=True):
        horizontal = _Scale.from_panel(panel, False, LEFT_PT, width - RIGHT_PT)
        parts += _draw(panel, horizontal, _Scale.from_panel(panel, True, top + own, top))
        top += own + GAP_PT
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True)
class _Scale:
    """Places of values along an axis.

    Attributes:
        start: value at the beginning, its logarithm on a logarithmic axis.
        stop: value at the end.
        first: place of the beginning [pt].
        last: place of the end [pt].
        logarithmic: whether values are replaced by their logarithms.
    """

    start: float
    stop: float
    first: float
    last: float
    logarithmic: bool

    @classmethod
    def from_panel(cls, panel: ChartPanel, vertical: bool, first: float, last: float) -> _Scale:
        """Scale with the limits of an axis, or of what a panel shows."""
        axis = panel.y if vertical else panel.x
        low, high = axis.limits or _extent(panel, vertical)
        if axis.logarithmic:
            low, high = math.log10(max(low, 1e-300)), math.log10(max(high, 1e-300))
        if axis.limits is None:
            room = ROOM * (high - low) if vertical else 0.0
            low, high = low - room, high + room
        if not high > low:
            half = 0.5 * max(abs(low), 1e-3)
            low, high = low - half, high + half
        return cls(low, high, first, last, axis.logarithmic)

    def places(self, values: Array) -> Array:
        """Places of values, also of those beyond the ends of the axis [pt]."""
        if self.logarithmic:
            values = np.log10(np.maximum(values, 1e-300))
        share = np.clip((values - self.start) / (self.stop - self.start), -MAX_OVERSHOOT, 1.0 + MAX_OVERSHOOT)
        return np.asarray(self.first + share * (self.last - self.first))

    def place(self, value: float) -> float:
        """Place of a value [pt]."""
        return float(self.places(np.array(value)))

    def contains(self, value: float) -> bool:
        """Whether a value is on the axis."""
        return self.start <= (math.log10(value) if self.logarithmic else value) <= self.stop

    def ticks(self, distance: float) -> list[tuple[float, str]]:
        """Values of ticks that are at least `distance` [pt] apart if there are more than three, and their labels."""
        most = max(3, int(abs(self.last - self.first) / distance))
        if self.logarithmic:
            low, high = math.ceil(self.start - 1e-9), math.floor(self.stop + 1e-9)
            step = max(1, math.ceil((high - low + 1) / most))
            return [(10.0**power, _power(power)) for power in range(low, high + 1, step)]
        raw = (self.stop - self.start) / most
        ticks: list[tuple[float, str]] = []
        for width in (_nice_step(raw), _nice_step(raw / 1.5), _nice_step(raw / 2.0)):
            count = range(math.ceil(self.start / width - 1e-9), math.floor(self.stop / width + 1e-9) + 1)
            ticks = [(number * width, _label(number * width, width)) for number in count]
            if len(ticks) > 1:  # a single one shows no scale; at most a third of the axis apart, there are two
                break
        return ticks


def _nice_step(least: float) -> float:
    """Smallest step of ticks that is not below a number."""
    unit = 10.0 ** math.floor(math.log10(least))
    return next(nice * unit for nice in NICE_STEPS if nice * unit >= least * (1.0 - 1e-9))


def _extent(panel: ChartPanel, vertical: bool) -> tuple[float, float]:
    """Smallest and largest finite value that a panel shows along an axis; 0 and 1 if there is none."""
    found = [np.empty(0)]
    for mark in panel.marks:
        if isinstance(mark, CrossLine):
            found += [np.array([mark.at])] if mark.vertical is not vertical else []
        elif not vertical:
            found.append(mark.x)
        else:
            found += [mark.low, mark.high] if isinstance(mark, Band) else [mark.y]
    values = np.concatenate(found)
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)


def _label(value: float, step: float) -> str:
    """Number of a tick, with the digits of its step."""
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if round(step, decimals) != round(step, decimals + 1):
        decimals += 1  # steps of 2.5
    text = f"{value:.{decimals}f}" if decimals <= 4 and abs(value) < 1e6 else f"{value:.3g}"
    return (text.lstrip("-") if float(text) == 0.0 else text).replace("-", "\N{MINUS SIGN}")


def _power(power: int) -> str:
    """Power of ten."""
    return "10" + str(power).translate(SUPERSCRIPTS)


def _draw(panel: ChartPanel, horizontal: _Scale, vertical: _Scale) -> list[str]:
    """SVG elements of a panel."""
    left, right, bottom, top = horizontal.first, horizontal.last, vertical.first, vertical.last
    parts = []
    upright = vertical.ticks(TICK_DISTANCE_PT[1])
    for value, _ in upright:
        at = vertical.place(value)
        parts.append(_path(f"M{left:.2f} {at:.2f}H{right:.2f}", GRID, 0.6))
    frame = f'x="{left:.2f}" y="{top:.2f}" width="{right - left:.2f}" height="{bottom - top:.2f}"'
    curves = [_curve(mark, horizontal, vertical) for mark in panel.marks if isinstance(mark, (Line, Band))]
    # identifiers must be unique in a page with several charts: the hash of the content is
    clip = "clip-" + hashlib.sha256("".join([frame, panel.y.title, *curves]).encode()).hexdigest()[:16]
    within = f' clip-path="url(#{clip})"'
    if curves:
        parts.append(f'<clipPath id="{clip}"><rect {frame}/></clipPath>')
    for mark in panel.marks:
        if isinstance(mark, CrossLine):
            parts += _rule(mark, horizontal, vertical)
        elif isinstance(mark, Line):
            curve = _curve(mark, horizontal, vertical)
            parts.append(_path(curve, mark.color, mark.width, ' stroke-linejoin="round"' + within))
        elif isinstance(mark, Band):
            curve = _curve(mark, horizontal, vertical)
            parts.append(f'<path d="{curve}" fill="{mark.color}" fill-opacity="0.18"{within}/>')
        else:
            tops = np.clip(vertical.places(mark.y), top, bottom)
            for x, y in zip(horizontal.places(mark.x).tolist(), tops.tolist(), strict=True):
                parts.append(_path(f"M{x:.2f} {bottom:.2f}V{y:.2f}", mark.color, 0.8, ' stroke-opacity="0.35"'))
                parts.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="1.8" fill="{mark.color}"/>')
    parts.append(_path(f"M{left:.2f} {top:.2f}V{bottom:.2f}H{right:.2f}", AXIS, 0.8))
    for value, label in upright:
        at = vertical.place(value)
        parts.append(_path(f"M{left:.2f} {at:.2f}h{-TICK_PT:g}", AXIS, 0.8))
        parts.append(_text(left - TICK_PT - 3.0, at + 0.35 * LABEL_PT, label, LABEL_PT, "end"))
    middle = 0.5 * (top + bottom)
    parts.append(_text(11.0, middle, html.escape(panel.y.title), TITLE_PT, "middle", turned=True))
    names = [(float(place), html.escape(name)) for place, name in enumerate(panel.x.names)]
    for value, label in names or horizontal.ticks(TICK_DISTANCE_PT[0]):
        at = horizontal.place(value)
        parts.append(_path(f"M{at:.2f} {bottom:.2f}v{TICK_PT:g}", AXIS, 0.8))
        if names:
            parts.append(_text(at + 2.5, bottom + TICK_PT + 2.0, label, 7.0, "end", turned=True))
        elif panel.x.title:
            parts.append(_text(at, bottom + TICK_PT + LABEL_PT, label, LABEL_PT, "middle"))
    if panel.x.title:
        title = html.escape(panel.x.title)
        parts.append(_text(0.5 * (left + right), bottom + 2.0 * LABEL_PT + 8.0, title, TITLE_PT, "middle"))
    return parts


def _curve(mark: Line | Band, horizontal: _Scale, vertical: _Scale) -> str:
    """Commands of a line, or of the outline of a band."""
    if isinstance(mark, Line):
        return _polyline(horizontal.places(mark.x), vertical.places(mark.y))
    there = _polyline(horizontal.places(mark.x), vertical.places(mark.high))
    back = _polyline(horizontal.places(mark.x[::-1]), vertical.places(mark.low[::-1])).replace("M", "L")
    return f"{there}{back}Z"


def _rule(mark: CrossLine, horizontal: _Scale, vertical: _Scale) -> list[str]:
    """Line across a panel, if it is within."""
    along = horizontal if mark.vertical else vertical
    if not along.contains(mark.at):
        return []
    at, dash = along.place(mark.at), f' stroke-dasharray="{mark.dash}"' if mark.dash else ""
    if mark.vertical:
        return [_path(f"M{at:.2f} {vertical.first:.2f}V{vertical.last:.2f}", mark.color, mark.width, dash)]
    return [_path(f"M{horizontal.first:.2f} {at:.2f}H{horizontal.last:.2f}", mark.color, mark.width, dash)]


def _polyline(x: Array, y: Array) -> str:
    """Commands of a line through points, interrupted at NaN."""
    finite = np.isfinite(x) & np.isfinite(y)
    begins = finite & ~np.append(False, finite[:-1])
    return "".join(
        f"{'M' if begin else 'L'}{a:.1f} {b:.1f}"
        for a, b, begin in zip(x[finite].tolist(), y[finite].tolist(), begins[finite].tolist(), strict=True)
    )


def _path(commands: str, color: str, width: float, more: str = "") -> str:
    return f'<path d="{commands}" stroke="{color}" stroke-width="{width:g}"{more}/>'


def _text(x: float, y: float, label: str, size: float, anchor: str, turned: bool = False) -> str:
    """Text at a place; turned: from below upwards."""
    turn = f' transform="rotate(-90 {x:.2f} {y:.2f})"' if turned else ""
    return (
        f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size:g}" fill="{INK}" text-anchor="{anchor}"{turn}>{label}</text>'
    )
