# SPDX-License-Identifier: Apache-2.0
"""Drive gains from currents and the URDF's own masses.

The current of a joint is its torque over the gain; the torque is that of the URDF's inertial parameters and friction.
With the current alone on the left, the inverse gain is not biased by noise of the current. All gains are as wrong as
the URDF's masses are, and those more where torques of several links nearly cancel: even the sign may then be wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.chance import compute_jackknife_deviations
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.identification.diagnosis.samples import BLOCKS, MotionSamples, RigidRows
from robot_dyn_id.model.robot import RobotModel

IDENTIFIABLE_SIGMAS = 5.0
"""Number of standard deviations by which the inverse of an identifiable gain differs from zero."""

LEAST_EXPLAINED = 0.3
"""Share of the current's variance without friction that the URDF's torque explains where a gain is identifiable."""

MASS_FACTOR = 2.0
"""Factor by which the mass of each link may be wrong, at a confidence of 95 %."""


@dataclass(frozen=True)
class WeightGain:
    """Gain of the drive of one joint, by the URDF's masses.

    Attributes:
        joint: name of the joint.
        value: effort per current [N m/A or N/A]; NaN if the joint carries too little weight and inertia.
        standard_deviation: its standard deviation by a jackknife over blocks of time, masses taken as exact.
        mass_share: relative error of the gain for an equal one of the masses: 1, or more where torques of links cancel.
    """

    joint: str
    value: float
    standard_deviation: float
    mass_share: float = 1.0

    @property
    def known(self) -> bool:
        """Whether the gain is identifiable."""
        return bool(np.isfinite(self.value))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval, for masses that may be wrong by `MASS_FACTOR`."""
        wrong = self.mass_share * math.log(MASS_FACTOR)
        factor = math.exp(math.hypot(wrong, 1.96 * self.standard_deviation / abs(self.value)))
        low, high = sorted((self.value / factor, self.value * factor))
        return low, high


def estimate_weight_gains(samples: MotionSamples, model: RobotModel) -> tuple[WeightGain, ...]:
    """Gain of every joint's drive.

    Args:
        samples: samples whose `tau` are currents [A].
        model: the robot, with masses.
    """
    rows = RigidRows.from_samples(samples, [model])
    regressor, bodies = Regressor(model), model.inertial_parameters.reshape(-1, 10)
    alone = [np.where(np.arange(len(bodies))[:, None] == body, bodies, 0.0).ravel() for body in range(len(bodies))]
    torques = np.stack([regressor.torque(samples.motion, one) * samples.valid for one in alone], axis=-1)
    gains = []
    for name, parts, current in zip(model.joint_names, rows.project(torques), rows.tau, strict=True):
        gains.append(_estimate_gain(name, parts, current, samples.blocks))
    return tuple(gains)


def _estimate_gain(joint: str, parts: Array, current: Array, blocks: Integers) -> WeightGain:
    """Gain of one joint.

    Args:
        joint: its name.
        parts: torque of each body of the URDF without what friction and offset can explain, shape (N, b).
        current: current without the same, shape (N,).
        blocks: number of the block of time of each sample, shape (N,).
    """
    unknown = WeightGain(joint, np.nan, np.inf)
    x = parts.sum(axis=1)
    square, product = float(x @ x), float(x @ current)
    if square <= 0.0 or product == 0.0:
        return unknown
    inverse = product / square
    left = [(x[blocks != block], current[blocks != block]) for block in range(BLOCKS)]
    without = [float(a @ b) / max(float(a @ a), 1e-300) for a, b in left]
    deviation = float(compute_jackknife_deviations(without))
    explained = product**2 / (square * max(float(current @ current), 1e-300))
    # errors of all masses may be one and the same, or each its own
    mass_share = max(1.0, float(np.linalg.norm(x @ parts)) / square)
    certain = mass_share * math.log(MASS_FACTOR) < 1.0
    if not certain or abs(inverse) <= IDENTIFIABLE_SIGMAS * deviation or explained <= LEAST_EXPLAINED:
        return unknown
    return WeightGain(joint, 1.0 / inverse, deviation / inverse**2, mass_share)
