# SPDX-License-Identifier: Apache-2.0
"""Monitoring of an identified model during operation: detection and estimation of changes of the robot."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.whitening import Whitening
from robot_dyn_id.online.changes import WINDOWS, Change, ChangeThresholds, Watchers, list_parts_of
from robot_dyn_id.online.explanation import Explanation, decide
from robot_dyn_id.online.noise import Autocovariance, RowWhitening
from robot_dyn_id.online.recursion import RecursiveLeastSquares, compute_information_root
from robot_dyn_id.parameters import ParameterSet

ORDER = 3
"""Order of the autoregressive noise model of the residuals."""

ROWS = 2.5
"""Rows per second, as a ratio to the cut-off of the low-pass. A higher rate would add only the stop band of the filter,
which friction at reversals and rounding dominate."""

NOISE_SHARE = 1.0 / 3.0
"""Share of the quiet time from which the noise model is estimated; the thresholds are learned from the rest."""


@dataclass(frozen=True)
class WatchSettings:
    """Settings of the detection of changes.

    Attributes:
        payload_body: joint that moves the body a payload is fixed to; empty: the last joint.
        quiet: motion without changes from which noise and thresholds are learned [s].
        false_alarm_interval: mean time between false alarms of one test statistic [s].
        memory: time constant of the tracked parameters [s].
    """

    payload_body: str = ""
    quiet: float = 60.0
    false_alarm_interval: float = 360e3
    memory: float = 60.0

    def __post_init__(self) -> None:
        """Check the times.

        Raises:
            UsageError: a time that is not positive.
        """
        for name in ("quiet", "false_alarm_interval", "memory"):
            if not getattr(self, name) > 0.0:
                raise UsageError(f"{name} must be positive, not {getattr(self, name):g}")


DEFAULT_SETTINGS = WatchSettings()


class ModelWatch:
    """Change detection and parameter tracking from the residual of an identified model.

    Spectrum and variance of the noise, scales of the parameters (the values at which each alone would produce the
    measured torque) and thresholds are learned from the first `quiet` seconds of motion, in which the model is assumed
    to fit. A detection starts a new estimate of the changes instead of shortening the memory; the model is corrected by
    the parameters tracked before the change.

    Attributes:
        parts: parts of the robot that can change.
        detected: time of the latest detection [s]; NaN before.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        regressor: Regressor,
        cutoff: float,
        longest_gap: float = 0.1,
        settings: WatchSettings = DEFAULT_SETTINGS,
    ) -> None:
        """Start to learn.

        Args:
            parameters: identified model.
            regressor: regressor of the model.
            cutoff: cut-off of the causal low-pass of torques and motion [Hz].
            longest_gap: largest excess of the time between two rows over the nominal one [s]; the filters restart after
                longer gaps.
            settings: settings of the detection.

        Raises:
            InputError: no joint has the name of the payload body.
            UsageError: a cut-off that is not positive.
        """
        if not cutoff > 0.0:
            raise UsageError(f"cutoff must be positive, not {cutoff:g}")
        self.parts = list_parts_of(parameters, regressor, settings.payload_body)
        self._parameters = parameters
        self._settings = settings
        self._spacing, self._transient = 1.0 / (ROWS * cutoff), 8.0 / (2 * math.pi * cutoff)
        self._gap = self._spacing + longest_gap
        joints = len(parameters.robot.joint_names)
        self._noise = Autocovariance(joints, ORDER)
        self._gram = np.zeros((len(parameters.base.names),) * 2)
        self._torque = 0.0
        self._whitening: Whitening | None = None
        self._white: RowWhitening | None = None
        self._thresholds: Array | None = None
        self._explanations: tuple[Explanation, ...] = ()
        self._since: dict[int, float] = {}
        self._kept: list[tuple[float, RecursiveLeastSquares]] = []  # the tracker at earlier times
        self._motion = np.full(joints, -math.inf)  # time at which each joint moved last
        self._last = -math.inf
        self._moved = 0.0
        self.detected = math.nan
        self._blind = -math.inf  # until then the low-pass still contains data from before the detection

    @property
    def learning(self) -> float:
        """Motion that is still needed for learning [s]."""
        return max(self._settings.quiet - self._moved, 0.0)

    @property
    def unmonitored(self) -> tuple[str, ...]:
        """Joints at rest while the noise was learned, which cannot be monitored; empty during the learning."""
        noise = np.ones(len(self._motion)) if self._whitening is None else self._whitening.noise_rms
        return tuple(name for name, rms in zip(self._parameters.robot.joint_names, noise, strict=True) if not rms > 0.0)

    def due(self, t: float) -> bool:
        """Whether a row is due at the time `t` [s]."""
        return not 0.0 <= t - self._last < 0.999 * self._spacing

    def add(self, t: float, columns: Array, measured: Array, residual: Array, moving: Mask) -> None:
        """Add the values of one time.

        Args:
            t: time [s].
            columns: regressor columns of the base parameters, shape (p, n).
            measured: torque [N m or N], shape (n,).
            residual: measured - predicted torque, shape (n,).
            moving: flags of the joints that move, shape (n,). Joints that have not moved for a while do not count:
                stiction may hold any torque.
        """
        step = t - self._last
        self._last = t
        if step < 0.0:  # time was set back: a bag starts again
            self._motion[:] = -math.inf
            self._blind = -math.inf
            self._kept = [(t, tracker) for _, tracker in self._kept]
        self._motion[moving] = t
        if not 0.0 < step <= self._gap:
            self._noise.restart()
            if self._white is not None:
                self._white.restart()
            return
        recent = np.asarray(t - self._motion <= max(WINDOWS), dtype=np.bool_)
        usable = t >= self._blind and bool(measured.any())  # drivers without effort sensing report zeros
        counts = recent if usable else np.zeros_like(recent)
        self._moved += step if counts.any() else 0.0
        if self._white is None:
            self._learn_noise(columns, measured, residual, counts)
            return
        white = self._white.add(np.column_stack([columns.T, residual]), counts)
        if white[:, -1].any():
            self._follow(t, step, white[:, :-1], white[:, -1])

    def _follow(self, t: float, step: float, rows: Array, error: Array) -> None:
        """Update tracker, explanations and test statistics by whitened rows, shape (n, p), and residuals, (n,)."""
        if t - self._kept[-1][0] >= max(WINDOWS):  # older than a change that is about to be detected
            self._kept = [self._kept[-1], (t, copy.deepcopy(self._tracker))]
        self._tracker.update(rows, error, math.exp(-step / self._settings.memory))
        for explanation in self._explanations:
            explanation.update(rows, error)
        if len(self._explanations) > 1:
            self._explanations = decide(self._explanations)
            return
        if self._explanations:
            rows, error = self._explanations[0].unexplained(rows, error)
        statistics = self._watchers.add(rows, error, step)
        if self._thresholds is None:
            self._chance.add(statistics, step)
            if not self.learning:
                self._thresholds = self._chance.fit(self._settings.false_alarm_interval)
        elif np.any(statistics > self._thresholds):
            self._detect(t)

    def _learn_noise(self, columns: Array, measured: Array, residual: Array, counts: Mask) -> None:
        self._noise.add(residual, counts)
        self._gram += columns @ columns.T
        self._torque += float(measured @ measured)
        if self._moved < NOISE_SHARE * self._settings.quiet:
            return
        self._whitening = self._noise.fit()
        self._white = RowWhitening(self._whitening)
        self._limits = tuple(self._scales(part.directions) for part in self.parts)
        self._watchers = Watchers(self.parts, self._limits, self._spacing)
        self._chance = ChangeThresholds(self._watchers.freedom)
        base = self._scales(np.eye(len(self._gram)))
        root = compute_information_root(self._parameters.estimate.covariance, base)
        self._tracker = RecursiveLeastSquares(np.zeros(len(base)), base, root)
        self._kept = [(self._last, copy.deepcopy(self._tracker))] * 2

    def _scales(self, directions: Array) -> Array:
        """Values at which each parameter alone would produce torques as large as those measured, shape (k,)."""
        squares = np.einsum("pk,pq,qk->k", directions, self._gram, directions, optimize=True)
        shown = squares > 1e-18 * squares.max(initial=0.0)
        return np.where(shown, np.sqrt(self._torque / np.where(shown, squares, 1.0)), 1.0)

    def _detect(self, t: float) -> None:
        """Start the candidate explanations: the parts that have changed already, and any one part in addition."""
        before = self._explanations[0].numbers if self._explanations else ()
        choices = sorted({tuple(sorted({*before, number})) for number in range(len(self.parts))})
        known = self._kept[0][1] if not before else self._explanations[0].model
        self._explanations = tuple(Explanation(n, self.parts, self._limits, known) for n in choices)
        self._since = {number: self._since[number] if number in before else t for number in range(len(self.parts))}
        self.detected = t
        self._blind = t + self._transient
        self._watchers.restart()

    @property
    def changed(self) -> bool:
        """Whether the robot differs from the identified model.

        A change whose estimate is no longer significantly different from zero has been reversed.
        """
        return len(self._explanations) > 1 or any(change.significant for change in self.changes)

    @property
    def summary(self) -> str:
        """Names of the changed parts, without values."""
        if len(self._explanations) > 1:
            return "the changed part is being determined"
        return ", ".join(change.part.title for change in self.changes if change.significant)

    @property
    def description(self) -> str:
        """Changed parts with the values of the changes."""
        return "; ".join(map(str, self.changes)) or self.summary or "none"

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changed parts with the estimated changes; empty until the changed part is determined."""
        if len(self._explanations) != 1:
            return ()
        return tuple(Change(self.parts[n], self._since[n], *found) for n, *found in self._explanations[0].estimates)

    @property
    def tracked(self) -> tuple[Array, Array] | None:
        """Base parameters estimated from the latest minutes of motion, shape (p,), and their covariance, (p, p).

        They include payloads and other changes. None until the noise model is learned.
        """
        if self._white is None:
            return None
        return self._parameters.estimate.values + self._tracker.values, self._tracker.covariance
