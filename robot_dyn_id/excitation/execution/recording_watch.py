# SPDX-License-Identifier: Apache-2.0
"""Mutual supervision of a motion and its recording."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum

AUTO, REQUIRED, IGNORE = "auto", "required", "ignore"
"""Whether a motion needs its recording: if a recorder is in the graph when it starts, always, or never."""

TIMEOUT = 1.5
"""Age of the latest status, and of the latest recorded message, from which a recorder counts as failed [s]."""

HEARTBEAT = 0.5
"""Longest time between two status messages of a recorder [s]."""

HELD_UP = 0.05
"""Time between two calls of `tick` above which this process was held up and cannot have received a status [s]."""

LOST_SHARE, FEWEST_LOST = 0.01, 10
"""Lost messages that end a motion: more than this share of the recorded ones, and more than this number."""


class RecordingState(IntEnum):
    """As in RecordingStatus.msg."""

    IDLE = 0
    RECORDING = 1
    FINISHED = 2
    FAILED = 3
    PAUSED = 4


@dataclass(frozen=True)
class RecordingReport:
    """Status of one recorder.

    Attributes:
        recorder: full name of its node.
        state: what it is doing.
        reason: why it failed, or remarks.
        topics: full names of the recorded topics.
        counts: messages written of each topic.
        lost: messages lost of each topic.
    """

    recorder: str
    state: RecordingState
    reason: str
    topics: tuple[str, ...]
    counts: tuple[int, ...]
    lost: tuple[int, ...]


class _Recorder:
    """The reports of one recorder."""

    def __init__(self) -> None:
        self.report: RecordingReport | None = None
        self.heard = self.grew = -math.inf  # receipt of the latest report, and of the latest one with more messages
        self.count, self.lost = 0, 0
        self.base_count, self.base_lost = 0, 0  # when the motion started
        self.restarted = False  # since then


class RecordingWatch:
    """Decides whether a motion may start or go on, from the reports of all recorders of its joint states.

    Recorders are the nodes that report: the recorder, and the identifier for the stream that it identifies from. While
    a motion is under way, those that recorded at its start are watched, and no others.
    """

    def __init__(self, policy: str, topic: str) -> None:
        """Begin without reports.

        Args:
            policy: `AUTO`, `REQUIRED` or `IGNORE`.
            topic: full name of the joint states that must be recorded.
        """
        self._policy, self._topic = policy, topic
        self._recorders: dict[str, _Recorder] = {}
        self._watched: tuple[str, ...] = ()
        self._ticked = math.nan

    def receive(self, steady: float, report: RecordingReport) -> None:
        """Take a report.

        Args:
            steady: time of its arrival by a steady clock [s].
            report: of any recorder.
        """
        recorder = self._recorders.setdefault(report.recorder, _Recorder())
        counts = dict(zip(report.topics, zip(report.counts, report.lost, strict=False), strict=False))
        count, lost = counts.get(self._topic, (0, 0))
        if count > recorder.count:
            recorder.grew = steady
        if count < recorder.count:
            recorder.restarted = True
        recorder.report, recorder.heard, recorder.count, recorder.lost = report, steady, count, lost

    def tick(self, steady: float) -> None:
        """Take the time, often.

        Args:
            steady: the time by the steady clock [s].
        """
        gap = steady - self._ticked
        if gap > HELD_UP:  # nothing could be received: whatever was sent meanwhile is read after this
            for recorder in self._recorders.values():
                recorder.heard += gap - HELD_UP
                recorder.grew += gap - HELD_UP
        self._ticked = steady

    def forget(self, steady: float, present: Collection[str]) -> None:
        """Forget the recorders that have left, unless a motion is watched.

        Args:
            steady: the time by the steady clock [s].
            present: full names of the nodes in the graph that publish recording status.
        """
        if self._watched:
            return
        for name, recorder in tuple(self._recorders.items()):
            if name not in present and steady - recorder.heard > TIMEOUT:
                del self._recorders[name]

    def obstacle(self, steady: float) -> str:
        """Reason not to start a motion; empty if all recorders that there are record, or none is needed.

        Args:
            steady: the time by the steady clock [s].
        """
        if self._policy == IGNORE:
            return ""
        if not self._recorders:
            if self._policy == AUTO:
                return ""
            return "nothing is recorded: start a recorder, or set the parameter recording to ignore"
        return next(filter(None, (self._fault(name, steady) for name in sorted(self._recorders))), "")

    def begin(self) -> None:
        """Watch from now on the recorders that there are: a motion starts."""
        self._watched = () if self._policy == IGNORE else tuple(sorted(self._recorders))
        for name in self._watched:
            recorder = self._recorders[name]
            recorder.base_count, recorder.base_lost, recorder.restarted = recorder.count, recorder.lost, False

    def end(self) -> None:
        """Watch no longer: the motion is over."""
        self._watched = ()

    def blind(self) -> str:
        """Note that nothing is watched in the motion that `begin` announced; empty if something is."""
        return "" if self._watched or self._policy == IGNORE else "recording, as there is no recorder"

    def fault(self, steady: float) -> str:
        """Reason to end the motion that `begin` announced; empty if it is recorded.

        Args:
            steady: the time by the steady clock [s].
        """
        for name in self._watched:
            recorder = self._recorders[name]
            problem = self._fault(name, steady)
            if problem:
                return problem
            if recorder.restarted:
                return f"{name} has discarded what it recorded since the start"
            count, lost = recorder.count - recorder.base_count, recorder.lost - recorder.base_lost
            if lost > max(FEWEST_LOST, LOST_SHARE * count):
                return f"{name} has lost {lost} messages of {self._topic} since the start"
        return ""

    def _fault(self, name: str, steady: float) -> str:
        """Why a recorder does not record the joint states now."""
        recorder = self._recorders[name]
        report = recorder.report
        assert report is not None
        if report.state == RecordingState.IDLE and not report.reason:
            return f"{name} is not recording: call its start service, or set the parameter recording to ignore"
        if report.state != RecordingState.RECORDING:
            # Remarks on a recording that was paused or finished are not the reason for it.
            reason = report.reason if report.state in (RecordingState.IDLE, RecordingState.FAILED) else ""
            return f"{name} is not recording: {report.state.name.lower()}{f', {reason}' if reason else ''}"
        if steady - recorder.heard > TIMEOUT:
            return f"{name} has not reported for {steady - recorder.heard:.1f} s: it ended or hangs"
        if self._topic not in report.topics:
            return f"{name} records {', '.join(report.topics)}, but not {self._topic}"
        if steady - recorder.grew > TIMEOUT:
            reason = f" ({report.reason})" if report.reason else ""
            return f"{name} records no messages of {self._topic}{reason}"
        return ""


class MotionWatch:
    """Notes for a recording: how the motion in it ended, other than well."""

    def __init__(self) -> None:
        """Begin without a motion."""
        self._moving, self._heard = False, -math.inf
        self._ticked = math.nan
        self.remark = ""

    def begin(self) -> None:
        """Forget the remark: a new recording begins."""
        self.remark = ""

    def receive(self, steady: float, moving: bool, fault: str) -> None:
        """Take the status of the excitation publisher.

        Args:
            steady: time of its arrival by a steady clock [s].
            moving: whether the excitation is under way.
            fault: what ended it; empty if it is not in a fault.
        """
        if fault and self._moving:
            self.remark = f"the excitation ended in a fault: {fault}"
        elif moving and not self._moving:
            self.remark = ""
        self._moving, self._heard = moving, steady

    def tick(self, steady: float) -> None:
        """Take the time, often; a publisher that is silent in the middle of a motion has disappeared.

        Args:
            steady: the time by the steady clock [s].
        """
        gap = steady - self._ticked
        if gap > TIMEOUT / 2:
            self._heard += gap
        self._ticked = steady
        if self._moving and steady - self._heard > TIMEOUT:
            self._moving = False
            self.remark = "the excitation publisher disappeared during the motion"
