# SPDX-License-Identifier: Apache-2.0
"""Diagnostic status of a node: logged on change, published on `/diagnostics` as by diagnostic_updater."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from robot_dyn_id.findings import Finding, format_finding
from robot_dyn_id.nodes.runtime.changes import Changes

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK,
    DiagnosticStatus.WARN,
    DiagnosticStatus.ERROR,
    DiagnosticStatus.STALE,
)

STARTUP_TIME_S = 5.0
"""Time after the start in which waiting for other nodes is not a warning [s]."""


def make_status_name(node: str) -> str:
    """Name of the status of a node, `node: task` as diagnostic_updater has it.

    Args:
        node: full name of the node: several robots share the topic.
    """
    return f"{node}: condition"


def log_findings(log: Any, findings: Iterable[Finding]) -> None:
    """Log findings by their severity: information is not a warning.

    Args:
        log: logger of a node.
        findings: the findings.
    """
    for finding in findings:
        text = format_finding(finding)
        match finding.severity:  # one line each: a logger refuses another severity from the same line
            case "error":
                log.error(text)
            case "warning":
                log.warning(text)
            case _:
                log.info(text)


@dataclass(frozen=True)
class Diagnosis:
    """Diagnostic status of a node.

    Attributes:
        level: `OK`, `WARN`, `ERROR` or `STALE`.
        message: one line.
        values: figures, by name.
    """

    level: bytes
    message: str
    values: Mapping[str, object] = field(default_factory=dict)


class Condition:
    """The diagnosis of a node.

    Attributes:
        diagnosis: latest diagnostic status.
    """

    def __init__(self, log: Any) -> None:
        """Begin with the status "running".

        Args:
            log: logger of the node.
        """
        self._log, self.diagnosis = log, Diagnosis(OK, "running")
        self._changes = Changes()
        self._begun, self._waiting = time.monotonic(), False

    def report(self, level: bytes, message: str, values: Mapping[str, object] | None = None) -> None:
        """Set the diagnostic status; changes are logged.

        Args:
            level: `OK`, `WARN`, `ERROR` or `STALE`.
            message: one line.
            values: quantities by name.
        """
        old, self.diagnosis = self.diagnosis, Diagnosis(level, message, values or {})
        now = time.monotonic()
        if (old.level, old.message) != (level, message):
            self._waiting = level == STALE and now < self._begun + STARTUP_TIME_S
        if not self._changes.due(now, f"{level!r} {message}"):  # a change that was held back is due later
            return
        if level == OK or self._waiting:
            self._log.info(message)
        else:
            self._log.warning(message)

    def remind(self, awaited: bool = False) -> Diagnosis:
        """Return the diagnosis, and warn once if the node has been waiting since its start for too long.

        Args:
            awaited: whether what the node waits for is to come, so that waiting is not a fault.
        """
        if self._waiting and not awaited and time.monotonic() >= self._begun + STARTUP_TIME_S:
            self._waiting = False
            self._log.warning(self.diagnosis.message)
        return self.diagnosis
