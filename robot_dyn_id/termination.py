# SPDX-License-Identifier: Apache-2.0
"""Signals that end a process unless it handles them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection
from typing import Any

TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""Signals that a terminal sends to all of its processes: Ctrl-C, Ctrl-backslash, and its end."""

TERMINATION_SIGNALS = (
    *(signal.SIGTERM, *TERMINAL_SIGNALS),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU),
    *(signal.SIGPOLL, signal.SIGPWR, signal.SIGSTKFLT),
    *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
)
"""Signals that end a process by default and can be handled.

Those of faults (SIGSEGV, SIGABRT, ...) cannot be handled in Python, which ignores SIGPIPE and SIGXFSZ.
"""


def handle_termination(handler: Callable[[int, Any], Any], always: Collection[int] = ()) -> None:
    """Set the handler of all `TERMINATION_SIGNALS`, except for those that the process was started to ignore.

    `nohup` starts a process with SIGHUP ignored, a shell a job in the background with SIGINT and SIGQUIT ignored.

    Args:
        handler: receives the number of the signal and the frame.
        always: signals that are handled even if they are ignored.
    """
    for number in TERMINATION_SIGNALS:
        if number in always or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def ignore_terminal() -> None:
    """Ignore the signals of the terminal, in a process that the one which started it ends."""
    for number in TERMINAL_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
