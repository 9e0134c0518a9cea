# SPDX-License-Identifier: Apache-2.0
"""Actuators drawn from the uncertainty of identified ones."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.uncertainty import ActuatorUncertainty
from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.bounded_intervals import NORMAL
from robot_dyn_id.kernels.actuators import KINDS


def draw_actuators(
    actuators: ActuatorModel, uncertainty: ActuatorUncertainty, count: int, seed: int, spread: float = 1.0
) -> list[ActuatorModel]:
    """Actuators as another recording may find them.

    Normal, with 95 % of the values within their intervals and, where three or more recordings give it, the variance
    between recordings in addition; correlated as the estimates are. Values that are not negative are cut off at zero.

    Args:
        actuators: identified actuators.
        uncertainty: their uncertainty.
        count: number of draws; the first ones do not depend on it.
        seed: seed of the draws.
        spread: factor of the standard deviations.

    Raises:
        InputError: an interval is infinite, or no value was estimated.
    """
    layout, names = uncertainty.layout, actuators.joint_names
    if not layout.count:
        raise InputError("no value of the actuators was estimated: there is nothing to draw")
    half_width = 0.5 * (uncertainty.high - uncertainty.low)
    wide = np.argwhere(uncertainty.estimated & ~np.isfinite(half_width))
    if len(wide):
        kind, joint = wide[0].tolist()
        raise InputError(
            f"the interval of {KINDS[kind]} of {names[joint]} is infinite: identify from more or longer recordings"
        )
    variance = layout.read((half_width / NORMAL) ** 2 + np.nan_to_num(uncertainty.between) ** 2)
    values, mean = actuators.values, layout.read(actuators.values)
    roots, axes = np.linalg.eigh(uncertainty.correlation)
    rng = np.random.default_rng(seed)
    factor = spread * np.sqrt(variance)[:, None] * axes * np.sqrt(np.maximum(roots, 0.0))

    def draw() -> Array:
        drawn = mean + factor @ rng.standard_normal(layout.count)
        return layout.write(values, np.where(layout.bounded, np.maximum(drawn, 0.0), drawn))

    return [ActuatorModel.from_values(names, draw()) for _ in range(count)]
