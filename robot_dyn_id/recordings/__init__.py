# SPDX-License-Identifier: Apache-2.0
"""Recordings from files: one module per format, chosen by what a path is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import csv, npz, rosbag2
from robot_dyn_id.recordings.bag_files import STORAGES, files_of, is_bag
from robot_dyn_id.recordings.npz import write_npz
from robot_dyn_id.recordings.reading import FileRecording, reading
from robot_dyn_id.recordings.referenced import Referenced

__all__ = ["FORMATS", "FileRecording", "files_of", "open_recording", "write_npz"]

FORMATS: Mapping[str, Callable[[Path], FileRecording]] = {
    ".npz": npz.open_recording,
    ".csv": csv.open_recording,
}
"""Functions that open a file by its suffix, bags aside; a new format is one module and one line."""


def open_recording(path: str | Path, topic: str | None = None, reference_topic: str | None = None) -> FileRecording:
    """Open a recording: a rosbag2 folder or one of its files, a `.npz` or a `.csv`.

    Example:
        ```python
        recording = rdi.open_recording("recording.npz")
        print(recording.source, recording.joint_names)
        ```

    Args:
        path: folder or file.
        topic: the JointState topic of a bag; None: the only one, or the one called joint_states.
        reference_topic: the JointState topic of the commanded positions in a bag; None: no
            reference. Other formats have their own channel.

    Raises:
        InputError: nothing there, nothing known, nothing in it, or not readable.
    """
    path = Path(path)
    if is_bag(path):
        recording = rosbag2.open_recording(path, topic)
        if reference_topic is None:
            return recording
        return Referenced(recording, rosbag2.open_recording(path, reference_topic))
    if path.suffix in FORMATS:
        return FORMATS[path.suffix](path)
    with reading(path):
        what = "unknown kind of recording" if path.exists() else "no such file"
    suffixes = ", ".join((*STORAGES, *FORMATS))
    known = f"give a bag folder or a file ending in {suffixes}"
    raise InputError(f"{path}: {what}; {known}")
