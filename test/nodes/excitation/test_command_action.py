# SPDX-License-Identifier: Apache-2.0
"""The excitation publisher and a controller behind the action FollowJointTrajectory, over real DDS."""

import importlib.util
import sys

import numpy as np
import pytest
from robot_dyn_id.msg import ExcitationStatus as Status
from std_srvs.srv import SetBool
from support.broken_packages import without_library
from support.excitation_cell import ACCELERATION, NAMES, START, Cell
from support.joint_state_faults import FAULTS
from support.lifecycle import ACTIVATE, CLEANUP, CONFIGURE, DEACTIVATE, change

from robot_dyn_id.errors import UsageError

ABSENT = importlib.util.find_spec("control_msgs") is None
ACTION = "/joint_trajectory_controller/follow_joint_trajectory"


@pytest.fixture
def cell(world, request):
    """A node in mode action that is ready, and the robot behind the action."""
    if ABSENT:
        pytest.skip("control_msgs is not installed: there is no action FollowJointTrajectory")
    from support.action_follower import ActionFollower

    cell = Cell(world, follower=False, mode="action", segments=getattr(request, "param", "false"))
    no_controller = f"no controller: no server of the action {ACTION}"
    world.until(lambda: cell.call("start").message == no_controller)  # it looks for other nodes of its name at first
    cell.follower = world.add(lambda **o: ActionFollower(NAMES, START, **o))
    return cell.until(Status.READY)


def braked(cell, before):
    """The first trajectory after the `before` ones, and that it is one of braking."""
    (_, message), ends, speeds = (
        items[before] for items in (cell.follower.received, cell.follower.ends, cell.follower.speeds)
    )
    assert not len(message.points[0].accelerations)
    assert ends <= speeds.max() / ACCELERATION + 0.03


def stays(cell, seconds=0.3):
    """The robot stands and no goal comes."""
    count = len(cell.follower.received)
    cell.world.wait(seconds)
    assert cell.follower.at_rest() and len(cell.follower.received) == count


def test_without_control_msgs_it_is_refused_when_the_node_starts(world, monkeypatch):
    monkeypatch.setitem(sys.modules, "control_msgs.action", None)
    with pytest.raises(UsageError, match=r"mode action: action type .* is not known here; install control_msgs"):
        Cell(world, follower=False, mode="action")


def test_with_control_msgs_whose_library_cannot_be_loaded_it_is_refused_as_well(world, tmp_path):
    pytest.importorskip("control_msgs")
    with (
        without_library("control_msgs", tmp_path),
        pytest.raises(UsageError, match=r"mode action: the library of control_msgs with .* cannot be loaded"),
    ):
        Cell(world, follower=False, mode="action")


def test_an_excitation_is_one_goal_that_succeeds(cell):
    cell.running().until(Status.DONE)
    cell.world.until(lambda: cell.follower.goal is None)
    stays(cell)
    assert (cell.state, cell.reason, len(cell.follower.received)) == (Status.DONE, "", 1)
    assert np.all(np.ptp([q for _, q, _ in cell.follower.history], axis=0) > 0.05)
    assert cell.world.probe.count_publishers("joint_trajectory_controller/joint_trajectory") == 0


@pytest.mark.parametrize("cell", ["true"], indirect=True)
def test_an_excitation_in_pieces_is_many_goals_of_which_each_replaces_the_one_before(cell):
    cell.running().until(Status.DONE)
    cell.world.until(lambda: cell.follower.goal is None)
    stays(cell)
    assert (cell.state, cell.reason, cell.follower.canceled) == (Status.DONE, "", 0)
    assert len(cell.follower.received) >= 3


@pytest.mark.parametrize("cell", ["true"], indirect=True)
def test_a_controller_that_gives_up_a_piece_gets_no_other(cell):
    cell.running()
    cell.follower.accepts = lambda trajectory: False
    cell.until(Status.FAULT)
    assert cell.reason.startswith(f"{ACTION} rejected the motion")
    cell.world.until(cell.follower.at_rest)
    stays(cell)


def test_a_stop_is_a_goal_that_brakes_and_a_pause_goes_on(cell):
    cell.running()
    assert cell.call("pause", SetBool.Request(data=True)).success
    cell.until(Status.PAUSED)
    braked(cell, 1)
    cell.resume()
    cell.until(Status.RUNNING)
    assert cell.call("stop").success
    cell.until(Status.READY)
    braked(cell, 3)
    stays(cell)
    assert (cell.state, cell.reason, cell.follower.canceled) == (Status.READY, "stopped as requested", 0)


