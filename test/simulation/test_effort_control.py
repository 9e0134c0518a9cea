# SPDX-License-Identifier: Apache-2.0
"""Efforts without jumps: their conditioning, and those of a model in response to joint states."""

import numpy as np
import pytest
from support.driven_efforts import CLOCK, DrivenEfforts
from support.model_nodes import identified, impossible

from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.controllers import Gains
from robot_dyn_id.simulation.effort_control import CommandedEfforts, slew_rates
from robot_dyn_id.simulation.model_law import COMPUTED_TORQUE, GRAVITY, EffortTiming, ModelLaw

BANDWIDTH, TIMEOUT, START, BLEND = 20.0, 0.05, 0.1, 0.2
STEP = 1e-3


# --- conditioning


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


# --- a model


def make_law(law, gains=None, effort_limit=()):
    timing = EffortTiming(TIMEOUT, START, BLEND)
    return ModelLaw(law, gains or Gains.from_bandwidth(BANDWIDTH), effort_limit, (), timing)


class Arm(DrivenEfforts):
    """The identified arm in slow motion, with joint states at 1 kHz."""

    def __init__(self, law=COMPUTED_TORQUE):
        self.law = make_law(law)
        self.begin, self.frozen = 0.0, None
        self.use(identified())
        super().__init__(self.law.control, STEP)

    def use(self, parameters):
        """Take a parameter set, as the node does."""
        dynamics = self.law.make_dynamics(parameters, parameters.robot.urdf, parameters.robot.joint_names)
        self.law.check(dynamics.regressor.model)
        self.law.use(parameters, dynamics)

    def truth(self):
        time = self.now - self.begin
        return np.array([0.1, 0.4, 0.2]) + 0.1 * np.sin(time), np.full(3, 0.1 * np.cos(time))

    def state(self, offset=0.0, q=None, dq=None, stamp=None, step=STEP):
        """The effort after a joint state that is true but for what is given."""
        self.now += step  # the truth is that of the new time
        true = self.truth()
        self.now -= step
        stamp = CLOCK + self.now + step + offset if stamp is None else stamp
        return self.send(true[0] if q is None else q, true[1] if dq is None else dq, stamp, step)

    def hold(self, count):
        return np.array([self.state() for _ in range(count)])


def two_robots(arm):
    arm.state()
    arm.state(q=arm.truth()[0] + np.array([0.5, -1.2, 0.8]), step=0.3e-3, offset=0.5e-3)


def two_robots_with_other_clocks(arm):
    arm.state()
    arm.state(q=arm.truth()[0] + np.array([0.5, -1.2, 0.8]), step=0.3e-3, offset=5.0)


def jumping(arm):
    arm.state(q=arm.truth()[0] + np.random.default_rng(len(arm.history)).choice([-1.0, 0.0, 1.0], 3))


def jumping_velocities(arm):
    arm.state(dq=arm.truth()[1] + np.random.default_rng(len(arm.history)).choice([-20.0, 0.0, 20.0], 3))


def frozen(arm):
    arm.frozen = arm.frozen or {"stamp": CLOCK + arm.now, "q": arm.truth()[0], "dq": arm.truth()[1]}
    arm.state(**arm.frozen)


def frozen_values(arm):
    arm.frozen = arm.frozen or {"q": arm.truth()[0], "dq": np.full(3, 0.5)}
    arm.state(**arm.frozen)


ATTACKS = (two_robots, two_robots_with_other_clocks, jumping, jumping_velocities, frozen, frozen_values)
STATE_ATTACKS = {
    **{attack.__name__: attack for attack in ATTACKS},
    "10 s old": lambda arm: arm.state(-10.0),
    "delayed": lambda arm: arm.state(-0.2),
}


@pytest.mark.parametrize("name", STATE_ATTACKS)
def test_no_fault_of_joint_states_makes_the_effort_jump_and_each_ends_it(name):
    arm = Arm()
    gravity = np.abs(Dynamics.from_parameters(identified()).gravity(arm.truth()[0])).max()
    assert np.abs(arm.hold(250)).max() > 0.5 * gravity > 0.5, "an arm without weight shows nothing"
    begin = len(arm.history)
    for _ in range(500):
        STATE_ATTACKS[name](arm)
    efforts = np.array(arm.history[begin - 1 :])
    jumps = np.abs(np.diff(efforts, axis=0))[np.any(efforts[1:] != 0.0, axis=1)]  # zero effort comes at once
    slew = slew_rates(arm.law.model, arm.control.efforts.rated, BANDWIDTH)
    assert (jumps <= 1.001 * STEP * slew).all(), f"by up to {jumps.max():.3g} N m"
    assert not efforts[-1].any()
    reason, faulty = arm.control.guard.obstacle(arm.now)
    assert faulty and "no effort" in reason
    arm.frozen = None
    arm.control.guard.restart()
    arm.begin = arm.now
    assert arm.hold(400)[-1].any(), "it goes on where the arm is"


