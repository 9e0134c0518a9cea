# SPDX-License-Identifier: Apache-2.0
"""Measured robots of public repositories: `python -m robots`, in `benchmarks/`."""

from __future__ import annotations

from measuring import append_row, one_thread, read_rows

if __name__ == "__main__":
    one_thread()

import argparse
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from robots.checkout import REMOTE, Checkout, UnreachableError
from robots.contenders import NOT_RUN, Result, run_figaroh, run_least_squares, run_plain
from robots.sets import SETS, RobotSet

CONTENDERS = ("least squares", "FIGAROH 1.0.2", "robot_dyn_id")

TIE = 1.02
"""Ratio of two errors up to which they are a tie."""

Row = Mapping[str, Result]
"""Results of the contenders."""


def find_files(one: RobotSet, cache: Path, data: Path | None, remote: str) -> Path:
    """Folder with the files of a robot: shared data, the cache, or fetched now.

    Raises:
        UnreachableError: they cannot be fetched.
    """
    for folder in ([data / one.place] if data else []) + [cache / one.place]:
        if all((folder / name).exists() for name in one.files):
            return folder
    source = Checkout.clone(one.repository, one.commit, cache / "clones", remote)
    folder = cache / one.place
    folder.mkdir(parents=True, exist_ok=True)
    one.convert(source, folder)
    return folder


def make_table(rows: Mapping[str, Row]) -> str:
    """Table of the robots, and how often this package is ahead."""
    lines = [f"| robot | {' | '.join(CONTENDERS)} | verdict |", f"|---|{'---|' * len(CONTENDERS)}---|"]
    titles = {one.name: one.robot for one in SETS}
    ahead, judged, failures = 0, 0, dict.fromkeys(CONTENDERS, 0)
    for name, results in rows.items():
        errors = {key: result.error for key, result in results.items()}
        best = min((error for error in errors.values() if math.isfinite(error)), default=math.nan)
        cells = [_bold(results[key], best) for key in CONTENDERS]
        own = results[CONTENDERS[-1]]
        ahead += own.error <= TIE * best
        judged += own.remark != NOT_RUN
        for key in CONTENDERS:
            failures[key] += not math.isfinite(errors[key]) and results[key].remark != NOT_RUN
        verdict = own.remark if math.isfinite(own.error) else ""
        lines.append(f"| `{name}`: {titles[name]} | {' | '.join(cells)} | {verdict} |")
    counted = ", ".join(f"{key} {number}" for key, number in failures.items())
    lines += ["", f"Ahead or tied (within {TIE - 1:.0%}): {ahead} of {judged}. Failures: {counted}."]
    return "\n".join(lines) + "\n"


def _bold(result: Result, best: float) -> str:
    return f"**{result.text}**" if result.error <= TIE * best else result.text


def main() -> None:
    """Run the contenders on the chosen robots, and print the table of all that have been run."""
    parser = argparse.ArgumentParser(prog="python -m robots", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--set", nargs="+", choices=[one.name for one in SETS], metavar="NAME", help="only these robots"
    )
    parser.add_argument("--contender", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), metavar="NAME")
    parser.add_argument("--cache", type=Path, default=Path("robots-cache"), help="folder of clones and converted files")
    parser.add_argument("--remote", default=REMOTE, help="address of a repository (default: %(default)s)")
    parser.add_argument("--figaroh", default="", metavar="PYTHON", help="Python in which FIGAROH 1.0.2 is installed")
    given = parser.parse_args()
    data = Path(os.environ["ROBOT_DYN_ID_DATA"]) if "ROBOT_DYN_ID_DATA" in os.environ else None
    given.cache.mkdir(parents=True, exist_ok=True)
    file = given.cache / "results.jsonl"
    runners = dict(
        zip(
            CONTENDERS,
            (run_least_squares, lambda one, folder: run_figaroh(one, folder, given.figaroh), run_plain),
            strict=True,
        )
    )
    for one in SETS:
        if given.set and one.name not in given.set:
            continue
        try:
            folder = find_files(one, given.cache, data, given.remote)
        except UnreachableError as error:
            print(f"{one.name}: not fetched: {error}", flush=True)
            continue
        for name in given.contender:
            result = runners[name](one, folder)
            append_row(file, {"set": one.name, "contender": name, "error": result.error, "remark": result.remark})
            print(f"{one.name}: {name}: {result.text} {result.remark}", flush=True)
    print(make_table(_collect(read_rows(file))))


def _collect(records: Sequence[Mapping[str, object]]) -> dict[str, Row]:
    """Latest results by robot and contender."""
    latest = {(str(r["set"]), str(r["contender"])): Result(float(str(r["error"])), str(r["remark"])) for r in records}
    names = [one.name for one in SETS if any(name == one.name for name, _ in latest)]
    return {name: {key: latest.get((name, key), Result(remark=NOT_RUN)) for key in CONTENDERS} for name in names}


if __name__ == "__main__":
    main()
