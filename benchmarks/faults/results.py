# SPDX-License-Identifier: Apache-2.0
"""Table of promise, fault, runs and result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Result:
    """Result of one promise under one fault.

    Attributes:
        promise: what must hold.
        fault: what was injected.
        runs: number of injections; 0 if the part was not run.
        failures: runs in which the promise was broken.
        worst: worst figure of all runs, None where the promise is a plain yes or no.
        bound: largest figure that keeps the promise.
        unit: unit of `worst` and `bound`.
        notes: reproductions of failures, or the reason why it was not run.
    """

    promise: str
    fault: str
    runs: int
    failures: int
    worst: float | None = None
    bound: float | None = None
    unit: str = ""
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """`kept`, `BROKEN` or `not run`."""
        if self.runs == 0:
            return "not run"
        return "BROKEN" if self.failures else "kept"


def markdown(results: Sequence[Result]) -> str:
    """Markdown table of the results, failures explained below it."""
    lines = [
        "| promise | fault | runs | failures | worst | bound | result |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for result in results:
        figures = (_figure(result.worst, result.unit), _figure(result.bound, result.unit))
        cells = (result.promise, result.fault, result.runs, result.failures, *figures, result.verdict)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    noted = [result for result in results if result.notes]
    if noted:
        lines.append("")
        for result in noted:
            lines.append(f"- {result.promise}; {result.fault} ({result.verdict}):")
            lines += [f"  - {note}" for note in result.notes]
    return "\n".join(lines) + "\n"


def write(path: Path, results: Sequence[Result], scale: float, minutes: float) -> None:
    """Write the results of a part as JSON.

    Args:
        path: the file; an older one is replaced.
        results: rows of the table.
        scale: share of the full number of runs.
        minutes: duration [min].
    """
    rows = [{**asdict(result), "result": result.verdict} for result in results]
    content = {"scale": scale, "minutes": round(minutes, 1), "results": rows}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> list[Result]:
    """Read the results of a part; see `write`."""
    names = [field.name for field in fields(Result)]
    rows = json.loads(path.read_text(encoding="utf-8"))["results"]
    return [Result(**{**{name: row[name] for name in names}, "notes": tuple(row["notes"])}) for row in rows]


def summary(paths: Iterable[Path]) -> str:
    """Markdown of the parts that were run, with the duration and scale of each, and their table.

    Args:
        paths: files of the parts; those that are missing are left out.
    """
    present = [path for path in paths if path.is_file()]
    head = ""
    for path in present:
        about = json.loads(path.read_text(encoding="utf-8"))
        head += f"- {path.stem}: {about['minutes']:g} minutes, {about['scale']:g} of the full number of runs\n"
    return f"{head}\n{markdown([result for path in present for result in read(path)])}"


def _figure(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.3g} {unit}".strip()
