# SPDX-License-Identifier: Apache-2.0
"""Closed-loop output error: positions of a simulated robot fitted to the measured ones."""

from dataclasses import replace

import numpy as np
import pytest
from support.encoder_loop import IDEAL, LOOP, loop_problem, recorded, robot
from support.simulated import COMPUTED_TORQUE

from robot_dyn_id.errors import ConvergenceError, InputError, UsageError
from robot_dyn_id.estimators import ClosedLoopOutputError


@pytest.mark.slow
def test_exact_angles_give_the_parameters():
    given = loop_problem(recorded(1, resolution=0.0, noise=0.0, duration=5.0), 10.0)
    estimate = ClosedLoopOutputError(IDEAL).fit(given)
    np.testing.assert_allclose(estimate.values, robot().base_values, rtol=1e-3, atol=1e-3)
    assert estimate.residual_rms.max() < 0.05  # of torques, though no torque was used


@pytest.mark.slow
def test_intervals_hold_the_truth_with_encoders_in_the_loop():
    estimate = ClosedLoopOutputError(LOOP).fit(loop_problem(recorded(1, duration=8.0), 10.0))
    errors = (estimate.values - robot().base_values) / estimate.standard_deviations
    assert np.mean(np.abs(errors) < 1.96) > 0.8
    assert np.abs(errors).max() < 5.0


def test_a_law_under_which_all_robots_move_alike_is_refused():
    with pytest.raises(UsageError, match="all robots move alike"):
        ClosedLoopOutputError(COMPUTED_TORQUE).fit(loop_problem(recorded(1, duration=4.0), 10.0))


def test_too_few_rows_and_invalid_options_are_refused():
    with pytest.raises(InputError, match=r"only \d+ rows for 12 parameters"):
        ClosedLoopOutputError(IDEAL).fit(loop_problem(recorded(1, duration=0.7), 10.0))
    with pytest.raises(UsageError, match="closed_loop_output_error: specify the controller"):
        ClosedLoopOutputError().fit(loop_problem(recorded(1, duration=4.0), 10.0))
    with pytest.raises(ConvergenceError, match="of the simulated robot does not follow"):
        ClosedLoopOutputError(replace(IDEAL, proportional=(("all", 0.5),), derivative=())).fit(
            loop_problem(recorded(1, duration=4.0), 10.0)
        )
