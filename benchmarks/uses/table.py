# SPDX-License-Identifier: Apache-2.0
"""Table of answers and successes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robot_dyn_id.uses import ANSWERS, USES


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Successes of each use by its answer, and the cases in which an answer was wrong."""
    head = f"| use | {' | '.join(ANSWERS)} |"
    lines = [head, "|---" * (1 + len(ANSWERS)) + "|"]
    totals = {answer: [0, 0] for answer in ANSWERS}
    for use in USES:
        cells = []
        for answer in ANSWERS:
            outcomes = [row["uses"][use]["figure"] <= 1.0 for row in rows if _answer(row, use) == answer]
            totals[answer][0] += sum(outcomes)
            totals[answer][1] += len(outcomes)
            cells.append(f"{sum(outcomes)} of {len(outcomes)}" if outcomes else "-")
        lines.append(f"| {use} | {' | '.join(cells)} |")
    cells = [f"{good} of {count} ({good / max(count, 1):.0%})" for good, count in totals.values()]
    lines += [f"| all | {' | '.join(cells)} |", "", "Wrong answers:", ""]
    for row in rows:
        for use in USES:
            answer = _answer(row, use)
            success = answer is not None and row["uses"][use]["figure"] <= 1.0
            if (answer == "yes" and not success) or (answer == "no" and success):
                of_use = row["uses"][use]
                because = f" ({', '.join(of_use['because'])})" if of_use["because"] else ""
                lines.append(f"- {row['arm']}, {row['quality']}: {use} {answer}{because}: {of_use['detail']}")
    refused = [f"{row['arm']}, {row['quality']}" for row in rows if row["verdict"] == "refused"]
    lines += ["", f"Refused: {'; '.join(refused) or 'none'}."]
    return "\n".join(lines) + "\n"


def _answer(row: dict[str, Any], use: str) -> str | None:
    """Answer about a use in a case; None if nothing was identified."""
    return row["uses"][use]["answer"] if use in row["uses"] else None
