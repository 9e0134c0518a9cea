# SPDX-License-Identifier: Apache-2.0
"""Status of the excitation publisher: topic, log and diagnosis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.supervision import Phase, Supervisor
from robot_dyn_id.msg import ExcitationStatus
from robot_dyn_id.nodes.messages.trajectory_messages import make_numbers
from robot_dyn_id.nodes.runtime.changes import Changes
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, OK, WARN, Diagnosis
from robot_dyn_id.nodes.runtime.managed_node import ManagedNode

PERIOD = 0.2
"""Time between two messages of an unchanged status [s]."""

LEVELS = {Phase.WAITING: WARN, Phase.FAULT: ERROR}


class StatusTopic:
    """Status topic: every change is published and logged, and the state is repeated periodically."""

    def __init__(self, node: ManagedNode, topic: Any, dry_run: bool, rehearsal_off: str) -> None:
        """Begin with nothing published.

        Args:
            node: node that publishes.
            topic: publisher of `ExcitationStatus`.
            dry_run: whether the robot is never commanded.
            rehearsal_off: word of the diagnosis where no rehearsal is required.
        """
        self._node, self._topic = node, topic
        self._rehearsals = {
            ExcitationStatus.NOT_REHEARSED: "required before full speed",
            ExcitationStatus.REHEARSED: "succeeded",
            ExcitationStatus.NOT_REQUIRED: rehearsal_off,
        }
        self._message = ExcitationStatus(node=node.get_fully_qualified_name(), dry_run=dry_run)
        self._published: tuple[Phase, str] = Phase.WAITING, "starting"
        self._published_at = -math.inf
        self._changes, self._log_changes = Changes(PERIOD), Changes()

    def describe(self, joint_names: Sequence[str], digest: str) -> None:
        """Set what stays the same: the joints, and the digest of the excitation."""
        self._message.joint_names, self._message.digest = list(joint_names), digest

    def publish(
        self, now: TimePoint, supervisor: Supervisor | None, absent: Callable[[], str], rehearsal: bool
    ) -> None:
        """Publish the state if it changed, or periodically.

        Args:
            now: present time.
            supervisor: supervisor of the motion; None before the robot is known.
            absent: function that returns the reason why there is no supervisor.
            rehearsal: whether full speed requires a rehearsal.
        """
        state = (Phase.WAITING, absent()) if supervisor is None else (supervisor.phase, supervisor.reason)
        recent = now.steady - self._published_at < PERIOD
        if recent and state == self._published:  # at nearly every joint state
            return
        text = _text(*state)
        if not self._changes.due(now.steady, text) and recent:
            return
        if state != self._published and self._log_changes.due(now.steady, text):
            self._log(*state)
        self._published, self._published_at = state, now.steady
        message = self._message
        message.lifecycle, message.rehearsal = self._node.lifecycle, _rehearsal(rehearsal, supervisor)
        message.state, message.reason = int(state[0]), state[1]
        if supervisor is not None:
            message.elapsed, message.complete = supervisor.elapsed(now), supervisor.complete
            message.duration, message.rehearsing = supervisor.excitation.duration, supervisor.rehearsing
            message.worst_margin, message.worst_margin_cause = supervisor.worst
            message.tracking_error = make_numbers(supervisor.tracking_error())
        self._topic.publish(self._node.stamped(message))

    def _log(self, phase: Phase, reason: str) -> None:
        log = self._node.get_logger()
        if phase == Phase.FAULT:
            log.error(_text(phase, reason))
        else:
            log.info(_text(phase, reason))

    def diagnosis(self) -> Diagnosis:
        """Phase and progress of the excitation."""
        message, (phase, reason) = self._message, self._published
        values = {
            "lifecycle": message.lifecycle,
            "rehearsal": self._rehearsals[message.rehearsal],
            "elapsed [s]": f"{message.elapsed:.1f}",
            "duration [s]": f"{message.duration:.1f}",
        }
        for name, error in zip(message.joint_names, message.tracking_error, strict=False):
            values[f"tracking error of {name}"] = f"{error:.4f}"
        return Diagnosis(LEVELS.get(phase, OK), _text(phase, reason), values)


def _rehearsal(required: bool, supervisor: Supervisor | None) -> int:
    """Constant of the message on the rehearsal."""
    if not required:
        return int(ExcitationStatus.NOT_REQUIRED)
    done = supervisor is not None and supervisor.rehearsed
    return int(ExcitationStatus.REHEARSED if done else ExcitationStatus.NOT_REHEARSED)


def _text(phase: Phase, reason: str) -> str:
    word = phase.name.lower()
    if reason.startswith(word):
        return reason
    return word + (f": {reason}" if reason else "")
