# SPDX-License-Identifier: Apache-2.0
"""Commands that use the results of an identification, at its end: each runs as it is printed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.advice import DESIGN, advise
from robot_dyn_id.report.folder import PAGE, PARAMETERS


def show_next_steps(
    folder: Path,
    robot: tuple[str, ...],
    prediction: tuple[str, ...],
    model: ParameterSet,
    summary: Mapping[str, Any],
    more: Mapping[str, str] | None = None,
) -> None:
    """Print the results and what can be done with them.

    Args:
        folder: folder of the results.
        robot: `--robot` that was identified, and its options.
        prediction: recording whose efforts are predicted, and the options that it is read with.
        model: the identified model.
        summary: content of `report.json`.
        more: further commands by what they give, after the report.
    """
    with_model = (*robot, "--parameters", str(folder / PARAMETERS))
    steps = {"report, verdict first": f"open {folder / PAGE} in a browser", **(more or {})}
    for step in advise(model, summary):
        if step.file:
            recording = prediction if step.command == ("predict",) else ()
            inputs = robot if step is DESIGN else with_model
            steps[step.text] = format_command(*step.command, *recording, *inputs, "--out", str(folder / step.file))
    show("\n".join(["", "next:", *(f"  {what}:\n    {text}" for what, text in steps.items())]))


def format_command(*words: str) -> str:
    """A command as a shell takes it."""
    return shlex.join(("robot-dyn-id", *words))
