# SPDX-License-Identifier: Apache-2.0
"""From windows of raw samples to filtered windows, and from these to the tiles of the linear problem.

Positions and velocities pass the zero-phase motion filter. The regressor's columns, computed from them, and the raw
efforts then pass the regression filter side by side (parallel filtering, Gautier 1997): filtering the efforts alone, or
twice, would bias every parameter whose column is not smooth. Only then are rows thinned out.

Estimation keeps every k-th sample of the filtered motion: what the motion filter leaves needs no more. Efforts pass a
zero-phase anti-aliasing filter far above the regression filter before; so do columns where they change within a sample,
see `sharp_columns`.

The cut-off of the motion filter determines how much noise of the positions enters the columns, that of the regression
filter the band in which torques are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.problem import RegressorProblem, Tile
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.signals.ends import filter_with_derivatives
from robot_dyn_id.signals.filtering import LowPass, derivative
from robot_dyn_id.signals.ranges import measure_ranges
from robot_dyn_id.signals.running import running_maximum
from robot_dyn_id.signals.sharp_columns import sharpen_columns
from robot_dyn_id.signals.strokes import RecordedStrokes
from robot_dyn_id.signals.term_states import integrate_states
from robot_dyn_id.signals.windows import Cut, FilteredWindow, Window

EDGE = 2.5
"""Cut at both ends of a segment, in periods of the cut-off: there the filter has only one side to look at."""


SAMPLES_PER_PERIOD = 20.0
"""Fewest samples of the decimated grid per period of the higher cut-off."""

MOTION_CUTOFF_ALLOWANCE = 1.6
"""Motion cut-off, over that of the regression filter, that the decimated grid suffices for if none is given."""

ANTI_ALIASING = 0.4
"""Cut-off of the anti-aliasing filter of efforts, as a fraction of the decimated rate."""

MISSING_WEIGHT = 0.2
"""Weight of interpolated samples in a filtered one above which its row is not used."""

LONGEST_BRIDGE_S = 4.0
"""Longest gap that is bridged at any cut-off [s]; shorter than a rest that is left out on purpose."""

ROWS_PER_PERIOD = 2.0
"""Rows kept per period of the cut-off: what the band holds. More rows carry nothing but what the filter left beyond it,
and there an autoregressive model of the residuals fails."""


ROWS_PER_TILE = 512
"""Rows of a joint from which on a tile is not joined with the next one."""

REST_TIME_S = 0.5
"""Shortest time in which a joint that is slow throughout is at rest [s]: at a reversal it is slow for milliseconds."""


@dataclass(frozen=True)
class SignalPlan:
    """All that is decided about the signals before rows are made.

    Attributes:
        rate: sample rate of the uniform grid of filtered windows [Hz].
        low_pass: regression filter, which columns and efforts pass side by side.
        recorded_velocity: whether velocities are the recorded ones, or derivatives of positions.
        row_stride: grid samples from one row of the problem to the next.
        motion_pass: motion filter, which positions and velocities pass before they are differentiated.
        slowest: speed of each joint below which its rows are left out [rad/s or m/s]; empty: none are, see `reversals`.
        rest: speed below which a joint is at rest, see `find_rest`, and its rows are kept in spite of `slowest` [rad/s
            or m/s].
        period: period of a motion that is known to be periodic [s]; None otherwise.
        decimation: samples of the grid that recordings are interpolated to and filtered on, per sample of the windows.
        strokes: logistic strokes of the recordings, on which velocities and accelerations are functions of the angle;
            None: they are not used.
    """

    rate: float
    low_pass: LowPass
    recorded_velocity: bool
    row_stride: int
    motion_pass: LowPass
    slowest: tuple[float, ...] = ()
    period: float | None = None
    decimation: int = 1
    rest: float = 0.0
    strokes: RecordedStrokes | None = None

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

    def decimated(self) -> SignalPlan:
        """With as few samples per second as both filters permit."""
        fastest = max(MOTION_CUTOFF_ALLOWANCE * self.low_pass.cutoff, self.motion_pass.cutoff)
        decimation = max(1, math.floor(self.native_rate / (SAMPLES_PER_PERIOD * fastest)))
        coarse = SignalPlan.from_low_pass(
            self.native_rate / decimation, self.low_pass, self.recorded_velocity, self.motion_pass
        )
        return replace(
            coarse,
            slowest=self.slowest,
            rest=self.rest,
            period=self.period,
            decimation=decimation,
            strokes=self.strokes,
        )

    @property
    def velocity_source(self) -> str:
        """Source of the velocities: `recorded`, `derivative` or `logistic`."""
        if self.strokes is not None:
            return "logistic"
        return "recorded" if self.recorded_velocity else "derivative"

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
    def native_rate(self) -> float:
        """Sample rate of the grid that recordings are filtered on [Hz]."""
        return self.rate * self.decimation

    @property
    def anti_aliasing(self) -> LowPass:
        """Filter that efforts, and columns that change within a sample, pass before they are decimated."""
        return LowPass(ANTI_ALIASING * self.rate, self.low_pass.order)

    @property
    def longest_gap(self) -> float:
        """Longest gap that is bridged [s]: one period of the cut-off."""
        return min(1.0 / self.low_pass.cutoff, LONGEST_BRIDGE_S)

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
        settling = max(self.low_pass.settling, self.motion_pass.settling)
        margin = self.decimation * math.ceil(2 * settling * self.rate)
        core = self.decimation * math.ceil(max(4 * margin, 2048) / self.decimation)
        return Cut(step=1.0 / self.native_rate, core=core, margin=margin, longest_gap=self.longest_gap)


def filter_window(window: Window, plan: SignalPlan, keep_edges: bool = False) -> FilteredWindow:
    """Filter the motion of one window.

    Args:
        window: from `windows` with `plan.cut`.
        plan: the decisions.
        keep_edges: whether the ends of a segment stay (prediction) or are cut (estimation).
    """
    kept = slice(None, None, plan.decimation)
    starts = window.start == 0

    def differentiated(values: Array) -> tuple[Array, Array, Array]:
        found = filter_with_derivatives(values, plan.native_rate, plan.motion_pass, starts, window.ends)
        smooth, first, second = (np.ascontiguousarray(values[:, kept]) for values in found)
        return smooth, first, second

    q, dq, ddq = differentiated(window.q)
    if plan.recorded_velocity and window.dq is not None:
        velocity = window.dq
        if window.velocity_missing.any():
            derived = derivative(plan.motion_pass.apply(window.q, plan.native_rate), plan.native_rate)
            velocity = np.where(window.velocity_missing, derived, velocity)
        dq, ddq, _ = differentiated(velocity)
    if plan.strokes is not None:
        dq, ddq = _rates_on_strokes(window, plan, dq, ddq)
    temperature = None if window.temperature is None else differentiated(window.temperature)[0]
    reference = None if window.reference is None else Motion(*differentiated(window.reference))
    t = window.t if plan.decimation == 1 else window.t[kept].copy()  # a view would keep all samples in memory
    core = slice(*(-(-end // plan.decimation) for end in (window.core.start, window.core.stop)))
    index = np.arange(len(t))
    number = window.start // plan.decimation + index
    own = (index >= core.start) & (index < core.stop)
    if not keep_edges:
        own &= number >= plan.edge
        own &= (index < len(t) - plan.edge) | (not window.ends)
    loose = (core.start // 2, (len(t) - core.stop) // 2)  # half of the overlap
    return FilteredWindow(
        segment=window.segment,
        t=t,
        motion=Motion(q, dq, ddq, temperature),
        tau=_decimate(window.tau, plan),
        number=number,
        own=own,
        settled=slice(loose[0], len(t) - (0 if window.ends else loose[1])),
        valid=np.ascontiguousarray(_find_valid(window, plan)[:, kept]),
        reference=reference,
        trial=window.trial,
    )


def _rates_on_strokes(window: Window, plan: SignalPlan, dq: Array, ddq: Array) -> tuple[Array, Array]:
    """Velocities and accelerations from the measured angles, behind the motion filter, shape (n, N) each."""
    assert plan.strokes is not None
    full = [np.repeat(values, plan.decimation, axis=1)[:, : len(window.t)] for values in (dq, ddq)]
    rates = plan.strokes.rates(window.trial, window.t, window.q, *full)
    on_stroke = plan.strokes.covered(window.trial, window.t, len(window.q))[:, :: plan.decimation]
    smooth = (plan.motion_pass.apply(values, plan.native_rate)[:, :: plan.decimation] for values in rates)
    velocity, acceleration = (np.where(on_stroke, new, old) for new, old in zip(smooth, (dq, ddq), strict=True))
    return np.ascontiguousarray(velocity), np.ascontiguousarray(acceleration)


def _decimate(tau: Array | None, plan: SignalPlan) -> Array | None:
    """Efforts on the decimated grid, behind an anti-aliasing filter."""
    if tau is None or plan.decimation == 1:
        return tau
    return np.ascontiguousarray(plan.anti_aliasing.apply(tau, plan.native_rate)[:, :: plan.decimation])


def _find_valid(window: Window, plan: SignalPlan) -> Mask:
    """Samples of each joint that rest on recorded ones, behind both filters, shape (n, N)."""
    motion = window.motion_missing
    missing = window.effort_missing
    valid = np.ones(missing.shape, dtype=bool)
    for joint in np.flatnonzero(missing.any(axis=1)):
        valid[joint] = plan.low_pass.apply(missing[joint].astype(float), plan.native_rate) < MISSING_WEIGHT
    if motion.any():
        valid &= plan.motion_pass.apply(motion.astype(float), plan.native_rate) < MISSING_WEIGHT
    return valid


@dataclass(frozen=True, kw_only=True)
class RecordedProblem(RegressorProblem):
    """Linear problem of recordings: rows are made of filtered windows, and can be made again of other windows.

    Attributes:
        windows: filtered windows; iterating again starts a new pass.
        plan: decisions about the signals.
        repeated: whether several passes over the tiles will be made.
    """

    windows: Iterable[FilteredWindow]
    plan: SignalPlan
    repeated: bool = False

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
            tiles=lambda: _join_tiles(_tiles(regressor, layout, windows, plan)),
            rate=plan.row_rate,
            prior=prior,
            period=plan.period,
            regressor=regressor,
            columns=columns,
            windows=windows,
            plan=plan,
        )

    def compute_tiles(self, windows: Iterable[FilteredWindow]) -> Iterator[Tile]:
        """Start a pass over the tiles of filtered windows, with the columns and the plan of this problem."""
        layout = Layout.from_columns(self.regressor, self.columns)
        return _join_tiles(_tiles(self.regressor, layout, windows, self.plan))

    def max_speeds(self) -> Array:
        """See `RegressorProblem.max_speeds`.

        Raises:
            InputError: no samples.
        """
        return measure_ranges(self.windows).dq_max

    def min_speeds(self) -> Array:
        """See `RegressorProblem.min_speeds`."""
        return np.array(self.plan.slowest or (0.0,) * len(self.joint_names))

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


def find_rest(speeds: Array, rest: float, rate: float) -> Mask:
    """Mask of the samples of a joint at rest, shape (N,): slow for `REST_TIME_S` around, not just at a reversal.

    Args:
        speeds: velocity of the joint [rad/s or m/s], shape (N,).
        rest: speed below which it is slow [rad/s or m/s].
        rate: samples per second [Hz].
    """
    reach = math.ceil(0.5 * REST_TIME_S * rate)
    return np.asarray(running_maximum(np.abs(speeds), reach, reach) < rest)


def _tiles(regressor: Regressor, layout: Layout, windows: Iterable[FilteredWindow], plan: SignalPlan) -> Iterator[Tile]:
    """One tile per joint and window; rows that are not valid, or below the low-velocity threshold, are zero.

    Near a peak of friction the sign of a velocity that is noise is an error that the regression filter would spread
    over the rows around: there slow samples are zero before the filter, too.
    """
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
        if plan.decimation > 1:
            filters = plan.anti_aliasing, plan.native_rate, plan.decimation
            sharpen_columns(regressor, layout, window.motion, filters, packed)
        for joint, tau in enumerate(window.tau):
            block = layout.block(packed, joint)
            block[-1] = tau
            slow = np.abs(window.motion.dq[joint]) < slowest[joint]
            if plan.rest and slow.any():
                slow &= ~find_rest(window.motion.dq[joint], plan.rest, plan.rate)
            if regressor.peaked:
                block[:, slow] = 0.0
            thinned = np.ascontiguousarray(plan.low_pass.apply(block, plan.rate)[:, rows])
            thinned[:, ~valid[joint] | slow[rows]] = 0.0
            yield Tile(joint, window.segment, thinned, window.trial, window.t[rows])


def _join_tiles(tiles: Iterable[Tile]) -> Iterator[Tile]:
    """Tiles of consecutive windows of a segment joined, until they have `ROWS_PER_TILE` rows.

    Every pass over a tile has a cost that does not depend on its length, and few rows of a window are left.
    """
    held: dict[int, list[Tile]] = {}

    def joined() -> Iterator[Tile]:
        for parts in held.values():
            t = None if parts[0].t is None else np.concatenate([part.t for part in parts if part.t is not None])
            yield replace(parts[0], block=np.concatenate([part.block for part in parts], axis=1), t=t)

    for tile in tiles:
        parts = held.get(tile.joint, [])
        if parts and (parts[0].segment != tile.segment or sum(len(p.block[-1]) for p in parts) >= ROWS_PER_TILE):
            yield from joined()
            held = {}
        held.setdefault(tile.joint, []).append(tile)
    yield from joined()
