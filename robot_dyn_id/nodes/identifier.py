# SPDX-License-Identifier: Apache-2.0
"""Node `identifier`: a live stream of joint states, or recordings, become a latched model and a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robot_dyn_id.action import IdentifyRecordings
from robot_dyn_id.errors import InputError, InternalError, RobotDynIdError, UsageError
from robot_dyn_id.excitation.execution.excitation_watch import Event
from robot_dyn_id.files.configuration import read_configuration
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.msg import ActuatorSet as ActuatorSetMsg
from robot_dyn_id.msg import ExcitationStatus, IdentificationReport, RecordingStatus
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.messages.conversions import make_parameter_set_message
from robot_dyn_id.nodes.messages.joint_state_source import type_parameter
from robot_dyn_id.nodes.messages.outcomes import make_identification_report, make_model_message
from robot_dyn_id.nodes.recording.identification_goals import IdentificationGoals, make_task
from robot_dyn_id.nodes.recording.identification_job import IdentificationTask
from robot_dyn_id.nodes.recording.identification_thread import IdentificationThread, Outcome
from robot_dyn_id.nodes.recording.recorded_excitations import RecordedExcitations
from robot_dyn_id.nodes.recording.stream_recording import StreamRecording, make_folder
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, OK, WARN, Diagnosis
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RobotNode, executes, publishes, serves, subscribes
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.runtime.ros_parameters import path_parameter, ros_parameter
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings.background_writer import BackgroundWriter
from robot_dyn_id.report.folder import RESULTS
from robot_dyn_id.workflow.actuators import FILES

TIMER_PERIOD_S = 0.1
"""Time between two checks of the running identification and of the recording [s]."""

DYNAMICS, ACTUATORS = "dynamics", "actuators"
MODELS = (DYNAMICS, ACTUATORS)
"""Identified models: dynamics from joint torques, or actuators from commanded and measured positions."""


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
    model: str = ros_parameter(
        DYNAMICS,
        "Identified model: dynamics, from joint torques, or actuators, from commanded and measured positions, as in "
        "the state of a joint trajectory controller on joint_states",
        choices=MODELS,
    )
    kp: tuple[float, ...] = ros_parameter(
        (),
        "Gains of positions of the drives, one for all joints or one per joint; empty: estimated; for actuators alone",
        "N m/rad or N/m",
        0.0,
    )
    kd: tuple[float, ...] = ros_parameter(
        (), "Gains of velocities of the drives; empty: estimated", "N m s/rad or N s/m", 0.0
    )

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the files of a result."""
        return FILES if self.of_actuators else RESULTS

    @property
    def topic(self) -> str:
        """Topic of the identified model."""
        return "identified_actuators" if self.of_actuators else "identified_parameters"

    @property
    def of_actuators(self) -> bool:
        """Whether actuators are identified, and not the dynamics.

        Raises:
            UsageError: parameters that belong to the other model.
        """
        if self.model == ACTUATORS:
            if self.parameters:
                raise UsageError("parameters needs model to be dynamics")
        elif self.kp or self.kd:
            raise UsageError("kp and kd need model to be actuators")
        return self.model == ACTUATORS


INTERFACES = (
    subscribes("joint_states", JointState, "Measured joint states, or joint_states_type; any reliability"),
    DESCRIPTION,
    subscribes("excitation_status", ExcitationStatus, "Start and end of an excitation", LATCHED),
    publishes(
        "identified_parameters", ParameterSetMsg, "Identified model; a model with verdict bad is not published", LATCHED
    ),
    publishes(
        "identified_actuators",
        ActuatorSetMsg,
        "Identified actuators, if the parameter model is actuators; not published with verdict bad",
        LATCHED,
    ),
    publishes("identifier_recording_status", RecordingStatus, "State of the recording of live joint states", LATCHED),
    publishes(
        "identification_report",
        IdentificationReport,
        "Identification report: verdict, warnings, held-out errors",
        LATCHED,
    ),
    serves(
        "~/identify",
        Trigger,
        "Start the identification from all received data; the result is published on identification_report",
    ),
    serves("~/reset", Trigger, "Discard the received data"),
    executes(
        "~/identify_recordings",
        IdentifyRecordings,
        "Identify from recordings or from all received data, in a process that can be canceled",
    ),
)


