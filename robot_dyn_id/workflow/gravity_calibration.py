# SPDX-License-Identifier: Apache-2.0
"""Gravity calibration of an arm from recordings of held poses, and its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.export.urdf import make_urdf_with_masses
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.files.gravity import write_gravity
from robot_dyn_id.findings import Finding, summarize_findings
from robot_dyn_id.loads.gravity import GravityCalibration, KnownWeight, calibrate_gravity, report_calibration
from robot_dyn_id.loads.holds import find_holds
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.workflow.joints import make_robot_for, report_recordings

GRAVITY = "gravity.yaml"

CALIBRATED = "calibrated.urdf"


@dataclass(frozen=True)
class LoadedRecordings:
    """Recordings with a known weight.

    Attributes:
        recordings: the recordings.
        mass: mass of the weight [kg].
        link: link that carries it.
        center: its center of mass in the frame of the link [m], shape (3,).
    """

    recordings: Sequence[Recording]
    mass: float
    link: str
    center: Array


@dataclass(frozen=True)
class CalibrationResult:
    """Calibration of a robot.

    Attributes:
        model: robot with the joints that are calibrated.
        found: its calibration.
        findings: findings about recordings and calibration.
        urdf: URDF with the calibrated masses; empty without a scale.
    """

    model: RobotModel
    found: GravityCalibration
    findings: tuple[Finding, ...]
    urdf: str = ""

    def write(self, folder: str | Path) -> dict[str, Any]:
        """Write the files of the calibration.

        Args:
            folder: folder that is made if it is not there.

        Returns:
            Content of `gravity.yaml` but for its rows, with `file` and, with a scale, `urdf_file`.

        Raises:
            InputError: a file cannot be written.
        """
        folder = Path(folder)
        make_output_folder(folder)
        entries: dict[str, Any] = {}
        if self.urdf:
            write_atomically(folder / CALIBRATED, self.urdf)
            entries["urdf_file"] = str(folder / CALIBRATED)
        entries = write_gravity(
            folder / GRAVITY, self.model, self.found, **entries, **summarize_findings(self.findings)
        )
        return {**entries, "file": str(folder / GRAVITY)}


def calibrate_recordings(
    robot: RobotDescription,
    bare: Sequence[Recording],
    configuration: Configuration,
    loaded: LoadedRecordings | None = None,
    trust_mass: bool = False,
) -> CalibrationResult:
    """Calibrate the gravity of an arm.

    Args:
        robot: robot description.
        bare: recordings of held poses.
        configuration: joints, gravity and fixed joints.
        loaded: recordings with a known weight, which fixes the scale of masses and gains.
        trust_mass: whether the URDF's total mass fixes the scale; only without a known weight.

    Raises:
        RobotDynIdError: recordings or a robot that cannot be used, see `find_holds` and `calibrate_gravity`.
    """
    heavy = () if loaded is None else loaded.recordings
    model = make_robot_for(robot, configuration, [*bare, *heavy])
    known = None
    if loaded is not None:
        holds = find_holds(heavy, model.joint_names)
        known = KnownWeight.at_link(model, holds, loaded.mass, loaded.link, np.asarray(loaded.center))
    found = calibrate_gravity(model, find_holds(bare, model.joint_names), known, trust_mass)
    findings = (*report_recordings([*bare, *heavy], model.joint_names), *report_calibration(model, found))
    if not found.has_scale:
        return CalibrationResult(model, found, findings)
    exported = make_urdf_with_masses(model, found.bodies)
    return CalibrationResult(model, found, (*findings, *exported.findings), exported.text)
