# SPDX-License-Identifier: Apache-2.0
"""Is the cut-off that is chosen from the data as good as the best of a grid?

Simulated arms of three speeds, recorded at 100 Hz and 1 kHz with encoders of 12, 16 and 20 bit, and with white noise
of the efforts, with noise that is correlated over 0.1 s, and with a vibration at 30 Hz in positions and efforts. Each
recording is identified with every cut-off of a grid, for regressor and positions alike, and with the cut-offs that are
chosen; the model is pinned (the true terms, weighted least squares), so that nothing but the filters differs. The error
is that of the identified torque along another motion, without noise, relative to the torque.

The best of a grid in the same draws is better by luck alone: the best point is that of the median over one half of
the draws, and is compared on the other half, and the other way round. The ratio is the median over all draws of the
error with the chosen cut-offs over that with this point, with the 95 % interval of the median (order statistics).

    python benchmarks/cutoff.py --report cutoff.md
    python benchmarks/cutoff.py --draws 4 --arms panda
"""

from __future__ import annotations

from measuring import Goal, at_most, one_thread

if __name__ == "__main__":
    one_thread()

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import arms
import numpy as np
from scipy.stats import binom

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.estimators.factors import compress_rows
from robot_dyn_id.estimators.weighting import solve_reweighted
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, plan_signals
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

PERIODS = {"arm7": 20.0, "ur5": 10.0, "panda": 5.0}
"""Period of the fundamental of five harmonics on each arm [s]."""

RATES, BITS, NOISES = (100.0, 1000.0), (12, 16, 20), ("white", "correlated", "vibration")
DURATION = 30.0
"""Length of a recording [s]."""

GRID = np.geomspace(1.0, 45.0, 12)
"""Cut-offs that the chosen one is compared with [Hz]; up to 0.3 sample rates."""

VIBRATION_RAD, VIBRATION_HZ = 5e-5, 30.0
LARGEST_RATIO = 1.05
"""Largest accepted error with the chosen cut-offs over that with the best of the grid."""


@dataclass(frozen=True)
class Arm:
    """A robot with true parameters, and a motion without noise to judge models on."""

    regressor: Regressor
    base: BaseParameters
    parameters: Array
    held_out: Motion
    torque: Array

    @classmethod
    @cache
    def of(cls, name: str) -> Arm:
        """An arm of `PERIODS`."""
        robot = RobotModel.from_file(find_shared_file("urdf/arm7.urdf")) if name == "arm7" else arms.model(name)
        regressor = Regressor(robot, place_terms_on_joints(robot, [Viscous(), Coulomb(), Offset()]))
        motion = draw_random_fourier(robot, 99, period=PERIODS[name])
        held_out = Motion(*motion.evaluate(np.linspace(0.0, PERIODS[name], 2000))[:3])
        parameters = arms.true_parameters(robot)
        return cls(
            regressor, compute_base_parameters(regressor), parameters, held_out, regressor.torque(held_out, parameters)
        )

    def error(self, values: Array) -> float:
        """Error of base parameters, relative to the torque."""
        difference = self.regressor.torque(self.held_out, values, self.base.independent) - self.torque
        return float(np.linalg.norm(difference) / np.linalg.norm(self.torque))


def record(name: str, rate: float, bits: int, noise: str, draw: int) -> ArrayRecording:
    """A recording without velocities."""
    arm = Arm.of(name)
    joints = len(arm.regressor.model.joint_names)
    sensors = Sensors(
        arms.NOISE[:joints],
        position=0.0,
        velocity=None,
        correlation_time=0.1 if noise == "correlated" else 0.0,
        resolution=2.0 * np.pi / 2**bits,
    )
    motion, t = draw_random_fourier(arm.regressor.model, draw, period=PERIODS[name]), sample_times(DURATION, rate)
    recording = simulate_recording(arm.regressor, arm.parameters, motion, t, sensors, draw)
    if noise != "vibration":
        return recording
    wave = np.sin(2.0 * np.pi * VIBRATION_HZ * t)[:, None]
    samples: Chunk = recording.samples
    assert samples.tau is not None
    shaken = replace(samples, q=samples.q + VIBRATION_RAD * wave, tau=samples.tau + 2.0 * arms.NOISE[:joints] * wave)
    return replace(recording, samples=shaken)


