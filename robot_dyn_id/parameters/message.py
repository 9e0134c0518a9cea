# SPDX-License-Identifier: Apache-2.0
"""Fields of a message in the types of a dataclass, which has fields of the same names."""

from __future__ import annotations

import array
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from robot_dyn_id.errors import InputError


def read_part(what: str, kind: Any, message: Any, rows: Mapping[str, int]) -> Any:
    """Make a dataclass of the message with its fields.

    Args:
        what: kind of the set that the part belongs to, for messages.
        kind: dataclass.
        message: message, or any object with these fields.
        rows: number of rows of each field that is a matrix; messages have them row by row.

    Raises:
        InputError: a matrix whose numbers do not fill its rows, or fields that the dataclass refuses.
    """
    hints = get_type_hints(kind)
    return kind(
        **{
            item.name: _value(what, hints[item.name], getattr(message, item.name), rows, item.name)
            for item in fields(kind)
        }
    )


def _value(what: str, hint: Any, value: Any, rows: Mapping[str, int], name: str) -> Any:
    if is_dataclass(hint):
        return read_part(what, hint, value, rows)
    if isinstance(value, array.array | np.ndarray) and get_origin(hint) is np.ndarray:
        numbers = np.array(value).astype(get_args(get_args(hint)[1])[0])
        if len(numbers) and name in rows:
            if not rows[name] or len(numbers) % rows[name]:
                raise InputError(f"{what}: {name} has {len(numbers)} numbers, expected {rows[name]} rows")
            return numbers.reshape(rows[name], -1)
        return numbers
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        return tuple(read_part(what, kind, entry, rows) if is_dataclass(kind) else entry for entry in value)
    return value


def check_version(what: str, found: int, known: int, remedy: str) -> None:
    """Refuse a message of another format version.

    Args:
        what: kind of the message.
        found: its version; 0: none.
        known: version that is read.
        remedy: advice to the user.

    Raises:
        InputError: the version, and what to do.
    """
    if found != known:
        words = "format_version is missing" if found == 0 else f"format_version is {found}"
        raise InputError(f"{what}: {words}, this version of robot_dyn_id reads {known}: {remedy}", remedy)
