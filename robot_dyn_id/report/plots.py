# SPDX-License-Identifier: Apache-2.0
"""Plots of the report, as SVG text to be put into a page. Names of joints stay out of them: the page escapes text."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.identification.evaluation import Evaluation
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.chart import AXIS, GRID, Axis, Band, ChartPanel, CrossLine, Line, Stems, chart
from robot_dyn_id.report.friction import FrictionCurve, ReversalCurve
from robot_dyn_id.report.margins import LimitRow
from robot_dyn_id.signals.torque_shares import WEAK_TORQUE_SHARE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure  # noqa: PLC0414 (for annotations elsewhere)

MEASURED, PREDICTED, ERROR, RAW = "#243b53", "#e8590c", "#1c7ed6", "#c9d3dd"
"""Colors of the curves, the legend's too."""

STATUS = {"good": "#2b8a3e", "weak": "#e67700", "not excited": "#c92a2a"}
"""Colors of the parameters."""

MARGIN = {"left": 0.105, "right": 0.99, "top": 0.97}
"""Frame of a wide plot; fixed, as measuring every label takes half of the time."""


def torque_plot(evaluation: Evaluation, joint: int) -> str:
    """Measured and predicted effort of a joint over the held-out data, with their difference below."""
    curves, unit = _TorqueCurves.from_evaluation(evaluation, joint), evaluation.held_out.joints[joint].unit
    starts = tuple(CrossLine(start, vertical=True, width=0.6, dash="1 2") for start in curves.starts.tolist())
    time = curves.time
    above = ChartPanel(
        (
            Line(time, curves.raw, RAW, 0.6),
            Line(time, curves.measured, MEASURED, 1.3),
            Line(time, curves.predicted, PREDICTED, 1.1),
            *starts,
        ),
        y=Axis(f"effort [{unit}]", curves.limits),
        share=3.0,
    )
    below = ChartPanel(
        (CrossLine(0.0), Line(time, curves.predicted - curves.measured, ERROR, 0.8), *starts),
        x=Axis(curves.time_label),
        y=Axis(f"error [{unit}]"),
    )
    return chart(475.0, 209.0, (above, below))


def torque_figure(evaluation: Evaluation) -> Figure:
    """Measured and predicted effort of every joint over the held-out data, each with its error below."""
    joints = evaluation.held_out.joints
    figure, panels = axes(9.0, 2.4 * len(joints), 2 * len(joints), sharex=True, height_ratios=(3, 1) * len(joints))
    for number, joint in enumerate(joints):
        pair = panels[2 * number : 2 * number + 2]
        _draw_torque(pair, evaluation, number)
        pair[0].set_title(joint.name.replace("$", r"\$"), loc="left", fontsize=9)
        if number + 1 < len(joints):
            pair[1].set_xlabel("")
    # above the panel: inside it the legend covers values
    names = ["measured", "measured, filtered", "predicted"]
    panels[0].legend(names, loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=7.5, ncols=3)
    figure.tight_layout()
    return figure


@dataclass(frozen=True)
class _TorqueCurves:
    """Efforts of a joint over the held-out data, as they are drawn.

    Attributes:
        time: horizontal axis [s], NaN at interruptions, shape (K,).
        starts: where stretches after an interruption start [s].
        raw: measured effort, shape (K,).
        measured: measured effort, filtered, shape (K,).
        predicted: predicted effort, shape (K,).
        limits: limits of the vertical axis, which outliers of the measured effort exceed.
    """

    time: Array
    starts: Array
    raw: Array
    measured: Array
    predicted: Array
    limits: tuple[float, float]

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, joint: int) -> _TorqueCurves:
        """Curves of a joint."""
        trace = evaluation.trace
        time, breaks, starts = timeline(trace.t)
        raw, measured, predicted = (
            np.insert(values[joint], breaks, np.nan) for values in (trace.raw, trace.measured, trace.predicted)
        )
        shown = np.concatenate(
            [trace.measured[joint], trace.predicted[joint], np.percentile(trace.raw[joint], (0.5, 99.5))]
        )
        room = 0.05 * float(np.ptp(shown)) or 1.0
        limits = (float(shown.min()) - room, float(shown.max()) + room)
        return cls(time, starts, raw, measured, predicted, limits)

    @property
    def time_label(self) -> str:
        """Title of the horizontal axis."""
        return "time [s], gaps cut out" if len(self.starts) else "time [s]"


def _draw_torque(panels: Sequence[Any], evaluation: Evaluation, joint: int) -> None:
    """Draw a joint's efforts into the first and their difference into the second of two axes."""
    above, below = panels
    curves, unit = _TorqueCurves.from_evaluation(evaluation, joint), evaluation.held_out.joints[joint].unit
    time = curves.time
    above.plot(time, curves.raw, color=RAW, lw=0.6)
    above.plot(time, curves.measured, color=MEASURED, lw=1.3)
    above.plot(time, curves.predicted, color=PREDICTED, lw=1.1)
    above.set_ylim(*curves.limits)
    below.axhline(0.0, color=MEASURED, lw=0.5)
    below.plot(time, curves.predicted - curves.measured, color=ERROR, lw=0.8)
    for axis, label in ((above, "effort"), (below, "error")):
        axis.set_ylabel(f"{label} [{unit}]")
        axis.yaxis.set_label_coords(-0.085, 0.5)
        for start in curves.starts:
            axis.axvline(start, color=MEASURED, lw=0.6, ls=":")
    below.margins(x=0.0)
    below.set_xlabel(curves.time_label)