@dataclass(frozen=True)
class Comparison:
    """Errors of models identified with several cut-offs.

    Attributes:
        kind: arm, rate, resolution and noise.
        grid: cut-offs of the grid [Hz], shape (g,).
        chosen: cut-offs of regression and motion filter that were chosen in each draw [Hz], shape (draws, 2).
        errors: relative errors with each cut-off of the grid, and last with those that were chosen, shape
            (draws, g + 1).
    """

    kind: str
    grid: Array
    chosen: Array
    errors: Array

    @classmethod
    def of(cls, name: str, rate: float, bits: int, noise: str, draws: int) -> Comparison:
        """Record and identify."""
        arm, grid = Arm.of(name), GRID[0.3 * rate >= GRID]
        joints, errors, chosen = arm.regressor.model.joint_names, np.empty((draws, len(grid) + 1)), []
        for draw in range(draws):
            recording = record(name, rate, bits, noise, draw + 1)
            trials = FilteredTrials.from_recordings([recording], joints, {}, SignalSettings(velocity="derivative"))
            chosen.append((trials.plan.low_pass.cutoff, trials.plan.motion_pass.cutoff))
            errors[draw, -1] = identified(arm, trials)
            for place, cutoff in enumerate(grid.tolist()):
                plan = plan_signals(trials.survey, SignalSettings(cutoff, velocity="derivative"))
                errors[draw, place] = identified(arm, replace(trials, plan=plan))
        return cls(f"{name} | {rate:g} Hz | {bits} bit | {noise}", grid, np.array(chosen), errors)

    @property
    def ratios(self) -> Array:
        """Error with the chosen cut-offs over that with the best of the grid in the other half of the draws."""
        found = np.empty(len(self.errors))
        for half in (0, 1):
            best = int(np.argmin(np.median(self.errors[1 - half :: 2, :-1], axis=0)))
            found[half::2] = self.errors[half::2, -1] / self.errors[half::2, best]
        return found

    @property
    def ratio(self) -> float:
        """Median of the ratios."""
        return float(np.median(self.ratios))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of that median, the extremes if there are fewer than six draws."""
        ranked = np.sort(self.ratios)
        outside = max(1, int(binom.ppf(0.025, len(ranked), 0.5)))
        return float(ranked[outside - 1]), float(ranked[-outside])

    def row(self) -> str:
        """Row of the report."""
        medians = np.median(self.errors, axis=0)
        best = int(np.argmin(medians[:-1]))
        low, high = self.interval
        regression, motion = np.median(self.chosen, axis=0)
        verdict = "met" if self.ratio <= LARGEST_RATIO else ("missed" if low > LARGEST_RATIO else "missed, not certain")
        return (
            f"| {self.kind} | {regression:.1f}, {motion:.1f} | {medians[-1]:.3%} | {self.grid[best]:.1f} | "
            f"{medians[best]:.3%} | {self.ratio:.2f} | {low:.2f} to {high:.2f} | {verdict} |"
        )

    def goal(self) -> Goal:
        """The ratio against its limit."""
        return at_most(self.kind, self.ratio, LARGEST_RATIO)


def identified(arm: Arm, trials: FilteredTrials) -> float:
    """Error of the model identified by weighted least squares, without its covariance."""
    factors = compress_rows(trials.decimated().problem(arm.regressor, arm.base.independent))
    return arm.error(solve_reweighted(factors)[1].values)


HEADER = (
    "| arm | rate | encoder | noise | chosen: regression, motion [Hz] | error | best of the grid [Hz] | error "
    "| ratio | 95 % | |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def comparisons(names: list[str], draws: int) -> Iterator[Comparison]:
    """Every kind of recording."""
    for name, rate, bits, noise in product(names, RATES, BITS, NOISES):
        yield Comparison.of(name, rate, bits, noise, draws)


def main() -> None:
    """Compare, print, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", nargs="+", choices=list(PERIODS), default=list(PERIODS))
    parser.add_argument("--draws", type=int, default=12, help="recordings of each kind, at least 2")
    parser.add_argument("--report", type=Path, help="Markdown file for the table, written after every row")
    arguments = parser.parse_args()
    lines, goals = [HEADER], []
    print(HEADER, flush=True)
    for one in comparisons(arguments.arms, arguments.draws):
        lines.append(one.row())
        goals.append(one.goal())
        print(lines[-1], flush=True)
        if arguments.report:
            arguments.report.write_text("\n".join(lines) + "\n", encoding="utf-8")
    met = sum(goal["met"] for goal in goals)
    print(f"{met} of {len(goals)} kinds within {LARGEST_RATIO:g}; worst {max(goal['ratio'] for goal in goals):.2f}")


if __name__ == "__main__":
    main()
