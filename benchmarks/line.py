# SPDX-License-Identifier: Apache-2.0
"""CPU time of the whole command `identify` with the model pinned, by recording format and number of samples.

Simulated recordings of a Panda with friction at 1 kHz; every run is a process of its own with a warm cache of compiled
kernels. The time of the smallest recording is subtracted: starting and report do not grow with the data. Peak memory of
the largest recording is compared with that of 100,000 samples. Recordings take 2 GB of disk; all of it takes half an
hour.
"""

from __future__ import annotations

from measuring import Goal, at_most, one_thread, script

if __name__ == "__main__":
    one_thread()

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import arms
import numpy as np
from memory import RUN

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag
from robot_dyn_id.recordings.npz import write_npz
from robot_dyn_id.simulation.sensors import draw_colored_noise

RATE, SMALLEST = 1000.0, 1000
SIZES = {"npz": (10_000, 100_000, 1_000_000, 10_000_000), "mcap": (10_000, 100_000, 1_000_000)}
COMPARED, GROWTH = 100_000, 32.0
BLOCK = 10_000
GOALS_US = {"npz": 8.0, "mcap": 15.0}
SLOPE = 0.05
PINNED = ("--estimator", "weighted", "--friction", "coulomb")
NOISE_TIME_S = 0.1
POSITION_NOISE, VELOCITY_NOISE = 1e-5, 1e-3


def measure() -> list[Goal]:
    """Run the command on recordings of all sizes in both formats."""
    goals = []
    with tempfile.TemporaryDirectory(prefix="robot_dyn_id_line_") as folder:
        runs: dict[str, dict[int, dict[str, float]]] = {kind: {} for kind in GOALS_US}
        for kind, sizes in SIZES.items():
            for samples in (SMALLEST, SMALLEST, *sizes):  # the first run compiles the kernels
                recording = _write(Path(folder), samples, kind)
                runs[kind][samples] = _identify(recording)
    for kind, limit in GOALS_US.items():
        sizes = SIZES[kind]
        cpu = np.array([runs[kind][size]["cpu"] - runs[kind][SMALLEST]["cpu"] for size in sizes])
        slopes = np.diff(np.log(np.maximum(cpu, 1e-3))) / np.diff(np.log(sizes))
        slope = float(np.polyfit(np.log(sizes), np.log(np.maximum(cpu, 1e-3)), 1)[0])
        details = {
            "cpu_s": "/".join(f"{runs[kind][size]['cpu']:.1f}" for size in (SMALLEST, *sizes)),
            "peaks_mib": "/".join(f"{runs[kind][size]['mib']:.0f}" for size in (SMALLEST, *sizes)),
        }
        growth = runs[kind][sizes[-1]]["mib"] - runs[kind][COMPARED]["mib"]
        goals += [
            at_most(f"line, {kind}: us a sample", 1e6 * cpu[-1] / sizes[-1], limit, **details),
            at_most(f"line, {kind}: MiB beyond those of {COMPARED} samples", growth, GROWTH),
            at_most(
                f"line, {kind}: slope of CPU time less 1",
                abs(slope - 1.0),
                SLOPE,
                slope=slope,
                from_decade_to_decade="/".join(f"{one:.2f}" for one in slopes),
            ),
        ]
    return goals


def _identify(recording: Path) -> dict[str, float]:
    """One process: its CPU time [s] and its peak memory [MiB]."""
    with tempfile.TemporaryDirectory() as out:
        words = ["identify", str(recording), "--robot", str(arms.urdf("panda")), "--out", f"{out}/run", "--json"]
        command = [sys.executable, "-c", RUN, *words, *PINNED]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode or json.loads(done.stdout.splitlines()[-1])["code"] not in (0, 1):
        raise SystemExit(f"identify failed on {recording}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _write(folder: Path, samples: int, kind: str) -> Path:
    """A recording; torques in blocks, as the regressor of all would not fit into memory."""
    file = folder / (f"{samples}.npz" if kind == "npz" else f"bag_{samples}")
    if file.exists():
        return file
    regressor = arms.with_friction("panda")
    model = regressor.model
    t, series, parameters = np.arange(samples) / RATE, draw_random_fourier(model, 1), arms.true_parameters(model)
    rng = np.random.default_rng(1)
    tau = draw_colored_noise(arms.NOISE, samples, RATE, NOISE_TIME_S, rng)
    q, dq = np.empty_like(tau), np.empty_like(tau)
    for start in range(0, samples, BLOCK):
        part = slice(start, start + BLOCK)
        q[:, part], dq[:, part], ddq, _ = series.evaluate(t[part])
        tau[:, part] += regressor.torque(Motion(q[:, part], dq[:, part], ddq), parameters)
    q += POSITION_NOISE * rng.normal(size=q.shape)
    dq += VELOCITY_NOISE * rng.normal(size=q.shape)
    if kind == "npz":
        write_npz(file, model.joint_names, t, q=q.T, dq=dq.T, tau=tau.T)
        return file
    stamps = 1_700_000_000_000_000_000 + np.round(t * 1e9).astype(np.int64)
    write_joint_state_bag(file, "/joint_states", model.joint_names, StampedSamples(stamps, q.T, dq.T, tau.T))
    return file


if __name__ == "__main__":
    script(measure)
