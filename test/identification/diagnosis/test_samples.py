# SPDX-License-Identifier: Apache-2.0
"""Friction columns of the samples that a diagnosis uses."""

import numpy as np

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.identification.diagnosis.samples import BREAKAWAY_DISPLACEMENTS, MotionSamples


def test_presliding_states_restart_with_each_segment():
    """In one direction a Dahl element approaches 1 as 1 - exp(-s / d), from zero in each segment."""
    q = np.array([[0.0, 0.01, 0.03, 5.0, 4.98, 4.9], [1.0, 1.0, 1.2, 0.0, 0.1, 0.4]])
    segment, still = np.array([0, 0, 0, 1, 1, 1]), np.zeros_like(q)
    motion = Motion(q, still, still)
    samples = MotionSamples(np.arange(6.0), segment, motion, motion, motion, 1.0, still, still == 0.0)
    moved = q - q[:, [0, 0, 0, 3, 3, 3]]
    for state, displacement in zip(samples.friction[5:], BREAKAWAY_DISPLACEMENTS, strict=True):
        np.testing.assert_allclose(state, np.sign(moved) * (1.0 - np.exp(-np.abs(moved) / displacement)))
