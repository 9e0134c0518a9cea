# SPDX-License-Identifier: Apache-2.0
"""Large `.npz` archives, read in parts: each pass reads the arrays side by side, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import find_columns_of
from robot_dyn_id.findings import Finding
from robot_dyn_id.recordings import npz
from robot_dyn_id.recordings.meaning import STATED_BY_FILE, ColumnMeaning
from robot_dyn_id.recordings.reading import (
    FileRecording,
    Unreadable,
    mask_infinities,
    name_source_of,
    reading,
    report_dropped,
    report_unused,
)

HELD = 2**26
"""Size of all arrays up to which an archive is held in memory [bytes]."""


def open_recording(path: Path, meaning: ColumnMeaning = STATED_BY_FILE) -> FileRecording:
    """Open a `.npz`: held in memory, or read in parts if its arrays are large.

    Arrays in Fortran order cannot be read row by row: with them an archive is held in memory whatever its size.

    Args:
        path: path of the file.
        meaning: names of the joints, where the file has no `joint_names`.

    Raises:
        InputError: not an archive, a missing key, an array of wrong type or shape.
    """
    with reading(path), npz.open_archive(path) as archive:
        layout = npz.read_layout_of(archive)
        rows = {key: one.rows for key, one in layout.channels.items()}
        own = npz.read_joint_names_of(archive)
        names = meaning.joints(len(own) or layout.channels["q"].shape[1], own)
        streamed = archive.zip is not None and sum(one.nbytes for one in layout.channels.values()) > HELD
        if not streamed or any(one.fortran for one in layout.channels.values()):
            return npz.open_recording(path, names=names)
        gains = npz.read_gains_of(archive, names)
        for key, one in layout.channels.items():
            expected = (rows["t"],) if key == "t" else (rows["t"], len(names))
            if one.shape != expected:
                raise Unreadable(f"{key} has shape {one.shape}, expected {expected} (t x joint_names)")
    recording = StreamedNpzRecording(
        name_source_of(path), path, names, tuple(layout.channels), ignored=layout.ignored, gains=gains
    )
    with reading(path):
        unstamped = sum(int(np.count_nonzero(~np.isfinite(part["t"]))) for part in recording.parts(("t",)))
        if unstamped == rows["t"]:
            raise Unreadable("no samples")
    return replace(recording, unstamped=unstamped)


@dataclass(frozen=True)
class StreamedNpzRecording:
    """Samples of a `.npz` that are read as they are needed.

    Attributes:
        source: the path that the user gave, as one line of text.
        path: the file.
        joint_names: names of the joints, in the order of the columns.
        keys: `t` and the channels that the archive holds.
        unstamped: number of samples without a time stamp.
        ignored: keys that mean nothing here.
        gains: see `KeyedRecording`.
        epoch: 0, `t` is the file's own.
        effort_is_torque: True, the format holds torques in `tau` and currents in `current`.
        chunk_size: samples per chunk.
    """

    source: str
    path: Path = field(repr=False)
    joint_names: tuple[str, ...]
    keys: tuple[str, ...]
    unstamped: int = 0
    ignored: tuple[str, ...] = ()
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    epoch: int = 0
    effort_is_torque: bool = True
    chunk_size: int = 8192

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Stream the samples; see `Recording.chunks`.

        Raises:
            InputError: a joint that the file does not hold, or a file that cannot be read (any more).
        """
        columns = find_columns_of(self.joint_names, joints, self.source)
        with reading(self.path):
            for part in self.parts(self.keys):
                stamped = np.isfinite(part["t"])
                channels = {key: mask_infinities(part[key][stamped][:, columns]) for key in self.keys if key != "t"}
                if stamped.any():
                    yield Chunk(t=part["t"][stamped], **channels)

    def parts(self, keys: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Iterate over the rows of some arrays, `chunk_size` at a time.

        Raises:
            Unreadable: an array that is damaged, or not as it was when the file was opened.
        """
        with npz.open_archive(self.path) as archive, ExitStack() as members:
            channels = npz.read_layout_of(archive).channels
            if not set(keys) <= channels.keys() or len({channels[key].rows for key in keys}) > 1:
                raise Unreadable("the file has changed while it was read")
            open_members: dict[str, Any] = {}
            for key in keys:
                assert archive.zip is not None
                open_members[key] = members.enter_context(archive.zip.open(f"{key}.npy"))
                open_members[key].read(channels[key].start)
            count = channels[keys[0]].rows
            for first in range(0, count, self.chunk_size):
                rows = min(self.chunk_size, count - first)
                yield {key: npz.read_rows(open_members[key], key, channels[key], rows) for key in keys}

    def dropped(self, joints: Sequence[str]) -> Mapping[str, int]:
        """Number of samples that are left out, by reason."""
        return {npz.UNSTAMPED: self.unstamped} if self.unstamped else {}

    def findings(self, joints: Sequence[str]) -> tuple[Finding, ...]:
        """Findings about the samples."""
        unused = report_unused(self.source, "keys", self.ignored)
        return (*unused, *report_dropped(self.source, self.dropped(joints), "sample"))
