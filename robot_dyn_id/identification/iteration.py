# SPDX-License-Identifier: Apache-2.0
"""Identification in closed loop: identify, let the controller use it, repeat the motion, until tracking gains nothing.

Qian et al. (dynamic parameter identification with a Logistic excitation trajectory) repeat identification and motion so
that the robot comes ever closer to the motion that was designed. What moves the robot at first, before anything is
known, is a start inertia without gravity compensation; `controllers.ScaledNominalInertia` is our rule for it.
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
from robot_dyn_id.errors import RobotDynIdError, UsageError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.identification.holdout import split
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.kernels.trials import run_trial
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.controllers import Gains, ScaledNominalInertia, usable_dynamics
from robot_dyn_id.simulation.plant import CompiledDynamics, Plant, steps
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.simulation.simulated_robot import SensorStream

Model = TypeVar("Model")
"""What is identified and given to the controller."""

STATES = 500
"""Along the motion, that the start inertia comes from."""


@dataclass(frozen=True)
class Trial:
    """A motion under a controller.

    Attributes:
        recording: of it.
        error: norm of the tracking errors over that of the motion about its mean, all joints and samples.
    """

    recording: Recording
    error: float


@dataclass(frozen=True)
class Iteration(Generic[Model]):
    """A trial, and what was identified from it; None where that was not needed any more or could not be used."""

    trial: Trial
    parameters: Model | None


@dataclass(frozen=True)
class Iterated(Generic[Model]):
    """What came of repeating a motion.

    Attributes:
        iterations: in order; the first ran without a model.
        parameters: those with which the robot followed best; None if no model was good enough to move it.
        reason: why it ended, one sentence.
        converged: whether it ended because more repeating gains nothing.
    """

    iterations: tuple[Iteration[Model], ...]
    parameters: Model | None
    reason: str
    converged: bool

    @property
    def errors(self) -> tuple[float, ...]:
        """Tracking error of each trial."""
        return tuple(iteration.trial.error for iteration in self.iterations)


def iterate(
    run: Callable[[Model | None], Trial],
    identified: Callable[[Recording], Model],
    gain: float = 0.05,
    most: int = 10,
) -> Iterated[Model]:
    """Repeat a motion with what was identified from it, until the tracking error stops shrinking.

    Args:
        run: moves the robot, real or simulated, with the parameters in its controller; with None as it can without.
        identified: the model that a trial tells, or an error if there is none that may move the robot. Earlier trials
            were farther from the motion, which is designed to tell most: the latest one alone counts.
        gain: share of the smallest error so far by which a trial must be better, else that was the last.
        most: trials.

    Raises:
        UsageError: less than two trials, a gain that is not within 0 and 1.
    """
    if most < 2 or not 0.0 <= gain < 1.0:
        raise UsageError(f"iterate: at least two trials ({most}) and a gain within 0 and 1 ({gain:g}) are needed")
    done: list[Iteration[Model]] = []
    best: Model | None = None
    use: Model | None = None
    smallest = math.inf
    for number in range(most):
        try:
            trial = run(use)
        except RobotDynIdError as error:
            return Iterated(tuple(done), best, f"trial {number + 1} could not be run: {error}", False)
        if number and trial.error > (1.0 - gain) * smallest:
            done.append(Iteration(trial, None))
            if best is None and trial.error >= smallest:
                reason = f"the first model follows no better than the start: {trial.error:.3g} after {smallest:.3g}"
                return Iterated(tuple(done), None, reason, False)
            best = use if trial.error < smallest else best
            reason = f"the tracking error has stopped shrinking: {trial.error:.3g} after {smallest:.3g}"
            return Iterated(tuple(done), best, reason, True)
        best, smallest = use, trial.error
        try:
            use = identified(trial.recording)
        except RobotDynIdError as error:
            done.append(Iteration(trial, None))
            return Iterated(tuple(done), best, f"what trial {number + 1} tells may not move it: {error}", False)
        done.append(Iteration(trial, use))
    return Iterated(tuple(done), best, f"the tracking error still shrinks after {most} trials", False)


@dataclass(frozen=True)
class Identifying:
    """`identified` of `iterate` by the usual line; the last third of the trial is held out, as always.

    Attributes:
        model: the robot.
        settings: with an estimator whose mass matrices are positive definite by construction (`consistent`), nothing
            is refused on their account.
        software_version: written into the sets.
    """

    model: RobotModel
    settings: Settings
    software_version: str

    def __call__(self, trial: Recording) -> ParameterSet:
        """The model that the trial tells.

        Raises:
            RobotDynIdError: see `pipeline.identify`; one that may not move the robot (`controllers.usable_dynamics`).
        """
        training, held_out = split([trial], self.model.joint_names)
        found = identify(training, held_out, self.model, self.settings, self.software_version).parameters
        usable_dynamics(found, self.model.urdf, self.model.joint_names, needs_mass_matrix=True)
        return found


def start_along(
    motion: Trajectory, duration: float, prior: Dynamics, gains: Gains, droop: float, margin: float = 1.5
) -> ScaledNominalInertia:
    """Scaled nominal inertia that keeps the gravity sag along a motion below `droop`; duration in s."""
    q, dq, _ = (x.T for x in motion.evaluate(np.linspace(0.0, duration, STATES))[:3])
    return ScaledNominalInertia.from_gravity_sag(droop, prior, gains, q, dq, margin)


@dataclass(frozen=True)
class SimulatedTrials:
    """`run` of `iterate` with a simulated robot under computed torque; at first with a start inertia.

    Attributes:
        robot: the true dynamics.
        motion: what it should do; it begins on it.
        duration: of a trial [s].
        rate: of the controller and the recording [Hz].
        sensors: what is measured; the feedback sees it too.
        gains: of the feedback.
        start: what moves it while nothing is known.
        limit_effort: whether the motors are limited to the efforts of the URDF.
        seed: of the noise.
    """

    robot: Dynamics
    motion: Trajectory
    duration: float
    rate: float
    sensors: Sensors
    gains: Gains
    start: ScaledNominalInertia
    limit_effort: bool = True
    seed: int = 0

    def __call__(self, parameters: ParameterSet | None) -> Trial:
        """Run the motion once with an identified set, or, with None, with the start inertia; see `follow`."""
        return self.follow(None if parameters is None else Dynamics.from_parameters(parameters))

    def follow(self, known: Dynamics | None) -> Trial:
        """Run the motion once with a model in the controller, or, with None, with the start inertia.

        Raises:
            InputError: the motion has become no motion of a real robot, or a term that cannot be simulated.
        """
        t = np.arange(round(self.duration * self.rate)) / self.rate
        wanted = np.array([np.ascontiguousarray(x.T) for x in self.motion.evaluate(t)[:3]])
        model = self.robot.regressor.model
        plant = Plant(self.robot, wanted[0, 0], model.limits.effort if self.limit_effort else None)
        plant.dq[:] = wanted[1, 0]
        noise = SensorStream(self.sensors, self.rate, 0.0, seed=self.seed).errors(len(t))
        scale, used = (self.start.scale, self.start.prior) if known is None else (0.0, known)
        true, seen = np.empty_like(wanted[0]), np.empty((len(t), 3, len(plant.q)))
        gains, period = (self.gains.proportional, self.gains.derivative, self.gains.exponent), 1.0 / self.rate
        done = run_trial(
            plant.dynamics.arguments, CompiledDynamics(used).arguments, scale, gains, period, steps(period),
            plant.effort_limit, wanted, noise, self.sensors.resolution, plant.q, plant.dq, plant.dry, true, seen,
        )  # fmt: skip
        if done < len(t):
            raise plant.broken_down()
        error = float(np.linalg.norm(true - wanted[0]) / np.linalg.norm(wanted[0] - wanted[0].mean(axis=0)))
        samples = Chunk(t, seen[:, 0], seen[:, 1], seen[:, 2])
        return Trial(ArrayRecording("simulated trial", model.joint_names, samples), error)
