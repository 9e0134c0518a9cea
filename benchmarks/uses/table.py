# SPDX-License-Identifier: Apache-2.0
"""Table of answers and successes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robot_dyn_id.uses import ANSWERS, USES
from uses.trials import (
    DRIFT_RAD,
    FORCES_N,
    FOUND,
    HALF,
    HELD_S,
    PUSHES,
    QUIET_S,
    ROLLED_S,
    ROLLED_SHARE,
    WEIGHED,
    WEIGHTS,
)

DEFINITIONS = {
    "gravity_compensation": f"in six poses, no joint moves by more than {DRIFT_RAD:g} rad in {HELD_S:g} s",
    "feed_forward": f"another motion is tracked with {HALF:.0%} of the error of the same feedback with true gravity",
    "computed_torque": "the same, with the default gains of the node, and the arm is stable",
    "forward_simulation": f"under recorded efforts for {ROLLED_S:g} s, no joint leaves another recording by more than "
    f"{ROLLED_SHARE:.0%} of its range (median of the largest distances)",
    "collision_detection": f"{FOUND:.0%} of {PUSHES} pushes of {FORCES_N[-1]:g} N on the moving last link are found, "
    f"without any alarm in {QUIET_S:g} s before",
    "payload": f"{WEIGHTS[1]:.0%} and {WEIGHTS[2]:.0%} of the mass that it can hold are weighed within {WEIGHED:.0%}",
}
"""Success of each use."""

HEAD = """# Uses, done: seed {seeds}

Written by `python -m uses`. Each arm has masses up to 15 % off its URDF, and friction and drives that no model of the
package describes exactly. It is identified by the plain command from recordings of eleven qualities. The model is then
used on the true arm, which Pinocchio simulates with the same friction, 18-bit encoders and a controller of 500 Hz, or
on further recordings of it. No threshold was chosen from these runs. That an inertia that is uncertain limits computed
torque, and does not exclude it, was decided after those of seed 0.
"""


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Successes of each use by its answer, and the cases in which an answer was wrong."""
    head = f"| use | {' | '.join(ANSWERS)} |"
    definitions = [f"| {use} | {text} |" for use, text in DEFINITIONS.items()]
    seeds = ", ".join(str(seed) for seed in sorted({row["seed"] for row in rows}))
    first = [
        HEAD.format(seeds=seeds),
        "| use | succeeds if |",
        "|---|---|",
        *definitions,
        "",
        "Successes of each answer:",
        "",
    ]
    lines = [*first, head, "|---" * (1 + len(ANSWERS)) + "|"]
    totals = {answer: [0, 0] for answer in ANSWERS}
    for use in USES:
        cells = []
        for answer in ANSWERS:
            outcomes = [_succeeds(row, use) for row in rows if _answer(row, use) == answer]
            totals[answer][0] += sum(outcomes)
            totals[answer][1] += len(outcomes)
            cells.append(f"{sum(outcomes)} of {len(outcomes)}" if outcomes else "-")
        lines.append(f"| {use} | {' | '.join(cells)} |")
    cells = [f"{good} of {count} ({good / max(count, 1):.0%})" for good, count in totals.values()]
    lines += [f"| all | {' | '.join(cells)} |", "", "Wrong answers:", ""]
    for row in rows:
        for use in USES:
            answer = _answer(row, use)
            if answer in ("yes", "no") and _succeeds(row, use) != (answer == "yes"):
                of_use = row["uses"][use]
                because = f" ({', '.join(of_use['because'])})" if of_use["because"] else ""
                lines.append(f"- {row['arm']}, {row['quality']}: {use} {answer}{because}: {of_use['detail']}")
    refused = [f"{row['arm']}, {row['quality']}" for row in rows if row["verdict"] == "refused"]
    lines += ["", f"Refused: {'; '.join(refused) or 'none'}."]
    return "\n".join(lines) + "\n"


def _answer(row: dict[str, Any], use: str) -> str | None:
    """Answer about a use in a case; None if nothing was identified."""
    return row["uses"][use]["answer"] if use in row["uses"] else None


def _succeeds(row: dict[str, Any], use: str) -> bool:
    """Whether a use succeeds in a case, see `Outcome`."""
    return bool(row["uses"][use]["figure"] <= 1.0)
