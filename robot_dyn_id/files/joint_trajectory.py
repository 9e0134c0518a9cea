# SPDX-License-Identifier: Apache-2.0
"""A JointTrajectory as YAML, in the form of `ros2 topic echo` and `ros2 topic pub --yaml-file`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_dyn_id.data.trajectory_rows import NANOSECONDS, TrajectoryRows
from robot_dyn_id.errors import InputError
from robot_dyn_id.files.values import check_keys, file_errors, read_value
from robot_dyn_id.text.files import read_text, write_atomically
from robot_dyn_id.text.yaml import YAML_LIMIT, Row, format_yaml, parse_yaml

SHORTENED = "..."
"""Last element of the arrays that `ros2 topic echo` cuts off."""

CHANNELS = ("positions", "velocities", "accelerations", "effort")
"""Fields of a point, in the order of `TrajectoryRows`."""


def is_joint_trajectory(path: str | Path) -> bool:
    """Whether a file begins like a JointTrajectory or a goal that holds one, with `joint_names` and `points`."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file.read(4096).splitlines()]
    except OSError:  # reported by the reader
        return False
    return "points:" in lines and any(line.startswith("joint_names:") for line in lines)


def read_joint_trajectory(path: str | Path) -> TrajectoryRows:
    """Read the first trajectory of a file: a JointTrajectory, or a goal that holds one in `trajectory`.

    Raises:
        InputError: not readable, not a trajectory, or cut off by `ros2 topic echo`.
    """
    text = read_text(path, "joint trajectory", YAML_LIMIT, InputError)
    lines = text.splitlines(keepends=True)
    begin = 1 if lines and lines[0].startswith("---") else 0
    ends = [number for number, line in enumerate(lines) if number > begin and line.startswith("---")]
    content = parse_yaml("".join(lines[begin : ends[0] if ends else None]), str(path))
    with file_errors(path, InputError):
        return parse_joint_trajectory(content)


def parse_joint_trajectory(content: Any) -> TrajectoryRows:
    """Turn the content of a file into rows.

    Raises:
        UsageError: a value of the wrong type, or a key that points do not have; the nearest one is named.
        InputError: not a trajectory, or cut off.
    """
    if isinstance(content, dict) and isinstance(content.get("trajectory"), dict):
        content = content["trajectory"]
    if not isinstance(content, dict) or "points" not in content or "joint_names" not in content:
        raise InputError("not a JointTrajectory: it must hold joint_names and points")
    points = read_value(tuple[Any, ...], content["points"], "points")
    if SHORTENED in points:
        raise InputError("points are cut off: write the file with `ros2 topic echo --full-length`")
    times, rows = [], []
    for number, point in enumerate(points):
        key = f"points[{number}]"
        check_keys(point, (*CHANNELS, "time_from_start"), key)
        times.append(_time(point.get("time_from_start", {}), f"{key}.time_from_start"))
        rows.append([_numbers(point.get(name), f"{key}.{name}") for name in CHANNELS])
    positions, velocities, accelerations, efforts = (
        tuple(row[index] for row in rows) for index in range(len(CHANNELS))
    )
    header = content.get("header") or {}
    return TrajectoryRows(
        read_value(tuple[str, ...], content["joint_names"], "joint_names"),
        tuple(times),
        positions,
        velocities,
        accelerations,
        efforts,
        frame_id=str(header.get("frame_id", "")) if isinstance(header, dict) else "",
        stamp=_time(header.get("stamp", {}), "header.stamp") if isinstance(header, dict) else 0,
    )


def _numbers(values: Any, key: str) -> tuple[float, ...]:
    if isinstance(values, list) and SHORTENED in values:
        raise InputError(f"{key} is cut off: write the file with `ros2 topic echo --full-length`")
    return () if values is None else tuple(read_value(tuple[float, ...], values, key))


def _time(value: Any, key: str) -> int:
    parts = read_value(dict[str, int], value, key)
    unknown = [name for name in parts if name not in ("sec", "nanosec")]
    if unknown:
        raise InputError(f"{key}.{unknown[0]}: unknown key; sec and nanosec are read")
    return int(parts.get("sec", 0)) * NANOSECONDS + int(parts.get("nanosec", 0))


def write_joint_trajectory(path: str | Path, rows: TrajectoryRows) -> None:
    """Write a trajectory.

    Raises:
        InputError: the file cannot be written.
    """
    channels = (rows.positions, rows.velocities, rows.accelerations, rows.efforts)
    points = [
        {
            **{name: Row(channel[number]) for name, channel in zip(CHANNELS, channels, strict=True)},
            "time_from_start": _stamp(time),
        }
        for number, time in enumerate(rows.times)
    ]
    content = {
        "header": {"stamp": _stamp(rows.stamp), "frame_id": rows.frame_id},
        "joint_names": list(rows.joint_names),
        "points": points,
    }
    write_atomically(Path(path), format_yaml(content))


def _stamp(time: int) -> dict[str, int]:
    seconds, nanoseconds = divmod(time, NANOSECONDS)
    return {"sec": seconds, "nanosec": nanoseconds}
