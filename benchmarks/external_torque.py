# SPDX-License-Identifier: Apache-2.0
"""Contacts at the flange of a simulated Panda, with the residuals of the measured one, by three detectors.

The arm is the model that is identified from `panda_gaz2019` (of the folder that ROBOT_DYN_ID_DATA names), presliding
friction included; the residuals of that model on both recordings, drawn in blocks, are added to the simulated efforts.
Its monitor has another model, identified from 30 s of the simulated arm. Position servo and contact are simulated, the
efforts answer a contact as those of a real arm. After a quiet minute come forces of 2, 5 and 10 N in turn, of 0.5 s, in
random directions that give at least 1 N m on a joint at 5 N; and half an hour without contact.

Compared on the same draws, with the same quiet minute and the same time between false alarms of each statistic:
a plain momentum observer with a constant threshold for each joint, the same with the largest value of the quiet minute
times 1.2 as threshold, and the residual of the torque_residual_monitor, which needs accelerations.

    python benchmarks/external_torque.py --contacts 200 --minutes 30 > benchmarks/external_torque.md
    python benchmarks/external_torque.py --drawing docs
"""

from __future__ import annotations

from measuring import one_thread

if __name__ == "__main__":
    one_thread()

import argparse
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.excitation import FourierSeries
from robot_dyn_id.excitation.forms.registry import Demand
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.prediction.prediction import predict_recording
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.model.kinematics import Kinematics, find_placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.online.changes import BLOCK, ChangeThresholds
from robot_dyn_id.online.contact import ContactMonitor, ContactSettings, ContactStates
from robot_dyn_id.online.external_wrench import FrameWrench, WrenchPrior
from robot_dyn_id.online.monitoring import Columns
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.report.drawing import Curve, Drawing, Panel, write_drawing
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

EVERY, CHUNK, CUTOFF = 2, 500, 10.0
"""Joint states per test and per step of the detectors; cut-off of the residual with accelerations [Hz]."""

REPEATED = 1e-6
"""Largest difference of positions [rad] and velocities [rad/s] between two periods of a motion that repeats itself."""

OTHER_S = 20.0
"""Duration of each of the other motions, which begin elsewhere and a second later [s]."""

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
        tau = np.concatenate([chunk.tau for chunk in recording.chunks(parameters.robot.joint_names)])
        error = tau - predicted
        usable = np.isfinite(error).all(axis=1)
        grid = np.arange(t[usable][0], t[usable][-1], 1.0 / RATE)
        residuals.append([np.interp(grid, t[usable], column[usable]) for column in error.T])
    return parameters, np.concatenate(residuals, axis=1)


def motion(seed: int) -> Trajectory:
    """Ten seconds within positions and speeds of the measured motion."""
    parameters, _ = measured()
    model = RobotModel.from_urdf(parameters.robot.urdf, parameters.robot.joint_names)
    limits = MotionLimits.from_model(model, (float(parameters.ranges.ddq_max.max()),))
    limits = replace(
        limits, lower=parameters.ranges.q_min, upper=parameters.ranges.q_max, velocity=parameters.ranges.dq_max
    )
    family = FourierSeries.make(limits, Demand(period=10.0, harmonics=5, share=0.9))
    return family.trajectory(family.random(np.random.default_rng(seed), 0.9))


