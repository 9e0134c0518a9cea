# SPDX-License-Identifier: Apache-2.0
"""A server of goals: one at a time, rejections with a reason in the log, cancellation, and a client that disappears."""

import pytest
from action_msgs.msg import GoalStatus
from rclpy.node import Node
from robot_dyn_id.action import IdentifyRecordings
from support.goal_client import GoalClient, doomed_client

from robot_dyn_id.errors import InputError
from robot_dyn_id.nodes.runtime.goals import GoalServer

Result = IdentifyRecordings.Result


class Worker(Node):
    """Executes goals when the test says so."""

    def __init__(self, **options):
        super().__init__("worker", **options)
        self.begun, self.cancels, self.faults, self.refused = [], 0, [], []
        self.goals = GoalServer(self, IdentifyRecordings, "~/work", self.begin, self.cancel)

    def begin(self, goal):
        if goal.folder == "unknown":
            raise InputError("no such folder")
        if goal.folder == "broken":
            raise ZeroDivisionError("a defect")
        self.begun.append(goal)

    def cancel(self):
        self.cancels += 1

    def guarded(self, callback):
        return callback

    def fault(self, error):
        self.faults.append(error)

    def refuse(self, what):
        self.refused.append(what)

    def destroy_node(self):
        self.goals.destroy()
        super().destroy_node()


@pytest.fixture
def worker(world):
    return world.add(Worker)


@pytest.fixture
def client(world):
    return GoalClient(world, IdentifyRecordings, "worker/work")


def test_a_goal_is_executed_with_feedback_and_a_result(world, worker, client):
    goal = client.send(folder="a")
    world.until(lambda: worker.begun)
    assert worker.goals.active
    world.until(lambda: goal.accepted)  # feedback is published once
    worker.goals.publish(stage="reading", fraction=0.5)
    world.until(lambda: goal.feedback)
    assert (goal.feedback[0].stage, goal.feedback[0].fraction) == ("reading", 0.5)
    worker.goals.finish(Result.SUCCEEDED, verdict="good")
    assert goal.end() == (GoalStatus.STATUS_SUCCEEDED, Result(verdict="good"))
    assert not worker.goals.active


def test_a_second_goal_is_rejected_with_a_reason_and_the_first_goes_on(world, worker, client):
    first = client.send(folder="a")
    world.until(lambda: worker.begun)
    assert client.is_rejected(folder="b")
    assert worker.refused == ["goal of ~/work: another goal is being executed"]
    worker.goals.finish(Result.SUCCEEDED)
    assert first.end()[0] == GoalStatus.STATUS_SUCCEEDED
    assert [goal.folder for goal in worker.begun] == ["a"]


def test_goals_that_cannot_be_executed_are_rejected_and_the_next_one_is_executed(world, worker, client):
    assert client.is_rejected(folder="unknown")
    assert worker.refused == ["goal of ~/work: no such folder"]
    assert client.is_rejected(folder="broken")
    assert isinstance(worker.faults[0], ZeroDivisionError)
    goal = client.send(folder="a")
    world.until(lambda: worker.begun)
    worker.goals.finish(Result.FAILED, "nothing was identified")
    assert goal.end() == (GoalStatus.STATUS_ABORTED, Result(code=Result.FAILED, message="nothing was identified"))


def test_a_goal_is_canceled_when_the_node_has_come_to_its_end(world, worker, client):
    goal = client.send(folder="a")
    world.until(lambda: worker.begun and goal.accepted)
    goal.cancel()
    world.until(lambda: worker.goals.canceled)
    assert worker.cancels == 1 and worker.goals.active
    worker.goals.finish(Result.CANCELED, "canceled")
    assert goal.end()[0] == GoalStatus.STATUS_CANCELED


def test_what_was_not_canceled_by_its_client_is_aborted(world, worker, client):
    goal = client.send(folder="a")
    world.until(lambda: worker.begun)
    worker.goals.finish(Result.CANCELED, "by another")
    assert goal.end()[0] == GoalStatus.STATUS_ABORTED


def test_a_client_that_is_killed_leaves_the_server_usable(world, worker, client):
    with doomed_client("robot_dyn_id.action:IdentifyRecordings", "worker/work", folder="lost") as process:
        world.until(lambda: worker.begun)
        process.kill()
    worker.goals.publish(stage="still at work")
    worker.goals.finish(Result.SUCCEEDED)
    goal = client.send(folder="a")
    world.until(lambda: len(worker.begun) == 2)
    worker.goals.finish(Result.SUCCEEDED)
    assert goal.end()[0] == GoalStatus.STATUS_SUCCEEDED
