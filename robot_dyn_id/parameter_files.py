"""Which file of ROS parameters a wrong value came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import InputError
from robot_dyn_id.yaml_files import read_yaml

OPTION = "--params-file"

OF_LAUNCH = "launch_params_"
"""Beginning of the names of temporary files in which `ros2 launch` hands over single values: nobody wrote them."""


def origin(problem: str, arguments: Sequence[str]) -> str:
    """The file that sets the parameter which a line about a mistake names first, in brackets; empty if none does.

    Args:
        problem: the line.
        arguments: of the process; of several files that set the parameter the last one counts.
    """
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
