# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id predict`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import ROBOT_FILES, add_robot, read_robot
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from
from robot_dyn_id.dynamics.dynamics import check_robot
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.workflow.identification import open_all
from robot_dyn_id.workflow.prediction import predict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", metavar="DATA", help="rosbag2 folder, .mcap, .db3, .npz or .csv")
    add_robot(parser, f"{ROBOT_FILES} that was identified")
    parser.add_argument("--parameters", required=True, metavar="FILE", help="parameters.yaml, or its folder")
    parser.add_argument("--out", required=True, metavar="FILE.npz", help="t, joint_names, tau, units of tau")
    add_force(parser)
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Predict and write."""
    file = Path(arguments.out)
    if file.suffix != ".npz":
        raise UsageError(f"--out {file}: the file name must end in .npz")
    claim(arguments, file)
    configuration = read_configuration_from(arguments)
    parameters = read_parameters(arguments.parameters)
    check_robot(parameters, RobotModel.from_description(read_robot(arguments)))
    recording = open_all([arguments.data], configuration)[0]
    make_output_folder(file.parent)
    prediction = predict(parameters, recording, configuration.settings.velocity, configuration.settings.ignore)
    prediction.save(file, recording.epoch)
    print_findings(prediction.findings)
    if not arguments.json:
        show(f"{len(prediction.t)} predictions in {file}")
    return 0, {"file": str(file), **summarize_findings(prediction.findings)}
