# SPDX-License-Identifier: Apache-2.0
"""Managed (lifecycle) node: it moves nothing unless it is active."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.nodes.runtime.robot_node import RobotNode
from robot_dyn_id.nodes.runtime.ros_parameters import ros_parameter

UNCONFIGURED, INACTIVE, ACTIVE = "unconfigured", "inactive", "active"
"""Labels of the states in which a node is managed."""

SERVICES = (
    "~/change_state",
    "~/get_available_states",
    "~/get_available_transitions",
    "~/get_state",
    "~/get_transition_graph",
)
EVENTS = "~/transition_event"
"""Interfaces that rclpy creates for every managed node."""


def autostart_parameter() -> Any:
    """Field `autostart` of the settings of a managed node."""
    return ros_parameter(
        True, "Configure and activate the node when it starts; false: wait for the transitions of its lifecycle"
    )


class ManagedNode(LifecycleNodeMixin, RobotNode):  # type: ignore[misc]
    """A node with the lifecycle states of ROS 2, for all nodes that can move a robot.

    Its settings have the field `autostart`. What it may move, it moves only in the state `active`. A transition that
    raises a `RobotDynIdError` fails and leaves the state as it was; any other exception goes to `fault`, and the node
    becomes unconfigured. Its publishers are not lifecycle publishers: what brakes a robot or lets its efforts fade is
    commanded, and reported, after `deactivate`.
    """

    def __init__(self, **options: Any) -> None:
        """See `RobotNode`."""
        RobotNode.__init__(self, **options)

    def begin(self) -> None:
        """Set the node up, and configure and activate it if it starts automatically.

        Raises:
            RobotDynIdError: see `set_up`, `configure` and `activate`.
        """
        LifecycleNodeMixin.__init__(self)
        service = self._service_change_state
        service.callback = partial(self._change_state, service.callback)
        self._failure: Exception | None = None
        self._begun = False
        self.set_up()
        if self.settings.autostart:
            for trigger in (self.trigger_configure, self.trigger_activate):
                trigger()
                if self._failure is not None:
                    raise self._failure
        self._begun = True

    def destroy_node(self) -> None:
        """Leave the graph, with the state machine, which rclpy would keep there."""
        machine = getattr(self, "_state_machine", None)
        super().destroy_node()
        if machine is not None:
            machine.destroy_when_not_in_use()

    @property
    def starting(self) -> bool:
        """Whether automatic configuration and activation are under way: monitors do not report that state."""
        return not self._begun and self.settings.autostart

    @property
    def lifecycle(self) -> str:
        """Label of the present state, such as `active`; that of the transition during one."""
        return str(self._state_machine.current_state[1])

    def set_up(self) -> None:
        """Make what the node has in every state.

        Raises:
            RobotDynIdError: parameters that cannot be used.
        """

    def configure(self) -> None:
        """Read files and subscribe to what the node needs.

        Raises:
            RobotDynIdError: what is given cannot be used; the node stays unconfigured.
        """

    def activate(self) -> None:
        """Allow the robot to be moved.

        Raises:
            RobotDynIdError: it cannot be moved; the node stays inactive.
        """

    def deactivate(self) -> None:
        """Bring the robot to rest; the braking may go on after the transition, supervised as before."""

    def clean_up(self) -> None:
        """Release what `configure` has made, after the robot has come to rest."""

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """See `configure`."""
        return self._transition(self.configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """See `activate`."""
        return self._transition(self.activate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """See `deactivate`."""
        return self._transition(self.deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """See `clean_up`."""
        return self._transition(self.clean_up)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """See `deactivate` and `clean_up`."""
        return self._transition(self.deactivate, self.clean_up)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Bring the robot to rest and become unconfigured after an unexpected exception in a transition."""
        cause = self._failure
        result = self._transition(self.deactivate, self.clean_up)
        self._failure = cause
        return result

    def _change_state(self, change: Callable[[Any, Any], Any], request: Any, answer: Any) -> Any:
        """Answer a request of a transition; one by id that the state does not have would end the process in rclpy."""
        wanted = request.transition
        if not wanted.label and wanted.id not in [one[0] for one in self._state_machine.available_transitions]:
            self.get_logger().warning(f"{self.lifecycle}: this state has no transition {wanted.id}")
            answer.success = False
            return answer
        return change(request, answer)

    def _transition(self, *steps: Callable[[], None]) -> TransitionCallbackReturn:
        """Result of the steps of a transition; `_failure` is the reason why it has failed."""
        self._failure = None
        try:
            for step in steps:
                step()
        except RobotDynIdError as error:
            self._failure = error
            if self._begun:  # otherwise the process ends with it
                self.get_logger().error(f"{self.lifecycle}: {error}")
            return TransitionCallbackReturn.FAILURE
        except Exception as error:
            self._failure = error
            if self._begun:
                self.fault(error)
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS
