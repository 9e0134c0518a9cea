# SPDX-License-Identifier: Apache-2.0
"""Rows that are left out on purpose."""

import numpy as np
from support.observations import corrected
from support.simulated import sines

from robot_dyn_id.data.corrected import Excerpt, ExcludedSpan, Exclusions
from robot_dyn_id.signals.survey import survey

JOINTS = ("j0", "j1")
MOTION = sines(np.arange(0.0, 20.0, 0.01))
BRAKES = ExcludedSpan("j1", 2.0, 5.0, "effort_zero_at_rest")


def left_out(recordings, joints=JOINTS):
    return survey(recordings, joints, {}).left_out


def test_rest_counts_for_all_joints_and_efforts_for_their_own():
    rested = corrected(MOTION, Exclusions((BRAKES,)), Excerpt(-np.inf, 18.0, ((6.0, 8.0), (17.0, 19.0))))
    counts = left_out([rested, MOTION])
    assert counts == {"effort_zero_at_rest": 301, "rest_left_out": 2 * (201 + 100)}


def test_joints_that_are_not_identified_do_not_count():
    assert left_out([corrected(MOTION, Exclusions((BRAKES,)))], ("j0",)) == {}


def test_samples_are_counted_at_their_own_rate():
    one = ExcludedSpan("j1", 2.0, 2.0, "effort_saturated")
    slow = sines(np.arange(0.0, 20.0, 0.1))
    counts = left_out([corrected(MOTION, Exclusions((one,))), corrected(slow, Exclusions((BRAKES,)))])
    assert counts == {"effort_saturated": 1, "effort_zero_at_rest": 31}


def test_frozen_encoders_are_left_out_and_neither_damage_nor_gaps():
    frozen = (ExcludedSpan("j0", 5.0, 6.0, "encoder_frozen"), ExcludedSpan("j1", 5.5, 6.5, "encoder_frozen"))
    found = survey([corrected(MOTION, Exclusions((), frozen))], JOINTS, {})
    assert found.left_out == {"encoder_frozen": 2 * 151}
    assert found.repairs.total_dropped == found.repairs.gaps == 0 and found.seams == 1
