# SPDX-License-Identifier: Apache-2.0
"""A ROS world of its own for a test: nodes in one process, spun until something holds or a deadline passes."""

from collections.abc import Callable

from rclpy.node import Node

from robot_dyn_id.nodes.runtime.composition import Composition


def ros_arguments(**parameters: object) -> list[str]:
    """ROS arguments that set parameters; those with an empty value are left at their defaults."""
    return [word for name, value in parameters.items() if value != "" for word in ("-p", f"{name}:={value}")]


class World(Composition):
    """`add(Class, "-p", "name:=value", ...)` makes a node with ROS arguments, `until(condition)` spins."""

    @property
    def probe(self) -> Node:
        return self.client

    @property
    def executor(self) -> object:
        return self._executor

    def add(self, make: Callable[..., Node], *arguments: str, **options: object) -> Node:
        return super().add(make, arguments=arguments, **options)

    def __init__(self) -> None:
        super().__init__()
        self.faults_expected = False

    def close(self) -> None:
        """End all nodes; a callback that raised an exception, which no node passes on, fails the test."""
        broken = {node.get_name(): node.internal_error for node in self._nodes if getattr(node, "internal_errors", 0)}
        super().close()
        assert self.faults_expected or not broken, broken

    def until(self, condition: Callable[[], bool], timeout: float = 20.0, what: str = "the condition") -> None:
        super().until(condition, timeout, what)
