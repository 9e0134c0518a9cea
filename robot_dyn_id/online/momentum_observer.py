# SPDX-License-Identifier: Apache-2.0
"""External joint torque by a momentum observer, with the columns that its error depends on.

The generalized momentum p = M(q) dq obeys dp/dt = tau + d - f + e, with the torque tau of the motors, the drift
d = C' dq - g, the friction f and the external torque e. The observer r' = K (e - r) of De Luca and Mattone (2005) is a
first-order low-pass L of e, and needs no acceleration, as L[dp/dt] = K (p - L[p]):

    r = K p - L[K p + d - f] - L[tau].

Momentum, drift and friction are linear in the base parameters, so that r = pi . columns - L[tau], and the covariance of
pi gives that of r. The low-pass is exact for inputs that are linear between samples: its output is a weighted mean of
the last output and two inputs, with positive weights, for any gain and any period.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.momentum import MomentumRegressor
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.recursive_filters import compute_steps_since, first_order
from robot_dyn_id.online.friction_columns import FrictionColumns
from robot_dyn_id.online.monitoring import MOVING_RATIO, CausalFilter
from robot_dyn_id.online.rows import Rows
from robot_dyn_id.parameters import ParameterSet

SETTLED = 6.0
"""Time constants after which the initial state of the observer has decayed, to 0.25 %."""


@dataclass(frozen=True)
class ObserverSettings:
    """Settings of a momentum observer.

    Attributes:
        gain: gain of all joints, or of each joint [1/s]: 1 / gain is the time constant of the estimate.
        cutoff: cut-off of the low-pass that gives velocities from positions, and that positions pass before states of
            friction follow them [Hz].
        effort_delay: time by which efforts are late with respect to positions [s]; negative if they are early.
        longest_gap: time without joint states after which the observer restarts [s].
    """

    gain: tuple[float, ...] = (60.0,)
    cutoff: float = 40.0
    effort_delay: float = 0.0
    longest_gap: float = 0.1

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            UsageError: a gain, cut-off or gap that is not positive and finite, or a delay that is not finite.
        """
        for name, values in (("gain", self.gain), ("cutoff", (self.cutoff,)), ("longest_gap", (self.longest_gap,))):
            if not values or not all(0.0 < value < np.inf for value in values):
                raise UsageError(
                    f"{name} must be positive, not {', '.join(f'{value:g}' for value in values) or 'empty'}"
                )
        if not np.isfinite(self.effort_delay):
            raise UsageError(f"effort_delay must be finite, not {self.effort_delay:g}")

    def gains(self, joints: int) -> Array:
        """Gain of each joint, shape (n,).

        Raises:
            UsageError: another number of gains than 1 or `joints`.
        """
        if len(self.gain) not in (1, joints):
            raise UsageError(f"gain has {len(self.gain)} values, expected 1 or {joints}")
        return np.full(joints, self.gain[0]) if len(self.gain) == 1 else np.array(self.gain)


DEFAULT_OBSERVER = ObserverSettings()


@dataclass(frozen=True)
class TorqueEstimate:
    """Estimated external torque at one time, of n joints.

    Attributes:
        t: time [s].
        q: positions [rad or m], shape (n,).
        torque: external torque that acts on the joints [N m or N], shape (n,).
        effort: low-passed effort of the motors [N m or N], shape (n,).
        model_covariance: covariance of `torque` due to that of the parameters, shape (n, n); infinite variances where
            a joint depends on a parameter that is not identifiable.
        reversal: half the range of the friction within the uncertainty of a velocity near zero, low-passed
            [N m or N], shape (n,).
        slow: time for which the speed of each joint has been too low for that friction to be known [s], shape (n,).
    """

    t: float
    q: Array
    torque: Array
    effort: Array
    model_covariance: Array
    reversal: Array
    slow: Array


