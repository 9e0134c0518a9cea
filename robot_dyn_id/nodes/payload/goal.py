# SPDX-License-Identifier: Apache-2.0
"""Goals of the payload identifier: motion and estimate, or writing into a driver; polled until they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robot_dyn_id.action import IdentifyPayload
from robot_dyn_id.dynamics.consistency import convert_to_central
from robot_dyn_id.errors import InputError, MotionError, RobotDynIdError
from robot_dyn_id.files.payload import MOMENTS, write_payload
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.declared import DeclaredPayload
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.nodes.messages.conversions import make_finding_message
from robot_dyn_id.nodes.payload.drivers import DriverClient
from robot_dyn_id.nodes.payload.settings import PayloadSettings
from robot_dyn_id.nodes.payload.wrist import WristExcitation, WristMotion
from robot_dyn_id.nodes.recording.stream_recording import StreamRecording, wait_for_bags
from robot_dyn_id.nodes.runtime.computation import Computation
from robot_dyn_id.nodes.runtime.goals import GoalServer
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings.rosbag2 import open_parts
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.workflow.payload import PayloadRun, identify_from_halves, prepare_run
from robot_dyn_id.workflow.payload_motion import PayloadMotion

SLOW_TEST, MEASUREMENT = "payload_slow_test", "payload_excitation"
MOTIONS = dict.fromkeys((SLOW_TEST, MEASUREMENT), WristExcitation)
"""Excitation publishers that move the wrist, by name."""

FEEDBACK_S = 0.5
"""Period of the feedback of an unchanged stage [s]."""

Result, Goal = IdentifyPayload.Result, IdentifyPayload.Goal


class PayloadStage(Enum):
    """Stages of a goal, by their names in the feedback."""

    CHECK = "check"
    SLOW_TEST = "slow test"
    WARM_UP = "warm-up"
    MEASUREMENT = "measurement"
    RETURN = "return"
    ESTIMATE = "estimate"
    WRITE = "write"


class GoalEnd(NamedTuple):
    """End of a goal: constant of the result, and the reason or the remark on a success."""

    code: int
    message: str


class PayloadGoal:
    """A goal that is executed.

    Attributes:
        stage: present stage.
        remark: remark on it.
        folder: folder of its files; empty before there is a motion.
        end: its end; None while it lasts.
        run: motion, recordings and result, as far as they are known; None before the motion is designed.
        loaded: the arm with the identified payload; None without one.
        wrist: motion that is under way; None without one.
    """

    run: PayloadRun | None = None
    loaded: ParameterSet | None = None
    wrist: WristMotion | None = None

    def __init__(self, node: RobotNode, stage: PayloadStage, remark: str = "") -> None:
        """Begin with a stage."""
        self._node, self._begun = node, time.monotonic()
        self.stage, self.remark, self.folder = stage, remark, ""
        self.end: GoalEnd | None = None

    @property
    def elapsed(self) -> float:
        """Time since the goal was accepted [s]."""
        return time.monotonic() - self._begun

    @property
    def status(self) -> str:
        """Stage with its remark."""
        return f"{self.stage.value}{f': {self.remark}' if self.remark else ''}"

    @property
    def remaining(self) -> float:
        """Planned time of the motions that are left [s]; 0 where it is not known."""
        return 0.0

    @property
    def busy(self) -> bool:
        """Whether a computation goes on after the end."""
        return False

    def tick(self) -> None:
        """Advance."""

    def brake(self, end: GoalEnd) -> None:
        """End as soon as the robot is at rest."""

    def remove_wrist(self) -> None:
        """Remove the motion of a robot at rest."""

    def finish(self, code: int, message: str) -> None:
        """End now."""
        self.end = GoalEnd(code, message)

    def fields(self) -> dict[str, Any]:
        """Fields of the result."""
        fields: dict[str, Any] = {
            "link": self._node.settings.link,
            "standard_deviations": [np.inf] * 10,
            "expected_deviations": [np.inf] * 10,
            "findings": [
                make_finding_message(finding) for finding in (self.run.findings if self.run is not None else ())
            ],
            "folder": self.folder,
            "seconds": self.elapsed,
        }
        run = self.run
        if run is None:
            return fields
        fields["expected_deviations"] = run.accuracy.standard_deviations.tolist()
        fields["not_identified"] = list(run.accuracy.missing)
        payload, test = run.payload, run.test
        if payload is not None:
            fields |= {
                "mass": payload.mass,
                "center_of_mass": payload.center_of_mass.tolist(),
                "inertia": [float(payload.inertia[place]) for place in MOMENTS.values()],
                "standard_deviations": payload.central_standard_deviations.tolist(),
                "not_identified": list(payload.not_excited),
            }
        if test is not None:
            fields |= {
                "declared": True,
                "declared_accepted": test.accepted,
                "declared_mass": test.declared.mass,
                "declared_p_value": test.p_value,
            }
        return fields


class WritingGoal(PayloadGoal):
    """Writing of a payload into a driver, which has to answer."""

    def __init__(
        self, node: RobotNode, payload: Payload, folder: Path, number: int, driver: DriverClient | None
    ) -> None:
        """Write or send a payload.

        Args:
            node: node that executes the goal.
            payload: the payload in the frame of the driver.
            folder: folder of the results.
            number: number of the tool.
            driver: driver that has to answer; None: a file is written.

        Raises:
            InputError: the file cannot be written, or the service of the driver has no server.
        """
        mass, center, _ = convert_to_central(payload.parameters)
        frame = node.settings.driver_frame or "the flange"
        words = f"{mass:.4g} kg at {np.round(center, 4).tolist()} m from {frame}"
        if driver is None:
            file = make_output_folder(folder / "tools") / f"tool_{number}.yaml"
            write_payload(file, payload)
            self._written = f"tool {number} is written to {file}: {words}"
        else:
            driver.send(payload.parameters)
            self._written = f"the driver has taken the payload: {words}"
        self._driver = driver
        super().__init__(node, PayloadStage.WRITE, words)

    def tick(self) -> None:
        """Look whether the driver has answered."""
        refusal = "" if self._driver is None else self._driver.result()
        limit = self._node.settings.driver_timeout
        if refusal == "":
            self.finish(Result.SUCCEEDED, self._written)
        elif refusal is not None:
            self.finish(Result.DRIVER_REFUSED, refusal)
        elif self.elapsed > limit:
            late = f"the driver has not answered within {limit:g} s: its payload is not known"
            self.finish(Result.DRIVER_REFUSED, late)

    def finish(self, code: int, message: str) -> None:
        """End now; a driver that has been given a payload may still answer."""
        unknown = code in (Result.STOPPED, Result.INTERNAL_ERROR)
        super().finish(code, message + ("; the payload of the driver is not known" if unknown else ""))


class MotionGoal(PayloadGoal):
    """Check, slow test, warm-up and measurement with the wrist, and the estimate."""

    def __init__(
        self,
        node: RobotNode,
        task: int,
        motion: PayloadMotion,
        settings: Settings,
        reference: PayloadRun | None,
        declared: DeclaredPayload | None,
        folder: Path,
    ) -> None:
        """Begin to check the configuration.

        Args:
            node: node that executes the goal.
            task: task of the goal.
            motion: demands on the motion.
            settings: settings of the identification.
            reference: run of the empty arm; None without one.
            declared: payload that the driver assumes; None: none is declared.
            folder: folder for the files.
        """
        super().__init__(node, PayloadStage.CHECK)
        self._task, self._declared, self._path = task, declared, folder
        self._stopped: GoalEnd | None = None
        self.recording: StreamRecording | None = None
        self._enter(PayloadStage.CHECK)
        self._job: Computation[PayloadRun] | None = Computation(lambda: prepare_run(motion, settings, reference))

    @property
    def busy(self) -> bool:
        """Whether a computation goes on after the end: it cannot be interrupted."""
        return self._job is not None and not self._job.done

    @property
    def remaining(self) -> float:
        """Planned time of the motions that are left [s]; 0 where it is not known."""
        settings: PayloadSettings = self._node.settings
        elapsed = 0.0 if self.wrist is None else self.wrist.elapsed
        if self.stage is PayloadStage.SLOW_TEST:
            return max(settings.period / settings.slow_speed - elapsed, 0.0) + settings.full_time
        moving = self.stage in (PayloadStage.WARM_UP, PayloadStage.MEASUREMENT)
        return max(settings.full_time - elapsed, 0.0) if moving else 0.0

    def brake(self, end: GoalEnd) -> None:
        """End as soon as the robot is at rest; computations end in the background."""
        if self.wrist is None:
            self.finish(*end)
        else:
            self._stopped = end
            self.wrist.at_rest()

    def finish(self, code: int, message: str) -> None:
        """End now, with what is known of the payload."""
        self._end_recording()
        super().finish(code, message)

    def _end_recording(self) -> None:
        if self.recording is not None:
            self.recording.end()
            self.recording.destroy()
            self.recording = None

    def tick(self) -> None:
        """Look at what the present stage waits for."""
        if self.recording is not None:
            self.recording.publish_status()
        if self.wrist is not None:
            self.wrist.tick()
        try:
            if self._job is not None and self._job.done:
                outcome, self._job = self._job.take_outcome(), None
                (self._checked if self.stage is PayloadStage.CHECK else self._estimated)(outcome)
            elif self.wrist is not None:
                self._look_at_motion(self.wrist)
        except RobotDynIdError as error:
            self.brake(self._stopped or GoalEnd(Result.FAILED if self.wrist is None else Result.STOPPED, str(error)))

    def _enter(self, stage: PayloadStage, remark: str = "") -> None:
        self.stage, self.remark = stage, remark
        self._node.get_logger().info(self.status)

    def _checked(self, outcome: PayloadRun | RobotDynIdError) -> None:
        """Take the designed motion, and begin the slow test."""
        if isinstance(outcome, RobotDynIdError):
            unsuited = isinstance(outcome, MotionError)
            self.finish(Result.UNSUITED if unsuited else Result.FAILED, str(outcome))
            return
        self.run, self.folder, accuracy = outcome, str(self._path), outcome.accuracy.describe()
        self._node.get_logger().info(accuracy)
        outcome.save_motion(self._path)
        if self._task == Goal.CHECK:
            self.finish(Result.SUCCEEDED, accuracy)
            return
        self.recording = StreamRecording(self._node, self._path, "identifier_recording_status")
        self._move(SLOW_TEST, "slow_test.yaml", PayloadStage.SLOW_TEST, accuracy)

    def _move(self, name: str, file: str, stage: PayloadStage, remark: str = "") -> None:
        """Begin a motion with a stage, or end."""
        try:
            self.wrist = WristMotion(self._node, name, self._path / file, slow=stage is PayloadStage.SLOW_TEST)
        except RobotDynIdError as error:
            self.finish(Result.UNSUITED, str(error))
        else:
            self._enter(stage, remark)

    def _look_at_motion(self, wrist: WristMotion) -> None:
        """Advance with the motion."""
        recording, settings = self.recording, self._node.settings
        assert recording is not None
        if self._stopped is not None or wrist.failure:
            if wrist.at_rest():
                why = wrist.failure
                self.remove_wrist()
                self.finish(*(self._stopped or GoalEnd(Result.STOPPED, why)))
        elif self.stage is PayloadStage.SLOW_TEST:
            if wrist.done:
                self.remove_wrist()
                self._move(MEASUREMENT, "trajectory.yaml", PayloadStage.WARM_UP)
        elif self.stage is PayloadStage.WARM_UP:
            if wrist.elapsed >= settings.warm_time and wrist.elapsed > 0.0:
                recording.discard_part()
                self._enter(PayloadStage.MEASUREMENT)
        elif self.stage is PayloadStage.MEASUREMENT:
            if wrist.complete:
                recording.close_part()
                self._enter(PayloadStage.RETURN)
            elif wrist.elapsed >= settings.half_time and not recording.parts:
                recording.close_part()
        elif wrist.done:
            self.remove_wrist()
            parts = recording.parts[:2]
            self._end_recording()
            self._enter(PayloadStage.ESTIMATE)
            self._job = Computation(lambda: self._estimate(parts))

    def remove_wrist(self) -> None:
        """Remove the excitation publisher of a robot at rest."""
        if self.wrist is not None:
            self.wrist.destroy()
            self.wrist = None

    def _estimate(self, parts: Any) -> PayloadRun:
        """Identify from the bags; in a thread."""
        assert self.run is not None
        folders = wait_for_bags(parts)
        recorded = replace(self.run, recordings=tuple(open_parts([folder], None) for folder in folders))
        return recorded if self._task == Goal.REFERENCE else identify_from_halves(recorded, self._declared)

    def _estimated(self, outcome: PayloadRun | RobotDynIdError) -> None:
        """Take the result of the recording."""
        if isinstance(outcome, RobotDynIdError):
            self.finish(Result.FAILED, str(outcome))
            return
        self.run = outcome
        if self._task == Goal.REFERENCE:
            words = "the empty arm is recorded: the reference of payloads in this configuration"
            self.finish(Result.SUCCEEDED, words)
        elif outcome.payload is None:
            self.finish(Result.NO_PAYLOAD if outcome.absent else Result.FAILED, outcome.problem)
        else:
            self.loaded = outcome.save_result(self._path)
            self.finish(Result.SUCCEEDED, outcome.describe())


class PayloadGoals:
    """Goals of the action, one at a time.

    Attributes:
        goal: goal that is being executed; None without one.
    """

    def __init__(
        self,
        offer: Callable[..., GoalServer],
        make: Callable[[Any], PayloadGoal],
        conclude: Callable[[PayloadGoal, GoalEnd], None],
    ) -> None:
        """Offer the action.

        Args:
            offer: function that makes the server from what begins and what cancels a goal.
            make: function that begins to execute a goal; a `RobotDynIdError` rejects it.
            conclude: takes a goal that has ended.
        """
        self.goal: PayloadGoal | None = None
        self._make, self._conclude = make, conclude
        self._latest: PayloadGoal | None = None  # whose computation may go on
        self._published = -np.inf
        self._server = offer(self._begin, lambda: self.brake(GoalEnd(Result.CANCELED, "canceled")))

    def _begin(self, goal: Any) -> None:
        if self._latest is not None and self._latest.busy:
            raise InputError("the computation of a goal that was canceled has not ended yet: try again")
        self.goal = self._latest = self._make(goal)
        self._published = -np.inf

    def brake(self, end: GoalEnd) -> None:
        """Brake if the robot moves; computations end in the background, and a driver has to answer first."""
        if self.goal is not None:
            self.goal.brake(end)
            self._look(self.goal)

    def tick(self) -> None:
        """Advance with the goal, of which every stage is reported."""
        goal = self.goal
        if goal is None:
            return
        stage = goal.stage
        if time.monotonic() > self._published + FEEDBACK_S:
            self._publish(goal)
        goal.tick()
        self._look(goal)
        if self.goal is not None and goal.stage is not stage:
            self._publish(goal)

    def stop(self, end: GoalEnd) -> bool:
        """End the goal; True once the robot is at rest."""
        goal = self.goal
        if goal is not None:
            if goal.wrist is not None and not goal.wrist.at_rest():
                return False
            goal.remove_wrist()
            goal.finish(*end)
            self._look(goal)
        return True

    def _look(self, goal: PayloadGoal) -> None:
        """Report a goal that has ended."""
        if goal.end is not None:
            self.goal = None
            self._conclude(goal, goal.end)
            self._server.finish(*goal.end, **goal.fields())

    def _publish(self, goal: PayloadGoal) -> None:
        self._published = time.monotonic()
        self._server.publish(
            stage=goal.stage.value, elapsed=goal.elapsed, remaining=goal.remaining, message=goal.remark
        )
