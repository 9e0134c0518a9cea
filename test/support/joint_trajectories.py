# SPDX-License-Identifier: Apache-2.0
"""A joint trajectory of the arm of `model_nodes`, as rows and as the message that another library writes."""

import numpy as np

from robot_dyn_id.data.trajectory_rows import TrajectoryRows
from robot_dyn_id.recordings.joint_trajectories import TYPE_NAME
from support.recording_files import types

NAMES = ("shoulder", "elbow", "wrist")


def rows(duration=4.0, size=0.4, names=NAMES):
    """A motion from rest to rest, with velocities alone."""
    s = np.linspace(0.0, 1.0, 9)
    q = np.outer(3 * s**2 - 2 * s**3, np.full(len(names), size))
    dq = np.outer(6 * s - 6 * s**2, np.full(len(names), size)) / duration
    times = tuple(round(1e9 * duration * x) for x in s)
    empty = ((),) * len(s)
    return TrajectoryRows(
        tuple(names), times, *(tuple(map(tuple, x.tolist())) for x in (q, dq)), empty, empty, "base", 7
    )


def message_of(trajectory):
    t = types().types
    duration, time, header = (t[f"builtin_interfaces/msg/{x}"] for x in ("Duration", "Time")), None, None
    duration, time = duration
    header = t["std_msgs/msg/Header"](time(*divmod(trajectory.stamp, 10**9)), trajectory.frame_id)
    channels = (trajectory.positions, trajectory.velocities, trajectory.accelerations, trajectory.efforts)
    points = [
        t["trajectory_msgs/msg/JointTrajectoryPoint"](*map(np.array, row), duration(*divmod(at, 10**9)))
        for at, *row in zip(trajectory.times, *channels, strict=True)
    ]
    message = t[TYPE_NAME](header, list(trajectory.joint_names), points)
    return bytes(types().serialize_cdr(message, TYPE_NAME))
