# SPDX-License-Identifier: Apache-2.0
"""Identified models that may move a robot, and the efforts that they may command."""

import numpy as np
import pytest
from support.altered import altered
from support.model_nodes import ARM, RATED, identified, impossible

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.identification.assembly import with_values
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.simulation.controllers import CommandedEfforts, check_static_efforts, rated_efforts, usable_dynamics

JOINTS = ("shoulder", "elbow", "wrist")


@pytest.mark.parametrize("needed", [True, False])
def test_a_sound_model_may_do_everything(needed):
    dynamics = usable_dynamics(identified(), ARM, JOINTS, needed)
    assert dynamics.is_positive_definite(np.zeros((5, 3))).all()


def test_an_indefinite_mass_matrix_may_only_carry_the_weight():
    torques = usable_dynamics(impossible(), ARM, JOINTS, needs_mass_matrix=False)
    assert np.isfinite(torques.gravity(np.zeros(3))).all()
    assert not torques.is_positive_definite(np.zeros(3))
    with pytest.raises(InputError, match=r"mass matrix is not positive definite in 100% of the trained poses"):
        usable_dynamics(impossible(), ARM, JOINTS, needs_mass_matrix=True)


def test_another_robot_a_bad_verdict_and_missing_joints_are_refused():
    other = ARM.replace('name="small"', 'name="other"')
    stranger = altered(identified(), robot={"urdf": other, "urdf_sha256": urdf_hash(other)})
    for parameters, joints, words in (
        (stranger, JOINTS, "those of another URDF"),
        (
            altered(identified(), judgment={"verdict": "bad", "reasons": ("it is",)}),
            JOINTS,
            r"verdict on the parameters is bad \(it is\)",
        ),
        (identified(), JOINTS[:2], "joint wrist of the parameters is not in the joint states"),
    ):
        with pytest.raises(InputError, match=words):
            usable_dynamics(parameters, ARM, joints, needs_mass_matrix=False)


def rated_at(effort):
    """The arm with other ratings."""
    return RobotModel.from_urdf(ARM.replace(f'effort="{RATED}"', f'effort="{effort}"'))


def test_ratings_are_those_of_the_urdf_which_the_user_may_lower_but_not_raise():
    model = rated_at(40)
    assert rated_efforts(model).tolist() == [40.0] * 3
    assert rated_efforts(model, (10.0,)).tolist() == [10.0] * 3
    assert rated_efforts(model, (10.0, 50.0, 40.0)).tolist() == [10.0, 40.0, 40.0]
    assert rated_efforts(rated_at(0), (10.0,)).tolist() == [10.0] * 3
    with pytest.raises(InputError, match=r"joint shoulder has no effort limit in the URDF \(0\): .* effort_limit"):
        rated_efforts(rated_at(0))
    for given, words in (((1.0, 2.0), "effort_limit has 2 values"), ((0.0,), "positive"), ((np.nan,), "positive")):
        with pytest.raises(UsageError, match=words):
            rated_efforts(model, given)


def test_a_model_whose_weight_the_motors_cannot_carry_is_refused():
    good = Dynamics.from_parameters(identified())
    check_static_efforts(good, np.full(3, RATED))
    heavy = Dynamics.from_parameters(with_values(identified(), 100.0 * identified().estimate.values))
    with pytest.raises(InputError, match=r"needs 11.* N m to hold joint elbow .* above the rated 40: check"):
        check_static_efforts(heavy, np.full(3, RATED))
    pose = np.array([0.0, 40.0, 0.0])  # beyond the limits, where a spring would be stretched
    worst = np.abs(good.gravity(pose)).max()
    with pytest.raises(InputError, match="above the rated"):
        check_static_efforts(good, np.full(3, 0.999 * worst), q=pose)


