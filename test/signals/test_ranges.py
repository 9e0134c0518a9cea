# SPDX-License-Identifier: Apache-2.0
"""Ranges of a motion: those of the samples that have a row, in the window that owns them."""

import numpy as np
import pytest

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.signals.ranges import measure_ranges
from robot_dyn_id.signals.windows import FilteredWindow


def window(q, own, valid):
    motion = Motion(np.array(q), 2.0 * np.array(q), -3.0 * np.array(q))
    count = motion.q.shape[1]
    return FilteredWindow(
        segment=0,
        t=np.arange(count) / 100.0,
        motion=motion,
        tau=None,
        number=np.arange(count),
        own=np.array(own, dtype=bool),
        settled=slice(None),
        valid=np.array(valid, dtype=bool),
    )


def test_samples_without_a_row_are_not_in_the_ranges():
    """A sample counts if its window owns it and at least one joint has a row there, then for all joints."""
    one = window([[1.0, 2.0, 9.0, -8.0], [0.5, 0.1, 9.0, 0.2]], [1, 1, 0, 1], [[1, 0, 1, 0], [1, 1, 1, 0]])
    other = window([[0.0, -7.0], [0.3, 7.0]], [1, 1], [[0, 0], [1, 0]])
    ranges = measure_ranges([one, other])
    np.testing.assert_array_equal(ranges.q_min, [0.0, 0.1])
    np.testing.assert_array_equal(ranges.q_max, [2.0, 0.5])
    np.testing.assert_array_equal(ranges.dq_max, [4.0, 1.0])
    np.testing.assert_array_equal(ranges.ddq_max, [6.0, 1.5])


def test_without_any_row_there_are_no_ranges():
    with pytest.raises(InputError, match="no sample is left"):
        measure_ranges([window([[1.0, 2.0]], [1, 1], [[0, 0]])])
