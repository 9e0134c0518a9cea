# SPDX-License-Identifier: Apache-2.0
"""Answers of a service that are given after its callback has returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Verdict = tuple[bool, str] | None
"""Success and message of an answer; None while it is not known."""


@dataclass
class _Request:
    answer: Any
    deadline: float
    header: Any = None


class DeferredAnswers:
    """Answers of a `Trigger` service that wait for a verdict.

    rclpy sends the return value of a callback at once, and its EventsExecutor takes no coroutines.
    """

    def __init__(self, service: Any) -> None:
        """Take over the sending of the answers of a service."""
        self._send: Callable[[Any, Any], None] = service.send_response
        self._waiting: list[_Request] = []
        service.send_response = self._returned

    @property
    def empty(self) -> bool:
        """Whether all requests are answered."""
        return not self._waiting

    def defer(self, answer: Any, deadline: float) -> Any:
        """The answer for the callback to return, which is sent later.

        Args:
            answer: answer without a verdict.
            deadline: time of the steady clock at which a verdict is due [s].
        """
        self._waiting.append(_Request(answer, deadline))
        return answer

    def give(self, verdict: Callable[[float], Verdict]) -> None:
        """Send the answers that have a verdict.

        Args:
            verdict: function that takes a deadline.
        """
        for request in [one for one in self._waiting if one.header is not None]:
            known = verdict(request.deadline)
            if known is not None:
                self._waiting.remove(request)
                request.answer.success, request.answer.message = known
                self._send(request.answer, request.header)

    def _returned(self, answer: Any, header: Any) -> None:
        """Send the return value of a callback, unless it is deferred."""
        for request in self._waiting:
            if request.answer is answer:
                request.header = header
                return
        self._send(answer, header)
