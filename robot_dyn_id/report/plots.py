# SPDX-License-Identifier: Apache-2.0
"""Plots of the report. Names of joints stay out of them where the page has them as a caption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.identification.validation.explanation.excitation import JointExcitation
from robot_dyn_id.identification.validation.explanation.joints import JointExplanation, JointSpectrum
from robot_dyn_id.report.friction import FrictionCurve, ReversalCurve
from robot_dyn_id.report.interactive import Plot, PlotAxis, PlotRule, Series, Table, decimate_curves
from robot_dyn_id.report.margins import LimitRow

MAX_PLOTTED_POINTS = 4000
"""Largest number of places of a plotted curve over time."""

MAX_PAGE_POINTS = 28_000
"""Largest number of places of all joints' curves over time, so that the page remains below 3 MB."""

TIME_GROUP = "time"
"""Group of the plots that share the time that they show."""

PART_LOOKS = {
    "gravity": ("gravity", "green"),
    "inertia": ("inertia", "blue"),
    "coriolis": ("Coriolis and centrifugal", "purple"),
    "friction": ("friction", "pink"),
    "rest": ("rest", "olive"),
}
"""Label and color of the causes of the predicted effort."""

HIDDEN_OUTLIERS = (0.5, 99.5)
"""Percentiles of the effort as recorded between which the vertical axis makes room for it."""


