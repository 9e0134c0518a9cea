# SPDX-License-Identifier: Apache-2.0
"""Centers of motions: the middle of the limits where it is free, else a configuration with free space around it."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.designs import ARM7, PLANAR, regressor_of_arm

from robot_dyn_id.errors import MotionError, UsageError
from robot_dyn_id.excitation.center import NEAR_SHARE, Load, choose_center
from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.collision.obstacles import Scene
from robot_dyn_id.excitation.design.planning import make_design_task
from robot_dyn_id.excitation.design.torques import TorqueModel
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.files.design import design_settings
from robot_dyn_id.model.robot import RobotModel

LIMITS7 = MotionLimits.from_model(ARM7, [5.0])
LIMITS = MotionLimits.from_model(PLANAR, [5.0], margin=0.05)


def task(model=PLANAR, **demands):
    return make_design_task(design_settings(**demands), model, regressor_of_arm(model))


def test_a_free_middle_is_the_center():
    limits = MotionLimits.from_model(ARM7, [5.0])
    center = choose_center(limits, Clearance(ARM7, Scene(ground=False)))
    np.testing.assert_array_equal(center.position, limits.center_and_reach()[0])
    assert center.free > 0.0 and not center.obstruction


def test_a_middle_that_touches_the_ground_is_replaced_by_a_configuration_with_free_space_around_it():
    clearance = Clearance(PLANAR, Scene())
    middle, reach = LIMITS.center_and_reach()
    center = choose_center(LIMITS, clearance)
    assert "ground" in center.obstruction and center.free > 0.0
    LIMITS.check_positions(center.position[:, None])
    room = NEAR_SHARE * np.minimum(reach, np.pi / 2)
    around = center.position[:, None] + room[:, None] * np.random.default_rng(5).uniform(-1.0, 1.0, (3, 200))
    assert (clearance.smallest(around, 0.0)[0] > 0.0).mean() > 0.95
    assert (clearance.smallest(middle[:, None], 0.0)[0] <= 0.0).all()
    np.testing.assert_array_equal(choose_center(LIMITS, clearance).position, center.position)


def test_the_weight_counts_as_much_as_collisions():
    """Outstretched, a joint would carry more than it may; the center is a configuration in which it does not."""
    sideways = replace(PLANAR, gravity=np.array([0.0, 9.81, 0.0]))
    clearance, torques = Clearance(sideways, Scene(ground=False)), TorqueModel.from_model(sideways, 0.1)
    middle, _ = LIMITS.center_and_reach()
    allowed = 0.6 * np.abs(torques.at_rest(middle[:, None])).max()
    load = Load(torques.at_rest, np.full(3, allowed), sideways.effort_units)
    center = choose_center(LIMITS, clearance, load)
    assert "the weight needs up to" in center.obstruction
    assert np.abs(torques.at_rest(center.position[:, None])).max() < allowed


def test_a_design_with_a_free_period_has_the_center_of_one_without():
    np.testing.assert_array_equal(task(free_period=True).center, task().center)


def test_a_design_states_the_configuration_that_it_chose_as_a_line_of_its_file():
    one = task()
    (line,) = (note for note in one.notes if note.startswith("posture: "))
    chosen = one.problem.parametrization.center
    assert f"joint2: {chosen[1]:.2f}" in line and line.rstrip().endswith("}")
    given = dict(zip(PLANAR.joint_names, chosen.tolist(), strict=True))
    assert not [note for note in task(posture=given).notes if note.startswith("posture: ")]


def test_no_free_configuration_is_refused_at_once_with_the_line_to_copy():
    with pytest.raises(MotionError, match=r"raise the efforts(.|\n)*\nposture: \{joint1: .*\}"):
        task(ARM7, effort_scale=1e-4)


def test_an_effort_limit_below_the_weight_names_the_joint_and_its_torque():
    limits = replace(ARM7.limits, effort=np.where(np.arange(7) == 1, 0.5, ARM7.limits.effort))
    with pytest.raises(MotionError) as refused:
        task(replace(ARM7, limits=limits), ground=False)
    stated = r"the weight needs up to ([\d.]+) N m of joint2, above the usable 0.35, in \d+ of 300"
    found = re.search(stated, str(refused.value))
    torques = TorqueModel.from_model(ARM7, 0.1)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (7, 2000)) * LIMITS7.center_and_reach()[1][:, None]
    largest = np.abs(torques.at_rest(q)[1]).max()
    assert found and 0.7 * largest < float(found[1]) < 1.1 * largest
    assert "touch" not in str(refused.value) and "ground" not in str(refused.value)


@pytest.mark.parametrize(
    ("limit", "reached"), [({"velocity_limit": 0.001}, "0.005"), ({"acceleration": 1e-4}, "0.0025")]
)
def test_a_joint_that_cannot_move_visibly_is_refused_at_once(limit, reached):
    velocity = np.where(np.arange(7) == 3, limit.get("velocity_limit", 1.5), ARM7.limits.velocity)
    slow = replace(ARM7, limits=replace(ARM7.limits, velocity=velocity))
    acceleration = {"all": 5.0, "joint4": limit.get("acceleration", 5.0)}
    with pytest.raises(MotionError, match=rf"too little in 10 s .*: at most joint4 {reached} of 0.02 rad; give larger"):
        task(slow, clearance=0.0, acceleration=acceleration)
    others = tuple(name for name in ARM7.joint_names if name != "joint4")
    assert task(slow, clearance=0.0, acceleration=acceleration, moving=others).problem.must_move.tolist() == [
        0,
        1,
        2,
        4,
        5,
        6,
    ]
    assert not len(task(slow, clearance=0.0, acceleration=acceleration, identified=("fv1",)).problem.must_move)


def test_a_given_configuration_that_collides_is_refused_and_a_free_center_is_not():
    with pytest.raises(MotionError, match=r"posture: link\d and ground overlap by"):
        task(posture=dict.fromkeys(PLANAR.joint_names, 0.0))
    assert task(free_center=True).clearance is not None


def test_a_given_configuration_that_is_closer_than_the_clearance_is_refused():
    clearance = Clearance(PLANAR, Scene())
    free = choose_center(LIMITS, clearance).position
    shares = np.linspace(0.0, 1.0, 1001)
    distances = clearance.smallest(free[:, None] * shares)[0]  # from one that collides to a free one
    close = shares[np.argmax(distances > 0.03)]
    posture = dict(zip(PLANAR.joint_names, (close * free).tolist(), strict=True))
    with pytest.raises(
        MotionError, match=r"posture: link\d and ground are 0\.03\d* m apart .* 0\.05 m is the clearance"
    ):
        task(posture=posture, clearance=0.05)
    assert task(posture=posture, clearance=0.02).clearance is not None


@pytest.mark.parametrize(
    ("demands", "words"),
    [
        ({"period": 0.01}, "1 samples at the rate of 100 Hz"),
        ({"period": 1e-300}, "samples at the rate of 100 Hz"),
        ({"period": 0.05, "rate": 5000.0}, "not faster than"),
        ({"period": 1e9}, "not faster than"),
        ({"harmonics": 100, "period": 5.0}, "fewer harmonics"),
        ({"friction": 1.5}, "friction must be within 0 and 1"),
    ],
)
def test_absurd_demands_are_refused_at_once(demands, words):
    with pytest.raises(UsageError, match=words):
        task(ARM7, clearance=0.0, **demands)


def test_efforts_include_friction_by_the_urdf_or_a_share_of_the_limits():
    q = np.linspace(-1.0, 1.0, 9) * np.ones((7, 1))
    fast, zero = np.full((7, 9), 1.5), np.zeros((7, 9))
    rigid, assumed = TorqueModel.from_model(ARM7, 0.0), TorqueModel.from_model(ARM7, 0.1)
    for sign in (1.0, -1.0):
        difference = assumed.torque((q, sign * fast, zero, zero)) - rigid.torque((q, sign * fast, zero, zero))
        np.testing.assert_allclose(difference, sign * 0.1 * ARM7.limits.effort[:, None] * np.ones((1, 9)), rtol=1e-6)
    np.testing.assert_allclose(assumed.at_rest(q), rigid.at_rest(q))
    assert "10% of the effort limit" in assumed.friction and rigid.friction == "no friction"
    text = PLANAR.urdf.replace('type="continuous">', 'type="continuous"><dynamics damping="2" friction="3"/>', 1)
    stated = TorqueModel.from_model(RobotModel.from_urdf(text), 0.1)
    moving = np.full((3, 1), 1.5), np.zeros((3, 1))
    difference = stated.torque((moving[1], moving[0], moving[1], moving[1])) - TorqueModel.from_model(
        PLANAR, 0.0
    ).torque((moving[1], moving[0], moving[1], moving[1]))
    assert difference[0, 0] == pytest.approx(2.0 * 1.5 + 3.0) and "joint1 by the URDF" in stated.friction


def test_a_robot_without_effort_limits_has_no_assumed_friction():
    bare = replace(ARM7, limits=replace(ARM7.limits, effort=np.full(7, np.inf)))
    assert TorqueModel.from_model(bare, 0.1).friction == "no friction"
    assert task(bare, clearance=0.0).usage.endswith("efforts are not limited")
