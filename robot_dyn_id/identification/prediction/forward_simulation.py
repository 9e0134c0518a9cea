# SPDX-License-Identifier: Apache-2.0
"""Forward simulation of an identified robot: along a trajectory under position control, or under recorded efforts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.findings import Definition, Finding, Section, format_findings
from robot_dyn_id.identification.diagnosis.health import examine_motion
from robot_dyn_id.identification.diagnosis.positions import correct_motion
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.extrapolation import flag_far_outside, list_excesses, report_excesses
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, require_signals
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.plant import Plant, count_steps
from robot_dyn_id.simulation.simulated_robot import FASTEST, SimulatedRobot, follow

TRAJECTORY_NOT_FOLLOWED = Definition(
    "trajectory_not_followed",
    Section.PREDICTION,
    "info",
    "The simulated robot deviates from the trajectory by more than 0.01 rad or m, often because a motor is at its "
    "effort limit.",
    "design a slower motion, or check the effort limits of the URDF",
)

SIMULATION_DRIFTS = Definition(
    "simulation_drifts",
    Section.PREDICTION,
    "info",
    "Under recorded efforts alone, errors of model and efforts accumulate, so that the simulation leaves the "
    "recorded motion.",
    "restart the simulation from the recorded state, more often than the joints leave the motion",
)

POSITION_LIMITS_PASSED = Definition(
    "position_limits_passed",
    Section.PREDICTION,
    "info",
    "The simulated motion passes a position limit of the URDF; the simulated robot has no mechanical stops.",
    "use another motion, or restart the simulation more often",
)

REPORTED_DISTANCE = 0.01
"""Distance from the trajectory or the recorded motion above which it is reported [rad or m]."""

SHORTEST_RESTART_S = 0.01
"""Shortest restart time that is recommended [s]."""

REPORTED_DRIFT_SHARE = 0.1
"""Distance from the recorded motion above which it is reported, as a fraction of the joint's recorded range."""


@dataclass(frozen=True)
class SimulatedMotion:
    """N samples of a simulated robot with n joints, without sensor errors.

    Attributes:
        t: time [s], shape (N,).
        q: positions [rad or m], shape (N, n).
        dq: velocities, shape (N, n).
        tau: efforts of the motors [N m or N], shape (N, n).
        distance: largest distance of each joint from the given motion [rad or m], shape (n,).
        findings: findings about the motion.
    """

    t: Array
    q: Array
    dq: Array
    tau: Array
    distance: Array
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """All findings as text."""
        return format_findings(self.findings)

    def __post_init__(self) -> None:
        """Check the samples.

        Raises:
            InputError: one is not finite.
        """
        for name in ("q", "dq", "tau"):
            if not np.isfinite(getattr(self, name)).all():
                raise InputError(f"the simulated {name} is not finite: use other parameters, or a slower motion")


def check_training_ranges(simulated: SimulatedMotion, parameters: ParameterSet) -> tuple[Finding, ...]:
    """Finding about a simulated motion that exceeds the training motion by far.

    Accelerations are differences of velocities; they are wrong where a simulation restarts from a recorded state.
    """
    motion = Motion(simulated.q.T, simulated.dq.T, np.gradient(simulated.dq, simulated.t, axis=0).T)
    shares = flag_far_outside(motion, parameters.ranges).mean(axis=2)
    return report_excesses(list_excesses(parameters.robot.joint_names, shares))


def simulate_trajectory(dynamics: Dynamics, motion: Trajectory, rate: float) -> SimulatedMotion:
    """Simulate a robot that follows a trajectory under the position controller of `simulated_robot`, from rest.

    The motors have the effort limits of the URDF. The control rate is the smallest integer multiple of the sample rate
    that is at least 1 kHz.

    Args:
        dynamics: dynamics of the robot.
        motion: trajectory of all its joints.
        rate: sample rate [Hz].

    Raises:
        UsageError: a rate above `FASTEST`, or one that leaves fewer than two samples.
        InputError: a term that cannot be simulated, or a mass matrix that is not positive definite along the motion.
    """
    if not 1.0 / motion.duration <= rate <= FASTEST:
        raise UsageError(f"rate: {rate:g} Hz; give {1.0 / motion.duration:.3g} to {FASTEST:g} Hz")
    ticks = count_steps(1.0 / rate)
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
    findings = _report_tracking_errors(robot.plant, distance, limited / robot.ticks)
    return SimulatedMotion(t, q, dq, tau, distance, (*findings, *_report_limits_passed(robot.plant, q)))


def _report_tracking_errors(plant: Plant, distance: Array, limited: Array) -> tuple[Finding, ...]:
    """Findings about joints that leave the trajectory; `limited` is the share of time at the effort limits."""
    findings = []
    for joint in np.flatnonzero(distance > REPORTED_DISTANCE):
        name = plant.dynamics.model.joint_names[joint]
        message = f"joint {name}: up to {distance[joint]:.3g} (rad or m) off its trajectory"
        if limited[joint] > 0.0:
            message += f", its motor in {limited[joint]:.0%} of the time at its limit of {plant.effort_limit[joint]:g}"
        findings.append(TRAJECTORY_NOT_FOLLOWED.found(message, [name]))
    return tuple(findings)


