# SPDX-License-Identifier: Apache-2.0
"""Recordings that are decoded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import DerivedRecording, Recording
from robot_dyn_id.data.stream_store import StreamStore


class StoredRecording(DerivedRecording):
    """A recording whose chunks are kept in a store after the first pass.

    Estimation makes ten and more passes over the data; decoding would take most of its time.
    """

    def __init__(self, recording: Recording, store: StreamStore | None = None) -> None:
        """Wrap a recording.

        Args:
            recording: the recording.
            store: store that keeps the chunks; None: one for this recording alone.
        """
        self.recording = recording
        self._store = StreamStore() if store is None else store

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """See `Recording.chunks`."""
        names = tuple(joints)
        key = (id(self), names)  # the store does not outlive its recordings
        return self._store.stream(key, lambda: self.recording.chunks(names), lambda chunk: chunk.nbytes)
