# SPDX-License-Identifier: Apache-2.0
"""Efforts of commanded points, and the check of a motion before it begins."""

from dataclasses import replace

import numpy as np
import pytest
from support.altered import altered
from support.model_nodes import ARM, RATED, identified

from robot_dyn_id.errors import InputError, MotionError
from robot_dyn_id.excitation.execution.approach import PointToPoint
from robot_dyn_id.excitation.execution.sampling import preview
from robot_dyn_id.identification.prediction.feed_forward import FeedForward
from robot_dyn_id.identification.prediction.motion_efforts import MotionEfforts
from robot_dyn_id.model.robot import RobotModel

NAMES = identified().robot.joint_names


def efforts(joints=NAMES, **changes):
    return MotionEfforts.from_model(
        FeedForward.from_parameters(replace(identified(), **changes)), RobotModel.from_urdf(ARM, joints=joints), 0.01
    )


def reach(duration=2.0):
    return PointToPoint(np.zeros(3), np.array([0.2, 0.3, 0.4]), duration)


def test_efforts_are_those_of_the_model():
    points = preview(reach(), 0.01)
    expected = identified_dynamics().inverse_dynamics(points.q, points.dq, points.ddq)
    assert np.allclose(efforts().efforts(points), expected)


def identified_dynamics():
    return FeedForward.from_parameters(identified()).dynamics


def test_what_the_driver_adds_is_left_out():
    points = preview(reach(), 0.01)
    given = altered(identified(), effort={"robot_compensates": ("unknown",)})
    whole, part = (
        MotionEfforts.from_model(FeedForward.from_parameters(given, (word,)), RobotModel.from_urdf(ARM), 0.01)
        for word in ("none", "gravity")
    )
    assert np.allclose(whole.efforts(points) - part.efforts(points), identified_dynamics().gravity(points.q), atol=0.5)
    assert np.abs(identified_dynamics().gravity(points.q)).max() > 1.0


def test_a_motion_that_may_exceed_a_limit_is_refused_and_braking_is_cut_off():
    made = efforts()
    made.check("the approach", reach())
    with pytest.raises(MotionError, match=r"the approach may exceed the effort limits by this model: joint \w+ needs"):
        made.check("the approach", reach(0.05))
    assert np.abs(made.efforts(preview(reach(0.05), 0.01))).max() == RATED


def test_parameters_of_other_joints_are_refused():
    with pytest.raises(InputError, match="identify these joints"):
        efforts(NAMES[:1])


def test_the_torque_of_the_motors_and_the_efforts_are_cut_off():
    """Where the driver adds gravity, an effort at the limit would bring the motors above it."""
    points = preview(reach(0.05), 0.01)
    given = altered(identified(), effort={"robot_compensates": ("gravity",)})
    made = MotionEfforts.from_model(FeedForward.from_parameters(given), RobotModel.from_urdf(ARM), 0.01)
    efforts = made.efforts(points)
    motors = efforts + made.feed_forward.compensation.torque(points.q, points.dq)
    assert np.abs(identified_dynamics().gravity(points.q)).max() > 1.0
    assert np.abs(motors).max() == pytest.approx(RATED)
    assert np.abs(efforts).max() == pytest.approx(RATED)
    relieved = np.isclose(np.abs(motors), RATED) & (np.abs(efforts) < 0.999 * RATED)
    assert relieved.any(), "the motor is at its limit before the effort is"


def test_the_check_has_the_limits_of_the_robot_that_moves():
    model = RobotModel.from_urdf(ARM)
    narrow = replace(model, limits=replace(model.limits, effort=np.full(len(NAMES), 1.0)))
    made = MotionEfforts.from_model(FeedForward.from_parameters(identified()), narrow, 0.01)
    with pytest.raises(MotionError, match="its limit of 1 N m"):
        made.check("the approach", reach())
    assert np.abs(made.efforts(preview(reach(), 0.01))).max() == 1.0
