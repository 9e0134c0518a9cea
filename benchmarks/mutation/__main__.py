# SPDX-License-Identifier: Apache-2.0
"""The mutation suite: `python -m mutation`, in `benchmarks/`."""

from __future__ import annotations

from measuring import one_thread

if __name__ == "__main__":
    one_thread()

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, product
from pathlib import Path

from mutation.catalog import FAULTS
from mutation.clean import ARMS
from mutation.table import CLEAN, Job, Row, markdown, run


def main() -> None:
    """Run the chosen faults and write the table."""
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--faults", nargs="*", choices=list(FAULTS), default=list(FAULTS), metavar="FAULT")
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS), metavar="ARM")
    parser.add_argument("--each", type=int, default=len(ARMS), help="arms for each fault and strength, taken in turn")
    parser.add_argument("--pinned", action="store_true", help="identify a pinned model instead of a chosen one")
    parser.add_argument("--clean", type=int, default=25, help="clean recordings of each arm (default: %(default)s)")
    parser.add_argument("--strengths", type=int, nargs="+", choices=(0, 1, 2), default=[0, 1, 2])
    parser.add_argument("--first", type=int, default=0, help="first seed of the arms")
    parser.add_argument("--minutes", type=float, default=1e9, help="no case is started after that time")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("mutation-report"), help="folder for cases.jsonl and table.md")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    stop = time.monotonic() + 60 * given.minutes
    turn = cycle(given.arms)
    jobs = [
        Job(fault, next(turn), strength, given.first, given.pinned)
        for strength, fault in product(given.strengths, given.faults)
        for _ in range(min(given.each, len(given.arms)))
    ]
    clean = [Job(CLEAN, arm, 0, given.first + seed, given.pinned) for seed in range(given.clean) for arm in given.arms]
    rows = []
    with open(given.out / "cases.jsonl", "w", encoding="utf-8") as file:
        for row in _rows(_mixed(jobs, clean), given.processes, stop):
            rows.append(row)
            file.write(json.dumps(row.summary()) + "\n")
            file.flush()
            print(row.line(), flush=True)
    text = markdown(rows)
    (given.out / "table.md").write_text(text, encoding="utf-8")
    print(text)


def _mixed(first: Sequence[Job], second: Sequence[Job]) -> list[Job]:
    """Both lists in one, each evenly spread, so that a run that is stopped has parts of both."""
    places = [(number / max(len(jobs), 1), job) for jobs in (first, second) for number, job in enumerate(jobs)]
    return [job for _, job in sorted(places, key=lambda pair: pair[0])]


def _rows(jobs: Sequence[Job], processes: int, stop: float) -> Iterator[Row]:
    """Rows of the jobs that are started before `stop`."""
    if processes == 1:
        for job in jobs:
            if time.monotonic() < stop:
                yield run(job)
        return
    with ProcessPoolExecutor(processes) as pool:
        queue = list(jobs)
        while queue and time.monotonic() < stop:
            batch, queue = queue[: 4 * processes], queue[4 * processes :]
            yield from pool.map(run, batch)


if __name__ == "__main__":
    main()
