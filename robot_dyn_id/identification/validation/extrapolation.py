# SPDX-License-Identifier: Apache-2.0
"""Ranges of the training motion, and how far another motion exceeds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.findings import Definition, Finding, Section, Severity
from robot_dyn_id.parameters import Ranges
from robot_dyn_id.uses import LIMITED, USES
from robot_dyn_id.wording import format_shares

OUTSIDE_TRAINING = Definition(
    "outside_training",
    Section.VALIDATION,
    "info",
    "The motion exceeds the trained positions, velocities or accelerations by more than half, where the model "
    "extrapolates. A warning in a validation if all joints together do so in more than `thresholds.outside_share` "
    "of the samples.",
    "record training data of such motion",
    lowers=dict.fromkeys(USES, LIMITED),
)

FAR_OUTSIDE_RATIO = 0.5
"""Excess over the trained range, speed or acceleration, as a ratio to it, above which a sample is far outside. A motion
split in time always exceeds its range a little: by a tenth in up to a tenth of the samples, and the model is as good
there as elsewhere."""

QUANTITIES = ("position", "speed", "acceleration")


def flag_far_outside(motion: Motion, trained: Ranges) -> Mask:
    """Flag samples that are far outside the trained positions, speeds and accelerations.

    Returns:
        Flags by quantity, joint and sample, shape (3, n, N).
    """
    margin = FAR_OUTSIDE_RATIO * np.maximum(trained.q_max - trained.q_min, 1e-3)[:, None]
    position = (motion.q < trained.q_min[:, None] - margin) | (motion.q > trained.q_max[:, None] + margin)
    speed = np.abs(motion.dq) > (1 + FAR_OUTSIDE_RATIO) * trained.dq_max[:, None] + 1e-3
    acceleration = np.abs(motion.ddq) > (1 + FAR_OUTSIDE_RATIO) * trained.ddq_max[:, None] + 1e-2
    return np.array([position, speed, acceleration])


REPORTED_SHARE = 0.05
"""Share of a joint's samples far outside the training motion above which it is reported."""


class Excess(NamedTuple):
    """A quantity of a joint that is often far outside the training motion.

    Attributes:
        joint: name of the joint.
        quantity: one of `QUANTITIES`.
        share: share of the samples that are far outside.
    """

    joint: str
    quantity: str
    share: float

    @property
    def name(self) -> str:
        """Joint and quantity: `elbow speed`."""
        return f"{self.joint} {self.quantity}"


def list_excesses(joint_names: Sequence[str], shares: Array) -> tuple[Excess, ...]:
    """List what is far outside in more than `REPORTED_SHARE` of the samples.

    Args:
        joint_names: joints, n.
        shares: share of the samples far outside in position, speed and acceleration, shape (3, n).
    """
    return tuple(
        Excess(name, quantity, share)
        for name, of_joint in zip(joint_names, shares.T.tolist(), strict=True)
        for quantity, share in zip(QUANTITIES, of_joint, strict=True)
        if share > REPORTED_SHARE
    )


def format_excesses(excesses: Iterable[Excess]) -> str:
    """Excesses as text: `elbow speed 12%, wrist position 7%`."""
    return format_shares((excess.name, excess.share) for excess in excesses)


def report_excesses(excesses: Sequence[Excess], severity: Severity = "info") -> tuple[Finding, ...]:
    """Report a motion that exceeds the training motion by far, if there is any such excess."""
    if not excesses:
        return ()
    message = (
        f"extrapolates far beyond the training motion in these fractions of the samples: {format_excesses(excesses)}"
    )
    joints = dict.fromkeys(excess.joint for excess in excesses)
    return (OUTSIDE_TRAINING.found(message, joints, severity),)


def compute_torque_deviation(regressor: Regressor, columns: Integers, covariance: Array, motion: Motion) -> Array:
    """Standard deviation of predicted torques due to the parameter covariance C.

    Args:
        regressor: robot and terms.
        columns: columns of the regressor that the covariance belongs to, p.
        covariance: covariance of their parameters, shape (p, p).
        motion: N samples.

    Returns:
        (w C w')^1/2 [N m or N], shape (n, N).
    """
    layout = Layout.from_columns(regressor, columns)
    packed = np.empty((layout.starts[-1], len(motion)))
    regressor.fill(motion, layout.slots, packed)
    variances = []
    for joint, support in enumerate(layout.supports):
        rows = layout.block(packed, joint)[:-1]
        variances.append(np.einsum("in,in->n", rows, covariance[np.ix_(support, support)] @ rows))
    return np.asarray(np.sqrt(np.maximum(variances, 0.0)))
