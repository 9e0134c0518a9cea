# SPDX-License-Identifier: Apache-2.0
"""Motion through the points of a joint trajectory."""

from dataclasses import replace

import numpy as np
import pytest

from robot_dyn_id.data.trajectory_rows import TrajectoryRows
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.quintic_path import QuinticPath
from robot_dyn_id.simulation.trajectory_tracking import TrajectoryTracker

RNG = np.random.default_rng(3)
TIMES = np.array([0.0, 0.7, 1.0, 2.5])
ROWS = TrajectoryRows(
    ("b", "a"),
    tuple(round(1e9 * t) for t in TIMES),
    *(tuple(map(tuple, scale * RNG.normal(size=(4, 2)))) for scale in (1.0, 0.5, 0.3)),
    ((), (), (), ()),
)


def test_the_motion_passes_its_points_with_their_velocities_and_accelerations_in_the_order_of_the_robot():
    path = QuinticPath.from_rows(ROWS, ("a", "b"))
    q, dq, ddq, _ = path.evaluate(TIMES)
    for got, given in zip((q, dq, ddq), (ROWS.positions, ROWS.velocities, ROWS.accelerations), strict=True):
        np.testing.assert_allclose(got, np.array(given)[:, ::-1].T, atol=1e-12)
    assert path.duration == 2.5 and path.fastest == pytest.approx(0.3)


def test_derivatives_are_those_of_the_positions():
    path = QuinticPath.from_rows(ROWS, ("a", "b"))
    t, step = np.linspace(0.01, 2.49, 97), 1e-5
    before, after = path.evaluate(t - step), path.evaluate(t + step)
    inside = np.abs(t[:, None] - TIMES).min(axis=1) > step
    for order in range(3):
        slope = (after[order] - before[order]) / (2.0 * step)
        np.testing.assert_allclose(slope[:, inside], path.evaluate(t)[order + 1][:, inside], atol=1e-6)


def test_a_controller_interpolates_the_same_motion():
    path = QuinticPath.from_rows(ROWS, ("a", "b"))
    tracker = TrajectoryTracker(path.points.q[0])
    tracker.follow(path.points, 0.0, 0.0)
    for t in (0.9, 1.7, 2.4):  # after the start, which is blended in
        np.testing.assert_allclose(tracker.setpoint(t).q, path.evaluate(np.array([t]))[0][:, 0], atol=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joint_names": ("b", "c")}, "moves the joints b, c"),
        ({"times": (0, 2 * 10**9, 10**9, 3 * 10**9)}, "is not later"),
        ({"times": tuple(10**9 * k for k in (1, 2, 3, 4))}, "the first at time 0"),
        ({"velocities": ((), (), (), ())}, "must have velocities"),
        ({"accelerations": ((0.0, 0.0), (0.0, 0.0), (), (0.0, 0.0))}, "must have accelerations"),
        ({"positions": ((0.0, np.nan), *ROWS.positions[1:])}, "positions of joint a is not finite"),
    ],
    ids=["joints", "times", "start", "velocities", "accelerations", "finite"],
)
def test_a_trajectory_that_is_not_smooth_or_of_another_robot_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        QuinticPath.from_rows(replace(ROWS, **change), ("a", "b"))
