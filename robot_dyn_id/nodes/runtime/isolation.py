# SPDX-License-Identifier: Apache-2.0
"""ROS domain for this process alone, so that a demo or a test can neither move a robot nor be disturbed by one."""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import GraphError
from robot_dyn_id.nodes.runtime.middleware import check_middleware

DOMAINS = range(1, 101)
"""Domains to choose from: robots use 0 by default, and above 100 the ports of DDS overlap those that Linux assigns."""

LISTENING_S = 0.9
"""Time to wait for other participants: discovery takes up to 0.65 s on a computer that is not busy."""

LOOK_S = 0.02
"""Time between two looks at the graph while listening."""

ELSEWHERE = (
    "ROS_LOCALHOST_ONLY",
    "ROS_STATIC_PEERS",
    "ROS_DISCOVERY_SERVER",
    "ROS_SUPER_CLIENT",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "CYCLONEDDS_URI",
    "ZENOH_CONFIG_OVERRIDE",
    "ZENOH_ROUTER_CONFIG_URI",
    "ZENOH_SESSION_CONFIG_URI",
)
"""Environment variables that connect a process with participants in spite of its domain and discovery range."""

NO_PROFILES = ("SKIP_DEFAULT_XML_FILE", "SKIP_DEFAULT_XML")
"""Environment variables by which Fast DDS 2 and 3 ignore a profile in the working directory."""

MOTION_TYPES = (
    "control_msgs/action/FollowJointTrajectory_FeedbackMessage",
    "sensor_msgs/msg/JointState",
    "std_msgs/msg/Float64MultiArray",
    "trajectory_msgs/msg/JointTrajectory",
)
"""Message types by which robots are commanded and observed."""

_reservations: dict[int, socket.socket] = {}  # held until the process ends


def keep_to_this_host(listen: bool, domains: Iterable[int] | None = None) -> int:
    """Set the environment such that nodes made from now on meet only those of this host, in a domain of this process.

    ROS_DOMAIN_ID and ROS_AUTOMATIC_DISCOVERY_RANGE are replaced. The domain is never that of the user, in which a robot
    may be switched on at any time. Variables that connect with participants elsewhere, such as ROS_STATIC_PEERS or
    ROS_DISCOVERY_SERVER, are removed; RMW_IMPLEMENTATION stays. No process of this host takes part in the domain, which
    is reserved against other processes that call this function until this process ends.

    Args:
        listen: whether the domain is also observed by discovery for `LISTENING_S`, which finds participants in
            containers with a network of their own; False takes milliseconds and does not load ROS.
        domains: domains to try in this order; by default all of `DOMAINS` in random order.

    Returns:
        The domain.

    Raises:
        GraphError: no domain is empty.
        UsageError: RMW_IMPLEMENTATION names a middleware that is not installed.
    """
    check_middleware()
    if domains is None:
        domains = random.sample(DOMAINS, len(DOMAINS))
    users = os.environ.get("ROS_DOMAIN_ID")
    for name in ELSEWHERE:
        os.environ.pop(name, None)
    os.environ |= dict.fromkeys(NO_PROFILES, "1")
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    found = ""
    for domain in domains:
        if str(domain) == users or not _reserve(domain):
            continue
        participant = _listen(domain) if listen else ""
        if not participant:
            os.environ["ROS_DOMAIN_ID"] = str(domain)
            return domain
        found = f"; {participant} is in domain {domain}"
        _reservations.pop(domain).close()
    raise GraphError(f"no ROS domain is empty{found}: end other ROS programs on this host, and run this again")


def find_robots_outside(node: Any, namespace: str) -> str:
    """Topic in the graph by which a robot outside a namespace is commanded or observed; empty if there is none.

    Args:
        node: ROS node whose graph is examined.
        namespace: absolute namespace of the nodes that may be there.
    """
    for topic, types in node.get_topic_names_and_types():
        if not topic.startswith(f"{namespace}/") and not set(types).isdisjoint(MOTION_TYPES):
            return f"{topic} ({', '.join(types)})"
    return ""


def _reserve(domain: int) -> bool:
    """Lock a domain against other processes that reserve one; False if it is locked or in use on this host."""
    if domain in _reservations or _in_use(domain):
        return False
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0robot_dyn_id/domain/{domain}")  # Linux frees it with the process, however that ends
    except OSError:
        lock.close()
        return False
    _reservations[domain] = lock
    return True


def _in_use(domain: int) -> bool:
    """Whether a UDP port that DDS assigns to the domain (7400 + 250 for each domain) is bound on this host."""
    first = 7400 + 250 * domain
    for table in (Path("/proc/net/udp"), Path("/proc/net/udp6")):
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        if any(first <= int(line.split()[1].rpartition(":")[2], 16) < first + 250 for line in lines):
            return True
    return False


def _listen(domain: int) -> str:
    """Participant that discovery finds in a domain; empty if it finds none."""
    import rclpy
    from rclpy.node import Node
    from rclpy.signals import SignalHandlerOptions

    name = f"probe_{secrets.token_hex(4)}"
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    node = Node(name, context=context, enable_rosout=False, start_parameter_services=False)
    try:
        end = time.monotonic() + LISTENING_S
        while time.monotonic() < end:
            found = _others(node, name)
            if found:
                return found
            time.sleep(LOOK_S)
        return ""
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


def _others(node: Any, name: str) -> str:
    """Node other than `name`, or else topic that is not its own; empty if the graph holds neither."""
    for other, namespace in node.get_node_names_and_namespaces():
        if other != name:
            return f"node {namespace.rstrip('/')}/{other}"
    for topic, _ in node.get_topic_names_and_types(no_demangle=True):
        if name not in topic and topic not in ("ros_discovery_info", "rt/parameter_events", "rt/rosout"):
            return f"topic {topic}"
    return ""
