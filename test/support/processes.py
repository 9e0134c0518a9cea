# SPDX-License-Identifier: Apache-2.0
"""Processes of tests, which end with the test whatever happens in it."""

import subprocess
from contextlib import contextmanager


@contextmanager
def child(command, **options):
    """A process, see `subprocess.Popen`; what still runs at the end is killed, as an assertion may have failed."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
