# SPDX-License-Identifier: Apache-2.0
"""Requests whose computations are done elsewhere, so that whoever handles them goes on to handle joint states."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

from robot_dyn_id.excitation.execution.feedback import TimePoint

Result = TypeVar("Result")

Steps = Generator[Callable[[], Any], tuple[Any, TimePoint], Result]
"""A request: it yields what is to be computed, and receives the value with the time at which it is there."""


class Work(Protocol):
    """A computation that has begun."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def result(self) -> Any:
        """Its value, once it has ended; raises its exception."""
        ...


Compute = Callable[[Callable[[], Any]], Work]
"""Function that begins a computation."""


class DoneWork:
    """A computation that is made when its value is taken.

    Attributes:
        done: whether its value may be taken.
        result: the computation.
    """

    def __init__(self, compute: Callable[[], Any]) -> None:
        """Begin without computing."""
        self.done, self.result = True, compute


class RunningSteps:
    """A request under way."""

    def __init__(self, steps: Steps[None], compute: Compute) -> None:
        """Begin before the first step.

        Args:
            steps: the request.
            compute: begins a computation.
        """
        self._steps, self._compute = steps, compute
        self._work: Work | None = None

    def advance(self, now: TimePoint) -> bool:
        """Go on as far as the computations have; returns whether the request has ended. Raises its exception.

        Args:
            now: present time.
        """
        try:
            if self._work is None:
                self._work = self._compute(next(self._steps))
            while self._work.done:
                try:
                    value = self._work.result()
                except Exception as error:
                    further = self._steps.throw(error)
                else:
                    further = self._steps.send((value, now))
                self._work = self._compute(further)
        except StopIteration:
            return True
        return False
