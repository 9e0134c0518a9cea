# SPDX-License-Identifier: Apache-2.0
"""Goals and tolerances of trajectories: ends, codes and texts of joint_trajectory_controller; feed-forward efforts."""

import numpy as np
import pytest
from support.robots import panda_arm

from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.simulation.controllers import EffortGains
from robot_dyn_id.simulation.plant import make_nominal_dynamics
from robot_dyn_id.simulation.simulated_robot import Actuation, SimulatedRobot
from robot_dyn_id.simulation.trajectory_controller import (
    GOAL_TOLERANCE_VIOLATED,
    INVALID_GOAL,
    PATH_TOLERANCE_VIOLATED,
    SUCCESSFUL,
    ToleranceRequest,
    Tolerances,
    TrajectoryController,
)

NAMES, PERIOD = ("a", "b"), 0.01
PERFECT = np.zeros(2)


def controller(path=0.0, goal=0.0, goal_time=0.0, effort=False):
    values = (np.full(2, path), np.full(2, goal), goal_time, 0.01)
    return TrajectoryController(NAMES, np.zeros(2), PERIOD, Tolerances.from_positions(*values), effort)


def ramp(distance=0.5, duration=1.0, **channels):
    t = np.array([0.0, duration])
    return TrajectoryPoints(t, np.array([[0.0, 0.0], [distance, -distance]]), np.zeros((2, 2)), **channels)


def run(made, until, wrong=PERFECT, slip=PERFECT):
    """Time and end of the trajectory of a robot that is off its reference by `wrong`, and in speed by `slip`."""
    for k in range(round(until / PERIOD)):
        reference = made.tracker.along(k * PERIOD)
        end = made.update(k * PERIOD, reference.q + wrong, reference.dq + slip)
        if end is not None:
            return k * PERIOD, end
    return None


def test_a_goal_succeeds_in_the_cycle_whose_command_is_the_last_point():
    made = controller(goal=0.01)
    assert made.begin(ramp(), 0.0, 0.0) is None
    t, end = run(made, 3.0)
    assert (end.code, end.text, end.detail) == (SUCCESSFUL, "Goal successfully reached!", "")
    assert t == pytest.approx(1.0 - PERIOD)
    assert not made.active and run(made, 3.0, np.array([9.0, 9.0])) is None, "what holds is not judged"


def test_a_path_tolerance_that_is_violated_aborts_and_holds_the_measured_position():
    made = controller(path=0.1)
    made.begin(ramp(), 0.0, 0.0)
    assert run(made, 0.5, np.array([0.0, 0.09])) is None
    q = np.array([0.2, 0.4])
    end = made.update(0.5, q, PERFECT)
    assert (end.code, end.text) == (PATH_TOLERANCE_VIOLATED, "Aborted due to path tolerance violation")
    assert end.detail == "joint b: position error -0.65, tolerance 0.1"
    assert np.array_equal(made.tracker.setpoint(0.6), [q, PERFECT, PERFECT])
    assert not made.active


def test_the_path_tolerance_is_checked_in_the_first_cycle_of_a_trajectory_of_one_point():
    made = controller(path=0.1)
    made.begin(TrajectoryPoints(np.zeros(1), np.zeros((1, 2))), 0.0, 0.0)
    assert made.update(0.0, np.full(2, 0.2), PERFECT).code == PATH_TOLERANCE_VIOLATED


@pytest.mark.parametrize("limit", [0.3, 0.0])
def test_a_goal_that_is_not_reached_ends_after_the_goal_time_if_there_is_one(limit):
    made = controller(goal=0.01, goal_time=limit)
    made.begin(ramp(), 0.0, 0.0)
    found = run(made, 9.0, np.array([0.02, 0.0]))
    if not limit:
        assert found is None and made.active
        return
    t, end = found
    assert t == pytest.approx(1.31, abs=0.011)
    assert end.code == GOAL_TOLERANCE_VIOLATED
    assert end.text == f"Aborted due to goal_time_tolerance exceeding by {t - 1.0:f} seconds"


def test_a_goal_that_is_reached_late_succeeds():
    made = controller(goal=0.01, goal_time=1.0)
    made.begin(ramp(), 0.0, 0.0)
    assert run(made, 1.5, np.array([0.02, 0.0])) is None
    assert made.update(1.5, np.array([0.495, -0.5]), PERFECT).code == SUCCESSFUL


@pytest.mark.parametrize(("effort", "ends"), [(False, True), (True, False)])
def test_the_speed_at_the_end_counts_only_where_efforts_are_commanded(effort, ends):
    made = controller(effort=effort)
    made.begin(ramp(), 0.0, 0.0)
    assert (run(made, 3.0, slip=np.full(2, 0.02)) is not None) == ends


def test_a_goal_replaces_another_and_a_topic_does_not():
    made = controller(goal=0.01)
    made.begin(ramp(), 0.0, 0.0)
    end = made.begin(ramp(0.3, 2.0), 0.0, 0.0)
    assert (end.code, end.text) == (INVALID_GOAL, "Current goal preempted by new incoming action.")
    made.follow(ramp(0.2, 0.5), 0.0, 0.0)
    assert made.active
    assert run(made, 3.0)[0] == pytest.approx(0.5 - PERIOD), "the goal is judged by what is followed"


def test_a_canceled_goal_holds_and_one_that_is_stopped_has_an_end():
    made = controller(path=0.1)
    made.begin(ramp(), 0.0, 0.0)
    made.cancel(np.array([0.1, 0.0]))
    assert not made.active and made.update(0.2, np.full(2, 9.0), PERFECT) is None
    assert np.array_equal(made.tracker.setpoint(0.5).q, [0.1, 0.0])
    assert made.stop(0.5) is None
    made.begin(ramp(), 0.6, 0.6)
    assert made.stop(0.8).code == INVALID_GOAL
    assert made.tracker.setpoint(2.0).q[0] < 0.3


