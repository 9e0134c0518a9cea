# SPDX-License-Identifier: Apache-2.0
"""Node `payload_identifier`: a payload from a motion of the wrist about the present configuration."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robot_dyn_id.action import IdentifyPayload
from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import central
from robot_dyn_id.errors import InputError, MotionError, RobotDynIdError, UsageError
from robot_dyn_id.faults import reported
from robot_dyn_id.files.configuration import read_configuration
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.files.payload import (
    MOMENTS,
    declared_payload,
    declared_summary,
    read_declared,
    read_payload,
    write_payload,
)
from robot_dyn_id.findings import Finding, format_findings
from robot_dyn_id.loads.declared import DeclaredPayload, DeclaredTest
from robot_dyn_id.loads.identification import with_payload
from robot_dyn_id.loads.payload import Payload, move_parameters, move_payload
from robot_dyn_id.loads.payload_accuracy import PayloadAccuracy
from robot_dyn_id.model.kinematics import Placement, placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.msg import ExcitationStatus, RecordingStatus
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.excitation.settings import chosen_ground, per_joint, with_true_limits
from robot_dyn_id.nodes.messages.conversions import finding_message, parameter_set, parameter_set_message
from robot_dyn_id.nodes.messages.joint_state import JointOrder
from robot_dyn_id.nodes.payload.drivers import DRIVERS, FILE, NO_DRIVER, DriverClient
from robot_dyn_id.nodes.payload.settings import PayloadSettings
from robot_dyn_id.nodes.payload.wrist import STATUS, WristExcitation, WristMotion
from robot_dyn_id.nodes.recording.stream_recording import StreamRecording, wait_for_bags
from robot_dyn_id.nodes.runtime.managed_node import ManagedNode
from robot_dyn_id.nodes.runtime.robot_node import (
    CALLS,
    ERROR,
    EXECUTES,
    LATCHED,
    OK,
    PUBLISHES,
    SENSOR,
    SUBSCRIBES,
    WARN,
    Diagnosis,
    Interface,
    RobotNode,
)
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.runtime.running import run
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings.rosbag2 import open_parts
from robot_dyn_id.report.folder import output_folder
from robot_dyn_id.simulation.controllers import check_robot
from robot_dyn_id.workflow.payload import PayloadRun, identify_from_halves
from robot_dyn_id.workflow.payload_motion import PayloadMotion, check_configuration, design_payload_motion

TICK_S = 0.05
"""Period of the supervision of a goal [s]."""

FEEDBACK_S = 0.5
"""Period of the feedback of an unchanged stage [s]."""

SAME_CONFIGURATION = 0.02
"""Largest distance from the configuration of a reference with which its motion and data are used [rad or m]."""

SLOW_TEST, MEASUREMENT = "payload_slow_test", "payload_excitation"
MOTIONS = (SLOW_TEST, MEASUREMENT)
"""Names of the excitation publishers that move the wrist."""

Result = IdentifyPayload.Result


class PayloadStage(Enum):
    """Stages of a goal, by their names in the feedback."""

    CHECK = "check"
    SLOW_TEST = "slow test"
    WARM_UP = "warm-up"
    MEASUREMENT = "measurement"
    RETURN = "return"
    ESTIMATE = "estimate"
    WRITE = "write"


class _Job:
    """A computation in a thread, because joint states continue to arrive; its outcome is polled."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.outcome: Any = None
        self._thread = threading.Thread(target=self._run, args=(compute,), daemon=True)
        self._thread.start()

    def _run(self, compute: Callable[[], Any]) -> None:
        try:
            self.outcome = compute()
        except RobotDynIdError as error:
            self.outcome = error
        except Exception as fault:  # otherwise the thread would end silently
            self.outcome = reported(fault, sys.argv)

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()


