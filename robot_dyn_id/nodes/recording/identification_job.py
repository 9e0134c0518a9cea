# SPDX-License-Identifier: Apache-2.0
"""Identification in a process of its own, which can be ended at any time without loss."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.serialization import serialize_message

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.faults import report_fault
from robot_dyn_id.files.configuration import read_configuration
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.messages.conversions import make_parameter_set_message
from robot_dyn_id.nodes.messages.outcomes import make_identification_report
from robot_dyn_id.progress import Stage, estimate_fraction
from robot_dyn_id.recordings.rosbag2 import MessageReading, open_parts
from robot_dyn_id.report.folder import RESULTS, make_output_folder
from robot_dyn_id.termination import ignore_terminal
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings, open_all


@dataclass(frozen=True)
class IdentificationTask:
    """Input of an identification; all of it is read in the process of the job.

    Attributes:
        urdf: text of the URDF.
        recordings: paths of recordings, each a trial of its own.
        parts: folders of bags that are one trial in several parts; used if there are no recordings.
        validation: paths of recordings to validate on.
        config: path of the configuration; empty for the defaults.
        folder: folder for the results.
    """

    urdf: str
    recordings: tuple[str, ...]
    parts: tuple[str, ...]
    validation: tuple[str, ...]
    config: str
    folder: str


@dataclass(frozen=True)
class JobOutcome:
    """Result of a job.

    Attributes:
        report: serialized IdentificationReport; empty after a defect of this package.
        parameters: serialized ParameterSet; empty if nothing was identified.
        message: reason why nothing was identified; empty if something was.
    """

    report: bytes = b""
    parameters: bytes = b""
    message: str = ""


CANCELED = JobOutcome(message="canceled")
"""Outcome of a job that was canceled."""


class IdentificationJob:
    """A running identification.

    Attributes:
        stage: latest status line.
        fraction: fraction of the steps that are done, 0 to 1.
    """

    def __init__(self, prepare: Callable[[], IdentificationTask]) -> None:
        """Begin.

        Args:
            prepare: function that returns the task; it may wait, and is called in a thread.
        """
        self.stage, self.fraction = "starting", 0.0
        self._outcome: JobOutcome | None = None
        self._task: IdentificationTask | None = None
        self._process: Any = None
        self._lock, self._canceled = threading.Lock(), False
        self._thread = threading.Thread(target=self._run, args=(prepare,), daemon=True)
        self._thread.start()

    @property
    def outcome(self) -> JobOutcome | None:
        """Result of the job; None while it runs."""
        return None if self._thread.is_alive() else self._outcome or CANCELED

    def cancel(self) -> None:
        """End the process, and remove what it has written; recordings stay."""
        with self._lock:
            self._canceled = True
            if self._process is not None:
                self._process.kill()

    def _run(self, prepare: Callable[[], IdentificationTask]) -> None:
        try:
            self._task = prepare()
            outcome = self._follow(self._task)
        except RobotDynIdError as error:
            outcome = JobOutcome(
                report=serialize_message(make_identification_report(error, Path())), message=str(error)
            )
        except Exception as fault:  # otherwise the thread would end silently
            outcome = JobOutcome(message=str(report_fault(fault, sys.argv)))
        if self._canceled and self._task is not None:
            _remove_results(Path(self._task.folder))
        else:
            self._outcome = outcome

    def _follow(self, task: IdentificationTask) -> JobOutcome:
        """Start the process, and take over its status lines until it ends."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        with self._lock:
            if self._canceled:
                return JobOutcome()
            self._process = context.Process(target=_identify, args=(task, theirs), daemon=True)
            self._process.start()
        theirs.close()
        outcome = JobOutcome(message="the process of the identification has ended unexpectedly")
        try:
            while True:
                received = ours.recv()
                if isinstance(received, JobOutcome):
                    outcome = received
                else:
                    self.stage = str(received)
                    self.fraction = max(self.fraction, estimate_fraction(received))
        except (EOFError, OSError):  # the process has ended
            self._process.join()
        return outcome


def _remove_results(folder: Path) -> None:
    """Remove incomplete results, and the folder if nothing else is in it."""
    for name in RESULTS:
        (folder / name).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:  # it is not empty, or was not made yet
        return


def _identify(task: IdentificationTask, pipe: Any) -> None:
    """The process of a job."""
    ignore_terminal()  # whose signals reach it too; the node ends it, and removes its results
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        configuration = read_configuration(task.config or None)
        recordings = open_all(task.recordings, configuration)
        reading = MessageReading(names=configuration.recorded_joints)
        trials = recordings or [open_parts([Path(part) for part in task.parts], None, reading)]
        data = DataSelection(trials, open_all(task.validation, configuration))
        with closing(identify_recordings(RobotDescription(task.urdf), configuration, data, pipe.send)) as result:
            pipe.send(Stage(f"writing {task.folder}"))
            folder = make_output_folder(Path(task.folder))
            result.save(folder)
        report = serialize_message(make_identification_report(result.identification, folder))
        pipe.send(JobOutcome(report, serialize_message(make_parameter_set_message(result.parameters))))
    except RobotDynIdError as error:
        pipe.send(JobOutcome(serialize_message(make_identification_report(error, Path())), message=str(error)))
    except Exception as fault:
        pipe.send(JobOutcome(message=str(report_fault(fault, sys.argv))))
    pipe.close()


def _end_with_parent() -> None:
    """End this process with the node, however that ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
