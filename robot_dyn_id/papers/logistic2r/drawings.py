# SPDX-License-Identifier: Apache-2.0
"""Plots of Qian et al. from our results: tracking and torques of each iteration, parameters over iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.estimators.stepwise import StepwiseSolution
from robot_dyn_id.identification.iteration import Iteration
from robot_dyn_id.papers.logistic2r.strokes import JOINTS, PAPER, SAMPLE, StrokeTrials
from robot_dyn_id.report.drawing import Curve, Drawing, Panel

SHOWN = 3
"""Number of iterations that the paper shows."""

SMALLEST_ERROR = 1e-6
"""Smallest error on a logarithmic axis [rad]."""


def drawings(
    trials: StrokeTrials, iterations: Sequence[Iteration[StepwiseSolution]], feasible: Sequence[Array]
) -> tuple[Drawing, ...]:
    """Draw the published strokes, and the parameters of the feasible ones, (6,) after each iteration."""
    shown = iterations[:SHOWN]
    theta = [one.parameters.values[PAPER] for one in iterations if one.parameters is not None]
    return (
        Drawing(
            "logistic2r_tracking",
            "Tracking of the published strokes, one joint after the other",
            tuple(panel for joint in JOINTS for panel in _tracking(trials, shown, joint)),
        ),
        Drawing(
            "logistic2r_torques",
            f"Torques in iteration {SHOWN}: measured, and of what was identified from them",
            tuple(_torques(trials, shown[-1], joint) for joint in JOINTS),
        ),
        Drawing(
            "logistic2r_parameters",
            "Parameters after each iteration: published strokes, then feasible ones",
            (_parameters(trials, theta), _parameters(trials, feasible), _errors(trials, theta, feasible)),
        ),
    )


def _turn(trials: StrokeTrials, iteration: Iteration[StepwiseSolution], joint: str) -> tuple[Array, Array, Array]:
    """Times since the start of a joint's turn, angles and torques, each of shape (N,)."""
    chunk = Chunk.join(list(iteration.trial.recording.chunks([joint])))
    assert chunk.tau is not None
    begin, stop = trials.strokes.turn(joint)
    own = slice(round(begin / SAMPLE), round(stop / SAMPLE))
    return chunk.t[own] - begin, chunk.q[own, 0], chunk.tau[own, 0]


def _tracking(trials: StrokeTrials, shown: Sequence[Iteration[StepwiseSolution]], joint: str) -> tuple[Panel, Panel]:
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


def _torques(trials: StrokeTrials, iteration: Iteration[StepwiseSolution], joint: str) -> Panel:
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
