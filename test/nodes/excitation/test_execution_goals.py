# SPDX-License-Identifier: Apache-2.0
"""The action ~/execute_excitation: rehearsal, run and return with a result, whatever happens on the way."""

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from robot_dyn_id.action import ExecuteExcitation
from robot_dyn_id.msg import ExcitationStatus as Status
from std_srvs.srv import Trigger
from support.excitation_cell import START, TIMEOUT_S, Cell
from support.goal_client import GoalClient, doomed_client
from support.lifecycle import ACTIVATE, ACTIVE_SHUTDOWN, CLEANUP, CONFIGURE, DEACTIVATE, change

Goal, Result = ExecuteExcitation.Goal, ExecuteExcitation.Result
ABORTED, CANCELED, SUCCEEDED = GoalStatus.STATUS_ABORTED, GoalStatus.STATUS_CANCELED, GoalStatus.STATUS_SUCCEEDED
SHORT = {"period": 0.4, "periods": 1, "amplitude_share": 0.1, "rate": 200.0}
"""A motion whose rehearsal takes some seconds."""


def cell_with_client(world, **parameters):
    cell = Cell(world, **parameters).until(Status.READY)
    return cell, GoalClient(world, ExecuteExcitation, "excitation_publisher/execute_excitation")


def test_a_run_reports_its_progress_and_its_result(world):
    cell, client = cell_with_client(world)
    goal = client.send(digest=cell.statuses[-1].digest)
    status, result = goal.end()
    assert (status, result.code, result.message) == (SUCCEEDED, Result.SUCCEEDED, "")
    assert result.digest == cell.statuses[-1].digest
    assert 0.0 < result.worst_margin < 1.0 and result.worst_margin_cause
    assert next(f.phase for f in goal.feedback if f.phase != goal.feedback[0].phase) == "excitation"
    fractions = [f.fraction for f in goal.feedback]
    assert fractions == sorted(fractions) and fractions[-1] > 0.8
    assert cell.until(Status.DONE).statuses[-1].complete


def test_full_speed_is_refused_until_the_slow_run_of_the_same_node_has_succeeded(world):
    cell, client = cell_with_client(world, rehearsal="true", **SHORT)
    assert cell.statuses[-1].rehearsal == Status.NOT_REHEARSED
    for scale in (1.0, 0.5):
        assert client.is_rejected(speed_scale=scale)
        assert "not rehearsed" in cell.node.refusal and "~/rehearse" in cell.node.refusal
    assert not cell.call("start").success
    assert cell.follower.received == []
    goal = client.send(task=Goal.REHEARSE_AND_RUN)
    assert goal.end()[0] == SUCCEEDED
    phases = list(dict.fromkeys(f.phase for f in goal.feedback))
    assert phases[:2] == ["approaching", "rehearsal"] and phases[-1] == "excitation"
    assert cell.statuses[-1].rehearsal == Status.REHEARSED
    rehearsed = [s for s in cell.statuses if s.rehearsing]
    assert rehearsed and not any(s.complete or s.state == Status.DONE for s in rehearsed)
    assert cell.until(Status.DONE).call("start").success


def test_the_service_rehearses_and_a_start_in_the_parameters_rehearses_first(world):
    cell = Cell(world, rehearsal="true", start="true", **SHORT)
    cell.until(Status.DONE)
    slow = [s.rehearsing for s in cell.statuses if s.state in (Status.APPROACHING, Status.RUNNING)]
    assert slow[0] and not slow[-1] and slow == sorted(slow, reverse=True)
    answer = cell.call("rehearse")
    assert answer.success and answer.message.startswith("rehearses one period at 10% of the speed")
    assert cell.call("stop").success


def test_without_a_rehearsal_the_status_and_the_diagnosis_say_so(world):
    cell, _ = cell_with_client(world)
    assert cell.statuses[-1].rehearsal == Status.NOT_REQUIRED
    assert cell.node.diagnosis().values["rehearsal"].startswith("OFF")


@pytest.mark.parametrize("phase", ["excitation", "returning", "paused"])
def test_a_goal_is_canceled_in_every_phase_by_braking(world, phase):
    cell, client = cell_with_client(world, return_to_start="true" if phase == "returning" else "false")
    goal = client.send()
    if phase == "returning":
        world.until(lambda: cell.reason.startswith("returning"))
    else:
        wanted = "excitation" if phase == "paused" else phase
        world.until(lambda: any(f.phase == wanted for f in goal.feedback))
    if phase == "paused":
        assert world.call(*pause(True)).success
        cell.until(Status.PAUSED)
    answer = goal.cancel()
    status, result = goal.end()
    assert (status, result.code) == (CANCELED, Result.CANCELED) and "canceled" in result.message
    assert answer.done() and len(answer.result().goals_canceling) == 1
    world.within(1.0, cell.follower.at_rest)
    assert client.send(task=Goal.RETURN).end()[0] == SUCCEEDED
    world.until(cell.follower.at_rest)
    np.testing.assert_allclose(cell.follower.q, START, atol=1e-6)


