# SPDX-License-Identifier: Apache-2.0
"""Files of ROS parameters: whether they can be used, and which of them a wrong value came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import InputError
from robot_dyn_id.text.yaml import read_yaml

OPTION = "--params-file"

RENAMED_NODES = {"controller": "computed_torque_controller", "monitor": "torque_residual_monitor"}
"""Names of nodes in version 0.1.0 and their present names."""

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


def refuse_renamed_sections(path: str | Path, parameters: Callable[[str], Collection[str]]) -> None:
    """Refuse a section with the name that a node had in version 0.1.0; ROS would ignore it without a message.

    The file may be shared with other packages, which may have a node of that name: a section is refused only if all its
    parameters are parameters of the renamed node.

    Args:
        path: file of ROS parameters.
        parameters: function that returns the names of the parameters of a node; an empty list leaves it unchecked.

    Raises:
        InputError: the file cannot be read, or has such a section.
    """
    _refuse_renamed(path, read_yaml(path, "parameters of the nodes"), parameters)


def _refuse_renamed(path: str | Path, content: Any, parameters: Callable[[str], Collection[str]]) -> None:
    """Check the content of a file as `refuse_renamed_sections` does."""
    for section, names in _sections(content):
        namespace, slash, old = section.rpartition("/")
        new = RENAMED_NODES.get(old, "")
        own = set(parameters(new)) if new else set()
        if names & own and names <= own | {"use_sim_time"}:
            raise InputError(
                f"{path}: {section}: this node is now called {new}; name the section {namespace}{slash}{new} "
                "(if it belongs to a node of another package, move it to another file)"
            )


def refuse_renamed_section_of(node: str, parameters: Collection[str], arguments: Sequence[str]) -> None:
    """Refuse a section with the former name of one node in the files that its process is started with.

    Args:
        node: name of the node in this package.
        parameters: names of its parameters.
        arguments: command line of the process; the node may be given its former name there.

    Raises:
        InputError: a file has such a section.
    """
    names = {word.partition("__node:=")[2] for word in arguments if "__node:=" in word}
    if not names & set(RENAMED_NODES):
        for file in _files(arguments):
            _refuse_renamed(file, _content(file), lambda name: parameters if name == node else ())


def _sections(content: Any, parents: str = "") -> Iterator[tuple[str, set[str]]]:
    """Name of each section with its namespaces as they are written, and names of the parameters that it sets."""
    for name, entry in content.items() if isinstance(content, dict) else ():
        section = f"{parents}{name}"
        if isinstance(entry, dict) and isinstance(entry.get("ros__parameters"), dict):
            yield section, {str(key) for key in entry["ros__parameters"]}
        else:
            yield from _sections(entry, f"{section}/")


def _files(arguments: Sequence[str]) -> list[str]:
    """Files of parameters on a command line."""
    return [file for option, file in pairwise(arguments) if option == OPTION]


def find_origin(problem: str, arguments: Sequence[str]) -> str:
    """The file that sets the parameter which a line about a mistake names first, in brackets; empty if none does.

    A line that begins with the name of a file is about the content of that file, and gets no other.

    Args:
        problem: the line.
        arguments: command line of the process; of several files that set the parameter the last one counts.
    """
    if Path(problem.partition(": ")[0]).expanduser().is_file():
        return ""
    words = re.findall(r"\w+", problem)
    sets = {name: file for file in _files(arguments) for name in _names(file)}
    file = next((sets[word] for word in words if word in sets), "")
    return f" (set in {file})" if file and not Path(file).name.startswith(OF_LAUNCH) else ""


def _names(file: str) -> set[str]:
    """Names of the parameters that a file sets, for whatever node."""
    return {name for _, names in _sections(_content(file)) for name in names}


def _content(file: str) -> Any:
    """Content of a file that rcl has read; None if it is a pipe, or not the YAML that this package reads."""
    try:
        return read_yaml(file, "parameters") if Path(file).is_file() else None
    except InputError:
        return None  # rcl has refused it with a reason of its own, or accepts it, such as keys that occur twice
