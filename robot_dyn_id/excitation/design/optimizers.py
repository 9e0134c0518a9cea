# SPDX-License-Identifier: Apache-2.0
"""Optimizers of the coefficients of an excitation. A new optimizer is one function and one line in `OPTIMIZERS`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.cores import map_in_order
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.objectives import Score
from robot_dyn_id.excitation.design.problem import COARSE_SAMPLES, FINE_SAMPLES, DesignProblem
from robot_dyn_id.progress import Stage

COARSE_STEP_DIVISOR = 5
"""Divisor of the number of iterations on the coarse grid, which suffice to rank the starting points."""

POLISH_STEPS = 20
"""Maximum number of iterations of the polishing stage, which uses all samples and moves the solution to the limits."""

SMOOTH_SHARPNESS = 30.0
"""Sharpness of objectives with discontinuous gradient in the first stages; see `objectives.smooth_objective`."""

SHARP_SHARPNESS = 100.0
"""Sharpness of objectives with discontinuous gradient in the second stage."""

POLISH_SHARPNESS = 1000.0
"""Sharpness of objectives with discontinuous gradient in the polishing stage."""

POLISH_REQUIREMENT_SHARPNESS = 20000.0
"""Sharpness of the requirements in the polishing stage."""

TOLERANCE = 1e-5
"""Change of the objective between two iterations at which a search stops [-]."""

POLISH_TOLERANCE = 1e-9
"""Change of the objective between two iterations at which the polishing stage stops [-]."""

PENALTY = 1e3
"""Objective of infeasible motions in searches without constraints, above that of any feasible motion [-]."""


@dataclass(frozen=True)
class SearchEffort:
    """Effort spent on a search.

    Attributes:
        draws: number of random motions compared at the beginning.
        starts: number of the best of them that a gradient search starts from.
        finished: number of these searches that are run to convergence.
        steps: maximum number of iterations of a gradient search.
        population, generations: size and number of generations of population-based searches.
        crossover, mutation: probabilities of crossover and mutation in the genetic search.
    """

    draws: int = 200
    starts: int = 16
    finished: int = 6
    steps: int = 300
    population: int = 60
    generations: int = 150
    crossover: float = 0.9
    mutation: float = 0.9

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: a value is out of range.
        """
        if not 1 <= self.finished <= self.starts <= self.draws:
            raise UsageError(
                f"a search needs 1 <= finished <= starts <= draws, not {self.finished}, {self.starts}, {self.draws}"
            )
        if self.population < 4 or self.generations < 1 or self.steps < 1:
            raise UsageError("a search needs a population of at least 4, and at least one generation and one step")
        if not (0.0 <= self.crossover <= 1.0 and 0.0 <= self.mutation <= 1.0):
            raise UsageError("the probabilities of crossover and mutation must be within 0 and 1")


Search = Callable[[DesignProblem, np.random.Generator, SearchEffort], Iterator[tuple[Array, Stage]]]
"""Optimizer: yields candidate coefficients with the stage of the search.

The caller keeps the best candidate and may stop at any time.
"""


