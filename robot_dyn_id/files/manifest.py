# SPDX-License-Identifier: Apache-2.0
"""Manifest of a fleet: which recordings are of which robot, of which date, and in which configuration."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import InputError
from robot_dyn_id.files.values import file_errors, read_dataclass, read_value
from robot_dyn_id.text.yaml import read_yaml

DEFAULT = "default"
"""Configuration of recordings that state none."""


@dataclass(frozen=True)
class ManifestEntry:
    """One recording.

    Attributes:
        robot: serial number of the robot.
        date: date and time of the recording [s since the Unix epoch].
        recording: file or folder, or an address of object storage with a protocol, such as `s3://...`.
        configuration: mechanical configuration of the robot, such as its tool; configurations are compared apart.
        robot_description: file of this robot; None: that of the fleet.
    """

    robot: str
    date: float
    recording: str
    configuration: str = DEFAULT
    robot_description: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Serial number and configuration."""
        return self.robot, self.configuration


@dataclass(frozen=True)
class Manifest:
    """Recordings of a fleet of robots of one type.

    Attributes:
        robot_description: URDF, xacro, MJCF or screws file of all robots.
        recordings: the recordings.
        config: configuration file of the identification; None: that without entries.
    """

    robot_description: str
    recordings: tuple[ManifestEntry, ...]
    config: str | None = None

    def __post_init__(self) -> None:
        """Check the entries.

        Raises:
            InputError: no recordings, a recording that is listed twice, or a name that cannot be that of a file.
        """
        if not self.recordings:
            raise InputError("recordings is empty: list at least one recording")
        listed: dict[str, ManifestEntry] = {}
        for entry in self.recordings:
            if entry.recording in listed:
                raise InputError(
                    f"{entry.recording} is listed twice, for robot {listed[entry.recording].robot} and {entry.robot}: "
                    "list every recording once"
                )
            listed[entry.recording] = entry
            for what, name in (("robot", entry.robot), ("configuration", entry.configuration)):
                if not name or name.startswith(".") or any(c in "/\\@\0\n" for c in name) or len(name) > 100:
                    raise InputError(f"{what} {name!r}: not the name of a file; use letters, digits, - and _")


def read_manifest(path: str | Path) -> Manifest:
    """Read a manifest; relative paths in it begin at its own folder.

    Raises:
        InputError: not readable, an unknown key (the nearest known one is named), a wrong type or value.
    """
    content = read_yaml(path, "manifest")
    with file_errors(path, InputError):
        manifest = read_dataclass(Manifest, content, readers={"recordings": _read_entries})
    folder = Path(path).expanduser().resolve().parent
    return Manifest(
        robot_description=_from_folder(folder, manifest.robot_description),
        recordings=tuple(
            ManifestEntry(
                entry.robot,
                entry.date,
                _from_folder(folder, entry.recording),
                entry.configuration,
                None if entry.robot_description is None else _from_folder(folder, entry.robot_description),
            )
            for entry in manifest.recordings
        ),
        config=None if manifest.config is None else _from_folder(folder, manifest.config),
    )


def is_address(path: str) -> bool:
    """Whether a path is an address with a protocol, which fsspec opens."""
    return "://" in path


def _from_folder(folder: Path, path: str) -> str:
    return path if is_address(path) else str(folder / Path(path).expanduser())


def _read_entries(value: Any, key: str) -> tuple[ManifestEntry, ...]:
    if not isinstance(value, list):
        raise InputError(f"{key} must be a list of entries with robot, date and recording")
    readers = {"date": _read_date, "robot": _read_name, "configuration": _read_name}
    return tuple(
        read_dataclass(ManifestEntry, entry, f"{key}[{number}]", readers) for number, entry in enumerate(value)
    )


def _read_name(value: Any, key: str) -> str:
    """A name, which must be text: YAML turns 0012 into 10, and 1.50 into 1.5.

    Raises:
        InputError: not text.
    """
    if isinstance(value, (int, float, date)):
        raise InputError(f"{key}: {value} is not text; quote it as it is on the robot, such as '0012'")
    return str(read_value(str, value, key))


def _read_date(value: Any, key: str) -> float:
    """A date, or date and time (UTC unless stated), in ISO 8601 [s since the Unix epoch].

    Raises:
        InputError: not a date.
    """
    text = value.isoformat() if isinstance(value, date) else value
    try:
        moment = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        raise InputError(f"{key}: {text!r} is not a date; write 2026-01-31 or 2026-01-31T12:00:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
