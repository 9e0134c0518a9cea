# SPDX-License-Identifier: Apache-2.0
"""Cache of computed values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

CACHE_LIMIT_BYTES = 32 * 2**20
"""Largest value that is kept; a larger one is computed again, so that memory is bounded."""

CACHE_ENTRIES = 4
"""Number of values that are kept."""


class Cache(Generic[Value]):
    """The values that were computed last, by key; values are single objects, or the items of a stream."""

    def __init__(self, limit: int = CACHE_LIMIT_BYTES, entries: int = CACHE_ENTRIES) -> None:
        """Start empty.

        Args:
            limit: largest stream that is kept [bytes].
            entries: number of values that are kept; the oldest is dropped first.
        """
        self._limit, self._entries = limit, entries
        self._values: dict[Hashable, Any] = {}
        self._too_large: set[Hashable] = set()

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The value of a key, computed if it is not in the cache."""
        if key not in self._values:
            self._keep(key, compute())
        value: Value = self._values[key]
        return value

    def stream(
        self, key: Hashable, start: Callable[[], Iterable[Value]], size: Callable[[Value], int]
    ) -> Iterator[Value]:
        """The items of a stream; they are kept once a pass has reached the end, if they are not too large.

        Args:
            key: key of the stream.
            start: starts a pass; called if the stream is not in the cache.
            size: size of an item [bytes].
        """
        if key in self._values:
            yield from self._values[key]
            return
        items: list[Value] = []
        total = 0
        for item in start():
            total += size(item)
            if total > self._limit:
                self._too_large.add(key)
            if key in self._too_large:
                items.clear()
            else:
                items.append(item)
            yield item
        if key not in self._too_large:
            self._keep(key, tuple(items))

    def _keep(self, key: Hashable, value: object) -> None:
        self._values[key] = value
        while len(self._values) > self._entries:
            del self._values[next(iter(self._values))]
