# SPDX-License-Identifier: Apache-2.0
"""A simulated robot with its sensors and its own position controller: tick by tick what a robot's driver does."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.simulation.closed_loop import quantize
from robot_dyn_id.simulation.controllers import PositionServo
from robot_dyn_id.simulation.plant import Plant
from robot_dyn_id.simulation.sensors import Sensors, colored_noise
from robot_dyn_id.simulation.trajectory_tracking import TrajectoryTracker, Waypoints

POSITION, EFFORT = "position", "effort"
MODES = (POSITION, EFFORT)
"""What a simulated robot is commanded by: trajectories, or efforts."""

BANDWIDTH = 60.0
"""Of the position controller [rad/s]."""

FASTEST = 10_000.0
"""Most ticks per second [Hz]."""

WAYPOINTS = 100.0
"""Points per second of a trajectory that is followed [Hz]; between them the way is quintic."""

LARGEST = 1e9
"""Bound of effort commands [N m or N]: beyond it they are no efforts of motors."""

BLOCK = 1024
"""Noise is drawn for so many samples at once."""


class SensorStream:
    """Sensor errors of one sample after the other; with the same seed always the same ones."""

    def __init__(self, sensors: Sensors, rate: float, delay: float, seed: int) -> None:
        """Make the sensors of n joints.

        Args:
            sensors: their errors; recorded residuals are not used.
            rate: samples per second [Hz].
            delay: time by which all of them are late [s].
            seed: of the noise.

        Raises:
            UsageError: residuals are given, or no velocities.
        """
        if sensors.residuals is not None or sensors.velocity is None:
            raise UsageError("a stream of samples has velocities, and no noise from recorded residuals")
        self._sensors, self._rate, self._rng = sensors, rate, np.random.default_rng(seed)
        self._sigmas = [np.full_like(sensors.effort, x) for x in (sensors.position, sensors.velocity)]
        self._past: deque[Array] = deque(maxlen=round(delay * rate) + 1)
        self._effort_noise: Array | None = None
        self._noise, self._next = np.empty((BLOCK, 3, len(sensors.effort))), BLOCK  # all of it is spent

    def measure(self, q: Array, dq: Array, tau: Array) -> Array:
        """What the sensors show at the next sample: position, velocity, effort, shape (3, n)."""
        if self._next == BLOCK:
            self._draw()
        self._past.append(np.array((q, dq, tau)))
        shown: Array = self._past[0] + self._noise[self._next]
        self._next += 1
        if self._sensors.resolution > 0.0:
            shown[0] = quantize(shown[0], self._sensors.resolution)
        return shown

    def errors(self, count: int) -> Array:
        """What the sensors add at the next samples, before the encoders' steps, shape (count, 3, n)."""
        blocks = [self._rest()]
        while sum(map(len, blocks)) < count:
            self._draw()
            blocks.append(self._rest())
        self._next = BLOCK - (sum(map(len, blocks)) - count)
        return np.concatenate(blocks)[:count]

    def _rest(self) -> Array:
        """What is left of the noise that was drawn."""
        return self._noise[self._next :]

    def _draw(self) -> None:
        """The noise of the next samples, shape (BLOCK, 3, n)."""
        position, velocity = (sigma * self._rng.normal(size=(BLOCK, len(sigma))) for sigma in self._sigmas)
        self._effort_noise = colored_noise(
            self._sensors.effort,
            BLOCK,
            self._rate,
            self._sensors.correlation_time,
            self._rng,
            None if self._effort_noise is None else self._effort_noise[:, -1],
        )
        self._noise = np.stack([position, velocity, self._effort_noise.T], axis=1)
        self._next = 0


