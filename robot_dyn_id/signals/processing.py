"""From windows of raw samples to the tiles of the linear problem.

Positions, velocities and efforts pass the same zero-phase low-pass; the regressor's columns, computed from the smooth
motion, and the efforts then pass it once more, side by side (parallel filtering, Gautier 1997): filtering efforts alone
would bias every parameter. Only then are rows thinned out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.regressor import Layout, Motion, Regressor, Tile
from robot_dyn_id.signals.filtering import LowPass, derivative
from robot_dyn_id.signals.windows import Cut, Window

EDGE = 2.5
"""Cut at both ends of a segment, in periods of the cut-off: there the filter has only one side to look at."""


@dataclass(frozen=True)
class SignalPlan:
    """All that is decided about the signals before rows are made.

    Attributes:
        rate: of the uniform grid [Hz].
        low_pass: the filter.
        recorded_velocity: whether velocities are the recorded ones, or derivatives of positions.
        regressor_stride: grid samples from one sample of the regressor to the next.
        row_stride: samples of the regressor from one row to the next.
    """

    rate: float
    low_pass: LowPass
    recorded_velocity: bool
    regressor_stride: int
    row_stride: int

    @staticmethod
    def of(rate: float, low_pass: LowPass, recorded_velocity: bool) -> SignalPlan:
        """Choose the strides: 16 regressor samples and 5 rows in a period of the cut-off, if the data have them."""
        regressor_stride = max(1, math.floor(rate / (16.0 * low_pass.cutoff)))
        row_stride = max(1, math.floor(rate / regressor_stride / (5.0 * low_pass.cutoff)))
        return SignalPlan(rate, low_pass, recorded_velocity, regressor_stride, row_stride)

    @property
    def row_rate(self) -> float:
        """Rows per second [Hz]."""
        return self.rate / self.regressor_stride / self.row_stride

    @property
    def edge(self) -> int:
        """Grid samples cut at both ends of a segment."""
        return math.ceil(EDGE / self.low_pass.cutoff * self.rate)

    @property
    def cut(self) -> Cut:
        """Windows that own at least twice what they share, and enough for the kernels to be at full speed."""
        margin = math.ceil(2 * self.low_pass.settling * self.rate)
        return Cut(step=1.0 / self.rate, core=max(4 * margin, 2048 * self.regressor_stride), margin=margin)


@dataclass(frozen=True)
class Smooth:
    """Filtered motion and efforts of one window, thinned to the regressor's rate.

    Attributes:
        segment: number of the segment.
        t: time [s], shape (N,).
        motion: of the joints.
        tau: efforts, shape (n, N), or None.
        number: grid number of each sample, shape (N,).
        own: which samples belong to this window and are not cut away, shape (N,).
    """

    segment: int
    t: Array
    motion: Motion
    tau: Array | None
    number: np.ndarray
    own: np.ndarray


def smooth(window: Window, plan: SignalPlan, keep_edges: bool = False) -> Smooth:
    """Filter one window.

    Args:
        window: from `windows` with `plan.cut`.
        plan: the decisions.
        keep_edges: whether the ends of a segment stay (prediction) or are cut (estimation).
    """
    filtered = plan.low_pass.apply
    q = filtered(window.q, plan.rate)
    if plan.recorded_velocity and window.dq is not None:
        dq = filtered(window.dq, plan.rate)
    else:
        dq = derivative(q, plan.rate)
    ddq = derivative(dq, plan.rate)
    tau = None if window.tau is None else filtered(window.tau, plan.rate)
    first = -window.start % plan.regressor_stride
    pick = np.arange(first, len(window.t), plan.regressor_stride)
    own = (pick >= window.core.start) & (pick < window.core.stop)
    if not keep_edges:
        own &= window.start + pick >= plan.edge
        own &= (pick < len(window.t) - plan.edge) | (not window.ends)
    motion = Motion(*(np.ascontiguousarray(x[:, pick]) for x in (q, dq, ddq)))
    return Smooth(
        segment=window.segment,
        t=window.t[pick],
        motion=motion,
        tau=None if tau is None else np.ascontiguousarray(tau[:, pick]),
        number=window.start + pick,
        own=own,
    )


def tiles(
    regressor: Regressor, layout: Layout, walk: Callable[[], Iterable[Smooth]], plan: SignalPlan
) -> Iterator[Tile]:
    """Rows of the linear problem from smooth windows; one tile per joint and window."""
    rate = plan.rate / plan.regressor_stride
    for piece in walk():
        rows = piece.own & ((piece.number // plan.regressor_stride) % plan.row_stride == 0)
        if piece.tau is None or not rows.any():
            continue
        packed = np.empty((layout.starts[-1], len(piece.motion)))
        regressor.fill(piece.motion, layout.slots, packed)
        for joint, tau in enumerate(piece.tau):
            block = layout.block(packed, joint)
            block[-1] = tau
            thinned = plan.low_pass.apply(block, rate)[:, rows]
            yield Tile(joint, piece.segment, np.ascontiguousarray(thinned))