@dataclass
class Arm:
    """The simulated arm, which repeats a motion; `states` yields what its driver reports.

    Attributes:
        seed: seed of the noise.
        motion_seed: seed of the motion.
        touched: whether the environment acts on it.
        robot: the robot.
    """

    seed: int
    motion_seed: int
    touched: bool = False
    robot: SimulatedRobot = field(init=False)

    def __post_init__(self) -> None:
        """Place it at the start of the motion."""
        self._motion = motion(self.motion_seed)
        start = self._motion.evaluate(np.zeros(1))[0][:, 0]
        self.robot = SimulatedRobot(Dynamics.from_parameters(measured()[0]), start, 1.0 / RATE)
        self._rng, self._ticks = np.random.default_rng((self.seed, 1)), 0

    def states(self, duration: float) -> Iterator[tuple[float, Array, Array, Array]]:
        """Time, measured positions, velocities and efforts.

        An arm that nothing touches is simulated until its motion repeats itself: noise is of the sensors only.
        """
        residuals, count = measured()[1], round(self._motion.duration * RATE)
        previous = latest = None
        while (left := duration * RATE - self._ticks) > 0.5:
            noise = resample_residuals(residuals, count, round(BLOCK_S * RATE), self._rng).T
            errors = NOISE[:, None] * self._rng.normal(size=(count, 2, noise.shape[1]))
            repeats = previous is not None and np.abs(latest[:, :2] - previous[:, :2]).max() < REPEATED
            period = latest if repeats else self._simulate(count)
            if not self.touched:
                previous, latest = latest, period if repeats else np.array(list(period))
                period = latest
            for (q, dq, effort), error, residual in islice(zip(period, errors, noise, strict=True), math.ceil(left)):
                t = self._ticks / RATE
                self._ticks += 1
                yield t, q + error[0], dq + error[1], effort + residual

    def _simulate(self, count: int) -> Iterator[tuple[Array, Array, Array]]:
        """True positions, velocities and efforts along the motion."""
        follow(self.robot, self._motion)
        for _ in range(count):
            yield self.robot.tick()


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
        self._learned: list[tuple[Array, Array]] = []
        self._thresholds: Array | None = None

    def add(self, t: Array, residual: Array, learning: bool) -> Mask:
        """Whether a joint exceeds its threshold at N times, residuals of shape (N, n)."""
        if learning:
            self._learned.append((t, residual))
            return np.full(len(t), False)
        if self._thresholds is None:
            self._thresholds = self._fit()
        return np.asarray(np.any(np.abs(residual) > self._thresholds, axis=1))

    def _fit(self) -> Array:
        t, values = (np.concatenate(parts) for parts in zip(*self._learned, strict=True))
        values = np.abs(values)
        if self._factor:
            return np.asarray(self._factor * values.max(axis=0))
        scale = np.sqrt(np.mean(values**2, axis=0))
        chance = ChangeThresholds(np.ones(len(scale)))
        first = np.unique(((t - t[0]) / BLOCK).astype(np.int64), return_index=True)[1]
        for block in np.maximum.reduceat((values / scale) ** 2, first):
            chance.add(block, BLOCK)
        return np.asarray(scale * np.sqrt(chance.fit(INTERVAL * len(scale))))


class Accelerated:
    """Residual of the torque with accelerations, as that of the torque_residual_monitor."""

    def __init__(self) -> None:
        """With the model of the monitor."""
        self._parameters = model()
        self._columns = Columns(Regressor.from_parameters(self._parameters), CUTOFF)

    def add(self, t: Array, q: Array, dq: Array, tau: Array) -> tuple[Array, Array]:
        """Times [s], shape (M,), and residuals, shape (M, n), at each `EVERY`-th of N joint states."""
        values, slopes = self._columns.follow(t, np.stack([q, dq, tau], axis=1))
        chosen = np.flatnonzero(self._columns.filter.settled_at(t))[::EVERY]
        _, effort, columns = self._columns.assemble(values[chosen], slopes[chosen])
        predicted = np.einsum("p,pnk->kn", self._parameters.estimate.values, columns[self._parameters.base.independent])
        return t[chosen], effort - predicted


class Detectors:
    """All detectors on the same joint states.

    Attributes:
        monitor: the detector of this package.
        found: times of the tests of each detector, and whether it reported a contact there.
    """

    def __init__(self) -> None:
        """With the model of the monitor."""
        self.monitor = ContactMonitor(model(), settings=ContactSettings(QUIET, INTERVAL, RATE / EVERY))
        self._accelerated = Accelerated()
        self._constant = {CONSTANT: Constant(), LARGEST: Constant(1.2), ACCELERATION: Constant()}
        self.found: dict[str, list[tuple[Array, Mask]]] = {name: [] for name in (OURS, *self._constant)}

    def add(self, states: list[tuple[float, Array, Array, Array]]) -> ContactStates | None:
        """Add joint states."""
        chunk = tuple(np.array(x) for x in zip(*states, strict=True))
        learning = self.monitor.learning > 0.0
        found = self.monitor.follow(*chunk)
        if learning and self.monitor.refusal:
            raise RuntimeError(f"the learning was refused: {self.monitor.refusal}")
        t, residual = self._accelerated.add(*chunk)
        if found is not None:
            present = found.estimates.t, found.estimates.torque
            self.found[OURS].append((present[0], found.contact))
            for name, values in ((CONSTANT, present), (LARGEST, present), (ACCELERATION, (t, residual))):
                self.found[name].append((values[0], self._constant[name].add(*values, learning)))
        return found

    def detections(self) -> dict[str, tuple[Array, Mask]]:
        """Times of each detector, shape (M,), and whether it reported a contact."""
        return {name: tuple(map(np.concatenate, zip(*parts, strict=True))) for name, parts in self.found.items()}