class Identifier(RobotNode):
    """Records live joint states to a bag and identifies from it, by the same pipeline as from recordings.

    Attributes:
        outcome: latest identification, or why there is none; None before the first ends.
    """

    NAME = "identifier"
    PURPOSE = "identifies the robot dynamics from live joint states or from recordings, and publishes the model"
    SETTINGS = IdentifierSettings
    INTERFACES = INTERFACES

    def begin(self) -> None:
        """Set the node up.

        Raises:
            RobotDynIdError: wrong parameters, files that cannot be read, a folder that cannot be written or that holds
                the results of an earlier run.
        """
        settings: IdentifierSettings = self.settings
        configuration, log = read_configuration(settings.config or None), self.get_logger()
        self._folder = make_folder(settings.folder, "runs/identifier-", settings.results)
        self._latched, self._reports = self.publisher(settings.topic), self.publisher("identification_report")
        self._robot: RobotDescription | None = None
        self.outcome: Outcome | RobotDynIdError | None = None
        self._recording: StreamRecording | None = None
        self._watch: RecordedExcitations | None = None
        self._logged_waiting = ""
        self._source = RobotSource(self, settings.urdf, (), self._take_robot)
        if settings.parameters:
            self._publish(read_parameters(Path(settings.parameters).expanduser()))
            log.info(f"published: {settings.parameters}")
        self._work = IdentificationThread(configuration, settings, self._folder, log)
        if settings.listen and not self._work.data:
            status, kind = "identifier_recording_status", settings.joint_states_type
            self._recording = StreamRecording(self, self._folder, status, kind)
            if settings.after_excitation:
                self._watch = RecordedExcitations(self, self._recording)
                self.subscription("excitation_status", self._follow)
        self.service("~/identify", self._identify)
        self.service("~/reset", self._reset)
        server = partial(self.goal_server, "~/identify_recordings")
        self._goals = IdentificationGoals(server, self._prepare, self._found)
        self.create_timer(TIMER_PERIOD_S, self._look, clock=self.steady)

    # --- inputs

    def _take_robot(self, model: RobotModel) -> None:
        self._robot = RobotDescription(model.urdf)

    def _follow(self, status: Any) -> None:
        """Identify when an excitation that was observed from its start is complete."""
        assert self._watch is not None
        event = self._watch.take(status)
        if event == Event.FAULT_ON_RETURN:
            self.get_logger().warning(f"{event.value} ({status.reason}): only what was received before is used")
            self._try()
        elif event == Event.OVER:
            self.get_logger().info("the excitation is complete")
            self._try()
        elif event == Event.INCOMPLETE:
            self.get_logger().warning(f"nothing is identified: {event.value}; call ~/identify to use what was received")

    def _waiting(self) -> str:
        """Event that the next identification waits for; logged when it changes."""
        waiting = "~/identify to be called" if self._watch is None else self._watch.waiting()
        if waiting != self._logged_waiting:
            self._logged_waiting = waiting
            self.get_logger().info(f"waits for {waiting}")
        return waiting

    def _reset(self, request: Any, answer: Any) -> str:
        received = 0 if self._recording is None else self._recording.reset()
        return f"{received} messages discarded; their bags stay in {self._folder}"

    # --- identification, in a thread because joint states continue to arrive

    def _identify(self, request: Any, answer: Any) -> Any:
        answer.success, answer.message = self._try()
        return answer

    def _try(self) -> tuple[bool, str]:
        """Start the identification if it can be started; returns whether, and what is done or why not."""
        try:
            text = self._begin()
        except RobotDynIdError as error:
            self.get_logger().error(str(error))
            return False, str(error)
        self.get_logger().info(text)
        return True, text

    def _begin(self) -> str:
        """Start the identification in a thread.

        Raises:
            InputError: an identification is already running, or data or robot description are missing.
        """
        robot = self._ready()
        parts = () if self._work.data else self._received_parts()
        self.outcome = None
        return self._work.start(robot, parts)

    def _ready(self) -> RobotDescription:
        """The robot, if an identification can begin.

        Raises:
            InputError: one is running, or there is no robot.
        """
        if self._work.running or self._goals.running:
            raise InputError("an identification is already running; the result is published on identification_report")
        if self._robot is None:
            raise InputError(self._source.problem)
        return self._robot

    def _received_parts(self) -> tuple[BackgroundWriter, ...]:
        """Bags of all joint states that were received; later messages go to another bag.

        Raises:
            InputError: no joint states were received.
        """
        if self._recording is None:
            raise InputError("no joint states were received: the parameter listen is false")
        self._recording.close_part()  # every pass must read the same data
        return self._recording.take_parts()

    def _prepare(self, goal: Any) -> Callable[[], IdentificationTask]:
        """Check a goal; see `make_task`."""
        return make_task(goal, self._ready().text, self.settings, self._folder, self._received_parts)

    def _found(self, report: Any, parameters: Any) -> None:
        """Publish what a goal has found."""
        self._reports.publish(self.stamped(report))
        self.get_logger().info(f"goal: verdict {report.verdict}; {report.folder or '; '.join(report.reasons)}")
        if parameters is not None:
            self._latched.publish(self.stamped(parameters))

    def _look(self) -> None:
        """Start with recordings once the robot is known, and report an identification that has ended."""
        if self._recording is not None:
            self._recording.publish_status()
        self._goals.tick()
        work = self._work
        if work.data and self._robot is not None and not work.running and self.outcome is None:
            self.get_logger().info(self._begin())
        outcome = work.take()
        if outcome is None:
            return
        self.outcome = outcome
        if isinstance(outcome, InternalError):
            self.internal_errors += 1
            self.internal_error = str(outcome)
        self._reports.publish(self.stamped(make_identification_report(outcome, self._folder)))
        if isinstance(outcome, RobotDynIdError) or outcome.verdict.word == "bad":
            if work.data:  # the exit code is that of the command line
                self.end = outcome if isinstance(outcome, RobotDynIdError) else 1
        else:
            self._latched.publish(self.stamped(make_model_message(outcome)))

    def diagnosis(self) -> Diagnosis:
        """State of recording and identification."""
        recording = self._recording
        stored, lost = (0, 0) if recording is None else (recording.stored, recording.lost)
        values: dict[str, object] = {"messages": stored, "lost": lost}
        waiting = "" if self._work.data else self._waiting()
        if waiting:
            values["waits for"] = waiting
        if recording is not None and recording.failure:
            return Diagnosis(ERROR, recording.failure, values)
        if isinstance(self.outcome, RobotDynIdError):
            return Diagnosis(ERROR, str(self.outcome), values)
        if self._work.running or self._goals.running:
            return Diagnosis(OK, "identifying", values)
        if self.outcome is not None:
            word = self.outcome.verdict.word
            return Diagnosis({"good": OK, "suspect": WARN}.get(word, ERROR), f"identified, verdict {word}", values)
        if self._robot is None:
            return Diagnosis(WARN, self._source.problem, values)
        return Diagnosis(OK, f"waits for {waiting}" if waiting else "reading recordings", values)

    def _publish(self, parameters: ParameterSet) -> None:
        if parameters.judgment.verdict == "bad":
            raise InputError(f"{self.settings.parameters}: the verdict is bad; the parameters are not published")
        self._latched.publish(self.stamped(make_parameter_set_message(parameters)))

    def stop(self) -> bool:
        """Finish the bags. A running identification is abandoned; its files are written completely or not at all.

        The exit code of the node is not 0 if joint states are missing from its bags.
        """
        self._goals.cancel()
        self._goals.tick()
        recording = self._recording
        if recording is not None:
            recording.end()
            if not recording.finished():
                return False
            if recording.lost_bag and self.end is None:
                self.end = InputError(recording.lost_bag)
        return not self._goals.running and self._goals.server.settled
