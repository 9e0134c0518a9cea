# SPDX-License-Identifier: Apache-2.0
"""The fault suite: `python -m faults`, in `benchmarks/`."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
# Fast DDS takes shared memory of a process that was held up for a second for that of a dead one, and makes it again:
# the process hears nothing from then on.
os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 101))

from faults import ROOT
from faults.results import Result, read, summary, write

sys.path.insert(0, str(ROOT / "test"))

RUNS = 20
"""Runs of each fault in the full form."""

RATE = 1000.0
"""Rate of the joint states where all nodes run [Hz]: they take two cores for themselves."""


def main() -> int:
    """Run the chosen parts, and write the table of these and of those whose results are in the folder."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full number of runs, at least one each")
    parser.add_argument("--out", type=Path, default=Path("faults-report"), help="folder of the results")
    parser.add_argument("--rate", type=float, default=RATE, help="rate of the joint states of `memory` [Hz]")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for part in given.parts:
            print(f"{part}:", flush=True)
            begin, place = time.monotonic(), Path(folder) / part
            try:
                results = PARTS[part](place, given)
            finally:
                _keep_logs(place, given.out / "logs")
            write(given.out / f"{part}.json", results, given.scale, (time.monotonic() - begin) / 60.0)
    table = summary(given.out / f"{part}.json" for part in PARTS)
    (given.out / "faults.md").write_text(table, encoding="utf-8")
    print(table)
    return int(any(result.failures for part in given.parts for result in read(given.out / f"{part}.json")))


def _keep_logs(folder: Path, out: Path) -> None:
    """Copy what the nodes have logged, by which failures are explained."""
    for log in folder.rglob("*.log"):
        kept = out / log.relative_to(folder.parent)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, kept)


@contextlib.contextmanager
def _world() -> Iterator[Any]:
    from support.ros_world import World

    world = World()
    try:
        yield world
    finally:
        world.close()


def _runs(full: int, scale: float) -> int:
    return max(1, round(full * scale))


def _fuzz(folder: Path, given: argparse.Namespace) -> list[Result]:
    from faults import fuzz

    folder.mkdir()
    fuzz.prepare(folder)
    total = sum(target.share for target in fuzz.TARGETS.values())
    results = []
    for name, target in fuzz.TARGETS.items():
        result, _ = fuzz.run(name, max(20, round(10_000 * given.scale * target.share / total)), folder)
        print(f"  {result.fault}: {result.verdict}, {result.failures} of {result.runs}", flush=True)
        results.append(result)
    return results


def _kills(folder: Path, given: argparse.Namespace) -> list[Result]:
    from faults import kills

    with _world() as world:
        return kills.run(world, folder, _runs(RUNS, given.scale))


def _streams(folder: Path, given: argparse.Namespace) -> list[Result]:
    from faults import streams

    with _world() as world:
        return streams.run(world, folder, _runs(RUNS, given.scale))


def _subscriptions(folder: Path, given: argparse.Namespace) -> list[Result]:
    from faults import subscriptions

    folder.mkdir()
    with _world() as world:
        return subscriptions.run(world, folder, _runs(1000, given.scale))


def _disks(folder: Path, given: argparse.Namespace) -> list[Result]:
    from faults import disks

    with _world() as world:
        return disks.run(world, folder, _runs(RUNS, given.scale))


def _namespaces(folder: Path, given: argparse.Namespace) -> list[Result]:
    from faults import endurance

    with _world() as world:
        return endurance.namespaces(world, folder, _runs(RUNS, given.scale))


def _memory(folder: Path, given: argparse.Namespace) -> list[Result]:
    from faults import endurance

    with _world() as world:
        return endurance.memory(world, folder, max(20.0, 1800.0 * given.scale), given.rate)


PARTS: dict[str, Callable[[Path, argparse.Namespace], list[Result]]] = {
    "fuzz": _fuzz,
    "kills": _kills,
    "streams": _streams,
    "subscriptions": _subscriptions,
    "disks": _disks,
    "namespaces": _namespaces,
    "memory": _memory,
}
"""Parts of the suite, by name."""

if __name__ == "__main__":
    sys.exit(main())