def timeline(t: Array) -> tuple[Array, Integers, Array]:
    """Stamps as an axis for plots: from 0, with the interruptions and changes of trial cut out.

    Returns:
        Times with a NaN at each interruption; where to insert NaN into values for that; when each stretch after an
        interruption starts.
    """
    steps = np.diff(t)
    usual = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 1.0
    broken = (steps <= 0.0) | (steps > 5.0 * usual)
    # an interruption is drawn as wide as a hundredth of the whole
    gap = max(usual, 0.01 * float(steps[~broken].sum()))
    time = np.concatenate([[0.0], np.cumsum(np.where(broken, gap, steps))])
    breaks = np.asarray(np.flatnonzero(broken) + 1, dtype=np.int64)
    return np.asarray(np.insert(time, breaks, np.nan)), breaks, time[breaks]


def share_plot(parameters: ParameterSet, shares: Array) -> str:
    """Torque of one standard deviation of every base parameter; those that are not identifiable are at the top edge.

    Args:
        parameters: the parameter set.
        shares: from `torque_shares`, shape (p,).
    """
    shown = np.clip(shares, 1e-4, 1e2)
    status = np.array(parameters.status)
    stems = [
        Stems(np.flatnonzero(status == word).astype(np.float64), shown[status == word], color)
        for word, color in STATUS.items()
    ]
    limits = (0.6 * max(1e-4, shown.min(initial=1.0)), 1.6 * max(1.0, shown.max(initial=1.0)))
    panel = ChartPanel(
        (*stems, CrossLine(WEAK_TORQUE_SHARE, width=0.7, dash="3 2")),
        x=Axis(limits=(-0.8, len(shown) - 0.2), names=tuple(parameters.names)),
        y=Axis("torque of one sigma", limits, logarithmic=True),
    )
    return chart(max(691.0, 9.4 * len(shown) + 72.0), 194.0, (panel,), bottom=37.0)


def friction_plot(curve: FrictionCurve) -> str:
    """Friction and offset of a joint over its trained speeds, with a band of two sigma."""
    panel = ChartPanel(
        (CrossLine(0.0), CrossLine(0.0, vertical=True), *_effort_marks(curve.speed, curve.effort, curve.sigma)),
        x=Axis(f"speed [{curve.speed_unit}]", (float(curve.speed.min()), float(curve.speed.max()))),
        y=Axis(f"effort [{curve.unit}]"),
    )
    return chart(288.0, 173.0, (panel,))


def reversal_plot(curve: ReversalCurve) -> str:
    """Presliding friction of a joint over the displacement after a reversal, with a band of two sigma."""
    panel = ChartPanel(
        (CrossLine(0.0), *_effort_marks(curve.displacement, curve.effort, curve.sigma)),
        x=Axis(f"displacement after a reversal [{curve.displacement_unit}]", logarithmic=True),
        y=Axis(f"presliding [{curve.unit}]"),
    )
    return chart(288.0, 173.0, (panel,))


def _effort_marks(place: Array, effort: Array, sigma: Array | None) -> tuple[Band | Line, ...]:
    """An effort and its band of two sigma."""
    line = Line(place, effort, PREDICTED, 1.5)
    if sigma is None:
        return (line,)
    return (Band(place, effort - 2.0 * sigma, effort + 2.0 * sigma, PREDICTED), line)


def limit_plot(t: Array, rows: Sequence[LimitRow], shown: Integers) -> str:
    """Quantities of a joint over time, one below the other, with the limits that are near.

    Args:
        t: times [s], shape (N,).
        rows: from `margins.limit_rows`.
        shown: numbers of the samples that are drawn.
    """
    figure, panels = axes(6.6, 0.45 + 1.15 * len(rows), len(rows), sharex=True)
    figure.subplots_adjust(left=MARGIN["left"], right=MARGIN["right"], top=0.985, bottom=0.42 / figure.get_figheight())
    for axis, row in zip(panels, rows, strict=True):
        axis.plot(t[shown], row.values[shown], color=PREDICTED, lw=1.2)
        room = 1.3 * max(row.highest - row.lowest, 1e-9)
        for limit in (row.lower, row.upper):
            if row.lowest - room <= limit <= row.highest + room:
                axis.axhline(limit, color=STATUS["not excited"], lw=0.9, ls="--")
        axis.set_ylabel(f"{row.quantity[:3]}. [{row.unit}]")
        axis.yaxis.set_label_coords(-0.085, 0.5)
        axis.margins(x=0.0)
    panels[-1].set_xlabel("time [s]")
    return svg(figure)


def axes(width: float, height: float, rows: int = 1, **options: Any) -> tuple[Figure, list[Any]]:
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


def svg(figure: Any) -> str:
    """A figure as text to be put into a page or a file."""
    import matplotlib

    text = io.StringIO()
    # text stays text, and the same input gives the same bytes
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "robot_dyn_id"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # nothing refers to them, and a page must not hold one twice
    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