@dataclass(frozen=True)
class TorqueEstimates(Rows):
    """Estimates at M times: arrays of the values of `TorqueEstimate`, with the times as the first axis.

    Attributes:
        t: times [s], shape (M,).
        q: shape (M, n).
        torque: shape (M, n).
        effort: shape (M, n).
        model_covariance: shape (M, n, n).
        reversal: shape (M, n).
        slow: shape (M, n).
        piece: number of the uninterrupted piece of the joint states that each belongs to, shape (M,).
    """

    t: Array
    q: Array
    torque: Array
    effort: Array
    model_covariance: Array
    reversal: Array
    slow: Array
    piece: Integers

    def __getitem__(self, number: int) -> TorqueEstimate:
        """One estimate."""
        values = (self.q, self.torque, self.effort, self.model_covariance, self.reversal, self.slow)
        return TorqueEstimate(float(self.t[number]), *(each[number] for each in values))

    @property
    def moving(self) -> Mask:
        """Whether any joint moves, shape (M,)."""
        return np.asarray(np.any(self.slow == 0.0, axis=1))


@dataclass(frozen=True)
class Observed(Rows):
    """Input of estimates at the M joint states where the observer has settled.

    Attributes:
        t: times [s], shape (M,).
        q: positions, shape (M, n).
        columns: columns of the external torque, shape (M, p, n).
        effort: low-passed effort, shape (M, n).
        reversal: see `TorqueEstimate`, shape (M, n).
        slow: see `TorqueEstimate`, shape (M, n).
        piece: number of the uninterrupted piece of each, shape (M,).
    """

    t: Array
    q: Array
    columns: Array
    effort: Array
    reversal: Array
    slow: Array
    piece: Integers


class ObserverFilter:
    """First-order low-pass of each joint, exact for inputs that are linear between samples."""

    def __init__(self, rate: Array) -> None:
        """Start without samples, for the inverse time constant of each joint [1/s], shape (n,)."""
        self._rate = rate
        self.reset()

    def reset(self) -> None:
        """Begin again in steady state at the next sample."""
        self._last: tuple[Array, Array] | None = None

    def follow(self, step: Array, u: Array) -> Array:
        """Outputs after N values.

        Args:
            step: time of each since the previous one [s], shape (N,); the first one is not read after a reset.
            u: values, shape (N, m, n).

        Returns:
            Outputs, shape (N, m, n).
        """
        first = self._last is None
        before, last = (u[0], u[0]) if self._last is None else self._last
        inputs, y = np.concatenate([before[None], u]), np.empty((len(u) + 1, *u.shape[1:]))
        y[0] = last
        x = np.outer(np.concatenate([[1.0, 1.0 if first else step[0]], step[1:]]), self._rate)
        keep = np.exp(-x)
        share = -np.expm1(-x) / x
        first_order(keep, share - keep, 1.0 - share, inputs, y)
        self._last = u[-1], y[-1]
        return y[1:]


class Alignment:
    """Motion and effort of the same time, from a stream in which one of them is late."""

    def __init__(self, delay: float) -> None:
        """Start without samples, for the time by which efforts are late [s]."""
        self._delay = delay
        self.reset()

    def reset(self) -> None:
        """Discard all samples."""
        self._past: tuple[Array, Array] | None = None

    def follow(self, t: Array, motion: Array, effort: Array) -> tuple[Array, Array, Mask]:
        """Add N samples.

        Args:
            t: times, later than those of previous samples [s], shape (N,).
            motion: positions and velocities, shape (N, 2, n).
            effort: shape (N, n).

        Returns:
            Motion and effort that belong together, the later of them interpolated, and a mask of the samples where
            both are known, shape (N,); only these are returned.
        """
        if self._delay == 0.0:
            return motion, effort, np.full(len(t), True)
        times, values = t, motion if self._delay > 0.0 else effort
        if self._past is not None:
            times, values = np.concatenate([self._past[0], times]), np.concatenate([self._past[1], values])
        wanted = t - abs(self._delay)
        place = np.searchsorted(times, wanted, side="right") - 1
        known = place >= 0
        keep = max(int(place[-1]), 0)
        self._past = times[keep:], values[keep:]
        place, wanted = place[known], wanted[known]
        share = (wanted - times[place]) / (times[place + 1] - times[place])
        share = share.reshape(-1, *(1,) * (values.ndim - 1))
        early = values[place] + share * (values[place + 1] - values[place])
        return (early, effort[known], known) if self._delay > 0.0 else (motion[known], early, known)


