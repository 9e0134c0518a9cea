# SPDX-License-Identifier: Apache-2.0
"""Setpoints along trajectories: interpolation truths, replacement, holding, and refusals."""

import numpy as np
import pytest

from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.data.trajectory_rows import TrajectoryRows
from robot_dyn_id.errors import InputError
from robot_dyn_id.simulation.trajectory_tracking import JUMP, STOPPING, TrajectoryTracker

NAMES = ("a", "b")


def rows(t, q, dq=(), ddq=(), effort=(), names=NAMES, rest=None):
    empty, times = ((),) * len(q), tuple(round(1e9 * time) for time in t)
    channels = (tuple(channel) or empty for channel in (dq, ddq, effort))
    return TrajectoryPoints.from_rows(NAMES, TrajectoryRows(names, times, tuple(q), *channels), rest)


def sine(t):
    t = np.asarray(t, dtype=float)[..., None] * np.array([1.0, 1.7])
    return np.sin(t), np.cos(t) * [1.0, 1.7], -np.sin(t) * np.array([1.0, 1.7]) ** 2


def followed(t, channels, start=0.0):
    values = [list(x) for x in sine(t)[:channels]] + [[]] * (3 - channels)
    tracker = TrajectoryTracker(sine(t[0])[0])
    tracker.follow(rows(list(t), *values), start, start)
    return tracker


@pytest.mark.parametrize(("channels", "order"), [(1, 2), (2, 4), (3, 6)])
def test_interpolation_meets_the_points_with_the_order_of_its_polynomials(channels, order):
    """Linear, cubic, quintic Hermite interpolation: error ~ interval^2, ^4, ^6."""
    errors = []
    for step in (0.2, 0.1):
        t = np.arange(0.0, 2.0 + step / 2, step)
        tracker = followed(t, channels)
        for k in range(len(t) - 1):
            setpoint, truth = tracker.setpoint(t[k]), sine(t[k])
            for got, expected in zip(setpoint[:channels], truth[:channels], strict=True):
                assert np.allclose(got, expected, atol=1e-12)
        between = np.arange(0.0, 1.99, 0.013)
        errors.append(max(np.abs(tracker.setpoint(s).q - sine(s)[0]).max() for s in between))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


def test_after_its_end_a_trajectory_holds():
    tracker = followed(np.linspace(0, 1, 5), 3)
    q, dq, ddq = tracker.setpoint(7.0)
    assert np.allclose(q, sine(1.0)[0])
    assert not dq.any() and not ddq.any()
    assert tracker.resting(7.0) and not tracker.resting(0.5)


def test_a_time_that_is_rounded_to_before_the_start_is_the_start_and_not_the_end():
    """The tick in which a trajectory begins has been computed as k / rate and as k * period."""
    tracker = followed(np.linspace(0, 1, 5), 3, start=0.35)
    for now in (np.nextafter(0.35, 0.0), 0.35):
        assert np.allclose(tracker.setpoint(now).q, sine(0.0)[0], atol=1e-12)


def test_a_newer_trajectory_takes_over_smoothly_from_now_on():
    tracker = followed(np.linspace(0, 2, 21), 3)
    before = tracker.setpoint(0.73)
    target = np.array([0.2, 0.9])
    rest = [[0.0, 0.0]]
    tracker.follow(rows([0.5], [target], rest, rest), 0.73, 0.73)
    for old, new in zip(before, tracker.setpoint(0.73), strict=True):
        assert np.allclose(old, new, atol=1e-12)
    assert np.allclose(tracker.setpoint(1.23).q, target)
    assert tracker.resting(1.23)


@pytest.mark.parametrize("lead", [-0.02, 0.0, 0.005, 0.09])
def test_a_trajectory_that_begins_near_the_setpoint_is_joined_without_a_step(lead):
    """An arm under a weak controller hangs below its setpoint; who moves it begins where it hangs."""
    hangs = np.array([0.06, -0.04])
    tracker = TrajectoryTracker(hangs)
    t = np.arange(0.0, 2.0, 0.01)
    s = t / t[-1]
    q = np.outer(10 * s**3 - 15 * s**4 + 6 * s**5, [0.3, 0.2])
    dq, ddq = (np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0))
    tracker.follow(TrajectoryPoints(t, q, dq, ddq), 1.0 + lead, 1.0)
    setpoints = [tracker.setpoint(1.0 + k) for k in np.arange(0.0, 1.0, 0.001)]
    way, speed, acceleration = (np.array(values) for values in zip(*setpoints, strict=True))
    assert np.allclose(way[0], hangs, atol=1e-3)
    assert np.abs(np.diff(way, axis=0)).max() < 1e-3
    assert np.abs(speed).max() < 0.6
    assert np.abs(acceleration).max() < 3.0
    assert np.allclose(tracker.setpoint(2.5).q, tracker.along(2.5).q, atol=1e-12), "joined after half a second"


