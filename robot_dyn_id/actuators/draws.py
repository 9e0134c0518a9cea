# SPDX-License-Identifier: Apache-2.0
"""Actuators drawn from the uncertainty of identified ones."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.actuators.identification import ActuatorEstimate
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.bounded_intervals import NORMAL
from robot_dyn_id.kernels.actuators import KINDS


def draw_actuators(
    estimate: ActuatorEstimate, count: int, rng: np.random.Generator, spread: float = 1.0
) -> list[ActuatorModel]:
    """Actuators as another recording may find them.

    Normal, with 95 % of the values within their intervals and, where three or more recordings give it, the variance
    between recordings in addition; correlated as the estimates are. Values that are not negative are cut off at zero.

    Args:
        estimate: identified actuators.
        count: number of draws.
        rng: random generator.
        spread: factor of the standard deviations.

    Raises:
        InputError: an interval is infinite.
    """
    layout, names = estimate.layout, estimate.actuators.joint_names
    half_width = 0.5 * (estimate.high - estimate.low)
    wide = np.argwhere(estimate.estimated & ~np.isfinite(half_width))
    if len(wide):
        kind, joint = wide[0].tolist()
        raise InputError(
            f"the interval of {KINDS[kind]} of {names[joint]} is infinite: identify from more or longer recordings"
        )
    variance = layout.read((half_width / NORMAL) ** 2 + np.nan_to_num(estimate.between) ** 2)
    values, mean = estimate.actuators.values, layout.read(estimate.actuators.values)
    roots, axes = np.linalg.eigh(estimate.correlation)
    factor = spread * np.sqrt(variance)[:, None] * axes * np.sqrt(np.maximum(roots, 0.0))

    def draw() -> Array:
        drawn = mean + factor @ rng.standard_normal(layout.count)
        return layout.write(values, np.where(layout.bounded, np.maximum(drawn, 0.0), drawn))

    return [ActuatorModel.from_values(names, draw()) for _ in range(count)]
