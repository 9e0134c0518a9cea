# SPDX-License-Identifier: Apache-2.0
"""Motions within limits: every form, the way to it, entering it midway, braking, and the points that are sent."""

import numpy as np
import pytest
from support.follower import interpolate
from support.robots import panda_arm
from support.simulated import LIFT

from robot_dyn_id.errors import MotionError, RobotDynIdError, UsageError
from robot_dyn_id.excitation import FORMS, Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.execution.approach import Entered, PointToPoint, approach, enter
from robot_dyn_id.excitation.execution.braking import Braking
from robot_dyn_id.excitation.execution.command import Command
from robot_dyn_id.excitation.execution.feedback import TimePoint
from robot_dyn_id.excitation.execution.sampling import look_ahead, sample
from robot_dyn_id.excitation.trajectory import check_limits
from robot_dyn_id.model.robot import RobotModel

PANDA = MotionLimits.from_model(panda_arm(), (15, 7.5, 10, 12.5, 15, 20, 20), velocity_scale=0.9, margin=0.05)
SLOW = MotionLimits.from_model(panda_arm(), (0.5,), margin=0.05)
ELEVATOR = MotionLimits.from_model(RobotModel.from_urdf(LIFT), (3.0,))
LIMITS = {"panda": PANDA, "panda, acceleration counts": SLOW, "lift": ELEVATOR}

every_form = pytest.mark.parametrize("form", FORMS)
every_robot = pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)


def grid(trajectory, step):
    return np.linspace(0.0, trajectory.duration, 2 + int(trajectory.duration / step))


def margins(trajectory, limits, step=2e-4):
    """Largest use of the limits of position, velocity and acceleration on a finer grid than the package's own."""
    q, dq, ddq, _ = trajectory.evaluate(grid(trajectory, step))
    center, reach = limits.center_and_reach()
    return [
        np.abs(q - center[:, None]).max(axis=1) / reach,
        np.abs(dq).max(axis=1) / limits.velocity,
        np.abs(ddq).max(axis=1) / limits.acceleration,
    ]


def steps(trajectory, times):
    """Largest step of position, velocity and acceleration at some times."""
    before, after = trajectory.evaluate(times - 1e-13), trajectory.evaluate(times + 1e-13)
    return [np.abs(a - b).max() for a, b in zip(before[:3], after[:3], strict=True)]


def assert_derivatives(trajectory, at):
    h = 1e-4
    before, after, here = trajectory.evaluate(at - h), trajectory.evaluate(at + h), trajectory.evaluate(at)
    for lower in range(3):
        slope = (after[lower] - before[lower]) / (2 * h)
        assert np.allclose(slope, here[lower + 1], rtol=1e-5, atol=1e-5 * max(1.0, np.abs(here[lower + 1]).max()))


@every_robot
@every_form
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_every_form_reaches_a_limit_of_every_joint_and_leaves_none(form, limits, share):
    excitation = make_excitation(form, limits, Demand(period=5.0, periods=2, share=share))
    use = np.max(margins(excitation, limits), axis=0)
    assert np.all(use <= share * (1 + 1e-9))
    assert np.all(use >= share * 0.999)


@every_form
def test_every_form_begins_and_ends_at_rest_and_goes_on_without_steps(form):
    excitation = make_excitation(form, PANDA, Demand(period=3.0, periods=2))
    _, dq, ddq, _ = excitation.evaluate(np.array([0.0, excitation.duration]))
    assert np.abs(dq).max() < 1e-9
    assert np.abs(ddq).max() < 1e-9
    joins = np.arange(3.0, excitation.duration - 1.0, 3.0)
    assert max(steps(excitation, joins)) < 1e-9
    assert_derivatives(excitation, np.linspace(0.1234, excitation.duration - 0.1, 83))  # the jerk may step at joins


@every_form
def test_the_form_is_periodic_inside(form):
    """Two periods more take two periods more, and show the same motion."""
    short, long = (make_excitation(form, PANDA, Demand(period=4.0, periods=n)) for n in (1, 3))
    joints = 7 if form in ("sequential_sine", "logistic") else 1
    assert long.duration - short.duration == pytest.approx(8.0 * joints)
    t = np.linspace(4.1, 7.9, 20)  # full amplitude
    assert np.allclose(long.evaluate(t)[0], long.evaluate(t + 4.0)[0], atol=1e-12)


