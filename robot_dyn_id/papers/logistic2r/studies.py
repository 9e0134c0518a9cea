# SPDX-License-Identifier: Apache-2.0
"""Repeated strokes of Qian et al.: starts, arms that differ from their URDF, and noise, next to Fourier series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording, Recording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.papers.figures import Extent, Figure, Spread
from robot_dyn_id.papers.logistic2r.strokes import GROUPS, PAPER, SAMPLE, ControlModel, Strokes, StrokeTrials
from robot_dyn_id.progress import Progress, Stage
from robot_dyn_id.simulation.controllers import Gains, ScaledNominalInertia
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.workflow.iteration import (
    IterationResult,
    SimulatedTrials,
    Trial,
    iterate,
    scale_inertia_for_motion,
)

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

TICKS = 10
"""Periods of the controller in a sampling period."""

FOURIER = Settings(terms=(), estimator=ESTIMATORS["weighted"](), velocity="derivative")
"""The usual line for the Fourier series: no prior, as the strokes have none."""


@dataclass(frozen=True)
class Run:
    """Result of repeated strokes.

    Attributes:
        trials: simulated trials.
        found: result of the iteration.
    """

    trials: StrokeTrials
    found: IterationResult[ControlModel]

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


def repeat_trials(trials: StrokeTrials, gain: float = 0.0) -> Run:
    """Move, identify, and move again with the identified model.

    Args:
        trials: simulated trials.
        gain: least improvement of the tracking error, see `iterate`.
    """
    return Run(trials, iterate(trials, trials.strokes.identified, gain, ITERATIONS))


def make_quiet_trials(strokes: Strokes, theta: Array, droop: float = START, start_inertia: float = 0.0) -> StrokeTrials:
    """Trials without noise, with the start by the droop or with a given inertia of joint 2 [kg m^2]."""
    return StrokeTrials(strokes, theta, droop, QUIET, start_inertia)


def repeat_joint_1(strokes: Strokes, gains: Gains, known: Array, iterations: int) -> tuple[list[Array], str]:
    """Move and identify joint 1 alone, with the parameters of link 2 known, as the paper's second step.

    Args:
        strokes: strokes of both joints; those of joint 1 are moved with other gains.
        gains: gains of joint 1.
        known: parameters of the first model, shape (6,).
        iterations: number of iterations.

    Returns:
        Parameters after each iteration, and the reason why the last one failed; empty if none did.
    """
    joint, arm = "joint1", strokes.arm
    found: list[Array] = []
    stroke = replace(strokes.of[joint], gains=gains)
    trials = make_quiet_trials(replace(strokes, of={**strokes.of, joint: stroke}), arm.nominal)
    every = round(trials.rate * SAMPLE)
    for number in range(iterations):
        try:
            trial = trials.trial(joint, known, number + 1)
        except RobotDynIdError as error:
            return found, f"iteration {number + 1}: {error}"
        chunk = Chunk.join(list(trial.recording.chunks([joint])))
        assert chunk.tau is not None
        t, q, tau = (x[::every] for x in (chunk.t - chunk.t[0], chunk.q[:, 0], chunk.tau[:, 0]))
        kept, direction = stroke.samples(t)
        rows = arm.rows(joint, q[kept], *stroke.rates(q[kept], direction))
        own, others = GROUPS[0].columns, GROUPS[1].columns
        known = known.copy()
        known[own] = np.linalg.lstsq(rows[:, own], tau[kept] - rows[:, others] @ known[others])[0]
        found.append(known)
    return found, ""


def compare_starts(
    published: Strokes, feasible: Strokes, most: float, extent: Extent, progress: Progress
) -> list[Figure]:
    """Figures for arms that differ from their URDF, and for other starts; the target is a largest error of `most`.

    The full extent has 50 arms.
    """
    count, rng, worst, failed = 50 if extent.full else 8, np.random.default_rng(0), [], []
    for k in range(count):
        progress(Stage(f"arms with parameters up to {WRONG:.0%} off", k, count))
        theta = published.arm.nominal * rng.uniform(1.0 - WRONG, 1.0 + WRONG, 6)
        run = repeat_trials(make_quiet_trials(feasible, theta), 0.05)
        worst.append(run.best_error)
        if not worst[-1] < most:
            failed.append(f"arm {k + 1}, error {worst[-1]:.2g}: {run.found.reason}")
    progress(Stage("other starts"))
    starts = (0.05, 0.2, 0.3, 0.5)
    errors = [repeat_trials(make_quiet_trials(published, published.arm.nominal, start)).error(3) for start in starts]
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


@dataclass(frozen=True)
class FourierTrials:
    """Repetition of a Fourier series under the same controller, start, limits and sensors, by the usual pipeline.

    Attributes:
        strokes: strokes that the series is compared with: arm, gains and start.
        series: Fourier series of both joints.
        seconds: length of the series [s].
    """

    strokes: Strokes
    series: Trajectory
    seconds: float

    def repeated(self, standard: Array, sensors: Sensors, seed: int) -> IterationResult[ControlModel]:
        """Move, identify and repeat, an arm with these standard parameters, shape (20,)."""
        arm = self.strokes.arm
        run = SimulatedTrials(
            Dynamics(arm.regressor, np.arange(len(standard)), standard),
            self.series,
            self.seconds,
            1.0 / SAMPLE * TICKS,
            replace(sensors, effort=np.repeat(sensors.effort, 2)),
            self._gains(),
            self._start(),
            limit_effort=False,
            max_deviation=np.pi,
            seed=seed,
        )

        def trial(known: ControlModel | None, number: int) -> Trial:
            return run.follow(None if known is None else arm.dynamics(known.values), number)

        return iterate(trial, self._identified, 0.0, ITERATIONS)

    def errors(self, standard: Array, sensors: Sensors, seed: int) -> tuple[float, float]:
        """Largest error of a parameter after the first trial, and after the best of `ITERATIONS`; inf without any."""
        truth = self.strokes.arm.base.mapping @ standard
        found = self.repeated(standard, sensors, seed)
        models = found.iterations[0].parameters if found.iterations else None, found.parameters
        once, best = (np.inf if one is None else float(np.abs(one.values - truth).max()) for one in models)
        return once, best

    def _gains(self) -> Gains:
        gains = [self.strokes.of[name].gains for name in self.strokes.arm.model.joint_names]
        proportional, derivative = (
            tuple(float(np.asarray(getattr(one, name))) for one in gains) for name in ("proportional", "derivative")
        )
        return Gains(proportional, derivative, exponent=gains[0].exponent)

    def _start(self) -> ScaledNominalInertia:
        arm, gains = self.strokes.arm, self._gains()
        prior, margin = arm.dynamics(arm.nominal), 1.0 + self.strokes.deviation
        droop = START * min(float(stroke.motion.span[0]) for stroke in self.strokes.of.values())
        return scale_inertia_for_motion(self.series, self.seconds, prior, gains, droop, margin)

    def _identified(self, recording: Recording) -> ControlModel:
        """Parameters by least squares without a prior, from angles and torques with the sampling period of the strokes.

        Raises:
            RobotDynIdError: see `pipeline.identify`, or no inertia is positive.
        """
        model = self.strokes.arm.model
        chunk = Chunk.join(list(recording.chunks(model.joint_names)))
        assert chunk.tau is not None
        kept = Chunk(chunk.t[::TICKS], chunk.q[::TICKS], None, chunk.tau[::TICKS])
        sampled = ArrayRecording(recording.source, model.joint_names, kept)
        found = identify([sampled], [sampled], model, FOURIER, "reproduce").parameters
        return self.strokes.arm.make_model(
            found.estimate.values, found.estimate.covariance, self.strokes.deviation, [None]
        )


def draw_arm_unlike_urdf(strokes: Strokes, seed: int) -> Array:
    """Standard parameters of an arm whose bodies are up to `WRONG` lighter or heavier than the URDF's, shape (20,)."""
    rng = np.random.default_rng(seed)
    return np.asarray(strokes.arm.model.inertial_parameters * np.repeat(rng.uniform(1.0 - WRONG, 1.0 + WRONG, 2), 10))


