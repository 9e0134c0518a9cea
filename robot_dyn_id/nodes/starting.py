# SPDX-License-Identifier: Apache-2.0
"""Start of a node from its executable; SIGINT also ends a node that is still loading."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import NoReturn

INTERRUPTED = 130
"""Exit code of a process that Ctrl-C has ended, by custom of the shells."""


def start(module: str) -> NoReturn:
    """Load a node, run it, and end the process with its exit code.

    Loading takes a second, in which Ctrl-C would otherwise end amid some import with a traceback. There is nothing yet
    that would have to come to rest. Once it runs, `nodes.runtime.running` takes the signals.

    Args:
        module: its name, such as `robot_dyn_id.nodes.torque_residual_monitor`.
    """
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    try:
        code = int(importlib.import_module(module).main())
    except Exception as fault:  # while it loads; `nodes.runtime.running` reports what happens later
        code = _failed(module, fault)
    # Only memory is left to be given back, which takes seconds on a busy computer; `ros2 launch` kills after five.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _failed(module: str, fault: Exception) -> int:
    """Print why a node cannot be loaded; returns the exit code."""
    from robot_dyn_id.faults import missing_library, reported

    error = missing_library(fault) or reported(fault, sys.argv)
    print(f"{module.rpartition('.')[2]}: {error}", file=sys.stderr)
    return error.exit_code
