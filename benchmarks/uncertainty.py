# SPDX-License-Identifier: Apache-2.0
"""Do 95 % intervals hold the truth, and does the model predict? Many recordings of one motion, with new noise each.

A simulated arm, recorded with white noise, with noise that is correlated over 0.1 and 0.5 s, and with resampled
residuals of a measured arm (of the folder that ROBOT_DYN_ID_DATA names, else left out), goes through the real line:
survey, plan, windows, filters, tiles, estimator. Base parameters and plan are found once. The usual
formula of least squares, s^2 (W' W)^-1 on every filtered row, is evaluated for comparison, as is the lowest
error of the torque that an unbiased estimator can reach, where the noise model is known.

    python benchmarks/uncertainty.py --runs 100 --processes 2
    python benchmarks/uncertainty.py --runs 100 --estimators robust map ridge separable

Estimators that are drawn to a prior are judged against it: `map` and `map_constants` on robots drawn from their own
prior, one for each run; `ridge` as it is, biased: its figures have no goal. `separable` and `map_constants` find the
smoothing widths as well. `eliminate_parameters` is `weighted` behind the elimination of what is not essential:
parameters that stay have the intervals of the essential set, and those left out the ones that they are reported with.
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, one_thread, skipped, table

if __name__ == "__main__":
    one_thread()

import argparse
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import arms
import numpy as np
from arms import NOISE
from scipy.interpolate import CubicSpline
from scipy.stats import chi2

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.prior import make_nominal_prior
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.estimators import (
    ESTIMATORS,
    Estimate,
    Estimator,
    MaximumAPosteriori,
    MaximumAPosterioriConstants,
    Ridge,
    WeightedLeastSquares,
)
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.essential import eliminate_parameters
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.excitation import FourierSeries, draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, plan_signals
from robot_dyn_id.simulation.closed_loop import ControllerModel
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording
from robot_dyn_id.version import __version__

ARM, RATE, DURATION, MOTION, OTHER = "panda", 100.0, 60.0, 1, 1001
NORMAL = 1.96
BLOCK = 2.0
"""Length of the pieces that measured residuals are drawn in [s]."""

MEASURED, BAG = "fer_unisa_bag", "panda_exciting_trajectory.db3"
KINDS = ("white", "AR(1) 0.1 s", "AR(1) 0.5 s", "measured")
STUDIED = ("weighted", "generalized", "ols")
"""Estimators unless others are named."""
LOOP = ControllerModel("computed_torque", (("all", 400.0),), (("all", 40.0),))
OPTIONS: dict[str, dict[str, Any]] = {name: {"controller": LOOP} for name in ("instrumental", "output_error")}
"""Options of estimators that need some."""
WHITENED = ("generalized", "robust", "map", "map_constants")
"""Estimators whose joint region is evaluated too."""
NAIVE = "s^2 (W'W)^-1"
ESSENTIAL = "essential"
HELD, TOO_WIDE, LOWEST, NRMSE = 0.90, 0.98, 0.80, 0.01
REGION = (0.75, 0.99)


@dataclass(frozen=True)
class Study:
    """Common data of all runs.

    Attributes:
        regressor, base, parameters, truth: robot, base parameters, all parameters, and the true base values.
        motion: what is recorded.
        other: states of another trajectory.
        torque: without noise, along those.
        plan: signal processing.
    """

    regressor: Regressor
    base: BaseParameters
    parameters: Array
    truth: Array
    motion: FourierSeries
    other: Motion
    torque: Array
    plan: SignalPlan

    def record(self, sensors: Sensors, seed: int) -> ArrayRecording:
        """One recording."""
        return simulate_recording(
            self.regressor, self.parameters, self.motion, sample_times(DURATION, RATE), sensors, seed
        )

    def problem(self, recording: ArrayRecording, plan: SignalPlan) -> LinearProblem:
        """As `pipeline.identify` makes it, kept in memory because several estimators read it."""
        trials = FilteredTrials([recording], recording.joint_names, {}, plan)
        prior = make_nominal_prior(self.regressor.model, self.base.mapping)  # of robots to simulate
        streamed = trials.problem(self.regressor, self.base.independent, prior)
        kept = [replace(tile, block=tile.block.copy()) for tile in streamed.tiles()]

        def tiles() -> Iterator[Tile]:
            for tile in kept:
                yield replace(tile, block=tile.block.copy())

        return replace(streamed, tiles=tiles)

    def surprised(self, estimator: Estimator, problem: LinearProblem, seed: int) -> LinearProblem:
        """For those with a prior, one that is as far from this robot as it says."""
        if not isinstance(estimator, (MaximumAPosteriori, MaximumAPosterioriConstants)):
            return problem
        rng, prior = np.random.default_rng((seed, 1)), make_nominal_prior(self.regressor.model, self.base.mapping)
        draw = rng.normal(size=len(self.parameters))
        far = estimator.spread * np.where(np.isfinite(prior.scales), prior.scales, 0.0) * draw
        prior = replace(prior, values=self.parameters + far)
        if isinstance(estimator, MaximumAPosterioriConstants):
            constants = Constants.from_problem(problem, estimator.name)
            away = estimator.spread * rng.normal(size=len(constants.places))
            problem = constants.problem.with_columns(
                constants.regressor(constants.logarithms + away), constants.problem.columns
            )
        return replace(problem, prior=prior)


@cache
def study() -> Study:
    """An arm with the URDF's inertias, friction and offsets, and the plan of its recordings."""
    regressor = arms.with_friction(ARM)
    size = np.linspace(1.0, 0.2, len(regressor.model.joint_names))
    parameters = np.concatenate([regressor.model.inertial_parameters, 3.0 * size, 2.5 * size, 0.2 * size])
    base = compute_base_parameters(regressor)
    motion, other = (draw_random_fourier(regressor.model, seed) for seed in (MOTION, OTHER))
    states = Motion(*other.evaluate(np.arange(0.0, other.period, 1.0 / RATE))[:3])
    first = simulate_recording(regressor, parameters, motion, sample_times(DURATION, RATE), Sensors(NOISE), 0)
    plan = plan_signals(survey([first], first.joint_names, {}), SignalSettings())
    plan = plan.periodic(motion.period)
    return Study(
        regressor,
        base,
        parameters,
        base.mapping @ parameters,
        motion,
        states,
        regressor.torque(states, parameters),
        plan,
    )


