# SPDX-License-Identifier: Apache-2.0
"""Mutual supervision of a motion and its recording."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum

AUTO, REQUIRED, IGNORE = "auto", "required", "ignore"
"""Policies: a motion must be recorded if a recorder is in the graph at its start, always, or never."""

TIMEOUT = 1.5
"""Age of the latest status or recorded message above which a recorder counts as failed [s]."""

HEARTBEAT = 0.5
"""Longest time between two status messages of a recorder [s]."""

STALL_THRESHOLD_S = 0.05
"""Time between two calls of `tick` above which this process was stalled and cannot have received a status [s]."""

MAX_LOST_RATIO = 0.01
"""Ratio of lost to recorded messages above which a motion is ended [-]."""

MAX_LOST_COUNT = 10
"""Number of lost messages that is always tolerated."""


class RecordingState(IntEnum):
    """States of a recorder, with the values of RecordingStatus.msg."""

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
        state: state of the recorder.
        reason: reason of a failure, or remarks.
        topics: full names of the recorded topics.
        counts: number of recorded messages of each topic.
        lost: number of lost messages of each topic.
    """

    recorder: str
    state: RecordingState
    reason: str
    topics: tuple[str, ...]
    counts: tuple[int, ...]
    lost: tuple[int, ...]


class _Recorder:
    """Reports of one recorder."""

    def __init__(self) -> None:
        self.report: RecordingReport | None = None
        self.heard = self.grew = -math.inf  # receipt of the latest report, and of the latest with new messages
        self.count, self.lost = 0, 0
        self.base_count, self.base_lost = 0, 0  # when the motion started
        self.restarted = False  # since the motion started


class RecordingWatch:
    """Decision whether a motion may start or continue, from the reports of all recorders of its joint states.

    All nodes that report are recorders: the recorder, and the identifier for the stream that it uses. During a motion
    only those that recorded at its start are monitored.
    """

    def __init__(self, policy: str, topic: str) -> None:
        """Initialize without reports.

        Args:
            policy: `AUTO`, `REQUIRED` or `IGNORE`.
            topic: full name of the joint states that must be recorded.
        """
        self._policy, self._topic = policy, topic
        self._recorders: dict[str, _Recorder] = {}
        self._watched: tuple[str, ...] = ()
        self._ticked = math.nan

    def receive(self, steady: float, report: RecordingReport) -> None:
        """Process a report.

        Args:
            steady: time of receipt by a steady clock [s].
            report: report of any recorder.
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
        """Update the time; to be called frequently.

        Args:
            steady: present time of the steady clock [s].
        """
        gap = steady - self._ticked
        if gap > STALL_THRESHOLD_S:  # nothing could be received: queued reports are processed after this
            for recorder in self._recorders.values():
                recorder.heard += gap - STALL_THRESHOLD_S
                recorder.grew += gap - STALL_THRESHOLD_S
        self._ticked = steady

    def remove_absent(self, steady: float, present: Collection[str]) -> None:
        """Remove recorders that have left the graph, except during a motion.

        Args:
            steady: present time of the steady clock [s].
            present: full names of the nodes in the graph that publish recording status.
        """
        if self._watched:
            return
        for name, recorder in tuple(self._recorders.items()):
            if name not in present and steady - recorder.heard > TIMEOUT:
                del self._recorders[name]

    def obstacle(self, steady: float) -> str:
        """Reason not to start a motion; empty if all present recorders record, or recording is not required.

        Args:
            steady: present time of the steady clock [s].
        """
        if self._policy == IGNORE:
            return ""
        if not self._recorders:
            if self._policy == AUTO:
                return ""
            return "nothing is recorded: start a recorder, or set the parameter recording to ignore"
        return next(filter(None, (self._fault(name, steady) for name in sorted(self._recorders))), "")

    def begin(self) -> None:
        """Start to monitor the present recorders, at the start of a motion."""
        self._watched = () if self._policy == IGNORE else tuple(sorted(self._recorders))
        for name in self._watched:
            recorder = self._recorders[name]
            recorder.base_count, recorder.base_lost, recorder.restarted = recorder.count, recorder.lost, False

    def end(self) -> None:
        """Stop monitoring, at the end of a motion."""
        self._watched = ()

    def unmonitored(self) -> str:
        """Note that the present motion is not monitored; empty if it is."""
        return "" if self._watched or self._policy == IGNORE else "recording, as there is no recorder"

    def fault(self, steady: float) -> str:
        """Reason to end the present motion; empty if it is recorded.

        Args:
            steady: present time of the steady clock [s].
        """
        for name in self._watched:
            recorder = self._recorders[name]
            problem = self._fault(name, steady)
            if problem:
                return problem
            if recorder.restarted:
                return f"{name} has discarded what it recorded since the start"
            count, lost = recorder.count - recorder.base_count, recorder.lost - recorder.base_lost
            if lost > max(MAX_LOST_COUNT, MAX_LOST_RATIO * count):
                return f"{name} has lost {lost} messages of {self._topic} since the start"
        return ""

    def _fault(self, name: str, steady: float) -> str:
        """Reason why a recorder does not record the joint states; empty if it does."""
        recorder = self._recorders[name]
        report = recorder.report
        assert report is not None
        if report.state == RecordingState.IDLE and not report.reason:
            return f"{name} is not recording: call its start service, or set the parameter recording to ignore"
        if report.state != RecordingState.RECORDING:
            # remarks on a paused or finished recording are not its reason
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
    """Remarks for a recording about a motion that ended abnormally."""

    def __init__(self) -> None:
        """Initialize without a motion."""
        self._moving = False
        self._heard = -math.inf
        self._ticked = math.nan
        self.remark = ""

    def begin(self) -> None:
        """Clear the remark at the start of a new recording."""
        self.remark = ""

    def receive(self, steady: float, moving: bool | None, fault: str) -> None:
        """Process the status of the excitation publisher.

        Args:
            steady: time of receipt by a steady clock [s].
            moving: whether the excitation is being executed; None if that is unknown, and stays as it was.
            fault: fault that ended it; empty if there is none.
        """
        moving = self._moving if moving is None else moving
        if fault and self._moving:
            self.remark = f"the excitation ended in a fault: {fault}"
        elif moving and not self._moving:
            self.remark = ""
        self._moving, self._heard = moving, steady

    def tick(self, steady: float) -> None:
        """Update the time, frequently; a publisher that is silent during a motion has disappeared.

        Args:
            steady: present time of the steady clock [s].
        """
        gap = steady - self._ticked
        if gap > TIMEOUT / 2:
            self._heard += gap
        self._ticked = steady
        if self._moving and steady - self._heard > TIMEOUT:
            self._moving = False
            self.remark = "the excitation publisher disappeared during the motion"
