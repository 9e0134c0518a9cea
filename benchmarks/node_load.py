# SPDX-License-Identifier: Apache-2.0
"""Load of the nodes of `simulation.launch.py` at 1 kHz, an arm of seven joints in motion: as processes, and composed.

Shares of a core by CPU time, which other programs raise as they share caches, but not as waiting does; memory is
resident. Each node has the parameters of `config/arm7.yaml`, but for the rate of the joint states.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from measuring import Goal, at_most, script
from simulator_rate import cpu_seconds

from robot_dyn_id.nodes.runtime.isolation import keep_to_this_host

ROOT = Path(__file__).resolve().parents[1]
CONTROLLER = "joint_trajectory_controller"
NODES: dict[str, dict[str, object]] = {
    "simulator": {"urdf": ROOT / "urdf/arm7.urdf"},
    "excitation_publisher": {
        "urdf": ROOT / "urdf/arm7.urdf",
        "start": True,
        "rehearsal": False,
        "command_topic": f"{CONTROLLER}/joint_trajectory",
        "command_action": f"{CONTROLLER}/follow_joint_trajectory",
    },
    "recorder": {"folder": "bags"},
    "identifier": {"folder": "runs"},
    "torque_residual_monitor": {},
}
"""Parameters by node, as the launch file gives them."""

SETTLING_S, SECONDS = 15.0, 15.0
"""Time from the start to the motion, and of the measurement within its 30 s [s]."""

RUN = "import sys; from robot_dyn_id.nodes.starting import start; start({name!r})"


@contextmanager
def started(commands: Mapping[str, Sequence[str]], folder: Path) -> Iterator[dict[str, int]]:
    """Processes by name, which end with SIGINT."""
    processes = {
        name: subprocess.Popen(
            [sys.executable, "-c", RUN.format(name=name), *words], cwd=folder, stderr=subprocess.DEVNULL
        )
        for name, words in commands.items()
    }
    try:
        yield {name: process.pid for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGINT)
        for process in processes.values():
            process.wait(60)


def resident_mib(process: int) -> float:
    """Resident memory of a process [MiB]."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def measure_load(commands: Mapping[str, Sequence[str]], folder: Path) -> dict[str, tuple[float, float]]:
    """Share of a core and resident memory [MiB] of each process while the arm moves."""
    with started(commands, folder) as processes:
        time.sleep(SETTLING_S)
        before = {name: cpu_seconds(process) for name, process in processes.items()}
        begin = time.monotonic()
        time.sleep(SECONDS)
        passed = time.monotonic() - begin
        return {
            name: ((cpu_seconds(process) - before[name]) / passed, resident_mib(process))
            for name, process in processes.items()
        }


def measure() -> list[Goal]:
    """One run of each."""
    keep_to_this_host(listen=False)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(prefix="node-load-") as scratch:
        file, folders = Path(scratch) / "arm7.yaml", [Path(scratch) / name for name in ("apart", "composed")]
        for folder in folders:
            folder.mkdir()
        text = (ROOT / "config/arm7.yaml").read_text(encoding="utf-8")
        file.write_text(text.replace("publish_rate: 200.0", "publish_rate: 1000.0"), encoding="utf-8")
        words = {
            name: [
                *("--ros-args", "--params-file", str(file)),
                *(word for key, value in options.items() for word in ("-p", f"{key}:={value!s}")),
            ]
            for name, options in NODES.items()
        }
        apart = measure_load(words, folders[0])
        composed = [word for name, own in words.items() for word in ("--node", name, *own)]
        ((share, memory),) = measure_load({"composed": composed}, folders[1]).values()
    return [
        *(
            at_most(f"{name}: share of a core", used, 0.20 if name == "simulator" else 0.12, memory_mib=own)
            for name, (used, own) in apart.items()
        ),
        at_most("composed: share of a core", share, 0.80),
        at_most("composed: resident memory [MiB]", memory, 500.0),
    ]


if __name__ == "__main__":
    script(measure)
