# SPDX-License-Identifier: Apache-2.0
"""Rows that are left out on purpose."""

import numpy as np
from support.simulated import sines

from robot_dyn_id.data.excerpt import Excerpt
from robot_dyn_id.data.exclusion import ExcludedSpan, ExcludingRecording
from robot_dyn_id.signals.left_out import count_left_out

MOTION = sines(np.arange(0.0, 20.0, 0.01))
BRAKES = ExcludedSpan("j1", 2.0, 5.0, "effort_zero_at_rest")


def test_rest_counts_for_all_joints_and_efforts_for_their_own():
    rested = Excerpt(ExcludingRecording(MOTION, [BRAKES], []), -np.inf, 18.0, ((6.0, 8.0), (17.0, 19.0)))
    counts = count_left_out([rested, MOTION], MOTION.joint_names, 100.0)
    assert counts == {"effort_zero_at_rest": 300, "rest_left_out": 2 * (200 + 100)}


def test_joints_that_are_not_identified_do_not_count():
    assert count_left_out([ExcludingRecording(MOTION, [BRAKES], [])], ("j0",), 100.0) == {}
