# SPDX-License-Identifier: Apache-2.0
"""Recordings from files: one module per format, chosen by what a path is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import csv, lerobot, matlab, rosbag2, streamed_npz
from robot_dyn_id.recordings.bag_files import STORAGES, is_bag, list_files_of
from robot_dyn_id.recordings.meaning import STATED_BY_FILE, ColumnMeaning
from robot_dyn_id.recordings.merged import ChannelTopics, merge
from robot_dyn_id.recordings.npz import write_npz
from robot_dyn_id.recordings.reading import FileRecording, reading
from robot_dyn_id.recordings.referenced import Referenced

__all__ = ["FORMATS", "ColumnMeaning", "FileRecording", "list_files_of", "open_recording", "write_npz"]

FORMATS: Mapping[str, Callable[[Path, ColumnMeaning], FileRecording]] = {
    ".npz": streamed_npz.open_recording,
    ".csv": csv.open_recording,
    matlab.SUFFIX: matlab.open_recording,
    lerobot.SUFFIX: lerobot.open_recording,
}
"""Functions that open a file by its suffix, bags aside; a new format is one module and one line."""


def open_recording(
    path: str | Path,
    topic: str | None = None,
    reference_topic: str | None = None,
    *,
    channel_topics: ChannelTopics | None = None,
    columns: ColumnMeaning = STATED_BY_FILE,
    definitions: str | Path | None = None,
) -> FileRecording:
    """Open a recording: a rosbag2 folder or one of its files, a `.bag`, `.npz`, `.csv`, `.mat` or `.parquet`.

    Example:
        ```python
        recording = rdi.open_recording("recording.npz")
        print(recording.source, recording.joint_names)
        ```

    Args:
        path: folder or file.
        topic: the topic of a bag with the joint states; None: the only one, or the one called joint_states.
        reference_topic: the topic of the commanded positions in a bag; None: no reference of its own. Other formats
            have their own channel.
        channel_topics: topics of a bag with further channels: `effort`, `current`, `temperature`.
        columns: names of the joints where a file or the messages of a bag have none; unit of the positions where the
            format leaves it open (`.parquet`).
        definitions: folder with `.msg` files of message types whose definition a bag lacks.

    Raises:
        InputError: nothing there, nothing known, nothing in it, or not readable.
        MissingDefinitionError: a bag lacks the definition of a message type.
    """
    path = Path(path)
    if is_bag(path):
        how = rosbag2.MessageReading.given(definitions, columns.joint_names)
        joints = rosbag2.open_recording(path, topic, how)
        used = _topics_of(reference_topic, channel_topics or {})
        others = {topic: names for topic, names in joints.others.items() if topic.strip("/") not in used}
        joints = replace(joints, others=others)
        recording = merge(joints, path, channel_topics, how) if channel_topics else joints
        if reference_topic is None:
            return recording
        return Referenced(recording, rosbag2.open_recording(path, reference_topic, how))
    suffix = lerobot.SUFFIX if lerobot.is_episode(path) else path.suffix
    if suffix in FORMATS:
        return FORMATS[suffix](path, columns)
    with reading(path):
        what = "unknown kind of recording" if path.exists() else "no such file"
    suffixes = ", ".join((*STORAGES, *FORMATS))
    known = f"give a bag folder or a file ending in {suffixes}"
    raise InputError(f"{path}: {what}; {known}")


def _topics_of(reference_topic: str | None, channel_topics: ChannelTopics) -> set[str]:
    """Topics that are read for a purpose of their own, without the first slash and the name of a field."""
    topics = [] if reference_topic is None else [reference_topic]
    for given in channel_topics.values():
        topics += [given] if isinstance(given, str) else given.values()
    return {topic.partition(":")[0].strip("/") for topic in topics}
