# SPDX-License-Identifier: Apache-2.0
"""Actions and middleware events that their node polls: removed while messages for them arrive, they do no harm."""

import subprocess
import sys

import pytest
from support.processes import child

from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher

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
        out, err = process.communicate(timeout=60)
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
