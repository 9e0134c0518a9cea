# SPDX-License-Identifier: Apache-2.0
"""Torque that the driver of a robot adds to a command, and that a controller must not command again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms import TermStates
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.parameters import COMPENSATIONS, NONE, UNKNOWN, ParameterSet, compensation_fault


def check_compensations(effort_kind: str, robot_compensates: Sequence[str]) -> None:
    """Check what a user states about the driver.

    Args:
        effort_kind: content of the measured effort, one of `EFFORT_KINDS`.
        robot_compensates: torques that the driver adds to a command, of `COMPENSATIONS`.

    Raises:
        UsageError: an unknown word, or a contradiction, which names both.
    """
    for word in robot_compensates:
        if word not in COMPENSATIONS:
            raise UsageError(f"robot_compensates: {word!r} is not one of {', '.join(COMPENSATIONS)}")
    if why := compensation_fault(effort_kind, robot_compensates):
        raise UsageError(why)


def decide_compensations(parameters: ParameterSet, stated: Sequence[str] = ()) -> tuple[str, ...]:
    """Torques that the driver adds to a command, from the parameter set and from what a user states.

    Args:
        parameters: parameter set, which holds what was stated at its identification.
        stated: words of `COMPENSATIONS`; empty or `unknown`: those of the parameter set.

    Returns:
        Parts of `COMPENSATED_PARTS`; empty if the driver adds nothing.

    Raises:
        UsageError: the statement contradicts the parameter set, or the kind of effort that it was identified from.
        InputError: neither of them determines it, or drive gains are not known.
    """
    parameters.refuse_unknown_gains()
    check_compensations(parameters.effort.kind, stated)
    stored, given = (
        tuple(words) if words != (UNKNOWN,) else () for words in (parameters.effort.robot_compensates, tuple(stated))
    )
    if stored and given and set(stored) != set(given):
        raise UsageError(
            f"robot_compensates is [{', '.join(given)}] here and [{', '.join(stored)}] in the parameter set: correct "
            "one of them"
        )
    if not (stored or given):
        raise InputError(
            "it is not known whether the robot's driver adds torques to a command (robot_compensates is unknown), and "
            "a second gravity torque would drive the arm upward: set robot_compensates to what the driver adds, of "
            "gravity, friction and coriolis, or to [none]",
            "set robot_compensates to what the driver adds to a command, or to [none]",
        )
    return tuple(part for part in (given or stored) if part != NONE)


def limit_command(command: ArrayLike, added: ArrayLike, limit: ArrayLike) -> Array:
    """Limit a command so that neither it nor the torque of the motors exceeds the effort limits.

    The motors give the command and what the driver adds to it. Where this addition alone exceeds twice the limit, no
    command keeps both limits, and the command is at its own limit, against the addition.

    Args:
        command: effort to be commanded [N m or N], shape (n,) or (N, n).
        added: torque that the driver adds to it, of the same shape, or 0.
        limit: effort limits [N m or N], of all joints or shape (n,).

    Returns:
        Limited command, shape (n,) or (N, n).
    """
    limit = np.asarray(limit)
    motor = np.clip(np.add(command, added), -limit, limit)
    return np.asarray(np.clip(motor - added, -limit, limit))


@dataclass(frozen=True)
class DriverCompensation:
    """Torque that a driver adds to a command, computed with the identified model.

    The torque of a motion has the parts inertia, gravity, Coriolis and centrifugal, friction (all that terms contribute
    in addition to their torque at rest), and what terms contribute at rest (springs, offsets). The driver's own model
    may differ: the difference is an error of the command.

    Example:
        ```python
        parameters = rdi.load_parameters("run/parameters.yaml")
        dynamics = rdi.make_dynamics(parameters)
        driver = rdi.DriverCompensation.from_parameters(parameters, dynamics, ["gravity"])
        command = dynamics.inverse_dynamics(q, dq, ddq) - driver.torque(q, dq)
        ```

    Attributes:
        dynamics: dynamics of the robot.
        parts: compensated parts, of `COMPENSATED_PARTS`.
    """

    dynamics: Dynamics
    parts: tuple[str, ...]

    @classmethod
    def from_parameters(
        cls, parameters: ParameterSet, dynamics: Dynamics, stated: Sequence[str] = ()
    ) -> DriverCompensation:
        """Make the compensation of a robot's driver; see `decide_compensations`.

        Raises:
            RobotDynIdError: see `decide_compensations`.
        """
        return cls(dynamics, decide_compensations(parameters, stated))

    def torque(
        self, q: ArrayLike, dq: ArrayLike, sliding: ArrayLike | None = None, states: TermStates | None = None
    ) -> Array:
        """Torque of the compensated parts [N m or N], shape (n,) or (N, n).

        Args:
            q: positions [rad or m], shape (n,) or (N, n).
            dq: velocities of the Coriolis torque [rad/s or m/s].
            sliding: velocities of the friction [rad/s or m/s]; by default `dq`.
            states: states of the friction terms, see `Dynamics`.
        """
        rest = np.zeros(np.shape(q))
        torque = np.zeros(np.shape(q))
        if "gravity" in self.parts:
            torque += self._bodies.bias(q, rest)
        if "coriolis" in self.parts:
            torque += self._bodies.bias(q, dq) - self._bodies.bias(q, rest)
        if "friction" in self.parts:
            moving = self.dynamics.friction(q, dq if sliding is None else sliding, states)
            torque += moving - self.dynamics.friction(q, rest)
        return torque

    @cached_property
    def _bodies(self) -> Dynamics:
        """The rigid bodies without terms."""
        inertial = self.dynamics.columns < 10 * len(self.dynamics.regressor.model.body_names)
        return replace(self.dynamics, values=np.where(inertial, self.dynamics.values, 0.0))
