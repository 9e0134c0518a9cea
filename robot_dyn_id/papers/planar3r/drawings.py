# SPDX-License-Identifier: Apache-2.0
"""Counterparts of the paper's plots: torques, errors, accelerations, condition numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.papers.planar3r.experiment import EstimateDraws, SimulatedExperiment
from robot_dyn_id.report.drawing import Curve, Drawing, Panel

MOST_POINTS = 1000
"""Largest number of points of a curve."""


def draw_runs(experiment: SimulatedExperiment, runs: Sequence[Chunk]) -> list[Drawing]:
    """Draw the measured and the filtered torques of all joints in each run (Fig. 5 to 7)."""
    names = experiment.model.joint_names
    trials = experiment.trials(experiment.measured(runs, 0))
    raw: list[list[Array]] = [[] for _ in runs]
    smooth: list[list[Array]] = [[] for _ in runs]
    for window, filtered in zip(trials.windows(), trials, strict=True):
        assert window.tau is not None and filtered.tau is not None
        raw[window.trial].append(np.vstack([window.t, window.tau]))
        smooth[filtered.trial].append(np.vstack([filtered.t, filtered.tau])[:, filtered.own])
    drawings = []
    for number, (before, after) in enumerate(zip(raw, smooth, strict=True)):
        panels = []
        for joint, name in enumerate(names):
            curves = []
            for label, parts in (("measured", before), ("filtered", after)):
                values = np.concatenate(parts, axis=1)
                step = max(1, values.shape[1] // MOST_POINTS)
                curves.append(Curve(label, values[0, ::step], values[1 + joint, ::step]))
            panels.append(Panel("time [s]", f"torque of {name} [N m]", tuple(curves)))
        moving = names[len(names) - 1 - number]
        drawings.append(Drawing(f"planar3r_run{number + 1}", f"Torques while {moving} moves", tuple(panels)))
    return drawings


def draw_torques(found: Identification) -> Drawing:
    """Draw the torques of a held-out motion with box plots of their errors."""
    trace, joints = found.evaluation.trace, found.parameters.robot.joint_names
    panels = [
        Panel(
            "time [s]",
            f"torque of {name} [N m]",
            (Curve("measured", trace.t, measured), Curve("estimated", trace.t, predicted)),
        )
        for name, measured, predicted in zip(joints, trace.measured, trace.predicted, strict=True)
    ]
    error = trace.predicted - trace.measured
    share = error / np.sqrt(np.mean(trace.measured**2, axis=1, keepdims=True))
    groups = np.repeat(np.arange(len(joints), dtype=np.float64), share.shape[1])
    boxes = Panel("", "error / RMS of the torque", (Curve("", groups, share.ravel(), "boxes"),), ticks=joints)
    return Drawing("planar3r_torques", "Torques of another motion, three runs of the paper", (*panels, boxes))


def draw_errors(names: Sequence[str], found: Mapping[str, EstimateDraws]) -> Drawing:
    """Draw the errors of every parameter over the draws, in standard deviations reported by the first experiment."""
    unit = np.median(next(iter(found.values())).sigma, axis=0)
    panels = []
    for name, one in found.items():
        groups = np.tile(np.arange(len(names), dtype=np.float64), len(one.values))
        boxes = Curve("", groups, ((one.values - one.truth) / unit).ravel(), "boxes")
        panels.append(Panel("", f"error, {name}", (boxes,), ticks=tuple(names)))
    title = f"Errors of the parameters in standard deviations reported for {next(iter(found))}"
    return Drawing("planar3r_errors", title, tuple(panels))


def draw_accelerations(t: Array, true: Array, found: Mapping[str, Array]) -> Drawing:
    """Draw accelerations by forward dynamics of identified sets; t has shape (N,), the others (N, joints)."""
    step = max(1, len(t) // MOST_POINTS)
    panels = tuple(
        Panel(
            "time [s]",
            f"joint {joint + 1} [rad/s^2]",
            tuple(Curve(name, t[::step], values[::step, joint]) for name, values in {"true": true, **found}.items()),
        )
        for joint in range(true.shape[1])
    )
    return Drawing("planar3r_accelerations", "Forward dynamics from the base parameters, another motion", panels)


def draw_conditions(curves: Sequence[Curve]) -> Drawing:
    """Draw condition numbers over frequency."""
    panel = Panel("frequency [rad/s]", "condition number, raw", tuple(curves), logarithmic="xy")
    return Drawing("planar3r_conditions", "Sines of one joint in the posture 0", (panel,))