def compare_noise(fourier: FourierTrials, extent: Extent, progress: Progress) -> list[Figure]:
    """Figures on strokes and a Fourier series within the same limits, with equal rows, controller and sensors."""
    strokes, figures = fourier.strokes, []
    for angle, torque in NOISES:
        sensors = Sensors(np.full(1, torque), angle, 10.0 * angle)
        found: dict[str, list[float]] = {"strokes": [], "once": [], "best": []}
        refused, held = 0, 0
        for seed in range(extent.seeds):
            progress(Stage(f"noise of {angle:g} rad and {torque:g} N m, seed {seed + 1}"))
            standard = draw_arm_unlike_urdf(strokes, seed)
            theta = strokes.arm.base.mapping @ standard
            run = repeat_trials(StrokeTrials(strokes, theta, START, sensors, seed=seed))
            found["strokes"].append(np.nan_to_num(run.best_error, nan=np.inf))
            refused += len(run.found.refused)
            held += sum(one.parameters is not None and one.parameters.held for one in run.found.iterations)
            for name, error in zip(("once", "best"), fourier.errors(standard, sensors, seed), strict=True):
                found[name].append(error)
        spreads = {name: _spread(values) for name, values in found.items()}
        words = f"noise {angle:g} rad, {torque:g} N m"
        figures += [
            Figure.from_spread(
                f"{words}: greatest error, strokes, {BEST}",
                spreads["strokes"],
                why=f"{held} models held near the URDF, as an inertia was not positive, and {refused} refused",
            ),
            Figure.from_spread(f"{words}: greatest error, Fourier series, once", spreads["once"]),
            Figure.from_spread(f"{words}: greatest error, Fourier series, {BEST}", spreads["best"]),
            Figure.from_spread(
                f"{words}: greatest error, strokes over Fourier series, {BEST}",
                compare_draws(spreads["strokes"], spreads["best"]),
                rerun=1.0,
                better="lower",
                comparisons=len(NOISES),
                why="draw by draw: the same arm, controller, start, limits, sensors and number of rows; without a "
                "prior",
            ),
        ]
    return figures


def compare_draws(ours: Spread, others: Spread) -> Spread:
    """Ratios draw by draw; 1 where both failed."""
    with np.errstate(invalid="ignore"):
        ratios = ours.values / others.values
    return Spread(
        np.where(np.isnan(ratios), 1.0, ratios), failed=int((np.isinf(ours.values) | np.isinf(others.values)).sum())
    )


def _spread(errors: Sequence[float]) -> Spread:
    return Spread(np.array(errors), failed=int(np.isinf(errors).sum()))
