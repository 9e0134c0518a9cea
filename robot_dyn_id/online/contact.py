# SPDX-License-Identifier: Apache-2.0
"""Contact detection from the external joint torque of a momentum observer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.recursive_filters import compute_steps_since
from robot_dyn_id.online.changes import BLOCK
from robot_dyn_id.online.contact_noise import ContactNoise, JudgedTorque, LastingTorque, check_quiet, learn_noise
from robot_dyn_id.online.momentum_observer import (
    DEFAULT_OBSERVER,
    MomentumObserver,
    ObserverSettings,
    TorqueEstimate,
    TorqueEstimates,
)
from robot_dyn_id.online.rows import Rows
from robot_dyn_id.parameters import ParameterSet

RELEASE = 0.25
"""Share of the thresholds below which all statistics, which are squares, stay at the end of a contact."""

RELEASE_S = 0.1
"""Time for which they stay there [s]."""

REST_S = 1.0
"""Time without motion after which estimates are not learned from [s]: at rest stiction takes any value."""

AT_ONCE = 256
"""Number of joint states whose columns are held in memory at once."""

JOINED = 64
"""Number of parts that are joined while more are learned: thousands at the end would hold a node up."""


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
        statistics: test statistics of all joints together, then of each joint, of the present torque and of the
            lasting one, shape (2, 1 + n); NaN during the learning.
        thresholds: their thresholds, shape (2, 1 + n); NaN during the learning.
        contact: whether there is a contact.
        since: time of the detection of the present contact [s]; NaN without one.
        joints: indices of the joints of which a statistic exceeds its threshold.
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
        """Present torque of each joint alone from which on it is a contact [N m or N], shape (n,)."""
        return np.sqrt(self.thresholds[0, 1:] * np.diag(self.covariance))


@dataclass(frozen=True)
class ContactStates(Rows):
    """Contact states at M times: arrays of the values of `ContactState`, with the times as the first axis.

    Attributes:
        estimates: estimates of the observer.
        covariance: shape (M, n, n).
        statistics: shape (M, 2, 1 + n).
        thresholds: shape (M, 2, 1 + n).
        since: shape (M,).
    """

    estimates: TorqueEstimates
    covariance: Array
    statistics: Array
    thresholds: Array
    since: Array

    @property
    def contact(self) -> Mask:
        """Whether there is a contact, shape (M,)."""
        return ~np.isnan(self.since)

    def __getitem__(self, number: int) -> ContactState:
        """One state."""
        statistics, thresholds, since = self.statistics[number], self.thresholds[number], float(self.since[number])
        joints = tuple(np.flatnonzero(np.any(statistics > thresholds, axis=0)[1:]).tolist())
        tested = self.covariance[number], statistics, thresholds
        return ContactState(self.estimates[number], *tested, not math.isnan(since), since, joints)


Judged: TypeAlias = tuple[JudgedTorque, JudgedTorque]
"""Present and lasting torque at the same times."""


@dataclass(frozen=True)
class Quiet(Rows):
    """Motion without contact at N times: number of the block of each, shape (N,), estimates and tested torque."""

    block: Integers
    estimates: TorqueEstimates
    present: JudgedTorque
    lasting: JudgedTorque


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
        noise: what was learned of the present and of the lasting torque; None during the learning.
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
        self.noise: tuple[ContactNoise, ContactNoise] | None = None
        self._lasting = LastingTorque(len(parameters.robot.joint_names))
        self._crossing = np.full(len(parameters.robot.joint_names), math.inf)
        self._learn_again()
        self._last, self._piece = -math.inf, -1
        self._clear()

    def _learn_again(self) -> None:
        self._quiet: list[Quiet] = []
        self._single = 0  # parts at the end of these that were not joined yet
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
        found = self._follow(np.array([t]), q[None], None if dq is None else dq[None], tau[None])
        return found[0][0] if found else None

    def follow(self, t: Array, q: Array, dq: Array | None, tau: Array) -> ContactStates | None:
        """Add N joint states, as `add` adds one, in a fraction of the time.

        Args:
            t: times [s], shape (N,).
            q: positions [rad or m], shape (N, n).
            dq: velocities, shape (N, n); None: derived from the positions.
            tau: efforts, shape (N, n).

        Returns:
            The states where a test was due; None if there was none.
        """
        parts: list[ContactStates] = []
        for begin in range(0, len(t), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            parts += self._follow(t[some], q[some], None if dq is None else dq[some], tau[some])
        return ContactStates.concatenate(parts) if parts else None

    def _follow(self, t: Array, q: Array, dq: Array | None, tau: Array) -> list[ContactStates]:
        """Add joint states; the contact states of parts of them."""
        observed = self.observer.follow(t, q, dq, tau)
        due = self._due(observed.t)
        if not len(due):
            return []
        estimates = self.observer.estimates(observed, due)
        step = compute_steps_since(self._last, estimates.t)
        self._last = float(estimates.t[-1])
        if self.noise is not None:
            return [self._judge(estimates, self._tested(estimates), step)]
        tested = self._tested(estimates)
        learned = self._learn(estimates, tested, step)
        before, after = slice(0, learned), slice(learned, None)
        parts = [self._unknown(estimates.take(before))] if learned else []
        if learned < len(estimates):  # the rest of the present states
            rest = tested[0].take(after), tested[1].take(after)
            parts.append(self._judge(estimates.take(after), rest, step[after]))
        return parts

    def _tested(self, estimates: TorqueEstimates) -> Judged:
        present = JudgedTorque.from_estimates(estimates, self._crossing)
        return present, self._lasting.follow(present, estimates.t, estimates.piece)

    def _due(self, t: Array) -> Integers:
        """Indices of the estimates that are tested, at most `rate` per second."""
        chosen, last, least = [], self._last, 0.999 / self.settings.rate
        for k, time in enumerate(t.tolist()):
            if not 0.0 <= time - last < least:
                chosen.append(k)
                last = time
        return np.array(chosen, dtype=np.int64)

    def _learn(self, estimates: TorqueEstimates, tested: Judged, step: Array) -> int:
        """Add estimates to what is learned from, and learn when there are enough.

        Returns:
            Number of estimates up to the end of the learning, of which the last one is tested.
        """
        last = max(round(self.settings.quiet / BLOCK) - 1, 0)
        chosen: list[int] = []
        block: list[int] = []
        times = zip(estimates.t.tolist(), step.tolist(), estimates.moving.tolist(), strict=True)
        for k, (t, passed, moving) in enumerate(times):
            if passed < 0.0:  # time was set back: a bag starts again
                self._moved = -math.inf
            self._moved = t if moving else self._moved
            if t - self._moved > REST_S:
                continue
            self._learned += passed if 0.0 < passed < BLOCK else 0.0
            chosen.append(k)
            block.append(min(int(self._learned / BLOCK), last))
            if self.learning == 0.0:
                self._keep(estimates, tested, chosen, block)
                chosen, block = [], []
                if self._end_learning():
                    return k
        self._keep(estimates, tested, chosen, block)
        return len(estimates)

    def _keep(self, estimates: TorqueEstimates, tested: Judged, chosen: list[int], block: list[int]) -> None:
        if chosen:
            at = np.array(chosen)
            self._quiet.append(Quiet(np.array(block), estimates.take(at), tested[0].take(at), tested[1].take(at)))
            self._single += 1
            if self._single == JOINED:
                self._quiet[-JOINED:] = [Quiet.concatenate(self._quiet[-JOINED:])]
                self._single = 0

    def _end_learning(self) -> bool:
        """Learn noise and thresholds; False if that is refused and begins again."""
        quiet, parameters = Quiet.concatenate(self._quiet), self.observer.parameters
        self._learn_again()
        effort, names = quiet.estimates.effort, parameters.robot.joint_names
        interval = self.settings.false_alarm_interval * 2 * (1 + len(names))
        try:
            check_quiet(quiet.present, quiet.block, effort, names, parameters.judgment.held_out_shares)
            noise = learn_noise(quiet.present, quiet.block, interval), learn_noise(quiet.lasting, quiet.block, interval)
        except InputError as error:
            self.refusal = str(error)
            return False
        self.refusal, self.noise = "", noise
        slow = quiet.estimates.slow
        self._crossing = np.where(np.isfinite(slow), slow, 0.0).max(axis=0)
        return True

    def _unknown(self, estimates: TorqueEstimates) -> ContactStates:
        """States of the learning."""
        count, joints = estimates.torque.shape
        covariance, unknown = np.full((count, joints, joints), np.nan), np.full((count, 2, 1 + joints), np.nan)
        return ContactStates(estimates, covariance, unknown, unknown, np.full(count, np.nan))

    def _judge(self, estimates: TorqueEstimates, tested: Judged, step: Array) -> ContactStates:
        """Test estimates, whose times since the previous ones are `step`."""
        assert self.noise is not None
        covariance = self.noise[0].covariance_at(tested[0])
        both = list(zip(self.noise, tested, strict=True))
        statistics = np.stack([noise.statistics_at(torque) for noise, torque in both], axis=1)
        thresholds = np.stack([noise.thresholds for noise in self.noise])
        over = np.any(statistics > thresholds, axis=(1, 2)).tolist()
        held = np.any(statistics > RELEASE * thresholds, axis=(1, 2)).tolist()
        since = np.empty(len(estimates))
        times = zip(estimates.t.tolist(), step.tolist(), estimates.piece.tolist(), strict=True)
        for k, (t, passed, piece) in enumerate(times):
            if passed < 0.0 or piece != self._piece:
                self._clear()
            self._piece = piece
            if math.isnan(self._since):
                if over[k]:
                    self._since = self._above = t
            elif held[k]:
                self._above = t
            elif t - self._above > RELEASE_S:
                self._clear()
            since[k] = self._since
        return ContactStates(estimates, covariance, statistics, np.tile(thresholds, (len(estimates), 1, 1)), since)
