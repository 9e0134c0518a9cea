# SPDX-License-Identifier: Apache-2.0
"""Checks of the middleware that the shell selects, before rclpy is loaded: it ends the process where it is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import robot_dyn_id
from robot_dyn_id.errors import UsageError

MAX_DOMAIN = 232
"""Largest ROS domain whose ports (7400 + 250 for each domain) exist."""

INDEX = "share/ament_index/resource_index/rmw_typesupport"
"""Folder of a prefix with a file for each middleware, and one for the library that loads them."""

LOADER = "rmw_implementation"


def list_installed_middleware() -> list[str]:
    """Names of the middleware packages that rclpy can load, sorted; empty if they are not known."""
    # On the wheels a distribution that the shell has sourced in addition does not count.
    on_wheels = robot_dyn_id._installed_version("ros_rclpy") is not None
    prefixes = [sys.prefix] if on_wheels else os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    found = {file.name for prefix in prefixes if prefix for file in Path(prefix, INDEX).glob("*")}
    return sorted(found - {LOADER})


def check_middleware() -> None:
    """Check RMW_IMPLEMENTATION.

    Raises:
        UsageError: the middleware is not installed.
    """
    selected, installed = os.environ.get("RMW_IMPLEMENTATION", ""), list_installed_middleware()
    if selected and installed and selected not in installed:
        raise UsageError(
            f"RMW_IMPLEMENTATION is {selected}, which is not installed; installed: {', '.join(installed)}; run "
            "`unset RMW_IMPLEMENTATION`"
        )


def check_domain() -> None:
    """Check ROS_DOMAIN_ID; what is not a number is refused by ROS 2 itself.

    Raises:
        UsageError: the domain is too large for DDS.
    """
    domain = os.environ.get("ROS_DOMAIN_ID", "")
    if domain.isdecimal() and int(domain) > MAX_DOMAIN:
        raise UsageError(f"ROS_DOMAIN_ID is {domain}, above {MAX_DOMAIN}: set it to 0 to 101, or unset it")
