# SPDX-License-Identifier: Apache-2.0
"""Kinds and versions of the result files of this package: written to their first lines, checked on reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import InputError
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.text.yaml import format_yaml, read_yaml


@dataclass(frozen=True)
class FileFormat:
    """Kind and version of a result file in YAML.

    Attributes:
        name: kind of the content, such as `trajectory`.
        version: version of the format that this package reads and writes.
        remedy: what the user does about a file of another version.
    """

    name: str
    version: int
    remedy: str

    @property
    def line(self) -> str:
        """Value of the key `format`."""
        return f"robot_dyn_id {self.name}"

    def write(self, path: str | Path, content: Mapping[str, Any], comment: str = "") -> None:
        """Write a file as a whole or not at all.

        Args:
            path: the file.
            content: what follows the two keys `format` and `format_version`.
            comment: lines at the top, each with `#` and a line break.

        Raises:
            InputError: the file cannot be written.
        """
        head = {"format": self.line, "format_version": self.version}
        write_atomically(Path(path), comment + format_yaml({**head, **content}))

    def read(self, path: str | Path) -> dict[str, Any]:
        """Read a file.

        Returns:
            The content without `format` and `format_version`.

        Raises:
            InputError: not readable, not a file of this kind, or of another version; the message says what to do.
        """
        content = read_yaml(path, self.name)
        content = content if isinstance(content, dict) else {}
        self.check(content, path)
        return {key: value for key, value in content.items() if key not in ("format", "format_version")}

    def check(self, content: Mapping[str, Any], path: str | Path) -> None:
        """Check the kind and the version of the content of a file.

        Args:
            content: what the file holds.
            path: the file, for messages.

        Raises:
            InputError: not a file of this kind, no version, or another one; the message says what to do.
        """
        known = (self.line,) if "format_version" in content else (self.line, f"{self.line} 1")  # as 0.1.0 wrote it
        if content.get("format") not in known:
            raise InputError(f"{path}: not a {self.name} file of this tool (it must hold `format: {self.line}`)")
        version = content.get("format_version")
        if type(version) is int and version == self.version:
            return
        found = "format_version is missing" if version is None else f"format_version is {version!r}"
        raise InputError(
            f"{path}: {found}, this version of robot_dyn_id reads {self.version}: {self.remedy}", self.remedy
        )
