# SPDX-License-Identifier: Apache-2.0
"""Result of a reproduction: the figures of a paper, published and reproduced, with a verdict on each."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.stats import binom

from robot_dyn_id.arrays import Array
from robot_dyn_id.report.drawing import Drawing

Better = Literal["lower", "higher", "same"]
"""Side of a published figure that is an improvement; `same`: none, the figure is to be met."""

MIN_DRAWS = 20
"""Lowest number of draws of the noise that a comparison is judged by."""

SLOW_DRAWS = 5
"""Largest number of draws of the baselines that search for minutes; a study with `MIN_DRAWS` is in `benchmarks/`."""

BOUND_SHARE = 0.05
"""Largest relative distance from a bound at which a figure is at the bound: that of estimated standard deviations."""

MAX_WIDTH = 0.5
"""Largest width of the 95 % interval of a median, as a share of a reference, at which the two can be called equal.

An interval that reaches a quarter to both sides also contains figures that are a quarter smaller or larger: the more
noise, the more figures it would contain.
"""

NOT_RUN: Mapping[str, str] = {
    "search": "not run: pip install '.[search]'",
    "network": "not run: pip install '.[network]'",
    "full": "needs --full",
}
"""Verdict on a figure that was not computed, by what it needs: an extra of the package, or the full extent."""

WORDS = (
    "reproduced",
    "beaten",
    "not reproducible",
    "other conditions",
    "undecided",
    "no difference",
    "worse",
    "holds",
    "at the bound",
    "does not hold",
    "shown",
    "too few draws",
    "needs --full",
    "not run",
)
"""All verdicts, without what they are followed by."""

_MODULES = {"search": "pymoo", "network": "sklearn"}
"""Module that an extra installs."""


def find_missing_extra(extra: Literal["search", "network"], full: bool = True) -> str:
    """Key of `NOT_RUN` for a figure that needs an extra; empty if the figure can be computed.

    Args:
        extra: extra of the package that the figure needs.
        full: whether the slow baselines are run; False for a slow one outside of the full extent.
    """
    if importlib.util.find_spec(_MODULES[extra]) is None:
        return extra
    return "" if full else "full"


@dataclass(frozen=True)
class Spread:
    """Results of all draws of the noise, or of all random starts.

    A draw that failed counts with the point where it stopped, and with inf (-inf if more is better) if there is no such
    point: it is never left out.

    Attributes:
        values: one result of each draw, shape (k,), not NaN.
        failed: number of draws that did not converge.
    """

    values: Array
    failed: int = 0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: there are no draws, or a result is NaN.
        """
        if not len(self.values) or np.isnan(self.values).any():
            raise ValueError("a spread needs at least one draw, and a value for each, that of a failed one included")

    @property
    def draws(self) -> int:
        """Number of draws, those that failed included."""
        return len(self.values)

    @property
    def median(self) -> float:
        """Median over all draws."""
        return float(np.median(self.values))

    @property
    def quartiles(self) -> tuple[float, float]:
        """Lower and upper quartile, each the result of a draw."""
        low, high = np.quantile(self.values, (0.25, 0.75), method="inverted_cdf")
        return float(low), float(high)

    def median_interval(self, comparisons: int = 1) -> tuple[float, float]:
        """Compute the interval of the median from order statistics (sign test).

        Args:
            comparisons: number of intervals that are to contain their medians together with 95 % (Bonferroni).

        Returns:
            Lower and upper end; unbounded for fewer than six draws.
        """
        outside = int(binom.ppf(0.025 / comparisons, self.draws, 0.5))
        if outside == 0:
            return -math.inf, math.inf
        ranked = np.sort(self.values)
        return float(ranked[outside - 1]), float(ranked[-outside])