def test_a_trajectory_without_a_goal_is_given_up_for_the_same_reasons():
    made = controller(path=0.1, goal=0.01, goal_time=0.1)
    made.follow(ramp(), 0.0, 0.0)
    assert run(made, 1.0, np.full(2, 0.2))[1].code == PATH_TOLERANCE_VIOLATED
    made = controller(goal=0.01, goal_time=0.1)
    made.follow(ramp(), 0.0, 0.0)
    assert run(made, 3.0, np.full(2, 0.05))[1].code == GOAL_TOLERANCE_VIOLATED
    made = controller(path=0.1, goal=0.01, goal_time=0.1)
    made.follow(ramp(), 0.0, 0.0)
    assert run(made, 3.0) is None, "without a goal there is no success"


def test_tolerances_of_a_goal_replace_the_defaults_until_the_next_goal():
    made = controller(path=0.1, goal=0.01, goal_time=2.0)
    request = ToleranceRequest({"b": (0.5, 0.0, 3.0)}, {"a": (-1.0, 0.2, 0.0)}, -1.0)
    given = made.requested(request)
    assert np.array_equal(given.path, [[0.1, 0.5], [0.0, 0.0], [0.0, 3.0]])
    assert np.array_equal(given.goal, [[0.0, 0.01], [0.2, 0.01], [0.0, 0.0]])
    assert given.goal_time == 0.0
    made.begin(ramp(), 0.0, 0.0, given)
    assert run(made, 0.5, np.array([0.0, 0.4])) is None
    made.follow(ramp(), 0.0, 0.0)
    assert run(made, 0.5, np.array([0.0, 0.4])) is None, "also for a trajectory of the topic"
    made.begin(ramp(), 0.0, 0.0)
    assert run(made, 0.5, np.array([0.0, 0.4]))[1].code == PATH_TOLERANCE_VIOLATED


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ToleranceRequest({"c": (0.1, 0.0, 0.0)}, {}, 0.0), "joint c in path_tolerance is not one of a, b"),
        (ToleranceRequest({}, {"a": (0.1, -2.0, 0.0)}, 0.0), "goal_tolerance of joint a: velocity is -2"),
        (ToleranceRequest({}, {}, -0.5), "goal_time_tolerance is -0.5"),
    ],
)
def test_tolerances_that_mean_nothing_are_refused(request_, words):
    with pytest.raises(InputError, match=words):
        controller().requested(request_)


def test_a_trajectory_that_does_not_end_at_rest_or_has_efforts_for_positions_is_refused():
    moving = TrajectoryPoints(np.array([0.0, 1.0]), np.zeros((2, 2)), np.array([[0.0, 0.0], [0.0, 0.1]]))
    with pytest.raises(InputError, match=r"joint b has the velocity 0\.1 at the last point"):
        controller().begin(moving, 0.0, 0.0)
    pushed = ramp(effort=np.zeros((2, 2)))
    with pytest.raises(InputError, match="it has efforts"):
        controller().follow(pushed, 0.0, 0.0)
    made = controller(effort=True)
    made.follow(pushed, 0.0, 0.0)
    with pytest.raises(InputError, match="in the past"):
        made.begin(ramp(), 0.0, 5.0)
    assert not made.active


def test_the_state_is_reference_minus_measurement_and_time_since_the_start():
    made = controller(effort=True)
    made.follow(ramp(), 2.0, 1.0)
    state = made.state(2.5, np.array([0.2, 0.0]), np.array([0.1, 0.0]))
    assert state.since == pytest.approx(0.5)
    assert np.allclose(state.reference.q, [0.25, -0.25])
    assert np.allclose(state.error, [[0.05, -0.25], [0.65, -0.75], [0.0, 0.0]])


@pytest.mark.slow
@pytest.mark.parametrize("compensates", [(), ("gravity", "friction")])
def test_feed_forward_efforts_remove_almost_all_of_the_tracking_error(compensates):
    """An arm with weak gains of each joint: the model's torque, without what the driver adds, is the feed-forward."""
    model = panda_arm()
    dynamics = make_nominal_dynamics(model, np.full(7, 2.0), np.full(7, 1.0), 0.02)
    motion = draw_random_fourier(model, 1, period=2.0)
    t = np.linspace(0.0, motion.duration, 201)
    q, dq, ddq = (x.T for x in motion.evaluate(t)[:3])
    gains = EffortGains(*(value * model_scale() for value in (300.0, 20.0, 0.0)))
    torque = dynamics.inverse_dynamics(q, dq, ddq)
    parts = {
        "gravity": dynamics.gravity(q),
        "friction": dynamics.friction(q, dq),
    }
    torque = torque - sum((parts[part] for part in compensates), np.zeros_like(torque))

    def worst(effort):
        robot = SimulatedRobot(dynamics, q[0], 1e-3, Actuation(robot_compensates=compensates, gains=gains))
        robot.controller.follow(TrajectoryPoints(t, q, dq, ddq, effort), 0.0, 0.0)
        errors = []
        for _ in range(2000):
            reference = robot.tracker.along(robot.time).q
            errors.append(np.abs(robot.tick()[0] - reference).max())
        return max(errors)

    assert worst(torque) < 0.02 * worst(None)


def model_scale():
    """Gains relative to the first joint's: those of the wrist are smaller, like its inertia."""
    return np.array([1.0, 1.0, 0.7, 0.7, 0.2, 0.2, 0.1])
