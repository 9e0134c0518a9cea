# SPDX-License-Identifier: Apache-2.0
"""Messages of a stream do not wait without a limit for a node that is too slow for them."""

import threading
import time
from dataclasses import dataclass

import pytest
from sensor_msgs.msg import JointState

from robot_dyn_id.nodes.runtime.backlog import OVERLOADED_S, Backlog
from robot_dyn_id.nodes.runtime.robot_node import SENSOR, RobotNode, subscribes

COUNT = 600


@dataclass(frozen=True)
class Settings:
    pass


class Slow(RobotNode):
    """Needs 10 ms for a message."""

    NAME, PURPOSE, SETTINGS = "slow", "Is slow", Settings
    INTERFACES = (subscribes("joint_states", JointState, "Joint states", SENSOR),)

    def begin(self):
        self.heard, self.ticks = [], 0
        self.subscription("joint_states", self._take)
        self.create_timer(0.1, self._tick, clock=self.steady)

    def _take(self, message):
        self.heard.append(message.header.stamp.sec)
        time.sleep(0.01)

    def _tick(self):
        self.ticks += 1


@pytest.mark.real_time
def test_a_node_that_is_too_slow_keeps_up_with_the_latest_messages(world):
    node = world.add(Slow)
    publisher = world.probe.create_publisher(JointState, "joint_states", SENSOR)
    world.until(lambda: publisher.get_subscription_count() == 1)
    begun, ticks = threading.Event(), []

    def flood():
        for number in range(COUNT):
            message = JointState()
            message.header.stamp.sec = number
            publisher.publish(message)
            begun.set()
            time.sleep(0.001)
        ticks.append(node.ticks)

    thread = threading.Thread(target=flood)
    before = node.ticks
    thread.start()
    world.until(begun.is_set)
    world.until(lambda: not thread.is_alive())
    assert ticks[0] > before, "timers of the node run meanwhile"
    world.within(0.5, lambda: node.heard[-1] == COUNT - 1, what="the latest message")
    (backlog,) = node._backlogs.values()
    assert node.heard == sorted(node.heard)
    assert len(node.heard) + backlog.dropped == COUNT
    assert len(node.heard) < COUNT / 2


class Queue:
    """A `Backlog` of messages at 1 kHz under a clock of its own; deferred calls are made by `flush`."""

    def __init__(self, monkeypatch, depth, defers=True):
        self.heard, self.deferred, self.now, self.number = [], [], 100.0, 0
        monkeypatch.setattr(time, "time_ns", lambda: round(1e9 * self.now))
        self.backlog = Backlog(self.heard.append, depth, lambda call: defers and not self.deferred.append(call))

    def take(self, age, count=1):
        for _ in range(count):
            self.now += 0.001
            self.backlog(self.number, {"received_timestamp": round(1e9 * (self.now - age))})
            self.number += 1

    def flush(self):
        while self.deferred:
            self.deferred.pop()()


def test_of_late_messages_the_latest_is_processed(monkeypatch):
    queue = Queue(monkeypatch, 5)
    queue.take(0.0, 10)
    queue.take(0.04, 3)
    assert queue.heard == [*range(10)]
    queue.flush()
    assert queue.heard == [*range(10), 12]
    queue.take(0.04)
    queue.take(0.015)
    queue.flush()
    assert queue.heard == [*range(10), 12, 14]
    assert queue.backlog.dropped == 3


def test_a_deep_queue_is_for_a_node_that_is_late_once(monkeypatch):
    queue = Queue(monkeypatch, 500)
    queue.take(0.6, 500)
    assert len(queue.heard) == 500, "fewer messages than may wait"
    queue.take(0.4, 500)
    assert len(queue.heard) == 1000
    queue.take(0.6)
    queue.take(0.4)
    queue.flush()
    assert queue.heard[1000:] == [1001], "overloaded"
    queue.take(0.0, round(1500 * OVERLOADED_S))
    queue.now += 0.4
    queue.take(0.4)
    assert queue.heard[-1] == queue.number - 1
    assert queue.backlog.dropped == 1


def test_messages_without_a_time_or_with_a_clock_that_is_set_back_are_processed(monkeypatch):
    queue = Queue(monkeypatch, 5)
    for number in range(6):
        queue.backlog(number, {"received_timestamp": 0})
    queue.take(-50.0)
    queue.backlog((1, {"received_timestamp": 100 * 10**9}))
    assert queue.heard == [*range(6), 0, 1]


def test_without_a_queue_that_can_defer_late_messages_are_dropped(monkeypatch):
    queue = Queue(monkeypatch, 5, defers=False)
    queue.take(0.0, 5)
    queue.take(0.04)
    queue.take(0.0)
    assert queue.heard == [0, 1, 2, 3, 4, 6]
    assert queue.backlog.dropped == 1
