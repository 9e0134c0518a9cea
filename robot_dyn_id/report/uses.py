# SPDX-License-Identifier: Apache-2.0
"""Answers about uses as text: a table by joint, the answers about the arm, and what fewer joints are fit for."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from robot_dyn_id.identification.validation.uses import ReducedFit, UseJudgment, format_figure
from robot_dyn_id.uses import APART, LIMITED

HEADS = {
    "gravity_compensation": ("gravity", ""),
    "feed_forward": ("feed", "forward"),
    "computed_torque": ("computed", "torque"),
    "forward_simulation": ("forward", "simulation"),
    "collision_detection": ("collision", "detection"),
    "payload": ("payload", ""),
}
"""Two lines above the column of each use, so that the table fits a terminal of 80 characters."""

LIMITED_MEANS = (
    "limited: larger errors than the use should have (figure above its limit), or a finding restricts it; try it "
    "slowly where an arm moves, with the limits of the controller on"
)
"""Explanation of a limited answer, printed below it."""

APART_MEANS = (
    f"{APART}: the effort of this joint shows no payload: a mass at the last link hardly changes it, or the model "
    "explains too little of it"
)
"""Explanation of `APART`, printed below the answers by joint."""

FEWEST_IN_RANGE = 3
"""Consecutive joints from which on only the first and the last one are named."""


def name_use(use: str) -> str:
    """Name of a use in words."""
    return use.replace("_", " ")


def answer_rows(judgments: Sequence[UseJudgment]) -> list[tuple[str, tuple[str, ...]]]:
    """Name of each joint, and its answer about each use."""
    names = list(judgments[0].joints) if judgments else []
    return [(name, tuple(one.joints[name] for one in judgments)) for name in names]


def use_rows(judgments: Sequence[UseJudgment]) -> list[tuple[str, str, str, str]]:
    """Use, answer about the arm, figure with its limit, joint and finding of the figure.

    The figure is followed by what lowers the answer in spite of it.
    """
    rows = []
    for one in judgments:
        fit = one.fit
        figures = format_figure(fit.figure, fit.threshold, fit.unit) + format_after(one.after)
        figures += f", {one.reason}" if one.reason else ""
        rows.append((name_use(fit.use), fit.answer, figures, ": ".join(filter(None, (one.joint, one.code)))))
    return rows


def format_after(after: float) -> str:
    """Time of simulation behind a figure, ` after 1 s`; empty for NaN."""
    return "" if math.isnan(after) else f" after {after:g} s"


def has_limited(judgments: Sequence[UseJudgment]) -> bool:
    """Whether an answer is limited, which has to be explained."""
    return any(LIMITED in (one.fit.answer, *one.joints.values()) for one in judgments)


def has_apart(judgments: Sequence[UseJudgment]) -> bool:
    """Whether a use does not rest on a joint, which has to be explained."""
    return any(APART in one.joints.values() for one in judgments)


def format_reduced(reduced: ReducedFit) -> str:
    """Uses that fewer joints are fit for."""
    uses = ", ".join(name_use(use) for use in reduced.uses)
    left_out = list_joints(reduced.without, reduced.order)
    needed = "if recorded with these joints at rest and this line in the configuration"
    return f"without {left_out}: yes for {uses}, {needed}:"


def identify_line(reduced: ReducedFit) -> str:
    """Line of the configuration that identifies the remaining joints only."""
    return f"identify: [{', '.join(reduced.identify)}]"


def list_joints(names: Collection[str], order: Sequence[str]) -> str:
    """Names in an order, three or more consecutive ones as a range: `base, wrist_1 to wrist_3`."""
    runs: list[list[str]] = []
    previous = -FEWEST_IN_RANGE
    for number, name in enumerate(order):
        if name not in names:
            continue
        if number != previous + 1:
            runs.append([])
        runs[-1].append(name)
        previous = number
    parts = [f"{run[0]} to {run[-1]}" if len(run) >= FEWEST_IN_RANGE else ", ".join(run) for run in runs]
    return ", ".join(parts)