def pause(data):
    from std_srvs.srv import SetBool

    return SetBool, "excitation_publisher/pause", SetBool.Request(data=data)


def send_until_it_runs(world, client):
    """The first goal of those that are sent one after the other that is not rejected, once it runs."""
    goals = [client.send()]

    def runs():
        if goals[-1].rejected:
            goals.append(client.send())
        return any(one.phase == "excitation" for one in goals[-1].feedback)

    world.until(runs, what="a goal that runs")
    return goals[-1]


def test_a_goal_ends_as_aborted_after_a_fault_a_stop_and_the_end_of_the_node(world):
    cell, client = cell_with_client(world, periods=4)
    goal = client.send()
    world.until(lambda: any(f.phase == "excitation" for f in goal.feedback))
    begin = cell.follower.time
    cell.follower.speak = False
    status, result = goal.end()
    assert (status, result.code) == (ABORTED, Result.FAULT) and "no joint states" in result.message
    assert cell.follower.received[-1][0] - begin < TIMEOUT_S + 0.2
    cell.follower.speak = True
    cell.until(Status.FAULT)
    goal = send_until_it_runs(world, client)  # rejected until joint states have come again, and show rest
    assert cell.call("stop").success
    status, result = goal.end()
    assert (status, result.code, result.message) == (ABORTED, Result.STOPPED, "stopped as requested")
    goal = send_until_it_runs(world, client)
    world.remove(cell.node)
    status, result = goal.end()
    assert (status, result.code) == (ABORTED, Result.STOPPED)
    world.within(1.0, cell.follower.at_rest)


def test_other_requests_during_a_goal_are_refused_and_wrong_goals_move_nothing(world):
    cell, client = cell_with_client(world)
    for wrong, words in (
        ({"digest": "0" * 64}, "digest"),
        ({"task": 9}, "task 9"),
        ({"speed_scale": -1.0}, "speed_scale"),
        ({"task": Goal.RETURN, "speed_scale": 0.5}, "speed_scale"),
        ({"task": Goal.RETURN}, "nothing has been started"),
    ):
        assert client.is_rejected(**wrong) and words in cell.node.refusal
    assert cell.follower.received == []
    first = client.send(speed_scale=0.8)
    world.until(lambda: any(f.phase == "excitation" for f in first.feedback))
    assert client.is_rejected() and "another goal is being executed" in cell.node.refusal
    for name in ("start", "rehearse", "return_to_start"):
        answer = cell.call(name)
        assert not answer.success and "goal" in answer.message
    assert first.end()[0] == SUCCEEDED
    assert cell.statuses[-1].duration == pytest.approx(2.0 / 0.8)


def test_a_client_that_is_killed_leaves_a_motion_that_is_supervised_and_stopped(world):
    cell, client = cell_with_client(world, periods=20)
    with doomed_client("robot_dyn_id.action:ExecuteExcitation", "excitation_publisher/execute_excitation") as process:
        cell.until(Status.RUNNING)
        process.kill()
    world.wait(0.5)
    assert cell.state == Status.RUNNING
    assert cell.call("stop").success
    cell.until(Status.READY)
    goal = client.send()
    cell.until(Status.RUNNING)
    goal.cancel()
    assert goal.end()[0] == CANCELED


def test_the_return_is_slow_supervised_and_refused_without_a_start(world):
    cell, _ = cell_with_client(world, latency=0.5)  # the return takes little longer
    refused = cell.call("return_to_start")
    assert not refused.success and "nothing has been started" in refused.message
    cell.running()
    assert cell.call("stop").success
    cell.until(Status.READY)
    world.until(cell.follower.at_rest)
    answer = cell.call("return_to_start")
    assert answer.success and answer.message.startswith("returning to the initial configuration")
    cell.until(Status.RETURNING)
    cell.follower.speak = False
    cell.until(Status.FAULT)
    cell.follower.speak = True
    world.until(lambda: cell.call("return_to_start").success)
    first = len(cell.follower.history)
    cell.until(Status.READY)
    speeds = np.abs([dq for _, _, dq in cell.follower.history[first:]]).max(axis=0)
    assert np.all(speeds < 0.11 * np.array([2.5] * 7))
    world.until(cell.follower.at_rest)
    np.testing.assert_allclose(cell.follower.q, START, atol=1e-6)


# --- lifecycle ---------------------------------------------------------------------------------------------------