def test_commanded_efforts_are_finite_within_the_rating_and_without_jumps():
    efforts, rng = CommandedEfforts(np.array([10.0, 20.0]), start_time=0.1, blend_time=0.5), np.random.default_rng(1)
    given = [efforts.last]
    for k in range(4000):
        law = np.array([8.0, -15.0]) if k < 1000 else np.array([-30.0, 5.0]) if k < 2000 else np.array([1.0, 1.0])
        if k in (1000, 1100, 2000):
            efforts.change()
        wanted = law.copy()
        if k == 3000:
            wanted[0] = rng.choice([np.nan, np.inf, -np.inf])
        given.append(efforts.command(wanted, 1e-3, 0.0))
        assert efforts.invalid.tolist() == ([0] if k == 3000 else [])
        assert efforts.limited.tolist() == ([0] if 1000 <= k < 2000 else [])
    given = np.array(given)
    assert np.all(np.abs(given) <= [10.0, 20.0])
    steps = np.abs(np.diff(given, axis=0)).max(axis=1)
    assert not given[3001].any(), "what is not finite is zero effort"
    assert np.delete(steps, 3000).max() < 0.25, "the start, the fastest: 15 N m within 0.1 s"
    for k, law in ((1000, [8.0, -15.0]), (2000, [-10.0, 5.0]), (3000, [1.0, 1.0]), (4000, [1.0, 1.0])):
        assert np.allclose(given[k], law, atol=1e-12)


def test_a_ramp_of_no_time_is_a_jump():
    efforts = CommandedEfforts(np.full(1, 10.0), 0.0, 0.0)
    assert [efforts.command(np.ones(1), 0.01, 0.0)[0] for _ in range(3)] == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("wanted", "added", "expected"),
    [
        ([5.0, -5.0], [2.0, -2.0], [5.0, -5.0]),  # both within the rating
        ([5.0, -5.0], [8.0, -8.0], [2.0, -2.0]),  # the motor is at its rating
        ([-15.0, 15.0], [8.0, -8.0], [-10.0, 10.0]),  # the command is
        ([0.0, 0.0], [12.0, -12.0], [-2.0, 2.0]),  # a driver that adds too much is relieved
    ],
)
def test_neither_a_command_nor_the_motor_with_what_the_driver_adds_exceeds_the_rating(wanted, added, expected):
    wanted, added = np.array(wanted), np.array(added)
    efforts = CommandedEfforts(np.full(2, 10.0), start_time=0.0, blend_time=0.0)
    efforts.command(wanted, 0.01, added)
    assert efforts.command(wanted, 0.01, added) == pytest.approx(expected)
    assert len(efforts.limited) == (0 if np.array_equal(wanted, expected) else 2)


def test_blending_stays_within_the_rating_of_the_motor():
    efforts = CommandedEfforts(np.full(1, 10.0), start_time=0.1, blend_time=0.5)
    for _ in range(300):
        efforts.command(np.full(1, 9.0), 1e-3, 0.0)
    efforts.change()
    motor = np.array([efforts.command(np.full(1, 3.0), 1e-3, 7.0)[0] + 7.0 for _ in range(600)])
    assert motor.max() <= 10.0 + 1e-12
    assert motor[-1] == pytest.approx(10.0)


@pytest.mark.parametrize("added", [130.0, -130.0, 250.0, 80.0])
def test_a_driver_that_adds_more_than_the_rating_is_relieved_without_jumps(added):
    """From rest, through a change during the start, to rest again: a step of 30 N m at once before."""
    efforts, given = CommandedEfforts(np.full(1, 100.0), start_time=0.1, blend_time=0.5), [0.0]
    for k in range(1400):
        if k == 30:
            efforts.change()
        fade = min(1.0, (1399 - k) / 400)
        given.append(float(efforts.command(np.zeros(1), 1e-3, np.full(1, added), fade)[0]))
    given = np.array(given)
    excess = max(abs(added) - 100.0, 0.0)
    assert np.abs(np.diff(given)).max() <= 1.6 * excess / 100, "a smooth step over the start, 100 commands"
    assert given[900] == pytest.approx(-np.sign(added) * min(excess, 100.0)) and given[-1] == 0.0


def test_an_addition_that_is_not_finite_is_zero_effort():
    efforts = CommandedEfforts(np.full(2, 10.0), 0.0, 0.0)
    efforts.command(np.ones(2), 0.01, 0.0)
    assert not efforts.command(np.ones(2), 0.01, np.array([0.0, np.nan])).any()
    assert efforts.invalid.tolist() == [1]
