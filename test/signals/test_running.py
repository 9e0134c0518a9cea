# SPDX-License-Identifier: Apache-2.0
"""Running extrema and means, checked against those of SciPy."""

import numpy as np
import pytest
from scipy.ndimage import maximum_filter1d, minimum_filter1d, uniform_filter1d

from robot_dyn_id.signals.running import running_maximum, running_mean


@pytest.mark.parametrize("count", [1, 2, 7, 100, 1001])
@pytest.mark.parametrize("reach", [0, 1, 4, 50])
def test_extrema_are_those_of_scipy(count, reach):
    values = np.random.default_rng(count + reach).normal(size=count)
    expected = maximum_filter1d(values, 2 * reach + 1, mode="nearest")
    np.testing.assert_array_equal(running_maximum(values, reach, reach), expected)
    later = minimum_filter1d(values, reach + 1, origin=-((reach + 1) // 2), mode="nearest")
    np.testing.assert_array_equal(-running_maximum(-values, 0, reach), later)


def test_means_are_those_of_scipy():
    values = np.random.default_rng(0).normal(size=500)
    expected = uniform_filter1d(values, 101)[50:-50]
    np.testing.assert_allclose(running_mean(values, 101), expected, rtol=0.0, atol=1e-14)


def test_nothing_has_no_maximum():
    assert running_maximum(np.empty(0), 2, 2).shape == (0,)
