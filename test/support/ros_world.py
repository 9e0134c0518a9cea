# SPDX-License-Identifier: Apache-2.0
"""A ROS world of its own for a test: nodes in one process, spun until something holds."""

import gc
import math
import time
from collections.abc import Callable

from builtin_interfaces.msg import Time
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMsg

from robot_dyn_id.nodes.runtime import namesakes
from robot_dyn_id.nodes.runtime.composition import Composition
from robot_dyn_id.nodes.runtime.robot_node import RELIABLE, RobotNode
from support.processes import HANG_S

TICK_S = 0.01

EPOCH = 1_000_000_000_000
"""Time of /clock at the beginning [ns]."""


def ros_arguments(**parameters: object) -> list[str]:
    """ROS arguments that set parameters; those with an empty value are left at their defaults."""
    return [word for name, value in parameters.items() if value != "" for word in ("-p", f"{name}:={value}")]


class HeldTime:
    """The steady time of nodes whose world keeps time [ns]: it goes with `World.time` from what it shows at first."""

    def __init__(self, world: "World") -> None:
        self._world, self._begin = world, time.monotonic_ns() - round(1e9 * world.time)

    def __call__(self) -> int:
        return self._begin + round(1e9 * self._world.time)


class World(Composition):
    """`add(Class, "-p", "name:=value", ...)` makes a node with ROS arguments, `until(condition)` spins.

    Its domain belongs to this process: nodes need not listen for those of other processes first, unless it `listens`.
    """

    LOOK_S = 0.02

    def __init__(self) -> None:
        gc.collect()  # a goal that the world before did not end, and which no test holds any more, keeps its action
        super().__init__()
        self.faults_expected = False
        self._ticks = 0
        self._clock, self._pace, self._now, self._heard = None, 1.0, EPOCH, EPOCH
        self.client.create_timer(TICK_S, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))
        namesakes._listening_since[self._context] = -math.inf

    @property
    def probe(self) -> Node:
        return self.client

    @property
    def executor(self) -> object:
        return self._executor

    @property
    def time(self) -> float:
        """Time for which the executor has run [s]: while the process is held up, it does not pass.

        All nodes of the world are held up with it: a deadline by this time is one of theirs, and not of the computer.
        """
        return TICK_S * self._ticks

    @property
    def now(self) -> float:
        """Time of the nodes' messages [s]."""
        return 1e-9 * (self.client.get_clock().now().nanoseconds if self._clock is None else self._now)

    def _tick(self) -> None:
        if self._clock is None:
            self._ticks += 1
            return
        if self._heard == self._now:  # else the nodes, which hear it after the world, would fall behind the clock
            self._ticks += 1
            self._now += round(self._pace * TICK_S * 1e9)
        sec, nanosec = divmod(self._now, 1_000_000_000)
        self._clock.publish(ClockMsg(clock=Time(sec=sec, nanosec=nanosec)))

    def _hear(self, message: ClockMsg) -> None:
        self._heard = message.clock.sec * 1_000_000_000 + message.clock.nanosec

    def keep_time(self, pace: float = 1.0) -> None:
        """Give the nodes that are added from now on a clock that goes with `time`: a busy computer makes none late.

        Args:
            pace: seconds of the clock in a second of `time`; the first call decides.
        """
        if self._clock is None:
            self._pace = pace
            self._clock = self.client.create_publisher(ClockMsg, "/clock", RELIABLE)
            self.client.create_subscription(ClockMsg, "/clock", self._hear, RELIABLE)
            self._arguments = (*self._arguments, *ros_arguments(use_sim_time="true"))

    def listens(self) -> None:
        """Let nodes listen for those of other processes, as they do outside of tests."""
        del namesakes._listening_since[self._context]

    def add(self, make: Callable[..., Node], *arguments: str, **options: object) -> Node:
        node = super().add(make, arguments=arguments, **options)
        if isinstance(node, RobotNode) and self._clock is not None:
            node.steady_ns = HeldTime(self)
        return node

    def close(self) -> None:
        """End all nodes; a callback that raised an exception, which no node passes on, fails the test."""
        broken = {node.get_name(): node.internal_error for node in self._nodes if getattr(node, "internal_errors", 0)}
        super().close()
        assert self.faults_expected or not broken, broken

    def wait(self, seconds: float) -> None:
        """Spin for a while, by `time`."""
        end = self.time + seconds
        self.until(lambda: self.time >= end, what=f"{seconds:g} s")

    def until(self, condition: Callable[[], bool], timeout: float = HANG_S, what: str = "the condition") -> None:
        super().until(condition, timeout, what)

    def within(self, seconds: float, condition: Callable[[], bool], what: str = "the condition") -> None:
        """Spin until a condition holds, which must not take longer by `time`."""
        begin = self.time
        self.until(condition, what=what)
        assert self.time - begin <= seconds, f"{what}: after {self.time - begin:.2f} s"

    def call(self, service_type: object, name: str, request: object = None, timeout: float = HANG_S) -> object:
        return super().call(service_type, name, request, timeout)
