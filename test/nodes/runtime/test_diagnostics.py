# SPDX-License-Identifier: Apache-2.0
"""Diagnostic status of nodes and their log."""

from rclpy.logging import get_logger

from robot_dyn_id.findings import format_finding, list_definitions
from robot_dyn_id.nodes.runtime.diagnostics import log_findings


def test_findings_are_logged_by_their_severity(capfd):
    findings = [list_definitions()[0].found(word, severity=word) for word in ("error", "warning", "info", "error")]
    log_findings(get_logger("findings"), findings)
    lines = capfd.readouterr().err.splitlines()
    assert [line.partition("]")[0] for line in lines] == ["[ERROR", "[WARN", "[INFO", "[ERROR"]
    assert all(line.endswith(format_finding(one)) for line, one in zip(lines, findings, strict=True))
