# SPDX-License-Identifier: Apache-2.0
"""Caches and streams: what is kept, for how long, and what is computed again."""

import numpy as np
import pytest

from robot_dyn_id.data.cache import Cache
from robot_dyn_id.data.stream import RepeatableStream


class Counted:
    """Starts passes over some arrays and counts them."""

    def __init__(self, count=3):
        self.passes, self.count = 0, count

    def __call__(self):
        self.passes += 1
        yield from (np.full(4, float(number)) for number in range(self.count))


def test_a_stream_starts_again_at_every_iteration():
    source = Counted()
    stream = RepeatableStream(source)
    assert [len(list(stream)) for _ in range(2)] == [3, 3]
    assert source.passes == 2


@pytest.mark.parametrize(("limit", "passes"), [(96, 1), (95, 3)])
def test_a_stream_is_kept_up_to_a_number_of_bytes(limit, passes):
    source, cache = Counted(), Cache(limit)
    read = [[item[0] for item in cache.stream("key", source, lambda item: item.nbytes)] for _ in range(3)]
    assert read == 3 * [[0.0, 1.0, 2.0]]
    assert source.passes == passes


def test_a_pass_that_is_broken_off_keeps_nothing():
    source, cache = Counted(), Cache()
    next(cache.stream("key", source, lambda item: item.nbytes))
    assert len(list(cache.stream("key", source, lambda item: item.nbytes))) == 3
    assert source.passes == 2


def test_the_oldest_value_is_dropped_first():
    computed = []
    cache = Cache(entries=2)
    for key in "aabbcba":
        assert cache.get(key, lambda key=key: computed.append(key) or key) == key
    assert computed == ["a", "b", "c", "a"]
