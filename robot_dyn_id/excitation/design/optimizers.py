# SPDX-License-Identifier: Apache-2.0
"""Searches for the coefficients of an excitation, by name. A new one is one function and one line in `OPTIMIZERS`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.objectives import Score
from robot_dyn_id.excitation.design.problem import COARSE, FINER, DesignProblem

COARSE_SHARE = 5
"""A gradient search has a fifth of its iterations on the coarse grid: enough to tell which starts are worth more."""

POLISH_STEPS = 20
"""Of the polish, which looks at all instants: the motion is nearly there, and what is left is a step to the limits."""

SOFT, SHARP = 30.0, 100.0
"""Sharpness of objectives whose own gradient jumps; see `objectives.softened`."""

SHARPEST, TIGHT = 1000.0, 20000.0
"""Sharpness of objectives and of requirements when the best motion is polished."""

TOLERANCE, FINE_TOLERANCE = 1e-5, 1e-9
"""Change of the objective between two iterations at which a gradient search ends, and a polish does."""

FORBIDDEN = 1e3
"""Figure of a motion that breaks a requirement, for searches that know none: beyond that of any other."""


@dataclass(frozen=True)
class SearchEffort:
    """How much is spent on a search.

    Attributes:
        draws: random motions that are compared at first.
        starts: how many of them a gradient search begins from.
        finished: how many of these are carried to their end.
        steps: iterations of a gradient search at most.
        population, generations: of searches that keep a population.
        crossover, mutation: chances that a child of the genetic search is crossed from its parents, and changed.
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
        """Check the numbers.

        Raises:
            UsageError: less than one, or more starts than draws.
        """
        if not 1 <= self.finished <= self.starts <= self.draws:
            raise UsageError(
                f"a search needs 1 <= finished <= starts <= draws, not {self.finished}, {self.starts}, {self.draws}"
            )
        if self.population < 4 or self.generations < 1 or self.steps < 1:
            raise UsageError("a search needs a population of at least 4, and at least one generation and one step")
        if not (0.0 <= self.crossover <= 1.0 and 0.0 <= self.mutation <= 1.0):
            raise UsageError("the chances of crossover and mutation must be within 0 and 1")


Search = Callable[[DesignProblem, np.random.Generator, SearchEffort], Iterator[tuple[Array, str]]]
"""Yields coefficients that are worth to be looked at, with a word on how far the search is; the best so far are kept by
whoever asks, who may stop at any time."""


def gradient(problem: DesignProblem, rng: np.random.Generator, effort: SearchEffort) -> Iterator[tuple[Array, str]]:
    """Sequential quadratic programming with exact gradients (SLSQP, Kraft 1988) from many starts.

    Random motions are compared; the best are followed some steps on a coarse grid, and the best of those to the end.
    The best of all uses up what the smooth maxima of the requirements had left of them.
    """
    coarse, finer = problem.sampled(COARSE).softened(SOFT), problem.sampled(FINER)
    drawn = [problem.parametrization.random(rng, 1.0) for _ in range(effort.draws)]
    figures = [coarse.figure(x) for x in drawn]
    begun = []
    for number, start in enumerate(np.argsort(figures, kind="stable")[: effort.starts], start=1):
        x = _descend(coarse, drawn[start], -(-effort.steps // COARSE_SHARE))
        within = problem.brought_in(x)
        # what is still beyond then, collisions say, a few more steps will mend if it is little
        begun.append((problem.figure(within) + max(0.0, float(coarse.excess(within).max())), x))
        yield x, f"start {number} of {effort.starts}"
    begun.sort(key=lambda pair: pair[0])
    best, figure = begun[0][1], np.inf
    for number, (_, start_x) in enumerate(begun[: effort.finished], start=1):
        x = _descend(finer.softened(SOFT), start_x, effort.steps)
        x = x if finer.softened(SHARP) is finer else _descend(finer.softened(SHARP), x, effort.steps)
        yield x, f"finish {number} of {effort.finished}"
        if (reached := problem.figure(problem.brought_in(x))) < figure:
            best, figure = x, reached
    yield _descend(problem.tightened(TIGHT).softened(SHARPEST), best, POLISH_STEPS, FINE_TOLERANCE), "polish"


def _descend(problem: DesignProblem, x: Array, steps: int, tolerance: float = TOLERANCE) -> Array:
    """Follow the gradients, for a number of steps at most."""

    @lru_cache(maxsize=1)
    def score(x: bytes) -> Score:
        """Line searches ask for values; the gradient is wanted where the last of them ended."""
        return problem.score(np.frombuffer(x))

    requirements = {
        "type": "ineq",
        "fun": lambda x: -problem.excess(x),
        "jac": lambda x: -problem.excess_slopes(x),
    }
    found = minimize(
        lambda x: score(x.tobytes()).value, x, jac=lambda x: score(x.tobytes()).slope(), method="SLSQP",
        constraints=requirements, options={"maxiter": steps, "ftol": tolerance},
    )  # fmt: skip
    return found.x if np.all(np.isfinite(found.x)) else x


def _population(module: str, name: str) -> Search:
    """A search of pymoo (Blank and Deb 2020), which sees requirements as a penalty and no gradients."""

    def search(problem: DesignProblem, rng: np.random.Generator, effort: SearchEffort) -> Iterator[tuple[Array, str]]:
        try:
            algorithm_of = getattr(importlib.import_module(f"pymoo.algorithms.soo.nonconvex.{module}"), name)
            problem_of = importlib.import_module("pymoo.core.problem").Problem
        except ImportError:
            raise UsageError(f"the optimizer {module} needs pymoo: install it, or choose `gradient`") from None
        finer = problem.sampled(FINER)
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
            asked = algorithm.ask()
            figures = np.array([_penalised(finer, x) for x in asked.get("X")])
            asked.set("F", figures[:, None])
            algorithm.tell(infills=asked)
            if figures.min() < best:
                best = figures.min()
                yield asked.get("X")[int(np.argmin(figures))], f"generation {algorithm.n_gen} of {effort.generations}"

    return search


def _operators(effort: SearchEffort) -> dict[str, Any]:
    """How a genetic search makes children: simulated binary crossover and polynomial mutation (Deb et al.)."""
    crossed = importlib.import_module("pymoo.operators.crossover.sbx").SBX
    changed = importlib.import_module("pymoo.operators.mutation.pm").PM
    return {"crossover": crossed(prob=effort.crossover), "mutation": changed(prob=effort.mutation)}


def _penalised(problem: DesignProblem, x: Array) -> float:
    beyond = float(problem.excess(x).max())
    if beyond > 0.0:
        return FORBIDDEN * (1.0 + beyond)
    figure = problem.figure(x)
    return figure if np.isfinite(figure) else FORBIDDEN


OPTIMIZERS: dict[str, Search] = {
    "gradient": gradient,
    "cma_es": _population("cmaes", "CMAES"),
    "genetic": _population("ga", "GA"),
    "particle_swarm": _population("pso", "PSO"),
}
"""Searches by the name that configurations use; `gradient` is the default."""
