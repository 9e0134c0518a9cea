# SPDX-License-Identifier: Apache-2.0
"""Identification in a thread: of the dynamics, or of the actuators."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.recording.stream_recording import wait_for_bags
from robot_dyn_id.nodes.runtime.computation import Computation
from robot_dyn_id.nodes.runtime.diagnostics import log_findings
from robot_dyn_id.progress import Stage
from robot_dyn_id.recordings.background_writer import BackgroundWriter
from robot_dyn_id.recordings.rosbag2 import MessageReading, open_parts
from robot_dyn_id.workflow.actuators import ActuatorResult, DriveSettings, identify_actuators
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings, open_all
from robot_dyn_id.workflow.joints import make_robot_for

Outcome = Identification | ActuatorResult
"""Result of an identification: of the dynamics, or of the actuators."""


class IdentificationThread:
    """Identifies from recordings, or from the bags of a live recording.

    Attributes:
        data: recordings to identify from; empty: the bags.
    """

    def __init__(self, configuration: Configuration, settings: Any, folder: Path, log: Any) -> None:
        """Open the recordings.

        Args:
            configuration: configuration of the identification.
            settings: parameters of the node, see `IdentifierSettings`.
            folder: folder for the results.
            log: log of the node.

        Raises:
            RobotDynIdError: a recording that cannot be read.
        """
        self._configuration, self._folder, self._log = configuration, folder, log
        self._of_actuators, self._gains = settings.of_actuators, {"kp": settings.kp, "kd": settings.kd}
        self._held_out = open_all(settings.validation, configuration)
        self.data: list[Recording] = list(open_all(settings.data, configuration))
        self._work: Computation[Outcome] | None = None

    @property
    def running(self) -> bool:
        """Whether an identification has not been taken yet."""
        return self._work is not None

    def start(self, robot: RobotDescription, parts: tuple[BackgroundWriter, ...]) -> str:
        """Start to identify; returns the sources in words."""
        self._work = Computation(lambda: self._identify(robot, parts))
        sources = [recording.source for recording in self.data] or [str(bag.folder) for bag in parts]
        return f"identifying from {', '.join(sources)}"

    def take(self) -> Outcome | RobotDynIdError | None:
        """The identification that has ended, or why there is none, once; None while it runs."""
        if self._work is None or not self._work.done:
            return None
        outcome, self._work = self._work.take_outcome(), None
        if isinstance(outcome, Identification):
            self._report(outcome)
        elif isinstance(outcome, ActuatorResult):
            self._report_actuators(outcome)
        else:
            self._log.error(f"nothing was identified: {outcome}")
        return outcome

    def _identify(self, robot: RobotDescription, parts: tuple[BackgroundWriter, ...]) -> Outcome:
        reading = MessageReading(names=self._configuration.recorded_joints)
        recordings = self.data or [open_parts(wait_for_bags(parts), None, reading)]
        if self._of_actuators:
            model = make_robot_for(robot, self._configuration, [*recordings, *self._held_out])
            names = model.joint_names
            kp, kd = (
                dict(zip(names, make_joint_array(values, names, key).tolist(), strict=True)) if values else None
                for key, values in self._gains.items()
            )
            found = identify_actuators(model, recordings, self._held_out, DriveSettings(kp, kd), self._log_stage)
            self._log.info(f"writing {self._folder}")
            found.save(self._folder)
            return found
        trials = DataSelection(recordings, self._held_out)
        with closing(identify_recordings(robot, self._configuration, trials, self._log_stage)) as result:
            self._log.info(f"writing {self._folder}")
            result.save(self._folder)
        return result.identification

    def _log_stage(self, stage: Stage) -> None:
        if not stage.detail:  # passes of an iteration would fill the log
            self._log.info(str(stage))

    def _report(self, result: Identification) -> None:
        evaluation, check = result.evaluation, result.evaluation.cross_check
        self._log.info(
            f"cross-check: largest difference from Pinocchio {check.max_difference:.1e}, rank {check.rank_ours} ours, "
            f"{check.rank_pinocchio} Pinocchio's"
        )
        log_findings(self._log, evaluation.findings)
        self._log.info(f"held-out error {evaluation.held_out.all_joints_nrmse:.2%}; reports in {self._folder}")
        if evaluation.verdict.word == "bad":
            self._log.error(f"verdict bad, not published: {'; '.join(evaluation.verdict.reasons)}")
        else:
            count = len(result.parameters.base.names)
            self._log.info(f"verdict {evaluation.verdict.word}: {count} base parameters published")

    def _report_actuators(self, result: ActuatorResult) -> None:
        log_findings(self._log, result.findings)
        word, count = result.verdict.word, len(result.model.joint_names)
        if word == "bad":
            self._log.error(f"verdict bad, not published: {'; '.join(result.verdict.reasons)}")
        else:
            self._log.info(f"verdict {word}: actuators of {count} joints published, files in {self._folder}")