def test_sequential_sines_move_one_joint_at_a_time_from_the_last_to_the_first():
    posture = tuple(PANDA.center_and_reach()[0] + 0.1)
    motion = make_excitation("sequential_sine", PANDA, Demand(period=2.0, posture=posture))
    for place in range(7):
        t = np.linspace(place * 6.0 + 1e-3, place * 6.0 + 6.0 - 1e-3, 500)
        swing = np.ptp(motion.evaluate(t)[0], axis=1)
        moving = 6 - place
        assert swing[moving] > 0.1
        assert np.all(np.delete(swing, moving) == 0.0)
    full = np.linspace(2.0, 4.0, 200)
    expected = posture[6] + motion.amplitude[6] * np.sin(np.pi * full)
    assert np.allclose(motion.evaluate(full)[0][6], expected, atol=1e-12)


@every_form
def test_a_posture_is_the_center_and_one_outside_the_limits_is_named(form):
    posture = PANDA.center_and_reach()[0].copy()
    posture[3] = PANDA.upper[3] - 0.2
    q = make_excitation(form, PANDA, Demand(posture=tuple(posture), periods=1)).evaluate(np.linspace(0, 10, 2000))[0]
    assert q[3].max() <= PANDA.upper[3]
    posture[3] = PANDA.upper[3] + 0.01
    with pytest.raises(
        MotionError, match=f"joint panda_joint4: the requested configuration is at {posture[3]:.4g} rad"
    ):
        make_excitation(form, PANDA, Demand(posture=tuple(posture)))
    with pytest.raises(UsageError, match="posture has 2 positions, expected one for each of panda_joint1"):
        make_excitation(form, PANDA, Demand(posture=(0.0, 0.0)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"acceleration": (0.0,)}, r"acceleration limits \[0.0\] must be positive"),
        ({"acceleration": (1.0, 2.0)}, "one for all joints or one for each of panda_joint1"),
        ({"acceleration": (1.0,), "velocity_scale": 0.0}, "velocity scale 0 must be within 0 and 1"),
        ({"acceleration": (1.0,), "margin": 1.6}, "joint panda_joint4: .* with a margin of 1.6 rad"),
    ],
)
def test_limits_that_leave_no_motion_are_refused(arguments, words):
    with pytest.raises(RobotDynIdError, match=words):
        MotionLimits.from_model(panda_arm(), **arguments)


def test_a_motion_that_does_not_fit_is_refused_by_joint_and_value():
    motion = make_excitation("fourier", PANDA, Demand())
    with pytest.raises(
        MotionError,
        match=r"joint panda_joint1: the acceleration of the motion reaches \d.* rad/s\^2, more than its limit 0.5",
    ):
        check_limits(motion, SLOW)


# --- the way to the start ----------------------------------------------------------------------------------------


@every_robot
@pytest.mark.parametrize("seed", range(5))
def test_the_approach_is_the_quickest_within_the_limits(limits, seed):
    rng = np.random.default_rng(seed)
    start, goal = (rng.uniform(limits.lower, limits.upper) for _ in range(2))
    motion = approach(start, goal, limits)
    _, velocity, acceleration = margins(motion, limits)
    assert max(velocity.max(), acceleration.max()) == pytest.approx(1.0, abs=1e-4)
    check_limits(motion, limits)
    q, dq, ddq, _ = motion.evaluate(np.array([0.0, motion.duration]))
    assert np.allclose(q.T, [start, goal], atol=1e-12)
    assert max(np.abs(dq).max(), np.abs(ddq).max()) < 1e-9
    assert_derivatives(motion, np.linspace(0.01, motion.duration - 0.01, 50))


def test_the_approach_may_begin_in_the_margin_but_not_outside_the_limits():
    goal = PANDA.center_and_reach()[0]
    inside, outside = goal.copy(), goal.copy()
    inside[1], outside[1] = PANDA.hard_lower[1] + 0.01, PANDA.hard_lower[1] - 0.01
    approach(inside, goal, PANDA)
    with pytest.raises(
        MotionError, match=f"joint panda_joint2: the robot is at {outside[1]:.4g} rad, outside its limit"
    ):
        approach(outside, goal, PANDA)


