# SPDX-License-Identifier: Apache-2.0
"""Efforts in response to joint states, without jumps: of a law, to zero at a fault of the states, and at a release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.compensation import limit_command
from robot_dyn_id.excitation.execution.state_guard import JUMP_FACTOR, StateGuard
from robot_dyn_id.model.robot import RobotModel


class LawEffort(NamedTuple):
    """Effort of a control law, and what the driver adds to it; the motors give their sum.

    Attributes:
        wanted: effort to be commanded [N m or N], shape (n,).
        added: torque that the driver adds [N m or N], shape (n,).
    """

    wanted: Array
    added: Array


def slew_rates(model: RobotModel, rated: Array, bandwidth: ArrayLike = 0.0) -> Array:
    """Largest changes of efforts that a control law needs [N m/s or N/s], shape (n,).

    Feedback that alternates between the rated efforts at its bandwidth w changes by w times the rated effort. Gravity
    within the rated effort is a trigonometric polynomial of degree 1 in the position of every revolute joint, and so
    changes by at most the rated effort per radian (inequality of Bernstein); the joints are trusted to move at
    `JUMP_FACTOR` times the velocities of the URDF.

    Args:
        model: robot model with n joints.
        rated: rated efforts [N m or N], shape (n,).
        bandwidth: bandwidth of the position error [rad/s], one for all joints or shape (n,); 0 without feedback.

    Returns:
        Rates; inf where the URDF has no velocity limit of a revolute joint.
    """
    velocity = np.asarray(model.limits.velocity)[~np.asarray(model.slides)]
    fastest = JUMP_FACTOR * np.where(velocity > 0.0, velocity, np.inf).sum()
    return np.asarray(rated * (fastest + np.asarray(bandwidth)))


class CommandedEfforts:
    """Conditioning of commanded efforts: finite, within the rated efforts, continuous when the control law changes.

    The rated efforts limit the commands, and the commands with what the driver adds to them. Where the driver alone
    exceeds them, zero effort does too: the relief of the motors then begins and ends as gradually as the commands.

    Attributes:
        rated: rated efforts [N m or N], shape (n,).
        slew: largest change of an effort that is not released [N m/s or N/s], scalar or shape (n,).
        last: latest commanded efforts [N m or N], shape (n,); initially zero.
        limited: indices of the joints whose latest effort was limited.
        invalid: indices of the joints whose latest effort was not finite.
    """

    def __init__(self, rated: Array, start_time: float, blend_time: float, slew: ArrayLike = np.inf) -> None:
        """Initialize with zero effort.

        Args:
            rated: rated efforts [N m or N], shape (n,).
            start_time: blend time from zero effort to that of a law [s].
            blend_time: blend time from one law to the next [s].
            slew: largest change of an effort that is not released [N m/s or N/s], one for all joints or shape (n,); see
                `slew_rates`. Zero effort is commanded at once, as is what keeps the motors within their rating.
        """
        self.rated, self.slew = rated, np.asarray(slew, dtype=np.float64)
        self._start_time = start_time
        self._blend_time = blend_time
        self._share = self._unrelieved = 0.0
        self.limited = self.invalid = np.zeros(0, dtype=np.int64)
        self.rest()

    def change(self) -> None:
        """Start to blend to the efforts of another law."""
        moved = bool(self.last.any())
        self._changed = True
        self._duration = self._blend_time if moved else self._start_time
        self._unrelieved = self._unrelieved * self._share if moved else 1.0

    def replace_rated(self, rated: Array, slew: ArrayLike) -> None:
        """Change to other rated efforts; present efforts above them are blended down."""
        self.rated, self.slew = rated, np.asarray(slew, dtype=np.float64)
        self.change()

    def begin_at(self, effort: Array) -> None:
        """Begin at the effort that the drives have instead of zero [N m or N], shape (n,)."""
        self.last = np.clip(effort, -self.rated, self.rated)
        self.change()

    def rest(self) -> Array:
        """Command zero effort, from which the next law is blended in; returns zeros, shape (n,)."""
        self.last = self._gap = np.zeros(len(self.rated))
        self._left = self._share = self._unrelieved = 0.0
        self._fade = 1.0
        self.change()
        return self.last

    def command(self, wanted: Array, step: float, added: ArrayLike, fade: float = 1.0) -> Array:
        """Compute the effort to be commanded.

        The difference between the last effort and the first of a new law fades out; feedback of the new law acts
        immediately.

        Args:
            wanted: effort of the control law [N m or N], shape (n,).
            step: time since the previous command [s].
            added: torque that the driver adds to the command [N m or N], shape (n,), or 0.
            fade: share of the effort that is commanded, 0 to 1; below 1 the law is released.

        Returns:
            Effort [N m or N], shape (n,); zero for all joints if `wanted` or `added` is not finite.
        """
        added = np.asarray(added, dtype=np.float64)
        motor = wanted + added
        self.invalid = np.flatnonzero(~np.isfinite(motor))
        if len(self.invalid):
            self.limited = np.zeros(0, dtype=np.int64)
            return self.rest()
        possible = limit_command(wanted, added, self.rated)
        ceiling = np.maximum(self.rated, np.abs(self.last))
        if self._changed:
            self._gap, self._left, self._changed = self.last / self._fade - possible, 1.0, False
        else:
            self._left = max(0.0, self._left - step / self._duration) if self._duration > 0.0 else 0.0
        self._share = self._left**2 * (3.0 - 2.0 * self._left)
        self.limited = np.flatnonzero(np.maximum(np.abs(wanted), np.abs(motor)) > self.rated)
        excess = added - np.clip(added, -self.rated, self.rated)  # of the driver alone
        relieved = added - self._unrelieved * self._share * excess
        effort = limit_command(possible + self._share * self._gap, relieved, ceiling)
        if np.isfinite(self.slew).all():
            before, change = self.last / self._fade, self.slew * step
            effort = limit_command(np.clip(effort, before - change, before + change), relieved, ceiling)
        self.last = fade * effort
        self._fade = fade if fade > 0.0 else 1.0
        return self.last


class EffortLaw(Protocol):
    """Law whose efforts an `EffortControl` commands."""

    def effort(self, guard: StateGuard, state: Sequence[Array] | None, time: float) -> LawEffort | None:
        """Effort in response to a joint state.

        Args:
            guard: guard of the joint states.
            state: channels of the state, shape (n,) each; None if it is not trusted.
            time: stamp of the latest trusted state [s].

        Returns:
            The effort; None if none follows from the state.
        """
        ...

    def idle_effort(self, guard: StateGuard) -> LawEffort:
        """No effort of the law, at the latest trusted positions."""
        ...

    def brake(self, time: float) -> None:
        """Bring a motion to rest from a time on [s]."""
        ...

    def restart(self) -> None:
        """Prepare for a state that does not continue the previous ones: the arm may be elsewhere."""
        ...


class EffortControl:
    """Efforts of a law in response to joint states, continuous from the first to the last.

    They begin when enough states have come in time. They go over to zero while the states have a fault, and back; on a
    release the motion of the law is brought to rest, and the efforts are then reduced to zero. States that have ceased
    end them at once.

    Attributes:
        law: law of the efforts.
        guard: guard of the joint states.
        efforts: conditioning of the efforts.
        begun: whether an effort has been commanded since the latest rest.
        releasing: whether a release is under way.
        time: stamp of the latest trusted state [s].
    """

    def __init__(
        self, law: EffortLaw, guard: StateGuard, efforts: CommandedEfforts, ramp_time: float, braking_time: float = 0.0
    ) -> None:
        """Begin without a command.

        Args:
            law: law of the efforts.
            guard: guard of the joint states of n joints.
            efforts: conditioning of the efforts of these joints.
            ramp_time: time in which a release reduces the efforts to zero [s].
            braking_time: time before that, in which the law brings its motion to rest [s].
        """
        self.law, self.guard, self.efforts = law, guard, efforts
        self._ramp_time, self._braking_time = ramp_time, braking_time
        self.begun = self.releasing = self._faulted = False
        self.time = self._left = 0.0

    def release(self) -> None:
        """Begin to reduce the efforts to zero, if there are any."""
        if self.efforts.last.any() and not self.releasing:
            self.law.brake(self.time)
            self.releasing, self._left = True, self._braking_time + self._ramp_time

    def rest(self) -> Array:
        """Command zero effort now, shape (n,); the next effort begins as the first one."""
        self.begun = self.releasing = self._faulted = False
        self.law.restart()
        return self.efforts.rest()

    def respond(
        self, state: Sequence[Array] | None, time: float, commands: bool, present: Array | None = None
    ) -> Array | None:
        """Effort in response to a joint state that was on time, trusted or not.

        Args:
            state: channels of the state, shape (n,) each; None if it is not trusted.
            time: its stamp [s].
            commands: whether efforts may be commanded; a release goes on in any case.
            present: measured efforts, shape (n,), at which the first command begins: an arm that its drives hold by
                position does not fall when efforts take over; None: it begins at zero.

        Returns:
            Effort, shape (n,); None if none is to be commanded.
        """
        guard, efforts = self.guard, self.efforts
        if state is not None:
            self.time = time
        if not guard.timely:
            return self.rest() if self.begun else None
        if not (self.releasing or (commands and guard.ready)) or (guard.fault and not self.begun):
            return None
        if bool(guard.fault) != self._faulted:
            self._faulted = not self._faulted
            efforts.change()
            if self._faulted:
                self.law.restart()
        effort = self.law.idle_effort(guard) if self._faulted else self.law.effort(guard, state, self.time)
        if effort is None:
            return None
        share = self._take_share(guard.step)
        if share == 0.0:
            return self.rest()
        if present is not None and not self.begun:
            efforts.begin_at(present)
        self.begun = True
        commanded = efforts.command(effort.wanted, guard.step, effort.added, share)
        if len(efforts.invalid):  # it may be a setpoint that has caused it
            self.law.restart()
        return commanded

    def _take_share(self, step: float) -> float:
        """Share of the effort that is commanded after a step [s]: 1, but falling to 0 at the end of a release."""
        if not self.releasing:
            return 1.0
        self._left -= step
        if self._left <= 0.0 or not self._ramp_time:
            return float(self._left > 0.0)
        return min(1.0, self._left / self._ramp_time)