class SimulatedRobot:
    """A plant under commands, in ticks of one period. Times are those of its own clock, which begins at 0 [s].

    Attributes:
        plant: its true state.
        period: time between ticks [s].
        time: of the state [s].
        tracker: where the joints should be, in position mode.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        q: Array,
        period: float,
        mode: str = POSITION,
        limit_effort: bool = True,
        effort_timeout: float = 0.1,
        bandwidth: float = BANDWIDTH,
        brakes: bool = False,
    ) -> None:
        """Place the robot at rest.

        Args:
            dynamics: of the robot.
            q: where it stands at first [rad or m], shape (n,).
            period: time between ticks [s].
            mode: one of `MODES`.
            limit_effort: whether the motors are limited to the efforts of the URDF.
            effort_timeout: age at which an effort command is not followed any more: zero then [s].
            bandwidth: of the position controller [rad/s].
            brakes: whether the joints stand still until the first effort command.

        Raises:
            InputError: see `Plant`.
        """
        self.plant = Plant(dynamics, q, dynamics.regressor.model.limits.effort if limit_effort else None)
        self.period, self.ticks = period, 0
        self.tracker = TrajectoryTracker(self.plant.q)
        self._servo = PositionServo(self.plant.dynamics, bandwidth, period) if mode == POSITION else None
        self._timeout, self._command, self._commanded = effort_timeout, np.zeros(len(q)), -np.inf
        self._applied: Array | None = None
        self._braked = brakes and mode == EFFORT

    @property
    def time(self) -> float:
        """Of the state [s]."""
        return self.ticks * self.period

    @property
    def doing(self) -> str:
        """What it does, in words."""
        if self._servo is not None:
            return "holds its position" if self.tracker.resting(self.time) else "follows a trajectory"
        if self._braked:
            return "stands, its brakes closed until the first effort command"
        return "follows effort commands" if self._fresh else "has no effort command: zero effort"

    @property
    def command_age(self) -> float:
        """Time since the newest effort command [s]; infinite if there is none, or it gave way to zero."""
        age = self.time - self._commanded
        return age if age <= self._timeout else math.inf

    @property
    def _fresh(self) -> bool:
        return math.isfinite(self.command_age)

    def command_effort(self, effort: Array) -> None:
        """Take up an effort command [N m or N], shape (n,).

        Raises:
            InputError: another number of joints, not finite, or larger than any motor's.
        """
        names = self.plant.dynamics.model.joint_names
        if effort.shape != (len(names),):
            raise InputError(f"the effort command has {effort.size} values, expected {len(names)}: {', '.join(names)}")
        bad = np.flatnonzero(~np.isfinite(effort))
        if len(bad):
            raise InputError(f"the effort command of joint {names[bad[0]]} is {effort[bad[0]]}, not a finite number")
        bad = np.flatnonzero(np.abs(effort) > LARGEST)
        if len(bad):
            raise InputError(f"the effort command of joint {names[bad[0]]} is {effort[bad[0]]:g}, above {LARGEST:g}")
        self._command, self._commanded, self._braked = effort, self.time, False

    def tick(self) -> tuple[Array, Array, Array]:
        """The true positions, velocities and efforts of the moment, shape (n,) each; then one period passes.

        The torque of a period is constant, so that of the moment is the mean of the periods before and after it.
        """
        q, dq = self.plant.q.copy(), self.plant.dq.copy()
        if self._braked:
            self.ticks += 1
            return q, dq, np.zeros_like(q)
        applied = self.plant.advance(self._wanted_effort(q, dq), self.period)
        effort = applied if self._applied is None else 0.5 * (self._applied + applied)
        self._applied = applied
        self.ticks += 1
        return q, dq, effort

    def _wanted_effort(self, q: Array, dq: Array) -> Array:
        if self._servo is not None:
            return self._servo.effort(self.tracker.setpoint(self.time), q, dq, self.plant.effort_limit)
        return self._command if self._fresh else np.zeros_like(q)


def follow(robot: SimulatedRobot, motion: Trajectory) -> None:
    """Tell a robot to follow a motion from now on.

    Args:
        robot: in position mode, where the motion begins.
        motion: what it is told to do.

    Raises:
        InputError: it stands elsewhere.
    """
    t = np.linspace(0.0, motion.duration, math.ceil(motion.duration * WAYPOINTS) + 1)
    q, dq, ddq, _ = motion.evaluate(t)
    robot.tracker.follow(Waypoints(t, q.T, dq.T, ddq.T), robot.time, robot.time)


def followed(robot: SimulatedRobot, motion: Trajectory) -> Chunk:
    """True states and efforts of a robot that follows a motion from its beginning to its end, a sample every tick.

    Args:
        robot: in position mode, where the motion begins; time has not begun.
        motion: what it is told to do.

    Raises:
        InputError: see `follow`, or `Plant`.
    """
    follow(robot, motion)
    states = np.array([robot.tick() for _ in range(round(motion.duration / robot.period))])
    return Chunk(robot.period * np.arange(len(states), dtype=np.float64), *states.transpose(1, 0, 2))


class RealTimePacer:
    """How many ticks are due by a clock, in whole nanoseconds, so that stamps neither drift nor jitter.

    Attributes:
        start: time of tick 0 [ns]. It moves on by what was given up.
        lost: time that was given up because the ticks came too late [ns].
    """

    PATIENCE = 500_000_000
    """What is made up for at most [ns]: a longer pause is left out. Reading a trajectory of 6000 points takes 0.2 s."""

    IMPATIENCE = 20_000_000
    """The same for ticks that *are* the time of others: a leap would leave them no moment to act in between."""

    def __init__(self, period: int, factor: float = 1.0, patience: int = PATIENCE) -> None:
        """Make it.

        Args:
            period: between ticks [ns].
            factor: how much faster than the clock the ticks run.
            patience: how long a pause by the clock is made up for at most [ns].
        """
        self._period, self._factor, self._patience = period, factor, patience
        self._origin, self.start, self.lost = 0, 0, 0
        self._done = 0
        self._begun = False

    def due(self, now: int) -> int:
        """Number of ticks that must be done now, by a clock that shows `now` [ns]; they count as done.

        It is rounded to the nearest: a timer that fires a little early or late still means its own tick.
        """
        if not self._begun:
            self.start = self._origin = now
            self._begun = True
        passed = round((now - self._origin) * self._factor) - self.lost
        number = round(passed / self._period) + 1 - self._done
        most = max(1, round(self._patience * self._factor / self._period))
        if number > most:
            skipped = (number - most) * self._period
            self.lost += skipped
            self.start += skipped
            number = most
        self._done += max(number, 0)
        return max(number, 0)
