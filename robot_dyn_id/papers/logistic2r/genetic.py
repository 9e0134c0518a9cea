# SPDX-License-Identifier: Apache-2.0
"""Genetic algorithm of Qian et al. for span, steepness and window of a stroke, and the condition number that it lowers.

Chromosomes of 20 bits per variable, 40 individuals, 500 generations, probabilities of crossover 0.5 and of mutation
0.01, and a penalty of 1000 are printed. Selection, crossover and ranges are not: roulette on the inverse of the
objective, one point, and the ranges below; the best individual is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers

BITS, INDIVIDUALS, GENERATIONS, CROSSOVER, MUTATION, PENALTY = 20, 40, 500, 0.5, 0.01, 1000.0

RANGES = np.array([(0.1, np.pi), (0.1, 2.0), (1.0, 1000.0)])
"""Ranges of span [rad], steepness [1/s] and half window [samples]."""

PERIOD_EXPONENT = 40.0
"""Period of a stroke there and back, times the steepness."""


@dataclass(frozen=True)
class StrokeLimits:
    """Limits of the paper's eq. 18.

    Attributes:
        span: longest stroke [rad].
        velocity: largest velocity [rad/s].
        acceleration: largest acceleration [rad/s^2].
        sample: sampling period [s].
        gravity: gravitational acceleration [m/s^2].
    """

    span: float
    velocity: float
    acceleration: float
    sample: float
    gravity: float

    def excess(self, variables: Array) -> Array:
        """Sum of the relative violations of the limits, shape (k,), by variables of shape (k, 3)."""
        span, steepness, half = variables.T
        uses = (
            span / self.span,
            steepness * span / 4.0 / self.velocity,
            steepness**2 * span / (6.0 * np.sqrt(3.0)) / self.acceleration,
            half * self.sample / (PERIOD_EXPONENT / steepness / 4.0),
        )
        return np.asarray(sum(np.maximum(0.0, use - 1.0) for use in uses))

    def condition_number(self, variables: Array) -> Array:
        """Raw condition number of the equations of a joint's own three parameters, shape (k,).

        About the middle of a stroke acceleration and sine are odd and the cosine is even in time, so that the cosine's
        column is orthogonal to the other two. Angles of the middle and of the other joint only rotate the columns.
        """
        span, steepness, half = (x[:, None] for x in variables.T)
        number = np.arange(-int(np.ceil(half.max())), int(np.ceil(half.max())))
        inside = (number >= -np.round(half)) & (number < np.round(half))
        rise = 1.0 / (1.0 + np.exp(-steepness * number * self.sample))
        u = span * rise
        acceleration = (steepness / span) ** 2 * u * (span - u) * (span - 2.0 * u)
        angle = u - span / 2.0
        columns = np.stack([acceleration, self.gravity * np.cos(angle), self.gravity * np.sin(angle)]) * inside
        values = np.linalg.eigvalsh(np.einsum("ikn,jkn->kij", columns, columns))
        return np.asarray(np.sqrt(values[:, -1] / np.maximum(values[:, 0], 1e-300)))

    def objective(self, variables: Array) -> Array:
        """Condition number, and the printed penalty where a limit is violated, shape (k,)."""
        return self.condition_number(variables) + PENALTY * (self.excess(variables) > 0.0)


def evolve(limits: StrokeLimits, seed: int, generations: int = GENERATIONS) -> tuple[Array, Array]:
    """Run the genetic algorithm once.

    Args:
        limits: limits of the stroke.
        seed: seed of the random numbers.
        generations: number of generations.

    Returns:
        Span [rad], steepness [1/s] and half window [samples] of the best individual, shape (3,), and the smallest
        objective of each generation, shape (generations,).
    """
    rng = np.random.default_rng(seed)
    bits = rng.integers(2, size=(INDIVIDUALS, 3 * BITS))
    curve = np.empty(generations)
    for generation in range(generations):
        values = limits.objective(_decode(bits))
        best = int(np.argmin(values))
        elite, curve[generation] = bits[best].copy(), values[best]
        fitness = 1.0 / values
        bits = bits[rng.choice(INDIVIDUALS, INDIVIDUALS, p=fitness / fitness.sum())]
        for one, other in zip(bits[::2], bits[1::2], strict=True):
            if rng.random() < CROSSOVER:
                cut = rng.integers(1, 3 * BITS)
                one[cut:], other[cut:] = other[cut:].copy(), one[cut:].copy()
        bits ^= rng.random(bits.shape) < MUTATION
        bits[0] = elite
    return _decode(elite[None])[0], curve


def _decode(bits: Integers) -> Array:
    """Variables of chromosomes of shape (k, 60), shape (k, 3)."""
    weights = 2.0 ** -np.arange(1, BITS + 1) / (1.0 - 2.0**-BITS)
    share = bits.reshape(-1, 3, BITS) @ weights
    return np.asarray(RANGES[:, 0] + share * (RANGES[:, 1] - RANGES[:, 0]))