@dataclass(frozen=True)
class DisplayTime:
    """Stamps of held-out data as an axis of plots that curves are brought to.

    Attributes:
        time: from 0, interruptions cut out, ascending, shape (K,).
        breaks: where NaN is inserted into curves, so that no line crosses an interruption.
        starts: where each stretch after an interruption starts [s].
        buckets: number of buckets that curves are decimated to.
    """

    time: Array
    breaks: Integers
    starts: Array
    buckets: int

    @classmethod
    def from_stamps(cls, t: Array, joints: int) -> DisplayTime:
        """Axis of stamps that may jump, on a page with curves of that number of joints."""
        time, breaks, starts = make_timeline(t)
        places = np.flatnonzero(np.isnan(time))
        time[places] = 0.5 * (time[places - 1] + time[places + 1])
        return cls(time, breaks, starts, min(MAX_PLOTTED_POINTS, MAX_PAGE_POINTS // joints) // 2)

    @property
    def decimated(self) -> bool:
        """Whether curves are decimated."""
        return len(self.time) > 2 * self.buckets

    @property
    def label(self) -> str:
        """Title of the axis."""
        return "time [s], gaps cut out" if len(self.starts) else "time [s]"

    def table(self, series: Sequence[Series]) -> Table:
        """Curves over time, decimated if there are too many samples for a page."""
        curves = [
            edge
            for one in series
            for edge in ((one.y if one.extremes is None else one.extremes,) if one.high is None else (one.y, one.high))
        ]
        time, found = decimate_curves(
            self.time,
            [np.insert(curve, self.breaks, np.nan, axis=-1) for curve in curves],
            self.buckets,
            self.breaks + np.arange(len(self.breaks)),
        )
        edges = iter(found)
        return Table(
            time,
            tuple(
                replace(one, y=next(edges), high=None if one.high is None else next(edges), extremes=None)
                for one in series
            ),
        )

    def plot(self, title: str, label: str, series: Sequence[Series], height: int = 220) -> Plot:
        """Curves over time, which share zoom and cursor with all others."""
        rules = tuple(PlotRule(start, vertical=True, color="pale") for start in self.starts.tolist())
        return Plot(
            title, PlotAxis(self.label), PlotAxis(label), (self.table(series),), TIME_GROUP, rules, height=height
        )


def make_timeline(t: Array) -> tuple[Array, Integers, Array]:
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


def plot_torque(axis: DisplayTime, joint: JointExplanation) -> Plot:
    """Measured and predicted effort of a joint over the held-out data, with the 95 % band of the prediction."""
    series = joint.series
    low, high = np.percentile(series.raw, HIDDEN_OUTLIERS)
    curves = [
        Series("as recorded", series.raw, "pale", width=1.0, scaled=False, extremes=series.extremes.get("raw")),
        Series("measured, low-passed", series.measured, "ink", width=1.6, extremes=series.extremes.get("measured")),
        Series("predicted", series.predicted, "orange", width=1.3, extremes=series.extremes.get("predicted")),
    ]
    if np.isfinite(series.half_width).any():
        least, most = series.extremes.get("predicted", (series.predicted, series.predicted))
        edges = least - series.half_width, most + series.half_width
        curves.insert(0, Series("95 % band", edges[0], "orange", "band", high=edges[1]))
    plot = axis.plot("Measured and predicted effort over time", f"effort [{joint.unit}]", curves)
    # spikes of the recorded effort are cut by the frame, instead of the curves pressed together by them
    return replace(plot, y=replace(plot.y, room=(float(low), float(high))))


def plot_residual(axis: DisplayTime, joint: JointExplanation) -> Plot:
    """Measured minus predicted effort of a joint over the held-out data."""
    series = joint.series
    curves = [
        Series("measured minus predicted", series.residual, "blue", width=1.0, extremes=series.extremes.get("residual"))
    ]
    return axis.plot("Residual over time", f"residual [{joint.unit}]", curves, height=160)


def plot_parts(axis: DisplayTime, joint: JointExplanation) -> Plot:
    """Predicted effort of a joint by cause over the held-out data."""
    curves = [
        Series(label, getattr(joint.series, name), color, width=1.3) for name, (label, color) in PART_LOOKS.items()
    ]
    return axis.plot("Predicted effort by cause over time", f"effort [{joint.unit}]", curves, height=368)


def plot_scatter(joint: JointExplanation, over: Literal["speed", "position"]) -> Plot:
    """Residual of a joint over its speed or position."""
    unit = joint.position_unit + ("/s" if over == "speed" else "")
    return Plot(
        f"Residual over {over}",
        PlotAxis(f"{over} [{unit}]"),
        PlotAxis(f"residual [{joint.unit}]"),
        (_points(getattr(joint.scatter, over), Series("residual", joint.scatter.residual, "blue", "points")),),
        rules=(PlotRule(0.0),),
        legend=False,
    )


def plot_spectrum(unit: str, spectrum: JointSpectrum) -> Plot:
    """Amplitude densities of the recorded effort of a joint and of its residual."""
    positive = spectrum.frequency > 0.0
    curves = (
        Series("measured", spectrum.measured[positive], "ink"),
        Series("residual", spectrum.residual[positive], "blue"),
    )
    return Plot(
        "Amplitude density over frequency",
        PlotAxis("frequency [Hz]"),
        PlotAxis(f"density [{unit}/√Hz]", logarithmic=True),
        (Table(spectrum.frequency[positive], curves),),
        "frequency",
        (PlotRule(spectrum.cutoff, vertical=True, color="bad", label="low-pass"),),
    )


def plot_friction(curve: FrictionCurve, joint: JointExplanation) -> Plot:
    """Friction and offset of a joint over its speeds: data, identified with a band of two sigma, and the URDF's."""
    tables = [
        _points(joint.scatter.speed, Series("measured less other causes", joint.scatter.friction, "soft", "points")),
        Table(curve.speed, tuple(plot_effort_series("identified", curve.effort, curve.sigma, "orange"))),
    ]
    if joint.friction_urdf is not None:
        nominal = joint.friction_urdf.damping * curve.speed + joint.friction_urdf.friction * np.sign(curve.speed)
        tables.append(Table(curve.speed, (Series("URDF", nominal, "green", dash=(6.0, 4.0)),)))
    return Plot(
        "Friction over speed",
        PlotAxis(f"speed [{curve.speed_unit}]"),
        PlotAxis(f"effort [{curve.unit}]"),
        tuple(tables),
        rules=(PlotRule(0.0), PlotRule(0.0, vertical=True)),
    )


def plot_coverage(joint: JointExplanation, excitation: JointExcitation) -> Plot:
    """Speeds of a joint over its positions, with the limits of both in the URDF."""
    points = Series("samples", joint.scatter.speed, "blue", "points")
    rules = [PlotRule(float(end), vertical=True, color="bad") for end in excitation.position_limits]
    rules += [PlotRule(side * excitation.speed_limit, color="bad") for side in (-1.0, 1.0)]
    ends = (*excitation.position_limits.tolist(), *excitation.trained_positions.tolist())
    known = [end for end in ends if np.isfinite(end)]
    room = 0.03 * (max(known) - min(known)) or 1.0
    return Plot(
        "Speed over position",
        PlotAxis(f"position [{excitation.unit}]", (min(known) - room, max(known) + room)),
        PlotAxis(f"speed [{excitation.unit}/s]"),
        (_points(joint.scatter.position, points),),
        rules=tuple(rules),
        height=180,
        legend=False,
    )


def _points(places: Array, series: Series) -> Table:
    order = np.argsort(places, kind="stable")
    return Table(places[order], (replace(series, y=series.y[order]),))


def plot_reversal(curve: ReversalCurve) -> Plot:
    """Presliding friction of a joint over the displacement after a reversal, with a band of two sigma."""
    return Plot(
        "Presliding friction over the displacement after a reversal",
        PlotAxis(f"displacement after a reversal [{curve.displacement_unit}]", logarithmic=True),
        PlotAxis(f"presliding [{curve.unit}]"),
        (Table(curve.displacement, tuple(plot_effort_series("identified", curve.effort, curve.sigma, "orange"))),),
        rules=(PlotRule(0.0),),
    )


def plot_effort_series(label: str, effort: Array, sigma: Array | None, color: str) -> list[Series]:
    """An effort, over its band of two sigma where there is one."""
    line = Series(label, effort, color, width=1.8)
    if sigma is None:
        return [line]
    return [Series("", effort - 2.0 * sigma, color, "band", high=effort + 2.0 * sigma), line]


def limit_plot(t: Array, row: LimitRow, shown: Integers) -> Plot:
    """A quantity of a joint over time, with the limits that are near.

    Args:
        t: times [s], shape (N,).
        row: from `margins.limit_rows`.
        shown: numbers of the samples that are drawn.
    """
    room = 1.3 * max(row.highest - row.lowest, 1e-9)
    near = [limit for limit in (row.lower, row.upper) if row.lowest - room <= limit <= row.highest + room]
    ends = (min([row.lowest, *near]), max([row.highest, *near]))
    margin = 0.06 * (ends[1] - ends[0]) or 1.0
    return Plot(
        f"{row.quantity} of {row.joint} over time",
        PlotAxis("time [s]"),
        PlotAxis(f"{row.quantity[:3]}. [{row.unit}]", (ends[0] - margin, ends[1] + margin)),
        (Table(t[shown], (Series(row.quantity, row.values[shown], "blue", width=1.6),)),),
        TIME_GROUP,
        tuple(PlotRule(limit, color="bad", label="limit") for limit in near),
        height=130,
        legend=False,
    )
