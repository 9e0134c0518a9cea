# SPDX-License-Identifier: Apache-2.0
"""An `EffortControl` with the joint states and the clock of a test."""

import numpy as np

from robot_dyn_id.errors import InputError

CLOCK = 1.7e9
"""Time of the clock of the stamps at the begin [s]."""


class DrivenEfforts:
    """The joint states of a control pass its guard, and its efforts end where they cease, as in a node.

    Attributes:
        history: efforts in use, shape (n,), at first and after each joint state; zero before the first command.
        commands: number of commands.
    """

    def __init__(self, control, step):
        self.control, self.step = control, step
        self.now, self.commands, self.refusal = 0.0, 0, ""
        self.active = True
        self._effort = np.zeros(len(control.guard.model.joint_names))
        self.history = [self._effort]
        control.guard.expect(self.now)

    @property
    def effort(self):
        return self.history[-1]

    def send(self, *state, **options):
        """A joint state after a step of the time; returns the effort in use after it."""
        self._receive(*state, **options)
        self.history.append(self._effort)
        return self._effort

    def _receive(self, q, dq=None, stamp=None, step=None, present=None):
        control = self.control
        self.now += self.step if step is None else step
        if control.guard.silent(self.now) and control.begun:
            self.take(control.rest())
        stamp, state, heard = (
            CLOCK + self.now if stamp is None else stamp,
            (q,) if dq is None else (q, dq),
            control.guard.heard,
        )
        try:
            if not all(np.isfinite(channel).all() for channel in state):
                control.guard.refuse(self.now, "not finite")
                return
            control.guard.receive(self.now, CLOCK + self.now, stamp, *state)
        except InputError as error:
            self.refusal, state = str(error), None
        if control.guard.heard != heard:
            self.take(control.respond(state, stamp, self.active, present))

    def take(self, effort):
        if effort is not None:
            self._effort, self.commands = np.array(effort), self.commands + 1

    def run(self, count, q, dq=None, **options):
        """The efforts after each of several equal states, shape (count, n)."""
        return np.array([self.send(q, dq, **options) for _ in range(count)])

    def restart(self):
        """Restart, as the activation of a node does."""
        self.control.rest()
        self.control.guard.restart()
