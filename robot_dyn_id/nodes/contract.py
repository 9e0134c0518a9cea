"""What every node is made of: declared parameters, declared topics and services, one way to start and to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from robot_dyn_id.errors import RobotDynIdError, UsageError
from robot_dyn_id.nodes.namesakes import Namesakes
from robot_dyn_id.nodes.ros_parameters import declare

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""The latest message stays, for whoever comes later."""

RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)

SENSOR = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
"""What matters is the newest message."""

STREAM = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Subscriber that must lose nothing for 2 s at 1 kHz, from publishers of either reliability."""

FAREWELL = 1.0
"""How long the last messages of a node may take to arrive [s]."""

PUBLISHES, SUBSCRIBES, SERVES, SENDS = "publishes", "subscribes", "serves", "sends goals to"


@dataclass(frozen=True)
class Interface:
    """A topic, service or action of a node, under a relative name that can be remapped.

    Attributes:
        kind: `PUBLISHES`, `SUBSCRIBES`, `SERVES` or `SENDS`.
        name: relative; `~/` for the node's own.
        type: class of the message or service; the name of one whose package need not be installed.
        text: what it is, one sentence without a full stop.
        qos: of topics.
    """

    kind: str
    name: str
    type: Any
    text: str
    qos: QoSProfile | None = None


OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK,
    DiagnosticStatus.WARN,
    DiagnosticStatus.ERROR,
    DiagnosticStatus.STALE,
)

DIAGNOSTICS = Interface(
    PUBLISHES,
    "diagnostics",
    DiagnosticArray,
    "Condition of the node, and the process it runs in, once a second",
    RELIABLE,
)


@dataclass(frozen=True)
class Diagnosis:
    """How a node is.

    Attributes:
        level: `OK`, `WARN`, `ERROR` or `STALE`.
        message: one line.
        values: figures, by name.
    """

    level: bytes
    message: str
    values: Mapping[str, object] = field(default_factory=dict)


class RobotNode(Node):  # type: ignore[misc]
    """A node whose parameters and interfaces are declared as data, from which the documentation is made too.

    Attributes:
        settings: its ROS parameters, an instance of `SETTINGS`.
        end: why the node ends by itself, an error or the exit code of its process; None while it does not.
        namesakes: other nodes of the same full name; the newer of two that are alive ends with a `GraphError`.
    """

    NAME: ClassVar[str]
    PURPOSE: ClassVar[str]
    SETTINGS: ClassVar[type]
    INTERFACES: ClassVar[tuple[Interface, ...]]

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
        self.end: RobotDynIdError | int | None = None
        try:
            self.settings: Any = declare(self, self.SETTINGS)
            self.steady = Clock(clock_type=ClockType.STEADY_TIME)
            """Time that no other clock can halt: what watches for silence must not trust `use_sim_time`."""
            self._diagnostics = self.create_publisher(DIAGNOSTICS.type, DIAGNOSTICS.name, DIAGNOSTICS.qos)
            self.create_timer(1.0, self._diagnose, clock=self.steady)
            self.namesakes = Namesakes(self, DIAGNOSTICS, self._diagnose)
            self.begin()
        except BaseException:
            # A node that is refused must be gone from the graph at once: others count the publishers of a topic.
            self.destroy_node()
            raise

    def begin(self) -> None:
        """Set up what the node is made of; `settings` are there.

        Raises:
            RobotDynIdError: what it is given cannot be used; the node is destroyed then.
        """

    def stop(self) -> bool:
        """Begin to end: bring to rest what moves, finish files. Called again and again until it returns True.

        Topics still work then, and the executor goes on spinning between two calls.
        """
        return True

    def farewell(self) -> None:
        """Wait, at most `FAREWELL`, until what was published has arrived: it would be lost with the process."""
        end = time.monotonic() + FAREWELL
        for publisher in self.publishers:
            publisher.wait_for_all_acked(Duration(seconds=max(end - time.monotonic(), 0.0)))

    def diagnosis(self) -> Diagnosis:
        """How the node is; asked once a second."""
        return Diagnosis(OK, "running")

    def _diagnose(self) -> None:
        found = self.diagnosis()
        status = DiagnosticStatus(level=found.level, name=self.get_fully_qualified_name(), message=found.message)
        values = {**found.values, **self.namesakes.values()}
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def publisher(self, name: str) -> Any:
        """The publisher of one of `INTERFACES`."""
        interface = self._interface(PUBLISHES, name)
        return self.create_publisher(interface.type, interface.name, interface.qos)

    def subscription(self, name: str, callback: Callable[..., None], **options: Any) -> Any:
        """The subscription of one of `INTERFACES`."""
        interface = self._interface(SUBSCRIBES, name)
        return self.create_subscription(interface.type, interface.name, callback, interface.qos, **options)

    def service(self, name: str, callback: Callable[..., Any]) -> Any:
        """The service of one of `INTERFACES`."""
        interface = self._interface(SERVES, name)
        return self.create_service(interface.type, interface.name, callback)

    def _interface(self, kind: str, name: str) -> Interface:
        return next(item for item in self.INTERFACES if (item.kind, item.name) == (kind, name))
