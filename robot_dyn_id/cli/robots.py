# SPDX-License-Identifier: Apache-2.0
"""`--robot`, and the options of xacro files."""

from __future__ import annotations

import argparse
from pathlib import Path

from robot_dyn_id.errors import MissingArgumentError, MissingPackageError, UsageError
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.model.packages import list_folders_above
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import PARAMETERS_FILE

ROBOT_FILES = "URDF, xacro, MJCF or screws file, or parameters.yaml"
"""Files that `--robot` takes, for help texts."""


def add_robot(parser: argparse.ArgumentParser, text: str = ROBOT_FILES, required: bool = True) -> None:
    """Add `--robot`, `--package` and `--xacro`.

    Args:
        parser: parser of the command.
        text: help text of `--robot`.
        required: whether the command needs a robot.
    """
    parser.add_argument("--robot", required=required, metavar="URDF", help=text)
    parser.add_argument(
        "--package",
        action="append",
        default=[],
        metavar="DIR",
        help="folder of a ROS package, or one that contains some, for $(find NAME) and package://NAME; repeatable",
    )
    parser.add_argument(
        "--xacro",
        action="append",
        default=[],
        metavar="NAME:=VALUE",
        help="argument of a xacro file, as in ur_type:=ur5e; repeatable",
    )


def read_robot(arguments: argparse.Namespace) -> RobotDescription:
    """The robot of `--robot`.

    Raises:
        UsageError: words of `--xacro` that are not NAME:=VALUE.
        MissingPackageError: a xacro file needs a ROS package that is not found.
        MissingArgumentError: a xacro file needs an argument that is not given.
        ModelError: the file cannot be used.
        InputError: parameters that cannot be read.
    """
    if Path(arguments.robot).name == PARAMETERS_FILE:
        return RobotDescription(read_parameters(arguments.robot).robot.urdf, str(arguments.robot))
    values = {}
    for word in getattr(arguments, "xacro", ()):  # not every command with a robot has the options
        name, separator, value = word.partition(":=")
        if not (name and separator):
            raise UsageError(f"--xacro {word}: expected NAME:=VALUE, as in --xacro ur_type:=ur5e")
        values[name] = value
    try:
        return RobotDescription.from_file(arguments.robot, getattr(arguments, "package", ()), values)
    except MissingPackageError as error:
        raise MissingPackageError(f"{error.message}: give its folder with --package DIR") from None
    except MissingArgumentError as error:
        raise MissingArgumentError(f"{error.message}: give it with --xacro {error.name}:=VALUE") from None


def list_robot_words(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Words of `--robot` as the command line has them, with its options."""
    given = (("--package", arguments.package), ("--xacro", arguments.xacro))
    return (arguments.robot, *(word for name, values in given for value in values for word in (name, value)))


def list_mesh_folders(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Folders in which the meshes of `--robot` are searched: those of `--package`, and the ones above the file."""
    return (*getattr(arguments, "package", ()), *list_folders_above(arguments.robot))
