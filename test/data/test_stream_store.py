# SPDX-License-Identifier: Apache-2.0
"""Streams that are computed once and read again, from memory and from a file."""

from __future__ import annotations

import copy
import os
import pickle
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from robot_dyn_id.data.stream_store import Identity, StreamStore

COUNT = 5


@dataclass(frozen=True)
class Inner:
    """A dataclass of an item."""

    values: np.ndarray
    missing: np.ndarray | None = None


@dataclass(frozen=True)
class Item:
    """An item with all that filtered windows consist of."""

    number: int
    own: slice
    mask: np.ndarray
    inner: Inner

    @property
    def nbytes(self) -> int:
        """Size of the arrays."""
        return int(self.mask.nbytes + self.inner.values.nbytes)


class Source:
    """Items that are counted when they are computed."""

    def __init__(self) -> None:
        self.computed = 0

    def __call__(self) -> Iterator[Item]:
        for number in range(COUNT):
            self.computed += 1
            values = np.arange(12.0).reshape(3, 4)[:, ::2] + number
            yield Item(number, slice(number, None), np.arange(number) > 1, Inner(values))


def read(store: StreamStore, source: Source, key: object = "key", skipped: int = 0) -> list[Item]:
    """A complete pass."""
    return list(store.stream(key, source, lambda item: item.nbytes, skipped))  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [0, 120, 10_000])
def test_later_passes_give_the_items_of_the_first_without_computing_them(limit: int) -> None:
    store, source = StreamStore(limit), Source()
    first, second = read(store, source), read(store, source)
    assert source.computed == COUNT
    for one, other in zip(first, second, strict=True):
        assert (one.number, one.own, other.inner.missing) == (other.number, other.own, None)
        assert one.mask.dtype == other.mask.dtype and np.array_equal(one.mask, other.mask)
        assert np.array_equal(one.inner.values, other.inner.values)


def test_passes_over_a_file_may_overlap() -> None:
    store, source = StreamStore(0), Source()
    read(store, source)
    pairs = list(zip(*(store.stream("key", source, lambda item: item.nbytes) for _ in range(2)), strict=True))
    assert [(one.number, other.number) for one, other in pairs] == [(number, number) for number in range(COUNT)]


def test_a_pass_that_is_not_finished_is_not_kept() -> None:
    store, source = StreamStore(), Source()
    next(store.stream("key", source, lambda item: item.nbytes))
    assert len(read(store, source)) == COUNT
    assert source.computed == 1 + COUNT


def test_first_passes_can_be_skipped() -> None:
    store, source = StreamStore(), Source()
    for _ in range(3):
        read(store, source, skipped=1)
    assert source.computed == 2 * COUNT


def test_the_stream_that_was_read_first_is_dropped_first() -> None:
    store, source = StreamStore(streams=2), Source()
    for key in ("a", "b", "a", "c"):
        read(store, source, key)
    assert source.computed == 3 * COUNT
    read(store, source, "a")
    assert source.computed == 3 * COUNT
    read(store, source, "b")
    assert source.computed == 4 * COUNT


def test_a_full_disk_costs_time_only() -> None:
    store, source = StreamStore(0), Source()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        assert len(read(store, source)) == COUNT
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(read(store, source)) == COUNT
    assert source.computed == 2 * COUNT


def test_an_identity_is_equal_for_the_same_object_alone() -> None:
    values = [1.0]
    assert Identity(values) == Identity(values)
    assert hash(Identity(values)) == hash(Identity(values))
    assert Identity(values) != Identity([1.0])


def test_copies_are_empty() -> None:
    store, source = StreamStore(limit=0), Source()
    read(store, source)
    for other in (pickle.loads(pickle.dumps(store)), copy.deepcopy(store), copy.copy(store)):
        again = Source()
        assert [one.number for one in read(other, again)] == list(range(COUNT)) and again.computed == COUNT


def test_a_closed_store_holds_no_file_and_computes_again() -> None:
    files = len(os.listdir("/proc/self/fd"))
    store, source = StreamStore(limit=0), Source()
    read(store, source)
    assert len(os.listdir("/proc/self/fd")) == files + 1
    store.close()
    read(store, source)
    assert len(os.listdir("/proc/self/fd")) == files
    assert source.computed == 2 * COUNT


@pytest.mark.parametrize(("free", "computed"), [(10**6, 1), (300, 2)])
def test_files_take_at_most_half_of_the_free_space(monkeypatch: pytest.MonkeyPatch, free: int, computed: int) -> None:
    written: list[int] = []
    write = os.pwrite

    def pwrite(file: int, data: memoryview, place: int) -> int:
        written.append(len(data))
        return write(file, data, place)

    def fstatvfs(_: int) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=free - sum(written), f_frsize=1)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(os, "fstatvfs", fstatvfs)
    store, source = StreamStore(limit=0), Source()
    for _ in range(2):
        assert len(read(store, source)) == COUNT
    assert source.computed == computed * COUNT
    assert sum(written) <= free // 2 * computed
