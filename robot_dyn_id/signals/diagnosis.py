# SPDX-License-Identifier: Apache-2.0
"""Agreement of efforts with the URDF's own torque, and their delay against the motion."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.findings import Finding, make_finding
from robot_dyn_id.signals.filtering import derivative
from robot_dyn_id.signals.trials import FilteredTrials

DELAY = 5e-3
"""Delays below this [s] are not worth a word."""


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


def delay(
    regressor: Regressor,
    columns: Integers,
    values: Array,
    trials: FilteredTrials,
) -> tuple[Finding, ...]:
    """Findings about joints whose effort is late or early with respect to the motion.

    With efforts late by d the residual is -d times the torque's rate of change, to first order.
    """
    joints = len(regressor.model.joint_names)
    product, square, error, count = np.zeros(joints), np.zeros(joints), np.zeros(joints), 0
    plan = trials.plan
    for piece in trials.along(regressor):
        if piece.tau is None or not piece.own.any():
            continue
        predicted = plan.low_pass.apply(regressor.torque(piece.motion, values, columns), plan.rate)
        rate = derivative(predicted, plan.rate)[:, piece.own]
        residual = (plan.low_pass.apply(piece.tau, plan.rate) - predicted)[:, piece.own]
        product += (residual * rate).sum(axis=1)
        square += (rate**2).sum(axis=1)
        error += (residual**2).sum(axis=1)
        count += residual.shape[1]
    late = np.divide(-product, square, out=np.zeros(joints), where=square > 0)
    explained = np.divide(product**2, square * error, out=np.zeros(joints), where=(square > 0) & (error > 0))
    return tuple(
        make_finding(
            "effort_delayed",
            f"joint {name}: its effort is about {1e3 * abs(d):.0f} ms {'late' if d > 0 else 'early'} "
            "with respect to its motion",
            [name],
        )
        for name, d, share in zip(regressor.model.joint_names, late, explained, strict=True)
        if abs(d) > DELAY and share > 0.2
    )
