"""Pairs of links that a SRDF file of MoveIt's allows to touch."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from robot_dyn_id.errors import InputError


def disabled_pairs(path: str | Path) -> tuple[tuple[str, str], ...]:
    """The links of every `disable_collisions` of a SRDF file.

    Raises:
        InputError: the file cannot be read, or is no SRDF.
    """
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: cannot read the SRDF ({reason})") from None
    entries = root.findall("disable_collisions")
    if root.tag != "robot":
        raise InputError(f"{path}: not a SRDF: its root element is <{root.tag}>, expected <robot>")
    return tuple((entry.get("link1", ""), entry.get("link2", "")) for entry in entries)
