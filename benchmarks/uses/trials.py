# SPDX-License-Identifier: Apache-2.0
"""Each use of a model, done on the true arm or on recordings of it, with its success in the words of a user."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from mutation.clean import Bench

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import Setpoint
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.identification.prediction.forward_simulation import simulate_efforts
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.identification import identify_payload
from robot_dyn_id.model.kinematics import link_at_the_end
from robot_dyn_id.online.contact import ContactMonitor, ContactSettings
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.controllers import ComputedTorque, Gains
from uses.plant import PERIOD_S, Plant, UnstableError

BANDWIDTH = 20.0
"""Bandwidth of the position error under feedback, the default of the controller node [rad/s]."""

TRACKED_S = 6.0
"""Length of the motion that is tracked [s]."""

HALF = 0.5
"""Largest tracking error of a successful model relative to that of the same feedback with gravity compensation."""

HOLDS, HELD_S, DRIFT_RAD = 6, 2.0, 0.05
"""Poses that are held, the time of each [s], and the distance that no joint may move in it [rad or m]."""

ROLLED_S, ROLLED_SHARE = 1.0, 0.1
"""Time of a simulation without feedback [s], and its largest median error relative to the range of each joint."""

FORCES_N = (5.0, 10.0, 20.0)
"""Pushes on the last link."""

PUSHES, PUSH_S, PAUSE_S, FOUND = 10, 0.4, 1.6, 0.9
"""Number of pushes of each force, length of and time between pushes [s], share that must be found without any false
alarm before them."""

LEARNED_S, QUIET_S = 60.0, 60.0
"""Motion from which the contact monitor learns, and further motion without any push [s]."""

WEIGHTS = (0.1, 0.2, 0.4)
"""Payloads as shares of the mass that an arm can hold."""

WEIGHED = 0.1
"""Largest relative error of the mass of the two larger payloads."""

HELD_OUT = 9
"""Number of the first motion that no model was identified from."""


@dataclass(frozen=True)
class Outcome:
    """Result of a use.

    Attributes:
        figure: figure that decides, relative to the largest that counts as success: up to 1 the use succeeds; infinite
            if the use fails altogether.
        detail: the figures themselves in words.
    """

    figure: float
    detail: str


@dataclass(frozen=True)
class Model:
    """An identified model of a simulated arm.

    Attributes:
        bench: the true arm.
        parameters: the identified parameters.
    """

    bench: Bench
    parameters: ParameterSet

    @property
    def dynamics(self) -> Dynamics:
        """Dynamics of the parameters."""
        return Dynamics.from_parameters(self.parameters)


def hold_still(model: Model) -> Outcome:
    """Gravity compensation alone holds the arm in poses of another motion."""
    dynamics, motion = model.dynamics, _fast(model.bench).record(HELD_OUT).motion
    worst = 0.0
    for sample in np.linspace(0.1, 0.9, HOLDS) * motion.q.shape[1]:
        start = motion.q[:, int(sample)]
        plant = Plant(model.bench, start)
        try:
            for _ in range(round(HELD_S / PERIOD_S)):
                plant.advance(dynamics.gravity(plant.read().q))
        except UnstableError:
            return Outcome(math.inf, "falls")
        worst = max(worst, float(np.abs(plant.q - start).max()))
    return Outcome(worst / DRIFT_RAD, f"drifts by {worst:.3f} rad in {HELD_S:g} s")


def track_with(model: Model, law: str) -> Outcome:
    """Tracking error of a law relative to that of the same feedback with the true gravity.

    Args:
        model: the model.
        law: `computed_torque`, or `feed_forward`: the torque of the desired motion in addition to the feedback.
    """
    plain, _ = _track(model, "gravity")
    error, each = _track(model, law)
    ratio = error / plain
    return Outcome(
        ratio / HALF, f"tracks with {1e3 * error:.2f} mrad RMS, {1e3 * plain:.2f} with gravity alone; {each}"
    )


def _track(model: Model, law: str) -> tuple[float, str]:
    """RMS tracking error of all joints along another motion [rad or m]; infinite if the arm runs away."""
    motion = _fast(model.bench).record(HELD_OUT + 1, duration=TRACKED_S, rest=0.2).motion
    plant, dynamics = Plant(model.bench, motion.q[:, 0]), model.dynamics
    gains = Gains.from_bandwidth(BANDWIDTH)
    computed = ComputedTorque(dynamics, gains)
    feed_forward = ComputedTorque(dynamics, Gains(0.0, 0.0))
    squares = np.zeros(len(plant.q))
    for sample in range(motion.q.shape[1]):
        aim = Setpoint(motion.q[:, sample], motion.dq[:, sample], motion.ddq[:, sample])
        reading = plant.read()
        feedback = plant.inertia() * (
            gains.proportional * (aim.q - reading.q) + gains.derivative * (aim.dq - reading.dq)
        )
        if law == "computed_torque":
            effort = computed.effort(aim, reading.q, reading.dq, PERIOD_S).wanted
        elif law == "feed_forward":
            effort = feedback + feed_forward.effort(aim, aim.q, aim.dq, PERIOD_S).wanted
        else:
            effort = feedback + plant.gravity()
        try:
            plant.advance(effort)
        except UnstableError:
            return math.inf, "runs away"
        squares += (plant.q - aim.q) ** 2
    rms = np.sqrt(squares / motion.q.shape[1])
    return float(np.sqrt((rms**2).mean())), " ".join(f"{1e3 * value:.2f}" for value in rms)


def roll_out(model: Model) -> Outcome:
    """Simulation under the recorded efforts of another recording, without feedback."""
    trial = model.bench.record(HELD_OUT + 2)
    recording = trial.recording(model.bench.robot)
    simulated = simulate_efforts(recording, model.parameters, model.dynamics, Settings(), restart=ROLLED_S)
    true = np.array([np.interp(simulated.t, trial.t, q) for q in trial.motion.q]).T
    distance = np.abs(simulated.q - true)
    count = round(ROLLED_S * (len(distance) - 1) / (simulated.t[-1] - simulated.t[0]))
    whole = len(distance) // count
    errors = np.median(distance[: whole * count].reshape(whole, count, -1).max(axis=1), axis=0)
    share = float((errors / np.ptp(true, axis=0)).max())
    return Outcome(share / ROLLED_SHARE, f"{share:.1%} of the range after {ROLLED_S:g} s")


def detect_pushes(model: Model) -> Outcome:
    """Pushes on the last link during another motion, found by the contact monitor."""
    bench = model.bench
    length = LEARNED_S + QUIET_S + len(FORCES_N) * PUSHES * (PUSH_S + PAUSE_S)
    trial = bench.record(HELD_OUT + 3, duration=length)
    begin = trial.t[0] + LEARNED_S + QUIET_S
    external, starts = np.zeros_like(trial.effort), []
    rng = np.random.default_rng((bench.seed, 6))
    for number in range(len(FORCES_N) * PUSHES):
        start = begin + number * (PUSH_S + PAUSE_S)
        rows = np.flatnonzero((trial.t >= start) & (trial.t < start + PUSH_S))
        direction = rng.normal(size=3)
        force = FORCES_N[number % len(FORCES_N)] * direction / np.linalg.norm(direction)
        external[:, rows] = _torques_of_force(bench, trial.motion.q[:, rows], force)
        starts.append(start)
    measured = trial.effort + trial.noise - external
    monitor = ContactMonitor(model.parameters, settings=ContactSettings(quiet=LEARNED_S))
    velocity = None if trial.velocity is None else trial.velocity.T
    states = monitor.follow(trial.stamps, trial.reading.T, velocity, measured.T)
    if states is None or monitor.noise is None:
        return Outcome(math.inf, "learns nothing")
    times = states.estimates.t
    contact = states.contact
    pushed = np.zeros(len(times), dtype=bool)
    found = dict.fromkeys(FORCES_N, 0)
    for number, start in enumerate(starts):
        during = (times >= start) & (times < start + PUSH_S + PAUSE_S / 2)
        pushed |= during
        found[FORCES_N[number % len(FORCES_N)]] += bool(contact[during].any())
    begun = np.diff(contact.astype(int), prepend=0) > 0
    false = int(np.count_nonzero(begun & (times < begin)))
    again = int(np.count_nonzero(begun & ~pushed & (times >= begin)))
    shares = {force: count / PUSHES for force, count in found.items()}
    words = ", ".join(f"{share:.0%} of {force:g} N" for force, share in shares.items())
    success = shares[FORCES_N[-1]] >= FOUND and not false
    return Outcome(0.5 if success else math.inf, f"{words}; {false} false alarms, {again} after pushes")


def weigh(model: Model) -> Outcome:
    """Payloads on the last link, a point mass off its origin each."""
    bench = model.bench
    capacity = _capacity(bench)
    errors = []
    for number, share in enumerate(WEIGHTS):
        mass = share * capacity
        body = np.concatenate([[mass], mass * np.array([0.0, 0.0, 0.05]), np.zeros(6)])
        body[[4, 6]] = mass * 0.05**2
        load = bench.parameters.copy()
        load[-10:] += body
        trial = bench.record(HELD_OUT + 4 + number, load=load, duration=20.0)
        try:
            payload, _ = identify_payload(
                [trial.recording(bench.robot)], model.parameters, link_at_the_end(bench.robot), Settings()
            )
        except RobotDynIdError:
            errors.append(math.inf)
            continue
        errors.append(abs(payload.mass / mass - 1.0))
    words = ", ".join(f"{share * capacity:.2f} kg {error:.0%}" for share, error in zip(WEIGHTS, errors, strict=True))
    return Outcome(max(errors[1:]) / WEIGHED, words)


USES: Mapping[str, Callable[[Model], Outcome]] = {
    "gravity_compensation": hold_still,
    "feed_forward": lambda model: track_with(model, "feed_forward"),
    "computed_torque": lambda model: track_with(model, "computed_torque"),
    "forward_simulation": roll_out,
    "collision_detection": detect_pushes,
    "payload": weigh,
}
"""Trial of each use."""


def try_use(use: str, model: Model) -> Outcome:
    """Outcome of a use; a model that the package refuses for it fails."""
    try:
        return USES[use](model)
    except RobotDynIdError as error:
        return Outcome(math.inf, str(error)[:100])


def _fast(bench: Bench) -> Bench:
    """The same arm, recorded at the rate of a controller."""
    return replace(bench, rate=1.0 / PERIOD_S)


def _capacity(bench: Bench) -> float:
    """Point mass at the last link that the drives hold in all poses of a motion [kg]."""
    motion = bench.record(HELD_OUT).motion
    q = motion.q[:, ::50]
    still = Motion(q, np.zeros_like(q), np.zeros_like(q))
    place = len(bench.parameters) - 10
    unit = np.zeros(len(bench.parameters))
    unit[place] = 1.0
    torque = np.abs(bench.regressor.torque(still, unit)).max(axis=1)
    limit = np.minimum(bench.robot.limits.effort, 400.0)
    return float(np.min(np.where(torque > 1e-3, limit / np.maximum(torque, 1e-3), np.inf)))


def _torques_of_force(bench: Bench, q: Array, force: Array) -> Array:
    """Joint torques of a force in the base frame at the origin of the last link, shape (n, N)."""
    plant = Plant(bench, q[:, 0])
    return np.column_stack([plant.torques_of_force(one, force) for one in q.T])
