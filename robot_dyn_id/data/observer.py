# SPDX-License-Identifier: Apache-2.0
"""Observers of recorded samples: everything that looks at a recording shares one pass over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import Recording


class Observer(Protocol):
    """Collector of what one examination needs to know of a recording, whatever its chunks.

    Each observer also has `conclude`, which returns what it found once all samples are observed.
    """

    def observe(self, chunk: Chunk) -> None:
        """Continue with the next samples."""
        ...


def observe(recording: Recording, joints: Sequence[str], *observers: Observer) -> None:
    """Show all samples of a recording to observers, in one pass.

    Args:
        recording: the recording.
        joints: names of the joints, in the order of the columns.
        observers: observers, which conclude afterwards.
    """
    for _ in observed(recording.chunks(joints), *observers):
        pass


def observed(chunks: Iterator[Chunk], *observers: Observer) -> Iterator[Chunk]:
    """Chunks on their way to a reader, each of which observers see first."""
    for chunk in chunks:
        for observer in observers:
            observer.observe(chunk)
        yield chunk
