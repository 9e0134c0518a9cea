# SPDX-License-Identifier: Apache-2.0
"""Guard of live joint states: which of them an effort may follow from, and when the efforts have to end."""

from __future__ import annotations

import math

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.limits import REST_SPEED
from robot_dyn_id.model.robot import RobotModel

JUMP_MARGIN = 0.05
"""Change of position from sample to sample that is always plausible [rad or m]: backlash, steps of an encoder."""

JUMP_FACTOR = 2.0
"""Velocity relative to the limit of the URDF above which it, or a change of position, is a fault of the bus or the
encoder."""

TIMELY_STATES = 5
"""Trusted joint states that must follow each other within the timeout before an effort is commanded, and after which
one that was refused no longer counts."""

TROUBLE_REPORTED_S = 2.0
"""Time for which a refused joint state is reported [s]."""

MOST_REFUSED = 2
"""Joint states that are refused before `TIMELY_STATES` others have come, with which the efforts begin to end. A single
one happens on every bus; two sources of joint states, or an encoder that has failed, have the next one soon."""


class StateGuard:
    """Guard of the joint states of n joints.

    A state is trusted if its stamp is not old, it does not precede the previous one, no position has changed and no
    velocity is higher than the joint can move, and the positions have followed the velocities. The efforts follow from
    the last trusted state; they begin to end at `MOST_REFUSED` refused ones, and end if none has come in time.

    A robot at rest repeats its positions: what is frozen are stamps that do not advance, or positions and velocities
    that repeat to the last bit although the velocities state a motion.

    Attributes:
        model: robot model with n joints.
        position: latest trusted positions [rad or m], shape (n,); None before the first.
        heard: time of the latest state that was on time, its position plausible or not [s]; -inf before the first.
        stamp: stamp of that state [s]; 0: it has none.
        step: time for which the efforts may change at it [s]: by the stamps, but in all not longer than has passed,
            with the timeout as a reserve; at most the timeout.
        timely: number of states in a row that came within the timeout of each other; 0 after a late one.
        late: number of states that did not since `TIMELY_STATES` did.
        refusal: why the latest refused state was refused.
        refused_at: time of that [s].
        fault: why the efforts have to end; empty if they need not.
    """

    def __init__(self, model: RobotModel, timeout: float) -> None:
        """Begin without joint states.

        Args:
            model: robot model with n joints, whose velocity limits count; a joint without one is not monitored.
            timeout: age by arrival and by stamp at which states are stale [s].
        """
        self.model, self._timeout = model, timeout
        velocity = np.asarray(model.limits.velocity)
        self._fastest = JUMP_FACTOR * np.where(velocity > 0.0, velocity, np.inf)
        self._endless = np.isinf(model.limits.upper)  # an encoder may begin again after a turn
        self._refused = self._good = 0
        self._dq: Array | None = None
        self._traveled = np.zeros(len(velocity))  # by the velocities since a position has changed
        self.expect(-math.inf)
        self.restart()

    def expect(self, now: float) -> None:
        """Expect states from now on.

        Args:
            now: time of a steady clock [s].
        """
        self.heard, self.stamp, self.step = now, 0.0, 0.0
        self._clock, self._reserve = math.nan, self._timeout
        self.timely = self.late = 0
        self.refusal, self.refused_at = "", -math.inf

    def restart(self) -> None:
        """Take the next positions for true, wherever the arm is."""
        self.position: Array | None = None
        self.fault = ""
        self._refused = 0
        self._traveled[:] = 0.0

    def silent(self, now: float) -> bool:
        """Whether no state has come within the timeout."""
        return now - self.heard > self._timeout

    @property
    def ready(self) -> bool:
        """Whether enough states have come in time for an effort."""
        return self.timely >= TIMELY_STATES

    def refuse(self, now: float, why: str) -> None:
        """Count a state that is not used.

        Args:
            now: time of its arrival by a steady clock [s].
            why: reason.
        """
        self.refusal, self.refused_at = why, now
        self._refused, self._good = self._refused + 1, 0
        if self._refused >= MOST_REFUSED and self.position is not None:
            self.fault = self.fault or why

    def receive(self, now: float, clock: float, stamp: float, q: Array, dq: Array | None = None) -> None:
        """Check a state, and take it over if it is trusted.

        Args:
            now: time of its arrival by a steady clock [s].
            clock: the same by the clock of the stamps [s].
            stamp: its stamp [s]; 0: the driver gives none.
            q: positions [rad or m], finite, shape (n,).
            dq: velocities [rad/s or m/s], finite, shape (n,); None: not measured.

        Raises:
            InputError: the state is not trusted; it is counted, see `refuse`.
        """
        try:
            passed = self._passed(now, clock, stamp)
        except InputError as error:
            if stamp != self.stamp:  # a driver may publish a state twice
                self.refuse(now, str(error))
            else:
                self.refusal, self.refused_at = str(error), now
            raise
        late = self.silent(now)
        self.timely, self.late = (0, self.late + 1) if late else (self.timely + 1, self.late)
        if self.ready:
            self.late = 0
        elapsed = 0.0 if math.isnan(self._clock) else max(clock - self._clock, 0.0)
        self._reserve = min(self._reserve + elapsed, self._timeout)
        self.step = min(passed, self._reserve) if stamp > 0.0 else min(passed, self._timeout)
        self._reserve -= min(self.step, self._reserve)
        self.heard, self.stamp, self._clock = now, stamp, clock
        why = self._jump(q, passed) or self._frozen(q, dq) or self._too_fast(dq)
        self._dq = dq
        if why:
            self.refuse(now, why)
            raise InputError(why)
        self.position, self._good = q, self._good + 1
        if self._good >= TIMELY_STATES:
            self._refused, self.fault = 0, ""

    def obstacle(self, now: float) -> tuple[str, bool]:
        """Why no effort follows from the states; empty if one does.

        Args:
            now: present time of the steady clock [s].

        Returns:
            Reason, and whether it is a fault of states that come, and not that they are waited for.
        """
        timeout = self._timeout
        if self.silent(now) or not self.ready:
            if self.refused_at >= self.heard and now - self.refused_at < TROUBLE_REPORTED_S:
                return f"joint states are refused: {self.refusal}: no effort", True
            if self.late > 1 and now - self.heard < timeout + TROUBLE_REPORTED_S:
                return f"joint states come less often than every {timeout:g} s (parameter latency): no effort", True
            if self.silent(now):
                return f"no joint states within {timeout:g} s: no effort", False
            return f"waiting for {TIMELY_STATES} joint states within {timeout:g} s of each other", False
        if self.fault:
            where = "where the arm was last, or the node is activated again"
            return f"{self.fault}: no effort until it is {where}", True
        return "", False

    def _passed(self, now: float, clock: float, stamp: float) -> float:
        """Time since the previous state [s]: by the stamps, but not longer than by arrival and the timeout.

        Raises:
            InputError: the stamp is stale.
        """
        waited, timeout = now - self.heard, self._timeout
        if stamp <= 0.0:
            return waited
        if clock - stamp > timeout:
            raise InputError(f"its stamp is more than {timeout:g} s behind the clock of this node")
        if stamp == self.stamp or (stamp < self.stamp and waited <= timeout):  # later: the robot's time began again
            raise InputError("its stamp does not advance")
        return min(stamp - self.stamp, waited + timeout) if stamp > self.stamp > 0.0 else waited

    def _jump(self, q: Array, step: float) -> str:
        """Why positions do not follow the last trusted ones; empty if they do."""
        if self.position is None:
            return ""
        moved = q - self.position
        moved = np.where(self._endless, (moved + np.pi) % (2.0 * np.pi) - np.pi, moved)
        for joint in np.flatnonzero(np.abs(moved) > JUMP_MARGIN + self._fastest * step):
            name = self.model.joint_names[joint]
            return f"position of joint {name} jumps by {moved[joint]:.3g} in {step:.3g} s"
        return ""

    def _frozen(self, q: Array, dq: Array | None) -> str:
        """Reason why positions do not make the motion that the velocities state; empty if they do."""
        if self.position is None or self._dq is None or dq is None:
            return ""
        if not (np.array_equal(q, self.position) and np.array_equal(dq, self._dq)):
            self._traveled[:] = 0.0
            return ""
        self._traveled += np.where(np.abs(dq) > REST_SPEED, np.abs(dq), 0.0) * self.step
        for joint in np.flatnonzero(self._traveled > JUMP_MARGIN):
            name = self.model.joint_names[joint]
            return f"joint states are frozen: the position of joint {name} repeats while it moves at {dq[joint]:.3g}"
        return ""

    def _too_fast(self, dq: Array | None) -> str:
        """Reason why a joint cannot have its velocity; empty if all can."""
        if dq is None:
            return ""
        for joint in np.flatnonzero(np.abs(dq) > self._fastest):
            name, limit = self.model.joint_names[joint], self.model.limits.velocity[joint]
            return f"velocity of joint {name} is {dq[joint]:.3g}, more than {JUMP_FACTOR:g} times its limit {limit:.3g}"
        return ""
