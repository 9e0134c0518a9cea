# SPDX-License-Identifier: Apache-2.0
"""Check that the Python that runs this script and this computer can make the environment: one line if they cannot."""

import importlib.util
import platform
import shutil
import sys
import sysconfig
from pathlib import Path

OLDEST, NEWEST = (3, 10), (3, 13)
"""Versions of Python that the ROS 2 wheels are published for."""

MACHINE = "x86_64"
"""Processor that the ROS 2 wheels are published for."""


def obstacle(version, machine, missing):
    """The line that states why the environment cannot be made, and what to do; empty if it can be made.

    Args:
        version: (major, minor) version of Python.
        machine: processor, as `platform.machine` names it.
        missing: names of what is not installed.
    """
    running, oldest, newest = ("{}.{}".format(*bound) for bound in (version, OLDEST, NEWEST))
    found = f"{sys.executable} is Python {running}"
    if not OLDEST <= tuple(version) <= NEWEST:
        return f"{found}; {oldest} to {newest} is needed: give another one, as in `make demo PYTHON=python{newest}`"
    if machine != MACHINE:
        return f"no package index has ROS 2 for {machine}: use colcon on a ROS 2 distribution (docs/installation.md)"
    if missing:
        packages = f"build-essential python{running}-dev python{running}-venv"
        return f"{found} and lacks {', '.join(missing)}: install them (Debian, Ubuntu: `apt install {packages}`)"
    return ""


def lacking():
    """Names of what the environment needs and is not installed."""
    header = Path(sysconfig.get_path("include")) / "Python.h"
    modules = [f"the module {name}" for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    programs = [name for name in ("gcc", "g++") if shutil.which(name) is None]
    return [*modules, *([] if header.exists() else [str(header)]), *programs]


if __name__ == "__main__":
    sys.exit(obstacle(sys.version_info[:2], platform.machine(), lacking()) or None)
