# SPDX-License-Identifier: Apache-2.0
"""Agreement of efforts with the URDF's own torque."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.signals.trials import FilteredTrials


def measure_nominal_agreement(regressor: Regressor, trials: FilteredTrials) -> tuple[Array, Array, Array]:
    """Measured effort against the torque of the URDF's own parameters, both about their means.

    Returns:
        Slope, correlation, and RMS of the nominal torque about its mean [N m or N], shape (n,) each.
    """
    sums = np.zeros((6, len(regressor.model.joint_names)))
    nominal = np.flatnonzero(regressor.structure[: 10 * len(regressor.model.body_names)].any(axis=1))
    plan = trials.plan
    for piece in trials:
        used = piece.used
        if piece.tau is None or not used.any():
            continue
        valid = piece.valid[:, used]
        y = np.where(valid, plan.low_pass.apply(piece.tau, plan.rate)[:, used], 0.0)
        values = regressor.model.inertial_parameters[nominal]
        x = np.where(valid, regressor.torque(piece.motion.take(used), values, nominal), 0.0)
        sums += np.array([valid.sum(1), x.sum(1), y.sum(1), (x * x).sum(1), (y * y).sum(1), (x * y).sum(1)])
    x_mean, y_mean, xx, yy, xy = sums[1:] / np.maximum(sums[0], 1.0)
    xx, yy, xy = xx - x_mean**2, yy - y_mean**2, xy - x_mean * y_mean
    known = (xx > 0) & (yy > 0)
    slope = np.divide(xy, xx, out=np.zeros_like(xy), where=known)
    correlation = np.divide(xy, np.sqrt(np.abs(xx * yy)), out=np.zeros_like(xy), where=known)
    return slope, correlation, np.sqrt(np.maximum(xx, 0.0))
