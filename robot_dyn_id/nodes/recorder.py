# SPDX-License-Identifier: Apache-2.0
"""Node `recorder`: topics to a rosbag2 folder; nothing is overwritten, and a bag stays readable after a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from robot_dyn_id.errors import InputError, RobotDynIdError, UsageError
from robot_dyn_id.excitation.execution.enumerations import find_member
from robot_dyn_id.excitation.execution.recording_watch import MotionWatch
from robot_dyn_id.excitation.execution.supervision import Phase
from robot_dyn_id.msg import ExcitationStatus, RecordingStatus
from robot_dyn_id.nodes.recording.session import RecordingSession
from robot_dyn_id.nodes.recording.status_topic import RecordingStatusTopic
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, OK, WARN, Diagnosis
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RobotNode, publishes, serves, subscribes
from robot_dyn_id.nodes.runtime.ros_parameters import changeable, path_parameter, ros_parameter, topic_parameter

CHECK_PERIOD_S = 0.1
"""Time between two checks of publishers and writer [s]."""

STOP_TIMEOUT_S = 2.0
"""Time for which `~/stop` waits for the disk [s]; afterwards the bag is finished in the background."""

STATE_NAMES = {
    RecordingStatus.IDLE: "idle",
    RecordingStatus.RECORDING: "recording",
    RecordingStatus.FINISHED: "finished",
    RecordingStatus.PAUSED: "paused",
}

UNDER_WAY = (Phase.APPROACHING, Phase.RUNNING)

NOTHING = "nothing is being recorded"


@dataclass(frozen=True)
class RecorderSettings:
    """ROS parameters of the recorder."""

    folder: str = path_parameter(
        "",
        "Bag folder, must not exist; strftime codes are replaced at the start of each recording, for example "
        "bags/%Y-%m-%d_%H-%M-%S",
    )
    topics: tuple[str, ...] = topic_parameter(("joint_states",), "Topics to record, of any type")
    start: bool = ros_parameter(
        True, "Start recording immediately (the node exits on failure); false: wait for ~/start"
    )
    max_duration: float = changeable(
        ros_parameter(0.0, "Maximum duration of a recording; 0: unlimited", "s", minimum=0.0)
    )


class Recorder(RobotNode):
    """Recorder of topics; see `PURPOSE` and `INTERFACES`."""

    NAME = "recorder"
    PURPOSE = "records topics to a rosbag2 folder (mcap), message bytes unchanged"
    SETTINGS = RecorderSettings
    INTERFACES = (
        subscribes(
            "joint_states",
            JointState,
            "Joint states, or the topics of the parameter topics, with the QoS of their publishers",
        ),
        subscribes("excitation_status", ExcitationStatus, "Reported if the excitation fails or disappears", LATCHED),
        publishes("recording_status", RecordingStatus, "State and quality of the recording", LATCHED),
        serves("~/start", Trigger, "Start a recording"),
        serves(
            "~/stop",
            Trigger,
            "Stop the recording; success means that the bag is complete, otherwise the message states what is lost",
        ),
        serves("~/pause", SetBool, "Pause the recording (true) or continue it (false)"),
    )

    def begin(self) -> None:
        """Set the node up; with `start` the recording starts, and the node ends if that fails."""
        self._check_topics()
        self._state, self._reason = RecordingStatus.IDLE, ""
        self._recording: RecordingSession | None = None
        self._lost = ""  # reason of the first recording that failed
        self._motion = MotionWatch()
        self._status = RecordingStatusTopic(self, "recording_status")
        self.service("~/start", self._on_start)
        self.service("~/stop", self._on_stop)
        self.service("~/pause", self._on_pause)
        self.subscription("excitation_status", self._on_excitation)
        self.create_timer(CHECK_PERIOD_S, self._look, clock=self.steady)
        if self.settings.start:
            self.end = self._begin()
        else:
            self._publish_status()

    @property
    def _active(self) -> RecordingSession | None:
        """Current recording, also while it is paused."""
        return self._recording if self._state in (RecordingStatus.RECORDING, RecordingStatus.PAUSED) else None

    def stop(self) -> bool:
        """Finish the bag; the exit code of the node is not 0 if a recording has failed."""
        finished = self._finish(0.0)
        if finished and self._lost and self.end is None:
            self.end = InputError(self._lost)
        return finished

    def diagnosis(self) -> Diagnosis:
        """Diagnosis from the status."""
        values = {} if self._recording is None else self._recording.figures()
        if self._state == RecordingStatus.FAILED:
            return Diagnosis(ERROR, self._reason, values)
        return Diagnosis(WARN if self._reason else OK, self._reason or STATE_NAMES[self._state], values)

    def _check_topics(self) -> None:
        """Check the parameter `topics`.

        Raises:
            UsageError: it is empty, or two names are those of one topic.
        """
        if not self.settings.topics:
            raise UsageError("parameter topics is empty: name the topics to record")
        names = [self.resolve_topic_name(topic) for topic in self.settings.topics]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"parameter topics names {name} twice")

    def _on_excitation(self, status: Any) -> None:
        phase = find_member(Phase, status.state)
        fault = status.reason if phase == Phase.FAULT else ""
        moving = None if phase is None else phase in UNDER_WAY
        self._note(lambda: self._motion.receive(self._seconds(), moving, fault))

    def _note(self, watch: Callable[[], None]) -> None:
        """Update the motion watch, and log a new remark."""
        before = self._motion.remark
        watch()
        if self._active is not None and self._motion.remark not in ("", before):
            self.get_logger().warning(f"{self._motion.remark}; what was recorded is kept")

    def _remarks(self, recording: RecordingSession) -> str:
        return "; ".join(filter(None, (recording.remarks, self._motion.remark)))

    def _look(self) -> None:
        """Check publishers, disk and motion."""
        self._note(lambda: self._motion.tick(self._seconds()))
        if self._active is not None:
            longest = self.settings.max_duration
            if self._active.ending or self._active.failure or 0.0 < longest <= self._active.age:
                self._finish(0.0)
            else:
                self._active.look()
                self._reason = self._remarks(self._active)
        self._publish_status()

    def _begin(self) -> RobotDynIdError | None:
        """Start a recording; returns the reason if that fails."""
        self._recording, failure = None, None
        self._motion.begin()
        try:
            self._recording = RecordingSession(self, self.settings.folder, self.settings.topics)
        except RobotDynIdError as error:
            failure = error
            self._state, self._reason = RecordingStatus.FAILED, str(error)
            self.get_logger().error(f"cannot record: {error}")
        else:
            self._state, self._reason = RecordingStatus.RECORDING, self._recording.remarks
            self.get_logger().info(f"recording {', '.join(self.settings.topics)} into {self._recording.folder}")
        self._publish_status()
        return failure

    def _finish(self, timeout: float) -> bool:
        """End the recording, if there is one; False if the disk needs more than `timeout` seconds."""
        if self._active is None:
            return True
        self._active.end()
        if not self._active.ended(timeout):
            self._reason = "finishing the bag"
            return False
        recording, failure = self._active, self._active.failure
        if failure:
            self._state, self._reason = RecordingStatus.FAILED, failure
            self._lost = self._lost or failure
            self.get_logger().error(failure)
        else:
            self._state, self._reason = RecordingStatus.FINISHED, self._remarks(recording)
            empty = "; without a message there is no bag" if recording.empty else ""
            self.get_logger().info(f"finished {recording.folder}{empty}")
        for name, figures in recording.figures().items():
            self.get_logger().info(f"{name}: {figures}")
        self._publish_status()
        return True

    def _publish_status(self) -> None:
        """Publish the status if it changed, or periodically."""
        self._status.publish(self._state, self._reason, self._describe)

    def _describe(self, status: RecordingStatus) -> str | None:
        return None if self._recording is None else self._recording.describe(status)

    def _on_start(self, request: Any, answer: Any) -> str:
        if self._active is not None:
            raise InputError(f"already recording into {self._active.folder}: call ~/stop first")
        if failure := self._begin():
            raise failure
        assert self._recording is not None
        return self._recording.folder

    def _on_stop(self, request: Any, answer: Any) -> str:
        recording = self._active
        if recording is None:
            raise InputError(self._reason if self._state == RecordingStatus.FAILED else NOTHING)
        if not self._finish(STOP_TIMEOUT_S):
            raise InputError(f"{recording.folder}: the disk is slow; wait for recording_status FINISHED")
        if self._state != RecordingStatus.FINISHED:
            raise InputError(self._reason)
        return self._reason if recording.empty else recording.folder

    def _on_pause(self, request: Any, answer: Any) -> str:
        if self._active is None:
            raise InputError(NOTHING)
        self._active.pause(request.data)
        self._state = RecordingStatus.PAUSED if request.data else RecordingStatus.RECORDING
        self._reason = self._remarks(self._active)
        self._publish_status()
        return "paused" if request.data else "recording"
