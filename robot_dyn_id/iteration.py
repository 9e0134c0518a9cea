"""Identification in closed loop: identify, let the controller use it, repeat the motion, until tracking gains nothing.

Qian et al. (dynamic parameter identification with a Logistic excitation trajectory) repeat identification and motion so
that the robot comes ever closer to the motion that was designed. What moves the robot at first, before anything is
known, is a start inertia without gravity compensation; `start_scale` is our rule for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.controllers import Gains, computed_torque, usable_dynamics, wanted_acceleration
from robot_dyn_id.dataset import ArrayRecording, Chunk, Recording
from robot_dyn_id.dynamics import Dynamics
from robot_dyn_id.errors import InputError, RobotDynIdError, UsageError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.pipeline import identify, split
from robot_dyn_id.plant import Plant
from robot_dyn_id.robot import RobotModel
from robot_dyn_id.settings import Settings
from robot_dyn_id.simulated_robot import SensorStream
from robot_dyn_id.simulation import Sensors
from robot_dyn_id.trajectory_tracking import Setpoint

STATES = 500
"""Along the motion, that the start scale comes from."""


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
class Iteration:
    """A trial, and what was identified from it; None where that was not needed any more or could not be used."""

    trial: Trial
    parameters: ParameterSet | None


@dataclass(frozen=True)
class Iterated:
    """What came of repeating a motion.

    Attributes:
        iterations: in order; the first ran without a model.
        parameters: those with which the robot followed best; None if no model was good enough to move it.
        reason: why it ended, one sentence.
        converged: whether it ended because more repeating gains nothing.
    """

    iterations: tuple[Iteration, ...]
    parameters: ParameterSet | None
    reason: str
    converged: bool

    @property
    def errors(self) -> tuple[float, ...]:
        """Tracking error of each trial."""
        return tuple(iteration.trial.error for iteration in self.iterations)


def iterate(
    run: Callable[[ParameterSet | None], Trial],
    identified: Callable[[Recording], ParameterSet],
    model: RobotModel,
    gain: float = 0.05,
    most: int = 10,
) -> Iterated:
    """Repeat a motion with what was identified from it, until the tracking error stops shrinking.

    Args:
        run: moves the robot, real or simulated, with the parameters in its controller; with None as it can without.
        identified: the model that a trial tells. Earlier trials were farther from the motion, which is designed to tell
            most: the latest one alone counts.
        model: the robot; parameters that may not move it (`controllers.usable_dynamics`) are refused.
        gain: share of the smallest error so far by which a trial must be better, else that was the last.
        most: trials.

    Raises:
        UsageError: less than two trials, a gain that is not within 0 and 1.
    """
    if most < 2 or not 0.0 <= gain < 1.0:
        raise UsageError(f"iterate: at least two trials ({most}) and a gain within 0 and 1 ({gain:g}) are needed")
    done: list[Iteration] = []
    best, smallest, use = None, math.inf, None
    for number in range(most):
        try:
            trial = run(use)
        except RobotDynIdError as error:
            return Iterated(tuple(done), best, f"trial {number + 1} could not be run: {error}", False)
        if number and trial.error > (1.0 - gain) * smallest:
            done.append(Iteration(trial, None))
            best = use if trial.error < smallest or best is None else best
            reason = f"the tracking error has stopped shrinking: {trial.error:.3g} after {smallest:.3g}"
            return Iterated(tuple(done), best, reason, True)
        best, smallest = use, trial.error
        try:
            use = identified(trial.recording)
            usable_dynamics(use, model.urdf, model.joint_names, needs_mass_matrix=True)
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
            RobotDynIdError: see `pipeline.identify`.
        """
        training, held_out = split([trial], self.model.joint_names)
        return identify(training, held_out, self.model, self.settings, self.software_version).parameters


def start_scale(
    prior: Dynamics, gains: Gains, droop: float, motion: Trajectory, duration: float, margin: float = 1.5
) -> float:
    """How many times the URDF's mass matrix feedback needs to move a robot without a model of its weight.

    With tau = s M0(q) (ddq_d + Kd e' + Kp e), M0 of the URDF, the weight and Coriolis torque h of the robot keep it
    (s M0)^-1 h / Kp away from its setpoint: s is the least at which that is within `droop` everywhere along the motion,
    and at least 1, so that the feedback is damped as designed. A diagonal start inertia would not do for light wrists:
    where two axes are nearly parallel it is many times the inertia that the feedback sees, and sampled feedback becomes
    unstable.

    Args:
        prior: of the URDF, without friction.
        gains: of the controller.
        droop: [rad or m].
        motion: what the robot should do.
        duration: of it [s].
        margin: the robot's true inertias and weights are at most so many times those of the prior.

    Raises:
        UsageError: a droop or proportional gain that is not positive.
        InputError: the prior's mass matrix is not positive definite.
    """
    if not (droop > 0.0 and gains.proportional > 0.0):
        raise UsageError(f"the start needs a positive droop and gain, not {droop:g} and {gains.proportional:g}")
    q, dq, _ = (x.T for x in motion.evaluate(np.linspace(0.0, duration, STATES))[:3])
    if not prior.is_positive_definite(q).all():
        raise InputError("the mass matrix of the URDF is not positive definite: write estimates of inertias into it")
    falling = np.abs(prior.forward_dynamics(q, dq, np.zeros_like(q)))
    return margin * max(1.0, float(falling.max()) / (gains.proportional * droop))


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
        prior: of the URDF, without friction: its mass matrix times `scale` is used while nothing is known.
        scale: see `start_scale`.
        limit_effort: whether the motors are limited to the efforts of the URDF.
    """

    robot: Dynamics
    motion: Trajectory
    duration: float
    rate: float
    sensors: Sensors
    gains: Gains
    prior: Dynamics
    scale: float
    limit_effort: bool = True

    def __call__(self, parameters: ParameterSet | None) -> Trial:
        """Run the motion once.

        Raises:
            InputError: the motion has become no motion of a real robot.
        """
        t = np.arange(round(self.duration * self.rate)) / self.rate
        q, dq, ddq = (x.T for x in self.motion.evaluate(t)[:3])
        model = self.robot.regressor.model
        plant = Plant(self.robot, q[0], model.limits.effort if self.limit_effort else None)
        plant.dq[:] = dq[0]
        sensors = SensorStream(self.sensors, self.rate, 0.0, seed=0)
        dynamics = None if parameters is None else Dynamics.of(parameters)
        seen, true, applied = np.empty((len(t), 3, len(q[0]))), np.empty_like(q), np.zeros(len(q[0]))
        for k in range(len(t)):
            true[k] = plant.q
            seen[k] = sensors.measure(plant.q, plant.dq, applied)
            setpoint = Setpoint(q[k], dq[k], ddq[k])
            if dynamics is None:
                wanted = wanted_acceleration(setpoint, seen[k, 0], seen[k, 1], self.gains)
                effort = self.scale * self.prior.mass_matrix(seen[k, 0]) @ wanted
            else:
                effort = computed_torque(dynamics, setpoint, seen[k, 0], seen[k, 1], self.gains)
            before, applied = applied, plant.advance(effort, 1.0 / self.rate)
            # a torque is constant over a period: that of the moment is the mean of those before and after it
            seen[k, 2] += 0.5 * (applied - before) if k else applied
        error = float(np.linalg.norm(true - q) / np.linalg.norm(q - q.mean(axis=0)))
        samples = Chunk(t, seen[:, 0], seen[:, 1], seen[:, 2])
        return Trial(ArrayRecording("simulated trial", model.joint_names, samples), error)
