# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id feedforward`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import ROBOT_FILES, add_robot, read_robot
from robot_dyn_id.cli.sources import add_compensation
from robot_dyn_id.dynamics.dynamics import Dynamics, check_robot
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import NONE
from robot_dyn_id.workflow.feed_forward import FilledTrajectory, fill_efforts, load_trajectory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Fill the efforts of a trajectory for a joint trajectory controller, without what the driver adds to a "
        "command, and check the torque of the motors against the effort limits of the URDF (95 % upper bound). "
        "Missing velocities and accelerations are those of the splines that the controller interpolates."
    )
    parser.add_argument(
        "motion", metavar="TRAJECTORY", help="JointTrajectory as YAML or in a bag, or trajectory.yaml of `design`"
    )
    add_robot(parser, f"{ROBOT_FILES} that was identified")
    parser.add_argument("--parameters", required=True, metavar="FILE", help="parameters.yaml, or its folder")
    parser.add_argument("--out", required=True, metavar="FILE", help="JointTrajectory with efforts (YAML)")
    add_compensation(parser)
    parser.add_argument("--topic", help="topic of a bag (default: its only one of the type JointTrajectory)")
    parser.add_argument("--message", type=int, metavar="N", help="message of a bag, from 0 (default: the only one)")
    parser.add_argument("--scale-to-limits", action="store_true", help="slow down until the torque limits are kept")
    add_force(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Fill, check and write."""
    file = Path(arguments.out)
    claim(arguments, file)
    if arguments.message is not None and arguments.message < 0:
        raise UsageError(f"--message {arguments.message}: messages are numbered from 0")
    parameters = read_parameters(arguments.parameters)
    check_robot(parameters, RobotModel.from_description(read_robot(arguments)))
    model = Dynamics.from_parameters(parameters).regressor.model
    trajectory = load_trajectory(arguments.motion, model, arguments.topic, arguments.message)
    filled = fill_efforts(parameters, trajectory, arguments.robot_compensates, arguments.scale_to_limits)
    filled.save(file)
    print_findings(filled.findings)
    if not arguments.json:
        slowed = "" if filled.speed == 1.0 else f" at {filled.speed:.3g} of its speed"
        show(f"{len(filled.trajectory.times)} points with efforts in {file}{slowed}")
    compensated = filled.compensated or (NONE,)
    answer = {"file": str(file), "speed": filled.speed, "robot_compensates": list(compensated), **_summary(filled)}
    return 0 if filled.within_limits else 1, {**answer, **summarize_findings(filled.findings)}


def _summary(filled: FilledTrajectory) -> dict[str, Any]:
    """Largest torques of each joint, and violations of limits."""
    return {
        "joints": [joint._asdict() for joint in filled.efforts.largest],
        "violations": [violation._asdict() for violation in filled.efforts.violations],
    }
