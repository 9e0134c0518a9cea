# SPDX-License-Identifier: Apache-2.0
"""Simulated experiment of `planar3r`: the paper's three runs and one designed motion under the same noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.excitation.forms.registry import make_excitation
from robot_dyn_id.excitation.forms.sequential import SequentialSine
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.files.configuration import Configuration, read_configuration
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.papers.inputs import model_of, read_node_parameters, read_settings_of
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.signals.processing import RecordedProblem
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.simulation.plant import make_nominal_dynamics
from robot_dyn_id.simulation.sensors import Sensors, add_sensor_errors
from robot_dyn_id.simulation.simulated_robot import Actuation, SimulatedRobot, simulate_motion

RATE = 1000.0
"""Sample rate of the paper, and rate of the simulated robot [Hz]."""

LARGE = 0.1
"""Parameters above this value [SI] are compared by their relative errors, which are meaningless for smaller ones."""

VALIDATION = Demand(period=10.0)
"""Random Fourier series for validation; no optimization."""


def read_settings() -> Configuration:
    """Read the identification settings of the paper: terms, filter, lowest speed, joint by joint."""
    return read_configuration(find_shared_file("config/identification/planar3r.yaml"))


def load_arm() -> RobotModel:
    """Load the robot with the gravity of the paper."""
    return model_of("planar3r", read_settings().gravity or STANDARD_GRAVITY)


def make_sine(joint: int, turns: float) -> SequentialSine:
    """Motion of one joint at configuration 0 as in the paper: one full period between a fade-in and a fade-out period.

    Args:
        joint: number of the joint.
        turns: rotational speed of the generating circle [1/min].
    """
    amplitude = np.array(list(read_settings_of("planar3r").amplitude.values()))
    return SequentialSine(np.zeros(len(amplitude)), 60.0 / turns, 1, (joint,), amplitude)


@dataclass(frozen=True)
class EstimateDraws:
    """Estimates for k draws of the noise.

    Attributes:
        truth: true values of the p parameters.
        values: estimates, shape (k, p).
        sigma: reported standard deviations, shape (k, p).
    """

    truth: Array
    values: Array
    sigma: Array

    @property
    def norms(self) -> Array:
        """Norm of the error over the norm of the truth, N m s and kg m together, shape (k,)."""
        return np.asarray(np.linalg.norm(self.values - self.truth, axis=1) / np.linalg.norm(self.truth))

    @property
    def worst(self) -> Array:
        """Largest relative error of the `LARGE` parameters, shape (k,)."""
        large = np.abs(self.truth) > LARGE
        return np.asarray(np.abs(self.values[:, large] / self.truth[large] - 1.0).max(axis=1))

    def beyond(self, sigmas: float) -> Mask:
        """Mask of the errors larger than `sigmas` reported standard deviations, shape (k, p)."""
        return np.asarray(np.abs(self.values - self.truth) > sigmas * self.sigma)


@dataclass(frozen=True)
class SimulatedExperiment:
    """Arm with the friction of its configuration, and its identification settings.

    Attributes:
        model: the robot.
        configuration: settings of the identification.
        plant: true dynamics.
        sensors: errors of the sensors.
    """

    model: RobotModel
    configuration: Configuration
    plant: Dynamics
    sensors: Sensors

    @classmethod
    def from_paper(cls) -> SimulatedExperiment:
        """Experiment with the parameters of the simulator node."""
        chosen, given = read_settings(), read_node_parameters("planar3r", "simulator")
        model = load_arm()
        viscous, coulomb, effort = (np.array(given[key]) for key in ("viscous", "coulomb", "effort_noise"))
        plant = make_nominal_dynamics(model, viscous, coulomb, given["smoothing_width"])
        sensors = Sensors(effort, 0.0, None, resolution=given["resolution"])
        return cls(model, chosen, plant, sensors)

    @cached_property
    def regressor(self) -> Regressor:
        """Robot and terms that are identified."""
        return Regressor(self.model, place_terms_on_joints(self.model, self.configuration.settings.fixed_terms))

    @cached_property
    def base(self) -> BaseParameters:
        """Its base parameters."""
        return compute_base_parameters(self.regressor)

    @cached_property
    def truth(self) -> Array:
        """Their values, shape (p,): the plant's columns are those of the regressor, but for the width of the sign."""
        return np.asarray(self.base.mapping @ self.plant.parameters)

    def run(self, motion: Trajectory) -> Chunk:
        """True samples of the arm that follows a motion."""
        start = motion.evaluate(np.zeros(1))[0][:, 0]
        return simulate_motion(SimulatedRobot(self.plant, start, 1.0 / RATE, Actuation(limit_effort=False)), motion)

    def measured(self, runs: Sequence[Chunk], seed: int) -> list[ArrayRecording]:
        """Sensor readings of runs, each with its own noise."""
        names, first = self.model.joint_names, seed * len(runs)
        return [add_sensor_errors(names, true, self.sensors, first + number) for number, true in enumerate(runs)]

    def exact(self, runs: Sequence[Chunk]) -> list[ArrayRecording]:
        """Readings of ideal sensors; velocities are still derivatives of the positions."""
        return [ArrayRecording("ideal sensors", self.model.joint_names, replace(true, dq=None)) for true in runs]

    def trials(self, recordings: Sequence[ArrayRecording], all_torques: bool = True) -> FilteredTrials:
        """Filtered recordings.

        Args:
            recordings: the trials.
            all_torques: whether the torques of joints at rest count, as in the paper; if not, those of moving ones do.
        """
        chosen, joints = self.configuration.settings, self.model.joint_names
        signals = replace(chosen.signals, period=0.0)
        trials = FilteredTrials.from_recordings(recordings, joints, chosen.drives, signals)
        slowest = (float(chosen.reversal_speed),) * len(joints)
        return trials.with_thresholds(slowest, chosen.rest_speed if all_torques else 0.0)

    def problem(self, recordings: Sequence[ArrayRecording], all_torques: bool = True) -> RecordedProblem:
        """Rows of the base columns along recordings; see `trials`."""
        return self.trials(recordings, all_torques).problem(self.regressor, self.base.independent)

    def errors(self, estimates: Sequence[Estimate]) -> EstimateDraws:
        """Errors of estimates."""
        values, sigma = ([getattr(e, key) for e in estimates] for key in ("values", "standard_deviations"))
        return EstimateDraws(self.truth, np.array(values), np.array(sigma))

    def dynamics(self, estimate: Estimate) -> Dynamics:
        """Dynamics with estimated base parameters."""
        return Dynamics(self.regressor, self.base.independent, estimate.values)


def design_one_motion() -> Trajectory:
    """One motion of all joints, as long as the three runs together; found before any noise was drawn, see its file."""
    return read_trajectory(find_shared_file("config/trajectories/planar3r_fourier.yaml")).excitation


def make_validation() -> Trajectory:
    """A motion to predict, within the limits of `design_one_motion`."""
    limits = read_trajectory(find_shared_file("config/trajectories/planar3r_fourier.yaml")).limits
    return make_excitation("fourier", limits, VALIDATION)


def make_three_runs(turns: Mapping[str, float]) -> list[SequentialSine]:
    """The paper's runs, the last joint first; `turns` by joint name [1/min], the first joint first."""
    return [make_sine(joint, rate) for joint, rate in reversed(list(enumerate(turns.values())))]
