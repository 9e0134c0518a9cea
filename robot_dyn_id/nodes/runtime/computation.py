# SPDX-License-Identifier: Apache-2.0
"""Computation in a thread, because messages continue to arrive."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.faults import reported

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

    def outcome(self) -> Value | RobotDynIdError:
        """Its value or why there is none, once it has ended; an unexpected exception is reported to a file."""
        try:
            return self.result()
        except RobotDynIdError as error:
            return error
        except Exception as fault:
            return reported(fault, sys.argv)
