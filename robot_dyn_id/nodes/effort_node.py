# SPDX-License-Identifier: Apache-2.0
"""Base class of the nodes that command efforts in response to joint states."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from std_msgs.msg import Float64MultiArray

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, MotionError
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.excitation.execution.state_guard import TROUBLE_REPORTED_S
from robot_dyn_id.nodes.messages.joint_state import JointOrder, convert_to_seconds, receive
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, OK, STALE
from robot_dyn_id.nodes.runtime.managed_node import ManagedNode
from robot_dyn_id.simulation.effort_control import EffortControl

CHECKS_PER_STALE_AGE = 4
"""Checks of the age of the joint states within the age at which they are stale."""


LONGEST_CHECK_S = 0.05
"""Longest time between two checks, after which a model that has been prepared is used [s]."""


class EffortNode(ManagedNode):
    """A node that commands efforts by an `EffortControl`; its interfaces include `effort_command` and `joint_states`.

    Its settings have the field `latency`. It commands while it is active and no other node of its name is in the graph,
    and releases the arm when it is deactivated.
    """

    ENDS_ON_FAULT = True
    CHANNELS: ClassVar[Sequence[str]] = ("position", "velocity")
    """Channels of the joint states that the law needs."""

    def set_up(self) -> None:
        """Make what does not depend on the robot."""
        self._active = self._configured = False
        self._control: EffortControl | None = None
        self._commands = self.publisher("effort_command")
        self._message = Float64MultiArray()
        self._places: Sequence[int] | slice = slice(None)  # of the joints in the order of the command
        self._refused = ""
        self._unconfirmed = False
        self._trouble, self._troubled = "", -np.inf
        self.subscription("joint_states", self._take_state)
        period = min(Latency(self.settings.latency).stale / CHECKS_PER_STALE_AGE, LONGEST_CHECK_S)
        self.create_timer(period, self._look, clock=self.steady)

    # --- lifecycle

    def check_released(self) -> None:
        """Check that no effort is commanded from before a deactivation.

        Raises:
            MotionError: the efforts still fade.
        """
        if self._control is not None and self._control.releasing:  # an arm that is let go of in one step falls
            raise MotionError("the efforts still fade to zero after the deactivation: try again when they have")

    def activate(self) -> None:
        """Command efforts from the next joint states on.

        Raises:
            MotionError: the efforts still fade after a deactivation.
        """
        self.check_released()
        if self._control is not None:
            self._control.rest()
            self._control.guard.restart()
        self._active = True
        self._look()

    def deactivate(self) -> None:
        """Reduce the efforts to zero, in response to joint states as before."""
        self.release()
        self._look()

    def release(self) -> None:
        """Begin to reduce the efforts to zero."""
        if self._active and self._control is not None:
            self._control.release()
        self._active = False

    def clean_up(self) -> None:
        """Drop the robot and its model as soon as the efforts are zero."""
        self._configured = False
        if self._control is None or not self._control.releasing:
            self.drop()

    def drop(self) -> None:
        """Drop the robot and its model; the efforts are zero."""
        self._control = None

    def take_control(self, control: EffortControl) -> None:
        """Begin to command efforts by a control."""
        self._control, self._order = control, JointOrder(control.guard.model.joint_names)
        self.hardware_id = control.guard.model.name
        control.guard.expect(self._seconds())

    # --- control

    def _take_state(self, message: Any) -> None:
        control = self._control
        if control is None or not self._order.concerns(message):
            return
        guard, state = control.guard, None
        heard = guard.heard
        try:
            state = receive(guard, self._order, message, self._seconds(), self._ros_seconds(), self.CHANNELS)
        except InputError as error:
            self.refuse(f"joint state: {error}")
        if guard.heard == heard:  # nothing that was on time
            return
        released = control.releasing
        present = None if control.begun else self.read_present_efforts(message)
        commands = self._active and self.namesakes.settled  # another node of this name may command the robot
        effort = control.respond(state, convert_to_seconds(message.header.stamp), commands, present)
        if effort is not None:
            self._publish(effort)
            if control.begun:
                self._note_trouble(control)
        if released:
            self._end_release()

    def read_present_efforts(self, message: Any) -> Array | None:
        """Measured efforts at which the first command begins, shape (n,); None: it begins at zero."""
        return None

    def _publish(self, effort: Array) -> None:
        self._message.data = effort[self._places].tolist()
        self._commands.publish(self._message)

    def command_rest(self) -> None:
        """Command zero effort, if any effort was commanded."""
        if self._control is not None and (self._control.begun or any(self._message.data)):
            self._publish(self._control.rest())
            self._end_release()

    @abstractmethod
    def come_to_rest(self) -> bool:
        """Reduce the efforts to zero for good; called again and again until it returns True."""

    def stop(self) -> bool:
        """Come to rest, and command it twice: a driver that does not acknowledge messages may miss one.

        A node that was at rest before commands nothing: another one may command the robot since then.
        """
        self._unconfirmed |= any(self._message.data)
        rests = self.come_to_rest()
        if rests and self._unconfirmed:
            self._commands.publish(self._message)
            self._unconfirmed = rests = False
        return rests

    def _end_release(self) -> None:
        """Drop a robot that is not configured any more once its efforts are zero."""
        if not self._configured and self._control is not None and not self._control.releasing:
            self.drop()

    def _note_trouble(self, control: EffortControl) -> None:
        """Note efforts that are not commanded as the law has them."""
        names, efforts, now = control.guard.model.joint_names, control.efforts, self._seconds()
        if len(efforts.invalid):
            self._trouble = f"the effort of joint {names[efforts.invalid[0]]} is not finite: zero effort for all joints"
        elif len(efforts.limited):
            if now - self._troubled > TROUBLE_REPORTED_S:  # one line for a trouble that lasts
                joint = int(efforts.limited[0])
                self._trouble = (
                    f"the effort of joint {names[joint]} is limited to {self.describe_limit(control, joint)}"
                )
        else:
            return
        self._troubled = now

    # --- condition

    def _look(self) -> None:
        """Report the state; joint states that have ceased are answered by one last command, zero."""
        control = self._control
        if control is not None and control.guard.silent(self._seconds()):
            self.command_rest()
        if self.starting:
            return
        level, text = self._state()
        values = {}
        if level in (STALE, ERROR) and self._control is not None:
            values["age of joint states [s]"] = f"{self._seconds() - self._control.guard.heard:.3f}"
        self.condition.report(level, text, values)

    def _state(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        control, now = self._control, self._seconds()
        if not self._active:
            return OK, f"{self.lifecycle}: no effort before the node is activated"
        missing = self.describe_missing()
        if missing is not None or control is None:
            return missing or (STALE, "starting")
        obstacle, faulty = control.guard.obstacle(now)
        if obstacle:
            return (ERROR if faulty else STALE), self.describe_obstacle(obstacle)
        if not self.namesakes.settled:
            return STALE, f"no effort yet: {self.namesakes.obstacle()}"
        if now - self._troubled < TROUBLE_REPORTED_S:
            return ERROR, self._trouble
        return self.describe_commands()

    def describe_obstacle(self, obstacle: str) -> str:
        """An obstacle with the number of publishers of joint states."""
        return f"{obstacle}; joint_states has {self.count_publishers('joint_states')} publishers"

    @abstractmethod
    def describe_missing(self) -> tuple[bytes, str] | None:
        """Diagnostic level and message while there is no control; None if there is one."""

    @abstractmethod
    def describe_commands(self) -> tuple[bytes, str]:
        """Diagnostic level and message while efforts are commanded without trouble."""

    @abstractmethod
    def describe_limit(self, control: EffortControl, joint: int) -> str:
        """Limit of the effort of a joint, and what follows from it."""
