# SPDX-License-Identifier: Apache-2.0
"""Factor of one joint's effort against those of the others, as rigid-body dynamics with free parameters show it.

Links that several joints move couple their efforts: the scale common to all joints is free, but not that of one alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.chance import compute_jackknife_deviations, find_critical_ratio
from robot_dyn_id.identification.diagnosis.samples import (
    BLOCKS,
    RANK_TOLERANCE,
    MotionSamples,
    RigidFit,
    RigidGrams,
    RigidRows,
    solve_scaled,
)

STEPS = 8
"""Largest number of Gauss-Newton steps."""

LONGEST_STEP = 0.5
"""Largest step of the logarithm of a factor."""

SETTLED_STEP = 1e-3
"""Step below which a factor counts as settled."""

LEAST_ADVANTAGE = 0.15
"""Decrease of the sum of the logarithms of the joints' residuals from which on a factor is significant."""

FACTOR_RANGE = 3.0
"""A factor is known where this many times as much and a part of as many explain the efforts less; see `GainFactor`. The
range is that of `ScaleProfile.sharpness`, which asks the same of the efforts as they are."""

SMALLEST_CHANGE = 0.03
"""Least relative change that is reported: torque sensors and gains are seldom calibrated better."""


@dataclass(frozen=True)
class GainFactor:
    """Factor by which the effort of a joint is too large, with those of the other joints unchanged.

    Attributes:
        joint: number of the joint.
        value: the factor; 1 where nothing determines it.
        deviation: standard deviation of its logarithm by a jackknife over blocks of time; infinite where nothing
            determines it: the other joints' efforts leave the parameters free that scale its own.
        advantage: decrease of the sum of the logarithms of all joints' residuals, in the units of the efforts.
        sharpness: increase of that sum at a third and at three times the factor, the smaller of both. Where the other
            joints know nothing of the effort of a joint, all large factors explain it alike.
        sigmas: standard deviations by which a logarithm that is significant differs from zero.
    """

    joint: int
    value: float
    deviation: float
    advantage: float
    sharpness: float
    sigmas: float

    @property
    def significant(self) -> bool:
        """Whether the data show that the factor is not 1."""
        size = abs(np.log(self.value))
        return (
            min(self.advantage, self.sharpness) > LEAST_ADVANTAGE
            and size > max(self.sigmas * self.deviation, SMALLEST_CHANGE)
            and bool(np.isfinite(self.deviation))
        )


def estimate_gain_factors(rows: RigidRows, samples: MotionSamples) -> list[GainFactor]:
    """Estimate the factor of each joint in turn by Gauss-Newton, the inertial parameters free.

    Args:
        rows: rows of the samples.
        samples: the samples, whose blocks of time give the standard deviations.
    """
    grams = rows.grams()
    parts = [rows.grams(samples.blocks != block) for block in range(BLOCKS)]
    present = grams.fit()
    joints = len(grams.scale)
    sigmas = find_critical_ratio(BLOCKS, 2 * joints)  # factors above and below 1
    return [_estimate(grams, parts, present, joint, sigmas) for joint in range(joints)]


def _estimate(
    grams: RigidGrams, parts: Sequence[RigidGrams], present: RigidFit, joint: int, sigmas: float
) -> GainFactor:
    if not _is_determined(grams, present, joint):
        return GainFactor(joint, 1.0, np.inf, 0.0, 0.0, sigmas)
    logarithm, fit = _descend(grams, joint, 0.0, present)
    without = [_step(part, fit, joint, logarithm) for part in parts]
    deviation = float(compute_jackknife_deviations(without))
    apart = (_scaled(grams, joint, logarithm + side * np.log(FACTOR_RANGE)).fit() for side in (-1.0, 1.0))
    sharpness = min(fit.advantage(one) for one in apart)
    return GainFactor(joint, float(np.exp(logarithm)), deviation, fit.advantage(present), sharpness, sigmas)


def find_factor(grams: RigidGrams, joint: int) -> float:
    """Factor of a joint's effort with the smallest residuals of all joints; 1 where its sign would change.

    The fit is linear in the inverse of the factor: with the weights that the other joints have among themselves, and
    that of an effort without a model for this one, it gives the start of Gauss-Newton.
    """
    others = [number for number in range(len(grams.scale)) if number != joint]
    weights = np.zeros(len(grams.scale))
    weights[others] = grams.of(others).fit().weights
    own = 1.0 / max(float(grams.scale[joint]), 1e-150) ** 2
    along = -own * grams.products[joint]
    total = np.tensordot(weights, grams.grams, 1) + own * grams.grams[joint]
    matrix = np.block([[total, along[:, None]], [along, own * grams.squares[joint]]])
    inverse = float(solve_scaled(matrix, np.append(weights @ grams.products, 0.0))[-1])
    if not inverse > 0.0:
        return 1.0
    start = -float(np.log(inverse))
    logarithm, _ = _descend(grams, joint, start, _scaled(grams, joint, start).fit())
    return float(np.exp(logarithm))


def _descend(grams: RigidGrams, joint: int, logarithm: float, fit: RigidFit) -> tuple[float, RigidFit]:
    """Logarithm of the factor of a joint with the smallest residuals near another one, and its fit."""
    for _ in range(STEPS):
        step = float(np.clip(_step(grams, fit, joint, logarithm), -LONGEST_STEP, LONGEST_STEP))
        trial = _scaled(grams, joint, logarithm + step).fit()
        while trial.advantage(fit) < 0.0 and abs(step) > SETTLED_STEP:  # minima are narrow
            step *= 0.5
            trial = _scaled(grams, joint, logarithm + step).fit()
        if trial.advantage(fit) < 0.0:
            break
        logarithm, fit = logarithm + step, trial
        if abs(step) < SETTLED_STEP:
            break
    return logarithm, fit


def _scaled(grams: RigidGrams, joint: int, logarithm: float) -> RigidGrams:
    factors = np.ones(len(grams.scale))
    factors[joint] = np.exp(logarithm)
    return grams.scaled(factors)


def _normal_equations(grams: RigidGrams, fit: RigidFit, joint: int) -> tuple[Array, Array]:
    """Normal equations of the parameters and of the logarithm of a factor, which is last; the weights are fixed."""
    values, weight = grams.fit(fit.weights).values, fit.weights[joint]
    along = weight * grams.grams[joint] @ values
    matrix = np.block([[np.tensordot(fit.weights, grams.grams, 1), along[:, None]], [along, values @ along]])
    return matrix, np.append(fit.weights @ grams.products, weight * grams.products[joint] @ values)


def _is_determined(grams: RigidGrams, fit: RigidFit, joint: int) -> bool:
    """Whether a factor changes the torques in a way that the parameters cannot: the Schur complement of its row.

    It is the square of what is left of that change, and is compared with the square of the joint's effort. Without this
    test the ridge of `solve_scaled` divides a change between the factor and the parameters.
    """
    matrix, _ = _normal_equations(grams, fit, joint)
    left = matrix[-1, -1] - matrix[-1, :-1] @ solve_scaled(matrix[:-1, :-1], matrix[:-1, -1])
    return bool(left > RANK_TOLERANCE * fit.weights[joint] * grams.squares[joint])


def _step(grams: RigidGrams, fit: RigidFit, joint: int, logarithm: float) -> float:
    """Gauss-Newton step of the logarithm of a factor, the parameters free and the weights fixed."""
    return float(solve_scaled(*_normal_equations(_scaled(grams, joint, logarithm), fit, joint))[-1])
