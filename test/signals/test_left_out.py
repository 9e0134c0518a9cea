# SPDX-License-Identifier: Apache-2.0
"""Rows that are left out on purpose."""

import numpy as np
from support.simulated import sines

from robot_dyn_id.data.excerpt import Excerpt
from robot_dyn_id.data.exclusion import ExcludedSpan, ExcludingRecording
from robot_dyn_id.signals.left_out import count_left_out
from robot_dyn_id.signals.survey import survey

JOINTS = ("j0", "j1")
MOTION = sines(np.arange(0.0, 20.0, 0.01))
BRAKES = ExcludedSpan("j1", 2.0, 5.0, "effort_zero_at_rest")


def test_rest_counts_for_all_joints_and_efforts_for_their_own():
    rested = Excerpt(ExcludingRecording(MOTION, [BRAKES], []), -np.inf, 18.0, ((6.0, 8.0), (17.0, 19.0)))
    counts = count_left_out([rested, MOTION], MOTION.joint_names)
    assert counts == {"effort_zero_at_rest": 301, "rest_left_out": 2 * (201 + 100)}


def test_joints_that_are_not_identified_do_not_count():
    assert count_left_out([ExcludingRecording(MOTION, [BRAKES], [])], ("j0",)) == {}


def test_samples_are_counted_at_their_own_rate():
    one = ExcludedSpan("j1", 2.0, 2.0, "effort_saturated")
    slow = sines(np.arange(0.0, 20.0, 0.1))
    counts = count_left_out([ExcludingRecording(MOTION, [one], []), ExcludingRecording(slow, [BRAKES], [])], JOINTS)
    assert counts == {"effort_saturated": 1, "effort_zero_at_rest": 31}


def test_frozen_encoders_are_left_out_and_neither_damage_nor_gaps():
    frozen = [ExcludedSpan("j0", 5.0, 6.0, "encoder_frozen"), ExcludedSpan("j1", 5.5, 6.5, "encoder_frozen")]
    recording = ExcludingRecording(MOTION, [], frozen)
    assert count_left_out([recording], JOINTS) == {"encoder_frozen": 2 * 151}
    found = survey([recording], JOINTS, {})
    assert found.repairs.total_dropped == found.repairs.gaps == 0 and found.seams == 1
