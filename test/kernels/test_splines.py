# SPDX-License-Identifier: Apache-2.0
"""Cubic splines, checked against those of SciPy."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from robot_dyn_id.kernels import splines


@pytest.mark.parametrize("count", [2, 3, 4, 5, 300])
@pytest.mark.parametrize("compiled", [True, False])
def test_spline_is_that_of_scipy(count, compiled, monkeypatch):
    monkeypatch.setattr(splines, "COMPILED", compiled and splines.COMPILED)
    rng = np.random.default_rng(count)
    stamps = np.sort(rng.uniform(100.0, 101.0, size=count))
    values = rng.normal(size=(count, 3))
    step = (stamps[-1] - stamps[0]) / count
    times = np.concatenate([stamps, rng.uniform(stamps[0] - step, stamps[-1] + step, size=200)])
    expected = CubicSpline(stamps, values)(times)
    np.testing.assert_allclose(
        splines.interpolate(times, stamps, values), expected, rtol=0.0, atol=1e-9 * np.abs(expected).max()
    )


def test_one_sample_is_a_constant_and_no_times_give_nothing():
    values = np.array([[1.0, 2.0]])
    assert splines.interpolate(np.array([3.0, 4.0]), np.array([5.0]), values).tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert splines.interpolate(np.empty(0), np.arange(5.0), np.ones((5, 2))).shape == (0, 2)