# --- into the excitation -----------------------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize("share", [0.0, 0.13, 0.5, 0.77, 0.999])
def test_an_excitation_is_entered_anywhere_without_steps_and_within_limits(form, share):
    excitation = make_excitation(form, PANDA, Demand(period=3.0, periods=2, share=0.9))
    since = share * excitation.duration
    start = PANDA.center_and_reach()[0] + 0.2
    motion = enter(excitation, since, start, PANDA)
    check_limits(motion, PANDA)
    lead = motion.lead.duration
    joins = np.array([lead, lead + motion.run_up])
    assert max(steps(motion, joins[joins < motion.duration])) < 1e-9
    q, dq, ddq, _ = motion.evaluate(np.array([0.0, lead, motion.duration]))
    assert np.allclose(q[:, 0], start, atol=1e-12)
    assert np.allclose(q[:, 1], excitation.evaluate(np.array([since]))[0][:, 0], atol=1e-12)
    assert np.allclose(q[:, 2], excitation.evaluate(np.array([excitation.duration]))[0][:, 0], atol=1e-9)
    assert max(np.abs(dq).max(), np.abs(ddq).max()) < 1e-9
    assert motion.own_time(np.array([motion.duration]))[0][0] == pytest.approx(excitation.duration, abs=1e-9)
    middle = (lead + motion.duration) / 2 - 0.0123  # the jerk may step where a period ends
    assert_derivatives(motion, np.linspace(lead + 0.0137, middle, 41))


def test_after_the_run_up_it_is_the_excitation_itself():
    excitation = make_excitation("fourier", PANDA, Demand(periods=2))
    motion = enter(excitation, 4.0, PANDA.center_and_reach()[0], PANDA)
    t = motion.lead.duration + motion.run_up + np.linspace(1e-9, 8.0, 50)
    own, speed, _, _ = motion.own_time(t)
    assert np.all(speed == 1.0)
    for ours, original in zip(motion.evaluate(t), excitation.evaluate(own), strict=True):
        assert np.allclose(ours, original, atol=1e-9)


def test_a_run_up_that_cannot_keep_the_acceleration_is_refused_in_the_end():
    excitation = make_excitation("fourier", PANDA, Demand())
    with pytest.raises(MotionError, match="acceleration of the motion"):
        enter(excitation, 3.0, PANDA.center_and_reach()[0], SLOW)


# --- to rest -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_braking_takes_v_over_a_and_v_squared_over_2a_and_no_longer(seed):
    rng = np.random.default_rng(seed)
    velocity = rng.uniform(-1, 1, 7) * PANDA.velocity
    motion = Braking(np.zeros(7), velocity, PANDA.acceleration)
    assert motion.duration == np.max(np.abs(velocity) / PANDA.acceleration)
    t = grid(motion, 1e-4)
    q, dq, ddq, _ = motion.evaluate(t)
    assert np.all(np.abs(ddq) <= PANDA.acceleration[:, None])
    assert np.all(dq[t[None, :] >= (np.abs(velocity) / PANDA.acceleration)[:, None]] == 0.0)
    assert np.allclose(q[:, -1], velocity * np.abs(velocity) / (2 * PANDA.acceleration), atol=1e-12)
    assert np.allclose(np.gradient(q, t, axis=1)[:, 1:-1], dq[:, 1:-1], atol=2e-3)
    beyond = motion.evaluate(np.array([motion.duration + 1.0]))
    assert np.array_equal(beyond[0][:, 0], q[:, -1])


@every_form
def test_braking_from_anywhere_in_an_excitation_stays_within_position_limits_of_the_robot(form):
    excitation = make_excitation(form, PANDA, Demand(period=4.0, periods=1, share=0.9))
    for t in np.linspace(0.0, excitation.duration, 200):
        q, dq, _, _ = excitation.evaluate(np.array([t]))
        stop = Braking(q[:, 0], dq[:, 0], PANDA.acceleration)
        PANDA.check_positions(stop.evaluate(np.array([stop.duration]))[0], hard=True)


# --- as points ---------------------------------------------------------------------------------------------------


def followed(points, t, before=None):
    """Motion of a trajectory controller along points."""
    knots = [
        (time, points.q[k], points.dq[k], points.ddq[k] if k < points.smooth else None)
        for k, time in enumerate(points.t)
    ]
    knots = [before, *knots] if before is not None else knots
    place = np.clip(np.searchsorted([knot[0] for knot in knots], t, side="right"), 1, len(knots) - 1)
    states = [interpolate(x, knots[k - 1], knots[k]) for x, k in zip(t, place, strict=True)]
    return [np.array(values) for values in zip(*states, strict=True)]


def moment(t):
    return TimePoint(t, t)


@every_form
def test_a_controller_makes_the_motion_of_its_points(form):
    excitation = make_excitation(form, PANDA, Demand(period=4.0, periods=1))
    start = PANDA.center_and_reach()[0] + 0.1
    motion = enter(excitation, 0.0, start, PANDA)
    points = sample(Command(motion, moment(0.0)), 0.01)
    assert np.all(np.diff(points.t) > 1e-6)
    assert np.diff(points.t).max() <= 0.01 + 1e-12
    assert points.t[-1] == motion.duration
    assert not points.dq[-1].any()
    t = np.linspace(0.0, motion.duration - 1e-6, 777)
    q, dq, ddq = followed(points, t, (0.0, start, np.zeros(7), np.zeros(7)))
    truth = motion.evaluate(t)
    # where the jerk steps by J between two points h apart, the quintic errs by up to about J h^3 / 400
    assert np.abs(q - truth[0].T).max() < 1e-6
    assert np.abs(dq - truth[1].T).max() < 1e-4
    assert np.abs(ddq - truth[2].T).max() < 0.05


