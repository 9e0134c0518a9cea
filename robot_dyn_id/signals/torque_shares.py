# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of parameters measured by the torque that it changes within the trained ranges."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.parameters import ParameterSet, Ranges

WEAK_TORQUE_SHARE = 0.05
"""Share of a joint's torque that one standard deviation of a parameter may change; a parameter above it is weak."""

SHARE_STATES = 200
"""Number of random states within the trained ranges at which effects of parameters are compared."""

SHARE_TEMPERATURE = 30.0
"""Temperature of the joints at these states [degrees Celsius]."""


def compute_torque_shares(
    regressor: Regressor, columns: Integers, values: Array, deviations: Array, trained: Ranges
) -> Array:
    """Share of a joint's torque that one standard deviation of each parameter changes, largest over the joints.

    Both are RMS at random states within the trained ranges. In contrast to the ratio of standard deviation and value,
    this measure is small for parameters that are known to be zero. A parameter can exceed it where the prediction is
    good: then only its sum with other parameters is known.

    Args:
        regressor: robot and terms.
        columns: independent columns, shape (p,).
        values: base parameters, shape (p,).
        deviations: their standard deviations, shape (p,).
        trained: ranges of the training motion.

    Returns:
        Ratios, shape (p,); infinite for deviations that are.
    """
    rng = np.random.default_rng(0)
    shape = len(trained.q_min), SHARE_STATES
    q = rng.uniform(trained.q_min[:, None], trained.q_max[:, None], shape)
    dq, ddq = (rng.uniform(-1.0, 1.0, shape) * top[:, None] for top in (trained.dq_max, trained.ddq_max))
    rows = regressor.dense(Motion(q, dq, ddq, temperature=np.full(shape, SHARE_TEMPERATURE)))[columns]
    torque = np.sqrt((np.einsum("i,ink->nk", values, rows) ** 2).mean(axis=1))
    effects = np.sqrt((rows**2).mean(axis=2))
    largest = (effects / np.maximum(torque, 1e-300)).max(axis=1)
    known = np.isfinite(deviations)
    return np.asarray(np.where(known, np.where(known, deviations, 0.0) * largest, np.inf))


def compute_torque_shares_of(parameters: ParameterSet, regressor: Regressor | None = None) -> Array:
    """Torque shares of a parameter set, shape (p,); `regressor` is made from the set if it is not given.

    Raises:
        InputError: see `Regressor.from_parameters`.
    """
    return compute_torque_shares(
        regressor or Regressor.from_parameters(parameters),
        parameters.base.independent,
        parameters.estimate.values,
        parameters.estimate.standard_deviations,
        parameters.ranges,
    )
