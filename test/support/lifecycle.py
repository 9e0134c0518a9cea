# SPDX-License-Identifier: Apache-2.0
"""Transitions of managed nodes, by their services."""

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
DEACTIVATE, CLEANUP = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP
ACTIVE_SHUTDOWN = Transition.TRANSITION_ACTIVE_SHUTDOWN


def change(world, transition, node="excitation_publisher"):
    request = ChangeState.Request(transition=Transition(id=transition))
    return world.call(ChangeState, f"{node}/change_state", request).success
