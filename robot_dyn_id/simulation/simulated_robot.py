# SPDX-License-Identifier: Apache-2.0
"""Simulated robot with sensors and a position controller, advanced tick by tick like a robot driver."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.dynamics.compensation import DriverCompensation
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.model.kinematics import Kinematics, Placement
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.closed_loop import quantize
from robot_dyn_id.simulation.controllers import EffortGains, EffortServo, PositionServo
from robot_dyn_id.simulation.plant import Plant
from robot_dyn_id.simulation.sensors import Sensors, draw_colored_noise
from robot_dyn_id.simulation.trajectory_controller import Tolerances, TrajectoryController, TrajectoryEnd
from robot_dyn_id.simulation.trajectory_tracking import TrajectoryTracker

POSITION, EFFORT, EITHER = "position", "effort", "either"
MODES = (POSITION, EFFORT, EITHER)
"""Command modes of a simulated robot: trajectories, efforts, or trajectories until efforts are commanded."""

BANDWIDTH = 60.0
"""Default bandwidth of the position controller [rad/s]."""

FASTEST = 10_000.0
"""Highest rate of ticks [Hz]."""

WAYPOINTS = 100.0
"""Rate of the points of a followed trajectory, which is interpolated by quintics [Hz]."""

LARGEST = 1e9
"""Largest magnitude of effort commands [N m or N]."""

BLOCK = 1024
"""Number of noise samples drawn at a time."""


class SensorStream:
    """Sensor errors sample by sample, reproducible by their seed."""

    def __init__(self, sensors: Sensors, rate: float, delay: float, seed: int | tuple[int, ...]) -> None:
        """Initialize the sensors of n joints.

        Args:
            sensors: sensor errors, without recorded residuals.
            rate: sampling rate [Hz].
            delay: delay of all sensors [s].
            seed: seed of the noise.

        Raises:
            UsageError: residuals are given, or velocities are not measured.
        """
        if sensors.residuals is not None or sensors.velocity is None:
            raise UsageError("a stream of samples has velocities, and no noise from recorded residuals")
        self._sensors = sensors
        self._rate = rate
        self._rng = np.random.default_rng(seed)
        self._sigmas = [np.full_like(sensors.effort, x) for x in (sensors.position, sensors.velocity)]
        self._past: deque[Array] = deque(maxlen=round(delay * rate) + 1)
        self._effort_noise: Array | None = None
        self._draw()  # now, as the first draw imports what takes longer than many samples

    def measure(self, q: Array, dq: Array, tau: Array) -> Array:
        """Measured position, velocity and effort at the next sample, shape (3, n)."""
        if self._next == BLOCK:
            self._draw()
        self._past.append(np.array((q, dq, tau)))
        shown: Array = self._past[0] + self._noise[self._next]
        self._next += 1
        if self._sensors.resolution > 0.0:
            shown[0] = quantize(shown[0], self._sensors.resolution)
        return shown

    def errors(self, count: int) -> Array:
        """Noise of the next samples before quantization, shape (count, 3, n)."""
        blocks = [self._rest()]
        while sum(map(len, blocks)) < count:
            self._draw()
            blocks.append(self._rest())
        self._next = BLOCK - (sum(map(len, blocks)) - count)
        return np.concatenate(blocks)[:count]

    def _rest(self) -> Array:
        """Noise that was drawn but not used."""
        return self._noise[self._next :]

    def _draw(self) -> None:
        """Draw the noise of the next samples, shape (BLOCK, 3, n)."""
        position, velocity = (sigma * self._rng.normal(size=(BLOCK, len(sigma))) for sigma in self._sigmas)
        self._effort_noise = draw_colored_noise(
            self._sensors.effort,
            BLOCK,
            self._rate,
            self._sensors.correlation_time,
            self._rng,
            None if self._effort_noise is None else self._effort_noise[:, -1],
        )
        self._noise = np.stack([position, velocity, self._effort_noise.T], axis=1)
        self._next = 0


class PositionDrives(Protocol):
    """Drives that follow commanded positions, and move the robot."""

    def use(self, model: RobotModel) -> None:
        """Drive a robot with the inertial parameters of its links from now on."""

    def advance(self, q: Array, dq: Array, reference: Array, duration: float, external: Array | None = None) -> Array:
        """Advance positions and velocities, in place, under commanded positions and torques of the environment.

        Returns:
            Mean efforts of the drives [N m or N], shape (n,).
        """


@dataclass(frozen=True)
class Actuation:
    """Actuation of a simulated robot.

    Attributes:
        mode: command mode, one of `MODES`.
        limit_effort: whether efforts are limited to the effort limits of the URDF.
        effort_timeout: age above which an effort command is replaced by zero [s].
        bandwidth: bandwidth of the position controller [rad/s].
        brakes: whether the joints are locked until the first effort command.
        robot_compensates: torques that the driver adds to effort commands, also to the zero effort without a command,
            of `COMPENSATED_PARTS`.
        gains: gains of a trajectory controller that commands efforts; None: it commands positions, which the robot
            follows with its exact model.
        tolerances: default tolerances of the trajectory controller; None: none but for the final velocity.
        drives: drives that follow the commanded positions, instead of the exact model; only in the mode `POSITION`.
            Bandwidth and effort limits are theirs.
    """

    mode: str = POSITION
    limit_effort: bool = True
    effort_timeout: float = 0.1
    bandwidth: float = BANDWIDTH
    brakes: bool = False
    robot_compensates: tuple[str, ...] = ()
    gains: EffortGains | None = None
    tolerances: Tolerances | None = None
    drives: PositionDrives | None = None


class SimulatedRobot:
    """A plant under commands, advanced in ticks of one period; its clock starts at 0 [s].

    Attributes:
        plant: true state.
        period: time between ticks [s].
        time: time of the state [s].
        controller: trajectory controller of the modes `POSITION` and `EITHER`.
        ended: end of a goal in the latest tick; None if none ended.
        effort: effort that the controller commanded in the latest tick [N m or N], shape (n,); None if it commands
            positions.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        q: Array,
        period: float,
        actuation: Actuation | None = None,
    ) -> None:
        """Place the robot at rest.

        Args:
            dynamics: dynamics of the robot.
            q: initial configuration [rad or m], shape (n,).
            period: time between ticks [s].
            actuation: command mode and limits; trajectories by default.

        Raises:
            InputError: see `Plant`.
        """
        actuation = actuation or Actuation()
        limits = dynamics.regressor.model.limits
        position_mode, self._drives = actuation.mode != EFFORT, actuation.drives
        self.plant = Plant(dynamics, q, limits.effort if actuation.limit_effort else None)
        self.period = period
        self.ticks = 0
        names, gains = dynamics.regressor.model.joint_names, actuation.gains
        self.controller = TrajectoryController(names, self.plant.q, period, actuation.tolerances, gains is not None)
        self.ended: TrajectoryEnd | None = None
        self.effort: Array | None = None
        self._gains, self._bandwidth = gains, actuation.bandwidth
        self._servo: PositionServo | EffortServo | None = self._make_servo() if position_mode else None
        self._takes_both = actuation.mode == EITHER
        self._by_effort = not position_mode
        self._timeout = actuation.effort_timeout
        self._command = np.zeros(len(q))
        self._commanded = -np.inf
        self._applied: Array | None = None
        self._braked = actuation.brakes and actuation.mode == EFFORT
        self._kinematics = Kinematics(dynamics.regressor.model)
        self._contact: tuple[Placement, Array, float] | None = None
        parts, takes_efforts = actuation.robot_compensates, actuation.mode != POSITION or gains is not None
        self._compensation = DriverCompensation(dynamics, parts) if parts and takes_efforts else None
        self._move_links()

    def _move_links(self) -> None:
        """Drive the links of the plant, if there are drives."""
        if self._drives is not None:
            model, parameters = self.plant.dynamics.model, self.plant.inertial_parameters
            self._drives.use(replace(model, inertial_parameters=parameters))

    def _make_servo(self) -> PositionServo | EffortServo:
        if self._gains is not None:
            return EffortServo(self._gains, self.period)
        return PositionServo(self.plant.dynamics, self._bandwidth, self.period)

    def take_positions(self) -> None:
        """Hold the present position, and follow trajectories again, after effort commands in the mode `EITHER`.

        Raises:
            InputError: effort commands are being followed.
        """
        if not (self._takes_both and self._by_effort):
            return
        if self._fresh:
            raise InputError("effort commands are being followed: end them first")
        self.controller.cancel(self.plant.q)
        self._servo, self._by_effort = self._make_servo(), False

    def replace_dynamics(self, dynamics: Dynamics) -> None:
        """Go on with other dynamics from the present state, as a payload is taken up or dropped.

        Args:
            dynamics: dynamics of the same joints with the same terms; the position controller uses them too.
        """
        before = self.plant
        self.plant = Plant(dynamics, before.q, before.effort_limit)
        self.plant.dq[:], self.plant.dry[:], self.plant.slip[:] = before.dq, before.dry, before.slip
        if isinstance(self._servo, PositionServo):  # the other one needs no model
            self._servo = self._make_servo()
        self._move_links()

    @property
    def time(self) -> float:
        """Time of the state [s]."""
        return self.ticks * self.period

    @property
    def tracker(self) -> TrajectoryTracker:
        """Setpoints of the joints in position mode."""
        return self.controller.tracker

    @property
    def doing(self) -> str:
        """Description of the present state."""
        if not self._by_effort:
            return "holds its position" if self.tracker.resting(self.time) else "follows a trajectory"
        if self._braked:
            return "stands, its brakes closed until the first effort command"
        return "follows effort commands" if self._fresh else "has no effort command: zero effort"

    @property
    def command_age(self) -> float:
        """Time since the latest effort command [s]; infinite without command or after its timeout."""
        age = self.time - self._commanded
        return age if age <= self._timeout else math.inf

    @property
    def _fresh(self) -> bool:
        return math.isfinite(self.command_age)

    def command_effort(self, effort: Array) -> None:
        """Set an effort command [N m or N], shape (n,).

        Raises:
            InputError: wrong number of joints, values that are not finite or too large, or a trajectory is being
                followed.
        """
        self._check("effort", effort)
        if not self._by_effort and not self.tracker.resting(self.time):
            raise InputError("a trajectory is being followed: end it first")
        self._command = effort
        self._commanded = self.time
        self._braked, self._by_effort = False, True

    def command_position(self, reference: Array) -> None:
        """Command positions [rad or m], shape (n,), that are held until the next command or trajectory.

        Raises:
            InputError: wrong number of joints, values that are not finite or too large, or a trajectory is being
                followed.
        """
        self._check("position", reference)
        if self.controller.active or not self.tracker.resting(self.time):
            raise InputError("a trajectory is being followed: end it first")
        self.controller.cancel(reference)

    def _check(self, what: str, command: Array) -> None:
        """Check the values of a command.

        Raises:
            InputError: see `command_effort`.
        """
        names = self.plant.dynamics.model.joint_names
        if command.shape != (len(names),):
            raise InputError(f"the {what} command has {command.size} values, expected {len(names)}: {', '.join(names)}")
        bad = np.flatnonzero(~np.isfinite(command))
        if len(bad):
            raise InputError(f"the {what} command of joint {names[bad[0]]} is {command[bad[0]]}, not a finite number")
        bad = np.flatnonzero(np.abs(command) > LARGEST)
        if len(bad):
            raise InputError(f"the {what} command of joint {names[bad[0]]} is {command[bad[0]]:g}, above {LARGEST:g}")

    def apply_wrench(self, at: Placement, wrench: Array, duration: float) -> None:
        """Apply a wrench of the environment, which replaces the present one.

        Args:
            at: frame at whose origin, and along whose axes, the wrench acts.
            wrench: force [N] and moment [N m], shape (6,).
            duration: time after which it ends [s].

        Raises:
            InputError: values that are not finite or too large.
        """
        if not (np.isfinite(wrench).all() and np.abs(wrench).max() <= LARGEST):
            raise InputError(f"the wrench {wrench.tolist()} is not finite, or above {LARGEST:g}")
        self._contact = at, wrench, self.time + duration

    @property
    def weight(self) -> Array:
        """Torque that holds the robot at rest in its present position, without friction [N m or N], shape (n,)."""
        still, dynamics = np.zeros_like(self.plant.q), self.plant.dynamics
        return dynamics.effort(self.plant.q, still, still, still, dynamics.slip())

    @property
    def external_torque(self) -> Array | None:
        """Torque of the environment on the joints [N m or N], shape (n,); None without a wrench."""
        contact = self._present_contact
        if contact is None:
            return None
        at, wrench = contact
        return np.asarray(wrench @ self._kinematics.poses(self.plant.q[:, None]).jacobian(at))

    @property
    def external_wrench(self) -> Array:
        """Wrench of the environment (force; moment) about the origin of the base [N, N m], shape (6,)."""
        contact = self._present_contact
        if contact is None:
            return np.zeros(6)
        at, wrench = contact
        poses = self._kinematics.poses(self.plant.q[:, None])
        rotation = poses.rotation[0, at.body]
        force, moment = np.reshape(wrench, (2, 3)) @ (rotation @ at.rotation).T
        return np.concatenate([force, moment + np.cross(poses.position[0, at.body] + rotation @ at.position, force)])

    @property
    def _present_contact(self) -> tuple[Placement, Array] | None:
        """Frame and wrench of the environment that acts at present."""
        if self._contact is None or self.time >= self._contact[2]:
            return None
        return self._contact[:2]

    def tick(self) -> tuple[Array, Array, Array]:
        """Return the present state and advance by one period.

        The torque is constant within a period; the present torque is the mean of the periods before and after.

        Returns:
            True positions, velocities and efforts before the period, shape (n,) each.
        """
        q, dq = self.plant.q.copy(), self.plant.dq.copy()
        if self._braked:
            self.ticks += 1
            return q, dq, np.zeros_like(q)
        applied = self._advance(q, dq)
        effort = applied if self._applied is None else 0.5 * (self._applied + applied)
        self._applied = applied
        self.ticks += 1
        return q, dq, effort

    def _advance(self, q: Array, dq: Array) -> Array:
        """Advance the plant by one period; returns its efforts."""
        if self._drives is None:
            return self.plant.advance(self._wanted_effort(q, dq), self.period, self.external_torque)
        self.ended = self.controller.update(self.time, q, dq)
        reference, state = self.tracker.setpoint(self.time).q, (self.plant.q, self.plant.dq)
        return self._drives.advance(*state, reference, self.period, self.external_torque)

    def _wanted_effort(self, q: Array, dq: Array) -> Array:
        if self._servo is not None and not self._by_effort:
            self.ended = self.controller.update(self.time, q, dq)
            command = self._servo.effort(self.tracker, self.time, q, dq, self.plant.effort_limit)
            if isinstance(self._servo, EffortServo):
                self.effort = command
        else:
            self.ended = None
            command = self._command if self._fresh else np.zeros_like(q)
        return command if self._compensation is None else command + self._compensation.torque(q, dq)


