# SPDX-License-Identifier: Apache-2.0
"""Processes of tests, which end with the test whatever happens in it."""

import subprocess
import sys
from contextlib import contextmanager

HANG_S = 600.0
"""Deadline of what has none of its own: it ends a test that hangs, on however busy a computer."""


def run_program(*words, check=False, **options):
    """A program that has ended, with its output as text, see `subprocess.run`."""
    words = [str(word) for word in words]
    return subprocess.run(words, capture_output=True, text=True, check=check, timeout=HANG_S, **options)


def run_python(program, *words, **options):
    """The text of a Python program with its arguments, as `run_program`."""
    return run_program(sys.executable, "-c", program, *words, **options)


@contextmanager
def child(command, **options):
    """A process, see `subprocess.Popen`; what still runs at the end is killed, as an assertion may have failed."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
