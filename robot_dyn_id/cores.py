# SPDX-License-Identifier: Apache-2.0
"""Independent computations on all cores, with the results of one core bit for bit.

Fits, searches and simulations consist of many short NumPy calls that hold the interpreter lock: on two threads they
take longer than on one. They run in forked processes instead, which share the memory of this one until they write to
it. Each result depends on its item alone, and results are returned in the order of the items.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import pickle
import select
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from robot_dyn_id.termination import TERMINAL_SIGNALS, TERMINATION_SIGNALS, ignore_terminal

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_ITEMS = 1024
"""Most items that wait at a time: their numbers fit into one page, the least buffer of a pipe."""

MOST_PROCESSES = 8
"""Most processes that compute: each has copies of what it writes to."""

CHECK_MS = 1000
"""Time without a result after which helpers are checked [ms]: the end of one is not noticed while another process holds
its pipe."""

PATIENCE_S = 60.0
"""Time without any result after which the helpers are ended and this process computes alone [s]: a helper that waits
forever, such as for a lock that no thread of its process holds, must not stop a command."""

PATIENCE_RATIO = 10.0
"""The same as a multiple of the longest item that this process has computed; the longer time counts."""

THREADS = Path("/proc/self/task")
"""Folder with one entry per thread of this process, those of libraries included."""

MAPPED_FILES = Path("/proc/self/maps")
"""Mapped files of this process, shared libraries included."""

OPENBLAS_FUNCTIONS = tuple(
    f"{prefix}openblas_{{}}_num_threads{suffix}" for prefix in ("", "scipy_") for suffix in ("", "64_")
)
"""Names of the functions that get and set the number of threads, by build of OpenBLAS."""

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Folder of the control groups, whose quotas containers set."""

PR_SET_PDEATHSIG = 1
"""Number of the request to be killed with the parent process (prctl)."""

_NUMBER = struct.Struct("<i")
_FRAME = struct.Struct("<iq")
_RECEIVED_BYTES = 1 << 16

_one_core = ContextVar("one_core", default=False)

fork_lock = threading.Lock()
"""Held while this process forks, and by a `Companion` while it works: a forked process lacks its thread, and would wait
forever for what that holds, such as the lock of a module that it imports."""


class Companion(threading.Thread):
    """Thread that does not prevent forks: it holds `fork_lock` whenever it does more than wait."""


def count_cores() -> int:
    """Number of cores that this process may use, by its affinity and by the quotas of its control groups."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([cores, *_quotas(CONTROL_GROUPS, Path("/proc/self/cgroup"))])


def _quotas(folder: Path, membership: Path) -> list[int]:
    """Cores that the control groups (version 2) of a process grant, rounded up.

    Args:
        folder: folder of all groups.
        membership: file that names the group of the process.
    """
    groups = {folder}
    with suppress(OSError):
        for line in membership.read_text(encoding="utf-8").splitlines():
            if line.startswith("0::/"):
                own = folder / line[4:]
                groups |= {own, *(one for one in own.parents if one.is_relative_to(folder))}
    found = []
    for group in groups:
        with suppress(OSError, ValueError):  # also without a limit, which is "max"
            quota, period = map(int, (group / "cpu.max").read_text(encoding="utf-8").split())
            found.append(max(1, math.ceil(quota / period)))
    return found


def use_one_core() -> None:
    """Compute everything in this process from now on, such as in a node whose other threads have deadlines.

    A program calls it that must not be forked: one with connections, devices or graphics that a copy would disturb.
    """
    _one_core.set(True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep the linear algebra of a block, or of a decorated function, in its thread.

    Matrices are small here, and the threads of OpenBLAS wait for each other actively: on a computer with other work a
    computation takes up to twenty times as long with them. Other libraries than OpenBLAS are left as they are.
    """
    before = [(set_count, get_count()) for get_count, set_count in _openblas_functions()]
    for set_count, _ in before:
        set_count(1)
    try:
        yield
    finally:
        for set_count, count in before:
            set_count(count)


