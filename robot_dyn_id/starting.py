"""What the executables of nodes call: a node that is asked to end while it still loads does so without a word."""

from __future__ import annotations

import importlib
import os
import signal

INTERRUPTED = 130
"""Exit code of a process that Ctrl-C has ended, by custom of the shells."""


def start(module: str) -> int:
    """Load a node and run it; the exit code of its process.

    Loading takes a second, in which Ctrl-C would otherwise end amid some import with a traceback. There is nothing yet
    that would have to come to rest. Once it runs, `nodes.running` takes the signals.

    Args:
        module: its name, such as `robot_dyn_id.nodes.monitor`.
    """
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    return int(importlib.import_module(module).main())
