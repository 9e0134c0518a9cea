# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id export`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import ROBOT_FILES, add_robot, read_robot
from robot_dyn_id.cli.sources import add_compensation
from robot_dyn_id.dynamics.compensation import decide_compensations
from robot_dyn_id.dynamics.dynamics import check_robot
from robot_dyn_id.errors import UsageError
from robot_dyn_id.export import FORMATS, TOOL_FORMATS, Exported, export_model
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.payload import read_payload
from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import NONE
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.text.files import write_atomically

ROBOT_OPTIONS = ("robot_compensates", "allow_bad_verdict", "package", "xacro")
"""Optional arguments of the formats of a robot."""

ALLOWED_BY = "identify again, or export it nevertheless by --allow-bad-verdict"
"""Advice about a model that must not command torques."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot(parser, f"{ROBOT_FILES} that was identified", required=False)
    parser.add_argument("--parameters", metavar="FILE", help="parameters.yaml, or its folder")
    parser.add_argument(
        "--payload", metavar="FILE", help=f"payload.yaml, for {' and '.join(TOOL_FORMATS)} instead of a robot"
    )
    parser.add_argument("--format", required=True, choices=[*FORMATS, *TOOL_FORMATS], help="format of the model")
    parser.add_argument("--out", required=True, metavar="FILE", help="model file to write")
    add_compensation(parser)
    parser.add_argument(
        "--allow-bad-verdict",
        action="store_true",
        help="export a model that is refused, as of a bad verdict: command no torques",
    )
    add_force(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Export and write."""
    file = Path(arguments.out)
    _check(arguments)
    claim(arguments, file)
    what, exported = _tool(arguments) if arguments.format in TOOL_FORMATS else _robot(arguments)
    make_output_folder(file.parent)
    write_atomically(file, exported.text)
    print_findings(exported.findings)
    if not arguments.json:
        show(f"{what} in {file}")
    return 0, {"file": str(file), **summarize_findings(exported.findings)}


def _check(arguments: argparse.Namespace) -> None:
    """Check that the inputs are those of the format.

    Raises:
        UsageError: they are not.
    """
    tool = arguments.format in TOOL_FORMATS
    names = ("robot", "parameters", "payload", *ROBOT_OPTIONS)
    given = {name for name in names if getattr(arguments, name)}
    needed = {"payload"} if tool else {"robot", "parameters"}
    for name in sorted(needed - given):
        raise UsageError(f"--format {arguments.format} needs --{name}")
    for name in sorted(given - needed - set(() if tool else ROBOT_OPTIONS)):
        raise UsageError(f"--{name.replace('_', '-')} is not used with --format {arguments.format}")


def _robot(arguments: argparse.Namespace) -> tuple[str, Exported]:
    parameters = read_parameters(arguments.parameters)
    check_robot(parameters, RobotModel.from_description(read_robot(arguments)))
    if arguments.robot_compensates:
        stated = decide_compensations(parameters, arguments.robot_compensates)
        effort = replace(parameters.effort, robot_compensates=stated or (NONE,))
        parameters = replace(parameters, effort=effort)
    exported = export_model(arguments.format, parameters, arguments.allow_bad_verdict, ALLOWED_BY)
    return f"{parameters.robot.name} with its identified parameters", exported


def _tool(arguments: argparse.Namespace) -> tuple[str, Exported]:
    payload = read_payload(arguments.payload)
    return f"the payload on {payload.link}", TOOL_FORMATS[arguments.format](payload)