@cache
def measured_residuals() -> Array | str:
    """Residuals of a measured arm's unfiltered efforts at our rate, or the reason why they are missing."""
    folder = os.environ.get("ROBOT_DYN_ID_DATA")
    if folder is None:
        return "ROBOT_DYN_ID_DATA, the folder of measured data, is not set"
    recording = open_recording(Path(folder) / MEASURED / BAG)
    model = RobotModel.from_file(Path(folder) / MEASURED / "model.urdf")
    settings = Settings()
    training, _ = split([recording], model.joint_names, [recording])
    found = identify(training, training, model, settings, __version__)
    regressor, plan = Regressor.from_parameters(found.parameters), found.evaluation.plan
    columns = found.parameters.base.independent
    left = []
    for piece in FilteredTrials(training, model.joint_names, {}, plan):
        assert piece.tau is not None
        left.append(
            piece.tau[:, piece.own] - regressor.torque(piece.motion.take(piece.own), found.estimate.values, columns)
        )
    residuals = np.concatenate(left, axis=1)
    t = np.arange(residuals.shape[1]) / plan.rate
    residuals = CubicSpline(t, residuals, axis=1)(np.arange(0.0, t[-1], 1.0 / RATE))
    return np.asarray(residuals - residuals.mean(axis=1, keepdims=True))  # what is left of a mean would be an offset


def sensors_of(kind: str) -> Sensors:
    """The errors of a kind of recording."""
    if kind == "measured":
        return Sensors(np.zeros_like(NOISE), residuals=measured_residuals(), block=BLOCK)
    return Sensors(NOISE, correlation_time=0.0 if kind == "white" else float(kind.split()[1]))


class Run(NamedTuple):
    """Errors of one recording's estimates by one estimator."""

    errors: Array
    sigmas: Array
    nrmse: float
    inside: bool  # the truth is in the joint 95 % region


