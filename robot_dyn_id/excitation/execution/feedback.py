# SPDX-License-Identifier: Apache-2.0
"""Feedback during a motion: latest joint states and their faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.excitation.execution.guard import MIN_VIOLATIONS, Guard, GuardThresholds
from robot_dyn_id.excitation.limits import REST_SPEED, MotionLimits
from robot_dyn_id.kernels.joint_states import compare_positions, measure_distances

MAX_POSITION = 1e6
"""Magnitude above which measured positions are invalid [rad or m]."""

REST_TIME_S = 0.5
"""Time for which joint states must show rest [s]: a joint that turns around is at rest for an instant only."""

REST_DISTANCE = 0.1 * REST_SPEED
"""Distance by which the measured position of a joint at rest may change within that time [rad or m].

A fifth of the way at `REST_SPEED`, which a rehearsal at 10 % of the speed may not exceed; above the noise of encoders.
"""


@dataclass(frozen=True)
class TimePoint:
    """A point in time by two clocks.

    Attributes:
        steady: time of the steady clock, used for timeouts [s].
        motion: time of the clock that the motion follows [s]; simulated time can stop or run fast.
    """

    steady: float
    motion: float


class Feedback:
    """The latest joint states of n joints.

    Attributes:
        position: positions [rad or m], shape (n,); None before the first valid joint states.
        velocity: velocities [rad/s or m/s], shape (n,); NaN if not measured.
        at: time at which `position` was received.
        measured: time of the motion clock at which `position` was measured [s].
        broken: fault of the latest joint states; empty if they are valid.
        age: time from the measurement of the next joint states to their receipt [s]; 0 where it is unknown.
        late: age of the next joint states by stamps that are too old [s]: they show where the robot was; else 0.

    `age` and `late` are for those who compare the clocks to set before `receive`.
    """

    def __init__(self, limits: MotionLimits, thresholds: GuardThresholds) -> None:
        """Initialize without joint states.

        Args:
            limits: names and limits of the joints.
            thresholds: thresholds of timeout, velocity and effort.
        """
        self._limits = limits
        self._timeout = thresholds.timeout
        names = limits.joint_names
        patience = thresholds.patience
        speeds = [f"{limits.unit(j)}/s" for j in range(len(names))]
        efforts = ["N" if prismatic else "N m" for prismatic in limits.prismatic]
        self._velocity_guard = Guard("velocity", names, speeds, thresholds.velocity, patience)
        self._effort_guard = Guard("effort", names, efforts, thresholds.effort, patience)
        self._speed = np.array(limits.velocity, dtype=np.float64)
        self._wraps = ~(limits.prismatic | np.isfinite(limits.hard_lower) | np.isfinite(limits.hard_upper))
        self._names: Sequence[str] = ()
        self._places: Integers | slice = slice(None)
        self.broken, self.late, self.age = "", 0.0, 0.0
        self._stamp = 0.0
        self._frozen = False
        self._heard = -math.inf  # time of the latest joint states, outdated or not
        self.position: Array | None = None
        self.velocity: Array = np.full(len(names), np.nan)
        self.at, self.measured = TimePoint(0.0, 0.0), 0.0
        self._anchor: tuple[float, Array] | None = None  # time and position since which no joint has moved
        self._before: tuple[float, Array] | None = None  # the anchor before
        self._steps = 0  # consecutive positions that a robot can have reached from those before
        self._compare(np.zeros(len(names)), np.zeros(len(names)), 0.0)  # compiled now, not at the first joint states

    def receive(
        self,
        now: TimePoint,
        stamp: float,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float] = (),
        efforts: Sequence[float] = (),
    ) -> None:
        """Process joint states of any joints in any order; those without any of the n joints are ignored.

        Joint states with the same nonzero stamp as before are outdated and do not reset the timeout.

        Args:
            now: time of receipt.
            stamp: stamp of the joint states [s].
            names: joint names, shape (k,).
            positions: positions [rad or m], shape (k,).
            velocities: velocities [rad/s or m/s], shape (k,) or empty.
            efforts: efforts [N m or N], shape (k,) or empty.
        """
        if names != self._names:
            known = {name: place for place, name in enumerate(names)}
            missing = [name for name in self._limits.joint_names if name not in known]
            if len(missing) == len(self._limits.joint_names):
                return
            if missing:
                self.broken = f"joint states lack {', '.join(missing)}"
                return
            twice = next((name for name in self._limits.joint_names if names.count(name) > 1), None)
            if twice is not None:
                self.broken = f"joint states name {twice} twice"
                return
            self._names, places = list(names), [known[name] for name in self._limits.joint_names]
            self._places = slice(None) if places == list(range(len(names))) else np.array(places)
        self._heard, self._frozen = now.steady, stamp != 0.0 and stamp == self._stamp
        if self._frozen:
            return
        self._stamp = stamp
        if len(positions) != len(names):
            self.broken = f"joint states have {len(names)} names but {len(positions)} positions"
            return
        position = self._ours(positions)
        self.broken = ""
        before, passed = self.position, now.steady - self.at.steady
        plausible, left, follows = self._compare(position, position if before is None else before, passed)
        if not plausible:
            j = int(np.argmin(np.abs(position) <= MAX_POSITION))
            self.broken = f"joint {self._limits.joint_names[j]}: its measured position is {position[j]:g}"
            return
        self.position, self.at, self.measured = position, now, now.motion - self.age
        self.velocity = self._ours(velocities)
        self._note_rest(left, passed > self._timeout)
        self._steps = self._steps + 1 if follows and before is not None else 0
        self._velocity_guard.update(self.velocity, now.steady)
        self._effort_guard.update(self._ours(efforts), now.steady)

    def _compare(self, position: Array, before: Array, passed: float) -> tuple[bool, bool, bool]:
        """Compare positions with those `passed` seconds before, and with the anchor.

        Returns:
            Whether they are plausible, whether a joint has left the anchor, and whether they follow from those before.
        """
        anchor = before if self._anchor is None else self._anchor[1]
        bounds = MAX_POSITION, REST_DISTANCE, passed
        plausible, left, follows = compare_positions(position, before, anchor, self._wraps, self._speed, *bounds)
        return plausible, left, follows

    def _note_rest(self, left: bool, gap: bool) -> None:
        """Move the anchor where a joint has left it, or where joint states were missing."""
        assert self.position is not None
        if self._anchor is None or gap:
            self._anchor, self._before = (self.at.steady, self.position), None
        elif left:
            self._anchor, self._before = (self.at.steady, self.position), self._anchor

    def set_speed(self, factor: float) -> None:
        """Lower the threshold of the velocity for slow motions; what counts as rest is always allowed in addition.

        Args:
            factor: fraction of the full speed, at most 1.
        """
        self._velocity_guard.scale(factor, REST_SPEED)

    @property
    def closest_guard(self) -> Guard:
        """The guard with the smallest margin at the latest joint states."""
        return min(self._velocity_guard, self._effort_guard, key=lambda guard: guard.margin)

    def _ours(self, values: Sequence[float]) -> Array:
        """Values of the n joints; NaN without values, as controllers publish for joints without such a sensor."""
        if len(values) != len(self._names):
            return np.full(len(self._wraps), math.nan)
        return np.array(values, dtype=np.float64)[self._places]

    def silence(self, steady: float) -> str:
        """Reason why the joint states are invalid or outdated at a steady time [s]; empty if they are valid."""
        if self.broken:
            return self.broken
        if self.position is None:
            return "no joint states yet: is the robot's joint state broadcaster running?"
        silent = steady - self.at.steady
        if silent > self._timeout:
            frozen = self._frozen and steady - self._heard <= self._timeout
            why = "the stamps of the joint states do not advance" if frozen else "no joint states"
            return f"{why} for {silent:.2f} s, more than {self._timeout:g} s"
        return ""

    def exceeded(self) -> str:
        """Description of a joint whose velocity or effort exceeds its threshold; empty if there is none."""
        return self._velocity_guard.exceeded or self._effort_guard.exceeded

    def unmonitored(self) -> str:
        """Quantities that are not monitored, with the reason; empty if all are."""
        return "; ".join(filter(None, (self._velocity_guard.unmonitored(), self._effort_guard.unmonitored())))

    def without_effort(self) -> list[str]:
        """Joints without effort in the latest joint states; empty before the first joint states."""
        return [] if self.position is None else self._effort_guard.unmeasured()

    def outside(self) -> str:
        """Description of a joint outside the robot's position limits; empty if there is none."""
        if self.position is None:
            return ""
        limits = self._limits
        for j in np.flatnonzero((self.position < limits.hard_lower) | (self.position > limits.hard_upper)):
            return (
                f"joint {limits.joint_names[j]} is at {self.position[j]:.4g} {limits.unit(j)}, outside its limits "
                f"{limits.hard_lower[j]:.4g} to {limits.hard_upper[j]:.4g} {limits.unit(j)}"
            )
        return ""

    def error(self, commanded: Array) -> Array:
        """Tracking error: measured minus commanded position, modulo full turns for continuous joints.

        Args:
            commanded: commanded positions [rad or m], shape (n,).

        Returns:
            Errors [rad or m], shape (n,); 0 before the first joint states.
        """
        if self.position is None:
            return np.zeros_like(commanded)
        return np.asarray(measure_distances(self.position, commanded, self._wraps))

    def moving(self) -> str:
        """Description of a joint that moves; empty if all are at rest or their velocity is not measured."""
        for j in np.flatnonzero(np.abs(self.velocity) > REST_SPEED):
            return self._moves(int(j), self.velocity[j])
        return ""

    def moved_since(self, since: float) -> str:
        """Description of a joint that moves, or has moved by its positions since a time; empty if none does.

        Args:
            since: time of the steady clock [s].
        """
        moving = self.moving()
        if moving or self._anchor is None or self._anchor[0] <= since:
            return moving
        j, velocity = self._fastest()
        return self._moves(j, velocity) if abs(velocity) > REST_SPEED else ""

    def _moves(self, j: int, velocity: float) -> str:
        return f"joint {self._limits.joint_names[j]} moves at {velocity:.2g} {self._limits.unit(j)}/s"

    @property
    def consistent(self) -> bool:
        """Whether the latest positions follow from one another within the limits of velocity, unlike noise."""
        return self._steps >= MIN_VIOLATIONS

    @property
    def moved(self) -> bool:
        """Whether a joint moves, or has moved since joint states were missing, by more than noise."""
        return bool(self.moving()) or self._before is not None

    def speed(self) -> Array:
        """Velocities within the limits [rad/s or m/s], shape (n,): measured, or of joints without from positions."""
        velocity = self.velocity
        if np.isnan(velocity).any():
            velocity = np.where(np.isnan(velocity), self._mean_velocity(), velocity)
        return np.clip(velocity, -self._limits.velocity, self._limits.velocity)

    def _mean_velocity(self) -> Array:
        """Velocities from the latest change of positions that is larger than noise [rad/s or m/s], shape (n,)."""
        if self._before is None or self.at.steady <= self._before[0]:
            return np.zeros_like(self.velocity)
        return self.error(self._before[1]) / (self.at.steady - self._before[0])

    def _fastest(self) -> tuple[int, float]:
        """The joint that is fastest by its positions, and its velocity [rad/s or m/s]."""
        velocity = self._mean_velocity()
        j = int(np.argmax(np.abs(velocity)))
        return j, float(velocity[j])

    def unrest(self, steady: float, since: float = -math.inf) -> str:
        """Reason why joint states do not show the robot at rest; empty if they do.

        At rest, no joint moves for `REST_TIME_S`, by its positions, and none has a measured velocity.

        Args:
            steady: present time of the steady clock [s].
            since: time of the steady clock after which joint states count [s].
        """
        problem = self.silence(steady) or self.moving()
        if problem or self._anchor is None:
            return problem
        rested = self.at.steady - max(self._anchor[0], since)
        if rested >= REST_TIME_S:
            return ""
        j, velocity = self._fastest()
        if self._anchor[0] < since or not velocity:
            return f"joint states show rest for only {max(rested, 0.0):.2f} s"
        return self._moves(j, velocity)