@pytest.mark.parametrize("step", [1e-4, 0.01, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_a_controller_brakes_by_cubics_between_the_points(step, seed):
    """Exactly, but for joints that would be at rest within the first step."""
    velocity = np.random.default_rng(seed).uniform(-1, 1, 7) * PANDA.velocity
    velocity[2] = 0.0
    velocity[5] = velocity[4] / PANDA.acceleration[4] * PANDA.acceleration[5]  # at rest at the same time
    motion = Braking(np.ones(7), velocity, PANDA.acceleration)
    points = sample(Command(motion, moment(0.0)), step)
    assert points.t[0] >= step and points.t[-1] == motion.duration
    t = np.linspace(0.0, motion.duration - 1e-6, 500)
    q, dq, ddq = followed(points, t, (0.0, np.ones(7), velocity, None))
    later = motion.times >= step
    assert np.abs(q - motion.evaluate(t)[0].T)[:, later].max() < 1e-12
    assert np.abs(dq - motion.evaluate(t)[1].T)[:, later].max() < 1e-10
    assert np.all(np.abs(q - motion.evaluate(t)[0].T) <= PANDA.acceleration * step**2 / 2)
    assert np.all(np.abs(ddq[:, later]) <= PANDA.acceleration[later] * (1 + 1e-6))
    assert np.all(np.abs(ddq) <= PANDA.acceleration * (4 / 3 + 1e-6))


def test_braking_that_arrives_late_asks_for_no_jump():
    """The controller has gone on along the motion for 20 ms; the velocity to catch up with is far below the motion's."""
    velocity = np.array([1.0, 0.0])
    motion = Braking(np.zeros(2), velocity, np.full(2, 5.0))
    points = sample(Command(motion, moment(0.0)), 0.01)
    _, dq, _ = followed(points, np.linspace(0.0, 0.2, 200), (0.0, 0.02 * velocity, velocity, None))
    assert dq.min() > -0.01 and dq.max() < 1.01


@pytest.mark.parametrize("speed", [0.0, 1e-6, 1e-3])
def test_braking_from_a_small_speed_is_one_point_after_a_step(speed):
    points = sample(Command(Braking(np.ones(2), np.array([speed, 0.0]), np.array([2.0, 2.0])), moment(0.0)), 0.01)
    assert np.array_equal(points.t, [0.01]) and not points.dq.any()
    assert np.allclose(points.q, [[1.0 + speed**2 / 4.0, 1.0]], atol=1e-12)


def test_every_message_of_streaming_goes_on_and_then_comes_to_rest():
    excitation = make_excitation("fourier", PANDA, Demand(period=4.0, periods=1))
    motion = enter(excitation, 0.0, excitation.evaluate(np.zeros(1))[0][:, 0], PANDA)
    command = Command(motion, moment(5.0))
    for now in (0.0, 0.3, 0.5, 1.7, 3.0, motion.duration - 0.15, motion.duration - 0.05):
        points = look_ahead(command, 5.0 + now, 0.01, 0.1, PANDA)
        assert points.t[0] == 0.0
        assert np.all(np.diff(points.t) > 1e-6)
        t = np.linspace(0.0, min(0.1, motion.duration - now) - 1e-6, 50)
        assert np.abs(followed(points, t)[0] - motion.evaluate(now + t)[0].T).max() < 1e-7
        assert not points.dq[-1].any()
        q, dq, _, _ = motion.evaluate(np.array([min(now + 0.1, motion.duration)]))
        rest = q[:, 0] + dq[:, 0] * np.abs(dq[:, 0]) / (2 * PANDA.acceleration)
        assert np.allclose(points.q[-1], rest, atol=1e-9)


def test_no_way_takes_a_moment_all_the_same():
    motion = approach(np.ones(2) * 0.1, np.ones(2) * 0.1, ELEVATOR)
    assert isinstance(motion, PointToPoint)
    assert motion.duration == 0.5
    assert np.all(motion.evaluate(np.linspace(0, 0.5, 5))[0] == 0.1)
    assert Entered(motion, make_excitation("fourier", ELEVATOR, Demand(periods=1))).duration == 10.5
