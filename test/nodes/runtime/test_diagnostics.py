# SPDX-License-Identifier: Apache-2.0
"""Diagnostic status of nodes and their log."""

from robot_dyn_id.findings import list_definitions
from robot_dyn_id.nodes.runtime.diagnostics import log_findings


class Lines:
    """Logger that keeps what it is given, by severity."""

    def __init__(self):
        self.lines = []
        for name in ("info", "warning", "error"):
            setattr(self, name, lambda text, name=name: self.lines.append((name, text)))


def test_findings_are_logged_by_their_severity():
    log, definition = Lines(), list_definitions()[0]
    log_findings(log, [definition.found(word, severity=word) for word in ("error", "warning", "info")])
    assert [name for name, _ in log.lines] == ["error", "warning", "info"]
    assert all(text.startswith(name) for name, text in log.lines)
