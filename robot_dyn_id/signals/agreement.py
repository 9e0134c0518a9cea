# SPDX-License-Identifier: Apache-2.0
"""Agreement of efforts with the URDF's own torque."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.signals.trials import FilteredTrials


def nominal_agreement(regressor: Regressor, trials: FilteredTrials) -> tuple[Array, Array, Array]:
    """Measured effort against the torque of the URDF's own parameters, both about their means.

    Returns:
        Slope, correlation, and RMS of the nominal torque about its mean [N m or N], shape (n,) each.
    """
    count, sums = 0, np.zeros((5, len(regressor.model.joint_names)))
    nominal = np.flatnonzero(regressor.structure[: 10 * len(regressor.model.body_names)].any(axis=1))
    plan = trials.plan
    for piece in trials:
        if piece.tau is None or not piece.own.any():
            continue
        y = plan.low_pass.apply(piece.tau, plan.rate)[:, piece.own]
        values = regressor.model.inertial_parameters[nominal]
        x = regressor.torque(piece.motion.take(piece.own), values, nominal)
        count += y.shape[1]
        sums += np.array([x.sum(1), y.sum(1), (x * x).sum(1), (y * y).sum(1), (x * y).sum(1)])
    x_mean, y_mean, xx, yy, xy = sums / max(count, 1)
    xx, yy, xy = xx - x_mean**2, yy - y_mean**2, xy - x_mean * y_mean
    known = (xx > 0) & (yy > 0)
    slope = np.divide(xy, xx, out=np.zeros_like(xy), where=known)
    correlation = np.divide(xy, np.sqrt(np.abs(xx * yy)), out=np.zeros_like(xy), where=known)
    return slope, correlation, np.sqrt(np.maximum(xx, 0.0))
