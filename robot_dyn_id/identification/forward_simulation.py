# SPDX-License-Identifier: Apache-2.0
"""What an identified robot would do: along a trajectory under position control, or under the efforts of a recording."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.identification.extrapolation import extrapolation, outside, strays
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import FilteredTrials, plan_signals, require_signals
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.plant import Plant, steps
from robot_dyn_id.simulation.simulated_robot import FASTEST, SimulatedRobot, follow

LAGGING = 0.01
"""Distance from the trajectory that is told of [rad or m]."""

DRIFTED = 0.1
"""Distance from the recorded motion that is told of, as a share of the joint's recorded range."""


@dataclass(frozen=True)
class SimulatedMotion:
    """N samples of a simulated robot with n joints, without sensor errors.

    Attributes:
        t: time [s], shape (N,).
        q: positions [rad or m], shape (N, n).
        dq: velocities, shape (N, n).
        tau: efforts of the motors [N m or N], shape (N, n).
        distance: the greatest from the given motion, of each joint [rad or m], shape (n,).
        warnings: what a person should know.
    """

    t: Array
    q: Array
    dq: Array
    tau: Array
    distance: Array
    warnings: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check the samples.

        Raises:
            InputError: one is not finite.
        """
        for name in ("q", "dq", "tau"):
            if not np.isfinite(getattr(self, name)).all():
                raise InputError(f"the simulated {name} is not finite: use other parameters, or a slower motion")


def beyond_training(simulated: SimulatedMotion, parameters: ParameterSet) -> tuple[str, ...]:
    """A warning if a simulated motion leads far away from the one that its model was trained on, else none.

    Accelerations are differences of velocities; they are wrong where a simulation begins again from a recorded state.
    """
    motion = Motion(simulated.q.T, simulated.dq.T, np.gradient(simulated.dq, simulated.t, axis=0).T)
    shares = outside(motion, Ranges.from_parameters(parameters)).mean(axis=2)
    return extrapolation(strays(parameters.joint_names, shares))


def simulate_trajectory(dynamics: Dynamics, motion: Trajectory, rate: float) -> SimulatedMotion:
    """A robot follows a trajectory under the position controller of `simulated_robot`, from rest at its start.

    The motors have the effort limits of the URDF. Control runs at the least whole
    multiple of the rate that is 1 kHz or more.

    Args:
        dynamics: of the robot.
        motion: of all its joints.
        rate: of the samples [Hz].

    Raises:
        UsageError: a rate beyond `FASTEST`, or that leaves less than two samples.
        InputError: a term that cannot be simulated, or a mass matrix that is not positive definite somewhere.
    """
    if not 1.0 / motion.duration <= rate <= FASTEST:
        raise UsageError(f"rate: {rate:g} Hz; give {1.0 / motion.duration:.3g} to {FASTEST:g} Hz")
    ticks = steps(1.0 / rate)
    robot = SimulatedRobot(dynamics, motion.evaluate(np.zeros(1))[0][:, 0], 1.0 / (rate * ticks))
    follow(robot, motion)
    count = 1 + math.floor(motion.duration * rate + 1e-9)
    states = np.empty((count, 3, len(robot.plant.q)))
    limited = np.zeros(len(robot.plant.q))
    for tick in range((count - 1) * ticks + 1):
        state = robot.tick()
        limited += np.abs(state[2]) >= robot.plant.effort_limit
        if tick % ticks == 0:
            states[tick // ticks] = state
    t = np.arange(count) / rate
    q, dq, tau = states.transpose(1, 0, 2)
    distance = np.abs(q - motion.evaluate(np.minimum(t, motion.duration))[0].T).max(axis=0)
    warnings = _behind(robot.plant, distance, limited / robot.ticks)
    return SimulatedMotion(t, q, dq, tau, distance, (*warnings, *_beyond(robot.plant, q)))


def _behind(plant: Plant, distance: Array, limited: Array) -> tuple[str, ...]:
    """Joints that do not keep to the trajectory; `limited` is the share of time at the effort limits."""
    warnings = []
    for joint in np.flatnonzero(distance > LAGGING):
        why = f", its motor in {limited[joint]:.0%} of the time at its limit of {plant.effort_limit[joint]:g}"
        name = plant.dynamics.model.joint_names[joint]
        text = f"joint {name}: up to {distance[joint]:.3g} (rad or m) off its trajectory"
        warnings.append(text + (why if limited[joint] > 0.0 else ""))
    return tuple(warnings)


def simulate_efforts(
    recording: Recording,
    parameters: ParameterSet,
    dynamics: Dynamics,
    drives: Mapping[str, Drive],
    velocity: str = "auto",
    restart: float = math.inf,
) -> SimulatedMotion:
    """A robot moves under the recorded efforts, from the recorded state at the start and behind every gap.

    Nothing draws it back to the recorded motion: errors of the model and of the efforts add up.

    Args:
        recording: with efforts, on whose uniform grid the samples are.
        parameters: whose filter finds the recorded states.
        dynamics: of the robot.
        drives: what the efforts were recorded as.
        velocity: see `plan_signals`.
        restart: time after which it begins again from the recorded state [s].

    Raises:
        UsageError: no time to restart after, or velocities that are asked for and not recorded.
        InputError: no usable sample, no efforts, or see `simulate_trajectory`.
    """
    if not restart > 0.0:
        raise UsageError(f"restart: {restart:g} s; it must be positive")
    joints = parameters.joint_names
    seen = survey([recording], joints, drives)
    require_signals(dynamics.regressor, seen)
    plan = plan_signals(seen, parameters.cutoff_frequency, parameters.filter_order, velocity)
    every = max(1, round(min(restart * plan.rate, 2.0**62)))
    plant: Plant | None = None
    parts, recorded = [], []
    for piece in FilteredTrials([recording], joints, drives, plan, keep_edges=True):
        if plant is None:
            plant = Plant(dynamics, piece.motion.q[:, np.flatnonzero(piece.own)[0]])
        parts.append(_driven(plant, piece, every, 1.0 / plan.rate))
        recorded.append(piece.motion.q[:, piece.own].T)
    t, q, dq, tau = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    given = np.concatenate(recorded)
    assert plant is not None
    warnings = (*_drift(joints, t - t[0], q, given), *_beyond(plant, q))
    return SimulatedMotion(t, q, dq, tau, np.abs(q - given).max(axis=0), warnings)


def _driven(plant: Plant, piece: FilteredWindow, every: int, period: float) -> tuple[Array, Array, Array, Array]:
    """Times, states and efforts of one window; the plant ends where the next window of the segment begins.

    It is placed in the recorded state at every grid number that is a multiple of `every`, hence where a segment begins.
    Between two samples the effort is the mean of both, as that of a driver is constant over its period.
    """
    assert piece.tau is not None
    own = np.flatnonzero(piece.own)
    q, dq = np.empty((2, len(own), len(plant.q)))
    for row, k in enumerate(own):
        if piece.number[k] % every == 0:
            plant.q[:], plant.dq[:] = piece.motion.q[:, k], piece.motion.dq[:, k]
        q[row], dq[row] = plant.q, plant.dq
        after = min(k + 1, piece.tau.shape[1] - 1)
        plant.advance(0.5 * (piece.tau[:, k] + piece.tau[:, after]), period)
    return piece.t[own], q, dq, piece.tau[:, own].T


def _drift(joints: tuple[str, ...], t: Array, q: Array, recorded: Array) -> tuple[str, ...]:
    """When joints left the recorded motion."""
    distance = np.abs(q - recorded)
    away = distance > np.maximum(DRIFTED * np.ptp(recorded, axis=0), LAGGING)
    left = [f"{joints[joint]} from {t[np.argmax(away[:, joint])]:.2f} s on, {distance[:, joint].max():.3g} at most"
            for joint in np.flatnonzero(away.any(axis=0))]  # fmt: skip
    if not left:
        return ()
    return (
        f"efforts alone do not hold a robot on its way; more than {DRIFTED:.0%} of the recorded range away from the "
        f"recorded motion are: {'; '.join(left)} (rad or m); restart more often from the recorded state",
    )


def _beyond(plant: Plant, q: Array) -> tuple[str, ...]:
    """Joints that pass their position limits: the simulated robot has no mechanical stops."""
    names = plant.beyond_stops(q)
    return (f"beyond the position limits: {', '.join(names)}",) if names else ()
