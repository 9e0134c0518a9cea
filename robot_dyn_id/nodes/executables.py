# SPDX-License-Identifier: Apache-2.0
"""Bodies of the executables: a node, or `composed`, several nodes in one process for a small computer.

`composed [--ros-args ...] --node simulator [--ros-args ...] --node recorder [--ros-args ...]`: arguments before the
first node are those of the process, such as `--log-level`; those of a node are its own. The process ends with the first
node that ends.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence

from robot_dyn_id.errors import UsageError
from robot_dyn_id.nodes import NODES
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.nodes.runtime.running import run, run_together

COMPOSED = "composed"
"""Name of the executable of several nodes."""

OPTION = "--node"
"""Word of the command line before the name of a node."""


def split_command(command: Sequence[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Arguments of the process, and name and arguments of each node.

    Args:
        command: command line.

    Raises:
        UsageError: no node, or one that does not exist.
    """
    own, *parts = _split(command)
    for name in [part[0] if part else "" for part in parts] or [""]:
        if name not in NODES:
            raise UsageError(f"{OPTION} {name}: name one of {', '.join(NODES)}")
    return own, [(name, words) for name, *words in parts]


def _split(words: Sequence[str]) -> Iterator[list[str]]:
    """Words before, between and behind those that are `OPTION`."""
    begin = 0
    for place in [*(place for place, word in enumerate(words) if word == OPTION), len(words)]:
        yield list(words[begin:place])
        begin = place + 1


def load_node(name: str) -> type[RobotNode]:
    """Class of a node, which is named like its module."""
    module = importlib.import_module(f"robot_dyn_id.nodes.{name}")
    node: type[RobotNode] = getattr(module, "".join(word.capitalize() for word in name.split("_")))
    return node


def run_executable(name: str) -> int:
    """Run a node, or those of the command line; the complete body of an executable. Returns the exit code.

    Args:
        name: name of the node, or `COMPOSED`.
    """
    if name != COMPOSED:
        return run(load_node(name))
    try:
        own, parts = split_command(sys.argv)
    except UsageError as error:
        print(f"{COMPOSED}: {error}", file=sys.stderr)
        return error.exit_code
    return run_together([(load_node(node), words) for node, words in parts], own)
