# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id try`."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import note, show, show_progress
from robot_dyn_id.cli.compilation import first_identification
from robot_dyn_id.cli.next_steps import show_next_steps
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.report.advice import RunFiles
from robot_dyn_id.report.folder import RESULTS
from robot_dyn_id.workflow.examples import EXAMPLES, MASS_PACKAGE, Example, load_example
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("example", choices=list(EXAMPLES), help="measured recording that comes with the package")
    parser.add_argument("--out", metavar="DIR", help="folder for all files (default: the example's name)")
    add_force(parser)
    parser.add_argument(
        "--data",
        dest="copy_only",
        action="store_true",
        help="only copy the recording and the URDF",
    )
    parser.add_argument(
        "--masses",
        choices=("auto", "none"),
        default="none",
        help=f"none: geometry alone (default); auto: with the masses of {MASS_PACKAGE}, where that is installed",
    )


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Copy the files, identify, and print the result with what to do next."""
    example = load_example(arguments.example, with_masses=arguments.masses == "auto")
    folder = Path(arguments.out or example.name)
    claim(arguments, *(folder / name for name in (*example.file_names, *(() if arguments.copy_only else RESULTS))))
    recording, robot = example.save(folder)
    note(example.title)
    note(f"robot: published kinematics and limits, {_masses_text(example)}")
    answer = {"recording": str(recording), "robot": str(robot), "masses": example.masses or None}
    files = RunFiles(folder, (str(robot),), (str(recording),))
    again = files.format("identify", str(recording), "--robot", str(robot), "--out", str(folder / "run"))
    if arguments.copy_only:
        if not arguments.json:
            show(f"{recording}\n{robot}\n\nidentify with\n    {again}")
        return 0, answer
    # From the copies: the identification is then that of the command `identify` which is shown.
    trials = DataSelection([open_recording(recording)])
    with first_identification():
        result = identify_recordings(RobotDescription.from_file(robot), Configuration(), trials, show_progress)
    with closing(result):
        summary = result.save(folder, files)
    if not arguments.json:
        show(result)
        show_next_steps(files, result.parameters, summary, {"same by the command for your own robot": again})
    return int(result.evaluation.verdict.word == "bad"), {**summary, **answer}


def _masses_text(example: Example) -> str:
    return f"masses of {example.masses}" if example.masses else "no masses (not published)"
