# SPDX-License-Identifier: Apache-2.0
"""Interpolation of sampled signals."""

import numpy as np
import pytest

from robot_dyn_id.data.resampling import interpolate_cubic, interpolate_linear

STAMPS = np.array([0.0, 1.0, 3.0, 4.0, 6.0])
TIMES = np.array([-1.0, 0.0, 2.0, 3.5, 6.0, 7.0])


@pytest.mark.parametrize(("hold_ends", "before", "after"), [(True, [0.0, 1.0], [12.0, -5.0]), (False, np.nan, np.nan)])
def test_linear_interpolation_is_exact_on_lines_and_holds_the_ends_or_is_nan(hold_ends, before, after):
    found = interpolate_linear(TIMES, STAMPS, np.stack([2.0 * STAMPS, 1.0 - STAMPS], axis=1), hold_ends=hold_ends)
    np.testing.assert_array_equal(found[1:-1], np.stack([2.0 * TIMES, 1.0 - TIMES], axis=1)[1:-1])
    np.testing.assert_array_equal(found[0], np.broadcast_to(before, 2))
    np.testing.assert_array_equal(found[-1], np.broadcast_to(after, 2))


def test_linear_interpolation_without_samples_is_nan():
    found = interpolate_linear(TIMES, np.empty(0), np.empty((0, 2)))
    assert found.shape == (6, 2)
    assert np.isnan(found).all()


def test_cubic_interpolation_is_exact_on_cubic_polynomials():
    inside = TIMES[1:-1]
    found = interpolate_cubic(inside, STAMPS, np.stack([STAMPS**3, STAMPS**2 - 2.0 * STAMPS], axis=1))
    np.testing.assert_allclose(found, np.stack([inside**3, inside**2 - 2.0 * inside], axis=1), atol=1e-12)