def one(kind: str, seed: int, names: Sequence[str]) -> dict[str, Run]:
    """One recording through all estimators."""
    known = study()
    recording = known.record(sensors_of(kind), seed)
    problem = known.problem(recording, known.plan)
    estimators = [ESTIMATORS[name](**OPTIONS.get(name, {})) for name in names if name != ESSENTIAL]
    found = {e.name: e.fit(known.surprised(e, problem, seed)) for e in estimators}
    runs = {name: _run(e.values, e.standard_deviations, e.covariance) for name, e in found.items()}
    if ESSENTIAL in names:
        runs[ESSENTIAL] = eliminated(WeightedLeastSquares().fit(problem), problem.names)
    factors = Factors.from_problem(known.problem(recording, replace(known.plan, row_stride=1)))
    solution = factors.solve(np.ones(len(factors.counts)))
    freedom = factors.counts.sum() - len(known.truth)
    covariance = solution.inverse * factors.squared_residuals(solution.values).sum() / freedom
    return {**runs, NAIVE: _run(solution.values, np.sqrt(np.diag(covariance)), covariance)}


def eliminated(estimate: Estimate, names: Sequence[str]) -> Run:
    """Result with the essential parameters: their torque, their joint region, and an interval for every parameter."""
    found, values, sigmas = (
        eliminate_parameters(estimate, names),
        estimate.values.copy(),
        estimate.standard_deviations.copy(),
    )
    alone = np.zeros(len(values))
    alone[found.kept] = values[found.kept] = found.values
    sigmas[found.kept] = found.standard_deviations
    kept = _run(alone, np.where(alone != 0.0, sigmas, np.nan), found.covariance)
    return kept._replace(errors=values - study().truth, sigmas=sigmas)


@cache
def bound(kind: str, draws: int = 2000) -> float:
    """NRMSE along the other trajectory of an efficient estimator that knows law and size of the noise (Cramer-Rao).

    The rows of all samples, made white with the true autoregressive filter; mean over `draws` of its errors.
    """
    known, sensors = study(), sensors_of(kind)
    keep = np.exp(-1.0 / (RATE * sensors.correlation_time)) if sensors.correlation_time else 0.0
    columns = known.base.independent
    rows = known.regressor.dense(Motion(*known.motion.evaluate(np.arange(0.0, DURATION, 1.0 / RATE))[:3]))[columns]
    rows[:, :, 1:] = (rows[:, :, 1:] - keep * rows[:, :, :-1]) / np.sqrt(1.0 - keep**2)
    information = np.einsum("pjk,qjk,j->pq", rows, rows, sensors.effort**-2, optimize=True)
    other = known.regressor.dense(known.other)[columns]
    errors = np.random.default_rng(0).multivariate_normal(np.zeros(len(columns)), np.linalg.inv(information), draws)
    squares = np.einsum("sp,pq,sq->s", errors, np.einsum("pjk,qjk->pq", other, other), errors, optimize=True)
    return float(np.sqrt(squares).mean() / np.linalg.norm(known.torque))


def _run(values: Array, sigmas: Array, covariance: Array) -> Run:
    known = study()
    errors = values - known.truth
    wrong = known.regressor.torque(known.other, values, known.base.independent) - known.torque
    kept = errors[~np.isnan(sigmas)]
    inside = bool(kept @ np.linalg.solve(covariance, kept) < chi2.ppf(0.95, len(kept)))
    return Run(errors, sigmas, float(np.linalg.norm(wrong) / np.linalg.norm(known.torque)), inside)


@dataclass(frozen=True)
class Figures:
    """Statistics over the runs of one estimator with one kind of noise.

    Attributes:
        held: share of the 95 % intervals that hold the truth, mean of the parameters.
        lowest: that of the parameter whose intervals hold it least often, and its name.
        ratio: standard deviation of the estimates over the one that is reported, median over the parameters.
        bias: greatest mean error of a parameter in standard deviations of its estimates, and its name.
        region: share of the runs whose joint 95 % region of all parameters holds the truth.
        nrmse: mean and greatest error of the torque along the other trajectory.
    """

    held: float
    lowest: tuple[float, str]
    ratio: float
    bias: tuple[float, str]
    region: float
    nrmse: tuple[float, float]

    @staticmethod
    def of(runs: list[Run]) -> Figures:
        """From all runs."""
        names = study().base.names
        errors, sigmas = np.array([run.errors for run in runs]), np.array([run.sigmas for run in runs])
        holds = (np.abs(errors) < NORMAL * sigmas).mean(axis=0)
        spread = errors.std(axis=0, ddof=1)
        bias = np.abs(errors.mean(axis=0)) / spread
        rare, biased = int(np.argmin(holds)), int(np.argmax(bias))
        nrmse = [run.nrmse for run in runs]
        return Figures(
            held=float(np.mean(holds)),
            lowest=(float(holds[rare]), names[rare]),
            ratio=float(np.median(spread / np.sqrt((sigmas**2).mean(axis=0)))),
            bias=(float(bias[biased]), names[biased]),
            region=float(np.mean([run.inside for run in runs])),
            nrmse=(float(np.mean(nrmse)), max(nrmse)),
        )


