# SPDX-License-Identifier: Apache-2.0
"""The model of a robot that works: does it still hold, and if not, what has changed?"""

from __future__ import annotations

import copy
import math

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.whitening import Whitening
from robot_dyn_id.online.changes import WINDOWS, Change, Thresholds, Watchers, parts_of
from robot_dyn_id.online.explanation import Explanation, decided
from robot_dyn_id.online.noise import Autocovariance, RowWhitening
from robot_dyn_id.online.recursion import RecursiveLeastSquares, information_root
from robot_dyn_id.parameters import ParameterSet

ORDER = 3
"""Past rows that a residual is predicted from."""

ROWS = 2.5
"""Rows per second over the cut-off of the low-pass: more of them tell only what the filter has left of its stop band,
which friction at reversals and rounding rule."""

COLOUR = 1.0 / 3.0
"""Share of the quiet time that tells the colour of the noise; the rest tells the thresholds."""


class ModelWatch:
    """Follows the residual of an identified model: learns its noise, then looks for changes and tracks the parameters.

    All that is learned comes from the first `quiet` seconds of motion, in which the model is taken to fit: colour and
    size of the noise, scales of the parameters (each alone could make up the arm's whole torque), and thresholds. At a
    detection the estimate of what has changed begins anew, rather than forgetting faster; the model is corrected by
    what was tracked before.

    Attributes:
        parts: what can change.
        detected: time of the latest detection [s]; NaN before.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        regressor: Regressor,
        cutoff: float,
        body: str = "",
        quiet: float = 60.0,
        between: float = 360e3,
        memory: float = 60.0,
        longest_gap: float = 0.1,
    ) -> None:
        """Begin.

        Args:
            parameters: the model.
            regressor: of it.
            cutoff: of the causal low-pass that torques and motion come from [Hz].
            body: joint that moves the body a payload would be fixed to; empty: the last.
            quiet: motion to learn from [s].
            between: mean time between false alarms of one statistic [s].
            memory: of the tracked parameters [s].
            longest_gap: between rows beside their usual distance; after longer ones filters begin anew [s].

        Raises:
            InputError: no such body.
            UsageError: a time that is not positive.
        """
        for name, value in (("quiet", quiet), ("between", between), ("memory", memory), ("cutoff", cutoff)):
            if not value > 0.0:
                raise UsageError(f"{name} must be positive, not {value:g}")
        self.parts = parts_of(parameters, regressor, body)
        self._parameters, self._quiet, self._between, self._memory = parameters, quiet, between, memory
        self._spacing, self._transient = 1.0 / (ROWS * cutoff), 8.0 / (2 * math.pi * cutoff)
        self._gap = self._spacing + longest_gap
        joints = len(parameters.joint_names)
        self._colour = Autocovariance(joints, ORDER)
        self._gram, self._torque = np.zeros((len(parameters.names),) * 2), 0.0
        self._whitening: Whitening | None = None
        self._white: RowWhitening | None = None
        self._thresholds: Array | None = None
        self._explanations: tuple[Explanation, ...] = ()
        self._since: dict[int, float] = {}
        self._kept: list[tuple[float, RecursiveLeastSquares]] = []  # the tracker at times before
        self._motion = np.full(joints, -math.inf)  # when each joint moved last
        self._last, self._moved, self.detected = -math.inf, 0.0, math.nan
        self._blind = -math.inf  # until then the low-pass still holds what was before the detection

    @property
    def learning(self) -> float:
        """Motion that is still needed to learn from [s]."""
        return max(self._quiet - self._moved, 0.0)

    @property
    def unwatched(self) -> tuple[str, ...]:
        """Joints that did not move while their noise was learned: nothing is told by them. None before it is known."""
        noise = np.ones(len(self._motion)) if self._whitening is None else self._whitening.noise_rms
        return tuple(name for name, rms in zip(self._parameters.joint_names, noise, strict=True) if not rms > 0.0)

    def due(self, t: float) -> bool:
        """Whether a row is wanted from the time `t` [s]."""
        return not 0.0 <= t - self._last < 0.999 * self._spacing

    def add(self, t: float, columns: Array, measured: Array, residual: Array, moving: Mask) -> None:
        """Take up a moment.

        Args:
            t: its time [s].
            columns: of the base parameters, shape (p, n).
            measured: torque [N m or N], shape (n,).
            residual: measured - predicted.
            moving: which joints move, shape (n,). One that has not moved for a while does not count: stiction may hold
                any torque.
        """
        step = t - self._last
        self._last = t
        if step < 0.0:  # time has been set back: a bag begins anew
            self._motion[:], self._blind = -math.inf, -math.inf
            self._kept = [(t, tracker) for _, tracker in self._kept]
        self._motion[moving] = t
        if not 0.0 < step <= self._gap:
            self._colour.restart()
            if self._white is not None:
                self._white.restart()
            return
        recent = np.asarray(t - self._motion <= max(WINDOWS), dtype=np.bool_)
        told = t >= self._blind and bool(measured.any())  # a driver that tells no effort teaches nothing
        counts = recent if told else np.zeros_like(recent)
        self._moved += step if counts.any() else 0.0
        if self._white is None:
            self._learn_noise(columns, measured, residual, counts)
            return
        white = self._white.add(np.column_stack([columns.T, residual]), counts)
        if white[:, -1].any():
            self._follow(t, step, white[:, :-1], white[:, -1])

    def _follow(self, t: float, step: float, rows: Array, error: Array) -> None:
        """Track, explain and watch by whitened rows, shape (n, p), and residuals, (n,)."""
        if t - self._kept[-1][0] >= max(WINDOWS):  # from before any change that is about to be detected
            self._kept = [self._kept[-1], (t, copy.deepcopy(self._tracker))]
        self._tracker.update(rows, error, math.exp(-step / self._memory))
        for explanation in self._explanations:
            explanation.update(rows, error)
        if len(self._explanations) > 1:
            self._explanations = decided(self._explanations)
            return
        if self._explanations:
            rows, error = self._explanations[0].unexplained(rows, error)
        statistics = self._watchers.add(rows, error, step)
        if self._thresholds is None:
            self._chance.add(statistics, step)
            if not self.learning:
                self._thresholds = self._chance.fit(self._between)
        elif np.any(statistics > self._thresholds):
            self._detect(t)

    def _learn_noise(self, columns: Array, measured: Array, residual: Array, counts: Mask) -> None:
        self._colour.add(residual, counts)
        self._gram += columns @ columns.T
        self._torque += float(measured @ measured)
        if self._moved < COLOUR * self._quiet:
            return
        self._whitening = self._colour.fit()
        self._white = RowWhitening(self._whitening)
        self._limits = tuple(self._scales(part.directions) for part in self.parts)
        self._watchers = Watchers(self.parts, self._limits, self._spacing)
        self._chance = Thresholds(self._watchers.freedom)
        base = self._scales(np.eye(len(self._gram)))
        root = information_root(self._parameters.covariance, base)
        self._tracker = RecursiveLeastSquares(np.zeros(len(base)), base, root)
        self._kept = [(self._last, copy.deepcopy(self._tracker))] * 2

    def _scales(self, directions: Array) -> Array:
        """Values at which each parameter alone would make torques as large as those measured, shape (k,)."""
        squares = np.einsum("pk,pq,qk->k", directions, self._gram, directions, optimize=True)
        shown = squares > 1e-18 * squares.max(initial=0.0)
        return np.where(shown, np.sqrt(self._torque / np.where(shown, squares, 1.0)), 1.0)

    def _detect(self, t: float) -> None:
        """Begin anew to explain what is seen: by what has changed already, and any one part beside it."""
        before = self._explanations[0].numbers if self._explanations else ()
        choices = sorted({tuple(sorted({*before, number})) for number in range(len(self.parts))})
        known = self._kept[0][1] if not before else self._explanations[0].model
        self._explanations = tuple(Explanation(n, self.parts, self._limits, known) for n in choices)
        self._since = {number: self._since[number] if number in before else t for number in range(len(self.parts))}
        self.detected, self._blind = t, t + self._transient
        self._watchers.restart()

    @property
    def changed(self) -> bool:
        """Whether something has changed that the identified model does not know of.

        What is not, by its estimate, any more different from zero than chance allows has changed back.
        """
        return len(self._explanations) > 1 or any(change.significant for change in self.changes)

    @property
    def named(self) -> str:
        """What has changed, without figures."""
        if len(self._explanations) > 1:
            return "what has changed is being looked at"
        return ", ".join(change.part.title for change in self.changes if change.significant)

    @property
    def told(self) -> str:
        """What has changed, and by how much."""
        return "; ".join(map(str, self.changes)) or self.named or "none"

    @property
    def changes(self) -> tuple[Change, ...]:
        """The parts that have changed, and by how much; none as long as it is not decided which."""
        if len(self._explanations) != 1:
            return ()
        return tuple(Change(self.parts[n], self._since[n], *found) for n, *found in self._explanations[0].estimates)

    @property
    def tracked(self) -> tuple[Array, Array] | None:
        """Base parameters as the last minutes of motion tell them, shape (p,), and their covariance, (p, p).

        Loads and other changes are in them. None while the noise is not known.
        """
        if self._white is None:
            return None
        return self._parameters.values + self._tracker.values, self._tracker.covariance
