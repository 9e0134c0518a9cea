# SPDX-License-Identifier: Apache-2.0
"""Drive gains from currents and the URDF's own masses.

The current of a joint is its torque over the gain; the torque is that of the URDF's inertial parameters and friction.
With the current alone on the left, the inverse gain is not biased by noise of the current. All gains are as wrong as
the URDF's masses are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.identification.diagnosis.samples import BLOCKS, MotionSamples, RigidRows
from robot_dyn_id.model.robot import RobotModel

IDENTIFIABLE_SIGMAS = 5.0
"""Number of standard deviations by which the inverse of an identifiable gain differs from zero."""

LEAST_EXPLAINED = 0.3
"""Share of the current's variance without friction that the URDF's torque explains where a gain is identifiable."""


@dataclass(frozen=True)
class WeightGain:
    """Gain of the drive of one joint, by the URDF's masses.

    Attributes:
        joint: name of the joint.
        value: effort per current [N m/A or N/A]; NaN if the joint carries too little weight and inertia.
        standard_deviation: its standard deviation by a jackknife over blocks of time, masses taken as exact.
    """

    joint: str
    value: float
    standard_deviation: float

    @property
    def known(self) -> bool:
        """Whether the gain is identifiable."""
        return bool(np.isfinite(self.value))


def estimate_weight_gains(samples: MotionSamples, model: RobotModel) -> tuple[WeightGain, ...]:
    """Gain of every joint's drive.

    Args:
        samples: samples whose `tau` are currents [A].
        model: the robot, with masses.
    """
    rows = RigidRows.from_samples(samples, [model])
    torque = Regressor(model).torque(samples.motion, model.inertial_parameters) * samples.valid
    nominal = rows.project(torque[..., None])[..., 0]
    gains = []
    for joint, (x, current) in enumerate(zip(nominal, rows.tau, strict=True)):
        square, product = float(x @ x), float(x @ current)
        name = model.joint_names[joint]
        if square <= 0.0 or product == 0.0:
            gains.append(WeightGain(name, np.nan, np.inf))
            continue
        inverse = product / square
        parts = [(x[samples.blocks != block], current[samples.blocks != block]) for block in range(BLOCKS)]
        without = [float(a @ b) / max(float(a @ a), 1e-300) for a, b in parts]
        deviation = float(np.sqrt((BLOCKS - 1) * np.var(without)))
        explained = product**2 / (square * max(float(current @ current), 1e-300))
        known = abs(inverse) > IDENTIFIABLE_SIGMAS * deviation and explained > LEAST_EXPLAINED
        gains.append(
            WeightGain(name, 1.0 / inverse, deviation / inverse**2) if known else WeightGain(name, np.nan, np.inf)
        )
    return tuple(gains)
