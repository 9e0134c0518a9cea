# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id node`: start of a node, also where there is no `ros2 run`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from robot_dyn_id.nodes import NODES
from robot_dyn_id.nodes.starting import start

ROS_ARGUMENTS = "--ros-args"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "Parameters, topics and services of each node: docs/nodes.md."
    parser.add_argument("name", metavar="NODE", choices=NODES, help=", ".join(NODES))
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="--ros-args ...", help="arguments of the node")


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Run a node; the process ends with its exit code. `--ros-args` may be left out."""
    words = arguments.words
    if words and ROS_ARGUMENTS not in words:
        words = [ROS_ARGUMENTS, *words]
    sys.argv = [arguments.name, *words]
    start(arguments.name)
