# SPDX-License-Identifier: Apache-2.0
"""Goals, tolerances and ends of trajectories, as joint_trajectory_controller of ros2_controllers (Jazzy) has them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import Setpoint, TrajectoryPoints
from robot_dyn_id.errors import InputError
from robot_dyn_id.simulation.trajectory_tracking import TrajectoryTracker

SUCCESSFUL, INVALID_GOAL, PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED = 0, -1, -4, -5
"""Error codes of control_msgs/action/FollowJointTrajectory that the controller returns."""

QUANTITIES = ("position", "velocity", "acceleration")
"""Quantities that have tolerances, in the order of their rows."""

STOPPED_VELOCITY_TOLERANCE = 0.01
"""Default tolerance of the velocity at the end of a trajectory [rad/s or m/s]."""

ERASED = -1.0
"""Tolerance in a goal that removes the default."""

RESOLUTION = float(np.finfo(np.float32).eps)
"""Distance to a special value up to which a number is that value; also the largest final velocity of a trajectory."""

TIME_RESOLUTION_S = 1e-9
"""Rounding of times [s]."""


class TrajectoryEnd(NamedTuple):
    """End of a trajectory before or at its goal.

    Attributes:
        code: error code of FollowJointTrajectory.
        text: error string of the controller.
        detail: joint, quantity and tolerance that were exceeded; empty if none was.
    """

    code: int
    text: str
    detail: str = ""


class ToleranceRequest(NamedTuple):
    """Tolerances in a goal: by joint, position, velocity and acceleration; 0: the default, -1: none.

    Attributes:
        path: tolerances during the motion.
        goal: tolerances at its end.
        goal_time: time after the end until which the goal must be reached [s]; 0: the default, -1: no limit.
    """

    path: Mapping[str, Sequence[float]]
    goal: Mapping[str, Sequence[float]]
    goal_time: float


@dataclass(frozen=True)
class Tolerances:
    """Tolerances of n joints; 0 means that a quantity is not checked.

    Attributes:
        path: tolerances of position, velocity and acceleration during the motion, shape (3, n).
        goal: tolerances at its end, shape (3, n).
        goal_time: time after the end until which the goal must be reached [s]; 0: no limit.
    """

    path: Array
    goal: Array
    goal_time: float = 0.0

    @cached_property
    def checks_path(self) -> bool:
        """Whether a quantity is checked during the motion."""
        return bool(self.path.any())

    @classmethod
    def from_positions(cls, path: Array, goal: Array, goal_time: float, stopped_velocity: float) -> Tolerances:
        """Make the defaults of a controller.

        Args:
            path: tolerances of the positions during the motion [rad or m], shape (n,).
            goal: tolerances of the positions at its end [rad or m], shape (n,).
            goal_time: time after the end until which the goal must be reached [s]; 0: no limit.
            stopped_velocity: tolerance of the velocities at the end [rad/s or m/s].
        """
        none = np.zeros_like(path)
        return cls(
            np.array([path, none, none]), np.array([goal, np.full_like(goal, stopped_velocity), none]), goal_time
        )

    @classmethod
    def none(cls, joints: int) -> Tolerances:
        """The defaults of a controller without parameters: only the final velocity has a tolerance.

        Args:
            joints: number of joints.
        """
        return cls.from_positions(np.zeros(joints), np.zeros(joints), 0.0, STOPPED_VELOCITY_TOLERANCE)

    def requested(self, request: ToleranceRequest, joint_names: Sequence[str]) -> Tolerances:
        """The tolerances of a goal, with these as defaults.

        Raises:
            InputError: an unknown joint, or a negative tolerance other than -1. The controller then uses its defaults.
        """
        rows = {"path_tolerance": (self.path.copy(), request.path), "goal_tolerance": (self.goal.copy(), request.goal)}
        for name, (values, entries) in rows.items():
            for joint, given in entries.items():
                if joint not in joint_names:
                    raise InputError(
                        f"joint {' '.join(joint.split())} in {name} is not one of {', '.join(joint_names)}"
                    )
                column = list(joint_names).index(joint)
                for row, value in enumerate(given):
                    what = f"{name} of joint {joint}: {QUANTITIES[row]}"
                    values[row, column] = _resolve(value, values[row, column], what)
        path, goal = (values for values, _ in rows.values())
        return Tolerances(path, goal, _resolve(request.goal_time, self.goal_time, "goal_time_tolerance"))


def _resolve(value: float, default: float, what: str) -> float:
    """Tolerance that a value in a goal stands for.

    Raises:
        InputError: a negative value other than -1.
    """
    if value > 0.0:
        return value
    if abs(value - ERASED) < RESOLUTION:
        return 0.0
    if value < 0.0:
        raise InputError(f"{what} is {value:g}: give a positive tolerance, 0 for the default, or -1 for none")
    return default


class ControllerState(NamedTuple):
    """State of the controller at one time.

    Attributes:
        reference: point of the trajectory.
        error: reference minus measured position, velocity and acceleration, shape (3, n).
        since: time since the start of the trajectory [s]; may be negative.
    """

    reference: Setpoint
    error: Array
    since: float


class TrajectoryController:
    """Execution of one trajectory after the other, with or without a goal of the action.

    Like the controller, and unlike what its clients may expect: a trajectory of the topic replaces the one of an active
    goal, which is then judged by the new one; the tolerances of a goal apply until the next goal; velocity errors are
    checked only by a controller that commands efforts; a trajectory that is aborted or canceled ends where the robot is
    measured, at once and without feed-forward effort; joints that violate no tolerance are aborted with the others.

    Attributes:
        tracker: setpoints.
        active: whether a goal is being executed.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        q: Array,
        period: float,
        tolerances: Tolerances | None = None,
        effort: bool = False,
    ) -> None:
        """Hold a position.

        Args:
            joint_names: joint names, shape (n,).
            q: positions [rad or m], shape (n,).
            period: time between two control cycles [s].
            tolerances: default tolerances; those of a controller without parameters by default.
            effort: whether the controller commands efforts instead of positions.
        """
        self.tracker = TrajectoryTracker(q)
        self.active = False
        self._names = tuple(joint_names)
        self._period = period
        self._defaults = self._tolerances = tolerances or Tolerances.none(len(q))
        self._effort = effort
        self._holds, self._first = True, False
        self._start = 0.0

    def check(self, points: TrajectoryPoints, start: float, now: float) -> None:
        """Check whether a trajectory would be followed.

        Args:
            points: trajectory.
            start: start time [s].
            now: present time [s].

        Raises:
            InputError: it does not end at rest, has efforts that the controller cannot command, or cannot be followed,
                see `TrajectoryTracker.follow`.
        """
        if points.effort is not None and not self._effort:
            raise InputError(
                "it has efforts, which a controller that commands positions does not take: leave them out, or give the "
                "controller gains of efforts"
            )
        end = np.nan_to_num(points.dq[-1])
        moving = np.flatnonzero(np.abs(end) > RESOLUTION)
        if len(moving):
            joint = moving[0]
            raise InputError(
                f"joint {self._names[joint]} has the velocity {end[joint]:.3g} at the last point: it must be zero there"
            )
        copy.copy(self.tracker).follow(points, start, now)

    def follow(self, points: TrajectoryPoints, start: float, now: float) -> None:
        """Follow a trajectory of the topic; see `check`."""
        self.check(points, start, now)
        self.tracker.follow(points, start, now)
        self._holds, self._first, self._start = False, True, start

    def begin(
        self, points: TrajectoryPoints, start: float, now: float, tolerances: Tolerances | None = None
    ) -> TrajectoryEnd | None:
        """Follow the trajectory of a goal; see `check`.

        Args:
            points: trajectory.
            start: start time [s].
            now: present time [s].
            tolerances: tolerances of the goal, see `requested`; the defaults by default.

        Returns:
            End of the goal that it replaces; None if there was none.
        """
        self.follow(points, start, now)
        self._tolerances = tolerances or self._defaults
        replaced, self.active = self.active, True
        return TrajectoryEnd(INVALID_GOAL, "Current goal preempted by new incoming action.") if replaced else None

    def requested(self, request: ToleranceRequest) -> Tolerances:
        """Tolerances of a goal; see `Tolerances.requested`."""
        return self._defaults.requested(request, self._names)

    def cancel(self, q: Array) -> None:
        """Cancel the goal, and hold the measured position `q` [rad or m], shape (n,)."""
        self.active = False
        self._stay(q)

    def stop(self, now: float) -> TrajectoryEnd | None:
        """Come to rest as `TrajectoryTracker.hold` does, which joint_trajectory_controller does not offer.

        Returns:
            End of the goal that was being executed; None if there was none.
        """
        self.tracker.hold(now)
        self._holds = True
        stopped, self.active = self.active, False
        return TrajectoryEnd(INVALID_GOAL, "Stopped by a trajectory without points.") if stopped else None

    def update(self, now: float, q: Array, dq: Array) -> TrajectoryEnd | None:
        """Check the tolerances in one control cycle, before the command.

        Args:
            now: present time [s].
            q: measured positions [rad or m], shape (n,).
            dq: measured velocities [rad/s or m/s], shape (n,).

        Returns:
            End of the goal, or of a trajectory without a goal that was given up; None while neither has ended.
        """
        if self._holds:
            return None
        first, self._first = self._first, False
        late = now - self.tracker.span[1]
        moves = late + self._period < -TIME_RESOLUTION_S
        checks_path = (moves or first) and self._tolerances.checks_path
        checks_goal = not moves and (self.active or self._tolerances.goal_time > 0.0)
        if not (checks_path or checks_goal):
            return None
        error = self._error(self.tracker.along(now), q, dq)
        if checks_path:
            detail = self._excess(error, self._tolerances.path)
            if detail:
                self._stay(q)
                end = TrajectoryEnd(PATH_TOLERANCE_VIOLATED, "Aborted due to path tolerance violation", detail)
                return self._ended(end)
        return self._judge(error, late, q) if checks_goal else None

    def state(self, now: float, q: Array, dq: Array) -> ControllerState:
        """State of the controller; see `update` for the arguments."""
        reference = self.tracker.along(now)
        return ControllerState(reference, self._error(reference, q, dq), now - self._start)

    def _judge(self, error: Array, late: float, q: Array) -> TrajectoryEnd | None:
        """Check the goal tolerances `late` seconds after the last point."""
        detail, limit = self._excess(error, self._tolerances.goal), self._tolerances.goal_time
        if detail and limit and late > limit:
            self._stay(q)
            text = f"Aborted due to goal_time_tolerance exceeding by {late:f} seconds"
            return self._ended(TrajectoryEnd(GOAL_TOLERANCE_VIOLATED, text, detail))
        if detail or not self.active:
            return None
        self._holds = True  # the last point, with its effort
        return self._ended(TrajectoryEnd(SUCCESSFUL, "Goal successfully reached!"))

    def _ended(self, end: TrajectoryEnd) -> TrajectoryEnd:
        self.active = False
        return end

    def _stay(self, q: Array) -> None:
        """Hold the measured position at once, without feed-forward effort."""
        self.tracker.hold_at(q)
        self._holds = True

    def _error(self, reference: Setpoint, q: Array, dq: Array) -> Array:
        error = np.zeros((3, len(q)))
        error[0] = reference.q - q
        if self._effort:
            error[1] = reference.dq - dq
        return error

    def _excess(self, error: Array, tolerance: Array) -> str:
        """First error that exceeds its tolerance; empty if none does."""
        for row, joint in np.argwhere((tolerance > 0.0) & (np.abs(error) > tolerance))[:1]:
            return (
                f"joint {self._names[joint]}: {QUANTITIES[row]} error {error[row, joint]:.4g}, "
                f"tolerance {tolerance[row, joint]:.4g}"
            )
        return ""
