# SPDX-License-Identifier: Apache-2.0
"""The page of a fleet: which robots differ, in what, and how parameters vary and drift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_dyn_id.findings import Finding
from robot_dyn_id.report.assets import make_page_environment
from robot_dyn_id.report.interactive import PlotSheet
from robot_dyn_id.report.ranking import rank_findings
from robot_dyn_id.text.files import write_atomically

MOST_DETAILED = 200
"""Number of robots up to which the page shows the drift of all of them; beyond it, of those that differ."""


def write_fleet_page(path: Path, summary: dict[str, Any]) -> None:
    """Write the page.

    Args:
        path: the file.
        summary: content of `fleet.json`.

    Raises:
        InputError: the file cannot be written.
    """
    robots = sorted(
        summary["robots"], key=lambda one: (1.0 if one["probability"] is None else one["probability"], one["robot"])
    )
    detailed = [one for one in robots if one["drift"] and (len(robots) <= MOST_DETAILED or one["differs"])]
    page = make_page_environment().get_template("fleet.html.j2")
    findings = rank_findings(map(Finding.from_summary, summary["findings"]))
    write_atomically(
        path, page.render(summary=summary, robots=robots, detailed=detailed, findings=findings, sheet=PlotSheet())
    )
