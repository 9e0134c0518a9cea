# SPDX-License-Identifier: Apache-2.0
"""Reports of faults of this package itself: one line for the user, and the traceback in a file."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from tempfile import mkstemp

from robot_dyn_id.errors import InputError, InternalError
from robot_dyn_id.version import __version__

LIBRARIES = ("numpy", "scipy", "pin", "numba", "mcap", "rosbags", "PyYAML", "zstandard", "rclpy")
"""Libraries whose versions are reported."""

REFUSALS = ("failed to initialize", "error creating node")
"""Beginnings of the errors of rclpy (RCLError) if it cannot start with the environment of the process."""

ROS_VARIABLES = ("ROS_", "RMW_", "FASTDDS_", "FASTRTPS_", "CYCLONEDDS_", "ZENOH_")
"""Beginnings of the environment variables that choose how ROS 2 communicates."""

ROS_FACTS = ("ROS_DISTRO", "ROS_VERSION", "ROS_PYTHON_VERSION")
"""Environment variables that only state what is sourced."""


def report_fault(fault: BaseException, command: Sequence[str]) -> InternalError:
    """Write the traceback of a fault to a file, and make the error that names this file.

    The file holds the versions, the command line and the traceback; neither the environment nor the user's data.

    Args:
        fault: the exception.
        command: the command line.

    Returns:
        The error to show; where no folder can be written to, the traceback goes to standard error.
    """
    text = (
        f"robot_dyn_id {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}\n"
        f"{', '.join(f'{name} {_version(name)}' for name in LIBRARIES)}\n"
        f"command: {shlex.join(command)}\n\n"
        f"{''.join(traceback.format_exception(fault))}"
    )
    what = f"internal error ({_one_line(fault)})"
    try:
        handle, file = mkstemp(prefix="robot-dyn-id-fault-", suffix=".txt", text=True)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError:
        print(text, file=sys.stderr)
        return InternalError(f"{what}; no folder for temporary files can be written to: the traceback is above")
    return InternalError(f"{what}; the traceback is in {file}: please report it")


def explain_setup_error(fault: BaseException) -> InputError | None:
    """The error for a library that is not installed, or for ROS 2 that is not set up; None for every other fault."""
    if type(fault).__name__ == "RCLError" and str(fault).startswith(REFUSALS):
        text = re.sub(r"[ ,]* at (/\S+|\S+\.c):\d+", "", " ".join(str(fault).split()))
        names = [name for name in sorted(os.environ) if name.startswith(ROS_VARIABLES) and name not in ROS_FACTS]
        listed = ", ".join(f"{name}={os.environ[name]}" for name in names)
        action = f"correct or unset what the shell sets: {listed}" if listed else "run `robot-dyn-id doctor`"
        return InputError(f"ROS 2 does not start: {text}; {action}", action)
    if not isinstance(fault, ModuleNotFoundError) or fault.name is None:
        return None
    generated = "robot_dyn_id.msg"  # the Python modules of the messages, which the build makes
    package = fault.name if fault.name == generated else fault.name.partition(".")[0]
    if package == "robot_dyn_id":
        return None
    if package.startswith(("rclpy", "launch", "ament", "rcl_", "rosidl", generated)) or package.endswith("_msgs"):
        action = "source the setup script of ROS 2 and of the workspace of this package (docs/installation.md)"
    else:
        action = f"install it, for example with `pip install {package}`"
    return InputError(f"the Python package {package} is not installed or not on the path: {action}", action)


def _version(library: str) -> str:
    for name in (f"ros-{library}", library):  # a wheel of ROS 2 holds the metadata of its sources, which lag behind
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "not installed"


def _one_line(fault: BaseException) -> str:
    words = " ".join(str(fault).split())
    short = words if len(words) <= 160 else f"{words[:157]}..."
    return f"{type(fault).__name__}: {short}" if short else type(fault).__name__