@dataclass(frozen=True)
class Figure:
    """One figure of a paper, or one claim about its method.

    The verdict is computed from the first of these that the figure has:

    - `missing`: the entry of `NOT_RUN`.
    - `published` or `rerun`, the result of the paper's own method: `other conditions` where `conditions` states a
      difference from the paper's; otherwise `reproduced` (`no difference` from a rerun) within the tolerance,
      or where the 95 % interval of the median contains it, and `undecided` if that interval is wider than `MAX_WIDTH`
      of it; `beaten` on its better side; `not reproducible` (`worse`) on the other. Comparisons that answer one
      question together share the 5 %.
    - `target`: `holds`, `does not hold`; `at the bound` where the target is beyond the `bound` and ours is within
      `BOUND_SHARE` of it.
    - none: `shown`.

    With noise the verdict needs the median of `MIN_DRAWS`; it is `too few draws (5 of 20)` for five.

    Attributes:
        name: name of the quantity with its unit.
        ours: value of this package, the median of a spread; NaN if there is none.
        published: value printed in the paper; None if there is none.
        better: side that is an improvement.
        agreement: tolerance: largest difference from the published figure that is still the same figure, its last
            digit; in its unit.
        target: acceptance limit of this package, on the side of `better` (`same`: within `agreement`); None for a
            figure that is only shown.
        why: one sentence on the difference between the two, or on how ours was obtained.
        rerun: value of the paper's own method, run here under the same conditions; None if it is not compared.
        conditions: difference from the paper's own conditions, such as another motion; empty if there is none.
        spread: results of all draws; None for a figure without noise.
        missing: key of `NOT_RUN` for a figure that was not computed; empty for the others.
        bound: value that nothing can be better than, such as that of Cramer and Rao; None if none is known. A target
            beyond it is not missed by a figure that is at the bound.
        comparisons: number of comparisons with noise that answer one question, this one included: with as many chances
            one of them would seem better by luck, so that each has a wider interval.
    """

    name: str
    ours: float
    published: float | None = None
    better: Better = "same"
    agreement: float = 0.0
    target: float | None = None
    why: str = ""
    rerun: float | None = None
    conditions: str = ""
    spread: Spread | None = None
    missing: str = ""
    bound: float | None = None
    comparisons: int = 1

    @classmethod
    def from_spread(cls, name: str, spread: Spread, **given: Any) -> Figure:
        """Make a figure of the median over draws of the noise; keyword arguments are other attributes."""
        return cls(name, spread.median, spread=spread, **given)

    @classmethod
    def not_run(cls, name: str, missing: str, **given: Any) -> Figure:
        """Make a figure that was not computed; `missing` is a key of `NOT_RUN`, the others are attributes."""
        return cls(name, math.nan, missing=missing, **given)

    @property
    def verdict(self) -> str:
        """Verdict on the figure, see the class."""
        if self.missing:
            return NOT_RUN[self.missing]
        reference = self.published if self.published is not None else self.rerun
        if reference is not None and self.conditions:
            return "other conditions"
        if reference is None and self.target is None:
            return "shown"
        if self.spread is not None and not self.decided:
            return f"too few draws ({self.spread.draws} of {MIN_DRAWS})"
        if reference is not None:
            same, worse = (
                ("reproduced", "not reproducible") if self.published is not None else ("no difference", "worse")
            )
            if self._agrees(reference):
                return same if self._is_narrow(reference) else "undecided"
            return "beaten" if self.better != "same" and self._reaches(reference) else worse
        if self._at_bound:
            return "at the bound"
        return "holds" if not self.missed else "does not hold"

    @property
    def decided(self) -> bool:
        """Whether there are enough draws for a verdict."""
        return self.spread is None or self.spread.draws >= MIN_DRAWS

    @property
    def missed(self) -> bool:
        """Whether the target is missed."""
        if self.target is None or self.missing or not self.decided or self._at_bound:
            return False
        return not self._reaches(self.target)

    @property
    def _at_bound(self) -> bool:
        """Whether the target is beyond the bound, and this figure at the bound."""
        if self.target is None or self.bound is None or self.better == "same":
            return False
        if self.better == "lower":
            return self.target < self.bound and self.ours <= (1.0 + BOUND_SHARE) * self.bound
        return self.target > self.bound and self.ours >= (1.0 - BOUND_SHARE) * self.bound

    def _agrees(self, mark: float) -> bool:
        if abs(self.ours - mark) <= self.agreement:
            return True
        if self.spread is None:
            return False
        low, high = self.spread.median_interval(self.comparisons)
        return low <= mark <= high

    def _is_narrow(self, mark: float) -> bool:
        """Whether the interval of the median is narrow enough to call it equal to the mark."""
        if self.spread is None:
            return True
        low, high = self.spread.median_interval(self.comparisons)
        return high - low <= max(MAX_WIDTH * abs(mark), 2.0 * self.agreement)

    def _reaches(self, mark: float) -> bool:
        if math.isnan(self.ours):
            return False
        if self.better == "same":
            return abs(self.ours - mark) <= self.agreement
        return self.ours <= mark if self.better == "lower" else self.ours >= mark

    def answer(self) -> dict[str, Any]:
        """Make the entry of the figure in the answer of the command, with all that its verdict depends on.

        Numbers that are infinite or not a number are None.
        """
        spread = self.spread
        return {
            "name": self.name,
            "published": _finite(self.published),
            "rerun": _finite(self.rerun),
            "ours": _finite(self.ours),
            "asked": _finite(self.target),
            "bound": _finite(self.bound),
            "better": self.better,
            "tolerance": self.agreement,
            "draws": None if spread is None else spread.draws,
            "failed": None if spread is None else spread.failed,
            "quartiles": None if spread is None else [_finite(value) for value in spread.quartiles],
            "median_interval": None
            if spread is None
            else [_finite(value) for value in spread.median_interval(self.comparisons)],
            "comparisons": self.comparisons,
            "conditions": self.conditions,
            "verdict": self.verdict,
            "why": self.why,
        }


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


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

    def count_verdicts(self) -> dict[str, int]:
        """Number of figures with each of `WORDS` that occurs, in their order."""
        verdicts = [figure.verdict for figure in self.figures]
        counts = {word: sum(verdict.startswith(word) for verdict in verdicts) for word in WORDS}
        return {word: count for word, count in counts.items() if count}

    def table(self) -> list[str]:
        """Write the figures, the number of each verdict and notes as lines of text, as the command prints them."""
        header = ("", "published", "rerun", "ours", "quartiles", "failed", "asked", "verdict")
        rows = [header, *(_row(figure) for figure in self.figures)]
        used = [place for place in range(len(header)) if any(row[place] for row in rows[1:])]
        widths = [max(len(row[place]) for row in rows) for place in used]
        lines = [f"{self.paper}: {self.source}"]
        for row, figure in zip(rows, (None, *self.figures), strict=True):
            cells = [row[place] for place in used]
            numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(cells[1:-1], widths[1:-1], strict=True))
            lines.append(f"{cells[0]:<{widths[0]}}{numbers}  {cells[-1]}")
            if figure is not None and figure.why:
                lines.append(f"    {figure.why}")
        counts = ", ".join(f"{count} {word}" for word, count in self.count_verdicts().items())
        return [*lines, f"{len(self.figures)} figures: {counts}", *(f"note: {note}" for note in self.notes)]


def _row(figure: Figure) -> Sequence[str]:
    spread, side = figure.spread, {"lower": "<= ", "higher": ">= ", "same": ""}[figure.better]
    several = spread is not None and spread.draws > 1
    return (
        figure.name,
        _number(figure.published),
        _number(figure.rerun),
        _number(figure.ours),
        " - ".join(f"{value:.3g}" for value in spread.quartiles) if spread is not None and several else "",
        f"{spread.failed}/{spread.draws}" if spread is not None else "",
        "" if figure.target is None else side + _number(figure.target),
        f"{figure.verdict}: {figure.conditions}" if figure.verdict == "other conditions" else figure.verdict,
    )


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.5g}"


@dataclass(frozen=True)
class Extent:
    """Extent of a reproduction.

    Attributes:
        seeds: number of repetitions with different noise, at least 1.
        full: whether the slow baselines are run too.
    """

    seeds: int = 1
    full: bool = False

    @property
    def slow_seeds(self) -> int:
        """Number of repetitions of the baselines that search for minutes."""
        return min(self.seeds, SLOW_DRAWS)
