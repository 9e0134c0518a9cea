# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of whole commands, from the start of the process to its end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_dyn_id.bench.measuring import BenchFigure, measure_time
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.errors import InternalError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag
from robot_dyn_id.recordings.npz import write_npz
from robot_dyn_id.simulation.sensors import Sensors

RATE = 1000.0
"""Sample rate of the recordings [Hz]."""

SENSORS = Sensors(np.full(7, 0.1), 1e-5, 1e-3)

START_SAMPLES = 1000
"""Samples of the recording that a start is measured with."""

SAMPLES, QUICK_SAMPLES, MANY_SAMPLES = 100_000, 20_000, 1_000_000
"""Samples of a recording whose cost per sample is measured, and of the one whose memory is compared with its memory."""

BLOCK = 10_000
FIRST_STAMP_NS = 1_700_000_000_000_000_000

PINNED = ("--estimator", "weighted", "--friction", "coulomb")
"""Options of the model that is not chosen from the data."""

RUN = """
import sys
from robot_dyn_id.cli import run_process
code = run_process()
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("VmHWM", peak, file=sys.stderr)
sys.exit(code)
"""


@dataclass(frozen=True)
class CommandCost:
    """Cost of one run of a command.

    Attributes:
        seconds: CPU time of the process, user and system [s].
        mebibytes: peak of its memory [MiB]; NaN where /proc does not state it.
    """

    seconds: float
    mebibytes: float


def run_command(words: Sequence[str | Path]) -> CommandCost:
    """Run a command of this package in a process of its own.

    Raises:
        InternalError: it fails.
    """
    known = Path("/proc/self/status").is_file()
    start = ["-c", RUN] if known else ["-m", "robot_dyn_id"]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, *start, *map(str, words)], stdout=subprocess.DEVNULL, stderr=errors, text=True
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        lines = errors.read().splitlines()
    if process.returncode not in (0, 1):  # 1: the verdict is bad
        raise InternalError(f"{words[0]} ended with {process.returncode}: {' '.join(lines[-2:])[-200:]}")
    peak = next((line.split()[1] for line in reversed(lines) if line.startswith("VmHWM ")), "nan")
    return CommandCost(used.ru_utime + used.ru_stime, float(peak) / 1024.0)


def measure_starts(repeats: int = 5, progress: Progress = ignore_progress) -> list[BenchFigure]:
    """CPU time of commands with little to compute, with a warm cache, and time of writing a report."""
    robot = find_shared_file("urdf/arm7.urdf")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        data, out = folder / "short.npz", folder / "run"
        write_recording(data, START_SAMPLES, 100.0)
        identify: list[str | Path] = ["identify", data, "--robot", robot, "--out", out, "--force", *PINNED]
        base: list[str | Path] = ["base", "--robot", robot]
        figures = []
        for name, words, goal in (
            ("start: --help", list[str | Path](["--help"]), 0.15),
            ("start: base", base, 0.7),
            ("start: identify, 1000 samples, pinned model", identify, 1.5),
        ):
            progress(Stage(f"measuring: {name}"))
            costs = [run_command(words) for _ in range(repeats + 1)][1:]  # the first one may compile
            found = measure_time([cost.seconds for cost in costs])
            figures.append(BenchFigure(name, found.seconds, "s", goal, True, found.spread))
        figures.append(_measure_report(data, folder / "report", repeats))
    return figures


def _measure_report(data: Path, out: Path, repeats: int) -> BenchFigure:
    """CPU time of writing the files of an identification, the first time included."""
    from robot_dyn_id.estimators import ESTIMATORS
    from robot_dyn_id.identification.settings import Settings
    from robot_dyn_id.recordings import open_recording
    from robot_dyn_id.workflow.identification import identify

    settings = Settings(estimator=ESTIMATORS["weighted"](), terms=(Viscous(), Coulomb(), Offset()))
    result = identify(RobotModel.from_file(find_shared_file("urdf/arm7.urdf")), open_recording(data), settings)
    seconds = []
    for number in range(repeats):
        start = time.process_time()
        result.save(out / str(number))
        seconds.append(time.process_time() - start)
    return BenchFigure(
        "report and parameters of an identification", max(seconds), "s", 1.0, True, measure_time(seconds).spread
    )


