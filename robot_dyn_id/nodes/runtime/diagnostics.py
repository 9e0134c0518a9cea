# SPDX-License-Identifier: Apache-2.0
"""Diagnostic status of a node and its rejected inputs: logged on change, published on `diagnostics`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from robot_dyn_id.nodes.runtime.changes import Changes
from robot_dyn_id.nodes.runtime.robot_node import OK, STALE, Diagnosis

STARTUP_TIME_S = 5.0
"""Time after the start in which waiting for other nodes is not a warning [s]."""

LONGEST_REFUSAL = 400
"""Characters of a refusal that are reported: it can quote names of the message that is refused."""


class Condition:
    """The diagnosis of a node.

    Attributes:
        diagnosis: latest diagnostic status.
    """

    def __init__(self, log: Any) -> None:
        """Begin with the status "starting".

        Args:
            log: logger of the node.
        """
        self._log, self.diagnosis = log, Diagnosis(OK, "starting")
        self._refused, self._refusal = 0, "none"
        self._changes, self._refusals = Changes(), Changes()
        self._begun, self._waiting = time.monotonic(), False

    def report(self, level: bytes, message: str, values: Mapping[str, object] | None = None) -> None:
        """Set the diagnostic status; changes are logged.

        Args:
            level: `OK`, `WARN`, `ERROR` or `STALE`.
            message: one line.
            values: quantities by name.
        """
        old = self.diagnosis
        counted = {**(values or {}), "refused inputs": self._refused, "last refused": self._refusal}
        self.diagnosis = Diagnosis(level, message, counted)
        now = time.monotonic()
        if (old.level, old.message) != (level, message):
            self._waiting = level == STALE and now < self._begun + STARTUP_TIME_S
        if not self._changes.due(now, f"{level!r} {message}"):  # a change that was held back is due later
            return
        if level == OK or self._waiting:
            self._log.info(message)
        else:
            self._log.warning(message)

    def remind(self) -> Diagnosis:
        """Return the diagnosis, and warn once if the node has been waiting since its start for too long."""
        if self._waiting and time.monotonic() >= self._begun + STARTUP_TIME_S:
            self._waiting = False
            self._log.warning(self.diagnosis.message)
        return self.diagnosis

    def refuse(self, what: str) -> None:
        """Count an input that is not used, and log why, at most once in `LOG_PERIOD` for the same reason."""
        what = " ".join(what[: 2 * LONGEST_REFUSAL].split())[:LONGEST_REFUSAL]
        self._refused, self._refusal = self._refused + 1, what
        if self._refusals.due(time.monotonic(), what):
            self._log.warning(f"refused: {what}")