class PayloadIdentifier(ManagedNode):
    """Check, slow test, warm-up and measurement with the wrist joints, estimate, comparison, and writing on request."""

    NAME = "payload_identifier"
    PURPOSE = "identifies the payload from a motion of the wrist, and writes it into the driver on request"
    SETTINGS = PayloadSettings
    ENDS_ON_FAULT = True
    INTERFACES = (
        DESCRIPTION,
        Interface(SUBSCRIBES, "joint_states", JointState, "Measured joint states; any reliability", SENSOR),
        Interface(SUBSCRIBES, "identified_parameters", ParameterSetMsg, "Model of the bare arm", LATCHED),
        Interface(SUBSCRIBES, STATUS, ExcitationStatus, "State of the motion, which this node commands", LATCHED),
        Interface(PUBLISHES, "identifier_recording_status", RecordingStatus, "State of the recording", LATCHED),
        Interface(
            PUBLISHES,
            "~/loaded_parameters",
            ParameterSetMsg,
            "Model of the arm with the identified payload, for controllers and the monitor",
            LATCHED,
        ),
        Interface(
            EXECUTES,
            "~/identify_payload",
            IdentifyPayload,
            "Identify the payload (IDENTIFY), check the configuration without moving (CHECK), record the empty arm "
            "(REFERENCE), or write the latest result into the driver (WRITE)",
        ),
        Interface(
            CALLS,
            "io_and_status_controller/set_payload",
            "ur_msgs/srv/SetPayload",
            "Payload of a UR robot, on the task WRITE; the service is set by the parameter driver_service",
        ),
        Interface(
            CALLS,
            "service_server/set_load",
            "franka_msgs/srv/SetLoad",
            "Payload of a Franka robot, on the task WRITE; the service is set by the parameter driver_service",
        ),
        Interface(CALLS, f"{SLOW_TEST}/rehearse", Trigger, "Start of the slow test, in this process"),
        Interface(CALLS, f"{MEASUREMENT}/start", Trigger, "Start of the measurement, in this process"),
    )

    COMPANIONS: ClassVar[Mapping[str, type[RobotNode]]] = dict.fromkeys(MOTIONS, WristExcitation)

    def set_up(self) -> None:
        """Make what does not depend on the robot.

        Raises:
            RobotDynIdError: no link is given, or the folder cannot be used.
        """
        settings: PayloadSettings = self.settings
        if not settings.link:
            raise UsageError("parameter link is not given: name the link that carries the payload")
        self._folder = output_folder(Path(settings.folder or f"payloads/{datetime.now():%Y%m%d-%H%M%S}").expanduser())
        self._active = self._releasing = False
        self._source: RobotSource | None = None
        self._models: Any = None  # subscription of models of the bare arm
        self._job: _Job | None = None
        self._recording: StreamRecording | None = None
        self._wrist: WristMotion | None = None
        self._driver: DriverClient | None = None
        self._arm: ParameterSet | None = None
        self._drop_robot()
        self._stage: PayloadStage | None = None
        self._ending = self._stopped = ""
        self._count = 0
        self._loaded = self.publisher("~/loaded_parameters")
        self._goals = self.goal_server("~/identify_payload", self._begin_goal, self._cancel_goal)
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
        if self._source is not None and not self._release():
            raise MotionError("the goal that was stopped has not ended yet")
        self._identification = read_configuration(settings.config or None).settings
        self._arm = read_parameters(Path(settings.parameters).expanduser()) if settings.parameters else None
        self._tool = read_payload(settings.tool) if settings.tool else None
        self._declared = self._read_declared()
        driver = DriverClient(self, settings.driver, settings.driver_service) if settings.driver in DRIVERS else None
        try:
            self._source = RobotSource(self, settings.urdf, settings.joints, self._take_robot)
        except RobotDynIdError:
            if driver is not None:
                driver.destroy()
            raise
        self._driver = driver
        if not settings.parameters:
            self._models = self.subscription("identified_parameters", self._take_parameters)

    def activate(self) -> None:
        """Accept goals."""
        self._active = True

    def deactivate(self) -> None:
        """Brake; the goal ends when the robot is at rest. A driver that has been given a payload may still answer."""
        self._active = False
        if self._goals.active and self._stage is not PayloadStage.WRITE:
            self._stopped = "stopped: the node was deactivated"
            if self._wrist is None:
                self._finish(Result.STOPPED, self._stopped)
            else:
                self._wrist.at_rest()

    def clean_up(self) -> None:
        """Drop the robot, and what was identified of it, as soon as it is at rest."""
        self._releasing = True
        self._release()

    def _release(self) -> bool:
        """Drop the robot if no goal is being executed; returns whether it was so."""
        if self._goals.active or self._wrist is not None:
            return False
        if self._source is not None:
            self._source.close()
        if self._models is not None:
            self.destroy_subscription(self._models)
        if self._driver is not None:
            self._driver.destroy()
        self._source = self._models = self._driver = None
        self._releasing = False
        self._drop_robot()
        return True

    def _drop_robot(self) -> None:
        """Start without a robot: a payload that was found on one must not be written for another."""
        self._arm = None
        self._model: RobotModel | None = None
        self._order: JointOrder | None = None
        self._position: Array | None = None
        self._measured_at = -np.inf
        self._reference: tuple[Array, PayloadRun] | None = None
        self._found: tuple[Payload, int] | None = None

    def _read_declared(self) -> DeclaredPayload | None:
        """Declared payload of the parameters; None if none is declared."""
        settings: PayloadSettings = self.settings
        if settings.declared and settings.declared_file:
            raise UsageError("parameters declared and declared_file: give one of them")
        if settings.declared:
            return declared_payload(settings.link, settings.declared)
        return read_declared(settings.declared_file, settings.link) if settings.declared_file else None

    # --- inputs ---------------------------------------------------------------------------------------------------

    def _take_robot(self, model: RobotModel) -> None:
        settings: PayloadSettings = self.settings
        model = with_true_limits(model, settings)
        at = placement_of(model, settings.link)
        if self._declared is not None and self._declared.link != settings.link:
            moved = move_parameters(self._declared.parameters, placement_of(model, self._declared.link), at)
            self._declared = replace(self._declared, link=settings.link, parameters=moved)
        if settings.driver != NO_DRIVER:
            self._flange(model)
        self._model, self._order = model, JointOrder(model.joint_names)

    def _flange(self, model: RobotModel) -> Placement:
        """Placement of the frame of the driver.

        Raises:
            UsageError: the robot has no such link, or a joint separates it from the payload.
        """
        settings: PayloadSettings = self.settings
        usual = DRIVERS[settings.driver].frame if settings.driver in DRIVERS else settings.link
        name = settings.driver_frame or usual
        try:
            at = placement_of(model, name)
        except RobotDynIdError as error:
            raise UsageError(f"driver_frame: {error}") from None
        if at.body != placement_of(model, settings.link).body:
            raise UsageError(f"driver_frame: a joint separates {name} from {settings.link}")
        return at

    def _receive(self, message: JointState) -> None:
        if self._order is not None and self._order.concerns(message):
            self._position = self._order.read(message, ("position",))[0]
            self._measured_at = time.monotonic()

    def _take_parameters(self, message: ParameterSetMsg) -> None:
        self._arm = parameter_set(message)

    def _follow(self, status: Any) -> None:
        if self._wrist is not None:
            self._wrist.receive(status)

    # --- goals ----------------------------------------------------------------------------------------------------

    def _begin_goal(self, goal: Any) -> None:
        """Begin to execute a goal.

        Raises:
            InputError: the robot, its model or its joint states are missing, or there is nothing to write.
        """
        self._task, self._tool_number = goal.task, goal.tool_number
        self._accepted, self._published = time.monotonic(), -np.inf
        self._findings: tuple[Finding, ...] = ()
        self._accuracy: PayloadAccuracy | None = None
        self._run: PayloadRun | None = None
        self._stopped = ""
        if self._ending:
            raise InputError("the node is ending")
        if not self._active or self._source is None:
            raise InputError(f"{self.lifecycle}: configure and activate the node to identify a payload")
        if self._job is not None:
            raise InputError("the computation of a goal that was canceled has not ended yet: try again")
        if goal.task == IdentifyPayload.Goal.WRITE:
            self._begin_writing()
            return
        if goal.task not in (IdentifyPayload.Goal.IDENTIFY, IdentifyPayload.Goal.CHECK, IdentifyPayload.Goal.REFERENCE):
            raise InputError(f"unknown task {goal.task}: see IdentifyPayload.action")
        motion = self._demands()
        self._count += 1
        self._run_folder = output_folder(self._folder / f"goal_{self._count}")
        self._enter(PayloadStage.CHECK)
        reference = self._usable_reference(motion.position)
        self._job = _Job(lambda: self._prepare(motion, reference))

    def _demands(self) -> PayloadMotion:
        """Demands on the motion about the present configuration.

        Raises:
            InputError: the robot, its model or its joint states are missing, or the model is that of another robot.
        """
        settings: PayloadSettings = self.settings
        if self._model is None:
            assert self._source is not None
            raise InputError(self._source.problem)
        if self._arm is None:
            raise InputError(
                "the model of the bare arm is missing: give the file of the parameter parameters, or publish it on "
                f"{self.resolve_topic_name('identified_parameters')}"
            )
        check_robot(self._arm, self._model.urdf)
        age = time.monotonic() - self._measured_at
        if self._position is None or age > max(settings.timeout, 1.0):
            raise InputError(f"no joint states on {self.resolve_topic_name('joint_states')}")
        return PayloadMotion(
            arm=self._arm,
            model=self._model,
            link=settings.link,
            position=self._position,
            joints=settings.moving_joints,
            window=settings.window,
            duration=settings.measured_periods * settings.period,
            expected_mass=self._declared.mass if self._declared and self._declared.mass else settings.expected_mass,
            friction_change=settings.friction_change,
            keys=self._design_keys(self._model),
            design=settings.design,
        )

    def _design_keys(self, model: RobotModel) -> dict[str, Any]:
        """Keys of a design that the parameters of the node determine."""
        settings: PayloadSettings = self.settings
        keys: dict[str, Any] = {
            "form": "fourier",
            "period": settings.period,
            "periods": settings.warm_up_periods + settings.measured_periods,
            "velocity_scale": settings.velocity_scale,
            "margin": settings.position_margin,
            "effort_scale": settings.effort_scale,
        }
        for name in ("acceleration", "jerk"):
            values = per_joint(name, getattr(settings, name), model, settings.joints)
            if values:
                keys[name] = dict(zip(model.joint_names, values, strict=True))
        if not settings.ground or not np.isnan(settings.ground_height):
            keys["ground"] = chosen_ground(settings, True)
        if settings.allow_unchecked_collisions:
            keys["clearance"] = 0.0
        return keys

    def _usable_reference(self, position: Array) -> PayloadRun | None:
        """Reference of the empty arm that was recorded in this configuration."""
        if self._reference is None or self._task != IdentifyPayload.Goal.IDENTIFY:
            return None
        there, run = self._reference
        return run if np.abs(there - position).max() <= SAME_CONFIGURATION else None

    def _prepare(self, motion: PayloadMotion, reference: PayloadRun | None) -> PayloadRun:
        """Check the configuration and design the motion, or take that of the reference."""
        if reference is not None:
            accuracy = motion.accuracy(reference.trajectory.cycle)
            return replace(reference, motion=motion, accuracy=accuracy, reference=reference.recordings, recordings=())
        check_configuration(motion)
        designed, accuracy = design_payload_motion(motion)
        return PayloadRun(motion, accuracy, designed.stored, self._identification)

    def _cancel_goal(self) -> None:
        """Brake if the robot moves; computations end in the background, and a driver has to answer first."""
        if self._stage is PayloadStage.WRITE:
            return
        if self._wrist is not None:
            self._stopped = "canceled"
            self._wrist.at_rest()
        else:
            self._finish(Result.CANCELED, "canceled")

    # --- progress -------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._recording is not None:
            self._recording.publish_status()
        if self._wrist is not None:
            self._wrist.tick()
        if not self._goals.active:
            self._tidy_up()
            if self._releasing:
                self._release()
            return
        try:
            self._advance()
        except RobotDynIdError as error:
            if self._wrist is None:
                self._finish(Result.FAILED, str(error))
            else:
                self._stopped = self._stopped or str(error)
        if self._goals.active and time.monotonic() > self._published + FEEDBACK_S:
            self._publish_feedback()

    def _advance(self) -> None:
        """Look at what the present stage waits for."""
        if self._stage in (PayloadStage.CHECK, PayloadStage.ESTIMATE) and self._job is not None and self._job.done:
            outcome, self._job = self._job.outcome, None
            (self._checked if self._stage is PayloadStage.CHECK else self._estimated)(outcome)
        elif self._stage is PayloadStage.WRITE:
            self._look_at_driver()
        elif self._wrist is not None:
            self._look_at_motion(self._wrist)

    def _tidy_up(self) -> None:
        """Discard a computation that was canceled once it has ended."""
        if self._job is not None and self._job.done:
            self._job = None

    def _enter(self, stage: PayloadStage, remark: str = "") -> None:
        self._stage, self._remark = stage, remark
        self.get_logger().info(f"{stage.value}{f': {remark}' if remark else ''}")
        self._publish_feedback()

    def _publish_feedback(self) -> None:
        assert self._stage is not None
        self._published = time.monotonic()
        self._goals.publish(
            stage=self._stage.value, elapsed=self._elapsed, remaining=self._remaining(), message=self._remark
        )

    @property
    def _elapsed(self) -> float:
        """Time since the goal was accepted [s]."""
        return time.monotonic() - self._accepted

    def _remaining(self) -> float:
        """Planned time of the motions that are left [s]; 0 where it is not known."""
        settings: PayloadSettings = self.settings
        full = (settings.warm_up_periods + settings.measured_periods) * settings.period
        elapsed = 0.0 if self._wrist is None else self._wrist.elapsed
        if self._stage is PayloadStage.SLOW_TEST:
            return max(settings.period / settings.slow_speed - elapsed, 0.0) + full
        return max(full - elapsed, 0.0) if self._stage in (PayloadStage.WARM_UP, PayloadStage.MEASUREMENT) else 0.0

    def _checked(self, outcome: Any) -> None:
        """Take the designed motion, and begin the slow test."""
        if not isinstance(outcome, PayloadRun):
            unsuited = isinstance(outcome, MotionError)
            self._finish(Result.UNSUITED if unsuited else Result.FAILED, str(outcome))
            return
        self._run, self._accuracy = outcome, outcome.accuracy
        self.get_logger().info(outcome.accuracy.describe())
        outcome.save_motion(self._run_folder)
        if self._task == IdentifyPayload.Goal.CHECK:
            self._finish(Result.SUCCEEDED, outcome.accuracy.describe())
            return
        self._recording = StreamRecording(self, self._run_folder, "identifier_recording_status")
        if self._move(SLOW_TEST, "slow_test.yaml", slow=True):
            self._enter(PayloadStage.SLOW_TEST, outcome.accuracy.describe())

    def _move(self, name: str, file: str, slow: bool) -> bool:
        """Begin a motion; returns whether there is one: otherwise the goal has ended."""
        try:
            self._wrist = WristMotion(self, name, self._run_folder / file, slow)
        except RobotDynIdError as error:
            self._finish(Result.UNSUITED, str(error))
        return self._wrist is not None

    def _look_at_motion(self, wrist: WristMotion) -> None:
        """Advance with the motion."""
        assert self._recording is not None
        if self._stopped or wrist.failure:
            if wrist.at_rest():
                why = wrist.failure
                self._remove_wrist()
                canceled = self._stopped == "canceled" and self._goals.canceled
                self._finish(Result.CANCELED if canceled else Result.STOPPED, self._stopped or why)
            return
        settings: PayloadSettings = self.settings
        warm = settings.warm_up_periods * settings.period
        half = warm + 0.5 * settings.measured_periods * settings.period
        if self._stage is PayloadStage.SLOW_TEST:
            if wrist.done:
                self._remove_wrist()
                if self._move(MEASUREMENT, "trajectory.yaml", slow=False):
                    self._enter(PayloadStage.WARM_UP)
        elif self._stage is PayloadStage.WARM_UP:
            if wrist.elapsed >= warm and wrist.elapsed > 0.0:
                self._recording.discard_part()
                self._enter(PayloadStage.MEASUREMENT)
        elif self._stage is PayloadStage.MEASUREMENT:
            if wrist.complete:
                self._recording.close_part()
                self._enter(PayloadStage.RETURN)
            elif wrist.elapsed >= half and not self._recording.parts:
                self._recording.close_part()
        elif wrist.done:
            self._remove_wrist()
            parts = self._recording.parts[:2]
            self._end_recording()
            run, task = self._run, self._task
            self._enter(PayloadStage.ESTIMATE)
            self._job = _Job(lambda: self._estimate(run, parts, task))

    def _remove_wrist(self) -> None:
        if self._wrist is not None:
            self._wrist.destroy()
            self._wrist = None

    def _end_recording(self) -> None:
        if self._recording is not None:
            self._recording.end()
            self._recording.destroy()
            self._recording = None

    def _estimate(self, run: Any, parts: Any, task: int) -> PayloadRun:
        """Identify from the bags; in a thread."""
        folders = wait_for_bags(parts)
        recorded = replace(run, recordings=tuple(open_parts([folder], None) for folder in folders))
        return recorded if task == IdentifyPayload.Goal.REFERENCE else identify_from_halves(recorded, self._declared)

    def _estimated(self, outcome: Any) -> None:
        """Report the result of the recording."""
        if not isinstance(outcome, PayloadRun):
            self._finish(Result.FAILED, str(outcome))
            return
        self._run, self._findings = outcome, outcome.findings
        if self._task == IdentifyPayload.Goal.REFERENCE:
            self._reference = outcome.motion.position, outcome
            self._finish(Result.SUCCEEDED, "the empty arm is recorded: the reference of payloads in this configuration")
            return
        assert outcome.estimate is not None
        if outcome.payload is None:
            self._finish(Result.NO_PAYLOAD if outcome.absent else Result.FAILED, outcome.problem)
            return
        loaded = with_payload(outcome.motion.arm, outcome.payload)
        more = {} if outcome.test is None else {"declared": declared_summary(outcome.test)}
        write_payload(self._run_folder / "payload.yaml", outcome.payload, **more)
        write_parameters(self._run_folder / "parameters.yaml", loaded)
        message = parameter_set_message(loaded)
        message.header.stamp = self.get_clock().now().to_msg()
        self._loaded.publish(message)
        self._found = outcome.payload, self._tool_number
        for line in format_findings(outcome.findings):
            self.get_logger().warning(line)
        self._finish(Result.SUCCEEDED, outcome.describe())

    def _finish(self, code: int, message: str) -> None:
        """End the goal with what is known of the payload."""
        self._end_recording()
        if code == Result.SUCCEEDED:
            self.get_logger().info(message)
        else:
            self.get_logger().warning(message)
        self._stage = None
        fields: dict[str, Any] = {
            "link": self.settings.link,
            "standard_deviations": [np.inf] * 10,
            "expected_deviations": [np.inf] * 10,
            "findings": [finding_message(finding) for finding in self._findings],
            "folder": str(self._run_folder) if self._run is not None else "",
            "seconds": self._elapsed,
        }
        if self._accuracy is not None:
            fields["expected_deviations"] = self._accuracy.standard_deviations.tolist()
            fields["not_identified"] = list(self._accuracy.missing)
        run = self._run
        if run is not None and run.payload is not None:
            fields |= _payload_fields(run.payload)
        if run is not None and run.test is not None:
            fields |= _declared_fields(run.test)
        self._goals.finish(code, message, **fields)

    # --- driver ---------------------------------------------------------------------------------------------------

    def _begin_writing(self) -> None:
        """Write the latest payload into the driver, as the user has confirmed by the goal.

        Raises:
            InputError: no payload was identified, or the service has no server.
            UsageError: no driver is set.
        """
        settings: PayloadSettings = self.settings
        if self._found is None or self._model is None:
            raise InputError("there is no identified payload to be written: send a goal with the task IDENTIFY first")
        if settings.driver == NO_DRIVER:
            raise UsageError("parameter driver is not set: give ur, franka or file")
        payload, number = self._found
        flange = self._flange(self._model)
        at = placement_of(self._model, payload.link)
        parameters = move_parameters(payload.parameters, at, flange)
        if self._tool is not None:
            parameters = parameters + move_parameters(
                self._tool.parameters, placement_of(self._model, self._tool.link), flange
            )
        mass, center, _ = central(parameters)
        words = f"{mass:.4g} kg at {np.round(center, 4).tolist()} m from {settings.driver_frame or 'the flange'}"
        self._run_folder = self._folder
        if settings.driver == FILE:
            moved = move_payload(payload, settings.driver_frame or payload.link, at, flange)
            written = replace(moved, parameters=parameters)  # the tool is taken as known
            file = output_folder(self._folder / "tools") / f"tool_{self._tool_number or number}.yaml"
            write_payload(file, written)
            self._written = f"tool {self._tool_number or number} is written to {file}: {words}"
        else:
            assert self._driver is not None
            self._driver.send(parameters)
            self._written = f"the driver has taken the payload: {words}"
        self._stage, self._remark = PayloadStage.WRITE, words  # after what can be refused

    def _look_at_driver(self) -> None:
        refusal = "" if self._driver is None else self._driver.result()
        if refusal == "":
            self._finish(Result.SUCCEEDED, self._written)
        elif refusal is not None:
            self._finish(Result.DRIVER_REFUSED, refusal)
        elif self._elapsed > self.settings.driver_timeout:
            limit = f"{self.settings.driver_timeout:g} s"
            self._finish(Result.DRIVER_REFUSED, f"the driver has not answered within {limit}: its payload is not known")

    # --- end ------------------------------------------------------------------------------------------------------

    def diagnosis(self) -> Diagnosis:
        """PayloadStage of the goal, or what is missing."""
        if self._stage is not None:
            return Diagnosis(OK, f"{self._stage.value}{f': {self._remark}' if self._remark else ''}")
        if self._source is None or not self._active:
            return Diagnosis(OK, f"{self.lifecycle}: nothing moves before the node is activated")
        if self._model is None:
            return Diagnosis(WARN, self._source.problem)
        if self._recording is not None and self._recording.failure:
            return Diagnosis(ERROR, self._recording.failure)
        return Diagnosis(*((OK, "ready") if self._arm is not None else (WARN, "the model of the bare arm is missing")))

    def stop(self) -> bool:
        """Brake; True once the robot is at rest."""
        self._ending = self._stopped = "the node is ending"
        if self._wrist is not None:
            if not self._wrist.at_rest():
                return False
            self._remove_wrist()
        if self._goals.active:
            failed = self.internal_errors > 0
            unknown = "; the payload of the driver is not known" if self._stage is PayloadStage.WRITE else ""
            self._finish(Result.INTERNAL_ERROR if failed else Result.STOPPED, self._stopped + unknown)
        self._end_recording()
        return True


def _payload_fields(payload: Payload) -> dict[str, Any]:
    """Fields of a result about a payload."""
    places = [("xyz".index(name[1]), "xyz".index(name[2])) for name in MOMENTS]
    return {
        "mass": payload.mass,
        "center_of_mass": payload.center_of_mass.tolist(),
        "inertia": [float(payload.inertia[place]) for place in places],
        "standard_deviations": payload.central_standard_deviations.tolist(),
        "not_identified": list(payload.not_excited),
    }


def _declared_fields(test: DeclaredTest) -> dict[str, Any]:
    """Fields of a result about a declared payload."""
    return {
        "declared": True,
        "declared_accepted": test.accepted,
        "declared_mass": test.declared.mass,
        "declared_p_value": test.p_value,
    }


def main() -> int:
    """Run the node."""
    return run(PayloadIdentifier)
