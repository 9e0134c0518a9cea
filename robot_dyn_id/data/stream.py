# SPDX-License-Identifier: Apache-2.0
"""Re-iterable streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class RepeatableStream(Generic[Item]):
    """Items that are produced again at every iteration, so that they are never held in memory together.

    Attributes:
        start: starts a pass over the items.
    """

    start: Callable[[], Iterator[Item]]

    def __iter__(self) -> Iterator[Item]:
        """Start a pass."""
        return self.start()
