# SPDX-License-Identifier: Apache-2.0
"""Node `computed_torque_controller`, an example: gravity compensation or computed torque with the identified model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, RobotDynIdError, UsageError
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.effort_node import EffortNode
from robot_dyn_id.nodes.messages.conversions import read_trajectory_points
from robot_dyn_id.nodes.messages.joint_state import convert_to_seconds
from robot_dyn_id.nodes.runtime.computation import Computation, LatestComputation
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, OK, STALE
from robot_dyn_id.nodes.runtime.managed_node import autostart_parameter
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, SENSOR, publishes, subscribes
from robot_dyn_id.nodes.runtime.ros_parameters import latency_parameter, path_parameter, ros_parameter
from robot_dyn_id.parameters import COMPENSATIONS, ParameterSet
from robot_dyn_id.simulation.controllers import Gains
from robot_dyn_id.simulation.effort_control import EffortControl
from robot_dyn_id.simulation.model_law import COMPUTED_TORQUE, GRAVITY, EffortTiming, ModelLaw
from robot_dyn_id.simulation.plant import warm_up

Studied = tuple[ParameterSet, Dynamics]
"""A parameter set and its dynamics."""


@dataclass(frozen=True)
class ComputedTorqueControllerSettings:
    """ROS parameters of the controller."""

    urdf: str = path_parameter("", "URDF or xacro file of the robot; empty: from robot_description")
    law: str = ros_parameter(
        GRAVITY, "Control law: compensate gravity only, or follow trajectories", choices=(GRAVITY, COMPUTED_TORQUE)
    )
    robot_compensates: tuple[str, ...] = ros_parameter(
        (),
        "Torques that the robot's driver adds to effort commands, which are not commanded again, or none; empty: as "
        "the identified model states, which is refused where neither states it",
        choices=COMPENSATIONS,
    )
    bandwidth: float = ros_parameter(20.0, "Bandwidth of the position error under computed torque", "rad/s", 0.1, 200.0)
    proportional: tuple[float, ...] = ros_parameter(
        (), "Proportional gain, one value for all joints or one per joint; empty: from bandwidth", "1/s^2", 0.0
    )
    derivative: tuple[float, ...] = ros_parameter(
        (), "Derivative gain, one value for all joints or one per joint; empty: from bandwidth", "1/s", 0.0
    )
    exponent: float = ros_parameter(
        1.0,
        "Exponent of position errors; below 1 the feedback converges in finite time, and the gains apply to errors of "
        "1 rad (or m) and 1 rad/s",
        "",
        0.1,
        1.0,
    )
    start_droop: float = ros_parameter(
        0.0,
        "Maximum gravity sag with which the inertia of the URDF may be used until a model is identified, for masses of "
        "0.5 to 1.5 times those of the URDF (computed torque only); 0: no effort without a model",
        "rad or m",
        0.0,
    )
    latency: float = latency_parameter(0.05)
    effort_limit: tuple[float, ...] = ros_parameter(
        (),
        "Rated effort of the commands, and of the motors, which give a command and what the driver adds to it (before "
        "a model is identified its friction is unknown, and counts as 0); one value for all joints or one per joint; "
        "lowers limits of the URDF or replaces missing ones",
        "N m or N",
        0.001,
    )
    blend_time: float = ros_parameter(
        1.0,
        "Transition time from the efforts of one model to those of the next, and to zero effort where joint states "
        "have a fault",
        "s",
        0.0,
        10.0,
    )
    start_time: float = ros_parameter(
        0.1,
        "Ramp time from zero effort to that of the model, and back when the node is deactivated; an arm without brakes "
        "sags meanwhile",
        "s",
        0.0,
        10.0,
    )
    autostart: bool = autostart_parameter()

    @property
    def gains(self) -> Gains:
        """Feedback gains."""
        usual = Gains.from_bandwidth(self.bandwidth)
        return replace(
            usual,
            proportional=_per_joint(self.proportional) if self.proportional else usual.proportional,
            derivative=_per_joint(self.derivative) if self.derivative else usual.derivative,
            exponent=self.exponent,
        )


INTERFACES = (
    publishes("effort_command", Float64MultiArray, "Efforts in the joint order of the model", RELIABLE),
    subscribes("joint_states", JointState, "Measured joint states", SENSOR),
    subscribes("robot_description", String, "URDF, if no file is given", LATCHED),
    subscribes(
        "identified_parameters",
        ParameterSetMsg,
        "Identified model; if it is refused, the present one stays in use",
        LATCHED,
    ),
    subscribes("~/joint_trajectory", JointTrajectory, "Trajectory to follow under computed torque", RELIABLE),
)


class ComputedTorqueController(EffortNode):
    """Efforts in response to every joint state, from the identified model or, if enabled, the inertia of the URDF."""

    NAME = "computed_torque_controller"
    PURPOSE = (
        "example of a controller with the identified model: gravity compensation or computed torque by effort commands"
    )
    SETTINGS = ComputedTorqueControllerSettings
    INTERFACES = INTERFACES

    def set_up(self) -> None:
        """Make what does not depend on the robot.

        Raises:
            UsageError: robot_compensates contradicts itself.
        """
        super().set_up()
        settings: ComputedTorqueControllerSettings = self.settings
        timing = EffortTiming(Latency(settings.latency).stale, settings.start_time, settings.blend_time)
        self._law = ModelLaw(settings.law, settings.gains, settings.effort_limit, settings.robot_compensates, timing)
        self._description = ""
        self._offered: ParameterSetMsg | None = None
        self._studies = LatestComputation(self._study)
        self._robot: RobotModel | None = None
        self._joints = set[str]()  # of the robot, that have been in joint states
        warm_up()
        if not settings.urdf:
            self.subscription("robot_description", self._take_description)
        self.subscription("identified_parameters", self._take_parameters)
        self.subscription("~/joint_trajectory", self._follow)
        self._look()

    def configure(self) -> None:
        """Take the robot and the model that are known.

        Raises:
            MotionError: the efforts of the robot before still fade.
            ModelError: the URDF cannot be read.
            UsageError: a parameter has another number of values than the robot joints.
        """
        self.check_released()
        if self.settings.urdf:
            self._robot = RobotModel.from_file(self.settings.urdf)
        elif self._description:
            self._robot = RobotModel.from_urdf(self._description)
        if self._robot is not None:
            self._law.check(self._robot)
        self._configured = True
        self._decide()
        self._look()

    def drop(self) -> None:
        """Drop the robot and its model."""
        super().drop()
        self._law.drop()
        self._studies.drop()
        self._robot = None
        self._joints.clear()

    # --- the model

    def _take_description(self, message: Any) -> None:
        self._description = message.data
        if not self._configured or (self._robot is not None and message.data == self._robot.urdf):
            return
        if self._law.model is not None:  # an arm that is let go of falls
            self.refuse("robot_description has changed: restart the node to use the new one")
            return
        try:
            self._robot = RobotModel.from_urdf(message.data)
        except RobotDynIdError as error:
            self.refuse(f"robot_description: {error}")
        else:
            self._joints.clear()
            self._decide()

    def _take_parameters(self, message: ParameterSetMsg) -> None:
        self._offered = message
        self._decide()

    def _decide(self) -> None:
        """Use the parameters that were offered last if they may move this robot; else those in use stay."""
        if self._robot is None or not self._joints:
            return
        if self._offered is None:
            self._begin_unknown()
            return
        self._studies.submit(self._offered, self._robot, frozenset(self._joints))

    def _study(self, message: ParameterSetMsg, robot: RobotModel, joints: frozenset[str]) -> Studied:
        """Make the dynamics of a message, for a node that goes on to command."""
        parameters = ParameterSet.from_message(message)
        return parameters, self._law.make_dynamics(parameters, robot.urdf, joints)

    def _conclude(self, study: Computation[Studied]) -> None:
        """Use the model of a study, or report why it is refused."""
        try:
            parameters, dynamics = study.result()
            self._check(dynamics.regressor.model)
            self._law.use(parameters, dynamics)
        except RobotDynIdError as error:
            self._refused = f"parameters refused: {error}"
            if self._law.model is None:
                self._begin_unknown()
            if self._law.model is not None:  # an arm that is let go of falls
                self.refuse(f"identified_parameters, the model in use stays: {error}")
        else:
            self._refused = ""
            for limit in self._law.limited_uses(parameters):
                self.get_logger().warning(f"the model is fit for {limit}; see its report")
        self._look()

    def _begin_unknown(self) -> None:
        """Move by the URDF's inertia, if that is requested."""
        model, settings = self._robot, self.settings
        if self._law.start is not None or settings.law != COMPUTED_TORQUE or not settings.start_droop:
            return
        if model is None or not self._joints.issuperset(model.joint_names):
            return  # more joint states are to come
        try:
            self._check(model)
            self._law.use_urdf(model, settings.start_droop)
        except RobotDynIdError as error:
            self._refused = f"no start without a model: {error}"
        self._look()

    def _check(self, model: RobotModel) -> None:
        """Check a model; parameters that do not fit it end the node, as nothing that comes later would make them right.

        Raises:
            RobotDynIdError: see `ModelLaw.check`.
        """
        try:
            self._law.check(model)
        except UsageError as error:
            self.end = error
            raise

    # --- control

    def _take_state(self, message: Any) -> None:
        robot = self._robot
        if robot is not None and not self._joints.issuperset(new := set(robot.joint_names).intersection(message.name)):
            self._joints |= new
            self._decide()
        super()._take_state(message)

    def _follow(self, message: JointTrajectory) -> None:
        try:
            model = self._law.check_follows()
            if not self._active or self._control is None:
                raise InputError("the node is not active")
            start, now = convert_to_seconds(message.header.stamp), self._control.time
            points = read_trajectory_points(message, model.joint_names) if message.points else None
            self._law.follow(points, start, now)
        except InputError as error:
            self.refuse(f"joint trajectory: {error}")

    def _look(self) -> None:
        """See `EffortNode`; a model that was prepared meanwhile is taken up, and so is the control of the first."""
        study = self._studies.poll()
        if study is not None:
            self._conclude(study)
        if self._control is None and self._law.control is not None:
            self.take_control(self._law.control)
        super()._look()

    def describe_missing(self) -> tuple[bytes, str] | None:
        """See `EffortNode`."""
        if self._robot is None:
            return STALE, "waiting for robot_description"
        if not self._joints:
            return STALE, self.describe_obstacle("no joint states: no effort")
        if self._law.model is None:
            return (ERROR, self._refused) if self._refused else (STALE, "waiting for identified_parameters")
        return None

    def is_awaited(self) -> bool:
        """See `RobotNode`."""
        return self._law.model is None and not self._refused and self.count_publishers("identified_parameters") > 0

    def describe_commands(self) -> tuple[bytes, str]:
        """See `EffortNode`."""
        if self._law.dynamics is not None or self._law.start is None:
            return OK, f"commands efforts by {self.settings.law}"
        text = f"commands efforts by the URDF's inertia, {self._law.start.scale:.3g} times"
        unknown = "; effort_limit leaves out the driver's friction, unknown yet"
        return OK, text + unknown * ("friction" in self.settings.robot_compensates)

    def describe_limit(self, control: EffortControl, joint: int) -> str:
        """See `EffortNode`."""
        rating = f"{control.efforts.rated[joint]:g} {control.guard.model.effort_units[joint]}"
        return f"its rating, {rating}: check the model and the trajectory"

    def come_to_rest(self) -> bool:
        """Leave the motors without effort."""
        self._active = False
        self.command_rest()
        return True


def _per_joint(values: tuple[float, ...]) -> float | tuple[float, ...]:
    """A single value for all joints as a number."""
    return values[0] if len(values) == 1 else values
