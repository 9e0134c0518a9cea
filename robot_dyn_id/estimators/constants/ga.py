# SPDX-License-Identifier: Apache-2.0
"""Genetic algorithm (Holland 1975; simulated binary crossover, Deb and Agrawal 1995), by pymoo."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.constants.pso import Members, Ratio
from robot_dyn_id.estimators.constants.search_space import SearchBox, SearchSpace
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.options import CheckedOptions, Count, Order, Positive, Seed


@dataclass(frozen=True)
class Genetic(CheckedOptions):
    """Genetic algorithm over linear parameters and nonlinear constants in a box: for comparison, as `pso`.

    Attributes:
        box: half width of the box, as a share of each parameter's prior size.
        ratio: maximum factor between a constant and its given value, up and down.
        population: number of members of a generation.
        generations: number of generations.
        weighted: whether joints are weighted by 1 / RMS of their residuals; otherwise all rows have the same weight.
        seed: seed of the random numbers.
        autoregressive_order: AR order of the noise model; 0: white residuals.
    """

    box: Positive = 0.5
    ratio: Ratio = 3.0
    population: Members = 100
    generations: Count = 300
    weighted: bool = True
    seed: Seed = 0
    autoregressive_order: Order = 6

    name: ClassVar[str] = "ga"
    uses_prior: ClassVar[bool] = True
    expensive: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no term has a free constant, or pymoo is not installed.
        """
        space = SearchSpace.from_problem(problem, self.name, self.box, self.ratio, self.weighted)
        best, course = run_generations(space, self.seed, self.population, self.generations)
        return space.make_estimate(best, self.autoregressive_order, course)


def run_generations(space: SearchBox, seed: int, population: int, generations: int) -> tuple[Array, Array]:
    """Run a genetic algorithm; return its best point, shape (d,), and the lowest cost after each generation.

    Raises:
        UsageError: pymoo is not installed.
    """
    try:
        kind = importlib.import_module("pymoo.algorithms.soo.nonconvex.ga").GA
        frame_of = importlib.import_module("pymoo.core.problem").Problem
    except ImportError:
        raise UsageError("the estimator ga needs pymoo: install it, or choose separable") from None
    width = space.upper - space.lower
    frame = frame_of(n_var=len(width), n_obj=1, xl=0.0, xu=1.0)
    algorithm = kind(pop_size=population)
    algorithm.setup(frame, termination=("n_gen", generations), seed=seed, verbose=False)
    best = 0.5 * (space.lower + space.upper)
    least = np.inf
    course = []
    while algorithm.has_next():
        members = algorithm.ask()
        points = space.lower + width * members.get("X")
        cost = space.compute_costs(points)
        members.set("F", cost[:, None])
        algorithm.tell(infills=members)
        if cost.min() < least:
            best = points[np.argmin(cost)]
            least = cost.min()
        course.append(least)
    return np.asarray(best), np.array(course)
