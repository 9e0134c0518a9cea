# SPDX-License-Identifier: Apache-2.0
"""Files that come with the package, and the configurations of common robots among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_dyn_id.errors import InputError, UsageError, suggest_known
from robot_dyn_id.text.yaml import read_yaml

ROBOTS = "config/robots"
"""Folder of the configurations of common robots, one file for each."""

SECTIONS = ("design", "identification")
"""Sections of a robot's configuration: a design file, and a configuration of the identification."""


def find_shared_file(name: str) -> Path:
    """A file that comes with the package: `urdf/...`, `config/...`, from the source tree or the installed share folder.

    Raises:
        InputError: it is not there.
    """
    package = Path(__file__).resolve().parents[1]
    # <prefix>/lib/pythonX/site-packages/robot_dyn_id, or the root of the source tree
    for folder in (package.parent, *(above / "share" / "robot_dyn_id" for above in package.parents)):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{name} is not installed with this package")


def list_robot_names() -> tuple[str, ...]:
    """Names of the robots with a configuration in this package, ascending."""
    folder = find_shared_file(f"{ROBOTS}/ur5e.yaml").parent
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def resolve_robot(path: str | Path) -> Path:
    """File of a configuration that may be given by the name of a robot, such as `ur5e`.

    Raises:
        UsageError: neither a file nor the name of a robot.
    """
    file = Path(path).expanduser()
    if file.suffix or file.exists() or len(file.parts) != 1:
        return file
    names = list_robot_names()
    if str(path) not in names:
        raise UsageError(f"{path}: there is no such file, and no robot of that name; {suggest_known(path, names)}")
    return find_shared_file(f"{ROBOTS}/{path}.yaml")


def read_section(path: str | Path, section: str, what: str) -> Any:
    """Read a configuration, or a section of the configuration of a robot.

    Args:
        path: file, or the name of a robot with a configuration in this package.
        section: one of `SECTIONS`, read from a file that has no other keys than these.
        what: content of the file, for messages.

    Returns:
        Content of the file or of the section; None if it is empty.

    Raises:
        UsageError: not readable.
    """
    content = read_yaml(resolve_robot(path), what, UsageError)
    of_robot = isinstance(content, dict) and bool(content) and set(content) <= set(SECTIONS)
    return content.get(section) if of_robot else content


def is_of_robot(path: str | Path) -> bool:
    """Whether a configuration is that of a robot, with demands on its motions.

    Raises:
        UsageError: not readable.
    """
    content = read_yaml(resolve_robot(path), "configuration", UsageError)
    return isinstance(content, dict) and "design" in content
