# SPDX-License-Identifier: Apache-2.0
"""Progress of long computations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """Stage of a computation, and how much of it is done; `str` makes the status line.

    Attributes:
        text: name of the stage; all reports of one stage have the same.
        done: amount of work that is done, in units of `total`.
        total: amount of work of the stage; None if it is not known beforehand.
        detail: intermediate result, such as the best value of a search.
    """

    text: str
    done: float = 0.0
    total: float | None = None
    detail: str = ""

    @property
    def fraction(self) -> float | None:
        """Fraction of the stage that is done, from 0 to 1; None if the total is not known."""
        return None if not self.total else min(max(self.done / self.total, 0.0), 1.0)

    def __str__(self) -> str:
        """One line: name, amount, detail."""
        amount = f": {self.done:.0f} of {self.total:.0f}" if self.total else ""
        return f"{self.text}{amount}{f'; {self.detail}' if self.detail else ''}"


Progress = Callable[[Stage], None]
"""Callback that receives every stage at its begin, and again as its work is done."""


def ignore_progress(stage: Stage) -> None:
    """Callback that does nothing."""


STAGES = (
    ("surveying the recordings", 0.02),
    ("comparing efforts and motion", 0.1),
    ("choosing the motion filter", 0.2),
    ("comparing models", 0.3),
    ("repeating the choice", 0.4),
    ("finding the base parameters", 0.5),
    ("estimating", 0.55),
    ("cross-validating", 0.7),
    ("validating", 0.8),
    ("writing", 0.95),
)
"""Beginnings of the names of stages of an identification, and the fraction of the work before each."""


def estimate_fraction(stage: Stage) -> float:
    """Fraction of an identification that is done, 0 to 1; 0 in a stage that is not one of `STAGES`."""
    places = [place for place, (words, _) in enumerate(STAGES) if stage.text.startswith(words)]
    if not places:
        return 0.0
    begin = STAGES[places[-1]][1]
    end = STAGES[places[-1] + 1][1] if places[-1] + 1 < len(STAGES) else 1.0
    return begin + (stage.fraction or 0.0) * (end - begin)
