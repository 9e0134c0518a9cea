# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id export`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.dynamics.dynamics import check_robot
from robot_dyn_id.export import FORMATS
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.report.folder import output_folder
from robot_dyn_id.text.files import write_atomically


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--robot", required=True, metavar="URDF", help="URDF or xacro file that was identified")
    parser.add_argument("--parameters", required=True, metavar="FILE", help="parameters.yaml")
    parser.add_argument("--format", required=True, choices=list(FORMATS), help="format of the model")
    parser.add_argument("--out", required=True, metavar="FILE", help="model file to write")
    add_force(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Export and write."""
    file = Path(arguments.out)
    claim(arguments, file)
    parameters = read_parameters(arguments.parameters)
    check_robot(parameters, RobotModel.from_file(arguments.robot))
    exported = FORMATS[arguments.format](parameters)
    output_folder(file.parent)
    write_atomically(file, exported.text)
    print_findings(exported.findings)
    if not arguments.json:
        print(f"{parameters.robot_name} with its identified parameters in {file}")
    return 0, {"file": str(file), **summarize_findings(exported.findings)}
