# SPDX-License-Identifier: Apache-2.0
"""What a reproduction answers: the figures of a paper, printed and found here, and what that means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from robot_dyn_id.report.drawing import Drawing

Better = Literal["lower", "higher", "same"]
"""Which side of a published figure is the better one; `same`: neither, it is to be met."""

Progress = Callable[[str], None]
"""Tells what is being done, a line at a time."""


@dataclass(frozen=True)
class Figure:
    """One figure of a paper, or one claim about its method.

    The verdict is computed. Against a published figure: `beaten` on its better side, `reproduced` where both agree
    within `agreement`, `not reproducible` otherwise. Without one, against what is asked: `holds`, `does not hold`.

    Attributes:
        name: with its unit.
        ours: what comes out here; NaN if nothing does.
        published: what the paper prints; None if it prints nothing.
        better: which side is the better one.
        agreement: largest difference from the published figure that is still the same figure: its last digit, or the
            scatter of what is compared; in its unit.
        asked: what this package demands of itself, on the side of `better` (`same`: within `agreement`); None:
            nothing, the figure is only shown.
        why: in what the two differ, or how ours was found: one sentence.
    """

    name: str
    ours: float
    published: float | None = None
    better: Better = "same"
    agreement: float = 0.0
    asked: float | None = None
    why: str = ""

    @property
    def verdict(self) -> str:
        """`beaten`, `reproduced`, `not reproducible`; `holds`, `does not hold`; or `shown`."""
        if self.published is not None:
            if abs(self.ours - self.published) <= self.agreement:
                return "reproduced"
            return "beaten" if self.better != "same" and self._reaches(self.published) else "not reproducible"
        if self.asked is None:
            return "shown"
        return "holds" if self._reaches(self.asked) else "does not hold"

    @property
    def missed(self) -> bool:
        """Whether this falls short of what is asked."""
        return self.asked is not None and not self._reaches(self.asked)

    def _reaches(self, mark: float) -> bool:
        if math.isnan(self.ours):
            return False
        if self.better == "same":
            return abs(self.ours - mark) <= self.agreement
        return self.ours <= mark if self.better == "lower" else self.ours >= mark


@dataclass(frozen=True)
class Reproduction:
    """A paper's figures beside ours.

    Attributes:
        paper: name of its module.
        source: authors, journal, year.
        figures: in the order of the paper.
        notes: what a reader must know of the comparison.
        drawings: what corresponds to the figures of the paper.
    """

    paper: str
    source: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()
    drawings: tuple[Drawing, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Extent:
    """How much is run.

    Attributes:
        seeds: repetitions with other noise, at least 1.
        full: also the slow baselines.
    """

    seeds: int = 1
    full: bool = False
