# SPDX-License-Identifier: Apache-2.0
"""Torques and motions of an identified model: prediction and forward simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.findings import Finding, format_findings
from robot_dyn_id.identification.prediction.forward_simulation import (
    SimulatedMotion,
    check_training_ranges,
    simulate_efforts,
    simulate_trajectory,
)
from robot_dyn_id.identification.prediction.prediction import predict_recording
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import GAIN_UNKNOWN, ParameterSet, describe_unknown_gains, name_drive_unit
from robot_dyn_id.recordings import write_npz
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.simulation.controllers import make_usable_dynamics
from robot_dyn_id.workflow.joints import report_recordings

SIMULATION_RATE_HZ = 1000.0
"""Default sample rate along a trajectory [Hz]."""


@dataclass(frozen=True)
class Prediction:
    """Predicted efforts of n joints at the N time stamps of a recording.

    Attributes:
        joint_names: names of the joints, n.
        t: time stamps [s], shape (N,).
        tau: efforts in `units`, shape (N, n); NaN where the motion is missing.
        units: units of the efforts, n: N m or N, or that of the recorded current where the drive gain is not known.
        findings: findings about the recording, samples that could not be predicted, and motion outside the training
            range.
    """

    joint_names: tuple[str, ...]
    t: Array
    tau: Array
    units: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """All findings as text."""
        return format_findings(self.findings)

    def save(self, file: str | Path, epoch: int = 0) -> None:
        """Write `t`, `joint_names`, `tau` and `units` to an `.npz` file.

        Args:
            file: the file.
            epoch: origin of the time stamps [ns], see `Recording`.

        Raises:
            InputError: the file cannot be written.
        """
        make_output_folder(Path(file).parent)
        write_npz(Path(file), self.joint_names, self.t + epoch * 1e-9, tau=self.tau, units=np.array(self.units))


def predict(
    parameters: ParameterSet, recording: Recording, velocity: str = "auto", ignore: Sequence[str] = ()
) -> Prediction:
    """Predict the efforts along a recording from its motion alone; measured efforts are never read.

    Example:
        ```python
        prediction = rdi.predict(rdi.load_parameters("run/parameters.yaml"), rdi.open_recording("other.npz"))
        print(prediction.tau.shape)
        ```

    Args:
        parameters: the identified model.
        recording: a recording with its joints.
        velocity: `recorded`, `derivative` of the positions, or `auto`: recorded if it agrees with the positions.
        ignore: codes of errors about the motion that are overruled.

    Raises:
        InputError: the recording cannot be used.
        UnsafeDataError: a health check refuses the motion.
    """
    t, tau, findings = predict_recording(recording, parameters, velocity, ignore)
    findings = (*report_recordings([recording], parameters.robot.joint_names), *findings)
    model, unknown = RobotModel.from_parameters(parameters), parameters.unknown_gains
    reported = dict.fromkeys(unknown, name_drive_unit(parameters.effort.kind, related=False)) if unknown else {}
    units = tuple(reported.get(name, unit) for name, unit in zip(model.joint_names, model.effort_units, strict=True))
    if unknown:
        findings = (GAIN_UNKNOWN.found(describe_unknown_gains(reported), unknown, "warning"), *findings)
    return Prediction(model.joint_names, t, tau, units, findings)


def simulate(
    parameters: ParameterSet,
    motion: Trajectory | Recording,
    rate: float = SIMULATION_RATE_HZ,
    restart: float = math.inf,
    settings: Settings | None = None,
    temperature: Sequence[float] = (),
) -> SimulatedMotion:
    """Simulate an identified robot along a trajectory, or under the efforts of a recording.

    Along a trajectory the robot is under position control and starts at rest. Under recorded efforts it starts from
    the recorded state, and errors of the model and of the efforts accumulate.

    Example:
        ```python
        parameters = rdi.load_parameters("run/parameters.yaml")
        simulated = rdi.simulate(parameters, rdi.open_recording("other.npz"), restart=0.5)
        print(simulated.distance)
        ```

    Args:
        parameters: the identified model.
        motion: a trajectory, or a recording with efforts.
        rate: sample rate along a trajectory [Hz]; samples of a recording keep their own.
        restart: time after which a simulation under recorded efforts restarts from the recorded state [s].
        settings: gains and velocity source of a recording.
        temperature: temperatures of the joints along a trajectory [degrees Celsius], one or one per joint; empty: the
            reference temperatures. A recording has its own.

    Raises:
        InputError: a mass matrix that is not positive definite, or a recording that cannot be used.
        UsageError: a rate or restart time out of range, or another number of temperatures.
    """
    settings = settings or Settings()
    dynamics = make_usable_dynamics(
        parameters, parameters.robot.urdf, parameters.robot.joint_names, needs_mass_matrix=True
    )
    if temperature:
        dynamics = dynamics.at_temperature(temperature)
    if isinstance(motion, Trajectory):
        simulated = simulate_trajectory(dynamics, motion, rate)
    else:
        simulated = simulate_efforts(motion, parameters, dynamics, settings, restart)
        findings = (*report_recordings([motion], parameters.robot.joint_names), *simulated.findings)
        simulated = replace(simulated, findings=findings)
    return replace(simulated, findings=(*simulated.findings, *check_training_ranges(simulated, parameters)))
