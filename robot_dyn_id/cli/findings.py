# SPDX-License-Identifier: Apache-2.0
"""Findings on the command line: text, and advice about options of the commands."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from robot_dyn_id.findings import Finding, format_finding

OPTIONS = {
    "nothing_held_out": "--validate DATA",
    "simulation_drifts": "--restart S",
    "held_out_too_slow": "--validate DATA",
    "not_excited": "design --after DIR",
    "condition_number_high": "design --after DIR",
}
"""Option or command that helps, by code of the finding."""


def advise(finding: Finding) -> str:
    """One line of text about a finding, with the option that helps."""
    text = format_finding(finding)
    return f"{text} ({OPTIONS[finding.code]})" if finding.code in OPTIONS else text


def print_findings(findings: Iterable[Finding], answers_as_json: bool = True) -> None:
    """Print findings, one line each.

    Args:
        findings: the findings.
        answers_as_json: print them on standard error, since standard output holds the answer.
    """
    for finding in findings:
        print(f"  ! {advise(finding)}", file=sys.stderr if answers_as_json else sys.stdout)
