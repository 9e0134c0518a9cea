# SPDX-License-Identifier: Apache-2.0
"""Zero-phase low-pass filtering, and derivatives without phase lag."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.kernels.filters import design_butterworth_sections, filter_both_ways

STENCIL = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Weights of the differences over 2, 4, 6 and 8 steps: central first derivative of eighth order (Fornberg 1988)."""


@dataclass(frozen=True)
class LowPass:
    """Butterworth low-pass, run forward and backward: no phase lag, -6 dB at the cut-off.

    Attributes:
        cutoff: [Hz].
        order: Butterworth order of each pass.
    """

    cutoff: float
    order: int = 4

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: cut-off not positive, order not in 1..12.
        """
        if not (math.isfinite(self.cutoff) and self.cutoff > 0):
            raise UsageError(f"the cut-off frequency must be positive, not {self.cutoff} Hz")
        if not 1 <= self.order <= 12:
            raise UsageError(f"the filter order must be 1 to 12, not {self.order}")

    @property
    def settling(self) -> float:
        """Time after which a disturbance has decayed to 1e-9 [s], from the slowest pole."""
        slowest = 2 * math.pi * self.cutoff * math.sin(math.pi / (2 * self.order))
        return 20.7 / slowest

    def require_rate(self, rate: float) -> None:
        """Check that samples at `rate` [Hz] can be filtered.

        Raises:
            UsageError: the cut-off is too high for the sample rate.
        """
        if self.cutoff > 0.45 * rate:
            raise UsageError(
                f"the cut-off {self.cutoff:g} Hz is too high for data at {rate:.4g} Hz: use at most {0.4 * rate:.3g} Hz"
            )

    def apply(self, values: Array, rate: float) -> Array:
        """Filter along the last axis, samples at `rate` [Hz].

        Raises:
            UsageError: the cut-off is too high for the sample rate.
        """
        self.require_rate(rate)
        pad = min(values.shape[-1] - 1, math.ceil(self.settling / 4 * rate))
        return filter_both_ways(design_butterworth_sections(self.order, self.cutoff, rate), values, max(pad, 0))


def derivative(values: Array, rate: float) -> Array:
    """First derivative of smooth samples at `rate` [Hz] along the last axis; the outermost 4 samples are rough."""
    reach, count = len(STENCIL), values.shape[-1]
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(reach, reach)], mode="edge")
    out = np.zeros_like(values)
    for step, weight in enumerate(STENCIL, start=1):
        after, before = reach + step, reach - step
        out += weight * rate * (padded[..., after : after + count] - padded[..., before : before + count])
    return out
