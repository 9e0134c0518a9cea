# SPDX-License-Identifier: Apache-2.0
"""From windows of raw samples to the tiles of the linear problem.

Positions and velocities pass a zero-phase low-pass whose cut-off lies far above the motion, so that only noise is lost.
The regressor's columns, computed from them, and the raw efforts then pass the same low-pass side by side (parallel
filtering, Gautier 1997): filtering the efforts alone, or twice, would bias every parameter whose column is not smooth.
Only then are rows thinned out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.problem import LinearProblem, Origin, Smooth, Tile
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.signals.filtering import LowPass, derivative
from robot_dyn_id.signals.windows import Cut, Window

EDGE = 2.5
"""Cut at both ends of a segment, in periods of the cut-off: there the filter has only one side to look at."""


ROWS_PER_PERIOD = 2.0
"""Rows kept per period of the cut-off: what the band holds. More rows carry nothing but what the filter left beyond it,
and there an autoregressive model of the residuals fails."""


@dataclass(frozen=True)
class SignalPlan:
    """All that is decided about the signals before rows are made.

    Attributes:
        rate: of the uniform grid [Hz].
        low_pass: the filter.
        recorded_velocity: whether velocities are the recorded ones, or derivatives of positions.
        row_stride: grid samples from one row of the problem to the next.
        slowest: speed of each joint below which its rows are left out [rad/s or m/s]; empty: none are, see `reversals`.
        period: of the motion, where it is known to be periodic [s].
    """

    rate: float
    low_pass: LowPass
    recorded_velocity: bool
    row_stride: int
    slowest: tuple[float, ...] = ()
    period: float | None = None

    @staticmethod
    def of(rate: float, low_pass: LowPass, recorded_velocity: bool) -> SignalPlan:
        """Choose the stride so that about `ROWS_PER_PERIOD` rows are left in a period of the cut-off."""
        stride = max(1, math.floor(rate / (ROWS_PER_PERIOD * low_pass.cutoff)))
        return SignalPlan(rate, low_pass, recorded_velocity, stride)

    def periodic(self, period: float) -> SignalPlan:
        """With a whole number of rows in a period of the motion [s].

        Raises:
            InputError: the period is no whole number of samples.
        """
        samples = period * self.rate
        if abs(samples - round(samples)) > 1e-3 or round(samples) < 2:
            raise InputError(f"period: {period:g} s are {samples:.2f} samples at {self.rate:g} Hz, not a whole number")
        strides = [stride for stride in range(1, self.row_stride + 1) if round(samples) % stride == 0]
        return replace(self, row_stride=strides[-1], period=period)

    @property
    def row_rate(self) -> float:
        """Rows per second [Hz]."""
        return self.rate / self.row_stride

    @property
    def edge(self) -> int:
        """Grid samples cut at both ends of a segment."""
        return math.ceil(EDGE / self.low_pass.cutoff * self.rate)

    @property
    def cut(self) -> Cut:
        """Windows that own at least twice what they share, and enough to be quick."""
        margin = math.ceil(2 * self.low_pass.settling * self.rate)
        return Cut(step=1.0 / self.rate, core=max(4 * margin, 2048), margin=margin)


def smooth(window: Window, plan: SignalPlan, keep_edges: bool = False) -> Smooth:
    """Filter the motion of one window.

    Args:
        window: from `windows` with `plan.cut`.
        plan: the decisions.
        keep_edges: whether the ends of a segment stay (prediction) or are cut (estimation).
    """
    q = plan.low_pass.apply(window.q, plan.rate)
    if plan.recorded_velocity and window.dq is not None:
        dq = plan.low_pass.apply(window.dq, plan.rate)
    else:
        dq = derivative(q, plan.rate)
    temperature = None if window.temperature is None else plan.low_pass.apply(window.temperature, plan.rate)
    index = np.arange(len(window.t))
    own = (index >= window.core.start) & (index < window.core.stop)
    if not keep_edges:
        own &= window.start + index >= plan.edge
        own &= (index < len(window.t) - plan.edge) | (not window.ends)
    loose = (window.core.start // 2, (len(window.t) - window.core.stop) // 2)  # half of what neighbours share
    reference = None
    if window.reference is not None:
        aim = plan.low_pass.apply(window.reference, plan.rate)
        reference = Motion(aim, derivative(aim, plan.rate), derivative(derivative(aim, plan.rate), plan.rate))
    return Smooth(
        segment=window.segment,
        t=window.t,
        motion=Motion(q, dq, derivative(dq, plan.rate), temperature),
        tau=window.tau,
        number=window.start + index,
        own=own,
        settled=slice(loose[0], len(window.t) - (0 if window.ends else loose[1])),
        reference=reference,
    )


def tiles(
    regressor: Regressor, layout: Layout, walk: Callable[[], Iterable[Smooth]], plan: SignalPlan
) -> Iterator[Tile]:
    """Rows of the linear problem from smooth windows; one tile per joint and window, rows that are too slow zero."""
    slowest = plan.slowest or (0.0,) * len(layout.supports)
    for piece in walk():
        rows = piece.own & (piece.number % plan.row_stride == 0)
        if piece.tau is None or not rows.any():
            continue
        packed = np.empty((layout.starts[-1], len(piece.motion)))
        regressor.fill(piece.motion, layout.slots, packed)
        for joint, tau in enumerate(piece.tau):
            block = layout.block(packed, joint)
            block[-1] = tau
            thinned = np.ascontiguousarray(plan.low_pass.apply(block, plan.rate)[:, rows])
            thinned[:, np.abs(piece.motion.dq[joint, rows]) < slowest[joint]] = 0.0
            yield Tile(joint, piece.segment, thinned)


def linear_problem(
    regressor: Regressor,
    columns: Integers,
    walk: Callable[[], Iterator[Smooth]],
    plan: SignalPlan,
    prior: Prior | None = None,
) -> LinearProblem:
    """The stream of tiles that estimators solve, for some columns of a regressor."""
    layout = Layout.from_columns(regressor, columns)
    return LinearProblem(
        names=tuple(regressor.names[column] for column in columns),
        joint_names=regressor.model.joint_names,
        supports=layout.supports,
        tiles=lambda: tiles(regressor, layout, walk, plan),
        rate=plan.row_rate,
        origin=Origin(
            regressor,
            columns,
            speeds=lambda: greatest_speeds(walk()),
            problem_of=lambda other, chosen: linear_problem(other, chosen, walk, plan),
            along=lambda replay: linear_problem(regressor, columns, lambda: replay(walk()), replace(plan, slowest=())),
            low_pass=lambda values: plan.low_pass.apply(values, plan.rate),
        ),
        prior=prior,
        period=plan.period,
    )


def greatest_speeds(pieces: Iterable[Smooth]) -> Array:
    """Greatest speed of each joint [rad/s or m/s], shape (n,).

    Raises:
        InputError: no samples.
    """
    speeds = [np.abs(piece.motion.dq[:, piece.own]).max(axis=1) for piece in pieces if piece.own.any()]
    if not speeds:
        raise InputError("no rows are left to estimate from: the recording is too short or all of it was dropped")
    return np.asarray(np.max(speeds, axis=0))
