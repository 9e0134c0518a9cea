# SPDX-License-Identifier: Apache-2.0
"""The node `marker_publisher`: path of a preview, and arrows of a wrench."""

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import String
from support.ros_world import ros_arguments
from support.simulated import ARM
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.model.kinematics import trace_link
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.marker_publisher import MAX_POINTS, MarkerPublisher
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, SENSOR

MODEL = RobotModel.from_urdf(ARM)


def test_refused_inputs_are_in_the_diagnostics(world):
    node = world.add(MarkerPublisher)
    preview = JointTrajectory(joint_names=list(MODEL.joint_names), points=[JointTrajectoryPoint(positions=[0.0])])
    node._take_description(String(data=ARM))
    with pytest.raises(InputError):
        node._take_preview(preview)
    assert "every point" in node.diagnosis().message
    preview.points = [JointTrajectoryPoint(positions=[0.0, 0.0, 0.0])] * 2
    node._take_preview(preview)
    assert node.diagnosis().message == "running"
    with pytest.raises(RobotDynIdError) as caught:
        node._take_description(String(data="no URDF"))
    assert node.diagnosis().message == str(caught.value)


@pytest.mark.real_time
def test_preview_and_wrench_become_markers(world):
    from visualization_msgs.msg import Marker, MarkerArray

    heard = world.heard(MarkerArray, "markers", LATCHED)
    world.add(MarkerPublisher, *ros_arguments(force_scale="0.1", link="l3"))
    descriptions = world.probe.create_publisher(String, "robot_description", LATCHED)
    previews = world.probe.create_publisher(JointTrajectory, "excitation_publisher/preview", LATCHED)
    wrenches = world.probe.create_publisher(WrenchStamped, "external_wrench", SENSOR)
    descriptions.publish(String(data=ARM))
    rows = np.linspace([0.0, 0.0, 0.0], [1.0, 0.5, -0.5], 2 * MAX_POINTS)
    points = [JointTrajectoryPoint(positions=row) for row in rows.tolist()]
    previews.publish(JointTrajectory(joint_names=list(MODEL.joint_names), points=points))
    world.until(lambda: heard, what="the path")
    line = next(marker for marker in heard[-1].markers if marker.ns == "path")
    assert (line.type, line.header.frame_id) == (Marker.LINE_STRIP, "base")
    drawn = [[point.x, point.y, point.z] for point in line.points]
    np.testing.assert_allclose(drawn, trace_link(MODEL, "l3", list(MODEL.joint_names), rows[::2]), atol=1e-12)

    wrench = WrenchStamped()
    wrench.header.frame_id = "l3"
    wrench.wrench.force.y, wrench.wrench.torque.z = 15.0, float("nan")
    wrench.wrench.torque.x = 1.0
    del heard[:]

    def arrows():
        wrenches.publish(wrench)
        return [marker for array in heard for marker in array.markers if marker.ns in ("force", "moment")]

    world.until(arrows, what="the arrows")
    force, moment = arrows()[:2]
    assert (force.ns, force.action, force.header.frame_id) == ("force", Marker.ADD, "l3")
    assert (force.points[1].x, force.points[1].y, force.points[1].z) == (0.0, 1.5, 0.0)
    assert force.lifetime.sec == 0 and force.lifetime.nanosec > 0
    assert (moment.ns, moment.action) == ("moment", Marker.DELETE)
    late = world.heard(MarkerArray, "markers", LATCHED)
    world.until(lambda: late, what="the latest message")
    assert {"path", "start", "force"} <= {marker.ns for marker in late[0].markers}
