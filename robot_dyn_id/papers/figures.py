# SPDX-License-Identifier: Apache-2.0
"""Result of a reproduction: the figures of a paper, published and reproduced, with a verdict on each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from robot_dyn_id.report.drawing import Drawing

Better = Literal["lower", "higher", "same"]
"""Side of a published figure that is an improvement; `same`: none, the figure is to be met."""


@dataclass(frozen=True)
class Figure:
    """One figure of a paper, or one claim about its method.

    The verdict is computed. Against a published figure: `beaten` on its better side, `reproduced` where both agree
    within `agreement`, `not reproducible` otherwise. Without one, against
    the target: `holds`, `does not hold`.

    Attributes:
        name: name of the quantity with its unit.
        ours: value of this package; NaN if there is none.
        published: value printed in the paper; None if there is none.
        better: side that is an improvement.
        agreement: largest difference from the published figure that is still the same figure: its last digit, or the
            scatter of what is compared; in its unit.
        target: acceptance limit of this package, on the side of `better` (`same`: within `agreement`); None for a
            figure that is only shown.
        why: one sentence on the difference between the two, or on how ours was obtained.
    """

    name: str
    ours: float
    published: float | None = None
    better: Better = "same"
    agreement: float = 0.0
    target: float | None = None
    why: str = ""

    @property
    def verdict(self) -> str:
        """`beaten`, `reproduced`, `not reproducible`; `holds`, `does not hold`; or `shown`."""
        if self.published is not None:
            if abs(self.ours - self.published) <= self.agreement:
                return "reproduced"
            return "beaten" if self.better != "same" and self._reaches(self.published) else "not reproducible"
        if self.target is None:
            return "shown"
        return "holds" if self._reaches(self.target) else "does not hold"

    @property
    def missed(self) -> bool:
        """Whether the target is missed."""
        return self.target is not None and not self._reaches(self.target)

    def _reaches(self, mark: float) -> bool:
        if math.isnan(self.ours):
            return False
        if self.better == "same":
            return abs(self.ours - mark) <= self.agreement
        return self.ours <= mark if self.better == "lower" else self.ours >= mark


@dataclass(frozen=True)
class Reproduction:
    """Figures of a paper next to ours.

    Attributes:
        paper: name of its module.
        source: authors, journal, year.
        figures: figures in the order of the paper.
        notes: conditions of the comparison.
        drawings: counterparts of the paper's plots.
    """

    paper: str
    source: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()
    drawings: tuple[Drawing, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Extent:
    """Extent of a reproduction.

    Attributes:
        seeds: number of repetitions with different noise, at least 1.
        full: whether the slow baselines are run too.
    """

    seeds: int = 1
    full: bool = False
