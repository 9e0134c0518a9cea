# SPDX-License-Identifier: Apache-2.0
"""Guard: thresholds of the measured state above which a motion is stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.excitation.limits import REST_SPEED, MotionLimits
from robot_dyn_id.kernels.joint_states import compare_magnitudes

MIN_VIOLATIONS = 3
"""Minimum number of consecutive violations before a fault is raised."""


@dataclass(frozen=True)
class GuardThresholds:
    """Thresholds of n joints during a motion, shape (n,) each; infinite values are not monitored.

    Attributes:
        tracking: largest tracking error [rad or m].
        velocity: largest measured speed [rad/s or m/s].
        effort: largest magnitude of the measured effort [N m or N].
        patience: duration for which velocity or effort may exceed its threshold [s].
        timeout: longest time between two joint states [s].
    """

    tracking: Array
    velocity: Array
    effort: Array
    patience: float
    timeout: float

    @classmethod
    def from_limits(
        cls,
        limits: MotionLimits,
        velocity_tolerance: float,
        *,
        tracking: Array,
        effort: Array,
        patience: float,
        timeout: float,
    ) -> GuardThresholds:
        """Make thresholds from motion limits.

        Args:
            limits: motion limits of the joints.
            velocity_tolerance: excess over the velocity limits that is tolerated, relative to them.
            tracking: largest tracking error [rad or m], shape (n,).
            effort: largest measured effort [N m or N], shape (n,).
            patience: see `GuardThresholds`.
            timeout: see `GuardThresholds`.
        """
        # measurement noise of a robot at rest must not exceed the threshold, however small the velocity limit is
        velocity = np.maximum((1.0 + velocity_tolerance) * limits.velocity, REST_SPEED)
        return cls(tracking, velocity, effort, patience, timeout)


class Guard:
    """Monitor of one measured quantity of n joints.

    Attributes:
        exceeded: description of a joint that has exceeded its threshold for long enough; empty if there is none.
        margin: smallest distance of the latest sample to a threshold, relative to the threshold; 1 if none is measured.
    """

    def __init__(
        self, quantity: str, joint_names: Sequence[str], units: Sequence[str], threshold: Array, patience: float
    ) -> None:
        """Initialize without samples.

        Args:
            quantity: name of the quantity, for messages.
            joint_names: joint names, shape (n,).
            units: units of the quantity, shape (n,).
            threshold: thresholds of its magnitude, shape (n,); infinite for joints that are not monitored.
            patience: duration of a violation [s] (and at least `MIN_VIOLATIONS` samples) before it counts.
        """
        self._quantity = quantity
        self._names = joint_names
        self._units = units
        self._full = self._threshold = np.array(threshold, dtype=np.float64)
        self._patience = patience
        self._above = np.zeros(len(threshold), dtype=np.int64)  # consecutive samples above the threshold
        self._since = np.zeros(len(threshold))  # time of the first of them
        self._values = np.full(len(threshold), np.nan)  # the latest sample
        self._counting = False  # whether a joint was above in the latest sample
        self.exceeded, self.margin = "", 1.0

    def scale(self, factor: float, allowance: float) -> None:
        """Scale the thresholds, which never exceed the original ones.

        Args:
            factor: fraction of the original thresholds.
            allowance: part that is added to them, in the unit of the quantity.
        """
        self._threshold = np.minimum(self._full, factor * self._full + allowance)

    def update(self, values: Array, now: float) -> None:
        """Process one sample.

        Args:
            values: values of the joints, shape (n,); NaN if not measured.
            now: time of a steady clock [s].
        """
        self._values = values
        largest, exceeds = compare_magnitudes(values, self._threshold)
        self.margin = 1.0 if math.isnan(largest) else 1.0 - largest
        if not (self._counting or exceeds):  # at nearly every sample
            return
        self._counting = exceeds
        above = np.abs(values) > self._threshold
        self._since = np.where(above & (self._above > 0), self._since, now)
        self._above = np.where(above, self._above + 1, 0)
        long = (self._above >= MIN_VIOLATIONS) & (now - self._since >= self._patience)
        self.exceeded = ""
        for j in np.flatnonzero(long)[:1]:
            unit = self._units[j]
            self.exceeded = (
                f"joint {self._names[j]}: its measured {self._quantity} is {values[j]:.4g} {unit}, more than "
                f"{self._threshold[j]:.4g} {unit}"
            )

    @property
    def _measured(self) -> Mask:
        """Joints that were measured in the latest sample, shape (n,)."""
        return np.asarray(~np.isnan(self._values))

    def describe_margin(self) -> str:
        """Quantity and joint with the smallest margin of the latest sample."""
        closest = int(np.argmax(np.where(self._measured, np.abs(self._values) / self._threshold, 0.0)))
        return f"{self._quantity} of {self._names[closest]}"

    def unmeasured(self) -> list[str]:
        """Joints that were not measured in the latest sample."""
        return [name for name, measured in zip(self._names, self._measured, strict=True) if not measured]

    def unmonitored(self) -> str:
        """Joints that are not monitored, with the reason; empty if all are."""
        unlimited = ~np.isfinite(self._threshold)
        reasons = ((unlimited, "has no limit"), (~unlimited & ~self._measured, "is not in the joint states"))
        return "; ".join(
            f"{self._quantity} of {', '.join(name for name, one in zip(self._names, joints, strict=True) if one)} {why}"
            for joints, why in reasons
            if joints.any()
        )
