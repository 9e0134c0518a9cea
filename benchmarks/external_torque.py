# SPDX-License-Identifier: Apache-2.0
"""Contacts at the flange of a simulated Panda, with the residuals of the measured one, by three detectors.

The arm is the model that is identified from `panda_gaz2019` (of the folder that ROBOT_DYN_ID_DATA names), presliding
friction included; the residuals of that model on both recordings, drawn in blocks, are added to the simulated efforts.
Its monitor has another model, identified from 30 s of the simulated arm. Position servo and contact are simulated, the
efforts answer a contact as those of a real arm. After a quiet minute come forces of 0.5 s in random directions that
give at least 1 N m on a joint at 5 N, and the same directions at 2 and 10 N; and half an hour without contact.

Compared on the same draws, with the same quiet minute and the same time between false alarms of each statistic:
a plain momentum observer with a constant threshold for each joint, the same with the largest value of the quiet minute
times 1.2 as threshold, and the residual of the torque_residual_monitor, which needs accelerations.

    python benchmarks/external_torque.py --contacts 200 --minutes 30 > benchmarks/external_torque.md
"""

from __future__ import annotations

from measuring import one_thread

if __name__ == "__main__":
    one_thread()

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.excitation import FourierSeries
from robot_dyn_id.excitation.forms.registry import Demand
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.identification.holdout import split
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.prediction import predict_recording
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.kinematics import Kinematics, Placement, placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.online.changes import BLOCK, ChangeThresholds
from robot_dyn_id.online.contact import ContactMonitor, ContactSettings
from robot_dyn_id.online.external_wrench import WrenchPrior, estimate_wrench
from robot_dyn_id.online.monitoring import ResidualMonitor
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.simulation.sensors import resample_residuals
from robot_dyn_id.simulation.simulated_robot import SimulatedRobot, follow
from robot_dyn_id.version import __version__

MEASURED, FLANGE = "panda_gaz2019", "panda_link8"
RATE, QUIET, INTERVAL = 500.0, 60.0, 360e3
BLOCK_S = 2.0
"""Length of the pieces that measured residuals are drawn in [s]."""

TRAINING, LEARNED = 11, 12
"""Seeds of the motions of identification and quiet minute; the following ones are those of other motions."""

FORCES, LEAST_TORQUE, AT = (2.0, 5.0, 10.0), 1.0, 5.0
"""Forces [N]; largest joint torque [N m] that a direction must give at `AT` [N]."""

WITHIN, CONTACT_S, PAUSE_S = 0.05, 0.5, 1.0
"""Time within which a contact must be detected, its duration, and the least time between two [s]."""

READ_S = 0.4
"""Time in a contact at which its wrench is read [s]."""

NOISE = np.array([1e-5, 1e-3])
"""Standard deviations of positions [rad] and velocities [rad/s]."""

OURS, CONSTANT, LARGEST, ACCELERATION = (
    "momentum observer, covariance of model and noise",
    "momentum observer, constant thresholds",
    "momentum observer, 1.2 times the largest",
    "torque residual with accelerations",
)


@cache
def measured() -> tuple[ParameterSet, Array]:
    """Model identified from the measured arm, and its residuals at `RATE`, shape (7, M) [N m]."""
    folder = Path(os.environ["ROBOT_DYN_ID_DATA"], MEASURED)
    model = RobotModel.from_file(folder / "model.urdf")
    recordings = [open_recording(folder / name) for name in ("train_0_14s.npz", "val_14_21s.npz")]
    parameters = identify(recordings[:1], recordings[1:], model, Settings(), __version__).parameters
    residuals = []
    for recording in recordings:
        t, predicted, _ = predict_recording(recording, parameters)
        tau = np.concatenate([chunk.tau for chunk in recording.chunks(parameters.joint_names)])
        error = tau - predicted
        usable = np.isfinite(error).all(axis=1)
        grid = np.arange(t[usable][0], t[usable][-1], 1.0 / RATE)
        residuals.append([np.interp(grid, t[usable], column[usable]) for column in error.T])
    return parameters, np.concatenate(residuals, axis=1)