class MomentumObserver:
    """External joint torque from a stream of joint states.

    Attributes:
        parameters: identified parameter set.
        regressor: its regressor.
        gain: gain of each joint [1/s], shape (n,).
        interruptions: number of times without joint states that were longer than `longest_gap`.
    """

    def __init__(self, parameters: ParameterSet, settings: ObserverSettings = DEFAULT_OBSERVER) -> None:
        """Start without joint states.

        Raises:
            InputError: a set that this version cannot read, whose effort is the external torque itself, whose drive
                gains are not known, or whose verdict is bad.
            UsageError: another number of gains than joints, or a term of the acceleration that is not an inertia.
        """
        if parameters.effort.kind == "external":
            raise InputError(
                "effort.kind of the parameter set is external: the driver reports the external torque itself, and no "
                "model of the robot predicts it; use that effort instead, or identify from measured efforts"
            )
        parameters.refuse_unknown_gains()
        if parameters.judgment.verdict == "bad":
            reason = f" ({parameters.judgment.reasons[0]})" if parameters.judgment.reasons else ""
            raise InputError(f"the verdict of the parameter set is bad{reason}: identify the robot again")
        self.parameters, self._settings = parameters, settings
        self.regressor = Regressor.from_parameters(parameters)
        self.gain = settings.gains(len(parameters.robot.joint_names))
        self._columns = parameters.base.independent
        self._momentum = MomentumRegressor(self.regressor)
        self._friction = FrictionColumns(self.regressor)
        self._friction_values = _values_of(parameters, self._columns, self._friction.rows)
        self._width = MOVING_RATIO * parameters.ranges.dq_max
        self._differentiator, self._differentiates = CausalFilter(settings.cutoff), False
        self._alignment, self._low_pass = Alignment(settings.effort_delay), ObserverFilter(self.gain)
        self._factors = parameters.effort_factors
        unknown = ~np.isfinite(np.diag(parameters.estimate.covariance))
        known = ~unknown
        self._unknown = np.flatnonzero(unknown)
        self._covariance = np.where(known & known[:, None], parameters.estimate.covariance, 0.0)
        self.interruptions = 0
        self._last, self._piece = -np.inf, 0
        self._restart()

    def _restart(self) -> None:
        """Begin again without an estimate; states of friction are kept."""
        self._differentiator.reset()
        self._alignment.reset()
        self._low_pass.reset()
        self._time, self._begun = -np.inf, np.inf
        self._moved = np.full(len(self.gain), -np.inf)
        self._latest: Observed | None = None
        self._piece += 1

    @property
    def settled(self) -> bool:
        """Whether the initial state of the observer has decayed."""
        return bool(self._time - self._begun >= SETTLED / self.gain.min())

    def add(self, t: float, q: Array, dq: Array | None, tau: Array) -> bool:
        """Add a joint state, shape (n,) each; states that are not later than the previous one are ignored.

        Args:
            t: time [s].
            q: positions [rad or m].
            dq: velocities; None: derived from the positions by a causal low-pass, which efforts pass, too.
            tau: effort as the drives report it; gains and signs of the parameter set are applied.

        Returns:
            Whether `estimate` is valid.
        """
        observed = self.follow(np.array([t]), q[None], None if dq is None else dq[None], tau[None])
        if not len(observed.t):
            return False
        self._latest = observed
        return True

    def estimate(self) -> TorqueEstimate:
        """Estimate at the latest state.

        Raises:
            UsageError: there is none.
        """
        if self._latest is None:
            raise UsageError("the observer has not settled: there is no estimate")
        return self.estimates(self._latest, np.array([len(self._latest.t) - 1]))[0]

    def follow(self, t: Array, q: Array, dq: Array | None, tau: Array) -> Observed:
        """Add N joint states, as `add` adds one.

        Args:
            t: times [s], shape (N,).
            q: positions [rad or m], shape (N, n).
            dq: velocities, shape (N, n), or None.
            tau: efforts, shape (N, n).

        Returns:
            What `estimates` needs, at the states where the observer has settled.
        """
        parts = []
        for chosen, interrupted, set_back in self._pieces(t):
            self.interruptions += interrupted
            if interrupted or set_back or not np.isfinite(self._last):
                self._restart()
            if set_back:
                self._friction.reset()
            if (dq is None) != self._differentiates:
                self._differentiates = dq is None
                self._restart()
            self._last = float(t[chosen[-1]])
            state = t[chosen], q[chosen], None if dq is None else dq[chosen], self._factors * tau[chosen]
            part = self._follow(*state)
            if part is not None:
                parts.append(part)
        if parts:
            return Observed.concatenate(parts)
        n, p = len(self.gain), len(self._columns)
        none = np.empty((0, n))
        return Observed(np.empty(0), none, np.empty((0, p, n)), none, none, none, np.empty(0, dtype=np.int64))

    def _pieces(self, t: Array) -> Iterator[tuple[Integers, bool, bool]]:
        """Indices of joint states without long gaps, whether a gap precedes them, and whether time was set back."""
        gap, last = self._settings.longest_gap, self._last
        chosen: list[int] = []
        interrupted = set_back = False
        for k, time in enumerate(t.tolist()):
            if last - gap <= time <= last:
                continue
            if time < last or time > last + gap:  # a bag starts again, or joint states are missing
                if chosen:
                    yield np.array(chosen), interrupted, set_back
                chosen, set_back = [], time < last
                interrupted = not set_back and math.isfinite(last)
            chosen.append(k)
            last = time
        if chosen:
            yield np.array(chosen), interrupted, set_back

    def _follow(self, t: Array, q: Array, dq: Array | None, tau: Array) -> Observed | None:
        """Follow N joint states without long gaps; None if the observer has not settled at any of them."""
        if dq is None:
            (q, tau), (dq, _) = (x.swapaxes(0, 1) for x in self._differentiator.follow(t, np.stack([q, tau], axis=1)))
            known = self._differentiator.settled_at(t)
            t, q, dq, tau = t[known], q[known], dq[known], tau[known]
        elif self._friction.has_states:
            q, dq, tau = self._differentiator.follow(t, np.stack([q, dq, tau], axis=1))[0].swapaxes(0, 1)
        if not len(t):
            return None
        motion, tau, known = self._alignment.follow(t, np.stack([q, dq], axis=1), tau)
        if not known.any():
            return None
        return self._filter(t[known], motion[:, 0], motion[:, 1], tau)

    def _filter(self, t: Array, q: Array, dq: Array, tau: Array) -> Observed | None:
        """Run the low-pass over states whose motion and effort belong together."""
        momentum, drift = self._momentum.columns(q, dq)
        drift[:, self._friction.rows] -= self._friction.follow(t, q.T, dq.T).transpose(2, 0, 1)
        weighted = self.gain * momentum[:, self._columns]
        width = self._friction.half_range(q.T, dq.T, self._width, self._friction_values).T
        rows = np.concatenate([weighted + drift[:, self._columns], tau[:, None], width[:, None]], axis=1)
        filtered = self._low_pass.follow(compute_steps_since(self._time, t), rows)
        moved = np.maximum.accumulate(np.where(np.abs(dq) > self._width, t[:, None], self._moved), axis=0)
        self._begun = min(self._begun, float(t[0]))
        self._time, self._moved = float(t[-1]), moved[-1]
        settled = t - self._begun >= SETTLED / self.gain.min()
        if not settled.any():
            return None
        columns, slow = weighted - filtered[:, :-2], t[:, None] - moved
        efforts = filtered[:, -2], filtered[:, -1]
        return Observed(t, q, columns, *efforts, slow, np.full(len(t), self._piece)).take(settled)

    def estimates(self, observed: Observed, chosen: Integers) -> TorqueEstimates:
        """Estimates at some of the states that were followed."""
        observed = observed.take(chosen)
        columns = observed.columns  # (M, p, n)
        covariance = columns.transpose(0, 2, 1) @ (self._covariance @ columns)
        unsure = np.any(columns[:, self._unknown] != 0.0, axis=1)
        joints = np.arange(columns.shape[2])
        covariance[:, joints, joints] = np.where(unsure, np.inf, covariance[:, joints, joints])
        torque = np.einsum("p,kpn->kn", self.parameters.estimate.values, columns) - observed.effort
        rest = observed.reversal, observed.slow, observed.piece
        return TorqueEstimates(observed.t, observed.q, torque, observed.effort, covariance, *rest)


def _values_of(parameters: ParameterSet, columns: Integers, rows: Integers) -> Array:
    """Base parameters in the columns `rows` of the regressor, zero in those that are not independent."""
    full = np.zeros(len(parameters.base.column_names))
    full[columns] = parameters.estimate.values
    return np.asarray(full[rows])
