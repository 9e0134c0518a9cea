# SPDX-License-Identifier: Apache-2.0
"""Several nodes in one process, over real DDS: what a launch file starts, where there is no `ros2 launch`."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robot_dyn_id.errors import DeadlineError, InternalError, RobotDynIdError
from robot_dyn_id.nodes.runtime.running import PATIENCE, SLICE, make_executor, spare_collection, spin


class Composition:
    """Nodes that share a context and an executor; a context manager that brings them to rest at the end.

    Attributes:
        client: a plain node, for those who call services of the others or listen to them.
        namespace: namespace of the nodes; empty or absolute.
    """

    LOOK_S: ClassVar[float] = SLICE
    """Longest time between two looks at a condition [s]."""

    def __init__(
        self, namespace: str = "", arguments: tuple[str, ...] = (), check: Callable[[Composition], None] | None = None
    ) -> None:
        """Begin with no nodes but `client`.

        Args:
            namespace: default namespace of all nodes; empty or absolute.
            arguments: ROS arguments of all nodes, such as `-r old:=new`.
            check: called with the composition at every look at a condition, at most `LOOK_S` apart; an error that it
                raises ends the wait.
        """
        self.namespace, self._arguments, self._check = namespace, arguments, check
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._executor = make_executor(self._context)
        self._spares = gc.get_freeze_count() == 0  # or the program leaves out what exists already
        if self._spares:
            spare_collection()
        self._nodes: list[Any] = []
        self.client: Any = self.add(lambda **options: Node("client", **options))

    def __enter__(self) -> Composition:
        """The composition itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """See `close`."""
        self.close()

    def add(
        self,
        make: Callable[..., Any],
        parameters: Mapping[str, object] | None = None,
        files: tuple[Path, ...] = (),
        arguments: tuple[str, ...] = (),
        **options: Any,
    ) -> Any:
        """Make a node.

        Args:
            make: its class.
            parameters: ROS parameters, over those of the files.
            files: YAML files with parameters, as `--params-file` takes them.
            arguments: further ROS arguments, such as `-r old:=new`.
            **options: of the node, such as `namespace` instead of the composition's.

        Raises:
            RobotDynIdError: the node refuses them.
        """
        words = [word for file in files for word in ("--params-file", str(file))]
        for name, value in (parameters or {}).items():
            words += ["-p", f"{name}:={json.dumps(value)}"]  # JSON is YAML
        words += [*self._arguments, *arguments]
        cli = ["--ros-args", *words] if words else []
        node = make(context=self._context, cli_args=cli, **{"namespace": self.namespace, **options})
        self._nodes.append(node)
        self._executor.add_node(node)
        return node

    def remove(self, node: Any) -> None:
        """Bring a node to rest and end it."""
        self._rest([node])
        self._executor.remove_node(node)
        self._nodes.remove(node)
        # the executor lets go of the node, which otherwise outlives its destruction
        spin(self._executor, lambda: False, self.LOOK_S, self.LOOK_S)
        node.destroy_node()

    def until(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        """Spin until a condition holds.

        Raises:
            DeadlineError: it did not within `timeout` seconds; `what` names it.
            RobotDynIdError: raised by the composition's `check`.
        """
        if not self._spin(condition, timeout):
            raise DeadlineError(f"{what}: not within {timeout:g} s")

    def raise_faults(self) -> None:
        """Raise what a node has ended for, or what one of its callbacks has failed for.

        Raises:
            InternalError: an unexpected exception in a callback, whose traceback the node has logged.
            RobotDynIdError: the reason why a node ended on its own.
        """
        for node in self._nodes:
            if getattr(node, "internal_errors", 0):
                action = "report the fault with the traceback that the node has logged, or with the file that it names"
                raise InternalError(f"{node.get_fully_qualified_name()}: {node.internal_error}", action)
            if isinstance(end := getattr(node, "end", None), RobotDynIdError):
                raise end

    def wait(self, seconds: float) -> None:
        """Spin for a while.

        Raises:
            RobotDynIdError: raised by the composition's `check`.
        """
        end = time.monotonic() + seconds
        self._spin(lambda: time.monotonic() >= end)

    def _spin(self, condition: Callable[[], bool], timeout: float = float("inf")) -> bool:
        def checked() -> bool:
            if self._check is not None:
                self._check(self)
            return condition()

        return spin(self._executor, checked, timeout, self.LOOK_S)

    def heard(self, message_type: Any, topic: str, qos: Any) -> list[Any]:
        """The list that messages on a topic are appended to from now on."""
        messages: list[Any] = []
        self.client.create_subscription(message_type, topic, messages.append, qos)
        return messages

    def call(self, service_type: Any, name: str, request: Any = None, timeout: float = 20.0) -> Any:
        """Call a service and wait for its answer.

        Raises:
            DeadlineError: no answer within `timeout` seconds.
        """
        client = self.client.create_client(service_type, name)
        self.until(client.service_is_ready, timeout, f"service {name}")
        future = client.call_async(service_type.Request() if request is None else request)
        self.until(future.done, timeout, f"answer of {name}")
        self.client.destroy_client(client)
        return future.result()

    def close(self) -> None:
        """Bring all nodes to rest, those that were made last first, and end."""
        self._rest([node for node in reversed(self._nodes) if hasattr(node, "stop")])
        self._executor.shutdown()
        for node in self._nodes:
            node.destroy_node()
        rclpy.shutdown(context=self._context)
        if self._spares:
            gc.unfreeze()

    def _rest(self, nodes: list[Any]) -> None:
        for node in nodes:
            spin(self._executor, node.stop, PATIENCE)
            node.farewell()
