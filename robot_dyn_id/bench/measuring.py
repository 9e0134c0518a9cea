# SPDX-License-Identifier: Apache-2.0
"""CPU times of contenders that take turns, and figures with their goals.

Computers are shared and clocks change: a ratio of contenders of one run is comparable, a time only with its spread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

REPEATS = 5


@dataclass(frozen=True)
class Timing:
    """CPU times of repeated runs, user and system.

    Attributes:
        seconds: median [s].
        spread: half of the range, relative to the median.
    """

    seconds: float
    spread: float


@dataclass(frozen=True)
class BenchFigure:
    """Result of a measurement.

    Attributes:
        name: unique name.
        value: measured value; None if nothing was measured.
        unit: its unit; `times` for a ratio to a peer.
        goal: value to be reached; None without a goal.
        at_most: whether smaller is better.
        spread: half of the range of repeated runs, relative to the value.
        why: reason that nothing was measured.
    """

    name: str
    value: float | None
    unit: str
    goal: float | None = None
    at_most: bool = False
    spread: float = 0.0
    why: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal or a value."""
        if self.value is None or self.goal is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    def summary(self) -> dict[str, Any]:
        """Values for `--json`; `compute_ratio` is the value, in `unit`."""
        values = {"name": self.name, "ratio": self.value, "unit": self.unit, "goal": self.goal, "met": self.met}
        return {**values, "at_most": self.at_most, "spread": self.spread, "why": self.why}


def measure_interleaved(contenders: Mapping[str, Callable[[], object]], repeats: int = REPEATS) -> dict[str, Timing]:
    """CPU time of each contender, all run in turn; the first round, which may compile, is left out."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(repeats + 1):
        for name, work in contenders.items():
            start = time.process_time()
            work()
            if number:
                times[name].append(time.process_time() - start)
    return {name: measure_time(values) for name, values in times.items()}


def measure_time(seconds: list[float]) -> Timing:
    """Median and spread of repeated times [s]."""
    middle = float(np.median(seconds))
    return Timing(middle, 0.5 * (max(seconds) - min(seconds)) / middle if middle > 0.0 else 0.0)


def compute_ratio(name: str, peer: Timing | str, own: Timing, goal: float) -> BenchFigure:
    """Time of a peer over that of this package; `peer` is the reason if there is none."""
    if isinstance(peer, str):
        return BenchFigure(name, None, "times", goal, why=peer)
    return BenchFigure(name, peer.seconds / own.seconds, "times", goal, spread=peer.spread + own.spread)