def _openblas_functions() -> Iterator[tuple[Callable[[], int], Callable[[int], None]]]:
    """Functions that get and set the number of threads of each OpenBLAS in this process."""
    import scipy.linalg  # noqa: F401 - its own OpenBLAS, in addition to that of NumPy

    with suppress(OSError):
        lines = MAPPED_FILES.read_text(encoding="utf-8", errors="replace").splitlines()
        for path in sorted({line.split(maxsplit=5)[-1] for line in lines if "openblas" in line}):
            library = ctypes.CDLL(path)
            for name in OPENBLAS_FUNCTIONS:
                if hasattr(library, name.format("set")):
                    yield getattr(library, name.format("get")), getattr(library, name.format("set"))


def count_workers() -> int:
    """Processes that `map_in_order` uses: one per core, at most `MOST_PROCESSES`, or 1 where a fork is not safe.

    That is outside of Linux, in a thread, such as that of a Dask worker, while other threads than a `Companion` run,
    also those of libraries, such as of a BLAS that uses several, where rclpy is imported, whose middleware starts
    threads at any time, and in a process that `map_in_order` or `use_one_core` has limited.
    """
    if sys.platform != "linux" or _one_core.get() or "rclpy" in sys.modules:
        return 1
    companions = sum(isinstance(one, Companion) for one in threading.enumerate())
    alone = threading.current_thread() is threading.main_thread() and _count_threads() <= 1 + companions
    return min(count_cores(), MOST_PROCESSES) if alone else 1


def _count_threads() -> int:
    """Number of threads of this process, those included that Python does not know."""
    try:
        return len(list(THREADS.iterdir()))
    except OSError:  # not mounted: those that Python knows, and perhaps more
        return sys.maxsize


def map_in_order(function: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Result, None, None]:
    """Apply a function to items on all cores.

    Args:
        function: depends on its item alone and changes nothing, so that it can be applied in any order, and again. Its
            result can be pickled.
        items: the items.

    Yields:
        The results in the order of the items. A caller that may not take them all closes the generator, which ends the
        helpers. An exception of the function is raised in the place of its result.
    """
    for start in range(0, len(items), MOST_ITEMS):
        part = items[start : start + MOST_ITEMS]
        workers = min(count_workers(), len(part))
        if workers < 2:
            yield from map(function, part)
            continue
        crew = _Crew(function, part)
        try:
            crew.start(workers - 1)
            yield from crew.results()
        finally:
            crew.close()


@dataclass
class _Helper:
    """Forked process.

    Attributes:
        process: its number.
        results: file descriptor that its results are read from.
        received: bytes of a result that is not complete.
    """

    process: int
    results: int
    received: bytearray = field(default_factory=bytearray)


