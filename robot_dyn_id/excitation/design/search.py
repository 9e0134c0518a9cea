# SPDX-License-Identifier: Apache-2.0
"""Design of an excitation: search for the motion with the best objective within all requirements."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.cores import one_blas_thread
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.design.objectives import condition, condition_raw
from robot_dyn_id.excitation.design.optimizers import Search, SearchEffort
from robot_dyn_id.excitation.design.problem import DesignProblem
from robot_dyn_id.excitation.design.requirement import Margin
from robot_dyn_id.excitation.trajectory import Excitation
from robot_dyn_id.progress import Progress, Stage, ignore_progress

REDUCTION_FACTORS = (0.999, 0.99, 0.95, 0.8, 0.3)
"""Amplitude factors tried in turn on motions that violate efforts, distances or other coupled requirements [-]."""

LAST_FACTORS = (0.5, 0.25, 0.1, 0.05)
"""Amplitude factors tried in turn on the best motion if no feasible one was found: close to a free center it is [-]."""

REPAIRABLE_EXCESS = 0.3
"""Largest excess relative to the limit for which a smaller amplitude is tried [-]."""

REACHED_SHARE = 0.1
"""Margin relative to a limit below which a motion is reported as limited by it [-]."""

BISECTION_STEPS = 3
"""Number of bisection steps for the largest feasible amplitude factor."""

RANDOM_MOTIONS = 200
"""Number of random motions with which a design is compared."""


@dataclass(frozen=True)
class Design:
    """Designed motion with its objective, expected uncertainties and margins.

    Attributes:
        excitation: one cycle of the motion.
        coefficients: coefficients of the parametrization, shape (size,).
        objective_value: value of the objective.
        random_objective_values: values of random motions with each joint scaled to its first limit, ascending.
        condition_numbers: condition numbers of the stacked, noise-weighted base regressor by scaling: `none`,
            `columns`.
        standard_deviations: expected standard deviation of every parameter in its unit, including the prior, shape
            (p,).
        margins: margins of all requirements on a fine grid.
        interrupted: whether the user interrupted the search.
        evaluations: number of evaluations of the objective.
        history: number of evaluations and best objective after each improvement, shape (2, improvements); infinite
            while no feasible motion is found.
        seconds: duration of the search [s].
    """

    excitation: Excitation
    coefficients: Array
    objective_value: float
    random_objective_values: Array
    condition_numbers: dict[str, float]
    standard_deviations: Array
    margins: tuple[Margin, ...]
    interrupted: bool
    evaluations: int
    history: Array
    seconds: float

    @property
    def feasible(self) -> bool:
        """Whether all requirements are satisfied."""
        return all(margin.satisfied for margin in self.margins)


@dataclass
class _Best:
    """Best motion so far: the best feasible one, or the one with the smallest violation."""

    problem: DesignProblem
    progress: Progress
    x: Array | None = None
    objective_value: float = np.inf
    violation: float = np.inf
    history: list[tuple[int, float]] = field(default_factory=list)

    def offer(self, x: Array, stage: Stage) -> None:
        """Compare coefficients, scaled into the limits, with the best so far.

        Args:
            x: coefficients, shape (size,).
            stage: stage of the search that they are from.
        """
        scaled, violation = self._scale_into_requirements(x)
        value = self.problem.objective_value(scaled)
        feasible = violation <= 0.0
        both_feasible = feasible and self.violation <= 0.0
        better = value < self.objective_value if both_feasible else violation < self.violation
        if better:
            self.x = scaled
            self.objective_value = value
            self.violation = max(violation, 0.0)
            self.history.append((len(self.problem.evaluations), value if feasible else np.inf))
        if self.violation <= 0.0:
            state = f"best {self.objective_value:.4f}"
        else:
            state = f"no feasible motion yet, limits exceeded by {self.violation:.1%}"
        self.progress(replace(stage, detail=f"{value:.4f}; {state}"))

    def shrink(self) -> None:
        """Reduce the amplitude of the best motion until it is feasible, if that is possible."""
        if self.x is None or self.violation <= 0.0:
            return
        infeasible = 1.0
        for factor in LAST_FACTORS:
            reduced, remaining = self._reduce(self.x, factor)
            if remaining <= 0.0:
                self.x, self.violation = self._maximize_amplitude(self.x, reduced, factor, infeasible), 0.0
                self.objective_value = self.problem.objective_value(self.x)
                self.history.append((len(self.problem.evaluations), self.objective_value))
                return
            infeasible = factor

    def _scale_into_requirements(self, x: Array) -> tuple[Array, float]:
        """Coefficients scaled into the motion limits, and if necessary into all requirements, with their violation.

        A smaller amplitude is not always better: the motion may be feasible although its center is not.
        """
        scaled = self.problem.scale_into_limits(x)
        violation = self._violation(scaled)
        if not 0.0 < violation < REPAIRABLE_EXCESS:
            return scaled, violation
        infeasible = 1.0
        for factor in REDUCTION_FACTORS:
            reduced, remaining = self._reduce(scaled, factor)
            if remaining <= 0.0:
                return self._maximize_amplitude(scaled, reduced, factor, infeasible), 0.0
            infeasible = factor
        return (reduced, remaining) if remaining < violation else (scaled, violation)

    def _maximize_amplitude(self, x: Array, best: Array, feasible: float, infeasible: float) -> Array:
        """Bisect between a feasible and an infeasible amplitude factor."""
        for _ in range(BISECTION_STEPS):
            middle = 0.5 * (feasible + infeasible)
            reduced, remaining = self._reduce(x, middle)
            if remaining <= 0.0:
                best, feasible = reduced, middle
            else:
                infeasible = middle
        return best

    def _reduce(self, x: Array, factor: float) -> tuple[Array, float]:
        """Coefficients with the amplitudes of all joints times a factor, and their violation."""
        reduced = self.problem.parametrization.scaled(x, np.full(len(self.problem.limits.joint_names), factor))
        return reduced, self._violation(reduced)

    def _violation(self, x: Array) -> float:
        """Largest violation of a limit relative to the limit; 0 if all are satisfied."""
        violated = [margin for margin in self.problem.margins(x) if not margin.satisfied]
        return max((-margin.margin / max(abs(margin.limit), 0.1) for margin in violated), default=0.0)


@one_blas_thread()
def design(
    problem: DesignProblem,
    search: Search,
    seed: int = 1,
    effort: SearchEffort | None = None,
    progress: Progress = ignore_progress,
) -> Design:
    """Search for the best motion; an interrupt (Ctrl-C) ends the search with the best motion so far.

    Args:
        problem: optimization problem.
        search: one of `OPTIMIZERS`.
        seed: seed of the search; the same seed yields the same motion.
        effort: effort spent on the search.
        progress: callback that receives every stage of the work.

    Raises:
        MotionError: no feasible motion was found, or none that moves all joints; names the limits that the best one
            violates or reaches.
        UsageError: the optimizer is not installed.
    """
    began = time.perf_counter()
    rng = np.random.default_rng(seed)
    interrupted = False
    progress(Stage(f"comparing {RANDOM_MOTIONS} random motions"))
    random_values = np.sort(
        [problem.objective_value(problem.parametrization.random(rng, 1.0)) for _ in range(RANDOM_MOTIONS)]
    )
    progress(Stage("searching", detail=f"best of {RANDOM_MOTIONS} random motions: {random_values[0]:.4f}"))
    best = _Best(problem, progress)
    try:
        for x, stage in search(problem, rng, effort or SearchEffort()):
            best.offer(x, stage)
        best.shrink()
    except KeyboardInterrupt:
        interrupted = True
        if best.x is None:
            raise
    if best.x is None or not np.isfinite(best.objective_value):
        raise MotionError(
            "no motion of this form makes all parameters identifiable: choose another form, more harmonics or a longer "
            "period, or fewer terms"
        )
    margins = problem.margins(best.x)
    violated = [str(margin) for margin in margins if not margin.satisfied]
    if violated:
        raise MotionError(f"no feasible motion was found; the closest one violates {'; '.join(violated)}")
    _, (q, *_) = problem.sample_finely(best.x)
    if resting := problem.limits.list_barely_moving(np.ptp(q, axis=1), problem.must_move):
        reached = [margin.name for margin in margins if margin.margin <= REACHED_SHARE * abs(margin.limit)]
        raise MotionError(
            f"the best motion that was found moves too little for friction and inertia to be identifiable: "
            f"{', '.join(resting)}; what it is limited by: {', '.join(reached) or 'its form'}"
        )
    return _make_design(best, best.x, random_values, margins, interrupted, time.perf_counter() - began)


def _make_design(
    best: _Best, x: Array, random_values: Array, margins: tuple[Margin, ...], interrupted: bool, seconds: float
) -> Design:
    problem = best.problem
    information = problem.information_matrix(x)
    return Design(
        problem.parametrization.trajectory(x),
        x,
        problem.objective_value(x),
        random_values,
        {name: float(np.exp(of(information).value)) for name, of in (("none", condition_raw), ("columns", condition))},
        np.sqrt(np.linalg.inv(information + problem.prior).diagonal()),
        margins,
        interrupted,
        len(problem.evaluations),
        np.array(best.history).T,
        seconds,
    )
