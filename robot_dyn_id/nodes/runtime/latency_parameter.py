# SPDX-License-Identifier: Apache-2.0
"""The parameter `latency`, from which all limits of nodes on delays follow."""

from __future__ import annotations

from typing import Any

from robot_dyn_id.nodes.runtime.ros_parameters import ros_parameter


def latency_parameter(default: float = 0.1, minimum: float = 0.002) -> Any:
    """Field `latency` of the settings of a node that watches ages, see `Latency` [s]."""
    return ros_parameter(
        default, "Longest delay of a message that is tolerated, from which other limits follow", "s", minimum, 10.0
    )
