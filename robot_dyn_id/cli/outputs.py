# SPDX-License-Identifier: Apache-2.0
"""Output files of commands: replaced only with `--force`, and never if they are an input."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from robot_dyn_id.cli.robots import list_mesh_folders, read_robot
from robot_dyn_id.errors import RobotDynIdError, UsageError
from robot_dyn_id.files.configuration import list_files_named_in
from robot_dyn_id.recordings import list_files_of
from robot_dyn_id.report.folder import PARAMETERS, check_output_folder

INPUTS = (
    *("runs", "data", "validate", "bare", "loaded", "bag", "trajectory", "motion"),
    *(
        "robot",
        "config",
        "package",
        "design",
        "limits",
        "after",
        "prior",
        "parameters",
        "payload",
        "terms",
        "definitions",
        "last",
    ),
    *("manifest", "store", "add", "tls_ca", "tls_cert", "tls_key"),
)
"""Arguments of verbs that name files or folders to read."""


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add `--force`."""
    parser.add_argument("--force", action="store_true", help="replace existing outputs (never a file that is read)")


def claim(arguments: argparse.Namespace, *files: Path) -> None:
    """Check that the files of a verb may and can be written; to be called before anything is computed.

    Args:
        arguments: arguments of the command; files named by `INPUTS` are never replaced, others only with `force`.
        *files: to be written.

    Raises:
        UsageError: a file is an input, by whatever path or link; it is a folder; or it exists, and `--force` is not
            given or the verb has none.
        InputError: a folder that cannot be made or written to.
    """
    for folder in dict.fromkeys(file.parent for file in files):
        check_output_folder(folder, [file.name for file in files if file.parent == folder])
    inputs = list(_inputs(arguments))
    if getattr(arguments, "force", False) and any(os.path.lexists(file) for file in files):
        inputs += [("robot", file) for file in _behind_robot(arguments)]
    for file in files:
        for name, source in inputs:
            if _same(file, source):
                raise UsageError(
                    f"{file}: is an input ({_option(name)}), and inputs are never replaced; choose another output"
                )
        if file.is_dir() and hasattr(arguments, "force"):  # the outputs of `demo` are folders, and never replaced
            raise UsageError(f"{file}: is a folder; give a file")
    existing = [file for file in files if os.path.lexists(file)]
    if existing and not getattr(arguments, "force", False):
        names = ", ".join(file.name for file in existing)
        folder = existing[0].parent
        raise UsageError(
            f"{folder}: holds {names} already; choose another output"
            + (", or --force to replace what is there" if hasattr(arguments, "force") else "")
        )


def claim_folder(folder: Path) -> None:
    """Check that the folder of a new bag does not exist, as bags are never replaced, and that it can be made.

    Raises:
        UsageError: it exists.
        InputError: it cannot be made.
    """
    if os.path.lexists(folder):
        raise UsageError(f"{folder}: exists, and a bag is never replaced; choose another folder")
    check_output_folder(folder)


def _inputs(arguments: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Name of the argument and path of every file that a verb reads."""
    for name in INPUTS:
        value = getattr(arguments, name, None)
        for text in value if isinstance(value, list) else [value]:
            if text is None:
                continue
            path = Path(text).expanduser()
            yield name, path
            if name in ("after", "parameters"):
                yield name, path / PARAMETERS
            elif name == "config":
                for named in list_files_named_in(path):
                    yield name, named
            elif path.is_dir():
                for file in list_files_of(path):
                    yield name, file


def _behind_robot(arguments: argparse.Namespace) -> Iterator[Path]:
    """Files that `--robot` includes by xacro, and meshes that it names; a xacro file is expanded to find them."""
    if getattr(arguments, "robot", None) is None:
        return
    try:
        description = read_robot(arguments)
        meshes = [mesh.get("filename", "") for mesh in description.root().iter("mesh")]
    except RobotDynIdError:  # the verb raises it again, with nothing written
        return
    from robot_dyn_id.excitation.collision.meshes import find_mesh  # slow to import, and seldom used

    yield from description.parts
    folders = list_mesh_folders(arguments)
    yield from filter(None, (find_mesh(name, folders) for name in dict.fromkeys(meshes)))


def _option(name: str) -> str:
    return {"data": "DATA", "bag": "BAG", "motion": "TRAJECTORY", "runs": "RUN"}.get(name, f"--{name}")


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file: by links of either kind, or by other ways to write a path."""
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return os.path.realpath(one) == os.path.realpath(other)
