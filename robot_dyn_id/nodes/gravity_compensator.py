# SPDX-License-Identifier: Apache-2.0
"""Node `gravity_compensator`: holds the weight of an arm without torque sensors by efforts in drive units."""

from __future__ import annotations

from dataclasses import dataclass

from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, RobotDynIdError, UsageError
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.files.gravity import StoredGravity, parse_gravity, read_gravity
from robot_dyn_id.loads.gravity_compensation import GravityCompensation, GravityLaw
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.effort_node import EffortNode
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, OK, STALE, WARN
from robot_dyn_id.nodes.runtime.managed_node import autostart_parameter
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, SENSOR, publishes, subscribes
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.runtime.ros_parameters import changeable, latency_parameter, path_parameter, ros_parameter
from robot_dyn_id.simulation.effort_control import EffortControl, slew_rates

CALIBRATION = "gravity_calibration"

LARGEST_TEXT = 1_000_000
"""Length of a calibration on the topic above which it is not read."""


@dataclass(frozen=True)
class GravityCompensatorSettings:
    """ROS parameters of the node."""

    urdf: str = path_parameter("", "URDF or xacro file of the calibration; empty: received on robot_description")
    calibration: str = path_parameter(
        "", "File gravity.yaml of `robot-dyn-id gravity`; empty: received on the topic gravity_calibration"
    )
    joints: tuple[str, ...] = ros_parameter(
        (), "Order of the joints in effort_command, those of the calibration; empty: as in the calibration"
    )
    scale: float = changeable(ros_parameter(1.0, "Share of gravity that is commanded", "", 0.0, 1.0))
    effort_limit: tuple[float, ...] = ros_parameter(
        (),
        "Largest effort in drive units, one value for all joints or one per joint in the order of the calibration; "
        "empty: the largest that each drive showed at the calibration",
        "drive units",
        1e-6,
    )
    ramp_time: float = ros_parameter(
        1.0,
        "Duration of every change of the efforts: from those that the joint states have at the start (zero if they "
        "have none), to another scale or calibration, and to zero at the end, when an arm without brakes sags",
        "s",
        0.05,
        4.0,
    )
    latency: float = latency_parameter()
    autostart: bool = autostart_parameter()


