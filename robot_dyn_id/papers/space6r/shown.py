# SPDX-License-Identifier: Apache-2.0
"""Plots and notes of the reproduction of the space manipulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.papers.space6r.trials import RATE, TRUTH, Trials, compute_error
from robot_dyn_id.report.drawing import Curve, Drawing, Panel

SHOWN = "map_constants"
"""Method whose prediction is drawn."""

REPORTED = "separable, weighted"
"""Method whose parameters are listed: no prior has a share in them."""


def list_notes(trials: Trials) -> tuple[str, ...]:
    """Friction of every joint with standard deviations, and the unidentifiable columns."""
    trial, found = trials.trials[0], trials.outcomes[REPORTED][0].estimate
    lines = ["cost: half of the sum of squared residuals, all rows alike; time: of the CPU; medians of the seeds"]
    if found is not None:
        sigma = found.standard_deviations
        known = int(np.count_nonzero(np.isfinite(sigma))) + sum(
            bool(np.isfinite(constant.standard_deviation)) for constant in found.constants
        )
        lines.append(
            f"{REPORTED}, noise x {trials.level:g}, first seed: {known} parameters with a standard deviation, "
            f"fb and vb among them"
        )
        places = {name: number for number, name in enumerate(trial.base.names)}
        for joint, constant in enumerate(found.constants, start=1):
            fc, rise = places[f"fci{joint}"], places[f"dfi{joint}"]
            both = sigma[fc] ** 2 + sigma[rise] ** 2 + 2.0 * found.covariance[fc, rise]
            values = found.values[fc], sigma[fc], found.values[fc] + found.values[rise], np.sqrt(max(both, 0.0))
            lines.append(
                "joint {}: fc {:.3f} +- {:.3f}, fb {:.3f} +- {:.3f} N m, vb {:.4f} +- {:.4f} rad/s".format(
                    joint, *values, constant.value, constant.standard_deviation
                )
            )
    lines.append(f"no torque depends on {', '.join(trial.base.unidentifiable)}")
    lines.append(f"only in combinations: {', '.join(trial.base.combined)}")
    return tuple(lines)


def draw_all(levels: Sequence[Trials]) -> tuple[Drawing, ...]:
    """Motion and torques of the validation (Fig. 4 and 5), courses of the searches, and errors by method (Fig. 2)."""
    return _motion(levels[0]), _torques(levels[0]), _courses(levels), _errors(levels)


def _motion(trials: Trials) -> Drawing:
    other = trials.trials[0].conditions.other
    t = np.arange(len(other)) / trials.trials[0].conditions.rate
    named = (("angle [rad]", other.q), ("velocity [rad/s]", other.dq), ("acceleration [rad/s^2]", other.ddq))
    panels = tuple(
        Panel("time [s]", name, tuple(Curve(f"joint {joint + 1}", t, row) for joint, row in enumerate(rows)))
        for name, rows in named
    )
    return Drawing("space6r_motion", "Motion of the validation", panels)


def _torques(trials: Trials) -> Drawing:
    trial, predicted = trials.trials[0], trials.outcomes[SHOWN][0].predicted
    t = np.arange(predicted.shape[1]) / RATE
    panels = tuple(
        Panel(
            "time [s]",
            f"joint {joint + 1} [N m]",
            (
                Curve("measured" if joint == 0 else "", t, trial.measured[joint]),
                Curve("predicted" if joint == 0 else "", t, predicted[joint]),
            ),
        )
        for joint in range(len(predicted))
    )
    return Drawing("space6r_torques", f"Torque along another motion, {SHOWN}", panels)


def _courses(levels: Sequence[Trials]) -> Drawing:
    """Cost over the least cost of all, step by step, of the first seed."""
    panels = []
    for trials in levels:
        found = {name: outcomes[0] for name, outcomes in trials.outcomes.items()}
        searches = {
            name: outcome.course
            for name, outcome in found.items()
            if len(outcome.course) > 1 and "weighted" not in name and not name.startswith("kalman")
        }
        least = min((float(costs.min()) for costs in searches.values()), default=1.0)
        curves = tuple(
            Curve(name, np.arange(1.0, 1.0 + len(costs), dtype=np.float64), costs / least)
            for name, costs in reversed(searches.items())  # pso_lm begins as pso does: that is drawn above it
        )
        panels.append(Panel(f"step, noise x {trials.level:g}", "cost over the least", curves, logarithmic="xy"))
    return Drawing("space6r_courses", "Cost of the searches", tuple(panels))


def _errors(levels: Sequence[Trials]) -> Drawing:
    panels = []
    for trials in levels:
        names = [name for name in trials.outcomes if name != TRUTH]
        errors = [trials.spread(name, compute_error).values for name in names]
        x = np.repeat(np.arange(len(names)), [len(values) for values in errors]).astype(np.float64)
        curve = Curve("", x, np.concatenate(errors), "points")
        ticks = tuple(name.replace(", ", "\n").replace("_", "_\n") for name in names)
        panels.append(Panel(f"noise x {trials.level:g}", "error of the torque [N m]", (curve,), "y", ticks))
    return Drawing("space6r_errors", "Error of the torque along another motion, every seed", tuple(panels))
