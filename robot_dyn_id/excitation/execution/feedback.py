# SPDX-License-Identifier: Apache-2.0
"""What a robot tells of itself while it moves: the latest joint states, by name, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.execution.guard import Guard, GuardThresholds
from robot_dyn_id.excitation.limits import MotionLimits

REST_SPEED = 0.05
"""A robot that measures less than this stands [rad/s or m/s]."""

FARTHEST = 1e6
"""No joint is farther from its zero than this, whatever a message says [rad or m]."""


@dataclass(frozen=True)
class TimePoint:
    """One instant by two clocks.

    Attributes:
        steady: [s], of a clock that nothing can halt: it tells silence.
        motion: [s], of the clock that the motion follows; simulated time can halt or run fast.
    """

    steady: float
    motion: float


class Feedback:
    """The latest joint states of n joints.

    Attributes:
        position: shape (n,) [rad or m]; None before the first good joint states.
        velocity: shape (n,) [rad/s or m/s]; NaN where the robot does not tell it.
        at: when `position` was received.
        broken: what is wrong with the latest joint states; empty if nothing.
    """

    def __init__(self, limits: MotionLimits, thresholds: GuardThresholds) -> None:
        """Wait for joint states.

        Args:
            limits: names and limits of the joints.
            thresholds: of silence, velocity and effort.
        """
        self._limits, self._timeout = limits, thresholds.timeout
        names, patience = limits.joint_names, thresholds.patience
        speeds, efforts = (
            [f"{limits.unit(j)}/s" for j in range(len(names))],
            ["N" if p else "N m" for p in limits.prismatic],
        )
        self._velocity_guard = Guard("velocity", names, speeds, thresholds.velocity, patience)
        self._effort_guard = Guard("effort", names, efforts, thresholds.effort, patience)
        self._wraps = ~(limits.prismatic | np.isfinite(limits.hard_lower) | np.isfinite(limits.hard_upper))
        self._names: Sequence[str] = ()
        self._places: list[int] = []
        self.broken = ""
        self._stamp = 0.0
        self._frozen = False
        self.position: Array | None = None
        self.velocity: Array = np.full(len(names), np.nan)
        self.at = TimePoint(0.0, 0.0)

    def receive(
        self,
        now: TimePoint,
        stamp: float,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float] = (),
        efforts: Sequence[float] = (),
    ) -> None:
        """Take joint states of any joints in any order; those of none of ours are somebody else's, such as a gripper's.

        A stamp that is not 0 and equal to the one before is old news: it does not end a silence.
        """
        if names != self._names:
            known = {name: place for place, name in enumerate(names)}
            missing = [name for name in self._limits.joint_names if name not in known]
            if len(missing) == len(self._limits.joint_names):
                return
            if missing:
                self.broken = f"joint states lack {', '.join(missing)}"
                return
            self._names, self._places = list(names), [known[name] for name in self._limits.joint_names]
        self._frozen = stamp != 0.0 and stamp == self._stamp
        if self._frozen:
            return
        self._stamp = stamp
        if len(positions) != len(names):
            self.broken = f"joint states have {len(names)} names but {len(positions)} positions"
            return
        position = self._ours(positions)
        self.broken = ""
        for j in np.flatnonzero(~(np.abs(position) <= FARTHEST)):
            self.broken = f"joint {self._limits.joint_names[j]}: its measured position is {position[j]:g}"
            return
        self.position, self.at = position, now
        self.velocity = self._ours(velocities)
        self._velocity_guard.look(self.velocity, now.steady)
        self._effort_guard.look(self._ours(efforts), now.steady)

    def _ours(self, values: Sequence[float]) -> Array:
        """The values of our joints; NaN where there are none, as controllers do where a joint has no such sensor."""
        if len(values) != len(self._names):
            return np.full(len(self._places), math.nan)
        return np.array([values[place] for place in self._places])

    def silence(self, steady: float) -> str:
        """Why the joint states cannot be relied on now; empty if they can."""
        if self.broken:
            return self.broken
        if self.position is None:
            return "no joint states yet: is the robot's joint state broadcaster running?"
        silent = steady - self.at.steady
        if silent > self._timeout:
            why = "the stamps of the joint states stand still" if self._frozen else "no joint states"
            return f"{why} for {silent:.2f} s, more than {self._timeout:g} s"
        return ""

    def exceeded(self) -> str:
        """The joint that has been measured too fast, or with too much effort, for long enough; empty if none."""
        return self._velocity_guard.exceeded or self._effort_guard.exceeded

    def blind(self) -> str:
        """What of the joints is not watched, and why; empty if all is."""
        return "; ".join(filter(None, (self._velocity_guard.blind(), self._effort_guard.blind())))

    def without_effort(self) -> list[str]:
        """Joints whose effort the latest joint states do not hold; none before the first joint states."""
        return [] if self.position is None else self._effort_guard.unmeasured()

    def outside(self) -> str:
        """The joint that is measured outside the robot's own limits; empty if none."""
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
        """Measured minus commanded position, shape (n,); whole turns of continuous joints do not count.

        Args:
            commanded: [rad or m], shape (n,).
        """
        if self.position is None:
            return np.zeros_like(commanded)
        difference = self.position - commanded
        return np.where(self._wraps, np.remainder(difference + np.pi, 2.0 * np.pi) - np.pi, difference)

    def moving(self) -> str:
        """The joint that is measured to move; empty if all stand, as far as the robot tells."""
        for j in np.flatnonzero(np.abs(self.velocity) > REST_SPEED):
            return f"joint {self._limits.joint_names[j]} moves at {self.velocity[j]:.2g} {self._limits.unit(j)}/s"
        return ""
