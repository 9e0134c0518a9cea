# SPDX-License-Identifier: Apache-2.0
"""Held poses as the motion of the excitation publisher: from a file, or planned for the robot."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.errors import InputError, MotionError
from robot_dyn_id.excitation.execution.rehearsal import ExcitationRun
from robot_dyn_id.excitation.trajectory import check_limits
from robot_dyn_id.files.joint_trajectory import write_joint_trajectory
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.excitation.settings import HELD_POSES, ExcitationSettings, make_plan
from robot_dyn_id.workflow.gravity_poses import GravityPoses

ROOT = Path(__file__).parents[3]
MODEL = RobotModel.from_urdf(ARM)
MOTION = GravityPoses(
    np.array([0.0, 2.0, 3.0, 4.0]), np.array([[0.0, 0.5, 0.5, 0.6], [0.2, 0.5, 0.5, 0.4], [0.1, -0.3, -0.3, 0.0]]), 1
)
ROWS = MOTION.rows(MODEL.joint_names)


def plan(path, rows=ROWS, model=MODEL, **settings):
    write_joint_trajectory(path, rows)
    given = {"allow_unchecked_collisions": True, "effort_scale": 0.0, "acceleration": (5.0,), **settings}
    return make_plan(model, ExcitationSettings(trajectory=str(path), **given))


def test_poses_of_a_file_are_the_motion_in_the_order_of_the_robot(tmp_path):
    turned = replace(ROWS, joint_names=ROWS.joint_names[::-1], positions=tuple(row[::-1] for row in ROWS.positions))
    for rows in (ROWS, turned):
        excitation = plan(tmp_path / "poses.yaml", rows).excitation
        assert excitation.duration == 4.0
        q, dq, *_ = excitation.evaluate(np.array([0.0, 2.5, 4.0]))
        np.testing.assert_allclose(q, MOTION.points[:, [0, 1, 3]], atol=1e-12)
        np.testing.assert_allclose(dq, 0.0, atol=1e-12)


def test_poses_run_at_a_tenth_of_their_speed_for_a_rehearsal(tmp_path):
    made = plan(tmp_path / "poses.yaml", speed_scale=0.5)
    run = ExcitationRun.rehearse(made.excitation, 0.5)
    assert run.slow and run.motion.duration == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("change", "settings", "error", "words"),
    [
        ({"joint_names": ("a", "b", "c")}, {}, InputError, "moves the joints a, b, c"),
        ({"velocities": ((1.0, 0.0, 0.0), *ROWS.velocities[1:])}, {}, MotionError, "end without velocity"),
        ({"times": (0, *(10**8 * k for k in (1, 2, 3)))}, {}, MotionError, "velocity|acceleration"),
        ({"positions": ((9.0, 0.2, 0.1), *ROWS.positions[1:])}, {}, MotionError, "shoulder"),
        ({"velocities": ((), (), (), ())}, {}, InputError, "every point must have velocities"),
    ],
    ids=["joints", "start", "speed", "position", "velocities"],
)
def test_poses_that_do_not_fit_the_robot_are_refused(tmp_path, change, settings, error, words):
    with pytest.raises(error, match=words):
        plan(tmp_path / "poses.yaml", replace(ROWS, **change), **settings)


def test_poses_are_planned_for_the_robot_and_keep_its_limits():
    model = RobotModel.from_file(ROOT / "urdf" / "so101.urdf")
    made = make_plan(model, ExcitationSettings(form=HELD_POSES, effort_scale=0.0))
    assert made.excitation.duration < 120.0 and "held poses" in made.label
    check_limits(made.excitation, made.limits, (0.0, 10.0))
