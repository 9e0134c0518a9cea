# SPDX-License-Identifier: Apache-2.0
"""Efforts as a figure for notebooks and scripts; only here and in drawings of papers matplotlib draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robot_dyn_id.errors import UsageError
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.report.plots import HIDDEN_OUTLIERS, make_timeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure  # noqa: PLC0414 (for annotations elsewhere)

MEASURED, PREDICTED, ERROR, RAW = "#1f3347", "#d9480f", "#1971c2", "#b3c1cf"
"""Colors of the curves."""


def draw_torque_figure(evaluation: Evaluation) -> Figure:
    """Measured and predicted effort of every joint over the held-out data, each with its residual below.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("figures need matplotlib: pip install 'robot-dyn-id[plot]'") from None

    joints, trace = evaluation.held_out.joints, evaluation.trace
    time, breaks, starts = make_timeline(trace.t)
    figure = Figure(figsize=(9.0, 2.4 * len(joints)), layout="constrained")
    panels = figure.subplots(2 * len(joints), 1, sharex=True, height_ratios=(3, 1) * len(joints))
    for number, joint in enumerate(joints):
        above, below = panels[2 * number : 2 * number + 2]
        raw, measured, predicted = (
            np.insert(values[number], breaks, np.nan) for values in (trace.raw, trace.measured, trace.predicted)
        )
        above.plot(time, raw, color=RAW, lw=0.6, label="measured")
        above.plot(time, measured, color=MEASURED, lw=1.3, label="measured, filtered")
        above.plot(time, predicted, color=PREDICTED, lw=1.1, label="predicted")
        # spikes of the measured effort are cut by the frame
        ends = np.concatenate([measured, predicted, np.percentile(trace.raw[number], HIDDEN_OUTLIERS)])
        above.set_ylim(np.nanmin(ends), np.nanmax(ends))
        above.set_title(joint.name.replace("$", r"\$"), loc="left", fontsize=9)
        below.axhline(0.0, color=MEASURED, lw=0.5)
        below.plot(time, measured - predicted, color=ERROR, lw=0.8)
        for axis, label in ((above, "effort"), (below, "residual")):
            axis.set_ylabel(f"{label} [{joint.unit}]")
            axis.spines[["top", "right"]].set_visible(False)
            for start in starts:
                axis.axvline(start, color=MEASURED, lw=0.6, ls=":")
    # above the panel: inside it the legend covers values
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=7.5, ncols=3)
    panels[-1].margins(x=0.0)
    panels[-1].set_xlabel("time [s], gaps cut out" if len(starts) else "time [s]")
    return figure
