# SPDX-License-Identifier: Apache-2.0
"""Node `marker_publisher`: markers for RViz of a previewed excitation and of the external wrench."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, WrenchStamped
from std_msgs.msg import ColorRGBA, String
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.model.kinematics import trace_link
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription, find_root_link
from robot_dyn_id.nodes.messages.message_types import find_message_class
from robot_dyn_id.nodes.runtime.diagnostics import OK, WARN, Diagnosis
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, SENSOR, RobotNode, publishes, subscribes
from robot_dyn_id.nodes.runtime.ros_parameters import changeable, ros_parameter

MARKERS = "visualization_msgs/msg/MarkerArray"

MAX_POINTS = 1000
"""Number of points of the drawn path; longer previews are thinned evenly."""

LIFETIME = Duration(sec=0, nanosec=500_000_000)
"""Time after which an arrow vanishes that is not repeated: no wrench is known any more."""

PATH_COLOR = ColorRGBA(r=0.2, g=0.6, b=1.0, a=1.0)
START_COLOR = ColorRGBA(r=0.1, g=0.8, b=0.2, a=1.0)
FORCE_COLOR = ColorRGBA(r=0.9, g=0.2, b=0.1, a=1.0)
MOMENT_COLOR = ColorRGBA(r=0.9, g=0.6, b=0.1, a=1.0)


@dataclass(frozen=True)
class MarkerPublisherSettings:
    """ROS parameters of the marker publisher."""

    link: str = ros_parameter("", "Link whose path is drawn; empty: the one that the last joint moves")
    force_scale: float = changeable(ros_parameter(0.02, "Length of an arrow per force", "m/N", 1e-5, 10.0))
    moment_scale: float = changeable(ros_parameter(0.1, "Length of an arrow per moment", "m/(N m)", 1e-5, 10.0))


class MarkerPublisher(RobotNode):
    """Publisher of markers; see `PURPOSE` and `INTERFACES`."""

    NAME = "marker_publisher"
    PURPOSE = "publishes markers for RViz: the path of a previewed excitation, and the external wrench as arrows"
    SETTINGS = MarkerPublisherSettings
    INTERFACES = (
        publishes(
            "markers",
            MARKERS,
            "Path in the root link of the URDF, and arrows of force and moment in the frame of the wrench; every "
            "message has all of them",
            LATCHED,
        ),
        subscribes("excitation_publisher/preview", JointTrajectory, "Complete excitation of a dry run", LATCHED),
        subscribes("external_wrench", WrenchStamped, "Wrench of the environment; one with NaN has no arrow", SENSOR),
        subscribes("robot_description", String, "URDF of the robot", LATCHED),
    )

    def begin(self) -> None:
        """Set the node up.

        Raises:
            InputError: the package visualization_msgs is not installed.
        """
        kind = find_message_class(MARKERS)
        self._array, self._marker = kind, find_message_class("visualization_msgs/msg/Marker")
        self._markers = self.create_publisher(kind, "markers", LATCHED)
        self._model: RobotModel | None = None
        self._root = ""
        self._preview: JointTrajectory | None = None
        self._path: list[Any] = []
        self._arrows: list[Any] = []
        self._refused = ""
        self.subscription("robot_description", self._take_description)
        self.subscription("excitation_publisher/preview", self._take_preview)
        self.subscription("external_wrench", self._take_wrench)

    def diagnosis(self) -> Diagnosis:
        """Diagnosis by the inputs that are missing or refused."""
        if self._refused:
            return Diagnosis(WARN, self._refused)
        return Diagnosis(OK, "waiting for robot_description" if self._model is None else "running")

    def _take_description(self, message: Any) -> None:
        with self._refusing():
            self._model, self._path = None, []  # a path of another robot would be wrong
            self._root = find_root_link(RobotDescription(message.data).root())
            self._model = RobotModel.from_urdf(message.data)
            self._draw_path()

    def _take_preview(self, message: Any) -> None:
        with self._refusing():
            self._preview, self._path = message, []
            self._draw_path()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Keep the reason of a refused input for the diagnostics; a path of an earlier one is removed."""
        self._refused = ""
        try:
            yield
        except RobotDynIdError as error:
            self._refused = str(error)
            self._path = [self._removed("path"), self._removed("start")]
            self._publish()
            raise

    def _draw_path(self) -> None:
        """Publish the path once robot and preview are known."""
        if self._model is None or self._preview is None or not self._preview.points:
            return
        step = math.ceil(len(self._preview.points) / MAX_POINTS)
        rows = [point.positions for point in self._preview.points[::step]]
        path = trace_link(self._model, self.settings.link, list(self._preview.joint_names), rows)
        line = self._new_marker("path", self._marker.LINE_STRIP, PATH_COLOR, self._root)
        line.scale.x = 0.005
        line.points = [Point(x=x, y=y, z=z) for x, y, z in path.tolist()]
        start = self._new_marker("start", self._marker.SPHERE, START_COLOR, self._root)
        start.scale.x = start.scale.y = start.scale.z = 0.03
        start.pose.position = line.points[0]
        self._path = [line, start]
        self._publish()

    def _take_wrench(self, message: Any) -> None:
        force, moment = message.wrench.force, message.wrench.torque
        self._arrows = []
        for name, color, vector, scale in (
            ("force", FORCE_COLOR, force, self.settings.force_scale),
            ("moment", MOMENT_COLOR, moment, self.settings.moment_scale),
        ):
            tip = [scale * value for value in (vector.x, vector.y, vector.z)]
            if not all(map(math.isfinite, tip)) or not any(tip):  # a part of a vector would point elsewhere
                self._arrows.append(self._removed(name))
                continue
            arrow = self._new_marker(name, self._marker.ARROW, color, message.header.frame_id)
            arrow.header.stamp = message.header.stamp
            arrow.scale.x, arrow.scale.y = 0.01, 0.02
            arrow.points = [Point(), Point(x=tip[0], y=tip[1], z=tip[2])]
            arrow.lifetime = LIFETIME
            self._arrows.append(arrow)
        self._publish()

    def _publish(self) -> None:
        """Publish all markers: who comes later receives the latest message alone."""
        self._markers.publish(self._array(markers=[*self._path, *self._arrows]))

    def _removed(self, name: str) -> Any:
        return self._marker(ns=name, id=0, action=self._marker.DELETE)

    def _new_marker(self, name: str, kind: int, color: Any, frame: str) -> Any:
        marker = self._marker(ns=name, id=0, type=kind, color=color)
        marker.header.frame_id = frame
        marker.pose.orientation.w = 1.0
        return marker
