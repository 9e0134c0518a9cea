# SPDX-License-Identifier: Apache-2.0
"""Wrenches of a 6-axis sensor: geometry_msgs/msg/WrenchStamped of a bag, or `wrench` of a `.npz`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from robot_dyn_id.data.recording import Recording
from robot_dyn_id.data.wrench import WrenchRecording
from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.bag_files import is_storage
from robot_dyn_id.recordings.joint_states import NANOSECONDS
from robot_dyn_id.recordings.merged import check_clock
from robot_dyn_id.recordings.reading import Unreadable, name_source_of, reading
from robot_dyn_id.recordings.rosbag2 import BagRecording, MessageReading, open_recording
from robot_dyn_id.recordings.types.wrench import AXES, WRENCH

KEY = "wrench"
"""Channels of a `.npz`: fx fy fz [N] tx ty tz [N m] at each stamp `t`, shape (n, 6), in the order of the message."""

HINGES_KEY = "wrenches"
"""Channels of a `.npz` as in `KEY`, of the sensor in each hinge, shape (n, hinges, 6); NaN for hinges without one."""

_FORCE_FIRST = [3, 4, 5, 0, 1, 2]
"""Rows of (force; torque) as (moment; force)."""


def open_wrench(path: str | Path, joints: Recording, topic: str | None = None) -> WrenchRecording:
    """The wrenches that belong to a recording of joints.

    Args:
        path: bag folder, storage file or `.npz`.
        joints: the recording of the joints.
        topic: topic of a bag; None: its only one of that type.

    Raises:
        InputError: nothing readable, no such topic or key, several topics, several frames, or a clock that differs from
            the joints'.
    """
    path = Path(path)
    with reading(path):
        if path.is_dir() or is_storage(path):
            return _of_bag(path, joints, topic)
        if path.suffix != ".npz":
            raise Unreadable(f"a wrench comes from a bag ({WRENCH.name}) or from the key {KEY} of a .npz")
        with np.load(path, allow_pickle=False) as arrays:
            if KEY not in arrays.files or "t" not in arrays.files:
                raise Unreadable(f"no key {KEY} and t; it holds {', '.join(arrays.files)}")
            t, wrench = (np.asarray(arrays[key], dtype=np.float64) for key in ("t", KEY))
        if wrench.shape != (len(t), 6):
            raise Unreadable(f"{KEY} has shape {wrench.shape}, expected {(len(t), 6)}: fx fy fz tx ty tz")
        return WrenchRecording(name_source_of(path), t, wrench.T[_FORCE_FIRST])


def open_hinge_wrenches(path: str | Path, joints: Sequence[str]) -> dict[int, WrenchRecording]:
    """The wrenches of the hinges of a `.npz`, by the index of the joint.

    Args:
        path: the file.
        joints: names of the robot's joints; the hinges are in the order of the file's `joint_names`.

    Raises:
        InputError: nothing readable, no such key, or hinges that are not those of the robot.
    """
    path = Path(path)
    with reading(path):
        if path.suffix != ".npz":
            raise Unreadable(f"wrenches of hinges come from the key {HINGES_KEY} of a .npz")
        with np.load(path, allow_pickle=False) as arrays:
            missing = [key for key in ("t", "joint_names", HINGES_KEY) if key not in arrays.files]
            if missing:
                raise Unreadable(f"no key {', '.join(missing)}; it holds {', '.join(arrays.files)}")
            t, wrenches = (np.asarray(arrays[key], dtype=np.float64) for key in ("t", HINGES_KEY))
            names = [str(name) for name in arrays["joint_names"]]
        if wrenches.shape != (len(t), len(names), 6):
            expected = (len(t), len(names), 6)
            raise Unreadable(f"{HINGES_KEY} has shape {wrenches.shape}, expected {expected}: fx fy fz tx ty tz")
        found = {}
        for number, joint in enumerate(joints):
            if joint not in names:
                raise Unreadable(f"no wrench of the hinge {joint}; it holds {', '.join(names)}")
            own = wrenches[:, names.index(joint)]
            if not np.isnan(own).all():
                found[number] = WrenchRecording(f"{name_source_of(path)}, hinge {joint}", t, own.T[_FORCE_FIRST])
        if not found:
            raise Unreadable(f"{HINGES_KEY} is NaN for every hinge")
        return found


def _of_bag(path: Path, joints: Recording, topic: str | None) -> WrenchRecording:
    recording = open_recording(path, topic, MessageReading(types={WRENCH.name: WRENCH}))
    if recording.inventory.undecodable:
        raise InputError(f"{path}: a message on {recording.topic} is not a {WRENCH.name}")
    check_clock(joints, recording, "wrench")
    chunks = list(recording.chunks(AXES))
    t = np.concatenate([chunk.t for chunk in chunks]) + (recording.epoch - joints.epoch) / NANOSECONDS
    wrench = np.concatenate([chunk.q for chunk in chunks])
    order = np.unique(t, return_index=True)[1]
    order = order[np.isfinite(wrench[order]).all(axis=1)]
    source = f"{path} {recording.topic}"
    return WrenchRecording(source, t[order], wrench[order].T[_FORCE_FIRST], _find_frame(recording, source))


def _find_frame(recording: BagRecording, source: str) -> str:
    """The `header.frame_id` of all messages of a topic.

    Raises:
        InputError: several frames.
    """
    frames = {
        _read_frame(message)
        for _, kind, _, message in recording.bag.messages((recording.topic,), lambda _: None)
        if kind == WRENCH.name
    }
    if len(frames) > 1:
        named = ", ".join(sorted(frame or "empty" for frame in frames))
        raise InputError(
            f"{source}: its messages are in several frames ({named}); publish each sensor on its own topic"
        )
    return "".join(frames)


def _read_frame(message: bytes) -> str:
    """The `frame_id` of a message in CDR that begins with a std_msgs/Header."""
    order: Literal["little", "big"] = "little" if message[1:2] == b"\x01" else "big"
    size = int.from_bytes(message[12:16], order)
    return message[16 : 16 + size].rstrip(b"\x00").decode(errors="replace")
