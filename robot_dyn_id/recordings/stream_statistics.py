# SPDX-License-Identifier: Apache-2.0
"""Regularity of the messages of a topic: count, rate, jitter, longest silence, all in constant memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.recordings.joint_states import NANOSECONDS, Stamps


@dataclass(frozen=True)
class Intervals:
    """Times from one message to the next, summed up.

    Steps backwards (a clock that was set, a simulation that restarted) and interruptions are not intervals.

    Attributes:
        count: how many intervals.
        mean: [s]; 0 if there is none.
        squares: sum of squared deviations from the mean [s^2].
        longest: [s]; 0 if there is none.
        latest: time of the latest message [ns]; None if the next message begins a new stretch.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    longest: float = 0.0
    latest: int | None = None

    @property
    def deviation(self) -> float:
        """Standard deviation [s]; 0 below two intervals."""
        return math.sqrt(self.squares / (self.count - 1)) if self.count > 1 else 0.0

    def after(self, times: Stamps) -> Intervals:
        """With further messages at `times` [ns], shape (n,), in order of arrival."""
        if not len(times):
            return self
        latest = int(times[-1])
        joined = times if self.latest is None else np.concatenate(([self.latest], times))
        steps: Array = np.diff(joined) / NANOSECONDS
        steps = steps[steps >= 0.0]
        if not len(steps):
            return replace(self, latest=latest)
        # Two sets of samples merged: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm", 1979.
        count, mean = self.count + len(steps), float(steps.mean())
        apart = mean - self.mean
        return Intervals(
            count=count,
            mean=self.mean + apart * len(steps) / count,
            squares=self.squares + float(((steps - mean) ** 2).sum()) + apart**2 * self.count * len(steps) / count,
            longest=max(self.longest, float(steps.max())),
            latest=latest,
        )

    def interrupted(self) -> Intervals:
        """With an interruption behind the latest message."""
        return replace(self, latest=None)


@dataclass(frozen=True)
class StreamStatistics:
    """Statistics of the messages of a topic so far; a new value after every batch of them.

    Attributes:
        count: messages.
        arrivals: times between arrivals.
        stamps: times between the messages' own stamps.
    """

    count: int = 0
    arrivals: Intervals = field(default_factory=Intervals)
    stamps: Intervals = field(default_factory=Intervals)

    @property
    def rate(self) -> float:
        """Messages per second [Hz], interruptions left out, by the same clock as `jitter`; 0 below two messages.

        Arrivals in batches would give too high a rate: the wait for the first batch is in no interval.
        """
        return 1.0 / self._times.mean if self._times.mean > 0.0 else 0.0

    @property
    def jitter(self) -> float:
        """Standard deviation of the time between stamps [s]; between arrivals if there are no stamps or they stand."""
        return self._times.deviation

    @property
    def longest(self) -> float:
        """Longest time from one message to the next [s], by the same clock as `jitter`."""
        return self._times.longest

    @property
    def _times(self) -> Intervals:
        return self.stamps if self.stamps.mean > 0.0 else self.arrivals

    def after(self, arrivals: Stamps, stamps: Stamps | None) -> StreamStatistics:
        """With a further batch of messages.

        Args:
            arrivals: when they arrived [ns], shape (n,).
            stamps: their own stamps [ns], same shape; None if their type has none.
        """
        return StreamStatistics(
            self.count + len(arrivals),
            self.arrivals.after(arrivals),
            self.stamps if stamps is None else self.stamps.after(stamps),
        )

    def interrupted(self) -> StreamStatistics:
        """Count an interruption, such as a pause, which is not an interval between messages."""
        return StreamStatistics(self.count, self.arrivals.interrupted(), self.stamps.interrupted())
