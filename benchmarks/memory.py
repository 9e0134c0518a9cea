# SPDX-License-Identifier: Apache-2.0
"""Goal 5: memory does not grow with a recording: two real bags, the second ten times the first, through `identify`.

Each run is a process of its own that reports its peak resident set at its end (VmHWM: the largest since it became this
program). A run on a short bag goes before, so that none of the two compiles a kernel.
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

import numpy as np
from arms import NOISE, true_parameters

from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag
from robot_dyn_id.simulation.sensors import draw_colored_noise

RATE, SIZES, WARM_UP = 1000.0, (100_000, 1_000_000), 20_000
GROWTH = 32.0
BLOCK = 10_000
NOISE_TIME = 0.1

RUN = """
import json, sys, time
from robot_dyn_id.cli import main
start = time.monotonic()
code = main(sys.argv[1:])
wall = time.monotonic() - start
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"code": code, "mib": int(peak) / 1024, "cpu": time.process_time(), "wall": wall}))
"""


def measure() -> list[Goal]:
    """Write, identify, compare."""
    if not Path("/proc/self/status").is_file():
        raise SystemExit("memory.py reads /proc, which is Linux's")
    with tempfile.TemporaryDirectory(prefix="robot_dyn_id_memory_") as folder:
        runs = {samples: _identified(Path(folder), samples) for samples in (WARM_UP, *SIZES)}
    first, last = (runs[size] for size in SIZES)
    per_sample = (last["cpu"] - first["cpu"]) / (SIZES[1] - SIZES[0])
    return [
        at_most(
            f"memory: MiB that N={SIZES[1]:.0e} needs beyond N={SIZES[0]:.0e}".replace("e+0", "e"),
            last["mib"] - first["mib"],
            GROWTH,
            peaks_mib="/".join(f"{run['mib']:.0f}" for run in (first, last)),
            cpu_s="/".join(f"{run['cpu']:.1f}" for run in (first, last)),
            wall_s="/".join(f"{run['wall']:.1f}" for run in (first, last)),
            us_per_sample=1e6 * per_sample,
        )
    ]


def _identified(folder: Path, samples: int) -> dict[str, float]:
    """One process."""
    bag, robot = folder / f"bag_{samples}", find_shared_file("urdf/arm7.urdf")
    _write(bag, samples)
    words = ["identify", str(bag), "--robot", str(robot), "--out", str(folder / f"run_{samples}"), "--json"]
    done = subprocess.run([sys.executable, "-c", RUN, *words], check=False, capture_output=True, text=True)
    if done.returncode or json.loads(done.stdout.splitlines()[-1])["code"] not in (0, 1):
        raise SystemExit(f"identify failed on {samples} samples: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _write(bag: Path, samples: int) -> None:
    """A 7-axis arm with friction on a random motion; torques in blocks, as the regressor of all would not fit."""
    model = RobotModel.from_file(find_shared_file("urdf/arm7.urdf"))
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(), Offset())))
    t, series, parameters = np.arange(samples) / RATE, draw_random_fourier(model, 1), true_parameters(model)
    rng = np.random.default_rng(1)
    tau = draw_colored_noise(NOISE, samples, RATE, NOISE_TIME, rng)
    q, dq = np.empty_like(tau), np.empty_like(tau)
    for start in range(0, samples, BLOCK):
        part = slice(start, start + BLOCK)
        q[:, part], dq[:, part], ddq, _ = series.evaluate(t[part])
        tau[:, part] += regressor.torque(Motion(q[:, part], dq[:, part], ddq), parameters)
    q += 1e-5 * rng.normal(size=q.shape)
    dq += 1e-3 * rng.normal(size=q.shape)
    stamps = 1_700_000_000_000_000_000 + np.round(t * 1e9).astype(np.int64)
    write_joint_state_bag(bag, "/joint_states", model.joint_names, StampedSamples(stamps, q.T, dq.T, tau.T))


if __name__ == "__main__":
    script(measure)
