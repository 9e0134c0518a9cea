# SPDX-License-Identifier: Apache-2.0
"""Answers of a service that are given after its callback has returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class _Request:
    answer: Any
    header: Any = None


class DeferredAnswers:
    """Answers of a service with the fields `success` and `message`.

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

    def defer(self, answer: Any) -> Any:
        """The answer for the callback to return, which is sent when it is given."""
        self._waiting.append(_Request(answer))
        return answer

    def give(self, answer: Any, success: bool, message: str) -> None:
        """Send a deferred answer; before the callback has returned it, that does."""
        answer.success, answer.message = success, message
        for request in [one for one in self._waiting if one.answer is answer]:
            self._waiting.remove(request)
            if request.header is not None:
                self._send(answer, request.header)

    def _returned(self, answer: Any, header: Any) -> None:
        """Send the return value of a callback, unless it is deferred."""
        for request in self._waiting:
            if request.answer is answer:
                request.header = header
                return
        self._send(answer, header)
