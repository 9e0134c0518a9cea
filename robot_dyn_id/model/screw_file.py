# SPDX-License-Identifier: Apache-2.0
"""Files of screws: serial robots by the axes of their joints and the masses of their links, all in the base frame."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import ModelError, suggest_known
from robot_dyn_id.model.screw_chain import UPPER, Screw, make_chain_urdf
from robot_dyn_id.text.yaml import parse_yaml, suggest_exponent

KEYS = ("name", "base", "screws")
"""Keys of the file."""

SCREW_KEYS = ("name", "type", "axis", "point", "limits", "link")
"""Keys of each joint."""

TYPES = ("revolute", "prismatic")

LIMIT_KEYS = ("lower", "upper", "velocity", "effort")

LINK_KEYS = ("name", "mass", "center_of_mass", "inertia")

INERTIA_KEYS = tuple(f"i{'xyz'[row]}{'xyz'[column]}" for row, column in UPPER)

SUFFIXES = (".yaml", ".yml")
"""Suffixes of files of robots that are files of screws."""

_SCREWS = re.compile(r"^\ufeff?screws[ \t]*:", re.MULTILINE)


def has_screws(text: str) -> bool:
    """Whether a YAML text has the key of screws, which no other file of this package has."""
    return _SCREWS.search(text) is not None


def is_screw_file(text: str, path: str | Path) -> bool:
    """Whether the file of a robot is, or is meant to be, a file of screws.

    Args:
        text: content of the file.
        path: the file.
    """
    return not text.lstrip("\ufeff \t\r\n").startswith("<") and (has_screws(text) or Path(path).suffix in SUFFIXES)


def convert_screws(text: str, source: str) -> str:
    """Convert a file of screws to the text of a plain URDF.

    Args:
        text: content of the file.
        source: the file, for messages and for the name of a robot that has none.

    Raises:
        ModelError: not YAML, an unknown or missing key, a wrong value, or a name of two joints or links.
    """
    whole = _Section.read(parse_yaml(text, source, ModelError), f"{source}:", KEYS)
    entries = whole.content.get("screws")
    if not isinstance(entries, list) or not entries:
        raise ModelError(f"{source}: screws: must be a list with an axis, a point and a link for each joint")
    base = whole.text("base", "base")
    screws = [_read_screw(entry, f"{source}: screws[{place}]", place + 1) for place, entry in enumerate(entries)]
    for what, names in (("joints", [one.joint for one in screws]), ("links", [base, *(one.link for one in screws)])):
        repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if repeated is not None:
            raise ModelError(f"{source}: two {what} have the name {repeated}; rename one of them")
    return make_chain_urdf(screws, whole.text("name", Path(source).stem), base)


def _read_screw(content: Any, label: str, number: int) -> Screw:
    joint = _Section.read(content, label, SCREW_KEYS)
    kind, axis = joint.text("type", TYPES[0]), joint.vector("axis")
    if kind not in TYPES:
        raise ModelError(f"{label}.type: unknown type {kind!r}; {suggest_known(kind, TYPES)}")
    if not axis.any():
        raise ModelError(f"{label}.axis: must be longer than 0")
    limits, link = joint.section("limits", LIMIT_KEYS), joint.section("link", LINK_KEYS)
    return Screw(
        axis,
        joint.vector("point"),
        joint.text("name"),
        link.text("name", f"link{number}"),
        kind == TYPES[1],
        _read_range(limits, kind),
        limits.positive("velocity"),
        limits.positive("effort"),
        *_read_body(link),
    )


def _read_range(limits: _Section, kind: str) -> tuple[float, float] | None:
    if "lower" not in limits.content and "upper" not in limits.content and kind == TYPES[0]:
        return None
    lower, upper = limits.number("lower"), limits.number("upper")
    if not lower < upper:
        raise ModelError(f"{limits.label}: lower is {lower:g}, which must be below upper, {upper:g}")
    return lower, upper


def _read_body(link: _Section) -> tuple[float, Array, Array]:
    """Mass, center of mass and inertia; a link without mass has none of them, one without inertia is a point mass."""
    inertia = np.zeros((3, 3))
    if not {"mass", "center_of_mass", "inertia"} & set(link.content):
        return 0.0, np.zeros(3), inertia
    mass, center = link.positive("mass", None), link.vector("center_of_mass")
    if "inertia" in link.content:
        entries = link.section("inertia", INERTIA_KEYS)
        for key, (row, column) in zip(INERTIA_KEYS, UPPER, strict=True):
            inertia[row, column] = inertia[column, row] = entries.number(key, None if row == column else 0.0)
    return mass, center, inertia


@dataclass(frozen=True)
class _Section:
    """Keys and values of a part of the file, and where it is, for messages."""

    content: dict[str, Any]
    label: str

    @classmethod
    def read(cls, content: Any, label: str, known: Sequence[str]) -> _Section:
        """Check that a content is a mapping with known keys.

        Raises:
            ModelError: it is not.
        """
        where = label if label.endswith(":") else f"{label}:"
        if not isinstance(content, dict):
            raise ModelError(f"{where} must hold keys and values, not {content!r}")
        for key in content:
            if key not in known:
                raise ModelError(f"{where} unknown key {key!r}; {suggest_known(str(key), known)}")
        return cls(content, label)

    def section(self, key: str, known: Sequence[str]) -> _Section:
        """The part behind a key; empty where the key is missing."""
        return _Section.read(self.content.get(key, {}), self._label(key), known)

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty; without a default the key must be there."""
        value = self._value(key, default)
        if not isinstance(value, str) or not value:
            raise ModelError(f"{self._label(key)}: must be a string, not {value!r}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number; without a default the key must be there."""
        return _read_number(self._value(key, default), self._label(key))

    def positive(self, key: str, default: float | None = 0.0) -> float:
        """A number above 0, or the default; without one the key must be there."""
        value = self.number(key, default)
        if key in self.content and not value > 0.0:
            raise ModelError(f"{self._label(key)}: must be above 0, not {value:g}")
        return value

    def vector(self, key: str) -> Array:
        """Three finite numbers, shape (3,)."""
        value, label = self._value(key, None), self._label(key)
        if not isinstance(value, list) or len(value) != 3:
            raise ModelError(f"{label}: must be a list of 3 numbers, not {value!r}")
        return np.array([_read_number(entry, f"{label}[{place}]") for place, entry in enumerate(value)])

    def _value(self, key: str, default: Any) -> Any:
        if key not in self.content and default is None:
            raise ModelError(f"{self._label(key)} is missing")
        return self.content.get(key, default)

    def _label(self, key: str) -> str:
        return f"{self.label}{' ' if self.label.endswith(':') else '.'}{key}"


def _read_number(value: Any, label: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise ModelError(f"{label}: must be a finite number, not {value!r}{suggest_exponent(value)}")
    return float(value)
