# SPDX-License-Identifier: Apache-2.0
"""The design of an excitation: the motion within all requirements that tells most about the parameters."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.design.objectives import condition, condition_raw
from robot_dyn_id.excitation.design.optimizers import Search, SearchEffort
from robot_dyn_id.excitation.design.problem import DesignProblem
from robot_dyn_id.excitation.design.requirement import Margin
from robot_dyn_id.excitation.trajectory import Excitation
from robot_dyn_id.progress import Progress, ignore_progress

SMALLER = (0.999, 0.99, 0.95, 0.8, 0.3)
"""Shares of a motion that breaks a requirement which no joint keeps by itself (efforts, clearance), tried in turn."""

MENDED = 0.3
"""Excess, as a share of the limit, of which that may be worth the trouble."""

HALVINGS = 3
"""Of the interval in which the largest share of such a motion that keeps to everything is looked for."""

COMPARED = 200
"""Random motions that a design is compared with."""


@dataclass(frozen=True)
class Design:
    """A motion, what it tells and what it leaves of the limits.

    Attributes:
        excitation: one cycle.
        coefficients: of the parametrization, shape (size,).
        figure: of the objective.
        random_figures: of random motions, each joint scaled to its first limit, ascending.
        condition_numbers: of the stacked, noise-weighted base regressor by scaling: `none`, `columns`.
        standard_deviations: of every parameter in its unit, the prior counted, shape (p,).
        margins: what is left of every limit, on a fine grid.
        interrupted: whether the search was ended before its end.
        evaluations: how often the objective was asked for.
        history: how the search went: evaluations so far, and the best figure then, infinite while nothing keeps to
            everything, shape (2, improvements).
        seconds: that it took.
    """

    excitation: Excitation
    coefficients: Array
    figure: float
    random_figures: Array
    condition_numbers: dict[str, float]
    standard_deviations: Array
    margins: tuple[Margin, ...]
    interrupted: bool
    evaluations: int
    history: Array
    seconds: float

    @property
    def feasible(self) -> bool:
        """Whether every requirement is kept."""
        return all(margin.kept for margin in self.margins)


@dataclass
class _Best:
    """The best motion so far: one that keeps to everything, or the one that breaks the least."""

    problem: DesignProblem
    progress: Progress
    x: Array | None = None
    figure: float = np.inf
    beyond: float = np.inf
    history: list[tuple[int, float]] = field(default_factory=list)

    def offer(self, x: Array, word: str) -> None:
        """Look at coefficients, brought within the limits."""
        kept, beyond = self._within(x)
        figure = self.problem.figure(kept)
        better = figure < self.figure if beyond <= 0.0 and self.beyond <= 0.0 else beyond < self.beyond
        if better:
            self.x, self.figure, self.beyond = kept, figure, max(beyond, 0.0)
            self.history.append((len(self.problem.evaluations), figure if beyond <= 0.0 else np.inf))
        state = f"best {self.figure:.4f}" if self.beyond <= 0.0 else f"none feasible yet, {self.beyond:.3f} beyond"
        self.progress(f"{word}: {figure:.4f}; {state}")

    def _within(self, x: Array) -> tuple[Array, float]:
        """Coefficients within the joints' limits, as small as all requirements need, and how far they are beyond.

        A smaller motion need not need less: what the posture breaks, a motion about it may just keep.
        """
        kept = self.problem.brought_in(x)
        beyond = self._beyond(kept)
        if not 0.0 < beyond < MENDED:
            return kept, beyond
        largest = 1.0
        for share in SMALLER:
            best, left = self._scaled(kept, share)
            if left <= 0.0:
                return self._as_large_as_may_be(kept, best, share, largest), 0.0
            largest = share
        return (best, left) if left < beyond else (kept, beyond)

    def _as_large_as_may_be(self, x: Array, best: Array, least: float, most: float) -> Array:
        """Between a share of the motion that keeps to everything and one that does not."""
        for _ in range(HALVINGS):
            middle = 0.5 * (least + most)
            smaller, left = self._scaled(x, middle)
            if left <= 0.0:
                best, least = smaller, middle
            else:
                most = middle
        return best

    def _scaled(self, x: Array, share: float) -> tuple[Array, float]:
        scaled = self.problem.parametrization.scaled(x, np.full(len(self.problem.limits.joint_names), share))
        return scaled, self._beyond(scaled)

    def _beyond(self, x: Array) -> float:
        """How far the worst limit is exceeded, as a share of it; 0 where all are kept."""
        broken = [margin for margin in self.problem.margins(x) if not margin.kept]
        return max((-margin.margin / max(abs(margin.limit), 0.1) for margin in broken), default=0.0)


def design(
    problem: DesignProblem,
    search: Search,
    seed: int = 1,
    effort: SearchEffort | None = None,
    progress: Progress = ignore_progress,
) -> Design:
    """Search for the best motion; an interrupt (Ctrl-C) ends the search with the best so far.

    Args:
        problem: what is wanted.
        search: one of `OPTIMIZERS`.
        seed: with the same seed the same motion is found.
        effort: how much is spent.
        progress: callback that receives one status line per stage.

    Raises:
        MotionError: no motion that keeps to everything was found: names the limits that the best one breaks.
        UsageError: the search cannot be had.
    """
    began, rng, interrupted = time.perf_counter(), np.random.default_rng(seed), False
    compared = np.sort([problem.figure(problem.parametrization.random(rng, 1.0)) for _ in range(COMPARED)])
    progress(f"best of {COMPARED} random motions: {compared[0]:.4f}")
    best = _Best(problem, progress)
    try:
        for x, word in search(problem, rng, effort or SearchEffort()):
            best.offer(x, word)
    except KeyboardInterrupt:
        interrupted = True
        if best.x is None:
            raise
    if best.x is None or not np.isfinite(best.figure):
        raise MotionError(
            "no motion of this form tells all parameters: choose another form, more harmonics or a longer period, or "
            "leave terms out"
        )
    margins = problem.margins(best.x)
    broken = [str(margin) for margin in margins if not margin.kept]
    if broken:
        raise MotionError(f"no motion that keeps to everything was found; the nearest breaks {'; '.join(broken)}")
    return _result(best, best.x, compared, margins, interrupted, time.perf_counter() - began)


def _result(
    best: _Best, x: Array, compared: Array, margins: tuple[Margin, ...], interrupted: bool, seconds: float
) -> Design:
    problem = best.problem
    information = problem.told(x)
    return Design(
        problem.parametrization.trajectory(x),
        x,
        problem.figure(x),
        compared,
        {name: float(np.exp(of(information).value)) for name, of in (("none", condition_raw), ("columns", condition))},
        np.sqrt(np.linalg.inv(information + problem.prior).diagonal()),
        margins,
        interrupted,
        len(problem.evaluations),
        np.array(best.history).T,
        seconds,
    )