def test_a_single_bad_joint_state_changes_nothing():
    arm = Arm()
    before = arm.hold(250)[-1]
    arm.state(q=arm.truth()[0] + 1.0)
    efforts = np.vstack([before, arm.effort, arm.hold(100)])
    assert np.abs(np.diff(efforts, axis=0)).max() < 0.2 and efforts.any(axis=1).all()


def test_a_release_brakes_the_motion_then_fades_the_effort_and_ends():
    arm = Arm()
    arm.hold(250)
    end = arm.truth()[0] + 0.3
    arm.law.follow(TrajectoryPoints(np.array([0.5]), end[None]), 0.0, arm.control.time)
    arm.hold(200)
    assert not arm.law.tracker.resting(arm.control.time)
    arm.control.release()
    arm.active = False
    efforts = np.vstack([arm.effort, *(arm.hold(1) for _ in range(400))])
    assert arm.control.releasing is False and not efforts[-1].any()
    assert efforts[round(0.5 * START / STEP)].any(), "the motion is brought to rest first"
    slew = slew_rates(arm.law.model, arm.control.efforts.rated, BANDWIDTH)
    assert (np.abs(np.diff(efforts, axis=0)) <= STEP * slew + np.abs(efforts).max() * STEP / START * 1.01).all()
    commands = arm.commands
    arm.hold(50)
    assert arm.commands == commands, "no command after the last"
    arm.control.release()
    assert not arm.control.releasing, "there is nothing to release"


def test_another_model_takes_over_within_the_blend_time_and_one_that_is_refused_does_not():
    arm = Arm(GRAVITY)
    begin = arm.hold(250)
    first, started = begin[-1], begin[np.flatnonzero(begin.any(axis=1))[0] - 1 :]
    assert np.abs(np.diff(started, axis=0)).max() < 0.05 * np.abs(first).max(), "from zero within the start time"
    np.testing.assert_allclose(
        started[round(START / STEP) + 1], arm.law.dynamics.gravity(arm.law.tracker.setpoint(0.0).q), rtol=0.05
    )
    arm.use(replace_values(identified(), 1.2 * identified().estimate.values))
    efforts = arm.hold(round(BLEND / STEP) + 2)
    assert np.abs(np.diff(np.vstack([first, efforts]), axis=0)).max() < 0.05 * np.abs(first).max()
    np.testing.assert_allclose(efforts[-1], arm.law.dynamics.gravity(arm.truth()[0]), rtol=1e-9)
    used = arm.law.dynamics
    with pytest.raises(InputError, match="needs"):
        arm.use(replace_values(identified(), 100.0 * identified().estimate.values))
    arm.law = make_law(COMPUTED_TORQUE)
    with pytest.raises(InputError, match="mass matrix is not positive definite"):
        arm.use(impossible())
    assert arm.law.dynamics is None and used is not None


def test_joints_gains_and_ratings_that_do_not_fit_are_refused():
    arm = Arm()
    part = RobotModel.from_urdf(identified().robot.urdf, ["shoulder", "elbow"])
    with pytest.raises(InputError, match="its joints are shoulder, elbow"):
        arm.law.check(part)
    with pytest.raises(UsageError, match="effort_limit"):
        make_law(GRAVITY, effort_limit=(1.0, 2.0)).check(arm.law.model)
    with pytest.raises(UsageError, match="proportional gains"):
        make_law(GRAVITY, gains=Gains((1.0, 2.0), 1.0)).check(arm.law.model)
    with pytest.raises(InputError, match="needs a model"):
        make_law(GRAVITY).check_follows()


def test_the_inertia_of_the_urdf_holds_an_arm_until_there_is_a_model():
    law, model = make_law(COMPUTED_TORQUE), RobotModel.from_urdf(identified().robot.urdf)
    law.use_urdf(model, 0.3)
    driven = DrivenEfforts(law.control, STEP)
    q, still = np.array([0.1, 0.4, 0.2]), np.zeros(3)
    driven.run(100, q, still)
    assert not driven.effort.any(), "at its setpoint"
    sunk = driven.run(200, q - 0.01, still)[-1]
    np.testing.assert_allclose(
        sunk, law.start.scale * law.start.prior.mass_matrix(q - 0.01) @ np.full(3, 4.0), rtol=1e-6
    )
    dynamics = law.make_dynamics(identified(), model.urdf, model.joint_names)
    law.use(identified(), dynamics)
    assert law.dynamics is dynamics and law.tracker is None, "held where it is"
