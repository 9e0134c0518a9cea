# SPDX-License-Identifier: Apache-2.0
"""Actions and middleware events of a node, which the node polls instead of its executor.

An EventsExecutor (rclpy 7 to 9) crashes the process if one of them is removed while a message for it is in its queue:
it drops the message, and with it the last reference to a Python object, without the global interpreter lock. What
no executor holds can be removed at any time. Topics, services and timers are not concerned: their messages in the queue
refer to no Python object.

Messages are executed by the timer that takes them, in the order in which they were taken, and so in the callback group
of the node. As tasks of the executor they would be executed in any order: a SingleThreadedExecutor begins with the last
one.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import ExitStack
from typing import Any

from rclpy.event_handler import EventHandler
from rclpy.exceptions import InvalidHandle
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.waitable import NumberOfEntities

ACTION_PERIOD_S = 0.02
"""Time between two looks at the actions of a node [s]: joint_trajectory_controller looks every 0.05 s."""

EVENT_PERIOD_S = 0.2
"""Time between two looks at middleware events, such as lost messages [s]."""

MOST_MESSAGES = 100
"""Messages of one action that are taken at once."""


class WaitablePoller:
    """Timers of a node that execute its waitables; the one of the actions exists while there are any."""

    def __init__(self, node: Any, waitables: Callable[[], Iterable[Any]]) -> None:
        """Begin to poll.

        Args:
            node: the node, whose executor executes what is taken.
            waitables: function that returns its waitables.
        """
        self._node, self._waitables = node, waitables
        # Without anything that is ready, a wait of zero gives up the processor, on a busy one for milliseconds.
        self._ready = GuardCondition(None, None, node.context)
        self._timer: Any = None
        self._polling = False
        node.create_timer(EVENT_PERIOD_S, self._poll_events, clock=node.steady)
        self.update()

    def update(self) -> None:
        """Adapt to waitables that were added or removed."""
        if self._polling:  # a timer is not destroyed by its own callback: later, by the one of the events
            return
        present = any(self._actions())
        if present and self._timer is None:
            self._timer = self._node.create_timer(ACTION_PERIOD_S, self._poll_actions, clock=self._node.steady)
        elif self._timer is not None and not present:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def _actions(self) -> list[Any]:
        return [one for one in self._waitables() if not isinstance(one, EventHandler)]

    def _poll_actions(self) -> None:
        self._polling = True
        try:
            for _ in range(MOST_MESSAGES):
                if not self._take(self._actions()):
                    return
        finally:
            self._polling = False

    def _poll_events(self) -> None:
        self.update()
        self._take([one for one in self._waitables() if isinstance(one, EventHandler)])

    def _take(self, waitables: Iterable[Any]) -> bool:
        """Take one message of each waitable that has any, and execute them; False if there was none."""
        with ExitStack() as used:
            numbers, present = NumberOfEntities(), []
            for one in waitables:
                try:
                    used.enter_context(one)
                except InvalidHandle:  # it is being destroyed
                    continue
                numbers += one.get_num_entities()
                present.append(one)
            if not present:
                return False
            context = self._node.context.handle
            used.enter_context(context)
            used.enter_context(self._ready.handle)
            self._ready.trigger()
            wait_set = rclpy_implementation.WaitSet(
                numbers.num_subscriptions,
                numbers.num_guard_conditions + 1,
                numbers.num_timers,
                numbers.num_clients,
                numbers.num_services,
                numbers.num_events,
                context,
            )
            wait_set.clear_entities()
            wait_set.add_guard_condition(self._ready.handle)
            for one in present:
                one.add_to_wait_set(wait_set)
            wait_set.wait(0)
            taken = []
            for one in present:
                if one.is_ready(wait_set):
                    try:
                        taken.append((one, one.take_data()))
                    except Exception as error:  # what was taken from others must not be lost
                        self._node.fault(error)
        for one, data in taken:
            if any(one is other for other in self._waitables()):  # not removed by an earlier message
                self._execute(one.execute(data))
        return bool(taken)

    def _execute(self, work: Coroutine[Any, Any, None]) -> None:
        """Execute a coroutine up to its end, or until it waits: the executor continues it then."""
        try:
            waits_for = work.send(None)
        except StopIteration:
            return
        except Exception as error:
            self._node.fault(error)
            return

        async def end() -> None:
            try:
                await _continue(work, waits_for)
            except Exception as error:
                self._node.fault(error)

        self._node.executor.create_task(end)


@types.coroutine
def _continue(work: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, None, None]:
    """Continue a coroutine that waits; yield to the executor what it waits for."""
    while True:
        yield waits_for
        try:
            waits_for = work.send(None)
        except StopIteration:
            return
