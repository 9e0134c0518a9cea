# SPDX-License-Identifier: Apache-2.0
"""Experiments with flexible joints from files: the joints' side, the motors' side, and what kind of experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import csv, npz, open_recording, rosbag2
from robot_dyn_id.recordings.bag_files import is_bag
from robot_dyn_id.recordings.npz import MOTOR
from robot_dyn_id.recordings.reading import FileRecording, name_source_of
from robot_dyn_id.recordings.rosbag2 import MessageReading


@dataclass(frozen=True)
class RecordedExperiment:
    """A file of an experiment.

    Attributes:
        source: name for messages, usually the path.
        links: positions and torques of the joints.
        motors: angles and torques of motors; None where not recorded.
        static: whether every sample is a pose at rest, and stamps mean nothing.
        periodic: whether the first sample follows the last one.
        moving: joints that move; empty: all.
    """

    source: str
    links: FileRecording
    motors: FileRecording | None = None
    static: bool = False
    periodic: bool = False
    moving: tuple[str, ...] = ()


def open_experiment(
    path: str | Path,
    topic: str | None = None,
    motor_topic: str | None = None,
    order: Sequence[str] = (),
    further: Sequence[str] = (),
    reading: MessageReading | None = None,
) -> RecordedExperiment:
    """Open a bag, a `.npz` or a `.csv`.

    Motors are on a topic of their own, in keys or columns that begin with `motor_`, or recorded like further joints.

    Args:
        path: folder or file.
        topic: the topic of a bag with the joints; None: the only one, or the one called joint_states.
        motor_topic: that with the motors; None: the bag has no motors' side of its own.
        order: names of the motors in the columns of a `.npz` that does not name them.
        further: names of motors that may be recorded like further joints.
        reading: settings for the messages of bags.

    Raises:
        InputError: nothing there, nothing known, nothing in it, or not readable.
    """
    path = Path(path)
    static, periodic, moving = False, False, tuple[str, ...]()
    motors: FileRecording | None = None
    links: FileRecording
    if is_bag(path):
        links = joints = rosbag2.open_recording(path, topic, reading)
        if motor_topic is not None:
            motors = own = rosbag2.open_recording(path, motor_topic, reading)
            if own.topic == joints.topic:
                raise InputError(f"{path}: joints and motors cannot both be {own.topic}: give topic and motor_topic")
    elif path.suffix == ".npz":
        stamped, periodic, moving = npz.open_flags(path)
        static, links = not stamped, npz.open_recording(path, need_time=False)
        if npz.has_motors(path):
            motors = npz.open_recording(path, MOTOR, need_time=False, order=order)
    else:
        links = open_recording(path)
        if path.suffix == ".csv" and csv.has_motors(path):
            motors = csv.open_recording(path, side=MOTOR)
    if motors is None and not set(further).isdisjoint(links.joint_names):
        motors = links
    return RecordedExperiment(name_source_of(path), links, motors, static, periodic, moving)