def measure_commands(quick: bool = False, progress: Progress = ignore_progress) -> list[BenchFigure]:
    """CPU time of `identify` per sample, that of a start left out, and its memory.

    Args:
        quick: a shorter recording, and neither memory nor the automatic model.
        progress: callback that receives every stage of the work.
    """
    count = QUICK_SAMPLES if quick else SAMPLES
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)

        def identified(samples: int, suffix: str, options: Sequence[str] = PINNED) -> CommandCost:
            progress(Stage(f"measuring: identify, {samples} samples, {suffix.lstrip('.') or 'bag'}"))
            data = folder / f"data{samples}{suffix}"
            if not data.exists():
                write_recording(data, samples, RATE)
            robot, out = find_shared_file("urdf/arm7.urdf"), folder / "run"
            return run_command(["identify", data, "--robot", robot, "--out", out, "--force", *options])

        identified(START_SAMPLES, ".npz")  # may compile
        start, short = (identified(START_SAMPLES, suffix) for suffix in (".npz", ""))
        whole, bag = (identified(count, suffix) for suffix in (".npz", ""))
        figures = [
            _per_sample(".npz at 1 kHz, pinned model", start, whole, count, 8.0),
            _per_sample(".mcap at 1 kHz, pinned model", short, bag, count, 15.0),
        ]
        if quick:
            return figures
        identified(START_SAMPLES, ".npz", ())  # may compile
        for samples in (count, MANY_SAMPLES):
            pinned, automatic = (identified(samples, ".npz", options) for options in (PINNED, ()))
            more, allowed = automatic.seconds - pinned.seconds, 4.0 + 1e-5 * samples
            figures.append(
                BenchFigure(f"identify: automatic model, {samples} samples, in addition", more, "s", allowed, True)
            )
        for kind, suffix, first, middle, goal in ((".npz", ".npz", start, whole, 8.0), (".mcap", "", short, bag, 15.0)):
            many = identified(MANY_SAMPLES, suffix)
            figures += [
                _per_sample(f"{kind} at 1 kHz, pinned model, {MANY_SAMPLES} samples", first, many, MANY_SAMPLES, goal),
                _slope(
                    f"identify: slope of the time from {count} to {MANY_SAMPLES} samples, {kind}", first, middle, many
                ),
                _growth(f"identify: memory in addition at {MANY_SAMPLES} samples, {kind}", middle, many),
            ]
            if kind == ".mcap":
                share = _decode(folder / f"data{MANY_SAMPLES}") / (many.seconds - first.seconds)
                figures.append(BenchFigure("identify: share of the decoding of a bag", share, "", 0.5, True))
    return figures


def _slope(name: str, start: CommandCost, middle: CommandCost, many: CommandCost) -> BenchFigure:
    """Slope on a log-log scale of the CPU time less that of a start, from `SAMPLES` to `MANY_SAMPLES`."""
    ratio = (many.seconds - start.seconds) / (middle.seconds - start.seconds)
    return BenchFigure(name, float(np.log(ratio) / np.log(MANY_SAMPLES / SAMPLES)), "", 1.05, True)


def _growth(name: str, middle: CommandCost, many: CommandCost) -> BenchFigure:
    growth = many.mebibytes - middle.mebibytes
    if not np.isfinite(growth):
        return BenchFigure(name, None, "MiB", 32.0, True, why="/proc does not state it")
    return BenchFigure(name, growth, "MiB", 32.0, True)


def _decode(bag: Path) -> float:
    """CPU time in which `identify` decodes a bag [s]: when it is opened, and in the first pass."""
    from robot_dyn_id.recordings import open_recording

    start = time.process_time()
    recording = open_recording(bag)
    for _ in recording.chunks(recording.joint_names):
        pass
    return time.process_time() - start


def _per_sample(name: str, start: CommandCost, whole: CommandCost, count: int, goal: float) -> BenchFigure:
    value = 1e6 * (whole.seconds - start.seconds) / (count - START_SAMPLES)
    return BenchFigure(f"identify: {name}, per sample", value, "us", goal, True)


def write_recording(path: Path, samples: int, rate: float) -> None:
    """Write the recording of a simulated 7-axis arm with friction and sensor noise: `.npz`, else a bag.

    Args:
        path: file, or folder of the bag.
        samples: number of samples.
        rate: sample rate [Hz].
    """
    model = RobotModel.from_file(find_shared_file("urdf/arm7.urdf"))
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(0.01), Offset())))
    friction = np.ones(len(regressor.names) - len(model.inertial_parameters))
    parameters = np.append(1.1 * model.inertial_parameters, friction)
    t, series, rng = np.arange(samples) / rate, draw_random_fourier(model, 1), np.random.default_rng(0)
    q, dq, tau = (np.empty((samples, len(model.joint_names))) for _ in range(3))
    for start in range(0, samples, BLOCK):  # the regressor of all samples would not fit
        part = slice(start, start + BLOCK)
        motion = Motion(*series.evaluate(t[part])[:3])
        q[part], dq[part], tau[part] = motion.q.T, motion.dq.T, regressor.torque(motion, parameters).T
    assert SENSORS.velocity is not None
    for values, sigma in ((q, SENSORS.position), (dq, SENSORS.velocity), (tau, SENSORS.effort)):
        values += sigma * rng.normal(size=values.shape)
    if path.suffix == ".npz":
        write_npz(path, model.joint_names, t, q=q, dq=dq, tau=tau)
        return
    stamps = FIRST_STAMP_NS + np.round(t * 1e9).astype(np.int64)
    write_joint_state_bag(path, "/joint_states", model.joint_names, StampedSamples(stamps, q, dq, tau))
