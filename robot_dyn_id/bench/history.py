# SPDX-License-Identifier: Apache-2.0
"""Results of a run as JSON, and comparison with an earlier run on the same computer."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from robot_dyn_id.bench.growth import GrowthPoint
from robot_dyn_id.bench.measuring import BenchFigure
from robot_dyn_id.errors import InputError
from robot_dyn_id.version import __version__

FORMAT = 1
LIBRARIES = ("numpy", "scipy", "numba", "pin", "figaroh", "mujoco")

LEAST_CHANGE = 0.05
"""Relative change that is reported at least, as single runs have no spread."""

UNREPEATED_SPREAD = 0.1
"""Spread of a figure that was measured once."""


@dataclass(frozen=True)
class BenchRun:
    """Figures of one run, and what they were measured on.

    Attributes:
        version: version of this package.
        computer: processor and system.
        libraries: versions of the libraries and peers that are installed.
        quick: whether it was the quick form.
        samples: samples of the motion that kernels were timed on.
        figures: the figures.
        growth: growth of the cost, see `bench.growth`.
    """

    version: str
    computer: str
    libraries: dict[str, str]
    quick: bool
    figures: tuple[BenchFigure, ...]
    growth: dict[str, list[GrowthPoint]]
    samples: int = 0

    @classmethod
    def from_figures(
        cls, figures: Sequence[BenchFigure], growth: dict[str, list[GrowthPoint]], quick: bool, samples: int = 0
    ) -> BenchRun:
        """A run on this computer."""
        found = {}
        for name in LIBRARIES:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return cls(__version__, _computer(), found, quick, tuple(figures), growth, samples)

    def unlike(self, other: BenchRun) -> tuple[str, ...]:
        """Attributes in which another run differs, so that its figures are not compared: computer, form, samples."""
        return tuple(name for name in ("computer", "quick", "samples") if getattr(self, name) != getattr(other, name))

    def completed(self, other: BenchRun) -> BenchRun:
        """The run with the figures of another one where it has none of its own."""
        names = {figure.name for figure in self.figures}
        rest = tuple(figure for figure in other.figures if figure.name not in names)
        return replace(self, figures=(*self.figures, *rest), growth={**other.growth, **self.growth})

    def without(self, slowdowns: Sequence[Slowdown], other: BenchRun) -> BenchRun:
        """The run with the figures of another one where it is slower: they stay what later runs are compared with."""
        worse = {slowdown.name for slowdown in slowdowns}
        earlier = {figure.name: figure for figure in other.figures if figure.name in worse}
        return replace(self, figures=tuple(earlier.get(figure.name, figure) for figure in self.figures))

    def summary(self) -> dict[str, Any]:
        """Content of the file."""
        return {
            "format": FORMAT,
            "version": self.version,
            "computer": self.computer,
            "libraries": self.libraries,
            "quick": self.quick,
            "samples": self.samples,
            "goals": [figure.summary() for figure in self.figures],
            "growth": {what: [vars(point) for point in points] for what, points in self.growth.items()},
        }


def _computer() -> str:
    """Processor and system."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = (line.partition(":") for line in info.read_text(encoding="utf-8").splitlines())
        model = next((value.strip() for key, _, value in lines if key.strip() == "model name"), model)
    return f"{model}, {platform.system()}"


def read_run(path: Path) -> BenchRun:
    """Read a run that was kept.

    Raises:
        InputError: it cannot be read, or is not one of this format.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError
        names = [item.name for item in fields(BenchFigure) if item.name != "value"]
        figures = tuple(
            BenchFigure(value=goal["ratio"], **{name: goal[name] for name in names}) for goal in content["goals"]
        )
        growth = {what: [GrowthPoint(**point) for point in points] for what, points in content["growth"].items()}
        known = {name: content[name] for name in ("version", "computer", "libraries", "quick")}
        return BenchRun(**known, figures=figures, growth=growth, samples=int(content.get("samples", 0)))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a result of bench of this version; run bench again without it") from error


@dataclass(frozen=True)
class Slowdown:
    """A figure that is worse than in an earlier run by more than the spread of both.

    Attributes:
        name: name of the figure.
        before: earlier value.
        now: present value.
        unit: its unit.
        spread: relative spread of both.
    """

    name: str
    before: float
    now: float
    unit: str
    spread: float


def list_slower(run: BenchRun, last: BenchRun) -> list[Slowdown]:
    """Figures that got worse by more than the spread of both runs, the worst first; none of runs that are unlike."""
    if run.unlike(last):
        return []
    earlier = {figure.name: figure for figure in last.figures}
    found = []
    for figure in run.figures:
        before = earlier.get(figure.name)
        if before is None or not before.value or not figure.value or before.value < 0.0 or figure.value < 0.0:
            continue
        spread = max(LEAST_CHANGE, sum(one.spread or UNREPEATED_SPREAD for one in (figure, before)))
        worse = figure.value / before.value if _small_is_good(figure) else before.value / figure.value
        if worse > 1.0 + spread:
            found.append((worse, Slowdown(figure.name, before.value, figure.value, figure.unit, spread)))
    return [slowdown for _, slowdown in sorted(found, key=lambda one: -one[0])]


def _small_is_good(figure: BenchFigure) -> bool:
    return figure.at_most or figure.unit != "times"
