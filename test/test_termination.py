# SPDX-License-Identifier: Apache-2.0
"""Signals that end a process are handled, and those that a process was started to ignore stay ignored."""

import json
import os
import pty
import signal
import subprocess
import sys

from support.commands import COMMAND
from support.processes import HANG_S, child

from robot_dyn_id.termination import TERMINATION_SIGNALS

FAULTS = ("SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS")
IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")

ENDING = """
import json, os, resource, signal
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
ending = []
for number in signal.valid_signals():
    process = os.fork()
    if process == 0:
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(0)
    _, status = os.waitpid(process, os.WUNTRACED)
    if os.WIFSIGNALED(status):
        ending.append(int(number))
    elif os.WIFSTOPPED(status):
        os.kill(process, signal.SIGKILL)
print(json.dumps(ending))
"""

HANDLED = """
import json, os, signal
from robot_dyn_id.termination import TERMINATION_SIGNALS, handle_termination
for number in TERMINATION_SIGNALS:  # whatever the tests were started to ignore
    signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
received = []
handle_termination(lambda number, frame: received.append(number))
for number in TERMINATION_SIGNALS:
    os.kill(os.getpid(), number)
print(json.dumps(received))
"""


def answer(program):
    return json.loads(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)


def test_the_list_has_every_signal_that_ends_a_process_and_can_be_handled():
    left_out = {signal.SIGKILL, *(getattr(signal, name) for name in (*FAULTS, *IGNORED_BY_PYTHON))}
    assert set(answer(ENDING)) - left_out == set(TERMINATION_SIGNALS)


def test_all_are_handled_but_those_that_the_process_ignores():
    assert sorted(answer(HANDLED)) == sorted(set(TERMINATION_SIGNALS) - {signal.SIGHUP})


def test_a_closed_terminal_ends_the_dashboard():
    terminal, end = pty.openpty()
    os.set_inheritable(end, True)
    leader = [
        sys.executable,
        "-c",
        "import fcntl, os, signal, sys, termios; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
        "fcntl.ioctl(0, termios.TIOCSCTTY); os.execvp(sys.argv[1], sys.argv[1:])",
    ]
    streams = {"stdin": end, "stdout": end, "stderr": subprocess.PIPE}
    with child([*leader, *COMMAND, "watch"], **streams, start_new_session=True) as process:
        os.close(end)
        while b"Ctrl-C ends" not in os.read(terminal, 65536):
            pass
        os.close(terminal)
        _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (0, b"")
