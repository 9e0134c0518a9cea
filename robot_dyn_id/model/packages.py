# SPDX-License-Identifier: Apache-2.0
"""Folders of ROS packages, for `$(find NAME)` of xacro files and `package://NAME/` of meshes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

MANIFEST = "package.xml"

SEARCHED_LEVELS = 5
"""Number of folders above a robot description in which its package and its meshes are searched."""

_NAME = re.compile(r"<name>\s*([^<\s]+)\s*</name>")


def find_package(name: str, folders: Sequence[str | Path]) -> Path | None:
    """Find the folder of a ROS package.

    A folder is that of the package if its `package.xml` has the name, or, without such a file, if the folder has it.

    Args:
        name: name of the package.
        folders: folders of packages, or that contain some; searched in their order, then those of `ROS_PACKAGE_PATH`
            and the share folders of the ROS 2 installation (`AMENT_PREFIX_PATH`).

    Returns:
        The folder, or None if it is not found.
    """
    for folder in (*folders, *_listed("ROS_PACKAGE_PATH")):
        with suppress(OSError):  # a folder that cannot be read
            for each in _candidates(Path(folder), name):
                if _package_name(each) == name:
                    return each
    shares = (prefix / "share" / name for prefix in _listed("AMENT_PREFIX_PATH"))
    return next((share for share in shares if share.is_dir()), None)


def list_package_folders(file: str | Path, given: Sequence[str | Path] = ()) -> tuple[Path, ...]:
    """Folders for `find_package`: those given, the file's own package, and the folder that contains it.

    Args:
        file: a robot description.
        given: folders of packages, or that contain some.
    """
    above = list(Path(file).resolve().parents)[:SEARCHED_LEVELS]
    own = next((folder for folder in above if (folder / MANIFEST).is_file()), None)
    near = () if own is None else (own, own.parent)
    return (*(Path(folder).expanduser().absolute() for folder in given), *near)


def list_folders_above(file: str | Path) -> tuple[str, ...]:
    """Folders above a robot description that may contain its meshes; empty if the file does not exist."""
    path = Path(file)
    if not str(file) or not path.is_file():
        return ()
    return tuple(str(folder) for folder in list(path.resolve().parents)[:SEARCHED_LEVELS])


def list_installed_folders() -> tuple[Path, ...]:
    """Share folders of the ROS 2 installation (`AMENT_PREFIX_PATH`), and folders of `ROS_PACKAGE_PATH`."""
    return (*(prefix / "share" for prefix in _listed("AMENT_PREFIX_PATH")), *_listed("ROS_PACKAGE_PATH"))


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    yield from (folder, folder / name)
    yield from sorted(file.parent for file in folder.glob(f"*/{MANIFEST}"))


def _package_name(folder: Path) -> str:
    """Name of the package in a folder; empty if there is no such folder."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return folder.resolve().name if folder.is_dir() else ""
    match = _NAME.search(text)
    return match[1] if match else ""


def _listed(variable: str) -> list[Path]:
    """Folders of a variable of the environment."""
    return [Path(part) for part in os.environ.get(variable, "").split(os.pathsep) if part]