def motion(seed: int) -> Trajectory:
    """Ten seconds within positions and speeds of the measured motion."""
    parameters, _ = measured()
    model = RobotModel.from_urdf(parameters.urdf, parameters.joint_names)
    limits = MotionLimits.from_model(model, (float(parameters.ddq_max.max()),))
    limits = replace(limits, lower=parameters.q_min, upper=parameters.q_max, velocity=parameters.dq_max)
    family = FourierSeries.make(limits, Demand(period=10.0, harmonics=5, share=0.9))
    return family.trajectory(family.random(np.random.default_rng(seed), 0.9))


@dataclass
class Arm:
    """The simulated arm, which repeats a motion; `states` yields what its driver reports."""

    seed: int
    motion_seed: int
    robot: SimulatedRobot = field(init=False)

    def __post_init__(self) -> None:
        """Place it at the start of the motion."""
        self._motion = motion(self.motion_seed)
        start = self._motion.evaluate(np.zeros(1))[0][:, 0]
        self.robot = SimulatedRobot(Dynamics.from_parameters(measured()[0]), start, 1.0 / RATE)
        self._rng = np.random.default_rng((self.seed, 1))

    def states(self, duration: float) -> Iterator[tuple[float, Array, Array, Array]]:
        """Time, measured positions, velocities and efforts."""
        residuals = measured()[1]
        count, chunk = round(duration * RATE), round(self._motion.duration * RATE)
        for begin in range(0, count, chunk):
            follow(self.robot, self._motion)
            noise = resample_residuals(residuals, chunk, round(BLOCK_S * RATE), self._rng)
            for k in range(min(chunk, count - begin)):
                t = self.robot.time
                q, dq, effort = self.robot.tick()
                errors = NOISE[:, None] * self._rng.normal(size=(2, len(q)))
                yield t, q + errors[0], dq + errors[1], effort + noise[:, k]


@cache
def model() -> ParameterSet:
    """Model of the monitor, from 30 s of another motion of the simulated arm."""
    t, q, dq, tau = (np.array(x) for x in zip(*Arm(1000, TRAINING).states(30.0), strict=True))
    recording = ArrayRecording("simulation", measured()[0].joint_names, Chunk(t, q, dq, tau))
    training, held_out = split([recording], recording.joint_names)
    urdf = RobotModel.from_urdf(measured()[0].urdf, recording.joint_names)
    return identify(training, held_out, urdf, Settings(), __version__).parameters


class Constant:
    """Constant threshold of each joint for a residual, learned from the quiet minute."""

    def __init__(self, factor: float = 0.0) -> None:
        """With `factor` > 0: the largest value times this, else the level of `INTERVAL`."""
        self._factor = factor
        self._learned: list[Array] = []
        self._times: list[float] = []
        self._thresholds: Array | None = None

    def add(self, t: float, residual: Array, learning: bool) -> bool:
        """Whether a joint exceeds its threshold."""
        if self._thresholds is None:
            self._times.append(t)
            self._learned.append(residual)
            if learning:
                return False
            self._thresholds = self._fit()
        return bool(np.any(np.abs(residual) > self._thresholds))

    def _fit(self) -> Array:
        values, t = np.abs(self._learned), np.array(self._times)
        if self._factor:
            return np.asarray(self._factor * values.max(axis=0))
        scale = np.sqrt(np.mean(values**2, axis=0))
        chance = ChangeThresholds(np.ones(len(scale)))
        first = np.unique(((t - t[0]) / BLOCK).astype(np.int64), return_index=True)[1]
        for block in np.maximum.reduceat((values / scale) ** 2, first):
            chance.add(block, BLOCK)
        return np.asarray(scale * np.sqrt(chance.fit(INTERVAL * (1 + len(scale)))))


