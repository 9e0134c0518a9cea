# SPDX-License-Identifier: Apache-2.0
"""Values at consecutive times as one dataclass of arrays, with the times as the first axis of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_dyn_id.arrays import Integers, Mask

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Rows:
    """Base of dataclasses whose fields are arrays, or `Rows`, of the same length."""

    def __len__(self) -> int:
        """Number of times."""
        return len(getattr(self, fields(self)[0].name))

    def take(self, chosen: Integers | Mask | slice) -> Self:
        """Values at some of the times."""
        values = (getattr(self, each.name) for each in fields(self))
        return type(self)(*(value.take(chosen) if isinstance(value, Rows) else value[chosen] for value in values))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Values of at least one part, one after the other."""
        if len(parts) == 1:
            return parts[0]
        columns = ([getattr(part, each.name) for part in parts] for each in fields(cls))
        return cls(*(_join(column) for column in columns))


def _join(column: list[Any]) -> Any:
    first = column[0]
    return type(first).concatenate(column) if isinstance(first, Rows) else np.concatenate(column)
