# SPDX-License-Identifier: Apache-2.0
"""Identification of robot dynamics from joint motion and torque, for ROS 2."""

import os
import pkgutil

__version__ = "0.1.0"

# A source tree first on the path would hide the generated robot_dyn_id.msg of the installed package.
if not os.path.isdir(os.path.join(__path__[0], "msg")):
    __path__ = pkgutil.extend_path(__path__, __name__)

# The ROS 2 wheels tell their distribution by the major version of rclpy only.
_RCLPY_MAJOR = {"7": "jazzy", "9": "kilted"}


def _running_distribution() -> str | None:
    """Return the ROS 2 distribution that is sourced, else that of the installed wheels."""
    if "ROS_VERSION" in os.environ:  # set by nothing but the setup script of a distribution
        return os.environ.get("ROS_DISTRO")
    from importlib import metadata  # takes 30 ms, which a sourced distribution need not spend

    try:
        version = metadata.version("ros-rclpy")
    except metadata.PackageNotFoundError:
        return None
    return _RCLPY_MAJOR.get(version.partition(".")[0], f"the distribution of ros-rclpy {version}")


def _warn_of_other_distribution() -> None:
    """Say so in one line when the messages were built for another distribution than the running one.

    It is no error, since identification from files needs no ROS.
    """
    try:
        from robot_dyn_id._built_for import DISTRIBUTION as built_for  # written by the build
    except ImportError:
        return
    running = _running_distribution()
    if running and built_for and running != built_for:
        import logging

        logging.getLogger(__name__).warning(
            "robot_dyn_id was built for ROS 2 %s, but ROS 2 %s is running: its messages may not load; "
            "install it again with ROS_DISTRO set to the latter (docs/installation.md)",
            built_for,
            running,
        )


_warn_of_other_distribution()