def test_a_fault_of_the_guard_brakes_within_200_ms(cell):
    cell.running()
    began, (inject, words) = cell.follower.time, FAULTS["tracking error x 3"]
    inject(cell)
    cell.until(Status.FAULT)
    assert words in cell.reason
    cell.world.within(1.0, cell.follower.at_rest)
    assert cell.follower.received[1][0] - began <= 0.2
    braked(cell, 1)


def test_a_rejected_goal_is_a_fault_and_another_start_another_try(cell):
    cell.follower.accepts = lambda trajectory: False
    assert cell.call("start").success
    cell.until(Status.FAULT)
    assert cell.reason == f"{ACTION} rejected the motion; see the log of the controller"
    stays(cell)
    cell.follower.accepts = lambda trajectory: True
    assert cell.start().success
    cell.until(Status.RUNNING)


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        (
            -4,
            "Aborted due to path tolerance\nviolation",
            "PATH_TOLERANCE_VIOLATED: Aborted due to path tolerance violation",
        ),
        (-1, "Current goal cancelled due to new incoming action.", "INVALID_GOAL: Current goal cancelled due to new"),
    ],
)
def test_what_the_controller_gives_up_is_a_fault_with_its_words_and_no_new_motion(cell, code, text, words):
    cell.running()
    cell.follower.give_up(code, text)
    cell.within(1.0, Status.FAULT)
    assert cell.reason.startswith(f"{ACTION} aborted the motion: {words}")
    stays(cell)
    assert len(cell.follower.received) == 1
    assert cell.start().success
    cell.until(Status.APPROACHING)


def test_a_goal_that_fails_at_its_very_end_is_a_fault_too(cell):
    cell.follower.finish = lambda *given: None  # the motion is over, the result is not there yet
    cell.running().until(Status.DONE)
    del cell.follower.finish
    cell.follower.give_up(-5, "joint3 is 0.1 rad away")
    cell.within(1.0, Status.FAULT)
    assert cell.reason == f"{ACTION} aborted the motion: GOAL_TOLERANCE_VIOLATED: joint3 is 0.1 rad away"


def test_where_braking_is_rejected_the_goal_under_way_is_canceled(cell):
    cell.running()
    cell.follower.accepts = lambda trajectory: bool(trajectory.points[0].accelerations)
    assert cell.call("stop").success
    cell.within(1.0, Status.FAULT)
    assert "rejected the motion" in cell.reason
    cell.world.within(1.0, cell.follower.at_rest)
    cell.world.within(1.0, lambda: cell.follower.canceled == 1)


def test_the_loss_of_the_action_is_reported(cell):
    cell.running()
    cell.follower.leave()
    cell.until(Status.FAULT)
    assert cell.reason.startswith(f"no controller: no server of the action {ACTION}")


@pytest.mark.parametrize(
    ("cell", "answers"),
    [("true", True), ("false", False)],
    indirect=["cell"],
    ids=["controller answers", "controller never ends a goal"],
)
def test_the_action_is_given_up_after_a_deactivation_and_taken_up_again(cell, answers):
    """The client is destroyed while the result of the goal that brakes is due, or never comes."""
    world, finish = cell.world, cell.follower.finish
    for transitions in ((DEACTIVATE,), (DEACTIVATE, CLEANUP)):
        cell.running()
        if not answers:
            cell.follower.finish = lambda *given: None
        for transition in transitions:
            assert change(world, transition)
        world.until(lambda: not cell.node._commands.opened, what="end of the commands")
        assert cell.follower.at_rest() and Status.FAULT not in [s.state for s in cell.statuses]
        stays(cell)
        cell.follower.finish = finish
        cell.follower.finish()  # the late result
        if CLEANUP in transitions:
            assert change(world, CONFIGURE)
        assert change(world, ACTIVATE)
        cell.until(Status.READY)
    cell.running().until(Status.DONE)


def test_a_node_that_has_ended_leaves_nothing_of_its_action_in_the_graph(cell):
    world, names = cell.world, cell.world.probe.get_node_names
    world.until(lambda: "excitation_publisher" in names())
    world.remove(cell.node)  # whose object is still referenced
    world.until(lambda: "excitation_publisher" not in names(), what="end of the node in the graph")
