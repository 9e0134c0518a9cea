# SPDX-License-Identifier: Apache-2.0
"""Values of enumerations from the network, where another version may publish one that this version does not know."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

Member = TypeVar("Member", bound=IntEnum)


def find_member(kind: type[Member], value: int) -> Member | None:
    """The member of an enumeration; None for a value that this version does not know, which is not a fault."""
    return next((member for member in kind if member == value), None)