def studied(runs: int, processes: int, names: Sequence[str]) -> dict[str, dict[str, Figures]]:
    """Figures by kind of noise and estimator."""
    figures = {}
    with ProcessPoolExecutor(processes) as pool:
        for kind in KINDS:
            if kind != "measured" or not isinstance(measured_residuals(), str):
                results = list(pool.map(one, [kind] * runs, range(1, runs + 1), [names] * runs, chunksize=5))
                figures[kind] = {name: Figures.of([result[name] for result in results]) for name in results[0]}
    return figures


def goals(figures: dict[str, dict[str, Figures]], names: Sequence[str]) -> list[Goal]:
    """Goals of every estimator that is not biased."""
    wanted = []
    for kind, name in product(KINDS, names):
        title = f"coverage {ARM}, {kind} noise, {name}"
        if kind not in figures:
            wanted.append(skipped(title, HELD, str(measured_residuals())))
            continue
        if name == Ridge.name:
            continue
        ours = figures[kind][name]
        limits = {} if kind == "measured" else {"cramer_rao": bound(kind)}
        if name in WHITENED:
            wanted.append(at_least(f"{title}: joint regions that hold the truth", ours.region, REGION[0]))
            wanted.append(at_most(f"{title}: joint regions, and not too often", ours.region, REGION[1]))
        wanted += [
            at_least(f"{title}: 95 % intervals that hold the truth", ours.held, HELD),
            at_most(f"{title}: and not too often", ours.held, TOO_WIDE),
            at_least(f"{title}: of one parameter", ours.lowest[0], LOWEST, parameter=ours.lowest[1]),
            at_most(f"{title}: NRMSE, mean of the runs", ours.nrmse[0], NRMSE, **limits),
            at_most(f"{title}: NRMSE, worst run", ours.nrmse[1], NRMSE),
        ]
    return wanted


def rows(figures: dict[str, dict[str, Figures]]) -> str:
    """A line per kind of noise and estimator."""
    heads = ("noise", "estimator", "held", "lowest", "", "spread/sigma", "bias/spread", "", "region", "NRMSE", "worst")
    form = "{:<12} {:<13} {:>6} {:>7} {:<6} {:>12} {:>12} {:<6} {:>7} {:>8} {:>8}"
    lines = [form.format(*heads)]
    for kind, by_name in figures.items():
        for name, f in by_name.items():
            numbers = (
                f"{f.held:.3f}",
                f"{f.lowest[0]:.2f}",
                f.lowest[1],
                f"{f.ratio:.2f}",
                f"{f.bias[0]:.2f}",
                f.bias[1],
                f"{f.region:.2f}",
                *(f"{value:.2%}" for value in f.nrmse),
            )
            lines.append(form.format(kind, name, *numbers))
    return "\n".join(lines)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Coverage of the 95 % intervals.")
    parser.add_argument("--runs", type=int, default=100, help="recordings of each kind of noise")
    parser.add_argument("--processes", type=int, default=1, help="processes that share them")
    parser.add_argument(
        "--estimators", nargs="+", default=STUDIED, choices=[*ESTIMATORS, ESSENTIAL], help="which to study"
    )
    arguments = parser.parse_args()
    known, names = study(), tuple(arguments.estimators)
    print(
        f"{ARM}, {len(known.truth)} base parameters, {DURATION:g} s at {RATE:g} Hz, {arguments.runs} runs each; "
        f"cut-off {known.plan.low_pass.cutoff:.2f} Hz, {known.plan.row_rate:.3g} rows per second\n"
    )
    figures = studied(arguments.runs, arguments.processes, names)
    print(f"{rows(figures)}\n\n{table(goals(figures, names))}")


if __name__ == "__main__":
    main()