def simulate_efforts(
    recording: Recording,
    parameters: ParameterSet,
    dynamics: Dynamics,
    settings: Settings,
    restart: float = math.inf,
) -> SimulatedMotion:
    """Simulate a robot under recorded efforts, from the recorded state at the start and after every gap.

    There is no feedback: errors of the model and of the efforts accumulate. States of friction start from those along
    the recorded motion.

    Args:
        recording: recording with efforts; the samples of the result are on its uniform grid.
        parameters: parameter set with the filter of the recorded states.
        dynamics: dynamics of the robot.
        settings: drives and source of the velocities where they are not those of the parameter set, and codes of errors
            about the recorded motion that are overruled.
        restart: time after which the simulation restarts from the recorded state [s].

    Raises:
        UnsafeDataError: a health check refuses the motion.
        UsageError: a restart time that is not positive, or recorded velocities are requested and not recorded.
        InputError: no usable sample, no efforts, or see `simulate_trajectory`.
    """
    if not restart > 0.0:
        raise UsageError(f"restart: {restart:g} s; it must be positive")
    joints = parameters.robot.joint_names
    signals, drives = SignalSettings.from_parameters(parameters, settings.velocity), settings.drives_of(parameters)
    corrected, jumps = correct_motion(recording, dynamics.regressor.model)
    trials = FilteredTrials.from_recordings([corrected], joints, drives, signals, keep_edges=True)
    require_signals(dynamics.regressor, trials.survey)
    unsound = examine_motion(trials, dynamics.regressor.model, settings.ignore)
    rate = trials.plan.rate
    every = max(1, round(min(restart * rate, 2.0**62)))
    plant: Plant | None = None
    parts, recorded, ages = [], [], []
    for piece in trials.along(dynamics.regressor):
        if plant is None:
            plant = Plant(dynamics, piece.motion.q[:, np.flatnonzero(piece.own)[0]])
        parts.append(_driven(plant, piece, every, 1.0 / rate))
        recorded.append(piece.motion.q[:, piece.own].T)
        ages.append(piece.number[piece.own] / rate)
    t, q, dq, tau = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    given, age = np.concatenate(recorded), np.concatenate(ages)
    assert plant is not None
    drift = _report_drift(joints, (t - t[0], age), (q, given), restart)
    findings = (*jumps, *unsound, *drift, *_report_limits_passed(plant, q))
    return SimulatedMotion(t, q, dq, tau, np.abs(q - given).max(axis=0), findings)


def _driven(plant: Plant, piece: FilteredWindow, every: int, period: float) -> tuple[Array, Array, Array, Array]:
    """Times, states and efforts of one window; the plant ends in the state where the next window of the segment begins.

    The plant is reset to the recorded state at every grid number that is a multiple of `every`, hence at the start of a
    segment. The effort between two samples is the mean of both, as motor drivers hold it constant over their period.
    """
    assert piece.tau is not None
    own = np.flatnonzero(piece.own)
    q, dq = np.empty((2, len(own), len(plant.q)))
    for row, k in enumerate(own):
        if piece.number[k] % every == 0:
            plant.place(piece.motion, int(k))
        q[row], dq[row] = plant.q, plant.dq
        after = min(k + 1, piece.tau.shape[1] - 1)
        plant.advance(0.5 * (piece.tau[:, k] + piece.tau[:, after]), period)
    return piece.t[own], q, dq, piece.tau[:, own].T


def _report_drift(
    joints: tuple[str, ...], times: tuple[Array, Array], positions: tuple[Array, Array], restart: float
) -> tuple[Finding, ...]:
    """Finding about joints that leave the recorded motion.

    Args:
        joints: names of the joints, n.
        times: times since the start of the recording and since the start of the segment [s], shape (N,) each.
        positions: simulated and recorded positions [rad or m], shape (N, n) each.
        restart: restart time of the simulation [s].
    """
    (t, age), (q, recorded) = times, positions
    distance = np.abs(q - recorded)
    away = distance > np.maximum(REPORTED_DRIFT_SHARE * np.ptp(recorded, axis=0), REPORTED_DISTANCE)
    left = np.flatnonzero(away.any(axis=0)).tolist()
    if not left:
        return ()
    since, largest = t[np.argmax(away, axis=0)], distance.max(axis=0)
    listed = ", ".join(f"{joints[j]} from {since[j]:.2f} s on (at most {largest[j]:.3g} rad or m)" for j in left)
    share = f"{REPORTED_DRIFT_SHARE:.0%} of the recorded range"
    message = (
        f"without feedback, errors of model and efforts accumulate, and the simulation leaves the recorded motion by "
        f"more than {share}: {listed}"
    )
    action = None
    if math.isinf(restart):
        shortest = max(0.5 * float(age[away.any(axis=1)].min()), SHORTEST_RESTART_S)  # it restarts after every gap
        action = f"restart the simulation from the recorded state, here at least every {shortest:.2g} s"
    return (SIMULATION_DRIFTS.found(message, [joints[joint] for joint in left], action=action),)


def _report_limits_passed(plant: Plant, q: Array) -> tuple[Finding, ...]:
    """Finding about joints that pass their position limits: the simulated robot has no mechanical stops."""
    names = plant.beyond_stops(q)
    message = f"the simulated motion passes the position limits of {', '.join(names)}"
    return (POSITION_LIMITS_PASSED.found(message, names),) if names else ()
