# SPDX-License-Identifier: Apache-2.0
"""Commands that use the results of a command, at its end: words in capitals stand for files of the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robot_dyn_id.cli import show
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.advice import RunFiles, advise
from robot_dyn_id.report.folder import PAGE


def show_next_steps(
    files: RunFiles, model: ParameterSet, summary: Mapping[str, Any], more: Mapping[str, str] | None = None
) -> None:
    """Print the results and what can be done with them.

    Args:
        files: files of the identification.
        model: the identified model.
        summary: content of `report.json`.
        more: further commands by what they give, after the report.
    """
    steps = {"report, verdict first": f"open {files.folder / PAGE} in a browser", **(more or {})}
    for step in advise(model, summary):
        if not step.needs:
            (steps[step.text],) = files.list_commands(step)
    show_steps(steps)


def show_steps(steps: Mapping[str, str]) -> None:
    """Print what can be done next.

    Args:
        steps: commands by what they give.
    """
    show("\n".join(["", "next:", *(f"  {what}:\n    {text}" for what, text in steps.items())]))
