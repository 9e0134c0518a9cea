# SPDX-License-Identifier: Apache-2.0
"""The mutation suite: `python -m mutation`, in `benchmarks/`."""

from __future__ import annotations

from measuring import append_row, one_thread, read_rows

if __name__ == "__main__":
    one_thread()

import argparse
import time
from pathlib import Path

from mutation.catalog import FAULTS
from mutation.clean import ARMS
from mutation.schedule import list_clean, list_faults, mixed
from mutation.table import CLEAN, Job, Row, markdown, run


def main() -> None:
    """Run the chosen cases that have not been run, and write the table of all that have."""
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--faults", nargs="*", choices=list(FAULTS), default=list(FAULTS), metavar="FAULT")
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS), metavar="ARM", help="a shard")
    parser.add_argument("--rounds", type=int, default=len(ARMS), help="arms for each fault and strength, in rotation")
    parser.add_argument("--pinned", action="store_true", help="identify a pinned model instead of a chosen one")
    parser.add_argument(
        "--whole", action="store_true", help="identify a model also of recordings whose examination names the fault"
    )
    parser.add_argument("--clean", type=int, default=25, help="clean recordings of each arm (default: %(default)s)")
    parser.add_argument("--strengths", type=int, nargs="+", choices=(0, 1, 2), default=[0, 1, 2])
    parser.add_argument("--first", type=int, default=0, help="first seed of the arms")
    parser.add_argument("--minutes", type=float, default=1e9, help="no case is started after that time")
    parser.add_argument("--out", type=Path, default=Path("mutation-report"), help="folder of cases*.jsonl and table.md")
    parser.add_argument("--shard", default="", help="name of this process, if several write to the folder")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    stop = time.monotonic() + 60 * given.minutes
    model = Job(CLEAN, "", 0, given.first, given.pinned, given.whole)
    faults = list_faults(given.faults, given.strengths, given.rounds, model)
    clean = list_clean(given.clean, model)
    done = {row.job for row in _read(given.out)}
    for job in mixed(faults, clean):
        if job in done or job.arm not in given.arms or time.monotonic() > stop:
            continue
        row = run(job)
        append_row(given.out / f"cases{given.shard}.jsonl", row.summary())
        print(row.line(), flush=True)
    text = markdown(_read(given.out))
    (given.out / "table.md").write_text(text, encoding="utf-8")
    print(text)


def _read(folder: Path) -> list[Row]:
    """Rows of all processes that have written to a folder; a line that was cut off is left out."""
    return [Row.from_summary(row) for path in sorted(folder.glob("cases*.jsonl")) for row in read_rows(path)]


if __name__ == "__main__":
    main()
