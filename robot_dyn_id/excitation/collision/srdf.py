# SPDX-License-Identifier: Apache-2.0
"""Pairs of links that may touch according to a MoveIt SRDF."""

from __future__ import annotations

from pathlib import Path

from robot_dyn_id.errors import InputError
from robot_dyn_id.model.urdf import URDF_LIMIT, parse_xml
from robot_dyn_id.text.files import read_text


def read_disabled_pairs(path: str | Path) -> tuple[tuple[str, str], ...]:
    """Read the pairs of links of all `disable_collisions` elements of an SRDF file.

    Raises:
        InputError: the file cannot be read, is too large, or is not an SRDF.
    """
    root = parse_xml(read_text(path, "SRDF", URDF_LIMIT), str(path))
    entries = root.findall("disable_collisions")
    if root.tag != "robot":
        raise InputError(f"{path}: not an SRDF: its root element is <{root.tag}>, expected <robot>")
    return tuple((entry.get("link1", ""), entry.get("link2", "")) for entry in entries)
