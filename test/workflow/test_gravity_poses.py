# SPDX-License-Identifier: Apache-2.0
"""Motion for the calibration of gravity."""

import numpy as np
import pytest
from support.low_cost_arm import LowCostArm
from support.robots import URDFS, robot

from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.collision.obstacles import DEFAULT_CLEARANCE_M, Surroundings
from robot_dyn_id.excitation.design.planning import make_motion_limits
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.loads.gravity import calibrate_gravity
from robot_dyn_id.loads.holds import find_holds
from robot_dyn_id.model.packages import list_folders_above
from robot_dyn_id.workflow.gravity_poses import FASTEST, LONGEST_S, plan_gravity_poses

MODEL = robot("so101")
LIMITS = MotionLimits.from_model(MODEL, [5.0], 0.95, 0.05)


@pytest.fixture(scope="module")
def clearance():
    return Clearance(MODEL, Surroundings().scene(), folders=list_folders_above(str(URDFS["so101"])))


@pytest.fixture(scope="module")
def motion(clearance):
    return plan_gravity_poses(MODEL, LIMITS, clearance)


@pytest.mark.slow
def test_motion_is_slow_short_and_free_of_collisions(motion, clearance):
    assert motion.times[-1] <= LONGEST_S
    assert (np.diff(motion.times) > 0.0).all()
    assert (motion.points >= LIMITS.lower[:, None]).all()
    assert (motion.points <= LIMITS.upper[:, None]).all()
    steps, durations = np.diff(motion.points, axis=1), np.diff(motion.times)
    assert (1.875 * np.abs(steps) / durations).max() <= FASTEST * (1 + 1e-9)
    rows = motion.rows(MODEL.joint_names)
    assert len(rows.times) == 6 * motion.poses + 1
    between = np.concatenate([motion.points[:, :-1] + share * steps for share in (0.0, 0.3, 0.77)], axis=1)
    assert clearance.smallest(between)[0].min() > 0.5 * DEFAULT_CLEARANCE_M


@pytest.mark.slow
def test_every_pose_is_held_from_both_sides(motion):
    points = motion.points[:, 1:].reshape(len(motion.points), motion.poses, 6)
    np.testing.assert_array_equal(points[..., 1], points[..., 4])
    assert (points[..., 0] < points[..., 1]).all()
    assert (points[..., 3] > points[..., 4]).all()


@pytest.mark.slow
def test_arm_that_follows_is_calibrated_within_five_percent(motion):
    arm = LowCostArm(MODEL, seed=11)
    recording = arm.record((motion.times, motion.points))
    holds = find_holds([recording], MODEL.joint_names)
    assert len(holds) == 2 * motion.poses
    q = np.random.default_rng(1).uniform(LIMITS.lower, LIMITS.upper, (200, 6)).T
    error = calibrate_gravity(MODEL, holds).effort(MODEL, q) - arm.effort(q)
    assert np.sqrt((error**2).mean(axis=1) / (arm.effort(q) ** 2).mean(axis=1)).max() < 0.05


@pytest.mark.parametrize("name", ["franka", "space6r", "tiago_no_hand"])
def test_poses_are_found_where_stand_ins_are_larger_than_the_links(name):
    """Stand-ins of neighbors but one overlap, or are closer than the margin, in most configurations."""
    model = robot(name)
    limits, _ = make_motion_limits(DesignSettings(), model)
    folders = list_folders_above(str(URDFS[name])) if name in URDFS else ()
    assert plan_gravity_poses(model, limits, Clearance(model, Surroundings().scene(), folders=folders)).poses >= 15


@pytest.mark.slow
def test_poses_that_cannot_be_reached_are_refused_with_the_pairs_that_collide():
    high = Clearance(MODEL, Surroundings(ground=0.2).scene(), folders=list_folders_above(str(URDFS["so101"])))
    with pytest.raises(
        MotionError, match=r"random poses \d+ are closer than 0.02 m to a collision \(.* and ground in \d+"
    ):
        plan_gravity_poses(MODEL, LIMITS, high)
