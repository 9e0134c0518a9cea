# SPDX-License-Identifier: Apache-2.0
"""Computation in a thread, because messages continue to arrive."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Generic, TypeVar

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.faults import report_fault

Value = TypeVar("Value")


class Computation(Generic[Value]):
    """A computation in a thread of its own, which does not outlive the process; its end is polled."""

    def __init__(self, compute: Callable[[], Value]) -> None:
        """Begin to compute."""
        self._future: Future[Value] = Future()
        threading.Thread(target=self._run, args=(compute,), daemon=True).start()

    def _run(self, compute: Callable[[], Value]) -> None:
        try:
            self._future.set_result(compute())
        except Exception as error:
            self._future.set_exception(error)

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def result(self) -> Value:
        """Its value, once it has ended; raises its exception."""
        return self._future.result()

    def take_outcome(self) -> Value | RobotDynIdError:
        """Its value or why there is none, once it has ended; an unexpected exception is reported to a file."""
        try:
            return self.result()
        except RobotDynIdError as error:
            return error
        except Exception as fault:
            return report_fault(fault, sys.argv)


class LatestComputation(Generic[Value]):
    """Computation for the latest input: where another one has come meanwhile, it begins again."""

    def __init__(self, compute: Callable[..., Value]) -> None:
        """Prepare to compute."""
        self._compute = compute
        self._running: tuple[tuple[object, ...], Computation[Value]] | None = None
        self._latest: tuple[object, ...] = ()

    def submit(self, *given: object) -> None:
        """Compute for this input, as soon as a computation that is running has ended."""
        self._latest = given
        if self._running is None:
            self._running = given, Computation(partial(self._compute, *given))

    def drop(self) -> None:
        """Drop what is being computed."""
        self._running = None

    def poll(self) -> Computation[Value] | None:
        """The computation for the latest input if it has ended, once."""
        if self._running is None or not self._running[1].done:
            return None
        (given, computation), self._running = self._running, None
        if given is self._latest:
            return computation
        self.submit(*self._latest)
        return None
