# SPDX-License-Identifier: Apache-2.0
"""Resolution of recorded positions."""

import numpy as np
import pytest

from robot_dyn_id.identification.diagnosis.resolution import position_step

TIMES = np.linspace(0.0, 20.0, 2001)
MOTION = np.sin(TIMES) + 0.3 * np.sin(2.7 * TIMES)


@pytest.mark.parametrize("step", [1e-3, 2 * np.pi / 4096, 0.01])
def test_the_step_of_an_encoder(step):
    assert position_step(step * np.round(MOTION / step)) == pytest.approx(step, rel=1e-6)


def test_smooth_positions_have_no_step():
    assert position_step(MOTION) == 0.0


@pytest.mark.parametrize("wild", [1e285, -5000.0, 30.0])
def test_single_wild_readings_do_not_count(wild):
    step, readings = 0.01, MOTION.copy()
    readings[700:703] = wild * np.array([1.0, 1.5, 0.7])
    assert position_step(readings) == 0.0
    quantized = step * np.round(MOTION / step)
    quantized[700:703] = wild
    assert position_step(quantized) == pytest.approx(step, rel=1e-6)


def test_a_joint_at_rest_shows_no_step():
    assert position_step(np.full(100, 0.3)) == 0.0
    assert position_step(np.empty(0)) == 0.0
