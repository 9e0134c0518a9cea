# SPDX-License-Identifier: Apache-2.0
"""Particle swarm (Kennedy and Eberhart 1995), as Jing et al. (Actuators 2025, 14(10), 497) use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.estimators.constants.search_space import SearchBox, SearchSpace
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.options import CheckedOptions, Count, Order, Positive, Range, Seed

INERTIA_WEIGHTS = (0.9, 0.4)
"""Inertia weight of a particle's velocity in the first and in the last iteration."""

ATTRACTION_WEIGHT = 1.5
"""Weight of the attraction to a particle's own best point and to the best point of the swarm."""

MAX_VELOCITY_SHARE = 0.2
"""Maximum velocity, as a share of the width of the box."""


Ratio = Annotated[float, Range(1, 10, includes_low=False)]
Members = Annotated[int, Range(2)]
"""Types of options of searches: see the attributes of `ParticleSwarm`."""


@dataclass(frozen=True)
class ParticleSwarm(CheckedOptions):
    """Particle swarm over linear parameters and nonlinear constants in a box.

    For comparison with publications: it stops near the minimum. The distance of its parameters from the optimal ones
    for its constants is added to their covariance.

    Attributes:
        box: half width of the box, as a share of each parameter's prior size.
        ratio: maximum factor between a constant and its given value, up and down.
        particles: number of particles.
        iterations: number of iterations.
        weighted: whether joints are weighted by 1 / RMS of their residuals; otherwise all rows have the same weight, as
            in the paper.
        seed: seed of the random numbers.
        autoregressive_order: AR order of the noise model; 0: white residuals.
    """

    box: Positive = 0.5
    ratio: Ratio = 3.0
    particles: Members = 100
    iterations: Count = 300
    weighted: bool = True
    seed: Seed = 0
    autoregressive_order: Order = 6

    name: ClassVar[str] = "pso"
    uses_prior: ClassVar[bool] = True
    expensive: ClassVar[bool] = True

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no term has a free constant.
        """
        space = SearchSpace.from_problem(problem, self.name, self.box, self.ratio, self.weighted)
        best, course = run_swarm(space, np.random.default_rng(self.seed), self.particles, self.iterations)
        return space.make_estimate(best, self.autoregressive_order, course)


def run_swarm(
    space: SearchBox, rng: np.random.Generator, particles: int, iterations: int, known: Array | None = None
) -> tuple[Array, Array]:
    """Run a swarm.

    Args:
        space: box with costs.
        rng: random number generator.
        particles: number of particles.
        iterations: number of iterations.
        known: point from an earlier search, where one particle starts, shape (d,); None: all start at random.

    Returns:
        The best point, shape (d,), and the lowest cost after each iteration.
    """
    width = space.upper - space.lower
    shape = (particles, len(width))
    points = space.lower + width * rng.random(shape)
    if known is not None:
        points[0] = np.clip(known, space.lower, space.upper)
    velocities = MAX_VELOCITY_SHARE * width * rng.uniform(-1.0, 1.0, shape)
    own = points.copy()
    least = space.compute_costs(points)
    course = []
    for inertia in np.linspace(*INERTIA_WEIGHTS, iterations):
        leader = own[np.argmin(least)]
        pull = rng.random(shape) * (own - points) + rng.random(shape) * (leader - points)
        velocities = np.clip(
            inertia * velocities + ATTRACTION_WEIGHT * pull, -MAX_VELOCITY_SHARE * width, MAX_VELOCITY_SHARE * width
        )
        points = np.clip(points + velocities, space.lower, space.upper)
        cost = space.compute_costs(points)
        better = cost < least
        own[better] = points[better]
        least[better] = cost[better]
        course.append(least.min())
    return np.asarray(own[np.argmin(least)]), np.array(course)
