"""How a node runs: the fastest executor there is, one line for a user's mistake, and rest before the end."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.nodes.contract import RobotNode
from robot_dyn_id.parameter_files import origin

SLICE = 0.1
"""Longest time without a look at signals [s]."""

LATE = 2.0
"""Times its duration that a slice may last: then a busy executor is stopped between two callbacks."""

PATIENCE = 10.0
"""Longest time that a node may take to come to rest [s]; then the process ends all the same."""


def make_executor(context: Any = None) -> Any:
    """The EventsExecutor where the distribution has one (a third of the cost at 1 kHz), else the single-threaded."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)


def spin(executor: Any, until: Callable[[], bool], timeout: float = float("inf")) -> bool:
    """Spin until a condition holds, looked at every `SLICE`; False if it did not within `timeout` seconds."""
    # Slices: an EventsExecutor that spins without a time limit never runs a timer, and neither sees signals.
    end = time.monotonic() + timeout
    while not until():
        left = end - time.monotonic()
        if left <= 0.0:
            return False
        _spin_for(executor, min(SLICE, left))
    return True


def _spin_for(executor: Any, duration: float) -> None:
    """Spin, and return also if there is more to do than can be done.

    An EventsExecutor (rclpy 7 to 9) looks at the time only when nothing waits: under more work than the computer can do
    it would never return, and no Ctrl-C would be seen. A future that is complete does stop it.
    """
    enough = Future()
    alarm = threading.Timer(LATE * duration, enough.set_result, (None,))
    alarm.daemon = True
    alarm.start()
    try:
        executor.spin_until_future_complete(enough, timeout_sec=duration)
    finally:
        alarm.cancel()
        alarm.join()


def run(make: type[RobotNode], arguments: Sequence[str] | None = None) -> int:
    """Run one node until SIGINT or SIGTERM; the whole of an executable.

    The handlers of rclpy are left out, because they end all communication at once: a robot could not be stopped.

    Returns:
        0 ended as asked; 2 wrong parameters; 3 bad input; or the code with which the node has ended by itself.
    """
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: asked.append(number))
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    node = None
    try:
        node = make()
        executor = make_executor()
        executor.add_node(node)
        spin(executor, lambda: bool(asked) or node.end is not None)
        if not spin(executor, node.stop, PATIENCE):
            node.get_logger().error(f"did not come to rest within {PATIENCE:g} s")
        node.farewell()
        executor.shutdown()
        if isinstance(node.end, RobotDynIdError):
            raise node.end
        return node.end or 0
    except KeyboardInterrupt:  # while a file is expanded by xacro: nothing has moved yet
        return 0
    except RobotDynIdError as error:
        print(f"{make.NAME}: {error}{origin(str(error), arguments or sys.argv)}", file=sys.stderr)
        return error.exit_code
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.shutdown()