def test_nothing_moves_before_the_node_is_configured_and_active(world):
    cell = Cell(world, autostart="false")
    world.until(lambda: cell.statuses)
    assert cell.statuses[-1].lifecycle == "unconfigured" and "configure" in cell.reason
    assert "configure" in cell.call("start").message
    assert change(world, CONFIGURE)
    world.until(lambda: cell.statuses[-1].lifecycle == "inactive" and cell.reason.startswith("inactive"))
    assert world.probe.count_publishers("joint_trajectory_controller/joint_trajectory") == 0
    assert "activate" in cell.call("start").message
    world.wait(1.5)
    assert cell.follower.received == []
    assert change(world, ACTIVATE)
    assert cell.until(Status.READY).statuses[-1].lifecycle == "active"
    world.wait(0.2)
    assert cell.follower.received == []
    cell.running()


@pytest.mark.parametrize("last", ["deactivate", "cleanup", "shutdown"])
def test_a_transition_during_a_motion_brakes_under_supervision(world, last):
    cell, client = cell_with_client(world)
    goal = client.send()
    world.until(lambda: any(f.phase == "excitation" for f in goal.feedback))
    if last == "shutdown":
        assert change(world, ACTIVE_SHUTDOWN)
    else:
        assert change(world, DEACTIVATE)
    if last == "cleanup":
        assert change(world, CLEANUP)
    status, result = goal.end()
    assert (status, result.code) == (ABORTED, Result.STOPPED)
    assert "activate" in result.message  # "deactivated", or "inactive: activate the node" by the next tick
    world.within(1.0, cell.follower.at_rest)
    assert Status.FAULT not in [s.state for s in cell.statuses]
    topic = "joint_trajectory_controller/joint_trajectory"
    world.until(lambda: world.probe.count_publishers(topic) == 0)
    final = {"deactivate": "inactive", "cleanup": "unconfigured", "shutdown": "finalized"}[last]
    world.until(lambda: cell.statuses[-1].lifecycle == final)
    assert not cell.call("start").success
    if last == "shutdown":
        return
    if last == "cleanup":
        world.until(lambda: change(world, CONFIGURE))
    assert change(world, ACTIVATE)
    cell.until(Status.READY)
    cell.running().until(Status.DONE)


def test_a_transition_that_fails_leaves_the_state(world, tmp_path):
    cell = Cell(world, autostart="false", trajectory=tmp_path / "none.yaml")
    assert not change(world, CONFIGURE)
    world.until(lambda: cell.statuses and cell.statuses[-1].lifecycle == "unconfigured")


def test_a_transition_that_the_state_does_not_have_is_refused_and_the_node_goes_on(world):
    cell = Cell(world).until(Status.READY)
    for wrong in (ACTIVATE, CONFIGURE, CLEANUP, 0, 255):
        assert not change(world, wrong)
    assert cell.node.lifecycle == "active"
    assert change(world, DEACTIVATE) and change(world, ACTIVATE)
    cell.running()


@pytest.mark.parametrize("last", ["shutdown", "cleanup"])
def test_the_client_of_a_paused_goal_has_its_result_when_the_robot_is_dropped(world, last):
    cell, client = cell_with_client(world)
    goal = client.send()
    world.until(lambda: any(f.phase == "excitation" for f in goal.feedback))
    assert world.call(*pause(True)).success
    cell.until(Status.PAUSED)
    world.until(cell.follower.at_rest)
    world.wait(0.2)
    if last == "shutdown":
        assert change(world, ACTIVE_SHUTDOWN)
    else:
        cell.node.trigger_deactivate()  # no time passes until the next transition
        cell.node.trigger_cleanup()
    status, result = goal.end()
    assert (status, result.code) == (ABORTED, Result.STOPPED) and "deactivated" in result.message


def test_an_exception_in_a_transition_leads_to_the_unconfigured_state_and_ends_the_node(world):
    world.faults_expected = True
    cell = Cell(world, autostart="false")
    assert change(world, CONFIGURE)

    def broken():
        raise ZeroDivisionError("a defect")

    cell.node.activate = broken
    assert not change(world, ACTIVATE)
    assert cell.node.lifecycle == "unconfigured"
    assert cell.node.end == 4


def test_a_rehearsal_outlives_a_cleanup(world):
    cell = Cell(world, rehearsal="true", **SHORT).until(Status.READY)
    assert cell.call("rehearse").success
    world.until(lambda: cell.statuses[-1].rehearsal == Status.REHEARSED)
    assert change(world, DEACTIVATE) and change(world, CLEANUP)
    world.until(lambda: change(world, CONFIGURE))
    assert change(world, ACTIVATE)
    cell.until(Status.READY)
    assert cell.statuses[-1].rehearsal == Status.REHEARSED
    assert world.call(Trigger, "excitation_publisher/start").success
    cell.until(Status.RUNNING)
