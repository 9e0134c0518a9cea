"""How a node is, and what it has refused: logged when it changes, told on `diagnostics`."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from robot_dyn_id.nodes.contract import OK, STALE, Diagnosis

AGAIN = 5.0
"""Time after which the same refusal is logged again [s]: bad messages come in streams."""

BURST = 20
"""Different refusals that are logged at once; then one per second."""

LONGEST = 400
"""Characters of a refusal that are logged: names in it come from the message that is refused."""

USUAL = 5.0
"""How long a node may wait for others after its start without a warning [s]."""


class Condition:
    """The diagnosis of a node.

    Attributes:
        diagnosis: what the node answers when it is asked how it is.
        refused: number of refused inputs.
        refusal: reason of the latest refusal.
    """

    def __init__(self, log: Any) -> None:
        """Begin; `log` is the logger of the node."""
        self._log, self.diagnosis = log, Diagnosis(OK, "starting")
        self.refused, self.refusal, self._told = 0, "none", -math.inf
        self._begun, self._waiting = time.monotonic(), False
        self._burst, self._regained = float(BURST), self._begun

    def report(self, level: bytes, message: str, values: Mapping[str, object] | None = None) -> None:
        """Say how the node is; other words than before are logged."""
        old = self.diagnosis
        counted = {**(values or {}), "refused inputs": self.refused, "last refused": self.refusal}
        self.diagnosis = Diagnosis(level, message, counted)
        if (old.level, old.message) == (level, message):
            return
        self._waiting = level == STALE and time.monotonic() < self._begun + USUAL
        if level == OK or self._waiting:
            self._log.info(message)
        else:
            self._log.warning(message)

    def remind(self) -> Diagnosis:
        """The diagnosis, once a second; what has been waited for since the start for too long is warned of, once."""
        if self._waiting and time.monotonic() >= self._begun + USUAL:
            self._waiting = False
            self._log.warning(self.diagnosis.message)
        return self.diagnosis

    def refuse(self, what: str) -> None:
        """Log an input that is not used, and why."""
        self.refused += 1
        what = " ".join(what[: 2 * LONGEST].split())[:LONGEST]
        now = time.monotonic()
        self._burst = min(float(BURST), self._burst + now - self._regained)
        self._regained = now
        if self._burst >= 1.0 and (what != self.refusal or now > self._told + AGAIN):
            self._burst -= 1.0
            self._log.warning(f"refused: {what}")
            self._told = now
        self.refusal = what