def follow(robot: SimulatedRobot, motion: Trajectory) -> None:
    """Command a robot to follow a motion from now on.

    Args:
        robot: robot in position mode at the start of the motion.
        motion: commanded motion.

    Raises:
        InputError: the robot is not at the start of the motion.
    """
    t = np.linspace(0.0, motion.duration, math.ceil(motion.duration * WAYPOINTS) + 1)
    q, dq, ddq, _ = motion.evaluate(t)
    robot.tracker.follow(TrajectoryPoints(t, q.T, dq.T, ddq.T), robot.time, robot.time)


def simulate_motion(robot: SimulatedRobot, motion: Trajectory) -> Chunk:
    """Simulate a robot that follows a motion.

    Args:
        robot: robot in position mode at the start of the motion, at time 0.
        motion: commanded motion.

    Returns:
        True states and efforts, one sample per tick.

    Raises:
        InputError: see `follow`, or `Plant`.
    """
    follow(robot, motion)
    states = np.array([robot.tick() for _ in range(round(motion.duration / robot.period))])
    return Chunk(robot.period * np.arange(len(states), dtype=np.float64), *states.transpose(1, 0, 2))


class RealTimePacer:
    """Pacing of ticks by a clock in integer nanoseconds, so that stamps have no drift and no jitter.

    Attributes:
        start: time of tick 0 [ns]; it increases by skipped time.
        lost: time skipped because ticks were too late [ns].
    """

    BATCH = 500_000_000
    """Longest delay that is caught up at once [ns]; reading a trajectory of 6000 points takes 0.2 s."""

    PATIENCE = 2_000_000_000
    """Longest delay that is caught up at all by a robot that follows trajectories [ns]: it does the same at any time.

    A robot under effort commands has none to follow meanwhile: it catches up no more than `BATCH`.
    """

    IMPATIENCE = 20_000_000
    """Longest delay that is caught up if other nodes use the simulated time [ns]."""

    def __init__(self, period: int, factor: float = 1.0, patience: int = BATCH) -> None:
        """Initialize without ticks.

        Args:
            period: time between ticks [ns].
            factor: speed relative to the clock.
            patience: longest delay that is caught up [ns].
        """
        self._period = period
        self._factor = factor
        self._most = max(1, round(patience * factor / period))
        self._batch = max(1, round(self.BATCH * factor / period))
        self._origin = 0
        self.start = 0
        self.lost = 0
        self._done = 0
        self._begun = False

    def due(self, now: int) -> int:
        """Number of ticks that are due at a time `now` of the clock [ns]; they count as done.

        The number is rounded to the nearest integer, as timers may fire slightly early or late.
        """
        if not self._begun:
            self.start = self._origin = now
            self._begun = True
        passed = round((now - self._origin) * self._factor) - self.lost
        number = round(passed / self._period) + 1 - self._done
        skipped = max(0, number - self._most) * self._period
        self.lost += skipped
        self.start += skipped
        number = min(number, self._most, self._batch)
        self._done += max(number, 0)
        return max(number, 0)
