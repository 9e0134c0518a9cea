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

from collections import deque
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.momentum import MomentumRegressor
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.online.friction_columns import FrictionColumns
from robot_dyn_id.online.monitoring import MOVING_RATIO, CausalFilter
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

    @property
    def moving(self) -> bool:
        """Whether any joint moves."""
        return bool(np.any(self.slow == 0.0))


class ObserverFilter:
    """First-order low-pass of each joint, exact for inputs that are linear between samples."""

    def __init__(self, rate: Array) -> None:
        """Start without samples, for the inverse time constant of each joint [1/s], shape (n,)."""
        self._rate = rate
        self.reset()

    def reset(self) -> None:
        """Begin again in steady state at the next sample."""
        self._u: Array | None = None

    def add(self, step: float, u: Array) -> Array:
        """Output after values u, shape (..., n), that come `step` [s] after the previous ones."""
        if self._u is None:
            self._u = self._y = u
            return u
        x = self._rate * step
        keep = np.exp(-x)
        share = -np.expm1(-x) / x
        self._y = keep * self._y + (share - keep) * self._u + (1.0 - share) * u
        self._u = u
        return self._y


class Alignment:
    """Motion and effort of the same time, from a stream in which one of them is late."""

    def __init__(self, delay: float) -> None:
        """Start without samples, for the time by which efforts are late [s]."""
        self._delay = delay
        self.reset()

    def reset(self) -> None:
        """Discard all samples."""
        self._past: deque[tuple[float, Array]] = deque()

    def add(self, t: float, motion: Array, effort: Array) -> tuple[Array, Array] | None:
        """Add a sample.

        Args:
            t: time, later than that of the previous sample [s].
            motion: positions and velocities, shape (2, n).
            effort: shape (n,).

        Returns:
            Motion and effort that belong together, the later of them interpolated; None until it is known.
        """
        if self._delay == 0.0:
            return motion, effort
        early = motion if self._delay > 0.0 else effort
        self._past.append((t, early))
        wanted = t - abs(self._delay)
        while len(self._past) > 1 and self._past[1][0] <= wanted:
            self._past.popleft()
        first, value = self._past[0]
        if first > wanted:
            return None
        if len(self._past) > 1:
            second, other = self._past[1]
            value = value + (wanted - first) / (second - first) * (other - value)
        return (value, effort) if self._delay > 0.0 else (motion, value)


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
            InputError: a set that this version cannot read, whose effort is the external torque itself, or whose
                verdict is bad.
            UsageError: another number of gains than joints, or a term of the acceleration that is not an inertia.
        """
        if parameters.effort_kind == "external":
            raise InputError(
                "effort_kind of the parameter set is external: the driver reports the external torque itself, and no "
                "model of the robot predicts it; use that effort instead, or identify from measured efforts"
            )
        if parameters.verdict == "bad":
            reason = f" ({parameters.reasons[0]})" if parameters.reasons else ""
            raise InputError(f"the verdict of the parameter set is bad{reason}: identify the robot again")
        self.parameters, self._settings = parameters, settings
        self.regressor = Regressor.from_parameters(parameters)
        self.gain = settings.gains(len(parameters.joint_names))
        self._columns = parameters.independent_columns.astype(np.int64)
        self._momentum = MomentumRegressor(self.regressor)
        self._friction = FrictionColumns(self.regressor)
        self._friction_values = _values_of(parameters, self._columns, self._friction.rows)
        self._width = MOVING_RATIO * parameters.dq_max
        self._differentiator, self._differentiates = CausalFilter(settings.cutoff), False
        self._alignment, self._low_pass = Alignment(settings.effort_delay), ObserverFilter(self.gain)
        self._factors = parameters.effort_factors
        unknown = ~np.isfinite(np.diag(parameters.covariance))
        known = ~unknown
        self._unknown = np.flatnonzero(unknown)
        self._covariance = np.where(known & known[:, None], parameters.covariance, 0.0)
        self.interruptions = 0
        self._last = -np.inf
        self._restart()

    def _restart(self) -> None:
        """Begin again without an estimate; states of friction are kept."""
        self._differentiator.reset()
        self._alignment.reset()
        self._low_pass.reset()
        self._time, self._begun = -np.inf, np.inf
        self._moved = np.full(len(self.gain), -np.inf)

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
        gap = self._settings.longest_gap
        if t <= self._last:
            if t >= self._last - gap:
                return False
            self._restart()  # time was set back: a bag starts again
            self._friction.reset()
        elif t > self._last + gap:
            self.interruptions += bool(np.isfinite(self._last))
            self._restart()
        if (dq is None) != self._differentiates:
            self._differentiates = dq is None
            self._restart()
        self._last = t
        tau = self._factors * tau
        if dq is None:
            (q, tau), (dq, _) = self._differentiator.add(t, np.array((q, tau)))
            if not self._differentiator.settled:
                return False
        elif self._friction.has_states:
            (q, dq, tau), _ = self._differentiator.add(t, np.array((q, dq, tau)))
        aligned = self._alignment.add(t, np.array((q, dq)), tau)
        if aligned is None:
            return False
        (q, dq), tau = aligned
        self._follow(t, q, dq, tau)
        return self.settled

    def _follow(self, t: float, q: Array, dq: Array, tau: Array) -> None:
        """Update the low-pass by a state whose motion and effort belong together."""
        momentum, drift = self._momentum.columns(q, dq)
        drift[self._friction.rows] -= self._friction.add(t, q, dq)
        self._weighted = self.gain * momentum[self._columns]
        width = self._friction.half_range(q, dq, self._width, self._friction_values)
        rows = np.concatenate([self._weighted + drift[self._columns], tau[None], width[None]])
        self._filtered = self._low_pass.add(t - self._time, rows)
        self._begun = min(self._begun, t)
        self._time, self._q = t, q
        self._moved = np.where(np.abs(dq) > self._width, t, np.minimum(self._moved, t))

    def estimate(self) -> TorqueEstimate:
        """Estimate at the latest state."""
        columns = self._weighted - self._filtered[:-2]  # (p, n)
        effort, reversal = self._filtered[-2:]
        covariance = columns.T @ self._covariance @ columns
        unsure = np.any(columns[self._unknown] != 0.0, axis=0)
        covariance[unsure, unsure] = np.inf
        torque = self.parameters.values @ columns - effort
        slow = self._time - self._moved
        return TorqueEstimate(self._time, self._q, torque, effort, covariance, reversal, slow)


def _values_of(parameters: ParameterSet, columns: Integers, rows: Integers) -> Array:
    """Base parameters in the columns `rows` of the regressor, zero in those that are not independent."""
    full = np.zeros(len(parameters.column_names))
    full[columns] = parameters.values
    return np.asarray(full[rows])
