# SPDX-License-Identifier: Apache-2.0
"""Compensation of gravity by drives without torque sensors: efforts that may be commanded, from measured positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import InputError
from robot_dyn_id.loads.gravity import gravity_effort
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.controllers import CommandedEfforts, slew_rates

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
        return gravity_effort(self.by_joint, self.model, q[:, None])[:, 0]

    def check_rated(self, rated: Array) -> None:
        """Check that the arm can be held within rated efforts in drive units, shape (n,).

        Raises:
            InputError: gravity needs more in a configuration within the position limits.
        """
        limits = self.model.limits
        lower, upper = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
        q = np.random.default_rng(0).uniform(lower, np.maximum(lower, upper), (POSES, len(lower))).T
        needed = np.abs(gravity_effort(self.by_joint, self.model, q)).max(axis=1)
        beyond = np.flatnonzero(needed > rated)
        if len(beyond):
            joint = int(beyond[np.argmax(needed[beyond] / rated[beyond])])
            raise InputError(
                f"gravity needs {needed[joint]:.4g} drive units to hold joint {self.model.joint_names[joint]} within "
                f"its position limits, above the effort_limit {rated[joint]:.4g}: correct the limit, or calibrate again"
            )


class GravityCompensation:
    """Commanded efforts: a share of gravity within rated efforts, without jumps.

    While the joint states have a fault, see `StateGuard`, the efforts fade to zero.
    """

    def __init__(self, law: GravityLaw, rated: Array, scale: float, ramp_time: float) -> None:
        """Begin without a command.

        Args:
            law: gravity of the arm.
            rated: rated efforts in drive units, shape (n,).
            scale: commanded share of gravity [-].
            ramp_time: duration of every change: from the present effort of the drives at the beginning, to another
                share or another law, and to zero at the end [s].
        """
        self._law, self._scale, self._rated = law, scale, rated
        self._efforts = CommandedEfforts(rated, ramp_time, ramp_time, slew_rates(law.model, rated))
        self._limited: Integers = np.zeros(0, dtype=np.int64)
        self._q: Array | None = None
        self._fault = ""
        self._begun = self._releasing = False

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the n joints."""
        return self._law.model.joint_names

    @property
    def rated(self) -> Array:
        """Rated efforts in drive units, shape (n,)."""
        return self._rated

    @property
    def limited(self) -> Integers:
        """Indices of the joints whose latest effort was limited."""
        return self._limited

    @property
    def scale(self) -> float:
        """Commanded share of gravity [-]."""
        return self._scale

    @property
    def begun(self) -> bool:
        """Whether the first effort has been commanded; later ones do not need the measured efforts."""
        return self._begun

    @property
    def fault(self) -> str:
        """Fault of the joint states; empty without one."""
        return self._fault

    @property
    def holds(self) -> bool:
        """Whether an effort is commanded."""
        return bool(self._efforts.last.any())

    @property
    def released(self) -> bool:
        """Whether a release is complete."""
        return self._releasing and not self.holds

    def rescale(self, scale: float) -> None:
        """Begin to change the share of gravity."""
        self._scale = scale
        self._efforts.change()

    def replace_law(self, law: GravityLaw, rated: Array) -> None:
        """Begin to change to the gravity of another calibration of the same joints.

        Raises:
            InputError: other joints.
        """
        if law.model.joint_names != self.joint_names:
            raise InputError(
                f"its joints are {', '.join(law.model.joint_names)}, those of the calibration in use "
                f"{', '.join(self.joint_names)}: restart the node to use it"
            )
        self._law, self._rated = law, rated
        self._efforts.slew = slew_rates(law.model, rated)
        self._efforts.change()

    def release(self) -> None:
        """Begin to reduce the efforts to zero."""
        if not self._releasing:
            self._releasing = True
            self._efforts.change()

    def rest(self) -> Array:
        """Command zero effort now, shape (n,); the next command begins as the first one, with the present share."""
        self._begun = self._releasing = False
        return self._efforts.rest()

    def observe(self, q: Array | None, fault: str) -> None:
        """Take positions, and begin to fade the efforts at a fault, or back to gravity after it.

        Args:
            q: latest trusted positions [rad or m], shape (n,); None: not known.
            fault: fault of the joint states; empty without one.
        """
        if bool(fault) != bool(self._fault):
            self._efforts.change()
        self._q, self._fault = q, fault

    def command(self, step: float, present: Array | None = None) -> Array:
        """Efforts to be commanded in drive units at the latest positions, shape (n,).

        The first command is the present effort of the drives: an arm that they hold by position does not fall when
        efforts take over, and one that they do not hold begins at zero.

        Args:
            step: time since the previous command [s].
            present: measured efforts in drive units, shape (n,); None: not known, the first command is zero.
        """
        if self._q is None:
            return self.rest()
        if not self._begun and not self._fault:
            self._begun = True
            if present is not None:
                self._efforts.last = np.clip(present, -self._rated, self._rated)
                self._efforts.change()
        share = 0.0 if self._releasing or self._fault else self._scale
        wanted = share * self._law.effort(self._q)
        self._limited = np.flatnonzero(np.abs(wanted) > self._rated)
        # another calibration may have lower rated efforts: the present ones fade to them
        self._efforts.rated = np.maximum(self._rated, np.abs(self._efforts.last))
        return self._efforts.command(np.clip(wanted, -self._rated, self._rated), step, 0.0)