def test_points_may_differ_in_what_they_give():
    """A motion that ends in braking has accelerations only before it: quintic, then cubic, as ros2_control does."""
    t = np.linspace(0.0, 1.0, 11)
    q, dq, ddq = (list(x) for x in sine(t))
    ddq[7:], dq[9:] = [[]] * 4, [[]] * 2
    tracker = TrajectoryTracker(sine(0.0)[0])
    tracker.follow(rows(list(t), q, dq, ddq), 0.0, 0.0)
    quintic, cubic, straight = (
        max(np.abs(tracker.setpoint(s).q - sine(s)[0]).max() for s in np.linspace(a, b, 20))
        for a, b in ((0.0, 0.599), (0.601, 0.799), (0.801, 0.999))
    )
    assert quintic < 1e-7 < cubic < 1e-4 < straight < 1e-2
    assert np.allclose(tracker.setpoint(0.65).q, followed(t, 2).setpoint(0.65).q, atol=1e-12)


def test_a_trajectory_that_began_in_the_past_goes_on_where_it_is_now():
    t = np.linspace(0, 2, 41)
    tracker = TrajectoryTracker(sine(0.5)[0])
    tracker.follow(rows(list(t), *(list(x) for x in sine(t))), 10.0, 10.5)
    assert np.allclose(tracker.setpoint(10.5).q, sine(0.5)[0], atol=1e-6)
    assert np.allclose(tracker.setpoint(11.0).dq, sine(1.0)[1], atol=1e-6)


def test_hold_comes_to_rest_without_a_jump():
    tracker = followed(np.linspace(0, 2, 21), 3)
    moving = tracker.setpoint(0.4)
    tracker.hold(0.4)
    assert np.allclose(tracker.setpoint(0.4).dq, moving.dq)
    end = tracker.setpoint(0.4 + STOPPING)
    assert not end.dq.any()
    assert np.allclose(end.q, moving.q + 0.5 * STOPPING * moving.dq)


@pytest.mark.parametrize(
    ("names", "t", "q", "dq", "words"),
    [
        (("a", "x"), [0.0], [[0, 0]], [], "joint x is not one of a, b"),
        (("a",), [0.0], [[0]], [], "joint b is missing"),
        (("a", "b", "a"), [0.0], [[0, 0, 0]], [], "named twice"),
        (NAMES, [0.0], [[0, 0, 0]], [], "point 0 has 3 positions, expected 2"),
        (NAMES, [0.0, 1.0], [[0, 0], [1]], [], "point 1 has 1 positions, expected 2"),
        (NAMES, [0.0], [[]], [], "point 0 has 0 positions"),
        (NAMES, [0.0, 1.0], [[0, 0], [1, 1]], [[0, 0], [0]], "point 1 has 1 velocities"),
        (NAMES, [0.0, 1.0], [[0, 0], [0, np.nan]], [], "point 1: positions of joint b is not finite"),
        (NAMES, [0.0], [[0, 0]], [[np.inf, 0]], "point 0: velocities of joint a is not finite"),
        (NAMES, [1.0, 1.0], [[0, 0], [1, 1]], [], "point 1 is not later"),
        (NAMES, [-1.0], [[0, 0]], [], "before the start"),
    ],
)
def test_a_wrong_trajectory_is_refused_with_a_reason(names, t, q, dq, words):
    with pytest.raises(InputError, match=words):
        rows(t, q, dq, names=names)


def test_limits_jumps_and_the_past_are_refused_and_nothing_changes():
    tracker = followed(np.linspace(0, 2, 21), 3)
    before = tracker.setpoint(1.0)
    far = TrajectoryPoints(np.array([0.0, 1.0]), before.q + np.array([[0.0, 2 * JUMP], [0.0, 0.0]]))
    with pytest.raises(InputError, match="away from where joint number 2 is"):
        tracker.follow(far, 1.0, 1.0)
    with pytest.raises(InputError, match=r"last point is 2 s in the past"):
        tracker.follow(far, -2.0, 1.0)
    with pytest.raises(InputError, match="start it at the present position"):
        tracker.follow(far, 1.05, 1.0)
    with pytest.raises(InputError, match=r"point 1: joint a at .* is beyond its limits -9 to 0"):
        TrajectoryPoints(np.array([0.0, 1.0]), np.array([[-1.0, 0], [0.5, 0]])).check_limits(
            NAMES, np.array([-9.0, -9]), np.array([0.0, 9])
        )
    assert np.array_equal(tracker.setpoint(1.0).q, before.q)


