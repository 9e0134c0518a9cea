# SPDX-License-Identifier: Apache-2.0
"""Message types that can be read: one file per type and one line here."""

from __future__ import annotations

from collections.abc import Mapping

from robot_dyn_id.recordings.types.contract import MessageType
from robot_dyn_id.recordings.types.degrees_of_freedom import DEGREES_OF_FREEDOM
from robot_dyn_id.recordings.types.dynamic_joint_state import DYNAMIC_JOINT_STATE
from robot_dyn_id.recordings.types.franka_robot_state import FRANKA_ROBOT_STATE
from robot_dyn_id.recordings.types.joint_state import JOINT_STATE
from robot_dyn_id.recordings.types.lbr_state import LBR_STATE
from robot_dyn_id.recordings.types.single_values import NUMBERS_32, NUMBERS_64, TEMPERATURE_OF_SENSOR, TOOL_DATA
from robot_dyn_id.recordings.types.trajectory_controller_state import TRAJECTORY_CONTROLLER_STATE
from robot_dyn_id.recordings.types.ur_realtime_state import UR_REALTIME_STATE

JOINT_TYPES: Mapping[str, MessageType] = {
    kind.name: kind
    for kind in (
        JOINT_STATE,
        DYNAMIC_JOINT_STATE,
        TRAJECTORY_CONTROLLER_STATE,
        DEGREES_OF_FREEDOM,
        FRANKA_ROBOT_STATE,
        LBR_STATE,
        UR_REALTIME_STATE,
    )
}
"""Types with the positions of joints, by name."""

VALUE_TYPES: Mapping[str, MessageType] = {
    kind.name: kind for kind in (TEMPERATURE_OF_SENSOR, TOOL_DATA, NUMBERS_64, NUMBERS_32)
}
"""Types with a single channel, by name."""
