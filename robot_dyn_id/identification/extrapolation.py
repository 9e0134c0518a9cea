# SPDX-License-Identifier: Apache-2.0
"""The motion that a model was trained on, and how far another one leads away from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.signals.ranges import Ranges

FAR = 0.5
"""Share of the trained range, speed or acceleration beyond which a sample is far outside. A motion split in time always
leaves its range a little: by a tenth in up to a tenth of the samples, and the model is as good there as elsewhere."""

QUANTITIES = ("position", "speed", "acceleration")


def outside(motion: Motion, trained: Ranges) -> Mask:
    """Which samples of each joint are far outside its positions, speeds, accelerations, shape (3, n, N)."""
    margin = FAR * np.maximum(trained.q_max - trained.q_min, 1e-3)[:, None]
    place = (motion.q < trained.q_min[:, None] - margin) | (motion.q > trained.q_max[:, None] + margin)
    speed = np.abs(motion.dq) > (1 + FAR) * trained.dq_max[:, None] + 1e-3
    acceleration = np.abs(motion.ddq) > (1 + FAR) * trained.ddq_max[:, None] + 1e-2
    return np.array([place, speed, acceleration])


OUTSIDE = 0.05
"""Share of a joint's samples far outside its trained motion from which on it is told."""


Strays = tuple[tuple[str, float], ...]
"""Joints and quantities, and for which share of the samples they are far outside."""


def strays(joint_names: Sequence[str], shares: Array) -> Strays:
    """What is far outside for more than `OUTSIDE`, by shares of positions, speeds, accelerations, shape (3, n)."""
    return tuple(
        (f"{name} {quantity}", share)
        for name, of_joint in zip(joint_names, shares.T.tolist(), strict=True)
        for quantity, share in zip(QUANTITIES, of_joint, strict=True)
        if share > OUTSIDE
    )


def spoken(found: Strays) -> str:
    """`elbow speed 12%, wrist position 7%`."""
    return ", ".join(f"{what} {share:.0%}" for what, share in found)


def extrapolation(found: Strays) -> tuple[str, ...]:
    """A warning about motion that leads far away from the one that a model was trained on, if any does."""
    if not found:
        return ()
    return (f"far outside the trained motion, where the model is a guess, in these shares of the samples: "
            f"{spoken(found)}; train on such motion",)  # fmt: skip


def uncertainty(regressor: Regressor, columns: Integers, covariance: Array, motion: Motion) -> Array:
    """Standard deviation of predicted torques that errors of the parameters cause, (w C w')^1/2, shape (n, N)."""
    layout = Layout.from_columns(regressor, columns)
    packed = np.empty((layout.starts[-1], len(motion)))
    regressor.fill(motion, layout.slots, packed)
    variances = []
    for joint, support in enumerate(layout.supports):
        rows = layout.block(packed, joint)[:-1]
        variances.append(np.einsum("in,in->n", rows, covariance[np.ix_(support, support)] @ rows))
    return np.asarray(np.sqrt(np.maximum(variances, 0.0)))
