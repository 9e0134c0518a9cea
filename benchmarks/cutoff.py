# SPDX-License-Identifier: Apache-2.0
"""Is the cut-off that is chosen from the data as good as the best of a grid?

Simulated arms of three speeds, recorded at 100 Hz and 1 kHz with encoders of 12, 16 and 20 bit, and with white noise
of the efforts, with noise that is correlated over 0.1 s, and with a vibration at 30 Hz in positions and efforts. Each
recording is identified with every cut-off of a grid, and with the one that is chosen; the error is that of the
identified torque along another motion, without noise, relative to the torque.

    python benchmarks/cutoff.py
    python benchmarks/cutoff.py --draws 3 --arms panda
"""

from __future__ import annotations

from measuring import Goal, at_most, one_thread, table

if __name__ == "__main__":
    one_thread()

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import arms
import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import BaseParameters, base_parameters
from robot_dyn_id.dynamics.regressor import Motion, Regressor, terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.files.configuration import shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulated_recording

PERIODS = {"arm7": 20.0, "ur5": 10.0, "panda": 5.0}
"""Period of the fundamental of five harmonics on each arm [s]."""

RATES, BITS, NOISES = (100.0, 1000.0), (12, 16, 20), ("white", "correlated", "vibration")
DURATION = 30.0
"""Length of a recording [s]."""

GRID = np.geomspace(1.0, 45.0, 12)
"""Cut-offs that the chosen one is compared with [Hz]; up to 0.3 sample rates."""

VIBRATION_RAD, VIBRATION_HZ = 5e-5, 30.0
LARGEST_RATIO = 1.05
"""Error with the chosen cut-off over that with the best of the grid."""


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
        robot = RobotModel.from_file(shared_file("urdf/arm7.urdf")) if name == "arm7" else arms.model(name)
        regressor = Regressor(robot, terms_on_joints(robot, [Viscous(), Coulomb(), Offset()]))
        motion = random_fourier(robot, 99, period=PERIODS[name])
        held_out = Motion(*motion.evaluate(np.linspace(0.0, PERIODS[name], 2000))[:3])
        parameters = arms.true_parameters(robot)
        return cls(regressor, base_parameters(regressor), parameters, held_out, regressor.torque(held_out, parameters))

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
    motion, t = random_fourier(arm.regressor.model, draw, period=PERIODS[name]), sample_times(DURATION, rate)
    recording = simulated_recording(arm.regressor, arm.parameters, motion, t, sensors, draw)
    if noise != "vibration":
        return recording
    wave = np.sin(2.0 * np.pi * VIBRATION_HZ * t)[:, None]
    samples: Chunk = recording.samples
    assert samples.tau is not None
    shaken = replace(samples, q=samples.q + VIBRATION_RAD * wave, tau=samples.tau + 2.0 * arms.NOISE[:joints] * wave)
    return replace(recording, samples=shaken)


def identified(arm: Arm, recording: ArrayRecording, cutoff: float | None) -> tuple[float, float]:
    """Cut-off and error of a model."""
    settings = SignalSettings(cutoff, velocity="derivative")
    joints = arm.regressor.model.joint_names
    trials = FilteredTrials.from_recordings([recording], joints, {}, settings).decimated()
    estimate = WeightedLeastSquares().fit(trials.problem(arm.regressor, arm.base.independent))
    return trials.plan.low_pass.cutoff, arm.error(estimate.values)


def compare(name: str, rate: float, bits: int, noise: str, draws: int) -> tuple[float, float, float, float]:
    """Chosen and best cut-off [Hz], and RMS errors with them over some draws."""
    arm, grid = Arm.of(name), GRID[0.3 * rate >= GRID]
    errors, chosen = np.empty((draws, len(grid) + 1)), []
    for draw in range(draws):
        recording = record(name, rate, bits, noise, draw + 1)
        cutoff, errors[draw, -1] = identified(arm, recording, None)
        chosen.append(cutoff)
        errors[draw, :-1] = [identified(arm, recording, cutoff)[1] for cutoff in grid.tolist()]
    mean = np.sqrt(np.mean(errors**2, axis=0))
    best = int(np.argmin(mean[:-1]))
    return float(np.median(chosen)), float(grid[best]), float(mean[-1]), float(mean[best])


def goals(names: list[str], draws: int) -> Iterator[Goal]:
    """One goal per arm, rate, resolution and noise."""
    for name, rate, bits, noise in product(names, RATES, BITS, NOISES):
        chosen, best, error, least = compare(name, rate, bits, noise, draws)
        what = f"{name}, {rate:g} Hz, {bits} bit, {noise}: {chosen:.1f} Hz {error:.3%}, best {best:.1f} Hz {least:.3%}"
        print(f"{error / least:6.3f}  {what}", flush=True)
        yield at_most(what, error / least, LARGEST_RATIO)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", nargs="+", choices=list(PERIODS), default=list(PERIODS))
    parser.add_argument("--draws", type=int, default=2, help="recordings of each kind")
    arguments = parser.parse_args()
    print(table(list(goals(arguments.arms, arguments.draws))))


if __name__ == "__main__":
    main()
