# SPDX-License-Identifier: Apache-2.0
"""Subscribing to what publishers offer, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from robot_dyn_id.nodes.runtime.robot_node import STREAM
from robot_dyn_id.recordings.bag_writer import QosProfile

NANOSECONDS = 1_000_000_000


def match_qos(offered: Sequence[QoSProfile]) -> QoSProfile:
    """The strictest QoS that all publishers meet: reliable or latched only if every one of them is."""
    reliable = all(profile.reliability == ReliabilityPolicy.RELIABLE for profile in offered)
    latched = all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in offered)
    return QoSProfile(
        depth=STREAM.depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def describe_as_in_bags(profile: QoSProfile) -> QosProfile:
    """A publisher's QoS in the words of rosbag2."""
    return {
        "history": profile.history.name.lower(),
        "depth": profile.depth,
        "reliability": profile.reliability.name.lower(),
        "durability": profile.durability.name.lower(),
        "deadline": _time(profile.deadline),
        "lifespan": _time(profile.lifespan),
        "liveliness": profile.liveliness.name.lower(),
        "liveliness_lease_duration": _time(profile.liveliness_lease_duration),
        "avoid_ros_namespace_conventions": profile.avoid_ros_namespace_conventions,
    }


def _time(duration: Duration) -> dict[str, int]:
    seconds, nanoseconds = divmod(duration.nanoseconds, NANOSECONDS)
    return {"sec": seconds, "nsec": nanoseconds}