@dataclass(frozen=True)
class Push:
    """A contact.

    Attributes:
        begin: time at which it begins [s].
        force: size of the force [N].
        wrench: wrench on the flange, along its axes, shape (6,).
    """

    begin: float
    force: float
    wrench: Array


@dataclass(frozen=True)
class Trial:
    """Result of a contact.

    Attributes:
        force: size of the force [N].
        delays: time from its begin to the detection by each detector [s]; infinite without one, negative before it.
        error: estimated minus true wrench along the frame, shape (6,).
        sigma: standard deviations, shape (6,).
    """

    force: float
    delays: dict[str, float]
    error: Array
    sigma: Array


class Pushes:
    """Contacts of all forces in turn, in random directions."""

    def __init__(self, seed: int, arm: Arm) -> None:
        """Prepare those of an arm."""
        model = arm.robot.plant.dynamics.model
        self._robot, self._at, self._kinematics = arm.robot, find_placement_of(model, FLANGE), Kinematics(model)
        self._rng = np.random.default_rng(seed)
        self._next = QUIET + 2.0 + PAUSE_S
        self.begun: list[Push] = []

    def __call__(self, t: float) -> None:
        """Begin a contact at the time t [s] if one is due and the joints measure a random direction."""
        if t < self._next:
            return
        direction, force = self._rng.normal(size=3), FORCES[len(self.begun) % len(FORCES)]
        jacobian = self._kinematics.poses(self._robot.plant.q[:, None]).jacobian(self._at)
        wrench = np.append(direction / np.linalg.norm(direction), np.zeros(3))
        if AT * np.abs(wrench @ jacobian).max() < LEAST_TORQUE:
            return
        self._robot.apply_wrench(self._at, force * wrench, CONTACT_S)
        self.begun.append(Push(self._robot.time, force, force * wrench))
        self._next = t + CONTACT_S + PAUSE_S * (1.0 + self._rng.random())


def _pushed(arm: Arm, pushes: Pushes) -> Iterator[tuple[float, Array, Array, Array]]:
    """States of an arm with contacts, without end."""
    for state in arm.states(1e6):
        pushes(state[0])
        yield state


def contacts(seed: int, count: int) -> list[Trial]:
    """`count` contacts of each size after a quiet minute."""
    arm, detectors = Arm(seed, LEARNED, touched=True), Detectors()
    pushes, wrench = Pushes(seed, arm), FrameWrench(arm.robot.plant.dynamics.model, FLANGE, WrenchPrior())
    read: list[tuple[Array, Array]] = []
    stream = _pushed(arm, pushes)
    while len(read) < count * len(FORCES):
        found = detectors.add(list(islice(stream, CHUNK)))
        while found is not None and len(read) < len(pushes.begun):
            push = pushes.begun[len(read)]
            place = int(np.searchsorted(found.estimates.t, push.begin + READ_S))
            if place == len(found):
                break
            one = found[place]
            estimate = wrench.estimate(one.estimate.q, one.estimate.torque, one.covariance)
            read.append((estimate.values - push.wrench, np.sqrt(np.diag(estimate.covariance))))
    detected = detectors.detections()
    delays = [{name: _delay(*one, push.begin) for name, one in detected.items()} for push in pushes.begun]
    trials = zip(pushes.begun, delays, read, strict=False)
    return [Trial(push.force, delay, *errors) for push, delay, errors in trials][: count * len(FORCES)]


def _delay(t: Array, active: Mask, begin: float) -> float:
    """Time to the detection of a contact; infinite without one, negative if it was reported before."""
    first, last = np.searchsorted(t, [begin, begin + CONTACT_S])
    if active[first - 1]:
        return -1.0
    at = np.flatnonzero(active[first:last])
    return float(t[first + at[0]] - begin) if len(at) else math.inf