def test_a_motion_in_pieces_is_followed_as_one_and_joined_without_a_jerk():
    """A piece every 0.1 s, which reaches 0.3 s ahead; the setpoint begins 0.02 from the motion and joins it."""
    tracker = TrajectoryTracker(sine(0.0)[0] + 0.02)
    step, setpoints = 1e-3, []
    for k in range(2000):
        now = k * step
        if k % 100 == 0:
            t = now - 0.003 + np.arange(0.0, 0.31, 0.01)  # on its way for 3 ms
            values = [list(x) for x in sine(t)]
            tracker.follow(rows(list(t - t[0]), *values), t[0], now)
        setpoints.append(tracker.setpoint(now))
    q, dq = (np.array([getattr(setpoint, name) for setpoint in setpoints]) for name in ("q", "dq"))
    times = np.arange(2000) * step
    apart = np.abs(q - sine(times)[0]).max(axis=1)
    assert apart[0] == pytest.approx(0.02, abs=1e-6)
    assert np.all(apart[1000:] < 2e-4)
    # the motion starts with its full speed; after that nothing steps: 3 rad/s^2 of its own, and of the joining as much
    assert np.abs(np.diff(dq[1:], axis=0)).max() < 6.0 * step


def test_a_trajectory_without_points_is_refused():
    with pytest.raises(InputError, match="it has no points"):
        rows([], [])


def test_joints_that_are_left_out_hold_where_they_are():
    """As joint_trajectory_controller fills a partial goal: position held, velocity, acceleration and effort zero."""
    tracker = TrajectoryTracker(np.array([0.3, -0.2]))
    partial = rows(
        [1.0, 2.0], [[0.5], [0.1]], [[0.2], [0.0]], [[1.0], [0.0]], [[3.0], []], ("b",), tracker.setpoint(0.0).q
    )
    assert np.array_equal(partial.q, [[0.3, 0.5], [0.3, 0.1]])
    assert np.array_equal(partial.dq, [[0.0, 0.2], [0.0, 0.0]])
    assert np.array_equal(partial.ddq, [[0.0, 1.0], [0.0, 0.0]])
    assert np.array_equal(partial.effort, [[0.0, 3.0], [0.0, 0.0]])
    tracker.follow(partial, 0.0, 0.0)
    assert {tracker.setpoint(t).q[0] for t in np.linspace(0.0, 3.0, 31)} == {0.3}
    assert tracker.setpoint(3.0).q[1] == 0.1
    with pytest.raises(InputError, match="it names no joints"):
        rows([1.0], [[]], names=(), rest=np.zeros(2))
    with pytest.raises(InputError, match="point 0 has 2 positions, expected 1"):
        rows([1.0], [[1.0, 2.0]], names=("b",), rest=np.zeros(2))


def test_efforts_are_interpolated_linearly_and_stay_after_the_end_but_not_after_an_abort():
    tracker = TrajectoryTracker(np.zeros(2))
    assert not tracker.effort(0.0).any()
    efforts = [[1.0, -2.0], [], [4.0, 0.0]]
    tracker.follow(rows([1.0, 2.0, 4.0], np.zeros((3, 2)), effort=efforts), 0.0, 0.0)
    for t, expected in (
        (0.5, [0.5, -1.0]),
        (1.0, [1.0, -2.0]),
        (1.5, [0.5, -1.0]),
        (3.0, [2.0, 0.0]),
        (9.0, [4.0, 0.0]),
    ):
        assert np.allclose(tracker.effort(t), expected)
    tracker.hold(3.0)
    assert np.allclose(tracker.effort(3.2), [2.0, 0.0]), "an arm that stops does not sag"
    tracker.hold_at(np.array([0.1, 0.2]))
    assert not tracker.effort(3.3).any()
    assert np.array_equal(tracker.setpoint(3.3), [[0.1, 0.2], [0.0, 0.0], [0.0, 0.0]])
    tracker.follow(rows([0.0, 1.0], np.full((2, 2), 0.1)), 4.0, 4.0)
    assert not tracker.effort(4.5).any(), "points without effort command none"
