# SPDX-License-Identifier: Apache-2.0
"""Node `payload_identifier`: a payload from a motion of the wrist about the present configuration."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robot_dyn_id.action import IdentifyPayload
from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, MotionError, RobotDynIdError, UsageError
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.files.configuration import read_configuration
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.payload import read_payload
from robot_dyn_id.loads.payload import Payload, move_parameters
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.msg import ExcitationStatus, RecordingStatus
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.excitation.settings import narrow_limits
from robot_dyn_id.nodes.messages.conversions import make_parameter_set_message
from robot_dyn_id.nodes.messages.joint_state import JointOrder
from robot_dyn_id.nodes.payload.drivers import DRIVERS, NO_DRIVER, DriverClient
from robot_dyn_id.nodes.payload.goal import (
    MEASUREMENT,
    MOTIONS,
    SLOW_TEST,
    Goal,
    GoalEnd,
    MotionGoal,
    PayloadGoal,
    PayloadGoals,
    Result,
    WritingGoal,
)
from robot_dyn_id.nodes.payload.settings import PayloadSettings
from robot_dyn_id.nodes.payload.wrist import STATUS
from robot_dyn_id.nodes.recording.stream_recording import make_folder
from robot_dyn_id.nodes.runtime.diagnostics import OK, WARN, Diagnosis, log_findings
from robot_dyn_id.nodes.runtime.managed_node import ManagedNode
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, SENSOR, RobotNode, calls, executes, publishes, subscribes
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.simulation.controllers import check_robot
from robot_dyn_id.workflow.payload import PayloadRun
from robot_dyn_id.workflow.payload_motion import PayloadMotion

TICK_S = 0.05
"""Period of the supervision of a goal [s]."""


class ArmInputs:
    """Inputs of goals, from the files of the parameters and from topics.

    Attributes:
        arm: model of the bare arm; None before it is known.
        model: robot model; None before it is known.
        declared: payload that the driver assumes; None: none is declared.
        tool: tool that the arm was identified with; None: none.
        position: latest positions [rad or m], shape (n,); None before the first joint states.
    """

    def __init__(self, node: RobotNode) -> None:
        """Read the files, and await the robot.

        Raises:
            RobotDynIdError: files that cannot be read, or a robot that the parameters do not fit.
        """
        settings: PayloadSettings = node.settings
        self._node, self._settings = node, settings
        self.arm: ParameterSet | None = None
        if settings.parameters:
            self.arm = read_parameters(Path(settings.parameters).expanduser())
        self.tool = read_payload(settings.tool) if settings.tool else None
        self.declared = settings.read_declared()
        self.model: RobotModel | None = None
        self.position: Array | None = None
        self._order: JointOrder | None = None
        self._measured_at = -np.inf
        self._source = RobotSource(node, settings.urdf, settings.joints, self._take_robot)
        self._models: Any = None  # subscription of models of the bare arm
        if not settings.parameters:
            self._models = node.subscription("identified_parameters", self._take_parameters)

    @property
    def problem(self) -> str:
        """Reason why the robot is not known; empty if it is."""
        return self._source.problem

    def close(self) -> None:
        """Receive no more."""
        self._source.close()
        if self._models is not None:
            self._node.destroy_subscription(self._models)

    def _take_robot(self, model: RobotModel) -> None:
        settings = self._settings
        model = narrow_limits(model, settings)
        at = find_placement_of(model, settings.link)
        if self.declared is not None and self.declared.link != settings.link:
            moved = move_parameters(self.declared.parameters, find_placement_of(model, self.declared.link), at)
            self.declared = replace(self.declared, link=settings.link, parameters=moved)
        if settings.driver != NO_DRIVER:
            settings.make_frame(model)
        self.model, self._order = model, JointOrder(model.joint_names)

    def _take_parameters(self, message: Any) -> None:
        self.arm = ParameterSet.from_message(message)

    def receive(self, message: JointState) -> None:
        """Take joint states."""
        if self._order is not None and self._order.concerns(message):
            self.position = self._order.read(message, ("position",))[0]
            self._measured_at = time.monotonic()

    def make_motion(self) -> PayloadMotion:
        """Demands on the motion about the present configuration.

        Raises:
            InputError: the robot, its model or its joint states are missing, or the model is that of another robot.
        """
        node, settings = self._node, self._settings
        if self.model is None:
            raise InputError(self.problem)
        if self.arm is None:
            raise InputError(
                "the model of the bare arm is missing: give the file of the parameter parameters, or publish it on "
                f"{node.resolve_topic_name('identified_parameters')}"
            )
        check_robot(self.arm, self.model.urdf)
        age = time.monotonic() - self._measured_at
        if self.position is None or age > Latency(settings.latency).absence:
            raise InputError(f"no joint states on {node.resolve_topic_name('joint_states')}")
        mass = 0.0 if self.declared is None else self.declared.mass
        return settings.make_motion(self.arm, self.model, self.position, mass)


INTERFACES = (
    DESCRIPTION,
    subscribes("joint_states", JointState, "Measured joint states; any reliability", SENSOR),
    subscribes("identified_parameters", ParameterSetMsg, "Model of the bare arm", LATCHED),
    subscribes(STATUS, ExcitationStatus, "State of the motion, which this node commands", LATCHED),
    publishes("identifier_recording_status", RecordingStatus, "State of the recording", LATCHED),
    publishes(
        "~/loaded_parameters",
        ParameterSetMsg,
        "Model of the arm with the identified payload, for controllers and the monitor",
        LATCHED,
    ),
    executes(
        "~/identify_payload",
        IdentifyPayload,
        "Identify the payload (IDENTIFY), check the configuration without moving (CHECK), record the empty arm "
        "(REFERENCE), or write the latest result into the driver (WRITE)",
    ),
    calls(
        "io_and_status_controller/set_payload",
        "ur_msgs/srv/SetPayload",
        "Payload of a UR robot, on the task WRITE; the service is set by the parameter driver_service",
    ),
    calls(
        "service_server/set_load",
        "franka_msgs/srv/SetLoad",
        "Payload of a Franka robot, on the task WRITE; the service is set by the parameter driver_service",
    ),
    calls(f"{SLOW_TEST}/rehearse", Trigger, "Start of the slow test, in this process"),
    calls(f"{MEASUREMENT}/start", Trigger, "Start of the measurement, in this process"),
)


class PayloadIdentifier(ManagedNode):
    """Check, slow test, warm-up and measurement with the wrist joints, estimate, comparison, and writing on request."""

    NAME = "payload_identifier"
    PURPOSE = "identifies the payload from a motion of the wrist, and writes it into the driver on request"
    SETTINGS = PayloadSettings
    ENDS_ON_FAULT = True
    INTERFACES = INTERFACES
    COMPANIONS: ClassVar[Mapping[str, type[RobotNode]]] = MOTIONS

    def set_up(self) -> None:
        """Make what does not depend on the robot.

        Raises:
            RobotDynIdError: no link is given, or the folder cannot be used.
        """
        settings: PayloadSettings = self.settings
        if not settings.link:
            raise UsageError("parameter link is not given: name the link that carries the payload")
        self._folder = make_folder(settings.folder, "payloads/")
        self._active = self._releasing = self._ending = False
        self._inputs: ArmInputs | None = None
        self._driver: DriverClient | None = None
        self._drop_results()
        self._count = 0
        self._loaded = self.publisher("~/loaded_parameters")
        self._goals = PayloadGoals(partial(self.goal_server, "~/identify_payload"), self._make_goal, self._conclude)
        self.subscription("joint_states", self._receive)
        self.subscription(STATUS, self._follow)
        self.create_timer(TICK_S, self._tick, clock=self.steady)

    # --- lifecycle ------------------------------------------------------------------------------------------------

    def configure(self) -> None:
        """Read the files, and take the robot, now or as soon as it is known.

        Raises:
            RobotDynIdError: files that cannot be read, a driver whose package is not installed, a robot that still
                brakes.
        """
        settings: PayloadSettings = self.settings
        if self._inputs is not None and not self._release():
            raise MotionError("the goal that was stopped has not ended yet")
        self._identification = read_configuration(settings.config or None).settings
        driver = DriverClient(self, settings.driver, settings.driver_service) if settings.driver in DRIVERS else None
        try:
            self._inputs = ArmInputs(self)
        except RobotDynIdError:
            if driver is not None:
                driver.destroy()
            raise
        self._driver = driver

    def activate(self) -> None:
        """Accept goals."""
        self._active = True

    def deactivate(self) -> None:
        """Brake; the goal ends when the robot is at rest. A driver that has been given a payload may still answer."""
        self._active = False
        self._goals.brake(GoalEnd(Result.STOPPED, "stopped: the node was deactivated"))

    def clean_up(self) -> None:
        """Drop the robot, and what was identified of it, as soon as it is at rest."""
        self._releasing = True
        self._release()

    def _release(self) -> bool:
        """Drop the robot if no goal is being executed; returns whether it was so."""
        if self._goals.goal is not None:
            return False
        if self._inputs is not None:
            self._inputs.close()
        if self._driver is not None:
            self._driver.destroy()
        self._inputs = self._driver = None
        self._releasing = False
        self._drop_results()
        return True

    def _drop_results(self) -> None:
        """Start without results: a payload that was found on one robot must not be written for another."""
        self._reference: PayloadRun | None = None
        self._found: tuple[Payload, int] | None = None

    # --- goals ----------------------------------------------------------------------------------------------------

    def _receive(self, message: JointState) -> None:
        if self._inputs is not None:
            self._inputs.receive(message)

    def _follow(self, status: Any) -> None:
        goal = self._goals.goal
        if goal is not None and goal.wrist is not None:
            goal.wrist.receive(status)

    def _make_goal(self, goal: Any) -> PayloadGoal:
        """Begin to execute a goal.

        Raises:
            RobotDynIdError: the robot, its model or its joint states are missing, or there is nothing to write.
        """
        self._task, self._tool_number = goal.task, goal.tool_number
        if self._ending:
            raise InputError("the node is ending")
        inputs = self._inputs
        if not self._active or inputs is None:
            raise InputError(f"{self.lifecycle}: configure and activate the node to identify a payload")
        if goal.task == Goal.WRITE:
            return self._write(inputs)
        if goal.task not in (Goal.IDENTIFY, Goal.CHECK, Goal.REFERENCE):
            raise InputError(f"unknown task {goal.task}: see IdentifyPayload.action")
        motion = inputs.make_motion()
        self._count += 1
        folder = make_output_folder(self._folder / f"goal_{self._count}")
        reference = self._reference if goal.task == Goal.IDENTIFY else None
        return MotionGoal(self, goal.task, motion, self._identification, reference, inputs.declared, folder)

    def _write(self, inputs: ArmInputs) -> WritingGoal:
        """Write the latest payload into the driver, as the user has confirmed by the goal.

        Raises:
            InputError: no payload was identified, or the service has no server.
            UsageError: no driver is set.
        """
        settings: PayloadSettings = self.settings
        if self._found is None or inputs.model is None:
            raise InputError("there is no identified payload to be written: send a goal with the task IDENTIFY first")
        if settings.driver == NO_DRIVER:
            raise UsageError("parameter driver is not set: give ur, franka or file")
        payload, number = self._found
        given = settings.make_frame(inputs.model).express(payload, inputs.tool, settings.driver_frame or payload.link)
        return WritingGoal(self, given, self._folder, self._tool_number or number, self._driver)

    def _tick(self) -> None:
        self._goals.tick()
        if self._releasing:
            self._release()

    def _conclude(self, goal: PayloadGoal, end: GoalEnd) -> None:
        """Keep what a goal has found."""
        succeeded, log = end.code == Result.SUCCEEDED, self.get_logger()
        if goal.loaded is not None and goal.run is not None and goal.run.payload is not None:
            self._loaded.publish(self.stamped(make_parameter_set_message(goal.loaded)))
            self._found = goal.run.payload, self._tool_number
            log_findings(log, goal.run.findings)
        elif succeeded and self._task == Goal.REFERENCE:
            self._reference = goal.run
        if succeeded:
            log.info(end.message)
        else:
            log.warning(end.message)

    # --- end ------------------------------------------------------------------------------------------------------

    def diagnosis(self) -> Diagnosis:
        """Stage of the goal, or what is missing."""
        if self._goals.goal is not None:
            return Diagnosis(OK, self._goals.goal.status)
        inputs = self._inputs
        if inputs is None or not self._active:
            return Diagnosis(OK, f"{self.lifecycle}: nothing moves before the node is activated")
        if inputs.model is None:
            return Diagnosis(WARN, inputs.problem)
        return Diagnosis(*((OK, "ready") if inputs.arm is not None else (WARN, "the model of the bare arm is missing")))

    def stop(self) -> bool:
        """Brake; True once the robot is at rest."""
        self._ending = True
        code = Result.INTERNAL_ERROR if self.internal_errors else Result.STOPPED
        return self._goals.stop(GoalEnd(code, "the node is ending"))
