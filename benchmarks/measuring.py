# SPDX-License-Identifier: Apache-2.0
"""Measurement of benchmarks: ratios of CPU times of contenders that take turns, against goals.

Machines are shared and clocks change: no figure of one run is compared with one of another. Every contender runs once
unmeasured (compilers, caches, page faults), then all of them in turn; the medians of their CPU times count. The
environment allows one thread (`one_thread`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Goal = dict[str, Any]
"""`name`, `ratio`, `goal`, `met`, and details; `met` is None, and `why` gives the reason, where nothing was
measured."""


def one_thread() -> None:
    """Start this program again with one thread for every library; they read the number when they are loaded."""
    if any(os.environ.get(name) != "1" for name in THREADS):
        environment = os.environ | dict.fromkeys(THREADS, "1")
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def interleaved(contenders: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """Median CPU time of each contender [s], user and system."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(repeats):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: median(values) for name, values in times.items()}


def at_least(name: str, ratio: float, goal: float, **details: Any) -> Goal:
    """A figure that should be large."""
    return {"name": name, "ratio": float(ratio), "goal": goal, "met": bool(ratio >= goal), **details}


def at_most(name: str, ratio: float, goal: float, **details: Any) -> Goal:
    """A figure that should be small."""
    return {"name": name, "ratio": float(ratio), "goal": goal, "met": bool(ratio <= goal), "at_most": True, **details}


def skipped(name: str, goal: float, why: str) -> Goal:
    """A goal that cannot be measured here."""
    return {"name": name, "ratio": None, "goal": goal, "met": None, "why": why}


def table(goals: list[Goal]) -> str:
    """One line per goal, the details behind."""
    lines = []
    for goal in goals:
        sense = "<=" if goal.get("at_most") else ">="
        figure = "skipped" if goal["met"] is None else f"{goal['ratio']:.3g}"
        word = {True: "met", False: "MISSED", None: ""}[goal["met"]]
        known = ("name", "ratio", "goal", "met", "at_most")
        details = ", ".join(f"{key} {_short(value)}" for key, value in goal.items() if key not in known)
        lines.append(f"{goal['name']:<76} {figure:>8} {sense} {goal['goal']:<5g} {word:<6} {details}")
    return "\n".join(lines)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def append_row(file: Path, row: Mapping[str, Any]) -> None:
    """Append a result to a file of JSON lines, on a line of its own also if the last one was cut off."""
    complete = not file.exists() or file.read_bytes()[-1:] in (b"", b"\n")
    with file.open("a", encoding="utf-8") as stream:
        stream.write(("" if complete else "\n") + json.dumps(row) + "\n")


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Results in a file of JSON lines, without lines that were cut off; none without the file."""
    rows = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def tabulate_draws(
    description: str, name: str, run: Callable[[Path, int], None], write: Callable[[list[dict[str, Any]]], str]
) -> None:
    """Main function of a study of many draws, which goes on where it ended.

    Args:
        description: documentation of the study.
        name: usual name of its record.
        run: appends the draws that the record lacks, up to a number.
        write: page with the table of the rows.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--record", type=Path, default=Path(f"{name}.jsonl"))
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    run(given.record, given.draws)
    if given.table:
        given.table.write_text(write(read_rows(given.record)), encoding="utf-8")


def script(measure: Callable[[], list[Goal]]) -> None:
    """Main function of a benchmark that is run alone."""
    one_thread()
    print(table(measure()))
