# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id validate`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show, show_progress
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import ROBOT_FILES, add_robot, read_robot
from robot_dyn_id.cli.sources import add_configuration, add_exclusion, read_configuration_from
from robot_dyn_id.dynamics.dynamics import check_robot
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.report.folder import PAGE, REPORT, make_output_folder
from robot_dyn_id.workflow.identification import open_all, validate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", nargs="+", metavar="DATA", help="rosbag2 folder, .mcap, .db3, .npz or .csv")
    add_robot(parser, f"{ROBOT_FILES} that was identified")
    parser.add_argument("--parameters", required=True, metavar="FILE", help="parameters.yaml, or its folder")
    parser.add_argument("--out", metavar="DIR", help="folder for report.json and report.html (default: only print)")
    add_force(parser)
    add_exclusion(parser)
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Validate, write the report with `--out`, and print."""
    if arguments.out:
        claim(arguments, *(Path(arguments.out) / name for name in (REPORT, PAGE)))
    configuration = read_configuration_from(arguments)
    parameters = read_parameters(arguments.parameters)
    check_robot(parameters, RobotModel.from_description(read_robot(arguments)))
    recordings = open_all(arguments.data, configuration)
    folder = make_output_folder(arguments.out) if arguments.out else None
    result = validate(parameters, recordings, configuration.settings, show_progress)
    summary = result.save(folder, arguments.parameters) if folder else result.summary(arguments.parameters)
    if not arguments.json:
        show(result)
        show(f"report in {folder / PAGE}" if folder else "no report was written; --out DIR writes one")
    return int(result.evaluation.verdict.word == "bad"), summary
