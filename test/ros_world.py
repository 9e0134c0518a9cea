"""A ROS world of its own for a test: nodes in one executor, spun until something holds or a deadline passes."""

from collections.abc import Callable

import rclpy
from rclpy.node import Node

from robot_dyn_id.nodes.running import make_executor, spin


class World:
    """Real nodes over real DDS in one process.

    Use `add(Class, "-p", "name:=value", ...)` to make a node with ROS arguments, `until(condition)` to spin.
    """

    def __init__(self) -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.executor = make_executor(self.context)
        self.nodes: list[Node] = []
        self.probe = self.add(lambda **options: Node("probe", **options))

    def add(self, make: Callable[..., Node], *arguments: str, **options: object) -> Node:
        cli = ["--ros-args", *arguments] if arguments else []
        node = make(context=self.context, cli_args=cli, **options)
        self.nodes.append(node)
        self.executor.add_node(node)
        return node

    def remove(self, node: Node) -> None:
        self.executor.remove_node(node)
        self.nodes.remove(node)
        node.destroy_node()

    def until(self, condition: Callable[[], bool], timeout: float = 20.0, what: str = "") -> None:
        assert spin(self.executor, condition, timeout), f"not within {timeout:g} s: {what or condition}"

    def heard(self, message_type: type, topic: str, qos: object) -> list:
        """The list that messages on a topic are appended to."""
        messages: list = []
        self.probe.create_subscription(message_type, topic, messages.append, qos)
        return messages

    def call(self, service_type: type, name: str, request: object = None, timeout: float = 20.0) -> object:
        client = self.probe.create_client(service_type, name)
        self.until(client.service_is_ready, timeout, f"service {name}")
        future = client.call_async(service_type.Request() if request is None else request)
        self.until(future.done, timeout, f"answer of {name}")
        return future.result()

    def close(self) -> None:
        self.executor.shutdown()
        for node in self.nodes:
            node.destroy_node()
        rclpy.shutdown(context=self.context)
