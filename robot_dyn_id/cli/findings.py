# SPDX-License-Identifier: Apache-2.0
"""Findings on the command line: text, and advice about options of the commands."""

from __future__ import annotations

from collections.abc import Iterable

from robot_dyn_id.cli import note
from robot_dyn_id.findings import SIGNS, Finding, format_finding

OPTIONS = {
    "nothing_held_out": "--validate DATA",
    "simulation_drifts": "--restart S",
}
"""Option that helps, by code of the finding."""


def advise(finding: Finding) -> str:
    """One line of text about a finding, with the option that helps."""
    text = format_finding(finding)
    return f"{text} ({OPTIONS[finding.code]})" if finding.code in OPTIONS else text


def print_findings(findings: Iterable[Finding]) -> None:
    """Print findings on standard error, one line each."""
    for finding in findings:
        note(f"  {SIGNS[finding.severity]} {advise(finding)}")