@dataclass
class Detectors:
    """All detectors on the same joint states.

    Attributes:
        active: detectors in contact at the last state.
    """

    monitor: ContactMonitor
    residual: ResidualMonitor
    constant: dict[str, Constant]
    active: set[str] = field(default_factory=set)

    @classmethod
    def make(cls) -> Detectors:
        """With the model of the monitor."""
        settings = ContactSettings(quiet=QUIET, false_alarm_interval=INTERVAL)
        names = {CONSTANT: Constant(), LARGEST: Constant(1.2), ACCELERATION: Constant()}
        return cls(ContactMonitor(model(), settings=settings), ResidualMonitor(model(), 10.0, 10.0), names)

    def add(self, t: float, q: Array, dq: Array, tau: Array) -> None:
        """Add a joint state."""
        valid = self.residual.add(t, q, dq, tau)
        state = self.state = self.monitor.add(t, q, dq, tau)
        if state is None:
            return
        learning = self.monitor.learning > 0.0
        self.active = {OURS} if state.contact else set()
        for name in (CONSTANT, LARGEST):
            if self.constant[name].add(t, state.estimate.torque, learning):
                self.active.add(name)
        if valid and self.constant[ACCELERATION].add(t, self._accelerated(), learning):
            self.active.add(ACCELERATION)

    def _accelerated(self) -> Array:
        _, tau, columns = self.residual._columns.read()
        return tau - self.residual.parameters.values @ columns[self.residual._independent]


@dataclass(frozen=True)
class Trial:
    """One contact.

    Attributes:
        force: size of the force [N].
        torque: largest joint torque [N m].
        delays: time from its begin to the detection by each detector [s]; infinite without one, negative before it.
        error: estimated minus true wrench along the frame, shape (6,).
        sigma: standard deviations, shape (6,).
    """

    force: float
    torque: float
    delays: dict[str, float]
    error: Array
    sigma: Array


def contacts(seed: int, count: int, force: float) -> list[Trial]:
    """`count` contacts of one size after a quiet minute."""
    arm, detectors = Arm(seed, LEARNED), Detectors.make()
    at, kinematics = placement_of(arm.robot.plant.dynamics.model, FLANGE), Kinematics(arm.robot.plant.dynamics.model)
    rng, trials = np.random.default_rng(seed), []
    states = arm.states(QUIET + 2.0 + 30.0 * count)
    for t, *state in states:  # the quiet minute
        detectors.add(t, *state)
        if t > QUIET + 1.0 and detectors.monitor.learning == 0.0:
            break
        if t > QUIET + 2.0:
            raise RuntimeError(f"the learning was refused: {detectors.monitor.refusal}")
    quiet_until = t + PAUSE_S
    begun, delays, wrench, read = np.inf, {}, np.zeros(6), None
    for t, *state in states:
        detectors.add(t, *state)
        if t < quiet_until:
            continue
        if not np.isfinite(begun):
            jacobian = kinematics.poses(arm.robot.plant.q[:, None]).jacobian(at)
            direction = rng.normal(size=3)
            wrench = np.append(force * direction / np.linalg.norm(direction), np.zeros(3))
            torque = np.abs(wrench @ jacobian).max()
            if torque * AT / force < LEAST_TORQUE:
                continue
            begun = arm.robot.time
            arm.robot.apply_wrench(at, wrench, CONTACT_S)
            delays = dict.fromkeys(detectors.active, -1.0)
            read = None
            continue
        for name in detectors.active:
            delays.setdefault(name, t - begun)
        if read is None and t >= begun + READ_S and detectors.state is not None:
            read = _read_wrench(detectors, kinematics, at)
        if t > begun + CONTACT_S:
            assert read is not None
            trials.append(Trial(force, torque, delays, read[0] - wrench, read[1]))
            begun, quiet_until = np.inf, t + PAUSE_S * (1.0 + rng.random())
            if len(trials) == count:
                return trials
    raise RuntimeError("the motion ended before all contacts")


def _read_wrench(detectors: Detectors, kinematics: Kinematics, at: Placement) -> tuple[Array, Array]:
    """Estimated wrench and its standard deviations."""
    state = detectors.state
    assert state is not None
    jacobian = kinematics.poses(state.estimate.q[:, None]).jacobian(at)
    found = estimate_wrench(jacobian, state.estimate.torque, state.covariance, WrenchPrior())
    return found.values, np.sqrt(np.diag(found.covariance))