def search_by_gradient(
    problem: DesignProblem, rng: np.random.Generator, effort: SearchEffort
) -> Iterator[tuple[Array, Stage]]:
    """Sequential quadratic programming with exact gradients (SLSQP, Kraft 1988) from many starts.

    Random motions are compared, the best of them improved by some steps on a coarse grid, and the best of those
    improved until convergence. Polishing the best result then reduces the margin left by the smooth maxima of the
    requirements.
    """
    coarse = problem.with_samples(COARSE_SAMPLES).with_smooth_objective(SMOOTH_SHARPNESS)
    finer = problem.with_samples(FINE_SAMPLES)
    smooth, sharp = finer.with_smooth_objective(SMOOTH_SHARPNESS), finer.with_smooth_objective(SHARP_SHARPNESS)
    drawn = [problem.parametrization.random(rng, 1.0) for _ in range(effort.draws)]
    values = [coarse.objective_value(x) for x in drawn]

    def improve(x: Array) -> tuple[Array, float]:
        """Some steps on the coarse grid, and the rank of what they lead to."""
        x = _descend(coarse, x, -(-effort.steps // COARSE_STEP_DIVISOR))
        within = problem.scale_into_limits(x)
        # a small remaining violation, such as of minimum distances, is removed by the next stage
        return x, problem.objective_value(within) + max(0.0, float(coarse.excess(within).max()))

    def finish(x: Array) -> tuple[Array, float]:
        """Steps until convergence, and the objective that they lead to."""
        x = _descend(smooth, x, effort.steps)
        x = x if sharp is finer else _descend(sharp, x, effort.steps)
        return x, problem.objective_value(problem.scale_into_limits(x))

    starts = [drawn[start] for start in np.argsort(values, kind="stable")[: effort.starts]]
    candidates = []
    for number, (x, rank) in enumerate(_searches(problem, improve, starts), start=1):
        candidates.append((rank, x))
        yield x, Stage("search from random motions", number, effort.starts)
    candidates.sort(key=lambda pair: pair[0])
    best, best_value = candidates[0][1], np.inf
    chosen = [x for _, x in candidates[: effort.finished]]
    for number, (x, value) in enumerate(_searches(problem, finish, chosen), start=1):
        yield x, Stage("search to convergence", number, effort.finished)
        if value < best_value:
            best, best_value = x, value
    yield (
        _descend(
            problem.with_sharpness(POLISH_REQUIREMENT_SHARPNESS).with_smooth_objective(POLISH_SHARPNESS),
            best,
            POLISH_STEPS,
            POLISH_TOLERANCE,
        ),
        Stage("polish"),
    )


def _searches(
    problem: DesignProblem, search: Callable[[Array], tuple[Array, float]], starts: Sequence[Array]
) -> Iterator[tuple[Array, float]]:
    """Search from several starts on all cores; evaluations are counted when a result is there."""

    def counted(x: Array) -> tuple[tuple[Array, float], int]:
        before = len(problem.evaluations)
        found = search(x)
        count = len(problem.evaluations) - before
        del problem.evaluations[before:]
        return found, count

    with closing(map_in_order(counted, starts)) as results:
        for found, count in results:
            problem.evaluations.extend([None] * count)
            yield found


def _descend(problem: DesignProblem, x: Array, steps: int, tolerance: float = TOLERANCE) -> Array:
    """Minimize by SLSQP with at most `steps` iterations; returns `x` if the result is not finite."""
    from scipy.optimize import minimize  # slow to import, and seldom used

    @lru_cache(maxsize=1)
    def score(x: bytes) -> Score:
        """Objective at x; cached, as the gradient is evaluated at the last point of a line search."""
        return problem.score(np.frombuffer(x))

    requirements = {
        "type": "ineq",
        "fun": lambda x: -problem.excess(x),
        "jac": lambda x: -problem.excess_jacobian(x),
    }
    found = minimize(
        lambda x: score(x.tobytes()).value,
        x,
        jac=lambda x: score(x.tobytes()).gradient(),
        method="SLSQP",
        constraints=requirements,
        options={"maxiter": steps, "ftol": tolerance},
    )
    return found.x if np.all(np.isfinite(found.x)) else x


def _population(module: str, name: str) -> Search:
    """Make a gradient-free optimizer of pymoo (Blank and Deb 2020), with requirements as a penalty."""

    def search(problem: DesignProblem, rng: np.random.Generator, effort: SearchEffort) -> Iterator[tuple[Array, Stage]]:
        try:
            algorithm_of = getattr(importlib.import_module(f"pymoo.algorithms.soo.nonconvex.{module}"), name)
            problem_of = importlib.import_module("pymoo.core.problem").Problem
        except ImportError:
            raise UsageError(
                f"the optimizer {module} needs pymoo: install it, or choose `search_by_gradient`"
            ) from None
        finer = problem.with_samples(FINE_SAMPLES)
        first = np.array([problem.parametrization.random(rng) for _ in range(effort.population)])
        bound = 2.0 * np.abs(first).max()
        frame = problem_of(n_var=first.shape[1], n_obj=1, xl=-bound, xu=bound)
        options: dict[str, Any] = {"sampling": first, "pop_size": effort.population}
        if name == "CMAES":
            options = {"x0": first[0], "popsize": effort.population}
        elif name == "GA":
            options |= _operators(effort)
        algorithm = algorithm_of(**options)
        algorithm.setup(frame, termination=("n_gen", effort.generations), seed=int(rng.integers(2**31)), verbose=False)
        best = np.inf
        while algorithm.has_next():
            population = algorithm.ask()
            values = np.array([_penalized(finer, x) for x in population.get("X")])
            population.set("F", values[:, None])
            algorithm.tell(infills=population)
            if values.min() < best:
                best = values.min()
                yield (
                    population.get("X")[int(np.argmin(values))],
                    Stage("generations", algorithm.n_gen, effort.generations),
                )

    return search


def _operators(effort: SearchEffort) -> dict[str, Any]:
    """Operators of the genetic search: simulated binary crossover and polynomial mutation (Deb et al.)."""
    crossover = importlib.import_module("pymoo.operators.crossover.sbx").SBX
    mutation = importlib.import_module("pymoo.operators.mutation.pm").PM
    return {"crossover": crossover(prob=effort.crossover), "mutation": mutation(prob=effort.mutation)}


def _penalized(problem: DesignProblem, x: Array) -> float:
    """Objective of a feasible motion; a penalty that grows with the violation of an infeasible one."""
    violation = float(problem.excess(x).max())
    if violation > 0.0:
        return PENALTY * (1.0 + violation)
    value = problem.objective_value(x)
    return value if np.isfinite(value) else PENALTY


OPTIMIZERS: dict[str, Search] = {
    "gradient": search_by_gradient,
    "cma_es": _population("cmaes", "CMAES"),
    "genetic": _population("ga", "GA"),
    "particle_swarm": _population("pso", "PSO"),
}
"""Optimizers by their name in configuration files; `search_by_gradient` is the default."""
