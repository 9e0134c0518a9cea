# SPDX-License-Identifier: Apache-2.0
"""Expansion of xacro files in a process of its own, with limits of time and memory.

The expressions of a xacro file are Python: one that never ends, or that fills the memory, ends with its process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import MissingArgumentError, MissingPackageError, ModelError
from robot_dyn_id.model.packages import list_package_folders
from robot_dyn_id.termination import TERMINAL_SIGNALS, TERMINATION_SIGNALS

TIME_LIMIT_S = 30.0
"""Longest time that the expansion of one file may take [s]."""

MEMORY_LIMIT = 2**30
"""Largest address space of the process that expands [bytes]; a file with 1000 links needs a tenth of it."""

_NO_PACKAGE = 7
"""Exit code of the process if the file needs a ROS package that is not found; the output is its name."""

_NO_ARGUMENT = re.compile(r"Undefined substitution argument (\S+)")
"""Message of xacro about an argument that has neither a value nor a default."""

_PROGRAM = (
    f"PACKAGE = {_NO_PACKAGE}"
    + """
import json, os, resource, signal, sys, types
signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends any expression
sys.path[:] = [folder for folder in sys.path if folder]  # no module of the working directory
memory, seconds, limit, path = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
folders, assignments = json.loads(sys.argv[5]), json.loads(sys.argv[6])
answer = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="surrogateescape")
silence = os.open(os.devnull, os.O_WRONLY)
os.dup2(silence, 1)
os.dup2(silence, 2)
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))  # should the parent be gone
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
code, missing = 1, ""
try:
    from robot_dyn_id.model.packages import find_package

    def find(name):
        global missing
        folder = find_package(name, folders)
        if folder is None:
            missing = name
            raise KeyError(name)
        return str(folder)

    index = types.ModuleType("ament_index_python.packages")  # of which xacro uses this function
    index.get_package_share_directory = find
    sys.modules.update({"ament_index_python": types.ModuleType("ament_index_python"), index.__name__: index})
    import xacro
    text = xacro.process_file(path, mappings=assignments).toxml()
    code, text = (0, text) if len(text) <= limit else (1, f"its output is longer than {limit} characters")
    if code == 0:
        text = "\\0".join([text, *(os.path.abspath(part) for part in xacro.all_includes)])
except ModuleNotFoundError as error:
    text = f"{error}; install the package xacro"
except BaseException as error:  # xacro raises whatever its expressions raise, and wraps it
    text, causes = " ".join(str(error).split())[:1000] or type(error).__name__, []
    while error is not None and len(causes) < 100:
        causes.append(error)
        error = error.__context__
    if any(isinstance(cause, MemoryError) for cause in causes):
        text = f"it needs more than {memory >> 20} MiB of memory"
    elif any(isinstance(cause, RecursionError) for cause in causes):
        text = "its macros or expressions call themselves without an end"
    elif missing:
        code, text = PACKAGE, missing
answer.write(text)
answer.flush()
os._exit(code)
"""
)


@dataclass(frozen=True)
class Expansion:
    """Outcome of an expansion.

    Attributes:
        text: the plain URDF.
        parts: files that the xacro file includes, or reads as YAML, in turn those of what it includes.
    """

    text: str
    parts: tuple[Path, ...]


def expand(
    path: Path, limit: int, packages: Sequence[str | Path] = (), arguments: Mapping[str, str] | None = None
) -> Expansion:
    """Expand a xacro file.

    Args:
        path: the file.
        limit: largest length of the output [characters].
        packages: folders of ROS packages for `$(find NAME)`, see `find_package`; the package of the file and those next
            to it are found without being given.
        arguments: values of its arguments (`<xacro:arg>`).

    Raises:
        MissingPackageError: it needs a ROS package that is not found.
        MissingArgumentError: an argument has neither a value nor a default.
        ModelError: xacro refuses the file, or expanding it needs too much time or memory.
        KeyboardInterrupt: Ctrl-C; the process has ended.
    """
    limits = [str(number) for number in (MEMORY_LIMIT, int(TIME_LIMIT_S) + 1, limit)]
    folders = json.dumps([str(folder) for folder in list_package_folders(path, packages)])
    values = json.dumps(dict(arguments or {}))
    command = [sys.executable, "-c", _PROGRAM, *limits, str(path.absolute()), folders, values]
    with _signals() as interruption:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            interruption.ends(process)
            answer, _ = process.communicate(timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise ModelError(f"{path}: xacro cannot expand it (it takes longer than {TIME_LIMIT_S:g} s)") from None
        finally:
            process.kill()
            process.wait()
    if interruption.received or -process.returncode in TERMINAL_SIGNALS:
        raise KeyboardInterrupt
    text, *parts = answer.split(b"\0")  # which neither XML nor a path can hold
    if process.returncode:
        reason = text.decode("utf-8", errors="replace") or f"its process ended by signal {-process.returncode}"
        if process.returncode == _NO_PACKAGE:
            raise MissingPackageError(f"{path}: needs the ROS package {reason}, which is not found")
        if argument := _NO_ARGUMENT.match(reason):
            raise MissingArgumentError(f"{path}: its argument {argument[1]} has no value", name=argument[1])
        raise ModelError(f"{path}: xacro cannot expand it ({reason})")
    return Expansion(text.decode("utf-8", errors="replace"), tuple(Path(os.fsdecode(part)) for part in parts))


@dataclass
class _Interruption:
    """Signals that end a process, and the process that ends with them, whichever comes first.

    A node's handlers only take note, so that waiting would go on. A handler that raises would lose a process that is
    just started, so that it is called once that is known. Other threads than the main one get no signals.

    Attributes:
        handlers: handlers in use, by number of the signal.
        received: number of the signal that came last; 0 without one.
        process: the process; None before it has started.
    """

    handlers: dict[int, Callable[[int, Any], Any]]
    received: int = 0
    process: subprocess.Popen[bytes] | None = None

    def ends(self, process: subprocess.Popen[bytes]) -> None:
        """Let signals end a process, which has started, and do so if one has come."""
        self.process = process
        if self.received:
            self.take(self.received, None)

    def take(self, number: int, frame: Any) -> None:
        """Handle a signal."""
        self.received = number
        if self.process is not None:
            self.process.kill()
            self.handlers[number](number, frame)


@contextmanager
def _signals() -> Iterator[_Interruption]:
    """Handle signals that end a process before the handlers in use."""
    interruption = _Interruption({})
    if threading.current_thread() is threading.main_thread():
        for number in map(int, TERMINATION_SIGNALS):
            handler = signal.getsignal(number)
            if callable(handler):
                interruption.handlers[number] = handler
                signal.signal(number, interruption.take)
    try:
        yield interruption
    finally:
        for number, handler in interruption.handlers.items():
            signal.signal(number, handler)