def false_alarms(seed: int, minutes: float, other: bool) -> dict[str, int]:
    """Number of times that each detector begins to report a contact without one, in the learned or in other motions."""
    detectors = Detectors()
    if not other:
        _play(Arm(seed, LEARNED), QUIET + 2.0 + 60.0 * minutes, 0.0, detectors)
    else:
        _play(Arm(seed, LEARNED), QUIET + 2.0, 0.0, detectors)
        for number in range(1, 1 + round(60.0 * minutes / OTHER_S)):
            begin = QUIET + 3.0 + (number - 1) * (OTHER_S + 1.0)
            _play(Arm(seed + number, LEARNED + number), OTHER_S, begin, detectors)
    return {
        name: int(np.count_nonzero(np.diff(active.astype(np.int8)) > 0))
        for name, (_, active) in detectors.detections().items()
    }


def _play(arm: Arm, duration: float, begin: float, detectors: Detectors) -> None:
    """Give the detectors the states of an arm, whose time is late by `begin` [s]."""
    states = arm.states(duration)
    while chunk := list(islice(states, CHUNK)):
        detectors.add([(t + begin, *state) for t, *state in chunk])


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


def example(seed: int) -> Drawing:
    """The first contact of each force: applied and estimated force, and the statistics over their limits."""
    arm, detectors = Arm(seed, LEARNED, touched=True), Detectors()
    pushes, parts = Pushes(seed, arm), []
    stream = _pushed(arm, pushes)
    while len(pushes.begun) <= len(FORCES):
        found = detectors.add(list(islice(stream, CHUNK)))
        if found is not None and pushes.begun:
            parts.append(found)
    states, begun = ContactStates.concatenate(parts), pushes.begun[: len(FORCES)]
    begin, end = begun[0].begin - 0.5, begun[-1].begin + CONTACT_S + 0.5
    states = states.take((states.estimates.t > begin) & (states.estimates.t < end))
    t, frame = states.estimates.t, FrameWrench(arm.robot.plant.dynamics.model, FLANGE, WrenchPrior())
    applied, estimated = np.zeros((2, len(t), 3))
    for push in begun:
        applied[(t >= push.begin) & (t < push.begin + CONTACT_S)] = push.wrench[:3]
    for k in range(len(t)):
        one = states[k]
        estimated[k] = frame.estimate(one.estimate.q, one.estimate.torque, one.covariance).values[:3]
    ratios = np.sqrt((states.statistics / states.thresholds).max(axis=2)).T
    t = t - begin
    sizes = (
        Curve("applied", t, np.linalg.norm(applied, axis=1)),
        Curve("estimated", t, np.linalg.norm(estimated, axis=1)),
    )
    named = zip(("present torque", "lasting torque", "limit"), (*ratios, np.ones(len(t))), strict=True)
    return Drawing(
        "external_torque",
        "Contacts of 2, 5 and 10 N at the flange of a moving arm",
        (
            Panel("", "size of the force [N]", sizes),
            Panel("time [s]", "amplitude over its limit", tuple(Curve(name, t, ratio) for name, ratio in named), "y"),
        ),
    )


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Contacts and false alarms.")
    parser.add_argument("--contacts", type=int, default=200, help="contacts of each force")
    parser.add_argument("--minutes", type=float, default=30.0, help="motion without contact")
    parser.add_argument("--other", type=float, default=10.0, help="motions unlike the learned one, without contact")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drawing", metavar="DIR", help="only draw one contact of each force, external_torque.svg")
    arguments = parser.parse_args()
    if arguments.drawing:
        write_drawing(example(arguments.seed), Path(arguments.drawing))
        return
    minutes = arguments.minutes, arguments.other
    learned, other = (false_alarms(arguments.seed + 100 + one, minutes[one], bool(one)) for one in (0, 1))
    print(f"false alarms: {learned}, {other}", file=sys.stderr)
    trials = contacts(arguments.seed, arguments.contacts)
    print(page(trials, {name: (learned[name], other[name]) for name in learned}, minutes))


if __name__ == "__main__":
    main()
