# SPDX-License-Identifier: Apache-2.0
"""Progress of long computations."""

from collections.abc import Callable

Progress = Callable[[str], None]
"""Callback that receives one status line per stage."""


def ignore_progress(line: str) -> None:
    """Callback that does nothing."""
