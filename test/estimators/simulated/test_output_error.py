# SPDX-License-Identifier: Apache-2.0
"""Output error: the torques of a simulated robot fitted to the measured ones."""

import numpy as np
import pytest
from support.encoder_loop import IDEAL, LOOP, loop_problem, recorded, relative_bias, robot

from robot_dyn_id.estimators import OutputError, WeightedLeastSquares


@pytest.mark.slow
def test_exact_angles_give_the_parameters():
    given = loop_problem(recorded(1, resolution=0.0, noise=0.0), 10.0)
    values = OutputError(IDEAL).fit(given).values
    np.testing.assert_allclose(values, robot().base_values, rtol=0.01, atol=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("cutoff", [10.0, 50.0])
def test_with_the_encoder_in_its_loop_bias_is_a_quarter_of_that_of_least_squares(cutoff):
    ours, plain = (relative_bias(estimator, cutoff) for estimator in (OutputError(LOOP), WeightedLeastSquares()))
    print(f"{cutoff} Hz: {ours:.2%} of {plain:.2%}")
    assert ours < 0.25 * plain


@pytest.mark.slow
def test_intervals_hold_the_truth():
    errors = []
    for seed in (1, 2):
        estimate = OutputError(LOOP).fit(loop_problem(recorded(seed), 10.0))
        errors.append((estimate.values - robot().base_values) / estimate.standard_deviations)
    held = float((np.abs(errors) < 1.96).mean())
    print(f"held {held:.2f}, worst {np.abs(errors).max():.1f} sigma")
    assert held > 0.8
    assert np.abs(errors).max() < 5.0
