# SPDX-License-Identifier: Apache-2.0
"""Residuals of models over the speed of each joint, see `ResidualProfile`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.identification.validation.metrics import Fold, iterate_held_out_windows
from robot_dyn_id.identification.validation.thinning import Thinning
from robot_dyn_id.parameters import ResidualProfile


def profile_residuals(folds: Sequence[Fold], thinning: Thinning) -> ResidualProfile | None:
    """Profile of the residuals of some data, each part predicted by the model of its fold.

    Args:
        folds: parts of the data with their models.
        thinning: the samples that are used.

    Returns:
        None if a joint has no sample that is valid.
    """
    parts: list[tuple[Array, Array, Mask]] = []
    for number, fold, window, tau in iterate_held_out_windows(folds):
        used = np.flatnonzero(window.used)
        rows = used[thinning.pick(number, window, len(used))]
        if len(rows):
            motion, plan = window.motion.take(rows), fold.trials.plan
            measured = plan.low_pass.apply(tau, plan.rate)[:, rows]
            predicted = fold.regressor.torque(motion, fold.values, fold.columns)
            parts.append((measured - predicted, motion.dq, window.valid[:, rows]))
    if not parts:
        return None
    residual, velocity, valid = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    return ResidualProfile.from_samples(residual, velocity, valid)
