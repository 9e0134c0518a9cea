# SPDX-License-Identifier: Apache-2.0
"""How well an identified model predicts the torque of a robot while it works."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.identification import assembly
from robot_dyn_id.identification.extrapolation import Excess, far_outside, list_excesses
from robot_dyn_id.online import ModelWatch
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.ranges import Ranges

MOVING = 0.05
"""A joint moves when it is faster than this share of its greatest trained speed. Below, friction holds any torque up to
its breakaway, and no model could know which."""

ENOUGH = 2.0
"""Motion from which a joint is judged on [s]."""

PART = 0.25
"""Motion that one mean square goes over [s]; longer than the filter takes to forget one sample."""

FORERUN = 4.0
"""Cut-off of the low-pass that differentiates positions, over that of the monitor: it delays friction only a little."""

LEFT_OUT = 0.15
"""Share of the parts, the worst ones, that is left out of the judgement. A controller that is told to stop, or to go
elsewhere, gives a pulse of torque of a few milliseconds: efforts sampled at 200 Hz do not show how large it was, and no
model could predict what they show. A model that does not fit does so in most of the motion."""


class CausalFilter:
    """Second-order low-pass with both poles at -w, and the derivative of its output, for samples at any times.

    A state-variable filter: input u, output y with y'' + 2 w y' + w^2 y = w^2 u, where u is a straight line between two
    samples, solved exactly. Position, velocity, torque and (by y') acceleration go through the same filter, so they are
    late by the same time and fit together, which a derivative filter on the velocity alone would spoil.
    """

    def __init__(self, cutoff: float) -> None:
        """Make it for a cut-off [Hz]: w = 2 pi cutoff."""
        self._w = 2 * np.pi * cutoff
        self.reset()

    def reset(self) -> None:
        """Forget: the next sample begins anew, as if its value had always been."""
        self._t, self._since = -np.inf, np.inf

    @property
    def settled(self) -> bool:
        """Whether the beginning is forgotten, to 0.3 %."""
        return self._t - self._since >= 8.0 / self._w

    def add(self, t: float, u: Array) -> tuple[Array, Array]:
        """Take up a sample.

        Args:
            t: its time, later than the one before [s].
            u: its values, any shape.

        Returns:
            Output and its derivative.
        """
        if not np.isfinite(self._t):
            self._t, self._since, self._u = t, t, u
            self._y, self._dy = u, np.zeros_like(u)
            return self._y, self._dy
        w, h = self._w, t - self._t
        slope = (u - self._u) / h
        # the straight line is followed with a lag of 2 / w; what differs from that at the start decays
        first = self._y - (self._u - 2.0 * slope / w)
        second = self._dy - slope + w * first
        decay = np.exp(-w * h)
        self._y = u - 2.0 * slope / w + (first + second * h) * decay
        self._dy = slope + (second - w * (first + second * h)) * decay
        self._t, self._u = t, u
        return self._y, self._dy


@dataclass(frozen=True)
class Residual:
    """Torque of one moment, shape (n,) each [N m or N].

    Attributes:
        measured: low-passed.
        predicted: by the model.
        standard_deviation: of `predicted`; infinite where it takes a parameter that the data could not tell.
        velocity: low-passed [rad/s or m/s].
    """

    measured: Array
    predicted: Array
    standard_deviation: Array
    velocity: Array

    @property
    def difference(self) -> Array:
        """Measured - predicted."""
        return self.measured - self.predicted


def accelerated(term: Term) -> bool:
    """Whether its columns depend on the acceleration."""
    return bool(np.any(term.slopes(*np.ones((3, 1)))[2]))


class Columns:
    """Low-passed torques, motion and columns of a regressor, along joint states.

    The columns of friction pass the same low-pass as the torque, side by side (parallel filtering, Gautier 1997): those
    of the low-passed velocity would be larger than what the low-pass leaves of a friction that jumps. The rigid body,
    and terms of the acceleration, which only the filter tells, are smooth: theirs come from the low-passed motion.
    """

    def __init__(self, regressor: Regressor, cutoff: float) -> None:
        """Begin, with the cut-off of the low-pass [Hz]."""
        model, self._shape = regressor.model, regressor.structure.shape
        self.filter = CausalFilter(cutoff)
        smooth = np.array([accelerated(column.term) for column in regressor.term_columns], dtype=bool)
        bodies = self._shape[0] - len(smooth)
        self._smooth_rows = np.flatnonzero(np.concatenate([np.full(bodies, True), smooth]))
        self._rough_rows = bodies + np.flatnonzero(~smooth)
        self._smooth = Regressor(model, tuple(pair for pair in regressor.terms if accelerated(pair[1])))
        self._rough = Regressor(model, tuple(pair for pair in regressor.terms if not accelerated(pair[1])))

    def add(self, t: float, state: Array) -> None:
        """Take up positions, velocities and torques at the time t [s], shape (3, n), later than those before."""
        q, dq, _ = state[:, :, None]
        motion = Motion(q, dq, np.zeros_like(dq))
        signals = self._rough.signals(motion)
        rows = np.empty((3 + len(self._rough_rows), self._shape[1]))
        rows[:3], rough = state, rows[3:]
        for group in self._rough.term_groups:
            rough[group.numbers] = group.columns(q, dq, motion.ddq, signals) * group.weights  # (symbols, g, n)
        self._values, self._slopes = self.filter.add(t, rows)

    def read(self) -> tuple[Motion, Array, Array]:
        """Motion, torques, shape (n,), and columns, shape (c, n), all low-passed."""
        q, dq, tau = self._values[:3]
        columns = np.empty(self._shape)
        motion = Motion(q[:, None], dq[:, None], self._slopes[1, :, None])
        columns[self._smooth_rows] = self._smooth.dense(motion)[:, :, 0]
        columns[self._rough_rows] = self._values[3:]
        return motion, tau, columns


class ResidualMonitor:
    """Residuals of a parameter set along joint states, how large they are where the joints move, and what has changed.

    Example:
        ```python
        monitor = rdi.ResidualMonitor(rdi.load_parameters("run/parameters.yaml"), cutoff=5.0, window=10.0)
        for chunk in recording.chunks(recording.joint_names):
            for t, q, dq, tau in zip(chunk.t, chunk.q, chunk.dq, chunk.tau):
                monitor.add(t, q, dq, tau)
        print(monitor.rms)
        ```

    Attributes:
        parameters: the set.
        watch: looks for changes in the residuals.
        longest_gap: silence after which the filters restart [s].
    """

    def __init__(
        self, parameters: ParameterSet, cutoff: float, window: float, longest_gap: float = 0.1, **watch: Any
    ) -> None:
        """Begin.

        Args:
            parameters: the set.
            cutoff: of the filter [Hz].
            window: motion that is judged, the latest [s]; in parts of `PART`.
            longest_gap: see above.
            **watch: options of `ModelWatch`.

        Raises:
            InputError: a set that this version cannot read; see `ModelWatch`.
        """
        self.parameters, self.longest_gap = parameters, longest_gap
        regressor = Regressor.from_parameters(parameters)
        self._independent = parameters.independent_columns.astype(np.int64)
        self._columns, self._trained = Columns(regressor, cutoff), Ranges.from_parameters(parameters)
        self.watch = ModelWatch(parameters, regressor, cutoff, longest_gap=longest_gap, **watch)
        joints = len(parameters.joint_names)
        self._differentiator, self._differentiates = CausalFilter(FORERUN * cutoff), False
        self._last, self._evaluated = -np.inf, -np.inf
        self._moved, self._joints = np.zeros(joints), np.arange(joints)
        self._time = np.zeros((round(max(window / PART, 1.0)), joints))
        self._integrals = np.zeros((5, *self._time.shape))  # of residual^2, torque^2, and `outside`, in each part

    def add(self, t: float, q: Array, dq: Array | None, tau: Array) -> bool:
        """Take up a joint state, shape (n,) each; states that are not later than the one before are left out.

        Without velocities (None), positions and torques first pass a causal low-pass of `FORERUN` times the cut-off,
        whose derivative gives the velocities: all three are late by the same time.

        Returns:
            Whether the filter has settled, so that `residual` is valid.
        """
        if t <= self._last:
            if t < self._last - self.longest_gap:  # time has been set back: a bag begins again
                self._restart()
                self._last = self._evaluated = -np.inf
            else:
                return False
        if t > self._last + self.longest_gap or (dq is None) != self._differentiates:
            self._restart()
        self._last, self._differentiates = t, dq is None
        if dq is None:
            (q, tau), (dq, _) = self._differentiator.add(t, np.array((q, tau)))
            if not self._differentiator.settled:
                return False
        self._columns.add(t, np.array((q, dq, tau)))
        return self._columns.filter.settled

    def _restart(self) -> None:
        """Reset the filters."""
        self._columns.filter.reset()
        self._differentiator.reset()

    def residual(self) -> Residual:
        """The residual at the state that was added last; it is taken up in the judgement."""
        motion, tau, columns = self._columns.read()
        columns = columns[self._independent]  # (p, n)
        residual = Residual(tau, self.parameters.values @ columns, self._deviation(columns), motion.dq[:, 0])
        passed = min(self._last - self._evaluated, self.longest_gap)
        self._evaluated = self._last
        moving = np.abs(residual.velocity) > MOVING * self._trained.dq_max
        squares = np.array((residual.difference, tau)) ** 2
        far = far_outside(motion, self._trained)[:, :, 0]
        self._count(np.where(moving, passed, 0.0), np.concatenate([squares, far]))
        if self.watch.due(self._last):
            self.watch.add(self._last, columns, tau, residual.difference, moving)
        return residual

    def _count(self, passed: Array, values: Array) -> None:
        """Add values, shape (5, n), that lasted for `passed` [s], shape (n,), to the part of the moment of each joint.

        The parts are a ring: where a joint begins a new one, its oldest is forgotten.
        """
        before, after = (np.floor(moved / PART) for moved in (self._moved, self._moved + passed))
        self._moved += passed
        part = after.astype(np.int64) % len(self._time)
        begun = self._joints[after > before]
        self._time[part[begun], begun] = self._integrals[:, part[begun], begun] = 0.0
        self._time[part, self._joints] += passed
        self._integrals[:, part, self._joints] += passed * values

    @property
    def _squares(self) -> Array:
        """Mean squares of residual and torque over the motion without its worst parts, shape (2, n)."""
        time = np.maximum(self._time, 1e-300)
        order = np.argsort(self._integrals[0] / time, axis=0)  # parts without motion come first, and count for nothing
        filled = np.count_nonzero(self._time, axis=0)
        left_out = np.clip(np.ceil(LEFT_OUT * filled), 0, np.maximum(filled - 1, 0))
        kept = np.arange(len(time))[:, None] < len(time) - left_out
        every = np.array((self._time, *self._integrals[:2]))
        total, *squares = np.sum(np.take_along_axis(every, order[None], axis=1), axis=1, where=kept)
        return np.asarray(np.array(squares) / np.maximum(total, 1e-300))

    @property
    def judged(self) -> Mask:
        """Which joints have moved enough to be judged, shape (n,)."""
        return self._moved >= ENOUGH

    @property
    def rms(self) -> Array:
        """RMS residual while moving, without the worst parts [N m or N], shape (n,)."""
        return np.asarray(np.sqrt(self._squares[0]))

    @property
    def nrmse(self) -> Array:
        """RMS residual over RMS torque while moving, both without the worst parts, shape (n,)."""
        return np.asarray(self.rms / np.sqrt(np.maximum(self._squares[1], 1e-300)))

    def worse(self, factor: float, floor: float) -> tuple[str, ...]:
        """Names of the judged joints whose NRMSE is above `factor` times that on held-out data, and above `floor`."""
        allowed = np.maximum(factor * self.parameters.held_out_nrmse, floor)
        flags = self.judged & (self.nrmse > allowed)
        return tuple(name for name, flag in zip(self.parameters.joint_names, flags, strict=True) if flag)

    @property
    def outside(self) -> tuple[Excess, ...]:
        """Joints and quantities that are far outside the trained motion, and for which share of the motion judged."""
        shares = np.sum(self._integrals[2:], axis=1) / np.maximum(np.sum(self._time, axis=0), 1e-300)
        return list_excesses(self.parameters.joint_names, np.where(self.judged, shares, 0.0))

    @property
    def tracked(self) -> ParameterSet | None:
        """The set with base parameters, standard deviations and covariance as recent motion tells them.

        All else is the identified set's, but for what says that it is tracked. None while the noise is not known.
        """
        found = self.watch.tracked
        return None if found is None else assembly.tracked(self.parameters, *found)

    @cached_property
    def _unknown(self) -> Mask:
        """Parameters without a finite variance."""
        return np.asarray(~np.isfinite(np.diag(self.parameters.covariance)))

    @cached_property
    def _covariance(self) -> Array:
        """Of the parameters, zero for those without a finite variance."""
        known = ~self._unknown
        return np.asarray(np.where(known & known[:, None], self.parameters.covariance, 0.0))

    def _deviation(self, columns: Array) -> Array:
        """Standard deviation of the predicted torque, shape (n,)."""
        variance = np.sum(columns * (self._covariance @ columns), axis=0)
        unsure = np.any(columns[self._unknown] != 0.0, axis=0)
        return np.where(unsure, np.inf, np.sqrt(np.maximum(variance, 0.0)))
