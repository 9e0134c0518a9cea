# SPDX-License-Identifier: Apache-2.0
"""Execution of a node: executor, signals, exit code, and rest of the robot before the end."""

from __future__ import annotations

import gc
import itertools
import math
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from robot_dyn_id.errors import InternalError, RobotDynIdError, UsageError
from robot_dyn_id.faults import explain_setup_error, report_fault
from robot_dyn_id.nodes.runtime.parameter_files import find_origin, refuse_renamed_section_of
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.nodes.runtime.ros_parameters import list_ros_parameters
from robot_dyn_id.termination import handle_termination

SLICE = 0.1
"""Longest time without a look at signals [s]."""

LATE = 2.0
"""Times its duration that a slice may last: then a busy executor is stopped between two callbacks."""

PATIENCE = 10.0
"""Longest time that a node may take to come to rest [s]; then the process ends all the same."""

ATTEMPTS = 3
"""Times that a node is brought to rest if this fails by an exception."""


def make_executor(context: Any = None) -> Any:
    """The EventsExecutor where the distribution has one (a third of the cost at 1 kHz), else the single-threaded."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    with redirect_stderr(sys.__stderr__ or sys.stderr):  # rclpy gives it to faulthandler, which needs a file descriptor
        return EventsExecutor(context=context)


def spare_collection() -> None:
    """Leave what exists out of later garbage collections: with all libraries, one holds a node up for 0.1 s or more."""
    gc.collect()
    gc.freeze()


def spin(executor: Any, until: Callable[[], bool], timeout: float = float("inf"), every: float = SLICE) -> bool:
    """Spin until a condition holds; False if it did not within a time.

    Args:
        executor: the executor.
        until: the condition.
        timeout: time after which it is given up [s].
        every: longest time between two looks at it [s].
    """
    # Slices: an EventsExecutor that spins without a time limit never runs a timer, and neither sees signals.
    end = time.monotonic() + timeout
    with _Alarm(LATE * every) as alarm:
        while not until():
            now = time.monotonic()
            if now >= end:
                return False
            _spin_slice(executor, alarm, min(now + every, end))
    return True


def _spin_slice(executor: Any, alarm: _Alarm, end: float) -> None:
    """Execute callbacks until a time [s], and the paced calls of the nodes between them."""
    calls = [call for node in executor.get_nodes() if (call := getattr(node, "paced_call", None)) is not None]
    now, stopped = time.monotonic(), alarm.begin_slice()
    while now < end and not stopped.done():
        due = min((call.due for call in calls), default=end)
        executor.spin_until_future_complete(stopped, timeout_sec=max(min(due, end) - now, 0.0))
        now = time.monotonic()
        for call in calls:
            call.make(now)


class _Alarm:
    """Thread that stops slices of a busy executor, so that they end even if there is more to do than can be done.

    An EventsExecutor (rclpy 7 to 9) looks at the time only when nothing waits: under more work than the computer can do
    it would never return, and Ctrl-C would be ignored. A complete future stops it.
    """

    def __init__(self, delay: float) -> None:
        """Begin without a slice.

        Args:
            delay: time after which a slice is stopped [s]; it can last up to twice as long.
        """
        self._delay = delay
        self._slice = math.inf, Future()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._stop_late_slices, daemon=True)

    def __enter__(self) -> _Alarm:
        """Begin to look at the slices."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def begin_slice(self) -> Any:
        """Future that is complete when the slice that begins has lasted too long."""
        future = Future()
        self._slice = time.monotonic() + self._delay, future
        return future

    def _stop_late_slices(self) -> None:
        while not self._ended.wait(self._delay):
            due, future = self._slice
            if time.monotonic() >= due:
                future.set_result(None)


def run(make: type[RobotNode], arguments: Sequence[str] | None = None) -> int:
    """Run one node until a signal that ends a process; the complete body of an executable.

    Returns:
        0 ended by a signal; 2 wrong parameters; 3 bad input; 4 a fault of the node itself, such as an unexpected
        exception in a callback; or the exit code of a node that ended on its own.
    """
    command = list(arguments or sys.argv)
    return run_together([(make, None)], arguments, lambda: refuse_other_words(make.NAME, command))


