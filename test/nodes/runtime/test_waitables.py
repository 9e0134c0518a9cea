# SPDX-License-Identifier: Apache-2.0
"""Actions and middleware events that their node polls: removed while messages for them arrive, they do no harm."""

import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
from rclpy.action import ActionClient, ActionServer, GoalResponse
from rclpy.context import Context
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from robot_dyn_id.action import IdentifyRecordings
from support.processes import HANG_S, child

from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.nodes.runtime.running import PATIENCE, make_executor, spin

pytestmark = pytest.mark.real_time

ROUNDS = 20

PROGRAM = """
import sys, time
from dataclasses import dataclass

import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.node import Node
from rclpy.task import Future
from robot_dyn_id.action import IdentifyRecordings
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.nodes.runtime.running import make_executor, spin

@dataclass(frozen=True)
class Settings:
    pass

class Sender(RobotNode):
    NAME, PURPOSE, SETTINGS, INTERFACES = "sender", "Sends goals", Settings, ()

    def begin(self):
        self.client = ActionClient(self, IdentifyRecordings, "work")

    def destroy_node(self):
        if self.client is not None:
            self.client.destroy()
            self.client = None
        super().destroy_node()

async def execute(goal):
    goals.append(goal)
    await end
    goal.succeed()
    return IdentifyRecordings.Result()

rclpy.init()
executor = make_executor()
worker = Node("worker")
executor.add_node(worker)
server = ActionServer(worker, IdentifyRecordings, "work", execute)
for number in range(int(sys.argv[1])):
    end, goals, done = Future(), [], []
    sender = Sender()
    executor.add_node(sender)
    assert list(sender.waitables) == []  # nothing for an executor
    assert spin(executor, sender.client.server_is_ready, 20.0)
    sent = sender.client.send_goal_async(IdentifyRecordings.Goal())
    assert spin(executor, lambda: sent.done() and goals, 20.0)

    def leave():
        if number % 2:
            sender.client.destroy()
            sender.client = None
        else:
            executor.remove_node(sender)
            sender.destroy_node()
        for _ in range(20):  # the messages arrive before the executor has taken notice
            goals[0].publish_feedback(IdentifyRecordings.Feedback())
        time.sleep(0.03)
        timer.cancel()
        done.append(True)

    timer = worker.create_timer(0.01, leave)
    assert spin(executor, lambda: done, 20.0)
    end.set_result(None)
    spin(executor, lambda: False, 0.1)
    worker.destroy_timer(timer)
    if number % 2:
        executor.remove_node(sender)
        sender.destroy_node()
print("all rounds", flush=True)
"""


def test_what_is_removed_while_messages_arrive_does_not_crash_the_process():
    """With the executor's own waitables every first round ends in a segmentation fault."""
    command = [sys.executable, "-c", PROGRAM, str(ROUNDS)]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, out.splitlines()[-1:]) == (0, ["all rounds"]), err


def test_a_callback_that_is_due_when_its_node_is_destroyed_comes_to_nothing(world):
    """The lifecycle state of a destroyed node, which such a callback read, is a segmentation fault."""
    node = world.add(ExcitationPublisher)
    called = []
    due = node.guarded(lambda: called.append(node.lifecycle))
    due()
    assert len(called) == 1
    world.remove(node)
    due()
    assert len(called) == 1


@dataclass(frozen=True)
class NoSettings:
    """A node without parameters."""


class Plain(RobotNode):
    NAME, PURPOSE, SETTINGS, INTERFACES = "plain", "Sends and takes goals", NoSettings, ()


GOALS = 5


@contextmanager
def pair(make):
    """A `Plain` node and another one, each with its own executor: messages arrive before a node looks at them."""
    with ExitStack() as used:
        context = Context()
        context.init()
        used.callback(context.shutdown)
        plain, other = Plain(context=context), Node("other", context=context)
        executors = make(context=context), SingleThreadedExecutor(context=context)
        for node, executor in zip((plain, other), executors, strict=True):
            executor.add_node(node)
            used.callback(node.destroy_node)
            used.callback(executor.shutdown)
        yield plain, other, *executors


