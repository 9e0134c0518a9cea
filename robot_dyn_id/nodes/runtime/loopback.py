# SPDX-License-Identifier: Apache-2.0
"""Self-test of the middleware: a message from one participant to another on this computer."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import get_rmw_implementation_identifier
from std_msgs.msg import String

from robot_dyn_id.nodes.runtime.robot_node import LATCHED

SLICE_S = 0.02
"""Longest time of one look for messages [s]."""


@dataclass(frozen=True)
class Loopback:
    """Result of a self-test.

    Attributes:
        middleware: name of the middleware (rmw).
        seconds: time from the creation of the publisher until its message was received [s]; None: it was not received.
        others: names of other nodes that were discovered.
    """

    middleware: str
    seconds: float | None
    others: tuple[str, ...]


def exchange_message(timeout: float) -> Loopback:
    """Publish a message in one participant and receive it in another, both of this process, in the domain of the user.

    Args:
        timeout: longest time to wait [s].
    """
    topic = f"/robot_dyn_id_doctor_{secrets.token_hex(4)}"
    nodes: list[Any] = []
    executors: list[Any] = []
    received: list[Any] = []
    with ExitStack() as ends:  # whatever fails, each part that exists is ended
        for number in range(2):
            context = rclpy.Context()
            rclpy.init(context=context, args=[], signal_handler_options=SignalHandlerOptions.NO)
            ends.callback(rclpy.try_shutdown, context=context)
            nodes.append(Node(f"robot_dyn_id_doctor_{number}", context=context, start_parameter_services=False))
            ends.callback(nodes[-1].destroy_node)
            executors.append(SingleThreadedExecutor(context=context))
            ends.callback(executors[-1].shutdown)
            executors[-1].add_node(nodes[-1])
        nodes[1].create_subscription(String, topic, received.append, LATCHED)
        publisher = nodes[0].create_publisher(String, topic, LATCHED)
        begin = time.monotonic()
        publisher.publish(String(data=topic))
        while not received and time.monotonic() - begin < timeout:
            executors[1].spin_once(timeout_sec=SLICE_S)
        seconds = time.monotonic() - begin if received else None
        own = {node.get_fully_qualified_name() for node in nodes}
        found = {f"{space.rstrip('/')}/{name}" for name, space in nodes[0].get_node_names_and_namespaces()}
        return Loopback(get_rmw_implementation_identifier(), seconds, tuple(sorted(found - own)))
