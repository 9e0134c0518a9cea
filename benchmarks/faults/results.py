# SPDX-License-Identifier: Apache-2.0
"""Table of promise, fault, runs and result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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


def write(folder: Path, results: Sequence[Result], about: dict[str, object]) -> None:
    """Write `faults.json` and `faults.md`.

    Args:
        folder: existing folder.
        results: rows of the table.
        about: conditions of the run, such as its scale, date and computer.
    """
    content = {**about, "results": [{**asdict(result), "result": result.verdict} for result in results]}
    (folder / "faults.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    head = "".join(f"- {name}: {value}\n" for name, value in about.items())
    (folder / "faults.md").write_text(f"{head}\n{markdown(results)}", encoding="utf-8")


def _figure(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.3g} {unit}".strip()
