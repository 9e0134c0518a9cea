# SPDX-License-Identifier: Apache-2.0
"""Contact detection from the external joint torque of a momentum observer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.online.changes import BLOCK
from robot_dyn_id.online.contact_noise import ContactNoise, QuietMotion, contact_statistics, learn_noise
from robot_dyn_id.online.momentum_observer import (
    DEFAULT_OBSERVER,
    MomentumObserver,
    ObserverSettings,
    TorqueEstimate,
)
from robot_dyn_id.parameters import ParameterSet

RELEASE = 0.25
"""Share of the thresholds below which all statistics, which are squares, stay at the end of a contact."""

RELEASE_S = 0.1
"""Time for which they stay there [s]."""

REST_S = 1.0
"""Time without motion after which estimates are not learned from [s]: at rest stiction takes any value."""


@dataclass(frozen=True)
class ContactSettings:
    """Settings of the contact test.

    Attributes:
        quiet: motion without contact from which noise and thresholds are learned [s].
        false_alarm_interval: mean time between false alarms of all statistics together [s].
        rate: highest rate of tests [Hz].
    """

    quiet: float = 60.0
    false_alarm_interval: float = 360e3
    rate: float = 250.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            UsageError: one that is not positive and finite.
        """
        for name in ("quiet", "false_alarm_interval", "rate"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise UsageError(f"{name} must be positive, not {getattr(self, name):g}")


DEFAULT_CONTACT = ContactSettings()


@dataclass(frozen=True)
class ContactState:
    """External torque of n joints at one time, and whether it is a contact.

    Attributes:
        estimate: estimate of the observer.
        covariance: covariance of the torque with the learned noise, shape (n, n); NaN during the learning.
        statistics: test statistics of all joints together, then of each joint, shape (1 + n,); NaN during the learning.
        thresholds: their thresholds, shape (1 + n,); NaN during the learning.
        contact: whether there is a contact.
        since: time of the detection of the present contact [s]; NaN without one.
        joints: indices of the joints whose own statistic exceeds its threshold.
    """

    estimate: TorqueEstimate
    covariance: Array
    statistics: Array
    thresholds: Array
    contact: bool
    since: float
    joints: tuple[int, ...]

    @property
    def limits(self) -> Array:
        """External torque of each joint alone from which on it is a contact [N m or N], shape (n,)."""
        return np.sqrt(self.thresholds[1:] * np.diag(self.covariance))


class ContactMonitor:
    """Contacts of a robot with its environment, from a stream of joint states.

    Noise and thresholds are learned from the first `quiet` seconds of motion, in which there must be no contact. If
    there is one, what was learned is refused and learning begins again.

    Example:
        ```python
        monitor = rdi.ContactMonitor(rdi.load_parameters("run/parameters.yaml"))
        for chunk in recording.chunks(recording.joint_names):
            for t, q, dq, tau in zip(chunk.t, chunk.q, chunk.dq, chunk.tau):
                state = monitor.add(t, q, dq, tau)
                if state is not None and state.contact:
                    print(f"contact since {state.since:.3f} s: {state.estimate.torque}")
        ```

    Attributes:
        observer: momentum observer.
        settings: settings of the test.
        noise: what was learned; None during the learning.
        refusal: reason why the latest learning was refused; empty if none was.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        observer: ObserverSettings = DEFAULT_OBSERVER,
        settings: ContactSettings = DEFAULT_CONTACT,
    ) -> None:
        """Start to learn.

        Raises:
            InputError: see `MomentumObserver`.
            UsageError: see `MomentumObserver`.
        """
        self.observer, self.settings = MomentumObserver(parameters, observer), settings
        self.refusal = ""
        self.noise: ContactNoise | None = None
        self._learn_again()
        self._last, self._interruptions = -math.inf, 0
        self._clear()

    def _learn_again(self) -> None:
        self._quiet: list[tuple[int, TorqueEstimate]] = []
        self._learned, self._moved = 0.0, -math.inf

    def _clear(self) -> None:
        """End a contact: nothing is known of it any more."""
        self._since, self._above = math.nan, -math.inf

    @property
    def learning(self) -> float:
        """Motion that is still needed for learning [s]; 0 afterwards."""
        return 0.0 if self.noise is not None else max(self.settings.quiet - self._learned, 0.0)

    def add(self, t: float, q: Array, dq: Array | None, tau: Array) -> ContactState | None:
        """Add a joint state, see `MomentumObserver.add`.

        Returns:
            The external torque, and whether it is a contact; None where no test is due or the observer has not settled.
        """
        settled = self.observer.add(t, q, dq, tau)
        if self.observer.interruptions != self._interruptions:
            self._interruptions = self.observer.interruptions
            self._clear()
        if not settled or 0.0 <= t - self._last < 0.999 / self.settings.rate:
            return None
        step = t - self._last
        self._last = t
        if step < 0.0:  # time was set back: a bag starts again
            self._clear()
            self._moved = -math.inf
        estimate = self.observer.estimate()
        if self.noise is None:
            self._learn(estimate, step)
        return self._judge(estimate)

    def _learn(self, estimate: TorqueEstimate, step: float) -> None:
        """Add an estimate to what is learned from, and learn when there are enough."""
        self._moved = estimate.t if estimate.moving else self._moved
        if estimate.t - self._moved > REST_S:
            return
        self._learned += step if 0.0 < step < BLOCK else 0.0
        last = max(round(self.settings.quiet / BLOCK) - 1, 0)
        self._quiet.append((min(int(self._learned / BLOCK), last), estimate))
        if self.learning > 0.0:
            return
        block, estimates = zip(*self._quiet, strict=True)
        quiet = QuietMotion(
            np.array(block),
            np.array([one.torque for one in estimates]),
            np.array([one.model_covariance for one in estimates]),
            np.array([one.reversal for one in estimates]),
            np.array([one.slow for one in estimates]),
            np.array([one.effort for one in estimates]),
        )
        parameters = self.observer.parameters
        self._learn_again()
        try:
            self.noise = learn_noise(
                quiet, self.settings.false_alarm_interval, parameters.joint_names, parameters.held_out_shares
            )
            self.refusal = ""
        except InputError as error:
            self.refusal = str(error)

    def _judge(self, estimate: TorqueEstimate) -> ContactState:
        joints = len(estimate.torque)
        if self.noise is None:
            unknown = np.full(1 + joints, np.nan)
            return ContactState(estimate, np.full((joints, joints), np.nan), unknown, unknown, False, math.nan, ())
        covariance, thresholds = self.noise.covariance_at(estimate), self.noise.thresholds
        statistics = contact_statistics(estimate.torque[None], covariance[None])[0]
        over = statistics > thresholds
        if math.isnan(self._since):
            if over.any():
                self._since = self._above = estimate.t
        elif np.any(statistics > RELEASE * thresholds):
            self._above = estimate.t
        elif estimate.t - self._above > RELEASE_S:
            self._clear()
        contact = not math.isnan(self._since)
        at = tuple(np.flatnonzero(over[1:]).tolist())
        return ContactState(estimate, covariance, statistics, thresholds, contact, self._since, at)
