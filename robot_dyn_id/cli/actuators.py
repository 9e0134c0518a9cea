# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id actuators`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show, show_progress
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import ROBOT_FILES, add_robot, read_robot
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from
from robot_dyn_id.errors import UsageError
from robot_dyn_id.workflow.actuators import (
    FILES,
    DriveSettings,
    Gains,
    identify_actuators,
)
from robot_dyn_id.workflow.identification import open_all
from robot_dyn_id.workflow.joints import make_robot_for

VALUES = ("kp", "kd", "limit")
"""Options that give values of drives."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="recordings with commanded and measured positions (rosbag2, .npz, .csv)"
    )
    add_robot(parser, f"{ROBOT_FILES}; its links are taken as they are")
    parser.add_argument("--out", required=True, metavar="DIR", help=f"folder for {', '.join(FILES)}")
    parser.add_argument(
        "--validate", nargs="+", default=[], metavar="DATA", help="recordings to simulate for validation"
    )
    parser.add_argument(
        "--kp",
        nargs="+",
        metavar="VALUE",
        help="gains of positions [N m/rad or N/m]: one number, or NAME=NUMBER for the joints whose names contain NAME; "
        "default: those of the recordings, else they are estimated",
    )
    parser.add_argument("--kd", nargs="+", metavar="VALUE", help="the same of velocities [N m s/rad or N s/m]")
    parser.add_argument("--limit", nargs="+", metavar="VALUE", help="the same, effort limits of the drives [N m or N]")
    parser.add_argument(
        "--types",
        metavar="NAMES",
        help="parts of joint names, separated by commas, as in hip,thigh,calf: joints with motors of one type, which "
        "share their values where the data agree",
    )
    add_force(parser)
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Identify, write, and print."""
    folder = Path(arguments.out)
    claim(arguments, *(folder / name for name in FILES))
    kp, kd, limit = (parse_values(name, getattr(arguments, name)) for name in VALUES)
    types = tuple(part for part in (arguments.types or "").split(",") if part)
    configuration = read_configuration_from(arguments)
    training, held_out = open_all(arguments.data, configuration), open_all(arguments.validate, configuration)
    robot = make_robot_for(read_robot(arguments), configuration, [*training, *held_out])
    result = identify_actuators(robot, training, held_out, DriveSettings(kp, kd, limit, types), show_progress)
    answer = result.save(folder)
    print_findings(result.findings)
    if not arguments.json:
        show(str(result))
        show(f"\nactuators in {answer['file']}, MuJoCo model in {answer['mjcf_file']}")
    return int(result.verdict.word == "bad"), answer


def parse_values(option: str, words: Sequence[str] | None) -> Gains:
    """Values of an option: one number, or numbers by name.

    Raises:
        UsageError: a word that is neither a number nor NAME=NUMBER, or both kinds.
    """
    if words is None:
        return None
    named: dict[str, float] = {}
    for word in words:
        name, separator, number = word.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise UsageError(f"--{option} {word}: expected a number or NAME=NUMBER, as in --{option} hip=20") from None
        if not separator:
            if len(words) > 1:
                raise UsageError(f"--{option} {word}: give one number for all joints, or NAME=NUMBER for each")
            return value
        named[name] = value
    return named
