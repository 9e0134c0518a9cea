# SPDX-License-Identifier: Apache-2.0
"""Files of ROS parameters: whether they can be used, and which of them a wrong value came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import InputError
from robot_dyn_id.text.yaml import read_yaml

OPTION = "--params-file"

OF_LAUNCH = "launch_params_"
"""Prefix of temporary files by which `ros2 launch` passes single values; they are not files of the user."""


def check_parameter_file(path: str | Path) -> None:
    """Check that a file can be passed to nodes as their parameters.

    Raises:
        InputError: not readable, not YAML, or not a mapping of node names to `ros__parameters`.
    """
    content = read_yaml(path, "parameters of the nodes")
    if not isinstance(content, dict) or not content:
        raise InputError(f"{path}: not a file of ROS parameters: it must map node names to ros__parameters")
    for name, entry in content.items():
        if not _sets_parameters(entry):
            raise InputError(
                f"{path}: {name} is not the name of a node with ros__parameters; is this the configuration of an "
                "identification, which `identification_config` takes?"
            )


def _sets_parameters(entry: Any) -> bool:
    """Whether an entry is a node or a namespace that leads to nodes only."""
    if not isinstance(entry, dict) or not entry:
        return False
    if "ros__parameters" in entry:
        return isinstance(entry["ros__parameters"], dict)
    return all(_sets_parameters(value) for value in entry.values())


def origin(problem: str, arguments: Sequence[str]) -> str:
    """The file that sets the parameter which a line about a mistake names first, in brackets; empty if none does.

    A line that begins with the name of a file is about the content of that file, and gets no other.

    Args:
        problem: the line.
        arguments: command line of the process; of several files that set the parameter the last one counts.
    """
    if Path(problem.partition(": ")[0]).expanduser().is_file():
        return ""
    words = re.findall(r"\w+", problem)
    files = [file for option, file in pairwise(arguments) if option == OPTION]
    sets = {name: file for file in files for name in _names(Path(file))}
    file = next((sets[word] for word in words if word in sets), "")
    return f" (set in {file})" if file and not Path(file).name.startswith(OF_LAUNCH) else ""


def _names(file: Path) -> set[str]:
    """Names of the parameters that a file sets, for whatever node."""
    try:
        content = read_yaml(file, "parameters")
    except InputError:
        return set()  # rcl has refused it with a reason of its own

    def inside(node: Any) -> set[str]:
        if not isinstance(node, dict):
            return set()
        own = node.get("ros__parameters")
        found = set(own) if isinstance(own, dict) else set()
        return found.union(*(inside(value) for key, value in node.items() if key != "ros__parameters"))

    return {str(name) for name in inside(content)}
