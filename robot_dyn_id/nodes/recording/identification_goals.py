# SPDX-License-Identifier: Apache-2.0
"""Goals of the action `~/identify_recordings`: their jobs, feedback and results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path, PurePath
from typing import Any

from rclpy.serialization import deserialize_message

from robot_dyn_id.action import IdentifyRecordings
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.msg import IdentificationReport
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.recording.identification_job import CANCELED, IdentificationJob, IdentificationTask, JobOutcome
from robot_dyn_id.nodes.recording.stream_recording import wait_for_bags
from robot_dyn_id.nodes.runtime.goals import GoalServer
from robot_dyn_id.recordings.background_writer import BackgroundWriter
from robot_dyn_id.report.folder import PAGE, PARAMETERS, RESULTS

FEEDBACK_PERIOD_S = 0.5
"""Longest time between two feedback messages [s]."""

Result = IdentifyRecordings.Result


def require_existing(paths: list[str]) -> tuple[str, ...]:
    """Absolute paths of files or folders.

    Raises:
        InputError: one does not exist.
    """
    found = [Path(path).expanduser().absolute() for path in paths]
    for path in found:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder")
    return tuple(str(path) for path in found)


def choose_results_folder(parent: Path, name: str) -> Path:
    """Folder for the results of a goal.

    Args:
        parent: folder of the node.
        name: relative path inside it; empty: the next free run_<number>.

    Raises:
        UsageError: a path that leads elsewhere, or a folder that holds results.
    """
    if not name:
        return next(folder for n in count(1) if not (folder := parent / f"run_{n}").exists())
    if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
        raise UsageError(f"folder {name}: give a path inside the folder of the node, {parent}")
    held = [file for file in RESULTS if (parent / name / file).exists()]
    if held:
        raise UsageError(f"folder {name}: holds {', '.join(held)} already; give another folder")
    return parent / name


def make_task(
    goal: Any, urdf: str, settings: Any, folder: Path, received: Callable[[], tuple[BackgroundWriter, ...]]
) -> Callable[[], IdentificationTask]:
    """Check a goal; returns the function that makes its task when the bags are finished.

    Args:
        goal: message of the goal.
        urdf: text of the URDF.
        settings: parameters of the identifier, whose files are used where the goal names none.
        folder: folder of the node.
        received: function that returns the bags of the live recording, which are used without other recordings.

    Raises:
        RobotDynIdError: a file that does not exist, a folder that cannot be used, no joint states, or a node that
            identifies actuators.
    """
    if settings.of_actuators:
        raise InputError("the parameter model is actuators: call ~/identify")
    task = IdentificationTask(
        urdf=urdf,
        recordings=require_existing(goal.recordings) or require_existing(list(settings.data)),
        parts=(),
        validation=require_existing(goal.validation) or require_existing(list(settings.validation)),
        config=(*require_existing([goal.config] if goal.config else []), settings.config)[0],
        folder=str(choose_results_folder(folder.absolute(), goal.folder)),
    )
    if task.recordings:
        return lambda: task
    parts = received()
    return lambda: replace(task, parts=tuple(str(bag.absolute()) for bag in wait_for_bags(parts)))


class IdentificationGoals:
    """The goal that is being executed by a job, with its feedback and its result.

    Attributes:
        server: server of the action.
    """

    def __init__(
        self,
        server: Callable[[Callable[[Any], None], Callable[[], None]], GoalServer],
        prepare: Callable[[Any], Callable[[], IdentificationTask]],
        found: Callable[[Any, Any], None],
    ) -> None:
        """Offer the action.

        Args:
            server: function that makes the server of the action from what begins and what cancels a goal.
            prepare: function that checks a goal and returns the function that makes its task, which may wait.
            found: function that is called with the report and the parameters (None: not to be published).
        """
        self._prepare, self._found = prepare, found
        self._job: IdentificationJob | None = None
        self._goal: Any = None
        self._begun = self._published = 0.0
        self._stage = ""
        self.server = server(self._begin, self.cancel)

    @property
    def running(self) -> bool:
        """Whether a goal is being executed."""
        return self._job is not None

    def _begin(self, goal: Any) -> None:
        task = self._prepare(goal)
        self._goal, self._begun, self._published, self._stage = goal, time.monotonic(), 0.0, ""
        self._job = IdentificationJob(task)

    def cancel(self) -> None:
        """End the computation; the result follows."""
        if self._job is not None:
            self._job.cancel()

    def tick(self) -> None:
        """Publish feedback and, at the end, the result."""
        job = self._job
        if job is None:
            return
        outcome, now = job.outcome, time.monotonic()
        if outcome is not None:
            self._job = None
            self._finish(outcome)
        elif job.stage != self._stage or now >= self._published + FEEDBACK_PERIOD_S:
            self._stage, self._published = job.stage, now
            self.server.publish(stage=job.stage, fraction=job.fraction, elapsed=now - self._begun)

    def _finish(self, outcome: JobOutcome) -> None:
        if outcome == CANCELED:
            self.server.finish(Result.CANCELED, "canceled; nothing was written")
            return
        if not outcome.report:
            self.server.finish(Result.INTERNAL_ERROR, outcome.message)
            return
        report = deserialize_message(outcome.report, IdentificationReport)
        publishable = outcome.parameters and report.verdict != "bad" and not self._goal.keep_private
        self._found(report, deserialize_message(outcome.parameters, ParameterSetMsg) if publishable else None)
        if not outcome.parameters:
            self.server.finish(Result.FAILED, outcome.message, verdict=report.verdict, findings=report.findings)
            return
        bad, folder = report.verdict == "bad", Path(report.folder)
        self.server.finish(
            Result.VERDICT_BAD if bad else Result.SUCCEEDED,
            "; ".join(report.reasons) if bad else "",
            verdict=report.verdict,
            held_out_all_joints_nrmse=report.held_out_all_joints_nrmse,
            parameters_file=str(folder / PARAMETERS),
            report_file=str(folder / PAGE),
            findings=report.findings,
        )
