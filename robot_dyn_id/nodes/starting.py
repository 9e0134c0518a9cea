# SPDX-License-Identifier: Apache-2.0
"""Start of a node from its executable; SIGINT also ends a node that is still loading."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from robot_dyn_id.cores import use_one_core

INTERRUPTED = 130
"""Exit code of a process that Ctrl-C has ended, by custom of the shells."""


EXPECTED_EXIT_CODES = (0, INTERRUPTED, -signal.SIGINT)
"""Exit codes of a node that ends on request, also while Python or the node is still loading."""

LOST_EXIT_CODE = 255
"""Exit code that asyncio (CPython before 3.13.2) reports for a process that ends just when it is sent a signal.

Sending the signal takes the exit code away from the watcher of the process ("Unknown child process pid"). No node of
this package ends with this code.
"""


def has_failed(code: int, launch_ends: bool) -> bool:
    """Decide whether a node that a launch has started has failed.

    Args:
        code: exit code as the launch reports it; Ctrl-C in a terminal can reach a node before the launch.
        launch_ends: whether the launch is ending, when it sends signals to its processes.
    """
    return code not in EXPECTED_EXIT_CODES and not (launch_ends and code == LOST_EXIT_CODE)


def start(name: str) -> NoReturn:
    """Load a node, run it, and end the process with its exit code.

    Loading takes a second, in which Ctrl-C would otherwise end amid some import with a traceback. There is nothing yet
    that would have to come to rest. Once it runs, `nodes.runtime.running` takes the signals.

    Args:
        name: its name, or that of the executable of several.
    """
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait actively
    use_one_core()  # the middleware has threads, which a fork would lose
    try:
        from robot_dyn_id.nodes.runtime.middleware import check_domain, check_middleware

        check_middleware()
        check_domain()
        from robot_dyn_id.nodes.executables import run_executable

        code = run_executable(name)
    except Exception as fault:  # while it loads; `nodes.runtime.running` reports what happens later
        code = _failed(name, fault)
    # Only memory is left to be given back, which takes seconds on a busy computer; `ros2 launch` kills after five.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _failed(name: str, fault: Exception) -> int:
    """Print why a node cannot be loaded; returns the exit code."""
    from robot_dyn_id.errors import RobotDynIdError
    from robot_dyn_id.faults import explain_setup_error, report_fault

    error = fault if isinstance(fault, RobotDynIdError) else explain_setup_error(fault) or report_fault(fault, sys.argv)
    print(f"{name}: {error}", file=sys.stderr)
    return error.exit_code
