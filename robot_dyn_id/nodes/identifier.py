# SPDX-License-Identifier: Apache-2.0
"""Node `identifier`: a live stream of joint states, or recordings, become a latched ParameterSet and a report."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robot_dyn_id.action import IdentifyRecordings
from robot_dyn_id.errors import InputError, InternalError, RobotDynIdError, UsageError
from robot_dyn_id.faults import reported
from robot_dyn_id.files.configuration import Configuration, read_configuration
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.msg import ExcitationStatus, IdentificationReport, RecordingStatus
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.messages.conversions import identification_report, parameter_set_message
from robot_dyn_id.nodes.messages.joint_state_source import type_parameter
from robot_dyn_id.nodes.recording.excitation_watch import Event, ExcitationWatch
from robot_dyn_id.nodes.recording.identification_goals import IdentificationGoals, existing, results_folder
from robot_dyn_id.nodes.recording.identification_job import IdentificationTask
from robot_dyn_id.nodes.recording.stream_recording import StreamRecording, wait_for_bags
from robot_dyn_id.nodes.runtime.robot_node import (
    ERROR,
    EXECUTES,
    LATCHED,
    OK,
    PUBLISHES,
    SERVES,
    SUBSCRIBES,
    WARN,
    Diagnosis,
    Interface,
    RobotNode,
)
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.runtime.ros_parameters import path_parameter, ros_parameter
from robot_dyn_id.nodes.runtime.running import run
from robot_dyn_id.progress import Stage
from robot_dyn_id.recordings.background_writer import BackgroundWriter
from robot_dyn_id.recordings.rosbag2 import MessageReading, open_parts
from robot_dyn_id.report.folder import RESULTS, output_folder
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings, open_all

TIMER_PERIOD_S = 0.1
"""Time between two checks of the running identification and of the recording [s]."""


@dataclass(frozen=True)
class IdentifierSettings:
    """ROS parameters of the identifier."""

    urdf: str = path_parameter("", "URDF or xacro file; empty: received on the topic robot_description")
    config: str = path_parameter(
        "",
        "Configuration of the identification (gains, joints, filter, terms, estimator, thresholds); empty: defaults",
    )
    folder: str = path_parameter(
        "",
        "Folder for the recorded joint states and the results; must not contain earlier results; empty: "
        "runs/identifier-<date and time>",
    )
    data: tuple[str, ...] = path_parameter(
        (),
        "Recordings to identify from immediately, instead of live joint states; the node exits if identification fails",
    )
    validation: tuple[str, ...] = path_parameter((), "Recordings to validate on; empty: cross-validation on the data")
    listen: bool = ros_parameter(True, "Record the live joint states; false: only publish the given parameters")
    after_excitation: bool = ros_parameter(
        True, "Identify automatically after each complete excitation; joint states between excitations are not used"
    )
    parameters: str = path_parameter(
        "", "File of an earlier parameter set that is published until a new one is identified"
    )
    joint_states_type: str = type_parameter()


class Identifier(RobotNode):
    """Records live joint states to a bag and identifies from it, by the same pipeline as from recordings.

    Attributes:
        outcome: latest identification, or why there is none; None before the first ends.
    """

    NAME = "identifier"
    PURPOSE = "identifies the robot dynamics from live joint states or from recordings, and publishes the model"
    SETTINGS = IdentifierSettings
    INTERFACES = (
        Interface(
            SUBSCRIBES, "joint_states", JointState, "Measured joint states, or joint_states_type; any reliability"
        ),
        DESCRIPTION,
        Interface(SUBSCRIBES, "excitation_status", ExcitationStatus, "Start and end of an excitation", LATCHED),
        Interface(
            PUBLISHES,
            "identified_parameters",
            ParameterSetMsg,
            "Identified model; a model with verdict bad is not published",
            LATCHED,
        ),
        Interface(
            PUBLISHES,
            "identifier_recording_status",
            RecordingStatus,
            "State of the recording of live joint states",
            LATCHED,
        ),
        Interface(
            PUBLISHES,
            "identification_report",
            IdentificationReport,
            "Identification report: verdict, warnings, held-out errors",
            LATCHED,
        ),
        Interface(
            SERVES,
            "~/identify",
            Trigger,
            "Start the identification from all received data; the result is published on identification_report",
        ),
        Interface(SERVES, "~/reset", Trigger, "Discard the received data"),
        Interface(
            EXECUTES,
            "~/identify_recordings",
            IdentifyRecordings,
            "Identify from recordings or from all received data, in a process that can be canceled",
        ),
    )

    def begin(self) -> None:
        """Set the node up.

        Raises:
            RobotDynIdError: wrong parameters, files that cannot be read, a folder that cannot be written or that holds
                the results of an earlier run.
        """
        settings: IdentifierSettings = self.settings
        self._configuration: Configuration = read_configuration(settings.config or None)
        name = settings.folder or f"runs/identifier-{datetime.now():%Y%m%d-%H%M%S}"
        self._folder = output_folder(Path(name).expanduser())
        earlier = [file for file in RESULTS if (self._folder / file).exists()]
        if earlier:
            raise UsageError(
                f"parameter folder: {self._folder} holds {', '.join(earlier)} already; give another folder"
            )
        self._latched = self.publisher("identified_parameters")
        self._reports = self.publisher("identification_report")
        self._robot: RobotDescription | None = None
        self._work: threading.Thread | None = None
        self.outcome: Identification | RobotDynIdError | None = None
        self._recording: StreamRecording | None = None
        self._watch = ExcitationWatch()
        self._logged_waiting = ""
        self._source = RobotSource(self, settings.urdf, (), self._take_robot)
        if settings.parameters:
            self._publish(read_parameters(Path(settings.parameters).expanduser()))
            self.get_logger().info(f"published: {settings.parameters}")
        self._held_out = open_all(settings.validation, self._configuration)
        self._data = open_all(settings.data, self._configuration)
        if settings.listen and not self._data:
            kind = self.settings.joint_states_type
            self._recording = StreamRecording(self, self._folder, "identifier_recording_status", kind)
            self.create_timer(TIMER_PERIOD_S, self._recording.publish_status, clock=self.steady)
            if settings.after_excitation:
                self.subscription("excitation_status", self._follow)
        self.service("~/identify", self._identify)
        self.service("~/reset", self._reset)
        server = partial(self.goal_server, "~/identify_recordings")
        self._goals = IdentificationGoals(server, self._prepare, self._found)
        self.create_timer(TIMER_PERIOD_S, self._look)

    # --- inputs

    def _take_robot(self, model: RobotModel) -> None:
        self._robot = RobotDescription(model.urdf)

    def _follow(self, status: Any) -> None:
        """Identify when an excitation that was observed from its start is complete."""
        recording = self._recording
        assert recording is not None
        event = self._watch.take(status)
        if event == Event.BEGUN:
            recording.discard_part()  # before, brakes or other controllers may have held the robot
        elif event == Event.EXECUTED:
            recording.close_part()  # a fault during the return is not part of the excitation
        elif event == Event.FAULT_ON_RETURN:
            recording.discard_part()
            self.get_logger().warning(f"{event.value} ({status.reason}): only what was received before is used")
            self._begin_after_excitation()
        elif event == Event.OVER:
            self.get_logger().info("the excitation is complete")
            self._begin_after_excitation()
        elif event == Event.INCOMPLETE:
            recording.close_part()
            self.get_logger().warning(f"nothing is identified: {event.value}; call ~/identify to use what was received")

    def _begin_after_excitation(self) -> None:
        try:
            self.get_logger().info(self._begin())
        except RobotDynIdError as error:
            self.get_logger().error(str(error))

    def _waiting(self) -> str:
        """Event that the next identification waits for; logged when it changes."""
        waiting = "~/identify to be called"
        if self._recording is not None and self.settings.after_excitation:
            publishers = self.get_publishers_info_by_topic(self.resolve_topic_name("excitation_status"))
            names = {f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in publishers}
            waiting = self._watch.waiting(names)
        if waiting != self._logged_waiting:
            self._logged_waiting = waiting
            self.get_logger().info(f"waits for {waiting}")
        return waiting

    def _reset(self, request: Any, answer: Any) -> Any:
        answer.message = f"{self._received} messages discarded; their bags stay in {self._folder}"
        answer.success = True
        if self._recording is not None:
            self._recording.reset()
        return answer

    @property
    def _received(self) -> int:
        """Number of joint states since the start or the latest reset."""
        return 0 if self._recording is None else self._recording.received

    # --- identification, in a thread because joint states continue to arrive

    def _identify(self, request: Any, answer: Any) -> Any:
        try:
            answer.message = self._begin()
            answer.success = True
        except RobotDynIdError as error:
            answer.message = str(error)
            self.get_logger().error(answer.message)
        return answer

    def _begin(self) -> str:
        """Start the identification in a thread.

        Raises:
            InputError: an identification is already running, or data or robot description are missing.
        """
        robot = self._ready()
        parts = () if self._data else self._received_parts()
        self.outcome = None
        self._work = threading.Thread(target=self._run, args=(parts, robot), daemon=True)
        self._work.start()
        sources = [recording.source for recording in self._data] or [str(bag.folder) for bag in parts]
        return f"identifying from {', '.join(sources)}"

    def _ready(self) -> RobotDescription:
        """The robot, if an identification can begin.

        Raises:
            InputError: one is running, or there is no robot.
        """
        if self._work is not None or self._goals.running:
            raise InputError("an identification is already running; the result is published on identification_report")
        if self._robot is None:
            raise InputError(self._source.problem)
        return self._robot

    def _received_parts(self) -> tuple[BackgroundWriter, ...]:
        """Bags of all joint states that were received; later messages go to another bag.

        Raises:
            InputError: no joint states were received.
        """
        parts: tuple[BackgroundWriter, ...] = ()
        if self._recording is not None:
            self._recording.close_part()  # every pass must read the same data
            parts = self._recording.parts
        if not parts:
            publishers = self.count_publishers("joint_states")
            raise InputError(f"no joint states were received; joint_states has {publishers} publishers")
        return parts

    def _prepare(self, goal: Any) -> Callable[[], IdentificationTask]:
        """Check a goal; returns the function that makes its task when the bags are finished.

        Raises:
            RobotDynIdError: the reason for a refusal.
        """
        robot = self._ready()
        recordings = existing(goal.recordings) or existing(list(self.settings.data))
        task = IdentificationTask(
            urdf=robot.text,
            recordings=recordings,
            parts=(),
            validation=existing(goal.validation) or existing(list(self.settings.validation)),
            config=(*existing([goal.config] if goal.config else []), self.settings.config)[0],
            folder=str(results_folder(self._folder.absolute(), goal.folder)),
        )
        if recordings:
            return lambda: task
        parts = self._received_parts()
        return lambda: replace(task, parts=tuple(str(folder.absolute()) for folder in wait_for_bags(parts)))

    def _found(self, report: Any, parameters: Any) -> None:
        """Publish what a goal has found."""
        self._reports.publish(self._stamped(report))
        self.get_logger().info(f"goal: verdict {report.verdict}; {report.folder or '; '.join(report.reasons)}")
        if parameters is not None:
            self._latched.publish(self._stamped(parameters))

    def _run(self, parts: tuple[BackgroundWriter, ...], robot: RobotDescription) -> None:
        try:
            reading = MessageReading(names=self._configuration.recorded_joints)
            recordings = self._data or [open_parts(wait_for_bags(parts), None, reading)]
            trials = DataSelection(recordings, self._held_out)
            with closing(identify_recordings(robot, self._configuration, trials, self._log_stage)) as result:
                self.get_logger().info(f"writing {self._folder}")
                result.save(self._folder)
            self.outcome = result
        except RobotDynIdError as error:
            self.outcome = error
        except Exception as fault:  # otherwise the thread would end silently
            self.outcome = reported(fault, sys.argv)

    def _log_stage(self, stage: Stage) -> None:
        if not stage.detail:  # passes of an iteration would fill the log
            self.get_logger().info(str(stage))

    def _look(self) -> None:
        """Start with recordings once the robot is known, and report an identification that has ended."""
        self._goals.tick()
        if self._data and self._robot is not None and self._work is None and self.outcome is None:
            self.get_logger().info(self._begin())
        if self._work is None or self._work.is_alive():
            return
        outcome = self.outcome
        assert outcome is not None
        self._work = None
        if isinstance(outcome, InternalError):
            self.internal_errors += 1
            self.internal_error = str(outcome)
        self._reports.publish(self._stamped(identification_report(outcome, self._folder)))
        if isinstance(outcome, RobotDynIdError):
            self.get_logger().error(f"nothing was identified: {outcome}")
        elif isinstance(outcome, Identification):
            self._report_result(outcome)
        if self._data:
            self._end_without_model(outcome)

    def _end_without_model(self, outcome: Identification | RobotDynIdError) -> None:
        """End the node with the exit code of the command line if no model can be published."""
        if isinstance(outcome, Identification) and outcome.evaluation.verdict.word != "bad":
            return
        self.end = outcome if isinstance(outcome, RobotDynIdError) else 1

    def _report_result(self, result: Identification) -> None:
        evaluation, check = result.evaluation, result.evaluation.cross_check
        log = self.get_logger()
        log.info(
            f"cross-check: largest difference from Pinocchio {check.max_difference:.1e}, rank {check.rank_ours} ours, "
            f"{check.rank_pinocchio} Pinocchio's"
        )
        for warning in evaluation.warnings:
            log.warning(warning)
        log.info(f"held-out error {evaluation.held_out.all_joints_nrmse:.2%}; reports in {self._folder}")
        if evaluation.verdict.word == "bad":
            log.error(f"verdict bad, not published: {'; '.join(evaluation.verdict.reasons)}")
            return
        log.info(f"verdict {evaluation.verdict.word}: {len(result.parameters.base.names)} base parameters published")
        self._publish(result.parameters)

    def diagnosis(self) -> Diagnosis:
        """State of recording and identification."""
        values: dict[str, object] = {
            "messages": self._recording.stored if self._recording is not None else 0,
            "lost": self._recording.lost if self._recording is not None else 0,
        }
        waiting = "" if self._data else self._waiting()
        if waiting:
            values["waits for"] = waiting
        if self._recording is not None and self._recording.failure:
            return Diagnosis(ERROR, self._recording.failure, values)
        if isinstance(self.outcome, RobotDynIdError):
            return Diagnosis(ERROR, str(self.outcome), values)
        if self._work is not None or self._goals.running:
            return Diagnosis(OK, "identifying", values)
        if isinstance(self.outcome, Identification):
            word = self.outcome.evaluation.verdict.word
            return Diagnosis({"good": OK, "suspect": WARN}.get(word, ERROR), f"identified, verdict {word}", values)
        if self._robot is None:
            return Diagnosis(WARN, self._source.problem, values)
        return Diagnosis(OK, f"waits for {waiting}" if waiting else "reading recordings", values)

    def _publish(self, parameters: Any) -> None:
        if parameters.verdict == "bad":
            raise InputError(f"{self.settings.parameters}: the verdict is bad; the parameters are not published")
        self._latched.publish(self._stamped(parameter_set_message(parameters)))

    def _stamped(self, message: Any) -> Any:
        message.header.stamp = self.get_clock().now().to_msg()
        return message

    def stop(self) -> bool:
        """Finish the bags. A running identification is abandoned; its files are written completely or not at all.

        The exit code of the node is not 0 if joint states are missing from its bags.
        """
        self._goals.cancel()
        self._goals.tick()
        if self._recording is not None:
            self._recording.end()
        finished = self._recording is None or self._recording.finished()
        if finished and self._recording is not None and self._recording.lost_bag and self.end is None:
            self.end = InputError(self._recording.lost_bag)
        return finished and not self._goals.running and self._goals.server.settled


def main() -> int:
    """Run the node."""
    return run(Identifier)
