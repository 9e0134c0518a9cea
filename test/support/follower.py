# SPDX-License-Identifier: Apache-2.0
"""A robot behind a joint_trajectory_controller, for tests: it follows JointTrajectory messages exactly.

Like the controller of ros2_controllers, it replaces its trajectory by every message, begins at the stamp or, where that
is 0, on arrival, comes from its last commanded state, and interpolates with quintics, or with cubics where accelerations
are missing. Faults can be put into the joint states that it publishes.
"""

import time

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.nodes.runtime.robot_node import RELIABLE

PERIOD_S = 0.01
"""Time between two joint states [s]."""


def interpolate(t, before, after):
    """Position, velocity and acceleration at `t` between two (time, q, dq, ddq or None)."""
    (t0, q0, v0, a0), (t1, q1, v1, a1) = before, after
    T, way = t1 - t0, q1 - q0
    if a0 is None or a1 is None:
        c = [q0, v0, 3 * way / T**2 - (2 * v0 + v1) / T, -2 * way / T**3 + (v0 + v1) / T**2]
    else:
        c = [
            q0,
            v0,
            a0 / 2,
            (20 * way - (8 * v1 + 12 * v0) * T - (3 * a0 - a1) * T**2) / (2 * T**3),
            (-30 * way + (14 * v1 + 16 * v0) * T + (3 * a0 - 2 * a1) * T**2) / (2 * T**4),
            (12 * way - 6 * (v1 + v0) * T - (a0 - a1) * T**2) / (2 * T**5),
        ]
    x = t - t0
    return (
        sum(c[k] * x**k for k in range(len(c))),
        sum(k * c[k] * x ** (k - 1) for k in range(1, len(c))),
        sum(k * (k - 1) * c[k] * x ** (k - 2) for k in range(2, len(c))),
    )


class Follower(Node):
    """The robot.

    Attributes:
        received: arrival, by `time`, and message of every trajectory.
        speeds: speed of every joint at those arrivals.
        ends: seconds from each of them to the rest in which the trajectory ends.
        history: steady time, position and velocity of every joint state, whether it was published or not.
        speak: set to False for silence of the joint states.
        deaf: set to True to ignore every trajectory.
        disturb: takes and returns a JointState before it is published.
    """

    def __init__(self, names, start, topic="joint_trajectory_controller/joint_trajectory", order=None, **options):
        super().__init__("follower", **options)
        self.names, self.order = list(names), list(order or names)
        self.q = np.array(start, dtype=float)
        self.dq = np.zeros_like(self.q)
        self.ddq = np.zeros_like(self.q)
        self.points, self.updated = [], None
        self.received, self.speeds, self.ends, self.history = [], [], [], []
        self.speak, self.deaf, self.disturb = True, False, lambda message: message
        self.states = self.create_publisher(JointState, "joint_states", RELIABLE)
        self.topic = topic
        self.come()
        self.create_timer(PERIOD_S, self.tick)

    def come(self):
        """Begin to listen to commands."""
        self.commands = self.create_subscription(JointTrajectory, self.topic, self.follow, RELIABLE)

    def leave(self):
        """Listen no more, as when the controller is unloaded; the joint states go on."""
        self.destroy_subscription(self.commands)

    @property
    def time(self):
        """Time of its joint states [s], which does not pass while the process is held up."""
        return PERIOD_S * len(self.history)

    def now(self):
        return self.get_clock().now().nanoseconds * 1e-9

    def follow(self, message):
        if self.deaf:
            return
        now = self.now()
        self.move(now)
        self.received.append((self.time, message))
        self.speeds.append(np.abs(self.dq))
        assert list(message.joint_names) == self.names
        stamp = message.header.stamp.sec + message.header.stamp.nanosec * 1e-9
        begin = stamp or now
        points = []
        for point in message.points:
            t = begin + point.time_from_start.sec + point.time_from_start.nanosec * 1e-9
            assert not points or t > points[-1][0], "times must grow"
            acceleration = np.array(point.accelerations) if len(point.accelerations) else None
            points.append((t, np.array(point.positions), np.array(point.velocities), acceleration))
        moving = [k for k, point in enumerate(points) if not np.array_equal(point[1], points[-1][1]) or point[2].any()]
        self.ends.append(points[min(moving[-1] + 1 if moving else 0, len(points) - 1)][0] - now)
        assert not points[-1][2].any(), "the controller refuses a trajectory that does not end at rest"
        if points[-1][0] < now and stamp:
            return  # as the controller refuses a trajectory whose end is past
        self.points = [(now, self.q, self.dq, self.ddq), *points] if points[0][0] > now else points

    def move(self, now):
        """Be where the trajectory is."""
        later = next((k for k, point in enumerate(self.points) if point[0] > now), None)
        if later:
            self.q, self.dq, self.ddq = interpolate(now, self.points[later - 1], self.points[later])
        elif self.points and later is None:
            self.q, self.dq, self.ddq = self.points[-1][1], np.zeros_like(self.q), np.zeros_like(self.q)

    def tick(self):
        self.move(self.now())
        self.history.append((time.monotonic(), self.q, self.dq))
        if not self.speak:
            return
        places = [self.names.index(name) for name in self.order]
        message = JointState(name=self.order, position=self.q[places].tolist(), velocity=self.dq[places].tolist())
        message.effort = [0.0] * len(places)
        message.header.stamp = self.get_clock().now().to_msg()
        message = self.disturb(message)
        if message is not None:
            self.states.publish(message)

    def at_rest(self):
        return not self.dq.any()
