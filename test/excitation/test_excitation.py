# SPDX-License-Identifier: Apache-2.0
"""Fourier excitation: derivatives, limits, rest at both ends."""

import numpy as np
import pytest
from support.robots import panda_arm
from support.simulated import LIFT

from robot_dyn_id.errors import ModelError, UsageError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import smooth_step, step_time
from robot_dyn_id.model.robot import RobotModel


@pytest.mark.parametrize("model", [panda_arm(), RobotModel.from_urdf(LIFT)], ids=["panda", "lift"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_limits_are_kept_and_reached_and_both_ends_are_at_rest(model, seed):
    motion = draw_random_fourier(model, seed, period=8.0, share=0.8)
    q, dq, ddq, _ = motion.evaluate(np.linspace(0, 8.0, 4001))
    limits = model.limits
    middle, reach = (limits.upper + limits.lower) / 2, (limits.upper - limits.lower) / 2
    use = np.maximum(np.abs(q - middle[:, None]).max(axis=1) / reach, np.abs(dq).max(axis=1) / limits.velocity)
    assert np.all(use <= 0.8 * 1.005)
    assert np.all(use >= 0.8 * 0.995)
    for end in (0, -1):
        assert np.abs(dq[:, end]).max() < 1e-12
        assert np.abs(ddq[:, end]).max() < 1e-11


def test_each_derivative_is_the_difference_of_the_one_before():
    motion = draw_random_fourier(panda_arm(), 5)
    t, h = np.linspace(0.5, 9.5, 40), 1e-4
    before, after, here = motion.evaluate(t - h), motion.evaluate(t + h), motion.evaluate(t)
    for lower in range(3):
        slope = (after[lower] - before[lower]) / (2 * h)
        assert np.allclose(slope, here[lower + 1], rtol=1e-6, atol=1e-6)


def test_it_is_periodic_and_a_seed_is_a_motion():
    one, same, other = (draw_random_fourier(panda_arm(), seed, period=6.0) for seed in (3, 3, 4))
    t = np.linspace(0, 6, 50)
    assert np.allclose(one.evaluate(t)[0], one.evaluate(t + 6.0)[0], atol=1e-12)
    assert np.array_equal(one.coefficients, same.coefficients)
    assert not np.array_equal(one.coefficients, other.coefficients)


@pytest.mark.parametrize("wrong", [{"period": 0.0}, {"harmonics": 2}, {"share": 0.0}, {"share": 1.5}])
def test_demands_that_leave_no_motion_are_refused(wrong):
    with pytest.raises(UsageError):
        draw_random_fourier(panda_arm(), 0, **wrong)


UNLIMITED = """<robot name="turret"><link name="base"/>
  <link name="l1"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="l1"/><axis xyz="0 0 1"/>
    <limit effort="1" velocity="{speed}"/></joint></robot>"""


def test_a_joint_without_position_limits_moves_within_a_half_turn():
    model = RobotModel.from_urdf(UNLIMITED.format(speed=100))
    q = draw_random_fourier(model, 0, share=1.0).evaluate(np.linspace(0, 10, 2001))[0]
    assert np.pi * 0.99 < np.ptp([-np.abs(q).max(), np.abs(q).max()]) <= np.pi * 1.005


def test_a_joint_that_may_not_move_is_named():
    with pytest.raises(ModelError, match="joint turn: "):
        draw_random_fourier(RobotModel.from_urdf(UNLIMITED.format(speed=0)), 0)


def test_the_shortest_step_reaches_one_limit_and_exceeds_none():
    limits = MotionLimits.from_model(panda_arm(), [5.0], 0.5, 0.0, [40.0])
    distance = np.array([1.0, 0.2, 0.01, 2.0, 0.0, 0.5, 1.5])
    for scale in (1.0, 1e-3):  # by the velocity, and by the jerk
        time = step_time(limits, scale * distance)
        rates = smooth_step(np.linspace(1e-9, 1.0 - 1e-9, 20001))[1:]
        use = [
            scale * distance * np.abs(rate).max() / time**order / bound
            for order, (rate, bound) in enumerate(
                zip(rates, (limits.velocity, limits.acceleration, limits.jerk), strict=True), start=1
            )
        ]
        assert np.max(use) == pytest.approx(1.0, rel=1e-6)
