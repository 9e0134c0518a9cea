# SPDX-License-Identifier: Apache-2.0
"""Compensation of gravity by drives without torque sensors: efforts that may be commanded, from measured positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.execution.state_guard import StateGuard
from robot_dyn_id.loads.gravity import compute_gravity_effort
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.effort_control import CommandedEfforts, EffortControl, LawEffort, slew_rates

POSES = 200
"""Number of configurations in which the rated efforts are compared with gravity."""


@dataclass(frozen=True)
class GravityLaw:
    """Gravity of an arm in drive units.

    Attributes:
        model: robot model with n joints.
        by_joint: see `GravityCalibration`, shape (n, 4 b).
    """

    model: RobotModel
    by_joint: Array

    def effort(self, q: Array) -> Array:
        """Effort of the drives at positions `q` [rad or m], both of shape (n,)."""
        return compute_gravity_effort(self.by_joint, self.model, q[:, None])[:, 0]

    def check_rated(self, rated: Array) -> None:
        """Check that the arm can be held within rated efforts in drive units, shape (n,).

        Raises:
            InputError: gravity needs more in a configuration within the position limits.
        """
        limits = self.model.limits
        lower, upper = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
        q = np.random.default_rng(0).uniform(lower, np.maximum(lower, upper), (POSES, len(lower))).T
        needed = np.abs(compute_gravity_effort(self.by_joint, self.model, q)).max(axis=1)
        beyond = np.flatnonzero(needed > rated)
        if len(beyond):
            joint = int(beyond[np.argmax(needed[beyond] / rated[beyond])])
            raise InputError(
                f"gravity needs {needed[joint]:.4g} drive units to hold joint {self.model.joint_names[joint]} within "
                f"its position limits, above the effort_limit {rated[joint]:.4g}: correct the limit, or calibrate again"
            )


class GravityCompensation:
    """A share of gravity in drive units, as the law of an `EffortControl`.

    Attributes:
        law: gravity of the arm.
        scale: commanded share of gravity [-].
    """

    def __init__(self, law: GravityLaw, scale: float) -> None:
        """Compensate this share of the gravity."""
        self.law, self.scale = law, scale

    def make_control(self, rated: Array, ramp_time: float, timeout: float) -> EffortControl:
        """Control of the efforts by this law.

        Args:
            rated: rated efforts in drive units, shape (n,).
            ramp_time: duration of every change: from the present effort of the drives at the beginning, to another
                share or another law, and to zero at a fault and at the end [s].
            timeout: age at which joint states are stale [s].
        """
        efforts = CommandedEfforts(rated, ramp_time, ramp_time, slew_rates(self.law.model, rated))
        return EffortControl(self, StateGuard(self.law.model, timeout), efforts, ramp_time)

    def replace(self, law: GravityLaw) -> None:
        """Take the gravity of another calibration of the same joints.

        Raises:
            InputError: other joints.
        """
        used, given = self.law.model.joint_names, law.model.joint_names
        if given != used:
            raise InputError(
                f"its joints are {', '.join(given)}, those of the calibration in use {', '.join(used)}: restart the "
                "node to use it"
            )
        self.law = law

    def effort(self, guard: StateGuard, state: Sequence[Array] | None, time: float) -> LawEffort | None:
        """Effort at the latest trusted positions in drive units; the drivers add nothing."""
        if guard.position is None:
            return None
        effort = self.scale * self.law.effort(guard.position)
        return LawEffort(effort, np.zeros_like(effort))

    def idle_effort(self, guard: StateGuard) -> LawEffort:
        """No effort."""
        zero = np.zeros(len(self.law.model.joint_names))
        return LawEffort(zero, zero)

    def brake(self, time: float) -> None:
        """Do nothing: there is no motion of its own."""

    def restart(self) -> None:
        """Do nothing: it has no states."""
