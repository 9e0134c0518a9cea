# SPDX-License-Identifier: Apache-2.0
"""End stops that a joint is commanded beyond."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record

from robot_dyn_id.actuators.identification import KnownDrives, identify
from robot_dyn_id.actuators.judgment import judge
from robot_dyn_id.actuators.stops import find_stops

KNOWN = KnownDrives(TRUTH.kp, TRUTH.kd, np.full(3, np.inf))


@pytest.mark.slow
def test_a_joint_that_is_stopped_is_named_with_the_position_and_no_other_joint():
    """The wrist, which hardly acts on the others, is stopped at 30 % of the way that it would go."""
    motion = record(duration=6.0, rate=50.0, noise=1e-3)
    end = 0.3 * motion.q[:, 2].max()
    stopped = replace(motion, q=np.minimum(motion.q, [np.inf, np.inf, end]))
    estimate = identify(MODEL, [stopped], KNOWN)
    (stop,) = find_stops(MODEL, estimate.actuators, [stopped])
    assert stop.joint == "wrist"
    assert stop.position == pytest.approx(end)
    (finding,) = (one for one in judge(estimate, KNOWN, None, [stop]) if one.code == "actuator_end_stop")
    assert finding.joints == ("wrist",)
    assert f"{end:.4g}" in finding.message


def test_free_motion_has_no_stops():
    motions = [record(seed=seed, duration=5.0, rate=50.0, noise=1e-3) for seed in range(2)]
    worse = replace(TRUTH, coulomb=1.2 * TRUTH.coulomb, delay=TRUTH.delay + 0.01)
    for actuators in (TRUTH, worse):
        assert find_stops(MODEL, actuators, motions) == ()