class GravityCompensator(EffortNode):
    """Efforts against gravity in response to every joint state; see `GravityCompensation`."""

    NAME = "gravity_compensator"
    PURPOSE = (
        "holds the weight of an arm without torque sensors by efforts in drive units, from its gravity calibration"
    )
    SETTINGS = GravityCompensatorSettings
    CHANNELS = ("position",)
    INTERFACES = (
        publishes(
            "effort_command",
            Float64MultiArray,
            "Efforts in drive units, in the order of the parameter joints",
            RELIABLE,
        ),
        subscribes("joint_states", JointState, "Measured positions, and efforts for the start", SENSOR),
        DESCRIPTION,
        subscribes(
            CALIBRATION,
            String,
            "Text of gravity.yaml, if no file is given; if it is refused, the present one stays in use",
            LATCHED,
        ),
    )

    def set_up(self) -> None:
        """Make what does not depend on the robot."""
        super().set_up()
        self._source: RobotSource | None = None
        self._urdf = ""
        self._offered: StoredGravity | None = None
        self._law: GravityCompensation | None = None
        self._drifting: tuple[str, ...] = ()
        if not self.settings.calibration:
            self.subscription(CALIBRATION, self._take_calibration)

    def configure(self) -> None:
        """Read the calibration and the robot, as far as they are given.

        Raises:
            MotionError: the efforts of the time before still fade.
            RobotDynIdError: a file that cannot be read, or a calibration that is refused.
        """
        self.check_released()
        if self.settings.calibration:
            self._offered = read_gravity(self.settings.calibration)
        self._source = RobotSource(self, self.settings.urdf, (), self._take_robot)
        self._configured = True
        self._look()

    def drop(self) -> None:
        """Drop the robot and its calibration."""
        super().drop()
        if self._source is not None:
            self._source.close()
        self._source, self._law, self._urdf = None, None, ""

    # --- robot and calibration

    def _take_robot(self, model: RobotModel) -> None:
        self._urdf = model.urdf
        self._decide()

    def _take_calibration(self, message: String) -> None:
        try:
            if len(message.data) > LARGEST_TEXT:
                raise InputError(f"it has {len(message.data)} characters, more than {LARGEST_TEXT}")
            before, self._offered = self._offered, parse_gravity(message.data, CALIBRATION)
            try:
                self._decide()
            except RobotDynIdError:
                self._offered = before
                raise
        except RobotDynIdError as error:
            if self._control is None:
                self._refused = f"calibration refused: {error}"
            else:  # an arm that is let go of falls
                self.refuse(f"calibration, the one in use stays: {error}")
        self._look()

    def _decide(self) -> None:
        """Use the calibration that was offered last for the robot, if both are known.

        Raises:
            RobotDynIdError: it may not move this robot.
        """
        if not self._urdf or self._offered is None:
            return
        offered, names, settings = self._offered, self._offered.joint_names, self.settings
        offered.quality.refuse_uncertain(names)
        gravity = GravityLaw(offered.model(self._urdf), offered.by_joint)
        rated = offered.quality.largest
        if settings.effort_limit:
            rated = make_joint_array(settings.effort_limit, names, "parameter effort_limit")
            gravity.check_rated(rated)
        places = self._order_of_command(names)
        if self._control is None or self._law is None:
            self._law = GravityCompensation(gravity, self.settings.scale)
            self.take_control(self._law.make_control(rated, settings.ramp_time, Latency(settings.latency).stale))
        else:
            self._law.replace(gravity)
            self._control.efforts.replace_rated(rated, slew_rates(gravity.model, rated))
        self._places = places
        self._drifting, self._refused = offered.quality.drifting(names), ""

    def _order_of_command(self, names: tuple[str, ...]) -> list[int]:
        """Place in the calibration of every joint of the command.

        Raises:
            UsageError: the parameter `joints` has other joints than the calibration.
        """
        wanted = self.settings.joints or names
        if sorted(wanted) != sorted(names):
            raise UsageError(
                f"parameter joints: {', '.join(wanted)} are not the joints of the calibration, {', '.join(names)}: "
                "give the order in which the controller takes them, or calibrate the joints that it commands"
            )
        return [names.index(name) for name in wanted]

    def follow_settings(self) -> None:
        """Go over to another scale."""
        if self._law is not None and self._control is not None and self._law.scale != self.settings.scale:
            self._law.scale = self.settings.scale
            self._control.efforts.change()

    def read_present_efforts(self, message: JointState) -> Array | None:
        """See `EffortNode`."""
        if not self._order.has(message, "effort"):
            return None
        try:
            return self._order.read(message, ("effort",))[0]
        except InputError as error:
            self.refuse(f"joint state: {error}: the efforts begin at zero")
            return None

    # --- condition

    def describe_missing(self) -> tuple[bytes, str] | None:
        """See `EffortNode`."""
        source = self._source
        if self._refused:
            return ERROR, self._refused
        if source is not None and source.problem:
            return (STALE if source.problem.startswith("waiting") else ERROR), source.problem
        return None if self._control is not None else (STALE, f"waiting for {self.resolve_topic_name(CALIBRATION)}")

    def describe_commands(self) -> tuple[bytes, str]:
        """See `EffortNode`."""
        text = f"compensates gravity, scale {self.settings.scale:g}"
        if self._drifting:
            names = ", ".join(self._drifting)
            return WARN, f"{text}; may drift, as friction is below the error of the calibration: {names}"
        return OK, text

    def describe_limit(self, control: EffortControl, joint: int) -> str:
        """See `EffortNode`."""
        return f"{control.efforts.rated[joint]:.4g} drive units: the arm may sink"

    def come_to_rest(self) -> bool:
        """Reduce the efforts to zero for good; at once after an internal error, or without joint states."""
        self.release()
        if self.internal_errors or not self.count_publishers("joint_states"):
            self.command_rest()
        return self._control is None or not self._control.releasing
