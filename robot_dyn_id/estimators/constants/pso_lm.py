# SPDX-License-Identifier: Apache-2.0
"""A particle swarm, then Levenberg-Marquardt from its best point (Jing et al., Actuators 2025, 14(10), 497)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.constants.estimates import estimate_constants
from robot_dyn_id.estimators.constants.lm import minimize_damped
from robot_dyn_id.estimators.constants.pso import Members, Ratio, run_swarm
from robot_dyn_id.estimators.constants.search_space import SearchSpace
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.options import CheckedOptions, Count, Order, Positive, Seed

MAX_SWARMS = 3
"""Maximum number of swarms: the search restarts if Levenberg-Marquardt does not converge."""


@dataclass(frozen=True)
class SwarmThenMarquardt(CheckedOptions):
    """`pso` followed by `lm`: for comparison with `separable`, which finds the same minimum faster.

    Attributes:
        box: half width of the box, as a share of each parameter's prior size.
        ratio: maximum factor between a constant and its given value, up and down.
        particles: number of particles.
        iterations: number of iterations of the swarm.
        steps: maximum number of Levenberg-Marquardt steps.
        weighted: whether joints are weighted by 1 / RMS of their residuals; otherwise all rows have the same weight.
        seed: seed of the random numbers.
        autoregressive_order: AR order of the noise model; 0: white residuals.
    """

    box: Positive = 0.5
    ratio: Ratio = 3.0
    particles: Members = 100
    iterations: Count = 300
    steps: Count = 100
    weighted: bool = True
    seed: Seed = 0
    autoregressive_order: Order = 6

    name: ClassVar[str] = "pso_lm"
    uses_prior: ClassVar[bool] = True
    expensive: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no term has a free constant.
            ConvergenceError: the constants did not converge from any swarm.
        """
        space = SearchSpace.from_problem(problem, self.name, self.box, self.ratio, self.weighted)
        rng = np.random.default_rng(self.seed)
        course: list[Array] = []
        for _ in range(MAX_SWARMS):
            point, costs = run_swarm(space, rng, self.particles, self.iterations)
            found, then = minimize_damped(space.constants, point, self.weighted, self.steps)
            course += [costs, then]
            if found is not None:
                return estimate_constants(found, self.autoregressive_order, np.concatenate(course))
        raise ConvergenceError(
            f"pso_lm: the constants {', '.join(space.constants.labels)} did not converge from {MAX_SWARMS} swarms: "
            f"increase steps, or use separable"
        )
