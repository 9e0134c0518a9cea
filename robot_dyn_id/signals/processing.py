# SPDX-License-Identifier: Apache-2.0
"""From windows of raw samples to filtered windows, and from these to the tiles of the linear problem.

Positions and velocities pass the zero-phase motion filter. The regressor's columns, computed from them, and the raw
efforts then pass the regression filter side by side (parallel filtering, Gautier 1997): filtering the efforts alone, or
twice, would bias every parameter whose column is not smooth. Only then are rows thinned out.

The cut-off of the motion filter determines how much noise of the positions enters the columns, that of the regression
filter the band in which torques are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.problem import RegressorProblem, Tile
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.signals.filtering import LowPass, derivative
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.signals.term_states import integrate_states
from robot_dyn_id.signals.windows import Cut, FilteredWindow, Window

EDGE = 2.5
"""Cut at both ends of a segment, in periods of the cut-off: there the filter has only one side to look at."""


ROWS_PER_PERIOD = 2.0
"""Rows kept per period of the cut-off: what the band holds. More rows carry nothing but what the filter left beyond it,
and there an autoregressive model of the residuals fails."""


@dataclass(frozen=True)
class SignalPlan:
    """All that is decided about the signals before rows are made.

    Attributes:
        rate: sample rate of the uniform grid [Hz].
        low_pass: regression filter, which columns and efforts pass side by side.
        recorded_velocity: whether velocities are the recorded ones, or derivatives of positions.
        row_stride: grid samples from one row of the problem to the next.
        motion_pass: motion filter, which positions and velocities pass before they are differentiated.
        slowest: speed of each joint below which its rows are left out [rad/s or m/s]; empty: none are, see `reversals`.
        period: period of a motion that is known to be periodic [s]; None otherwise.
    """

    rate: float
    low_pass: LowPass
    recorded_velocity: bool
    row_stride: int
    motion_pass: LowPass
    slowest: tuple[float, ...] = ()
    period: float | None = None

    @classmethod
    def from_low_pass(
        cls, rate: float, low_pass: LowPass, recorded_velocity: bool, motion_pass: LowPass | None = None
    ) -> SignalPlan:
        """Choose the stride so that about `ROWS_PER_PERIOD` rows are left in a period of the cut-off.

        Args:
            rate: sample rate of the uniform grid [Hz].
            low_pass: regression filter.
            recorded_velocity: whether velocities are the recorded ones.
            motion_pass: motion filter; None: equal to the regression filter.
        """
        stride = max(1, math.floor(rate / (ROWS_PER_PERIOD * low_pass.cutoff)))
        return cls(rate, low_pass, recorded_velocity, stride, motion_pass or low_pass)

    def periodic(self, period: float) -> SignalPlan:
        """With a whole number of rows in a period of the motion [s].

        Raises:
            InputError: the period is not a whole number of samples.
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
        return math.ceil(EDGE / min(self.low_pass.cutoff, self.motion_pass.cutoff) * self.rate)

    @property
    def cut(self) -> Cut:
        """Windows that own at least twice what they share, and enough to be quick."""
        margin = math.ceil(2 * max(self.low_pass.settling, self.motion_pass.settling) * self.rate)
        return Cut(step=1.0 / self.rate, core=max(4 * margin, 2048), margin=margin)


