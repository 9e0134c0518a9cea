# SPDX-License-Identifier: Apache-2.0
"""Base class of the nodes: declared parameters, topics and services, start and end."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ClassVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.exceptions import NameValidationException
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from robot_dyn_id.errors import InputError, InternalError, RobotDynIdError, UsageError
from robot_dyn_id.nodes.runtime.backlog import Backlog
from robot_dyn_id.nodes.runtime.changes import Changes
from robot_dyn_id.nodes.runtime.decoding import make_decoder
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, Condition, Diagnosis, make_status_name
from robot_dyn_id.nodes.runtime.goals import GoalServer
from robot_dyn_id.nodes.runtime.namesakes import Namesakes
from robot_dyn_id.nodes.runtime.pacing import PacedCall
from robot_dyn_id.nodes.runtime.ros_parameters import change_settings, declare
from robot_dyn_id.nodes.runtime.waitables import WaitablePoller

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""The latest message stays, for whoever comes later."""

RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)

SENSOR = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Only the latest message matters."""

STREAM = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Subscriber that must lose nothing for 2 s at 1 kHz, from publishers of either reliability."""

QUEUE = QoSProfile(depth=2 * STREAM.depth, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Queue of the middleware behind a `Backlog`, which drops messages before this does."""

LAST_MESSAGES_TIMEOUT_S = 1.0
"""Time for which a node waits at its end until its last messages have been received [s]."""

WRONG_NAMES = ("failed to resolve name", "error creating node: invalid node name")
"""Beginnings of the errors of rclpy (RCLError) about a name that cannot be used."""

PUBLISHES, SUBSCRIBES, SERVES = "publishes", "subscribes", "serves"
EXECUTES, SENDS, CALLS = "executes goals of", "sends goals to", "calls"


@dataclass(frozen=True)
class Interface:
    """A topic, service or action of a node, under a relative name that can be remapped.

    Attributes:
        kind: `PUBLISHES`, `SUBSCRIBES`, `SERVES`, `EXECUTES`, `SENDS` or `CALLS`.
        name: relative; `~/` for the node's own.
        type: class of the message, service or action; the name of one whose package need not be installed.
        text: what it is, one sentence without a full stop.
        qos: QoS profile of a topic; None for services and actions.
    """

    kind: str
    name: str
    type: Any
    text: str
    qos: QoSProfile | None = None


publishes, subscribes, serves, executes, sends, calls = (
    partial(Interface, kind) for kind in (PUBLISHES, SUBSCRIBES, SERVES, EXECUTES, SENDS, CALLS)
)
"""Interface of each kind; the other arguments are `name`, `type`, `text` and, of a topic, `qos`."""

DIAGNOSTICS = publishes(
    "/diagnostics", DiagnosticArray, "Condition of the node, and the process it runs in, once a second", RELIABLE
)


def _is_wrong_name(error: BaseException) -> bool:
    """Whether rclpy refuses a name of the node, its namespace or a topic: by a remapping, or too long in all."""
    refused = type(error).__name__ == "RCLError" and str(error).startswith(WRONG_NAMES)
    return refused or isinstance(error, NameValidationException)


def _name_error(error: BaseException) -> UsageError:
    text = re.sub(r"[ ,]* at (/\S+|\S+\.c\w*):\d+", "", " ".join(str(error).rstrip("^ \n").split()))
    return UsageError(f"{text}: correct the names, the namespace or the remappings of the node")


LONGEST_REFUSAL = 400
"""Characters of a refusal that are reported: it can quote names of the message that is refused."""

LONGEST_ERROR = 500
"""Characters of an exception that are reported; messages can quote what they were given."""


class GuardedNode(Node):  # type: ignore[misc]
    """A node whose callbacks are guarded.

    Attributes:
        end: reason why the node ends on its own, an error or an exit code; None while it runs.
        internal_errors: number of callbacks that ended in an unexpected exception.
        internal_error: the latest of these exceptions in one line; empty without one.
        refused: number of inputs that were not used, such as messages and goals.
        refusal: reason why the latest of them was not.
        steady: clock of timers, which no other clock can halt: what monitors silence must not trust `use_sim_time`.
    """

    ENDS_ON_FAULT: ClassVar[bool] = False
    """Whether the node comes to rest and ends after an unexpected exception; True for nodes that move a robot."""

    steady: Clock
    paced_call: PacedCall | None = None
    """Call at a high rate, which `running.spin` makes, and no executor alone; its exceptions do not end the node if it
    is `guarded`."""

    _poller: WaitablePoller | None = None
    ending = False
    """Whether the node is to end: the process has received a signal, or `stop` is called."""
    destroyed = False
    """Whether the node has left the graph."""

    def _guard(self) -> None:
        """Begin without faults."""
        self.end: RobotDynIdError | int | None = None
        self.internal_errors = 0
        self.internal_error = ""
        self.refused, self.refusal = 0, "none"
        self._refusals = Changes()
        self._backlogs: dict[str, Backlog] = {}
        self._logged_faults: set[tuple[str, int]] = set()

    def destroy_node(self) -> None:
        """Leave the graph; callbacks that are due already come to nothing."""
        self.destroyed = True
        super().destroy_node()

    def _poll(self) -> None:
        """Poll the waitables of the node, see `WaitablePoller`."""
        self._poller = WaitablePoller(self, lambda: () if self.destroyed else super(GuardedNode, self).waitables)

    @property
    def waitables(self) -> Iterator[Any]:
        """Waitables for an executor: none, as the node polls them itself, see `WaitablePoller`."""
        return iter(())

    def add_waitable(self, waitable: Any) -> None:
        """Add an action or an event of the middleware."""
        super().add_waitable(waitable)
        if self._poller is not None:
            self._poller.update()

    def remove_waitable(self, waitable: Any) -> None:
        """Remove an action or an event of the middleware; it can be destroyed at once."""
        super().remove_waitable(waitable)
        if self._poller is not None:
            self._poller.update()

    def fault(self, error: Exception) -> None:
        """Handle an unexpected exception of a callback: a defect of this package, not of its input.

        The first one from each line of code is logged with its traceback. From then on the diagnostics are an ERROR,
        and the exit code of the process is that of `InternalError`. Where `ENDS_ON_FAULT`, the node ends after `stop`.
        """
        self.internal_errors += 1
        self.internal_error = f"internal error: {type(error).__name__}: {' '.join(str(error).split())[:LONGEST_ERROR]}"
        raised = traceback.extract_tb(error.__traceback__)[-1:]
        place = next(((frame.filename, frame.lineno or 0) for frame in raised), (type(error).__name__, 0))
        if place not in self._logged_faults:
            self._logged_faults.add(place)
            self.get_logger().error(f"{self.internal_error}\n{''.join(traceback.format_exception(error))}")
        if self.ENDS_ON_FAULT and self.end is None:
            self.end = InternalError.exit_code

    def guarded(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a callback so that no exception reaches the executor, where it would end the node.

        A `RobotDynIdError` is a refused input, see `refuse`; any other exception goes to `fault`. Callbacks of
        subscriptions, timers and services are wrapped when they are created; those of events and futures are not.
        """

        @wraps(callback)
        def call(*arguments: Any) -> Any:
            if self.destroyed:  # a callback that was due already: some functions of destroyed handles crash
                return None
            try:
                return callback(*arguments)
            except RobotDynIdError as error:
                self.refuse(str(error))
            except Exception as error:
                self.fault(error)
            return None

        return call

    def refuse(self, what: str) -> None:
        """Count an input that is not used, and log the reason, at most once in `LOG_PERIOD` for the same one."""
        self.refusal = " ".join(what[: 2 * LONGEST_REFUSAL].split())[:LONGEST_REFUSAL]
        self.refused += 1
        if self._refusals.due(time.monotonic(), self.refusal):
            self.get_logger().warning(f"refused: {self.refusal}")

    def steady_ns(self) -> int:
        """Time that no other clock can halt [ns]; a clock of rclpy takes ten times as long to read."""
        return time.monotonic_ns()

    def ros_ns(self) -> int:
        """Time of the clock of the stamps [ns], from the system where that is the same."""
        clock = self.get_clock()
        return int(clock.now().nanoseconds) if clock.ros_time_is_active else time.time_ns()

    def _seconds(self) -> float:
        """Time of `steady_ns` [s]."""
        return 1e-9 * self.steady_ns()

    def _ros_seconds(self) -> float:
        """Time of the clock of the stamps [s]."""
        return 1e-9 * self.ros_ns()

    def create_subscription(
        self,
        msg_type: Any,
        topic: str,
        callback: Callable[[Any], None],
        *args: Any,
        raw: bool = False,
        depth: int = 0,
        **options: Any,
    ) -> Any:
        """Create a subscription whose callback is `guarded`; see `rclpy.node.Node`.

        Messages are decoded here, whatever their topic: what `decode` refuses does not reach the callback.

        Args:
            msg_type: class of the messages.
            topic: name of the topic.
            callback: takes one message.
            *args: of rclpy.
            raw: whether the callback takes the bytes of the messages.
            depth: number of messages that may wait, see `Backlog`; 0: as many as arrive.
            **options: of rclpy.
        """
        decode = make_decoder(msg_type)

        def take(data: bytes) -> None:
            try:
                message = decode(data)
            except InputError as error:
                self.refuse(f"{topic}: {error}")
            else:
                callback(message)

        taken = self.guarded(callback if raw else take)
        if depth:
            taken = self._backlogs[topic] = Backlog(taken, depth, self._defer)
        return super().create_subscription(msg_type, topic, taken, *args, raw=True, **options)

    def _defer(self, call: Callable[[], None]) -> bool:
        """Have a function called after what is in the queue of the executor; False if it has none."""
        if self.executor is None or isinstance(self.executor, Executor):  # no EventsExecutor
            return False
        self.executor.create_task(call)
        return True

    def create_timer(self, timer_period_sec: float, callback: Callable[[], None], *args: Any, **options: Any) -> Any:
        """Create a timer whose callback is `guarded`; see `rclpy.node.Node`."""
        return super().create_timer(timer_period_sec, self.guarded(callback), *args, **options)

    def create_service(self, srv_type: Any, srv_name: str, callback: Callable[..., Any], **options: Any) -> Any:
        """Create a service that answers even if its callback raises; see `rclpy.node.Node`.

        For a type with `success` and `message` a callback may return the message of its success, and raise a
        `RobotDynIdError` with that of its failure.
        """

        def call(request: Any, answer: Any) -> Any:
            if self.destroyed:
                return answer
            try:
                found = callback(request, answer)
                if not isinstance(found, str):
                    return found
                result = True, found
            except RobotDynIdError as error:
                result = False, str(error)
            except Exception as error:
                self.fault(error)
                result = False, self.internal_error
            if hasattr(answer, "success") and hasattr(answer, "message"):
                answer.success, answer.message = result
            return answer

        return super().create_service(srv_type, srv_name, call, **options)


class RobotNode(GuardedNode):
    """A node whose parameters and interfaces are declared as data, from which the documentation is made too.

    Attributes:
        arguments: ROS arguments of its own, in addition to those of the process.
        settings: its ROS parameters, an instance of `SETTINGS`.
        condition: what its diagnostics report, unless it has a `diagnosis` of its own.
        hardware_id: name of the robot that the diagnostics are about; "none" before it is known.
        namesakes: other nodes of the same full name; the newer of two that are alive ends with a `GraphError`.
    """

    NAME: ClassVar[str]
    PURPOSE: ClassVar[str]
    SETTINGS: ClassVar[type]
    INTERFACES: ClassVar[tuple[Interface, ...]]
    COMPANIONS: ClassVar[Mapping[str, type[RobotNode]]] = {}
    """Nodes that this one makes in its process while it needs them, by name."""

    def __init__(self, **options: Any) -> None:
        """Make the node.

        Args:
            **options: of `rclpy.node.Node`, such as `context`, `namespace`, `cli_args`.

        Raises:
            UsageError: a parameter that is unknown or wrong.
            RobotDynIdError: see `begin` of the node.
        """
        try:
            super().__init__(self.NAME, automatically_declare_parameters_from_overrides=True, **options)
        except ValueError as error:  # an empty list in YAML has no type
            raise UsageError(f"a parameter has no value: leave it out ({error})") from None
        except Exception as error:
            if _is_wrong_name(error):
                raise _name_error(error) from None
            raise
        self._guard()
        self.arguments: list[str] = list(options.get("cli_args") or ())
        self._goal_servers: list[GoalServer] = []
        try:
            self.settings: Any = declare(self, self.SETTINGS)
            self.add_on_set_parameters_callback(self._check_parameters)
            self.add_post_set_parameters_callback(self._take_parameters_that_change)
            self.condition, self.hardware_id = Condition(self.get_logger()), "none"
            self.steady = Clock(clock_type=ClockType.STEADY_TIME)
            self._poll()
            self._diagnostics = self.create_publisher(DIAGNOSTICS.type, DIAGNOSTICS.name, DIAGNOSTICS.qos)
            self.create_timer(1.0, self._diagnose, clock=self.steady)
            self.namesakes = Namesakes(self, DIAGNOSTICS, self._diagnose)
            self.begin()
        except BaseException as error:
            # A node that is refused must be gone from the graph at once: others count the publishers of a topic.
            self.destroy_node()
            if _is_wrong_name(error):
                raise _name_error(error) from None
            raise

    def begin(self) -> None:
        """Set up what the node is made of; `settings` are there.

        Raises:
            RobotDynIdError: what it is given cannot be used; the node is destroyed then.
        """

    def follow_settings(self) -> None:
        """Adapt to `settings` that were changed while the node runs, where they are not read whenever they are used."""

    def _check_parameters(self, parameters: list[Any]) -> SetParametersResult:
        """Whether parameters can be set to these values, else why not; read-only ones do not come here."""
        try:
            change_settings(self.settings, parameters)
        except UsageError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _take_parameters_that_change(self, parameters: list[Any]) -> None:
        self.settings = change_settings(self.settings, parameters)
        self.follow_settings()

    def destroy_node(self) -> None:
        """Leave the graph, with the actions."""
        self.destroyed = True
        while self._goal_servers:
            self._goal_servers.pop().destroy()
        super().destroy_node()

    def stop(self) -> bool:
        """Begin to end: bring to rest what moves, finish files. Called again and again until it returns True.

        Topics still work then, and the executor goes on spinning between two calls.
        """
        return True

    def farewell(self) -> None:
        """Wait, at most `LAST_MESSAGES_TIMEOUT_S`, until the published messages have been received."""
        end = time.monotonic() + LAST_MESSAGES_TIMEOUT_S
        for publisher in self.publishers:
            publisher.wait_for_all_acked(Duration(seconds=max(end - time.monotonic(), 0.0)))

    def diagnosis(self) -> Diagnosis:
        """Diagnostic status, evaluated once per second."""
        return self.condition.remind(self.is_awaited())

    def is_awaited(self) -> bool:
        """Whether what the node waits for has a publisher, which has not published yet."""
        return False

    def _diagnose(self) -> None:
        try:
            found = self.diagnosis()
        except Exception as error:
            self.fault(error)
            found = Diagnosis(ERROR, self.internal_error)
        if self.internal_error:
            found = Diagnosis(ERROR, self.internal_error, {**found.values, "internal errors": self.internal_errors})
        name = make_status_name(self.get_fully_qualified_name())
        status = DiagnosticStatus(level=found.level, name=name, message=found.message, hardware_id=self.hardware_id)
        refused = {"refused inputs": self.refused, "last refused": self.refusal}
        dropped = {f"dropped messages of {name}": one.dropped for name, one in self._backlogs.items() if one.dropped}
        values = {**found.values, **refused, **dropped, **self.namesakes.values()}
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        self._diagnostics.publish(self.stamped(DiagnosticArray(status=[status])))

    def stamped(self, message: Any) -> Any:
        """A message with the present time in its header."""
        message.header.stamp = self.get_clock().now().to_msg()
        return message

    def publisher(self, name: str) -> Any:
        """The publisher of one of `INTERFACES`."""
        interface = self._interface(PUBLISHES, name)
        return self.create_publisher(interface.type, interface.name, interface.qos)

    def subscription(self, name: str, callback: Callable[..., None], message_type: Any = None, **options: Any) -> Any:
        """The subscription of one of `INTERFACES`; `message_type` replaces the type that it declares.

        Of a stream (best effort) no more messages wait than the depth of its QoS, see `Backlog`; those that were
        dropped are counted in the diagnostics.
        """
        interface = self._interface(SUBSCRIBES, name)
        kind = interface.type if message_type is None else message_type
        assert interface.qos is not None
        if interface.qos.reliability != ReliabilityPolicy.BEST_EFFORT:
            return self.create_subscription(kind, interface.name, callback, interface.qos, **options)
        return self.create_subscription(kind, interface.name, callback, QUEUE, depth=interface.qos.depth, **options)

    def count_publishers(self, topic_name: str) -> int:
        """Number of publishers of a topic as this node hears it: rclpy counts those of the name without remapping.

        Absolute names are those of the graph, which has remapped them already.
        """
        absolute = topic_name.startswith("/")
        return int(super().count_publishers(topic_name if absolute else self.resolve_topic_name(topic_name)))

    def service(self, name: str, callback: Callable[..., Any]) -> Any:
        """The service of one of `INTERFACES`."""
        interface = self._interface(SERVES, name)
        return self.create_service(interface.type, interface.name, callback)

    def goal_server(self, name: str, begin: Callable[[Any], None], cancel: Callable[[], None]) -> GoalServer:
        """The server of one of the actions of `INTERFACES`; see `GoalServer`."""
        interface = self._interface(EXECUTES, name)
        server = GoalServer(self, interface.type, interface.name, begin, cancel)
        self._goal_servers.append(server)
        return server

    def _interface(self, kind: str, name: str) -> Interface:
        return next(item for item in self.INTERFACES if (item.kind, item.name) == (kind, name))
