# SPDX-License-Identifier: Apache-2.0
"""A simulator node with its topics, and publishers of commands and parameter sets for it."""

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Log
from rclpy.qos import QoSProfile, ReliabilityPolicy
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, SENSOR
from robot_dyn_id.nodes.simulator import Simulator
from support.model_nodes import ARM, COULOMB, VISCOUS
from support.robots import PLANAR3R
from support.ros_world import ros_arguments

DEEP = QoSProfile(depth=5000, reliability=ReliabilityPolicy.RELIABLE)
TRAJECTORY = "joint_trajectory_controller/joint_trajectory"


def seconds(stamp):
    return stamp.sec + 1e-9 * stamp.nanosec


def trajectory(names, target, duration=1.0, **fields):
    point = JointTrajectoryPoint(positions=[float(x) for x in target])
    point.velocities = point.accelerations = [0.0] * len(target)
    for name, value in fields.items():
        setattr(point, name, value)
    point.time_from_start.sec, point.time_from_start.nanosec = int(duration), int(duration % 1 * 1e9)
    return JointTrajectory(joint_names=list(names), points=[point])


class Commander:
    """A planar arm, or another, with what it says, and publishers of commands to it."""

    def __init__(self, world, urdf=PLANAR3R, namespace="", trajectories=TRAJECTORY, **parameters):
        self.world, self.namespace = world, namespace
        if "clock" not in parameters:
            world.keep_time()
        self.states, self.log = self.hear(JointState, "joint_states", DEEP), world.heard(Log, "/rosout", DEEP)
        self.diagnostics = self.hear(DiagnosticArray, "diagnostics", RELIABLE)
        options = {"namespace": namespace} if namespace else {}
        self.node = world.add(Simulator, *ros_arguments(urdf=urdf, **parameters), **options)
        self.trajectories = world.probe.create_publisher(JointTrajectory, self.topic(trajectories), RELIABLE)
        self.efforts = world.probe.create_publisher(Float64MultiArray, self.topic("effort_command"), SENSOR)
        ready = (self.trajectories, self.efforts)
        world.until(lambda: self.states and all(p.get_subscription_count() for p in ready), what="simulator")

    def topic(self, name):
        return f"{self.namespace}/{name}" if self.namespace else name

    def hear(self, message_type, name, qos):
        return self.world.heard(message_type, self.topic(name), qos)

    @property
    def names(self):
        return self.states[0].name

    @property
    def position(self):
        return np.array(self.states[-1].position)

    def logged(self, words):
        return any(words in message.msg for message in self.log)

    def passes(self, duration):
        """Until so much of the robot's time has passed."""
        end = seconds(self.states[-1].header.stamp) + duration
        self.world.until(lambda: seconds(self.states[-1].header.stamp) >= end, what=f"{duration} s of states")


FRICTION = {"viscous": f"[{VISCOUS}]", "coulomb": f"[{COULOMB}]", "smoothing_width": "0.02"}


class Scene(Commander):
    """A simulated arm with friction, and a publisher of parameter sets."""

    def __init__(self, world, tmp_path, **parameters):
        urdf = tmp_path / "arm.urdf"
        urdf.write_text(ARM)
        super().__init__(world, urdf, **{**FRICTION, "rate": "400.0", "publish_rate": "200.0", **parameters})
        self.parameters = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
        self.efforts_heard = world.heard(Float64MultiArray, "effort_command", SENSOR)

    def level(self, node):
        statuses = [s for m in self.diagnostics for s in m.status if s.name == f"/{node}: condition"]
        return (statuses[-1].level, statuses[-1].message) if statuses else (None, "")

    def until_reported(self, points, words):
        """Until the monitor begins its message with words, over a motion that is repeated until then.

        A busy computer interrupts the joint states, after which the monitor counts the motion only when its filters
        have settled: a single motion may be too little.
        """
        end = points.points[-1].time_from_start
        duration, begun = seconds(end) + 0.5, -np.inf

        def reported():
            nonlocal begun
            now = seconds(self.states[-1].header.stamp)
            if now > begun + duration:
                self.trajectories.publish(points)
                begun = now
            return self.level("torque_residual_monitor")[1].startswith(words)

        self.world.until(reported, what=words)

    def values(self, node):
        (status,) = [s for m in self.diagnostics for s in m.status if s.name == f"/{node}: condition"][-1:]
        return {pair.key: pair.value for pair in status.values}