class _Crew:
    """This process and its helpers, each of which takes the next item when it has finished one."""

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        """Put the numbers of the items into a pipe."""
        self._function, self._items = function, items
        self._helpers: list[_Helper] = []
        self._done: dict[int, Any] = {}
        self._failed: set[int] = set()
        self._longest_s, self._latest = 0.0, time.monotonic()
        self._waiting, end = os.pipe()
        os.write(end, b"".join(_NUMBER.pack(number) for number in range(len(items))))
        os.close(end)

    def start(self, count: int) -> None:
        """Fork helpers; fewer if the system refuses."""
        control, parent = ctypes.CDLL(None).prctl, os.getpid()  # a forked process loads no library
        for _ in range(count):
            received, sent = os.pipe()
            # an interrupt between the fork and `_serve` would end the helper as if it were this process
            signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_SIGNALS)
            try:
                with fork_lock, warnings.catch_warnings():
                    # of Python 3.12, about other threads: a `Companion`, which waits for the lock
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process = os.fork()
                if process == 0:
                    try:
                        control(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                        if os.getppid() == parent:  # it has not ended before this request
                            self._serve(sent)
                    finally:
                        os._exit(0)  # nothing of the first process is flushed or closed twice
            except OSError:  # too many processes, or too little memory: this one does it alone
                os.close(received)
                os.close(sent)
                return
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINAL_SIGNALS)
            os.close(sent)
            self._helpers.append(_Helper(process, received))

    def results(self) -> Iterator[Any]:
        """Results in the order of the items."""
        for number in range(len(self._items)):
            while number not in self._done and number not in self._failed:
                taken = os.read(self._waiting, _NUMBER.size)
                if taken:
                    (own,) = _NUMBER.unpack(taken)
                    begun = time.monotonic()
                    try:
                        self._done[own] = self._function(self._items[own])
                    except Exception:
                        self._failed.add(own)
                    self._latest = time.monotonic()
                    self._longest_s = max(self._longest_s, self._latest - begun)
                elif not self._helpers:
                    break
                self._receive(wait=not taken)
                if time.monotonic() - self._latest > max(PATIENCE_S, PATIENCE_RATIO * self._longest_s):
                    self._end_helpers()
            # what failed, or was lost with a helper, is computed again: in its place, and for the exception
            yield self._done.pop(number) if number in self._done else self._function(self._items[number])
            self._latest = time.monotonic()

    def close(self) -> None:
        """End all helpers."""
        self._end_helpers()
        os.close(self._waiting)

    def _end_helpers(self) -> None:
        for helper in self._helpers:
            self._end(helper)
        self._helpers = []

    def _receive(self, wait: bool) -> None:
        """Receive results of helpers, and notice those that have ended."""
        poll = select.poll()
        for helper in self._helpers:
            poll.register(helper.results, select.POLLIN)
        ready = {place for place, _ in poll.poll(CHECK_MS if wait else 0)}
        if wait and not ready:
            ended = [one for one in self._helpers if _has_ended(one.process)]
            ready = {place for place, _ in poll.poll(0)}  # what it has written before its end
            for helper in [one for one in ended if one.results not in ready]:
                self._helpers.remove(helper)
                self._end(helper)
        for helper in [one for one in self._helpers if one.results in ready]:
            data = os.read(helper.results, _RECEIVED_BYTES)
            if not data:
                self._helpers.remove(helper)
                self._end(helper)
            helper.received += data
            self._latest = time.monotonic()
            while len(helper.received) >= _FRAME.size:
                number, size = _FRAME.unpack_from(helper.received)
                end = _FRAME.size + size
                if len(helper.received) < end:
                    break
                try:  # the result of an item that failed is empty
                    self._done[number] = pickle.loads(bytes(helper.received[_FRAME.size : end]))
                except Exception:
                    self._failed.add(number)
                del helper.received[:end]

    @staticmethod
    def _end(helper: _Helper) -> None:
        os.close(helper.results)
        with suppress(ProcessLookupError):
            os.kill(helper.process, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(helper.process, 0)

    def _serve(self, results: int) -> None:
        """Work as a helper until no item is left; the result of an item that fails is empty."""
        ignore_terminal()  # the first process ends its helpers
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINAL_SIGNALS)
        for number in set(TERMINATION_SIGNALS).difference(TERMINAL_SIGNALS):
            signal.signal(number, signal.SIG_DFL)
        gc.freeze()  # a search for cycles would copy all memory
        use_one_core()
        with Path(os.devnull).open("w", encoding="utf-8") as nothing:
            # a thread that is not here any more may hold the locks of the others
            sys.stdout = sys.stderr = nothing
            for stream in (1, 2):  # who reads from the first process sees its end
                os.dup2(nothing.fileno(), stream)
            while taken := os.read(self._waiting, _NUMBER.size):
                (number,) = _NUMBER.unpack(taken)
                try:
                    data = pickle.dumps(self._function(self._items[number]), pickle.HIGHEST_PROTOCOL)
                except Exception:
                    data = b""
                frame = memoryview(_FRAME.pack(number, len(data)) + data)
                while frame:
                    frame = frame[os.write(results, frame) :]


def _has_ended(process: int) -> bool:
    """Whether a child process has ended; it can still be waited for."""
    try:
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # something else has waited for it
        return True
