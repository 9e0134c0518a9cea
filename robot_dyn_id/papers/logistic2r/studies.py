# SPDX-License-Identifier: Apache-2.0
"""Repeated strokes of Qian et al.: start by a rule, arms that differ from their URDF, and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.estimators.stepwise import StepwiseSolution
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.identification.iteration import IterationResult, iterate
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.papers.figures import Extent, Figure
from robot_dyn_id.papers.logistic2r.strokes import PAPER, SAMPLE, Strokes, StrokeTrials
from robot_dyn_id.progress import Progress
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulated_recording

START = 0.1
"""Our rule for the start: largest gravity sag of a joint as a fraction of its stroke."""

WRONG = 0.5
"""Largest relative deviation of the true parameters from those of the URDF."""

ITERATIONS = 6
"""Largest number of iterations; the last one may be the worse one that ends the repetition."""

BEST = f"best of {ITERATIONS} iterations"
"""Label of the iteration with the smallest tracking error, which is the result."""

NOISES = ((1e-4, 0.05), (1e-3, 0.1))
"""Noise of angles [rad] (ten times as much per second for velocities) and of torques [N m]; the paper has none."""

QUIET = Sensors(np.zeros(1), 0.0, 0.0)


@dataclass(frozen=True)
class Run:
    """Result of repeated strokes.

    Attributes:
        trials: simulated trials.
        found: result of the iteration.
    """

    trials: StrokeTrials
    found: IterationResult[StepwiseSolution]

    @property
    def theta(self) -> tuple[Array, ...]:
        """Parameters after every iteration, in the paper's order; `best` after the last one."""
        identified = [one.parameters.values[PAPER] for one in self.found.iterations if one.parameters is not None]
        return (*identified, *[self.best] * (ITERATIONS - len(identified)))

    @property
    def best(self) -> Array:
        """Parameters with the smallest tracking error, in the paper's order; NaN if no iteration succeeded."""
        found = self.found.parameters
        return np.full(6, np.nan) if found is None else found.values[PAPER]

    def error(self, iteration: int) -> float:
        """Largest error of a parameter after an iteration, counted from 1."""
        return self._error(self.theta[iteration - 1])

    @property
    def best_error(self) -> float:
        """Largest error of `best`."""
        return self._error(self.best)

    def _error(self, theta: Array) -> float:
        return float(np.abs(theta - self.trials.theta[PAPER]).max())


def repeated(
    strokes: Strokes, theta: Array, start: float = START, sensors: Sensors = QUIET, seed: int = 0, gain: float = 0.0
) -> Run:
    """Move, identify, and move again with the identified model."""
    trials = StrokeTrials(strokes, theta, start, 1.0 + WRONG, sensors, seed=seed)
    return Run(trials, iterate(trials, strokes.identified, gain, ITERATIONS))


def of_starts(published: Strokes, feasible: Strokes, most: float, extent: Extent, progress: Progress) -> list[Figure]:
    """Figures for arms that differ from their URDF, and for other starts; the target is a largest error of `most`.

    The full extent has 50 arms.
    """
    count, rng, worst, failed = 50 if extent.full else 8, np.random.default_rng(0), [], []
    for k in range(count):
        progress(f"arm {k + 1} of {count} with parameters up to {WRONG:.0%} off")
        theta = published.arm.nominal * rng.uniform(1.0 - WRONG, 1.0 + WRONG, 6)
        run = repeated(feasible, theta, gain=0.05)
        worst.append(run.best_error)
        if not worst[-1] < most:
            failed.append(f"arm {k + 1}, error {worst[-1]:.2g}: {run.found.reason}")
    progress("other starts")
    starts = (0.05, 0.2, 0.3, 0.5)
    errors = [repeated(published, published.arm.nominal, start).error(3) for start in starts]
    share = 1.0 - len(failed) / count
    explanation = "; ".join(failed) or f"none failed, greatest error {max(worst):.2g}"
    scatter = ", ".join(f"{start:.0%}: {error:.2g}" for start, error in zip(starts, errors, strict=True))
    return [
        Figure(
            f"share of {count} arms within {WRONG:.0%} of the URDF: error < {most:g}, {BEST}",
            share,
            target=1.0,
            better="higher",
            why=explanation,
        ),
        Figure(
            f"greatest error after iteration 3, starts with a droop of {min(starts):.0%} to {max(starts):.0%}",
            max(errors),
            target=most,
            better="lower",
            why=f"published strokes; {scatter}",
        ),
    ]


def of_noise(feasible: Strokes, series: Trajectory, seconds: float, extent: Extent, progress: Progress) -> list[Figure]:
    """Figures comparing strokes with a Fourier series within the same limits, with equal rows and sensors."""
    arm, figures = feasible.arm, []
    truth, standard = arm.nominal, arm.model.inertial_parameters
    for angle, torque in NOISES:
        strokes, fits = [], []
        for seed in range(extent.slow_seeds):
            progress(f"noise of {angle:g} rad and {torque:g} N m, seed {seed + 1}")
            one, both = (Sensors(np.full(n, torque), angle, 10.0 * angle) for n in (1, 2))
            strokes.append(repeated(feasible, truth, sensors=one, seed=seed).best_error)
            train, other = (
                simulated_recording(arm.regressor, standard, series, sample_times(seconds, 1.0 / SAMPLE), both, number)
                for number in (seed, extent.slow_seeds + seed)
            )
            fit = identify([train], [other], arm.model, Settings(terms=()), "reproduce").parameters.values
            fits.append(float(np.abs(fit - truth).max()))
        words, ours, other_one = (
            f"noise {angle:g} rad, {torque:g} N m",
            float(np.median(strokes)),
            float(np.median(fits)),
        )
        figures += [
            Figure(f"{words}: greatest error, strokes, {BEST}", ours),
            Figure(f"{words}: greatest error, Fourier series, once", other_one),
            Figure(
                f"{words}: the first over the second",
                ours / other_one,
                why="below 1 the strokes are the better excitation, which the paper shows without noise only",
            ),
        ]
    return figures
