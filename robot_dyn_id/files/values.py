# SPDX-License-Identifier: Apache-2.0
"""Readers of values of a configuration file: each returns one, or raises a `UsageError` that names the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robot_dyn_id.errors import UsageError, suggestion
from robot_dyn_id.simulation.closed_loop import PerJoint


def mapping(value: Any, key: str, known: Sequence[str] | None = None) -> dict[str, Any]:
    """Keys and values; each key one of the known ones, if there are such."""
    if not isinstance(value, dict):
        raise UsageError(f"{key}: must be keys and values, not {value!r}")
    for name in value:
        if known is not None:
            one_of(name, key, known, "unknown key")
    return value


def one_of(value: Any, key: str, known: Sequence[str], what: str = "unknown value") -> str:
    """A value that must be one of the known ones; the nearest is named if it is not."""
    if value not in known:
        raise UsageError(f"{key}: {what} {value!r}; {suggestion(value, known)}")
    return str(value)


def number(value: Any, key: str) -> float:
    """A real number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{key}: must be a number, not {value!r}")
    return float(value)


def integer(value: Any, key: str) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{key}: must be a whole number, not {value!r}")
    return value


def flag(value: Any, key: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise UsageError(f"{key}: must be true or false, not {value!r}")
    return value


def text(value: Any, key: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise UsageError(f"{key}: must be a text, not {value!r}")
    return value


def texts(value: Any, key: str) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise UsageError(f"{key}: must be a list, not {value!r}")
    return tuple(text(entry, key) for entry in value)


def vector(value: Any, key: str) -> tuple[float, float, float]:
    """A list of three numbers."""
    if not isinstance(value, list) or len(value) != 3:
        raise UsageError(f"{key}: must be a list of 3 numbers, not {value!r}")
    return (number(value[0], key), number(value[1], key), number(value[2], key))


def numbers(value: Any, key: str, known: Sequence[str]) -> dict[str, float]:
    """Keys that are known, with numbers."""
    return {name: number(entry, f"{key}.{name}") for name, entry in mapping(value, key, known).items()}


def per_joint(value: Any, key: str) -> PerJoint:
    """A number for all joints, or numbers by joint."""
    named = value.items() if isinstance(value, dict) else [("all", value)]
    return tuple((str(name), number(entry, f"{key}.{name}")) for name, entry in named)
