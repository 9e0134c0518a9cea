# SPDX-License-Identifier: Apache-2.0
"""Values computed once and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import Derived, Recording

Item = TypeVar("Item")


REMEMBERED = 32 * 2**20
"""Largest recording that is kept decoded [bytes]; a larger one is read anew at each walk, so that memory is bounded."""


def remembered(
    walk: Callable[[], Iterator[Item]], size: Callable[[Item], int], limit: int = REMEMBERED
) -> Callable[[], Iterator[Item]]:
    """A walk whose items are kept after the first time, if they are not too large.

    Args:
        walk: begins anew at each call.
        size: of an item [bytes].
        limit: for all of them [bytes].
    """
    kept: tuple[Item, ...] | None = None
    too_large = False

    def again() -> Iterator[Item]:
        nonlocal kept, too_large
        if kept is not None:
            yield from kept
            return
        seen: list[Item] = []
        total = 0
        for item in walk():
            total += size(item)
            too_large = too_large or total > limit
            if too_large:
                seen.clear()
            else:
                seen.append(item)
            yield item
        kept = None if too_large else tuple(seen)

    return again


class Remembered(Derived):
    """A recording whose chunks are kept after the first walk, if they are not too large.

    Estimation walks over the data ten times and more, and decoding would be most of its time.
    """

    def __init__(self, recording: Recording, limit: int = REMEMBERED) -> None:
        """Wrap a recording; `limit` is in bytes."""
        self.recording, self._limit = recording, limit
        self._walks: dict[tuple[str, ...], Callable[[], Iterator[Chunk]]] = {}

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`."""
        names = tuple(joints)
        if names not in self._walks:
            self._walks[names] = remembered(lambda: self.recording.chunks(names), lambda c: c.nbytes, self._limit)
        return self._walks[names]()