@pytest.mark.parametrize("make", [SingleThreadedExecutor, MultiThreadedExecutor, make_executor])
def test_messages_are_executed_in_their_order_and_in_the_callback_group(make):
    """As tasks of the executor they came in the reverse order, and during other callbacks of the node."""
    busy, together, answered, requested = [], [], [], []

    def work():
        busy.append(1)
        time.sleep(0.02)
        busy.pop()

    with pair(make) as (plain, other, executor, others):
        server = ActionServer(
            other,
            IdentifyRecordings,
            "work",
            lambda goal: IdentifyRecordings.Result(),
            goal_callback=lambda goal: requested.append(goal) or GoalResponse.REJECT,
        )
        client = ActionClient(plain, IdentifyRecordings, "work")
        assert spin(executor, client.server_is_ready, PATIENCE)
        plain.create_timer(0.03, work)
        for number in range(GOALS):
            sent = client.send_goal_async(IdentifyRecordings.Goal())
            sent.add_done_callback(lambda _, number=number: (answered.append(number), together.extend(busy)))
        assert spin(others, lambda: len(requested) == GOALS, PATIENCE)
        time.sleep(0.2)  # all answers have arrived
        assert spin(executor, lambda: len(answered) == GOALS, PATIENCE)
        client.destroy()
        server.destroy()
    assert answered == list(range(GOALS)) and not together
    assert plain.internal_errors == 0


def plain_servers(plain, callbacks):
    """Servers of the actions `first`, `second`, ... of a node, whose goals are given to callbacks."""
    return [
        ActionServer(plain, IdentifyRecordings, name, lambda goal: IdentifyRecordings.Result(), goal_callback=callback)
        for name, callback in zip(("first", "second"), callbacks, strict=True)
    ]


def send_to_both(other, others):
    """Send one goal to each server, so that the node finds both at once; returns what destroys the clients."""
    clients = [ActionClient(other, IdentifyRecordings, name) for name in ("first", "second")]
    assert spin(others, lambda: all(client.server_is_ready() for client in clients), PATIENCE)
    for client in clients:
        client.send_goal_async(IdentifyRecordings.Goal())
    time.sleep(0.2)
    return lambda: [client.destroy() for client in clients]


def test_a_message_of_what_an_earlier_one_removed_is_not_executed():
    """On a destroyed server it was an invalid handle, which ended the process."""
    called = []

    def first(goal):
        called.append("first")
        servers[1].destroy()
        return GoalResponse.REJECT

    def second(goal):
        called.append("second")
        return GoalResponse.REJECT

    with pair(SingleThreadedExecutor) as (plain, other, executor, others):
        servers = plain_servers(plain, (first, second))
        leave = send_to_both(other, others)
        assert spin(executor, lambda: called, PATIENCE)
        assert not spin(executor, lambda: len(called) > 1, 0.3)
        leave()
        servers[0].destroy()
    assert called == ["first"] and plain.internal_errors == 0


def test_what_cannot_be_taken_does_not_cost_what_was_taken(monkeypatch):
    called = []

    def answer(goal):
        called.append(goal)
        return GoalResponse.REJECT

    def unreadable():
        raise RuntimeError("unreadable")

    with pair(SingleThreadedExecutor) as (plain, other, executor, others):
        servers = plain_servers(plain, (answer, answer))
        monkeypatch.setattr(servers[1], "take_data", unreadable)
        leave = send_to_both(other, others)
        assert spin(executor, lambda: called, PATIENCE)
        assert plain.internal_errors >= 1
        leave()
        for server in servers:
            server.destroy()


@pytest.mark.parametrize("make", [SingleThreadedExecutor, make_executor])
def test_a_callback_that_waits_is_continued_and_its_exception_is_a_fault(make):
    end, called = Future(), []

    async def wait(goal):
        called.append("begin")
        await end
        called.append("end")
        raise RuntimeError("too late")

    with pair(make) as (plain, other, executor, others):
        servers = plain_servers(plain, (wait, lambda goal: called.append("other") or GoalResponse.REJECT))
        leave = send_to_both(other, others)
        assert spin(executor, lambda: "other" in called, PATIENCE)
        assert called == ["begin", "other"]
        end.set_result(None)
        assert spin(executor, lambda: plain.internal_errors, PATIENCE)
        assert called[-1] == "end"
        leave()
        for server in servers:
            server.destroy()
