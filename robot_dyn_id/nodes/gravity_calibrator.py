# SPDX-License-Identifier: Apache-2.0
"""Node `gravity_calibrator`: gravity of an arm in drive units, from poses that an excitation publisher has held."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.excitation.execution.excitation_watch import Event
from robot_dyn_id.files.configuration import Configuration, read_configuration
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.msg import ExcitationStatus, RecordingStatus
from robot_dyn_id.nodes.gravity_compensator import CALIBRATION
from robot_dyn_id.nodes.recording.recorded_excitations import RecordedExcitations
from robot_dyn_id.nodes.recording.stream_recording import StreamRecording, make_folder, wait_for_bags
from robot_dyn_id.nodes.runtime.computation import Computation
from robot_dyn_id.nodes.runtime.deferred_answers import DeferredAnswers
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, OK, STALE, WARN, log_findings
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RobotNode, publishes, serves, subscribes
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.runtime.ros_parameters import path_parameter, ros_parameter
from robot_dyn_id.recordings.background_writer import BackgroundWriter
from robot_dyn_id.recordings.rosbag2 import MessageReading, open_parts
from robot_dyn_id.text.files import read_text
from robot_dyn_id.text.yaml import YAML_LIMIT
from robot_dyn_id.workflow.gravity_calibration import CALIBRATED, GRAVITY, CalibrationResult, calibrate_recordings

TIMER_PERIOD_S = 0.1


@dataclass(frozen=True)
class GravityCalibratorSettings:
    """ROS parameters of the node."""

    urdf: str = path_parameter("", "URDF or xacro file; empty: received on the topic robot_description")
    folder: str = path_parameter("", "Folder for bags and gravity.yaml; empty: runs/gravity-<date and time>")
    config: str = path_parameter(
        "", "Configuration of fixed joints, names of joints and gravity, as `robot-dyn-id gravity --config`"
    )
    trust_urdf_mass: bool = ros_parameter(
        False, "The total mass of the URDF fixes the scale of masses and gains, and calibrated.urdf is written"
    )
    calibration: str = path_parameter(
        "", "File gravity.yaml of an earlier calibration that is published until the next one; empty: none"
    )


class GravityCalibrator(RobotNode):
    """Calibration after every excitation that was observed from its beginning; see `calibrate_recordings`."""

    NAME = "gravity_calibrator"
    PURPOSE = "calibrates the gravity of an arm without torque sensors from poses that are held, and publishes it"
    SETTINGS = GravityCalibratorSettings
    INTERFACES = (
        subscribes("joint_states", JointState, "Positions, and efforts in drive units; any reliability"),
        DESCRIPTION,
        subscribes("excitation_status", ExcitationStatus, "Start and end of the motion", LATCHED),
        publishes(
            "identifier_recording_status", RecordingStatus, "State of the recording of live joint states", LATCHED
        ),
        publishes(CALIBRATION, String, "Text of gravity.yaml", LATCHED),
        serves("~/calibrate", Trigger, "Calibrate from all joint states that were received"),
        serves("~/reset", Trigger, "Leave out what was received so far"),
    )

    def begin(self) -> None:
        """Set the node up.

        Raises:
            RobotDynIdError: files that cannot be read, or a folder that cannot be written or that holds a calibration.
        """
        settings: GravityCalibratorSettings = self.settings
        self._configuration: Configuration = read_configuration(settings.config or None)
        self._folder = make_folder(settings.folder, "runs/gravity-", (GRAVITY, CALIBRATED))
        self._calibrations = self.publisher(CALIBRATION)
        self._robot: RobotDescription | None = None
        self._outcome: tuple[bytes, str] | None = None
        if settings.calibration:
            self._publish(settings.calibration)
        self._recording = StreamRecording(self, self._folder, "identifier_recording_status")
        self._watch = RecordedExcitations(self, self._recording)
        self._source = RobotSource(self, settings.urdf, (), self._take_robot)
        self.subscription("excitation_status", self._follow)
        self._job: Computation[tuple[CalibrationResult, str]] | None = None
        self._requests: list[Any] = []
        self._answers = DeferredAnswers(self.service("~/calibrate", self._on_calibrate))
        self.service("~/reset", self._on_reset)
        self.create_timer(TIMER_PERIOD_S, self._look, clock=self.steady)

    def _take_robot(self, model: RobotModel) -> None:
        self._robot = RobotDescription(model.urdf)

    def _follow(self, status: Any) -> None:
        """Calibrate when a motion that was observed from its start is complete."""
        event = self._watch.take(status)
        if event == Event.BEGUN:
            self._outcome = None
        elif event in (Event.OVER, Event.FAULT_ON_RETURN):
            self._recording.discard_part()
            try:
                self._calibrate()
            except InputError as error:
                self._outcome = ERROR, f"calibration failed: {error}"
        elif event == Event.INCOMPLETE:
            self._outcome = (
                ERROR,
                f"nothing is calibrated: {event.value} ({status.reason or 'no reason given'}); what was received stays "
                f"in {self._folder}; start again, or call ~/calibrate to use it",
            )

    def _calibrate(self) -> None:
        """Begin to calibrate from the finished bags.

        Raises:
            InputError: no robot, no recording, or a calibration that is under way.
        """
        if self._job is not None:
            raise InputError("a calibration is under way")
        if self._robot is None:
            raise InputError(self._source.problem)
        parts = self._recording.take_parts()
        self._bags = ", ".join(str(bag.folder) for bag in parts)
        self._recording.reset()
        self._job = Computation(partial(self._compute, self._robot, parts))
        self._outcome = OK, f"calibrating from {self._bags}"

    def _compute(self, robot: RobotDescription, parts: tuple[BackgroundWriter, ...]) -> tuple[CalibrationResult, str]:
        """Calibration from bags, and its file; in a thread.

        Raises:
            RobotDynIdError: a recording that cannot be used, or a folder that cannot be written.
        """
        reading = MessageReading(names=self._configuration.recorded_joints)
        recording = open_parts(wait_for_bags(parts), None, reading)
        trusted = self.settings.trust_urdf_mass
        result = calibrate_recordings(robot, [recording], self._configuration, trust_mass=trusted)
        return result, str(result.write(self._unused_folder())["file"])

    def _conclude(self, job: Computation[tuple[CalibrationResult, str]]) -> None:
        """Publish a calibration that has ended, or keep the reason for its failure."""
        try:
            result, file = job.result()
            self._publish(file)
        except RobotDynIdError as error:
            self._outcome = ERROR, f"calibration failed: {error}; the recording stays in {self._bags}"
        else:
            warnings = [finding for finding in result.findings if finding.severity != "info"]
            log_findings(self.get_logger(), result.findings)
            self._outcome = (WARN if warnings else OK), f"{_summary(result)}, in {file}"
        for answer in self._requests:
            self._answers.give(answer, self._outcome[0] != ERROR, self._outcome[1])
        self._requests.clear()

    def _unused_folder(self) -> Path:
        """Folder for the files of a calibration: those of earlier ones stay."""
        later = (self._folder / f"calibration_{number}" for number in count(2))
        return next(folder for folder in chain([self._folder], later) if not (folder / GRAVITY).exists())

    def _publish(self, file: str) -> None:
        """Publish the text of a calibration."""
        self._calibrations.publish(String(data=read_text(file, "calibration of gravity", YAML_LIMIT, InputError)))

    def _on_calibrate(self, request: Any, answer: Any) -> Any:
        self._recording.close_part()
        self._calibrate()
        self._requests.append(answer)
        return self._answers.defer(answer)

    def _on_reset(self, request: Any, answer: Any) -> str:
        self._outcome = None
        return f"{self._recording.reset()} messages left out; their bags stay in {self._folder}"

    def _look(self) -> None:
        """Report the state."""
        self._recording.publish_status()
        if self._job is not None and self._job.done:
            job, self._job = self._job, None
            self._conclude(job)
        if self._recording.failure:
            self.condition.report(ERROR, self._recording.failure)
        elif self._outcome is not None:
            self.condition.report(*self._outcome)
        elif self._robot is None:
            waits = self._source.problem.startswith("waiting")
            self.condition.report(STALE if waits else ERROR, self._source.problem)
        else:
            waiting = self._watch.waiting().replace("~/identify", "~/calibrate")
            self.condition.report(OK, f"waits for {waiting}")

    def stop(self) -> bool:
        """Finish the bags, and a calibration that is under way."""
        self._recording.end()
        return self._recording.finished() and (self._job is None or self._job.done)


def _summary(result: CalibrationResult) -> str:
    """Accuracy of a calibration in one line."""
    rows = zip(result.model.joint_names, result.found.gravity_rms, result.found.residual_rms, strict=True)
    parts = [f"{name} {100.0 * rest / size:.1f} %" for name, size, rest in rows if size > 0.0]
    return f"gravity calibrated from {result.found.residuals.shape[1]} holds; residual / gravity: {', '.join(parts)}"
