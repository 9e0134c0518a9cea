# SPDX-License-Identifier: Apache-2.0
"""Residuals over the speed: each range holds all samples of its speeds."""

import numpy as np
import pytest

from robot_dyn_id.parameters import ResidualProfile


@pytest.mark.parametrize("slowest", [0.0, 0.3])
def test_equal_speeds_belong_to_one_range(slowest):
    """A joint at one speed has the RMS of all its samples, not that of the last ones."""
    residual = np.linspace(0.0, 1.0, 1200)[None]
    profile = ResidualProfile.from_samples(residual, np.full((1, 1200), slowest), np.ones((1, 1200), dtype=bool))
    everything = np.sqrt(np.mean(residual**2))
    np.testing.assert_allclose(profile.along(0, np.array([0.0, -slowest, 5.0])), everything)
