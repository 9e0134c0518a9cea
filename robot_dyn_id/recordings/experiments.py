"""Experiments with flexible joints from files: the joints' side, the motors' side, and what kind of experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import csv, npz, open_recording, rosbag2
from robot_dyn_id.recordings.bag_files import is_storage
from robot_dyn_id.recordings.npz import MOTOR
from robot_dyn_id.recordings.reading import FileRecording, reading


@dataclass(frozen=True)
class RecordedExperiment:
    """A file of an experiment.

    Attributes:
        source: what a person calls it.
        links: positions and torques of the joints.
        motors: angles and torques of motors, by the names of their joints; None where there are none.
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
    path: str | Path, topic: str | None = None, motor_topic: str | None = None, order: Sequence[str] = ()
) -> RecordedExperiment:
    """Open a bag, a `.npz` or a `.csv`.

    Args:
        path: folder or file.
        topic: the JointState topic of a bag with the joints; None: the only one, or the one called joint_states.
        motor_topic: that with the motors, named like their joints; None: the bag has no motors' side. Other formats
            have it in keys or columns that begin with `motor_`.
        order: joints of the motors of a `.npz` that does not name them.

    Raises:
        InputError: nothing there, nothing known, nothing in it, or not readable.
    """
    path = Path(path)
    with reading(path):
        in_bag = path.is_dir() or is_storage(path)
        exists = path.exists()
    if in_bag:
        links = rosbag2.open_recording(path, topic)
        motors = rosbag2.open_recording(path, motor_topic) if motor_topic is not None else None
        if motors is not None and motors.topic == links.topic:
            raise InputError(f"{path}: joints and motors cannot both be {links.topic}: give topic and motor_topic")
        return RecordedExperiment(str(path), links, motors)
    if exists and path.suffix == ".npz":
        stamped, periodic, moving = npz.open_flags(path)
        own = npz.open_recording(path, need_time=False)
        with_motors = npz.has_motors(path)
        motor = npz.open_recording(path, MOTOR, need_time=False, order=order) if with_motors else None
        return RecordedExperiment(str(path), own, motor, not stamped, periodic, moving)
    recording = open_recording(path)
    with_motors = path.suffix == ".csv" and csv.has_motors(path)
    return RecordedExperiment(str(path), recording, csv.open_recording(path, MOTOR) if with_motors else None)
