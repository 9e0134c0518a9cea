# SPDX-License-Identifier: Apache-2.0
"""Identification in closed loop: identify, let the controller use it, repeat the motion, until tracking gains nothing.

Qian et al. (dynamic parameter identification with a Logistic excitation trajectory) repeat identification and motion so
that the robot follows the designed motion more closely each time. The first trial, before anything is known, uses a
scaled nominal inertia without gravity compensation; `controllers.ScaledNominalInertia` is our rule for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording, Recording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, RobotDynIdError, UsageError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.kernels.trials import run_trial
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.controllers import Gains, ScaledNominalInertia, make_usable_dynamics
from robot_dyn_id.simulation.plant import CompiledDynamics, Plant, count_steps
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.simulation.simulated_robot import SensorStream

Model = TypeVar("Model")
"""Type of the identified model that the controller uses."""

MAX_REFUSALS = 3
"""Number of refused models in succession after which an iteration ends."""

START_STATES = 500
"""Number of states along the motion from which the scaled nominal inertia is computed."""


@dataclass(frozen=True)
class Trial:
    """One execution of the motion under a controller.

    Attributes:
        recording: recording of the trial.
        error: norm of the tracking errors / norm of the motion about its mean, over all joints and samples.
    """

    recording: Recording
    error: float


@dataclass(frozen=True)
class Iteration(Generic[Model]):
    """A trial and the model identified from it.

    Attributes:
        trial: the trial.
        parameters: identified model; None if it was no longer needed or cannot be used for control.
        used: model that the controller used in the trial; None at the start.
    """

    trial: Trial
    parameters: Model | None
    used: Model | None = None


@dataclass(frozen=True)
class IterationResult(Generic[Model]):
    """Result of an iterative identification.

    Attributes:
        iterations: the iterations in order; the first trial ran without a model.
        parameters: model with the smallest tracking error; None if no model improved on the start.
        reason: reason for the end of the iteration, one sentence.
        converged: whether the tracking error stopped shrinking.
        refused: models that were not used or not kept, one sentence each; the model before them stayed in use.
    """

    iterations: tuple[Iteration[Model], ...]
    parameters: Model | None
    reason: str
    converged: bool
    refused: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[float, ...]:
        """Tracking error of each trial."""
        return tuple(iteration.trial.error for iteration in self.iterations)


def iterate(
    run: Callable[[Model | None, int], Trial],
    identify_trial: Callable[[Recording], Model],
    min_improvement: float = 0.05,
    max_trials: int = 10,
) -> IterationResult[Model]:
    """Identify and repeat the motion with the identified model, until the tracking error stops shrinking.

    A model that cannot be used for control, with which a trial cannot be run, or which follows worse than the start, is
    refused: the next trial uses the last model that was not, or none as the first trial, and identifies again. After
    `MAX_REFUSALS` of them, without one that was kept, the iteration ends.

    Args:
        run: runs a trial on the robot, real or simulated, with the model in its controller, or with None without one;
            the second argument is the number of the trial, from 1. Raises a `RobotDynIdError` if the trial was stopped.
        identify_trial: identifies a model from the latest trial alone: earlier trials were farther from the motion,
            which is designed to be the most informative. Raises a `RobotDynIdError` if the model cannot be used for
            control.
        min_improvement: fraction of the smallest error so far by which a trial must improve on it for another trial.
        max_trials: maximum number of trials.

    Raises:
        UsageError: fewer than two trials, or a minimum improvement that is not in [0, 1).
    """
    if max_trials < 2 or not 0.0 <= min_improvement < 1.0:
        raise UsageError(
            f"iterate: max_trials is {max_trials}, min_improvement is {min_improvement:g}; at least 2 trials and an "
            "improvement in [0, 1) are needed"
        )
    iterations: list[Iteration[Model]] = []
    refused: list[str] = []
    good: Model | None = None
    latest: Model | None = None
    smallest, refusals, repeated = math.inf, 0, True

    def result(reason: str, converged: bool = False) -> IterationResult[Model]:
        return IterationResult(tuple(iterations), good, reason, converged, tuple(refused))

    for number in range(1, max_trials + 1):
        identified, refusal = None, ""
        try:
            trial = run(latest, number)
        except RobotDynIdError as error:
            refusal = f"trial {number} could not be run: {error}"
            if repeated:
                return result(refusal)
        else:
            if not repeated and trial.error > (1.0 - min_improvement) * smallest:
                iterations.append(Iteration(trial, None, latest))
                reason = f"the tracking error has stopped shrinking: {trial.error:.3g} after {smallest:.3g}"
                if trial.error < smallest:
                    good = latest
                if good is not None:
                    return result(reason, converged=True)
                refusal = (
                    f"the model in trial {number} does not reduce the tracking error: {trial.error:.3g} with it, "
                    f"{smallest:.3g} without"
                )
            else:
                good, smallest, refusals = latest, min(smallest, trial.error), refusals if repeated else 0
                try:
                    identified = identify_trial(trial.recording)
                except RobotDynIdError as error:
                    refusal = f"the model identified from trial {number} cannot be used for control: {error}"
                iterations.append(Iteration(trial, identified, latest))
        if not refusal:
            latest, repeated = identified, False
            continue
        refused.append(refusal)
        refusals += 1
        if refusals == MAX_REFUSALS:
            return result(f"{MAX_REFUSALS} models in succession were refused; {refusal}")
        latest, repeated = good, True
    if repeated:
        return result(f"{max_trials} trials were run; {refusal}")
    return result(f"the tracking error is still shrinking after {max_trials} trials")


@dataclass(frozen=True)
class TrialIdentifier:
    """Identification of a trial for `iterate` with the usual pipeline, judged by cross-validation.

    Attributes:
        model: the robot.
        settings: choices of the identification; an estimator whose mass matrices are positive definite by
            construction (`consistent`) always returns a model that can be used for control.
        software_version: version that is written into the parameter sets.
    """

    model: RobotModel
    settings: Settings
    software_version: str

    def __call__(self, trial: Recording) -> ParameterSet:
        """Identify the model of a trial.

        Raises:
            RobotDynIdError: see `pipeline.identify`, or the model cannot be used for control (see
                `controllers.make_usable_dynamics`).
        """
        training, held_out = split([trial], self.model.joint_names)
        parameters = identify(training, held_out, self.model, self.settings, self.software_version).parameters
        make_usable_dynamics(parameters, self.model.urdf, self.model.joint_names, needs_mass_matrix=True)
        return parameters


def scale_inertia_for_motion(
    motion: Trajectory, duration: float, prior: Dynamics, gains: Gains, max_sag: float, margin: float = 1.5
) -> ScaledNominalInertia:
    """Scaled nominal inertia that bounds the gravity sag along a motion.

    Args:
        motion: the designed motion.
        duration: duration of the motion [s].
        prior: dynamics of the URDF.
        gains: feedback gains.
        max_sag: largest gravity sag of a joint [rad or m].
        margin: largest ratio of true inertias and weights to those of the prior.
    """
    q, dq, _ = (x.T for x in motion.evaluate(np.linspace(0.0, duration, START_STATES))[:3])
    return ScaledNominalInertia.from_gravity_sag(max_sag, prior, gains, q, dq, margin)


@dataclass(frozen=True)
class SimulatedTrials:
    """Trials for `iterate` on a simulated robot under computed torque; the first with a scaled nominal inertia.

    Attributes:
        robot: true dynamics.
        motion: reference motion; the robot starts in its first state.
        duration: duration of a trial [s].
        rate: rate of the controller and of the recording [Hz].
        sensors: sensor errors of the recording and of the feedback.
        gains: feedback gains.
        start: scaled nominal inertia of the controller while no model is identified.
        limit_effort: whether the motors are limited to the efforts of the URDF.
        max_deviation: deviation of a joint from the motion at which a trial is stopped [rad or m], one for all joints.
        seed: seed of the noise, which differs by trial.
    """

    robot: Dynamics
    motion: Trajectory
    duration: float
    rate: float
    sensors: Sensors
    gains: Gains
    start: ScaledNominalInertia
    limit_effort: bool = True
    max_deviation: float = math.inf
    seed: int = 0

    def __call__(self, parameters: ParameterSet | None, number: int = 1) -> Trial:
        """Run the motion once with a parameter set, or, with None, with the scaled nominal inertia; see `follow`."""
        return self.follow(None if parameters is None else Dynamics.from_parameters(parameters), number)

    def follow(self, known: Dynamics | None, number: int = 1) -> Trial:
        """Run the motion once with a model in the controller, or, with None, with the scaled nominal inertia.

        Args:
            known: model of the controller.
            number: number of the trial, which its noise depends on.

        Raises:
            InputError: the simulation diverged, a joint deviated too far, or a term cannot be simulated.
        """
        t = np.arange(round(self.duration * self.rate)) / self.rate
        reference = np.array([np.ascontiguousarray(x.T) for x in self.motion.evaluate(t)[:3]])
        model = self.robot.regressor.model
        plant = Plant(self.robot, reference[0, 0], model.limits.effort if self.limit_effort else None)
        plant.dq[:] = reference[1, 0]
        noise = SensorStream(self.sensors, self.rate, 0.0, seed=(self.seed, number)).errors(len(t))
        scale, controller_model = (self.start.scale, self.start.prior) if known is None else (0.0, known)
        compiled = CompiledDynamics(controller_model)
        true_positions = np.empty_like(reference[0])
        measured = np.empty((len(t), 3, len(plant.q)))
        period = 1.0 / self.rate
        completed = run_trial(
            plant.dynamics.robot,
            compiled.robot,
            scale,
            (*self.gains.per_joint(model.joint_names), self.gains.exponent),
            period,
            count_steps(period),
            plant.effort_limit,
            reference,
            noise,
            self.sensors.resolution,
            plant.state,
            compiled.slip(),
            true_positions,
            measured,
        )
        if completed < len(t):
            raise plant.broken_down()
        deviation = np.abs(true_positions - reference[0])
        if deviation.max() > self.max_deviation:
            sample, joint = np.argwhere(deviation > self.max_deviation)[0]
            raise InputError(
                f"joint {model.joint_names[joint]} was {deviation[sample, joint]:.3g} away from the motion at "
                f"{t[sample]:.3g} s, more than {self.max_deviation:.3g} (rad or m): the trial was stopped"
            )
        size = np.linalg.norm(reference[0] - reference[0].mean(axis=0))
        error = float(np.linalg.norm(true_positions - reference[0]) / size)
        samples = Chunk(t, measured[:, 0], measured[:, 1], measured[:, 2])
        return Trial(ArrayRecording("simulated trial", model.joint_names, samples), error)
