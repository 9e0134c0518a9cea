# SPDX-License-Identifier: Apache-2.0
"""Plots of Qian et al. from our results: strokes, search, tracking, torques and parameters of each iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.papers.logistic2r.strokes import JOINTS, PAPER, SAMPLE, ControlModel, Strokes, StrokeTrials
from robot_dyn_id.papers.logistic2r.studies import Run
from robot_dyn_id.report.drawing import Curve, Drawing, Panel
from robot_dyn_id.workflow.iteration import Iteration

SHOWN = 3
"""Number of iterations that the paper shows."""

SMALLEST_ERROR = 1e-6
"""Smallest error on a logarithmic axis [rad]."""


def draw_all(run: Run, feasible: Run) -> tuple[Drawing, ...]:
    """Draw tracking and torques of the published strokes from the fitted start, and the parameters of all."""
    trials, iterations = run.trials, run.found.iterations
    shown = iterations[:SHOWN]
    return (
        Drawing(
            "logistic2r_tracking",
            "Tracking of the published strokes, one joint after the other (Figs 9 to 11)",
            tuple(panel for joint in JOINTS for panel in _tracking(trials, shown, joint)),
        ),
        Drawing(
            "logistic2r_torques",
            f"Torques in iteration {SHOWN}: measured, and of what was identified from them (Figs 12 to 14)",
            tuple(_torques(trials, shown[-1], joint) for joint in JOINTS),
        ),
        Drawing(
            "logistic2r_parameters",
            "Parameters after each iteration: published strokes, then feasible ones",
            (
                _parameters(trials, run.theta),
                _parameters(trials, feasible.theta),
                _errors(trials, run.theta, feasible.theta),
            ),
        ),
    )


def draw_strokes(designs: Mapping[str, Strokes]) -> Drawing:
    """Draw angle, velocity and acceleration of one period of each joint's stroke (Figs 2 to 6), by label."""
    channels: list[list[Curve]] = [[], [], []]
    for label, strokes in designs.items():
        for joint in JOINTS:
            t = np.arange(0.0, strokes.of[joint].motion.duration, SAMPLE)
            for curves, values in zip(channels, strokes.of[joint].motion.evaluate(t)[:3], strict=True):
                curves.append(Curve(f"{joint}, {label}", t, values[0]))
    units = ("q [rad]", "dq [rad/s]", "ddq [rad/s^2]")
    panels = tuple(Panel("t [s]", unit, tuple(curves)) for unit, curves in zip(units, channels, strict=True))
    return Drawing("logistic2r_strokes", "Strokes there and back (Figs 2 to 6)", panels)


def draw_search(curves: Sequence[Array]) -> Drawing:
    """Draw the smallest objective of each generation, one array of shape (generations,) per search (Fig 7)."""
    lines = tuple(
        Curve(f"seed {k // 2 + 1}, {'joint1' if k % 2 else 'joint2'}" if k < 2 else "", np.arange(1.0, len(c) + 1.0), c)
        for k, c in enumerate(curves)
    )
    panel = Panel("generation", "condition number with penalties", lines, logarithmic="y")
    return Drawing("logistic2r_search", "Genetic algorithm of the paper, window free (Fig 7)", (panel,))


def draw_validation(validations: Mapping[str, tuple[Array, Array]]) -> Drawing:
    """Draw torques and their errors along the validation motions (Figs 15 to 17).

    Args:
        validations: true torques and errors by title, shape (N, 2) each, sampled at 100 Hz.
    """
    panels = []
    for joint in range(2):
        true = {title.rpartition(", ")[2]: torque[:, joint] for title, (torque, _) in validations.items()}
        errors = [Curve(title, _seconds(error), error[:, joint]) for title, (_, error) in validations.items()]
        panels += [
            Panel("t [s]", f"torque {joint + 1} [N m]", tuple(Curve(k, _seconds(v), v) for k, v in true.items())),
            Panel("t [s]", f"error of torque {joint + 1} [N m]", tuple(errors)),
        ]
    return Drawing("logistic2r_validation", "Torques of other motions (Figs 15 to 17)", tuple(panels))


def _seconds(values: Array) -> Array:
    return SAMPLE * np.arange(len(values), dtype=np.float64)


def _turn(trials: StrokeTrials, iteration: Iteration[ControlModel], joint: str) -> tuple[Array, Array, Array]:
    """Times since the start of a joint's turn, angles and torques, each of shape (N,)."""
    chunk = Chunk.join(list(iteration.trial.recording.chunks([joint])))
    assert chunk.tau is not None
    begin, stop = trials.strokes.turn(joint)
    own = slice(round(begin / SAMPLE), round(stop / SAMPLE))
    return chunk.t[own] - begin, chunk.q[own, 0], chunk.tau[own, 0]


def _tracking(trials: StrokeTrials, shown: Sequence[Iteration[ControlModel]], joint: str) -> tuple[Panel, Panel]:
    curves, errors = [], []
    for number, iteration in enumerate(shown, 1):
        t, q, _ = _turn(trials, iteration, joint)
        designed = trials.strokes.of[joint].motion.evaluate(t)[0][0]
        curves.append(Curve(f"iteration {number}", t, q))
        errors.append(Curve(f"iteration {number}", t, np.maximum(np.abs(q - designed), SMALLEST_ERROR)))
    return (
        Panel("t [s]", f"{joint} [rad]", (*curves, Curve("designed", t, designed))),
        Panel("t [s]", f"|error| of {joint} [rad]", tuple(errors), logarithmic="y"),
    )


def _torques(trials: StrokeTrials, iteration: Iteration[ControlModel], joint: str) -> Panel:
    t, q, tau = _turn(trials, iteration, joint)
    kept, direction = trials.strokes.of[joint].samples(t)
    curves = [Curve("measured", t, tau)]
    if iteration.parameters is not None:
        rows = trials.strokes.arm.rows(joint, q[kept], *trials.strokes.of[joint].rates(q[kept], direction))
        estimated = np.full(len(t), np.nan)
        estimated[kept] = rows @ iteration.parameters.values
        curves.append(Curve("estimated, in the windows", t, estimated))
    return Panel("t [s]", f"torque of {joint} [N m]", tuple(curves))


def _parameters(trials: StrokeTrials, theta: Sequence[Array]) -> Panel:
    numbers = np.arange(1.0, len(theta) + 1.0)
    names = np.array(trials.strokes.arm.base.names)[PAPER]
    curves = [Curve(name, numbers, np.array([values[k] for values in theta])) for k, name in enumerate(names)]
    return Panel("iteration", "kg m^2, kg m", tuple(curves))


def _errors(trials: StrokeTrials, *runs: Sequence[Array]) -> Panel:
    truth, curves = trials.theta[PAPER], []
    for label, theta in zip(("published strokes", "feasible strokes"), runs, strict=True):
        errors = np.array([np.abs(values - truth).max() for values in theta])
        curves.append(Curve(label, np.arange(1.0, len(errors) + 1.0), errors))
    return Panel("iteration", "greatest error", tuple(curves), logarithmic="y")