def run_together(
    parts: Sequence[tuple[type[RobotNode], Sequence[str] | None]],
    arguments: Sequence[str] | None = None,
    check: Callable[[], None] = lambda: None,
) -> int:
    """Run nodes until a signal that ends a process, or until one of them ends.

    The handlers of rclpy are left out, because they end all communication at once: a robot could not be stopped.
    Nodes that fail by an exception are brought to rest like those that are stopped by a signal, all at the same time.

    Args:
        parts: class of each node, and its ROS arguments; None: those of the process.
        arguments: command line of the process; None: that of Python.
        check: raises a `UsageError` for a command line that cannot be used.

    Returns:
        Exit code, see `run`.
    """
    signals: list[int] = []
    nodes: list[RobotNode] = []

    def end(number: int, frame: Any) -> None:
        signals.append(number)
        for node in nodes:
            node.ending = True

    handle_termination(end, always=(signal.SIGINT, signal.SIGTERM))
    given = list(arguments or sys.argv)
    label, command = parts[0][0].NAME, given
    try:
        check()
        _initialize(arguments)
        for make, words in parts:
            label, command = make.NAME, given if words is None else list(words)
            refuse_renamed_section_of(label, [row.name for row in list_ros_parameters(make.SETTINGS)], command)
            own = {} if words is None else {"cli_args": words, "use_global_arguments": False}
            nodes.append(make(**own))
        _spin_to_the_end(nodes, signals)
        code = 0
        for node in nodes:
            label = node.NAME
            if isinstance(node.end, RobotDynIdError):
                raise node.end
            code = code or node.end or (InternalError.exit_code if node.internal_errors else 0)
        return code
    except KeyboardInterrupt:  # while a file is expanded by xacro: nothing has moved yet
        return 0
    except RobotDynIdError as error:
        print(f"{label}: {error}{find_origin(str(error), command)}", file=sys.stderr)
        return error.exit_code
    except Exception as fault:
        other = explain_setup_error(fault) or report_fault(fault, command)
        print(f"{label}: {other}", file=sys.stderr)
        return other.exit_code
    finally:
        for node in nodes:
            if not node.destroyed:
                node.destroy_node()
        rclpy.try_shutdown()


def _spin_to_the_end(nodes: Sequence[RobotNode], signals: list[int]) -> None:
    """Execute the callbacks of nodes until a signal or the end of one of them, and bring all of them to rest."""
    executor = make_executor()
    for node in nodes:
        executor.add_node(node)
    spare_collection()
    try:
        spin(executor, lambda: bool(signals) or any(node.end is not None for node in nodes))
    except Exception as error:  # of the executor: those of callbacks do not come here
        for node in nodes:
            node.fault(error)
    _bring_to_rest(executor, nodes)
    executor.shutdown()


def refuse_other_words(name: str, command: Sequence[str]) -> None:
    """Refuse words before `--ros-args`, which ROS would ignore: parameters, or remappings in the way of ROS 1.

    Raises:
        UsageError: such a word.
    """
    others = list(itertools.takewhile(lambda word: word != "--ros-args", command[1:]))
    if others:
        raise UsageError(
            f"{' '.join(others)}: not a ROS argument, and would be ignored: write "
            f"`ros2 run robot_dyn_id {name} --ros-args {' '.join(others)}`"
        )


def _initialize(arguments: Sequence[str] | None) -> None:
    """Begin to communicate.

    Raises:
        UsageError: the arguments of ROS, or a file of parameters among them, cannot be parsed.
        InputError: there are no such arguments: the environment is refused.
    """
    try:
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # rclpy has no public class for what rcl refuses
        refused = explain_setup_error(error)
        if refused and "--ros-args" not in (arguments or sys.argv):
            raise refused from None
        text = re.sub(r",? at (/\S+|\S+\.c):\d+", "", " ".join(str(error).split()))
        raise UsageError(f"cannot start with these ROS arguments: {text}") from None


def _bring_to_rest(executor: Any, nodes: Sequence[RobotNode]) -> None:
    """Call `stop` of nodes until they are at rest; each leaves the graph as soon as it is, like a process that ends.

    An exception gives a node another try.
    """
    moving, tries = list(nodes), dict.fromkeys(nodes, ATTEMPTS)

    def rest() -> bool:
        for node in list(moving):
            node.ending = True
            try:
                resting = node.stop()
            except Exception as error:
                node.fault(error)
                tries[node] -= 1
                continue
            if resting:
                moving.remove(node)
                node.farewell()
                executor.remove_node(node)
                node.destroy_node()
        return not any(tries[node] for node in moving)

    spin(executor, rest, PATIENCE)
    for node in moving:
        node.get_logger().error(f"did not come to rest within {PATIENCE:g} s")
        node.farewell()