def filter_window(window: Window, plan: SignalPlan, keep_edges: bool = False) -> FilteredWindow:
    """Filter the motion of one window.

    Args:
        window: from `windows` with `plan.cut`.
        plan: the decisions.
        keep_edges: whether the ends of a segment stay (prediction) or are cut (estimation).
    """
    q = plan.motion_pass.apply(window.q, plan.rate)
    if plan.recorded_velocity and window.dq is not None:
        dq = plan.motion_pass.apply(window.dq, plan.rate)
    else:
        dq = derivative(q, plan.rate)
    temperature = None if window.temperature is None else plan.motion_pass.apply(window.temperature, plan.rate)
    index = np.arange(len(window.t))
    own = (index >= window.core.start) & (index < window.core.stop)
    if not keep_edges:
        own &= window.start + index >= plan.edge
        own &= (index < len(window.t) - plan.edge) | (not window.ends)
    loose = (window.core.start // 2, (len(window.t) - window.core.stop) // 2)  # half of the overlap
    reference = None
    if window.reference is not None:
        aim = plan.motion_pass.apply(window.reference, plan.rate)
        reference = Motion(aim, derivative(aim, plan.rate), derivative(derivative(aim, plan.rate), plan.rate))
    return FilteredWindow(
        segment=window.segment,
        t=window.t,
        motion=Motion(q, dq, derivative(dq, plan.rate), temperature),
        tau=window.tau,
        number=window.start + index,
        own=own,
        settled=slice(loose[0], len(window.t) - (0 if window.ends else loose[1])),
        valid=np.ones(window.q.shape, dtype=bool),
        reference=reference,
        trial=window.trial,
    )


@dataclass(frozen=True, kw_only=True)
class RecordedProblem(RegressorProblem):
    """Linear problem of recordings: rows are made of filtered windows, and can be made again of other windows.

    Attributes:
        windows: filtered windows; iterating again starts a new pass.
        plan: decisions about the signals.
    """

    windows: Iterable[FilteredWindow]
    plan: SignalPlan

    @classmethod
    def from_windows(
        cls,
        regressor: Regressor,
        columns: Integers,
        windows: Iterable[FilteredWindow],
        plan: SignalPlan,
        prior: Prior | None = None,
    ) -> RecordedProblem:
        """The problem of some columns of a regressor.

        Args:
            regressor: robot and terms.
            columns: columns that are the parameters, shape (p,).
            windows: filtered windows with efforts; iterating again must start a new pass.
            plan: decisions about the signals that the windows were filtered with.
            prior: prior knowledge of the parameters, or None.
        """
        layout = Layout.from_columns(regressor, columns)
        return cls(
            names=tuple(regressor.names[column] for column in columns),
            joint_names=regressor.model.joint_names,
            supports=layout.supports,
            tiles=lambda: _tiles(regressor, layout, windows, plan),
            rate=plan.row_rate,
            prior=prior,
            period=plan.period,
            regressor=regressor,
            columns=columns,
            windows=windows,
            plan=plan,
        )

    def max_speeds(self) -> Array:
        """See `RegressorProblem.max_speeds`.

        Raises:
            InputError: no samples.
        """
        return Ranges.from_windows(self.windows).dq_max

    def with_motion(self, windows: Iterable[FilteredWindow]) -> RecordedProblem:
        """The rows of the same columns along another motion, with its efforts, row by row at the same instants.

        No row is excluded for being slow.

        Args:
            windows: for each of `self.windows` one of the other motion; iterating again must start a new pass.
        """
        plan = replace(self.plan, slowest=())
        return RecordedProblem.from_windows(self.regressor, self.columns, windows, plan)

    def filter_positions(self, values: Array) -> Array:
        """Apply the motion filter, which positions pass before the regressor is evaluated, along the last axis."""
        return self.plan.motion_pass.apply(values, self.plan.rate)

    def _rebuild(self, regressor: Regressor, columns: Integers) -> RecordedProblem:
        return RecordedProblem.from_windows(regressor, columns, self.windows, self.plan)


def _tiles(regressor: Regressor, layout: Layout, windows: Iterable[FilteredWindow], plan: SignalPlan) -> Iterator[Tile]:
    """One tile per joint and window; rows that are not valid, or below the low-velocity threshold, are zero."""
    slowest = plan.slowest or (0.0,) * len(layout.supports)
    for window in integrate_states(windows, regressor, 1.0 / plan.rate):
        rows = window.own & (window.number % plan.row_stride == 0)
        if window.tau is None or not rows.any():
            continue
        valid = window.valid[:, rows]
        if not valid.any():
            for joint, support in enumerate(layout.supports):
                yield Tile(
                    joint, window.segment, np.zeros((len(support) + 1, valid.shape[1])), window.trial, window.t[rows]
                )
            continue
        packed = np.empty((layout.starts[-1], len(window.motion)))
        regressor.fill(window.motion, layout.slots, packed)
        for joint, tau in enumerate(window.tau):
            block = layout.block(packed, joint)
            block[-1] = tau
            thinned = np.ascontiguousarray(plan.low_pass.apply(block, plan.rate)[:, rows])
            thinned[:, ~valid[joint] | (np.abs(window.motion.dq[joint, rows]) < slowest[joint])] = 0.0
            yield Tile(joint, window.segment, thinned, window.trial, window.t[rows])
