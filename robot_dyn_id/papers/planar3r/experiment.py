# SPDX-License-Identifier: Apache-2.0
"""The simulated experiment of `planar3r`: the paper's three runs and one designed motion, under the same noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import BaseParameters, base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor, terms_on_joints
from robot_dyn_id.estimators import Estimate, Estimator
from robot_dyn_id.excitation.forms.registry import make_excitation
from robot_dyn_id.excitation.forms.sequential import SequentialSine
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.files.configuration import Configuration, read_configuration, shared_file
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.papers.inputs import model_of, node_parameters, settings_of
from robot_dyn_id.signals.processing import linear_problem
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import plan_signals, walker
from robot_dyn_id.simulation.plant import nominal_dynamics
from robot_dyn_id.simulation.sensors import Sensors, measured
from robot_dyn_id.simulation.simulated_robot import SimulatedRobot, followed

RATE = 1000.0
"""Samples per second of the paper, and ticks of the simulated robot [Hz]."""

LARGE = 0.1
"""Parameters above this [SI] are compared by their relative errors: a share of a smaller one says nothing."""

VALIDATION = Demand(period=10.0)
"""A random Fourier series that nothing was designed for."""


def configuration() -> Configuration:
    """How the paper identifies: terms, filter, least speed, joint by joint."""
    return read_configuration(shared_file("config/identification/planar3r.yaml"))


def arm() -> RobotModel:
    """The robot, with the gravity of the paper."""
    return model_of("planar3r", configuration().gravity or STANDARD_GRAVITY)


def sine(joint: int, turns: float) -> SequentialSine:
    """The paper's motion of one joint in the posture 0: one full period, between one that swells and one that fades.

    Args:
        joint: its number.
        turns: of the generating circle [1/min].
    """
    amplitude = np.array(list(settings_of("planar3r").amplitude.values()))
    return SequentialSine(np.zeros(len(amplitude)), 60.0 / turns, 1, (joint,), amplitude)


@dataclass(frozen=True)
class Errors:
    """Estimates of k draws of the noise.

    Attributes:
        truth: the p parameters.
        values: shape (k, p).
        sigma: standard deviations that were reported, shape (k, p).
    """

    truth: Array
    values: Array
    sigma: Array

    @property
    def norms(self) -> Array:
        """Norm of the error over that of the truth, N m s and kg m together, shape (k,)."""
        return np.asarray(np.linalg.norm(self.values - self.truth, axis=1) / np.linalg.norm(self.truth))

    @property
    def worst(self) -> Array:
        """Largest relative error of the `LARGE` parameters, shape (k,)."""
        large = np.abs(self.truth) > LARGE
        return np.asarray(np.abs(self.values[:, large] / self.truth[large] - 1.0).max(axis=1))

    def beyond(self, sigmas: float) -> Mask:
        """Which errors are larger than so many of their reported standard deviations, shape (k, p)."""
        return np.asarray(np.abs(self.values - self.truth) > sigmas * self.sigma)


@dataclass(frozen=True)
class Experiment:
    """The arm with the friction of its configuration, and how it is identified.

    Attributes:
        model: the robot.
        configuration: of the identification.
        plant: the true dynamics.
        sensors: their errors.
    """

    model: RobotModel
    configuration: Configuration
    plant: Dynamics
    sensors: Sensors

    @staticmethod
    def of_paper() -> Experiment:
        """With the parameters that the simulator node has as well."""
        chosen, given = configuration(), node_parameters("planar3r", "simulator")
        model = arm()
        viscous, coulomb, effort = (np.array(given[key]) for key in ("viscous", "coulomb", "effort_noise"))
        plant = nominal_dynamics(model, viscous, coulomb, given["smoothing_width"])
        sensors = Sensors(effort, 0.0, None, resolution=given["resolution"])
        return Experiment(model, chosen, plant, sensors)

    @cached_property
    def regressor(self) -> Regressor:
        """Robot and terms that are identified."""
        return Regressor(self.model, terms_on_joints(self.model, self.configuration.terms))

    @cached_property
    def base(self) -> BaseParameters:
        """Its base parameters."""
        return base_parameters(self.regressor)

    @cached_property
    def truth(self) -> Array:
        """Their values, shape (p,): the plant's columns are those of the regressor, but for the width of the sign."""
        return np.asarray(self.base.mapping @ self.plant.parameters)

    def run(self, motion: Trajectory) -> Chunk:
        """True samples of the arm that follows a motion."""
        start = motion.evaluate(np.zeros(1))[0][:, 0]
        return followed(SimulatedRobot(self.plant, start, 1.0 / RATE, limit_effort=False), motion)

    def measured(self, runs: Sequence[Chunk], seed: int) -> list[ArrayRecording]:
        """What the sensors show of runs; each has noise of its own."""
        names, first = self.model.joint_names, seed * len(runs)
        return [measured(names, true, self.sensors, first + number) for number, true in enumerate(runs)]

    def exact(self, runs: Sequence[Chunk]) -> list[ArrayRecording]:
        """What ideal sensors show; velocities are derivatives of the positions all the same."""
        return [ArrayRecording("ideal sensors", self.model.joint_names, replace(true, dq=None)) for true in runs]

    def estimate(self, recordings: Sequence[ArrayRecording], estimator: Estimator) -> Estimate:
        """Base parameters from recordings."""
        chosen, joints = self.configuration.settings, self.model.joint_names
        seen = survey(recordings, joints, chosen.drives)
        plan = plan_signals(seen, chosen.cutoff, chosen.filter_order, chosen.velocity)
        plan = replace(plan, slowest=(float(chosen.reversal_speed),) * len(joints))
        walk = walker(recordings, joints, chosen.drives, plan)
        return estimator.fit(linear_problem(self.regressor, self.base.independent, walk, plan))

    def errors(self, estimates: Sequence[Estimate]) -> Errors:
        """What is wrong with estimates."""
        values, sigma = ([getattr(e, key) for e in estimates] for key in ("values", "standard_deviations"))
        return Errors(self.truth, np.array(values), np.array(sigma))

    def dynamics(self, estimate: Estimate) -> Dynamics:
        """Of estimated base parameters."""
        return Dynamics(self.regressor, self.base.independent, estimate.values)


def one_motion() -> Trajectory:
    """One motion of all joints, as long as the three runs together; found before any noise was drawn, see its file."""
    return read_trajectory(shared_file("config/trajectories/planar3r_fourier.yaml")).excitation


def validation() -> Trajectory:
    """A motion to predict, within the limits of `one_motion`."""
    limits = read_trajectory(shared_file("config/trajectories/planar3r_fourier.yaml")).limits
    return make_excitation("fourier", limits, VALIDATION)


def three_runs(turns: Mapping[str, float]) -> list[SequentialSine]:
    """The paper's runs, the last joint first; `turns` by joint name [1/min], the first joint first."""
    return [sine(joint, rate) for joint, rate in reversed(list(enumerate(turns.values())))]