def false_alarms(seed: int, minutes: float, other: bool) -> dict[str, int]:
    """Number of times that each detector begins to report a contact without one, in the learned or in other motions."""
    arm, detectors = Arm(seed, LEARNED), Detectors.make()
    for t, *state in arm.states(QUIET + 2.0):
        detectors.add(t, *state)
    if detectors.monitor.learning > 0.0:
        raise RuntimeError(f"the learning was refused: {detectors.monitor.refusal}")
    counts, before = dict.fromkeys((OURS, *detectors.constant), 0), set(detectors.active)
    each = 20.0 if other else 60.0 * minutes
    for number in range(round(60.0 * minutes / each)):
        begin = t + 1.0  # another motion begins elsewhere
        later = Arm(seed + 1 + number, LEARNED + (1 + number) * other)
        for t, *state in later.states(each):
            t += begin
            detectors.add(t, *state)
            for name in detectors.active - before:
                counts[name] += 1
            before = set(detectors.active)
    return counts


def page(trials: list[Trial], alarms: dict[str, tuple[int, int]], minutes: tuple[float, float]) -> str:
    """Markdown tables."""
    title = "| detector | force | within 50 ms | within 0.5 s | delay: median, 95 % [ms] | in contact before |"
    lines = [title, "|---|---|---|---|---|---|"]
    for name in alarms:
        for force in FORCES:
            delays = np.array([trial.delays.get(name, np.inf) for trial in trials if trial.force == force])
            valid = delays[delays >= 0.0]
            early = len(delays) - len(valid)
            found = valid[np.isfinite(valid)]
            middle, late = (1e3 * np.quantile(valid, share, method="higher") for share in (0.5, 0.95))
            shown = ", ".join("-" if np.isinf(x) else f"{x:.0f}" for x in (middle, late))
            share = np.mean((delays >= 0.0) & (delays <= WITHIN))
            lines.append(f"| {name} | {force:g} N | {share:.1%} | {len(found) / len(delays):.1%} | {shown} | {early} |")
    title = f"| detector | false alarms in {minutes[0]:g} min of the learned motion | in {minutes[1]:g} min of others |"
    lines += ["", title, "|---|---|---|"]
    lines += [f"| {name} | {learned} | {other} |" for name, (learned, other) in alarms.items()]
    title = "| wrench at the flange | force: RMS error, RMS sigma [N] | moment: the same [N m] | within 2 sigma |"
    lines += ["", title, "|---|---|---|---|"]
    for force in FORCES:
        error = np.array([trial.error for trial in trials if trial.force == force])
        sigma = np.array([trial.sigma for trial in trials if trial.force == force])
        texts = []
        for part in (slice(0, 3), slice(3, 6)):
            texts.append(", ".join(f"{np.sqrt(np.mean(x[:, part] ** 2)):.2f}" for x in (error, sigma)))
        held = np.mean(np.abs(error) <= 2.0 * sigma)
        lines.append(f"| {force:g} N | {texts[0]} | {texts[1]} | {held:.1%} |")
    return "\n".join(lines)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Contacts and false alarms.")
    parser.add_argument("--contacts", type=int, default=200, help="contacts of each force")
    parser.add_argument("--minutes", type=float, default=30.0, help="motion without contact")
    parser.add_argument("--other", type=float, default=10.0, help="motions unlike the learned one, without contact")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    trials = []
    for force in FORCES:
        trials += contacts(arguments.seed, arguments.contacts, force)
        print(f"{force:g} N: done", file=sys.stderr)
    minutes = arguments.minutes, arguments.other
    learned, other = (false_alarms(arguments.seed + 100 + one, minutes[one], bool(one)) for one in (0, 1))
    print(page(trials, {name: (learned[name], other[name]) for name in learned}, minutes))


if __name__ == "__main__":
    main()
