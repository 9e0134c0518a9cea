"""Node `controller`, an example: gravity compensation or computed torque with the identified model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.controllers import Gains, StartInertia, computed_torque, usable_dynamics
from robot_dyn_id.dataset import Array
from robot_dyn_id.dynamics import Dynamics
from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.condition import Condition
from robot_dyn_id.nodes.contract import (
    ERROR,
    LATCHED,
    OK,
    PUBLISHES,
    RELIABLE,
    SENSOR,
    STALE,
    SUBSCRIBES,
    Diagnosis,
    Interface,
    RobotNode,
)
from robot_dyn_id.nodes.conversions import parameter_set, waypoints
from robot_dyn_id.nodes.joint_state import JointOrder, seconds
from robot_dyn_id.nodes.robot_source import as_text
from robot_dyn_id.nodes.ros_parameters import ros_parameter
from robot_dyn_id.nodes.running import run
from robot_dyn_id.plant import warm_up
from robot_dyn_id.robot import RobotModel
from robot_dyn_id.trajectory_tracking import Setpoint, TrajectoryTracker
from robot_dyn_id.urdf import urdf_text

GRAVITY, COMPUTED_TORQUE = "gravity_compensation", "computed_torque"

LOOKS = 4
"""Looks at the age of the joint states per timeout."""


@dataclass(frozen=True)
class ControllerSettings:
    """ROS parameters of the controller."""

    urdf: str = ros_parameter("", "URDF or xacro file of the robot; empty: from robot_description")
    law: str = ros_parameter(
        GRAVITY, "Only carry the arm's weight, or follow trajectories", choices=(GRAVITY, COMPUTED_TORQUE)
    )
    bandwidth: float = ros_parameter(20.0, "Of the position error under computed torque", "rad/s", 0.1, 200.0)
    start_droop: float = ros_parameter(
        0.0,
        "Under computed torque, move by the URDF's inertia alone until there is a model: the arm hangs at most so far "
        "from its setpoint if each body has 0.5 to 1.5 times the mass that the URDF says; 0: no effort without a model",
        "rad or m", 0.0)  # fmt: skip
    timeout: float = ros_parameter(0.05, "Age at which joint states are stale: no effort is commanded", "s", 0.002)


class Controller(RobotNode):
    """Answers every joint state with efforts, by a model of this very robot or, if told so, its URDF's inertia."""

    NAME = "controller"
    PURPOSE = "moves a robot by effort commands from the identified model: an example of a controller that uses it"
    SETTINGS = ControllerSettings
    INTERFACES = (
        Interface(PUBLISHES, "effort_command", Float64MultiArray, "Efforts, in the model's order of joints", SENSOR),
        Interface(SUBSCRIBES, "joint_states", JointState, "What the robot does", SENSOR),
        Interface(SUBSCRIBES, "robot_description", String, "The URDF, if no file is given", LATCHED),
        Interface(
            SUBSCRIBES,
            "identified_parameters",
            ParameterSetMsg,
            "The model; one that is refused leaves the one in use",
            LATCHED,
        ),
        Interface(SUBSCRIBES, "~/joint_trajectory", JointTrajectory, "Followed under computed torque", RELIABLE),
    )

    def begin(self) -> None:
        """Set the node up.

        Raises:
            ModelError: the URDF cannot be read.
        """
        self._commands, self._condition = self.publisher("effort_command"), Condition(self.get_logger())
        self._gains = Gains.of_bandwidth(self.settings.bandwidth)
        self._dynamics: Dynamics | None = None
        self._start: StartInertia | None = None  # used until there are dynamics
        self._offered: ParameterSetMsg | None = None
        self._refused = ""
        self._tracker: TrajectoryTracker | None = None  # while joint states are fresh
        self._urdf, self._joints = "", set[str]()
        self._heard, self._time, self._message = -np.inf, 0.0, Float64MultiArray()
        if self.settings.urdf:
            self._urdf = urdf_text(self.settings.urdf)[0]
        else:
            self.subscription("robot_description", self._take_description)
        warm_up()
        self.subscription("identified_parameters", self._take_parameters)
        self.subscription("joint_states", self._take_state)
        self.subscription("~/joint_trajectory", self._follow)
        self.create_timer(self.settings.timeout / LOOKS, self._look, clock=self.steady)
        self._look()

    # --- the model

    def _take_description(self, message: Any) -> None:
        text = as_text(message.data)
        if text != self._urdf:
            self._urdf, self._dynamics, self._start = text, None, None
            self._decide()

    def _take_parameters(self, message: Any) -> None:
        self._offered = message
        self._decide()

    def _decide(self) -> None:
        """Use the parameters that were offered last if they may move this robot; else those in use stay."""
        if not self._urdf or not self._joints:
            return
        if self._offered is None:
            self._begin_unknown()
            return
        try:
            parameters = parameter_set(self._offered)
            self._dynamics = usable_dynamics(
                parameters, self._urdf, self._joints, needs_mass_matrix=self.settings.law == COMPUTED_TORQUE
            )
        except InputError as error:
            self._refused = f"parameters refused: {error}"
            if self._model is None:
                self._begin_unknown()
            if self._model is not None:  # an arm that is let go of falls
                self._condition.refuse(f"identified_parameters, the model in use stays: {error}")
        else:
            self._order, self._tracker, self._refused = JointOrder(parameters.joint_names), None, ""
        self._look()

    def _begin_unknown(self) -> None:
        """Move by the URDF's inertia, if that is asked for."""
        if self._start is not None or self.settings.law != COMPUTED_TORQUE or not self.settings.start_droop:
            return
        try:
            model = RobotModel.from_urdf(self._urdf)
            if not self._joints.issuperset(model.joint_names):
                return  # more joint states are to come
            self._start = StartInertia.anywhere(self.settings.start_droop, model, self._gains)
        except RobotDynIdError as error:
            self._refused = f"no start without a model: {error}"
        else:
            self._order, self._tracker = JointOrder(model.joint_names), None
        self._look()

    @property
    def _model(self) -> RobotModel | None:
        """The robot that can be moved; None if none can."""
        if self._dynamics is not None:
            return self._dynamics.regressor.model
        return None if self._start is None else self._start.prior.regressor.model

    # --- control

    def _take_state(self, message: Any) -> None:
        if not self._joints.issuperset(message.name):
            self._joints.update(message.name)
            self._heard = self._seconds()
            self._decide()
        if self._model is None or not self._order.concerns(message):
            return
        try:
            q, dq = self._order.read(message, ("position", "velocity"))
        except InputError as error:
            self._condition.refuse(f"joint state: {error}")
            return
        self._heard, self._time = self._seconds(), seconds(message.header.stamp)
        if not self.namesakes.settled:  # another controller of this name may command the robot
            return
        if self._tracker is None:
            self._tracker = TrajectoryTracker(q)
        self._message.data = self._effort(self._tracker.setpoint(self._time), q, dq).tolist()
        self._commands.publish(self._message)

    def _effort(self, setpoint: Setpoint, q: Array, dq: Array) -> Array:
        if self._dynamics is None:
            assert self._start is not None
            return self._start.effort(setpoint, q, dq, self._gains)
        if self.settings.law == GRAVITY:
            return self._dynamics.gravity(q)
        return computed_torque(self._dynamics, setpoint, q, dq, self._gains)

    def _follow(self, message: Any) -> None:
        try:
            if self._model is None or self._tracker is None or self.settings.law != COMPUTED_TORQUE:
                raise InputError(f"needs a model, joint states, and the law {COMPUTED_TORQUE}")
            if message.points:
                points = waypoints(message, self._model.joint_names)
                self._tracker.follow(points, seconds(message.header.stamp) or self._time, self._time)
            else:
                self._tracker.hold(self._time)
        except InputError as error:
            self._condition.refuse(f"joint trajectory: {error}")

    def _seconds(self) -> float:
        return 1e-9 * float(self.steady.now().nanoseconds)

    def _look(self) -> None:
        """Say how things are; joint states that have ceased get one last command, zero."""
        fresh = self._seconds() - self._heard <= self.settings.timeout
        if self._tracker is not None and not fresh:
            self._tracker = None  # the robot may be elsewhere when it comes back
            self._message.data = [0.0] * len(self._message.data)
            self._commands.publish(self._message)
        if not self._urdf:
            self._condition.report(STALE, "waiting for robot_description")
        elif not self._joints or (self._model is not None and not fresh):
            what = f"joint states are older than {self.settings.timeout:g} s" if self._joints else "no joint states"
            publishers, age = self.count_publishers("joint_states"), self._seconds() - self._heard
            values = {"age of joint states [s]": f"{age:.3f}"}
            self._condition.report(STALE, f"{what}: no effort; joint_states has {publishers} publishers", values)
        elif self._model is not None and not self.namesakes.settled:
            self._condition.report(STALE, f"no effort yet: {self.namesakes.obstacle()}")
        elif self._dynamics is not None:
            self._condition.report(OK, f"commands efforts by {self.settings.law}")
        elif self._start is not None:
            self._condition.report(OK, f"commands efforts by the URDF's inertia, {self._start.scale:.3g} times")
        elif self._refused:
            self._condition.report(ERROR, self._refused)
        else:
            self._condition.report(STALE, "waiting for identified_parameters")

    def stop(self) -> bool:
        """Leave the motors without effort."""
        self._dynamics = self._start = None
        if self._message.data:
            self._message.data = [0.0] * len(self._message.data)
            self._commands.publish(self._message)
        return True

    def diagnosis(self) -> Diagnosis:
        """The condition that was reported last."""
        return self._condition.remind()


def main() -> int:
    """Run the node."""
    return run(Controller)
