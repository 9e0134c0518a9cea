# SPDX-License-Identifier: Apache-2.0
"""Subscription to serialized messages with a deep queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSProfile, ReliabilityPolicy

from robot_dyn_id.nodes.runtime.robot_node import STREAM, RobotNode


class RawStream:
    """Subscription to the bytes of a topic, of whatever reliability its publishers offer.

    The first subscription is reliable, as most sources of joint states are; a query of the publishers would miss the
    first messages. If a publisher offers best effort only, the middleware reports it, and the subscription is replaced.

    Attributes:
        name: full name of the topic.
        lost: messages that the middleware reported as lost.
    """

    def __init__(self, node: RobotNode, message_type: Any, topic: str, callback: Callable[[bytes], None]) -> None:
        """Subscribe; `callback` gets the bytes of each message."""
        self._node, self._type, self._topic, self._callback = node, message_type, topic, callback
        self.lost = 0
        self._subscription = self._subscribe(ReliabilityPolicy.RELIABLE)
        self.name: str = self._subscription.topic_name

    def _subscribe(self, reliability: ReliabilityPolicy) -> Any:
        events = SubscriptionEventCallbacks(
            incompatible_qos=self._node.guarded(self._incompatible), message_lost=self._node.guarded(self._lost)
        )
        profile = QoSProfile(depth=STREAM.depth, reliability=reliability)
        return self._node.create_subscription(
            self._type, self._topic, self._callback, profile, raw=True, event_callbacks=events
        )

    def _incompatible(self, event: Any) -> None:
        # The old one first: with publishers of both kinds, messages would arrive twice.
        self._node.destroy_subscription(self._subscription)
        self._subscription = self._subscribe(ReliabilityPolicy.BEST_EFFORT)
        self._node.get_logger().warning(f"{self._topic} is offered with best effort only: messages can be lost")

    def _lost(self, event: Any) -> None:
        self.lost += event.total_count_change

    def destroy(self) -> None:
        """Receive nothing more."""
        self._node.destroy_subscription(self._subscription)
