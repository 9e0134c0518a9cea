# SPDX-License-Identifier: Apache-2.0
"""The neutral `.npz`: `t`, `q`, `joint_names`; if there are, `dq`, `tau`, `current`, `temperature`, `reference`.

`kp` and `kd`, one number per joint, are the gains of the drives that follow the reference.
"""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.findings import Finding
from robot_dyn_id.recordings.reading import (
    Unreadable,
    check_regular,
    mask_infinities,
    name_source_of,
    reading,
    report_dropped,
    report_unused,
)
from robot_dyn_id.text.files import replacing

CHANNELS = ("q", "dq", "tau", "current", "temperature", "reference")
_FLAGS = ("moving", "periodic", "motor_joint_names")
GAINS = ("kp", "kd")
"""Keys of the gains of the drives."""

_UNUSED = ("ddq", "units", "wrench", *GAINS, *_FLAGS)  # part of the format, and no part of a sample
_BROKEN = (
    *(ValueError, TypeError, KeyError, EOFError, MemoryError, OverflowError, RuntimeError, SyntaxError),
    *(struct.error, zlib.error, zipfile.BadZipFile, tokenize.TokenError),
)
"""Exceptions of NumPy and zipfile on archives that are damaged or hold something else."""

MOTOR = "motor_"
"""Beginning of the keys and columns of the motors of flexible joints: `motor_q`, `motor_tau`, `motor_current`."""

EFFORT_WORDS = ("effort", "torque", "joint_effort", "joint_torque")
"""Names of efforts in other formats, where one says what they are."""

LARGEST = 2**30
"""Largest size of all arrays of an archive that is held in memory [bytes]: all channels of 7 joints at 1 kHz for 50
minutes and more."""

UNSTAMPED = "no time stamp (t is NaN)"


@dataclass(frozen=True)
class KeyedRecording(ArrayRecording):
    """Samples of a file of named arrays, and what was left out of them.

    Attributes:
        unstamped: number of samples without a time stamp.
        ignored: keys that mean nothing here.
        gains: gains of the drives by key, see `GAINS`, and joint; empty where the file has none.
    """

    unstamped: int = 0
    ignored: tuple[str, ...] = ()
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def dropped(self, joints: Sequence[str]) -> Mapping[str, int]:
        """Number of samples that are left out, by reason."""
        return {UNSTAMPED: self.unstamped} if self.unstamped else {}

    def findings(self, joints: Sequence[str]) -> tuple[Finding, ...]:
        """Findings about the samples."""
        unused = report_unused(self.source, "keys", self.ignored)
        return (*unused, *report_dropped(self.source, self.dropped(joints), "sample"))


def open_recording(
    path: Path, side: str = "", need_time: bool = True, order: Sequence[str] = (), names: Sequence[str] = ()
) -> KeyedRecording:
    """Read a `.npz`.

    Args:
        path: path of the file.
        side: what the keys of the channels begin with: nothing, or `MOTOR` for those of the motors of flexible joints.
        need_time: whether `t` must be there; where it need not be and is not, the stamps count the samples.
        order: joints of the motors' columns, where neither `motor_joint_names` nor `joint_names` fits.
        names: joints of the columns; empty: `joint_names`, which must be there.

    Raises:
        InputError: not an archive, a missing key, an array of wrong type or shape.
    """
    with reading(path):
        arrays, ignored = _load(path, side, need_time, names)
        recording = make_recording_of(path, arrays, ignored, side, order)
        with open_archive(path) as archive:
            return replace(recording, gains={} if side else read_gains_of(archive, recording.joint_names))


def make_recording_of(
    path: Path,
    arrays: Mapping[str, NDArray[np.generic]],
    ignored: tuple[str, ...],
    side: str = "",
    order: Sequence[str] = (),
) -> KeyedRecording:
    """Recording of named arrays, checked.

    Args:
        path: file that they are from.
        arrays: `joint_names`, the channels and, unless the stamps count the samples, `t`; by key.
        ignored: keys that mean nothing here.
        side: see `open_recording`.
        order: see `open_recording`.

    Raises:
        Unreadable: an array of wrong type or shape.
    """
    joints = _names("joint_names", arrays["joint_names"])
    own = arrays.get("motor_joint_names")
    further = ("t", "joint_names", "motor_joint_names")
    values = {key: _numbers(key, array, 2) for key, array in arrays.items() if key not in further}
    columns = values[f"{side}q"].shape[1]
    names = joints if not side else _motors(columns, own, joints, order)
    t = _numbers("t", arrays["t"], 1) if "t" in arrays else np.arange(len(values[f"{side}q"]), dtype=np.float64)
    for key, array in values.items():
        if array.shape != (len(t), len(names)):
            expected = f"{(len(t), len(names))} (t x joint_names)"
            raise Unreadable(f"{key} has shape {array.shape}, expected {expected}")
    stamped = np.isfinite(t)
    if not stamped.any():
        raise Unreadable("no samples")
    samples = Chunk(
        t=t[stamped], **{key.removeprefix(side): mask_infinities(array[stamped]) for key, array in values.items()}
    )
    return KeyedRecording(name_source_of(path), names, samples, unstamped=int((~stamped).sum()), ignored=ignored)


def read_gains_of(archive: NpzFile, joints: Sequence[str]) -> dict[str, dict[str, float]]:
    """Gains of the drives by key and joint; empty where an archive has none.

    Raises:
        Unreadable: not one number of 0 or more per joint.
    """
    gains = {}
    for key in GAINS:
        if key not in archive.files:
            continue
        values = _numbers(key, _array(archive, key), 1)
        if values.shape != (len(joints),) or not np.all(values >= 0.0) or not np.isfinite(values).all():
            raise Unreadable(f"{key} must have one number of 0 or more for each of {len(joints)} joints")
        gains[key] = dict(zip(joints, values.tolist(), strict=True))
    return gains


def _motors(
    columns: int, own: NDArray[np.generic] | None, joints: tuple[str, ...], order: Sequence[str]
) -> tuple[str, ...]:
    """Joints of the motors' columns."""
    names = joints if len(joints) == columns else tuple(order)
    if own is not None:
        names = _names("motor_joint_names", own)
    if len(names) != columns:
        raise Unreadable(f"motor_q has {columns} columns for {len(names)} motors: add the key motor_joint_names")
    return names


def open_flags(path: Path) -> tuple[bool, bool, tuple[str, ...]]:
    """Whether a `.npz` has time stamps, is periodic, and which joints move in it; empty: it does not say.

    Raises:
        InputError: not an archive, or flags of a wrong type.
    """
    with reading(path), open_archive(path) as archive:
        found = {key: _array(archive, key) for key in _FLAGS if key in archive.files}
        periodic = found.get("periodic", np.array(False))
        if periodic.dtype != bool or periodic.ndim:
            raise Unreadable("periodic must be True or False")
        moving = _names("moving", found["moving"]) if "moving" in found else ()
        return "t" in archive.files, bool(periodic), moving


def has_motors(path: Path) -> bool:
    """Whether a `.npz` holds the motors' side.

    Raises:
        InputError: not an archive.
    """
    with reading(path), open_archive(path) as archive:
        return any(f"{MOTOR}{key}" in archive.files for key in CHANNELS)


def write_npz(path: Path, joint_names: Sequence[str], t: Array, **values: Array) -> None:
    """Write a `.npz`, whole or not at all.

    Args:
        path: file to write; an existing one is replaced.
        joint_names: one per column.
        t: time [s], shape (n,).
        **values: arrays by key (`q`, `dq`, `tau`, ...), each of shape (n, joints); `units` of shape (joints,).

    Raises:
        InputError: the file cannot be written.
    """
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, t=t, joint_names=np.array(joint_names, str), **values)


@contextmanager
def open_archive(path: Path, limit: float = math.inf) -> Iterator[NpzFile]:
    """An open archive.

    Args:
        path: the file.
        limit: largest size of all arrays [bytes]; that of compressed ones is at most `LARGEST`.

    Raises:
        Unreadable: not an archive, or a larger one.
    """
    check_regular(path)
    if path.stat().st_size == 0:
        raise Unreadable("the file is empty; write it again")
    with path.open("rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
        except _BROKEN:
            raise Unreadable("not a .npz archive, or a damaged one; write it with numpy.savez") from None
        if not isinstance(archive, NpzFile):
            raise Unreadable("a single array (.npy), not a .npz archive; write it with numpy.savez")
        _check_sizes(archive, limit)
        yield archive


def _check_sizes(archive: NpzFile, limit: float) -> None:
    """Refuse archives that would fill the memory, by the sizes that their directory states (no more is unpacked).

    Raises:
        Unreadable: larger than `limit`.
    """
    assert archive.zip is not None
    members = archive.zip.infolist()
    total = sum(member.file_size for member in members)
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        limit = min(limit, LARGEST)  # little on the disk can be more than the disk holds
    if total > limit:
        raise Unreadable(
            f"its arrays take {total / 2**30:.1f} GiB, and at most {limit / 2**30:g} GiB are read of compressed "
            "arrays, or of arrays in Fortran order; write C-ordered arrays with numpy.savez, or a bag"
        )


def _load(
    path: Path, side: str, need_time: bool, names: Sequence[str]
) -> tuple[dict[str, NDArray[np.generic]], tuple[str, ...]]:
    """Arrays of the known keys that are there, with names of the joints, and the other keys."""
    required = ("t",) * need_time + (f"{side}q",) + ("joint_names",) * (not names)
    with open_archive(path, LARGEST) as archive:
        _require(archive, required)
        known = dict.fromkeys((*required, "t", "joint_names", *(f"{side}{key}" for key in CHANNELS)))
        if side:
            known["motor_joint_names"] = None
        arrays = {key: _array(archive, key) for key in known if key in archive.files}
        if names:
            arrays["joint_names"] = np.array(names)
        return arrays, _ignored(archive, (*known, *CHANNELS))


def _require(archive: NpzFile, keys: Sequence[str]) -> None:
    """Check that an archive has keys.

    Raises:
        Unreadable: it lacks some.
    """
    missing = [key for key in keys if key not in archive.files]
    if missing:
        held = ", ".join(archive.files) or "nothing"
        raise Unreadable(f"no key {', '.join(missing)}; it holds {held}; add the keys that docs/configuration.md lists")


def _ignored(archive: NpzFile, known: Sequence[str]) -> tuple[str, ...]:
    """Keys of an archive that mean nothing here.

    Raises:
        Unreadable: efforts are there by another name, and by none that is known.
    """
    others = tuple(key for key in archive.files if key not in (*known, *_UNUSED) and not key.startswith(MOTOR))
    renamed = [key for key in others if key.lower().rstrip("s") in EFFORT_WORDS]
    if renamed and not {"tau", "current"} & set(archive.files):
        raise Unreadable(f"key {renamed[0]} is not known; rename it to tau [N m or N], or to current [A]")
    return others


def _array(archive: np.lib.npyio.NpzFile, key: str) -> NDArray[np.generic]:
    try:
        _check_header(archive, key)
        array: NDArray[np.generic] = archive[key]
    except _BROKEN:
        raise Unreadable(f"{key} is damaged or holds Python objects; write plain arrays") from None
    if not isinstance(array, np.ndarray):  # a member of that name that is not an .npy file
        raise Unreadable(f"{key} is not an array; write it with numpy.savez")
    return array


def _check_header(archive: NpzFile, key: str) -> None:
    """Compare the size that the header of an array states with that of the file: NumPy would allocate the former.

    Raises:
        ValueError: it states more.
    """
    _header(archive, key)


@dataclass(frozen=True)
class StoredArray:
    """Header of an array in an archive.

    Attributes:
        shape: its shape.
        kind: type of its numbers.
        fortran: whether its columns are stored one after the other.
        start: size of the header [bytes].
    """

    shape: tuple[int, ...]
    kind: np.dtype[Any]
    fortran: bool
    start: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.shape[0] if self.shape else 0

    @property
    def nbytes(self) -> int:
        """Size of the array [bytes]."""
        return math.prod(self.shape) * self.kind.itemsize


@dataclass(frozen=True)
class ArchiveLayout:
    """Arrays of an archive.

    Attributes:
        channels: `t` and the channels of the links, by key.
        ignored: keys that mean nothing here.
    """

    channels: dict[str, StoredArray]
    ignored: tuple[str, ...]


def read_layout_of(archive: NpzFile) -> ArchiveLayout:
    """Headers of the time stamps and channels of an archive.

    Raises:
        Unreadable: a missing key, or an array that is damaged, of another type or of other dimensions.
    """
    _require(archive, ("t", "q"))
    channels = {}
    for key in ("t", *CHANNELS):
        if key not in archive.files:
            continue
        try:
            header = _header(archive, key)
        except _BROKEN:
            raise Unreadable(f"{key} is damaged or holds Python objects; write plain arrays") from None
        if header is None:
            raise Unreadable(f"{key} is not an array; write it with numpy.savez")
        _check_numbers(key, header.kind, header.shape, 1 if key == "t" else 2)
        channels[key] = header
    return ArchiveLayout(channels, _ignored(archive, ("t", "joint_names", *CHANNELS)))


def read_joint_names_of(archive: NpzFile) -> tuple[str, ...]:
    """Names of the joints of an archive; empty: it has none.

    Raises:
        Unreadable: they are not texts, or not unique.
    """
    return _names("joint_names", _array(archive, "joint_names")) if "joint_names" in archive.files else ()


def read_rows(member: Any, key: str, stored: StoredArray, rows: int) -> Array:
    """Read the next rows of an array.

    Args:
        member: open member of the archive, where the rows begin.
        key: its key.
        stored: its header.
        rows: number of rows.

    Raises:
        Unreadable: the array is damaged.
    """
    width = math.prod(stored.shape[1:])
    try:
        content = member.read(rows * width * stored.kind.itemsize)
        values = np.frombuffer(content, dtype=stored.kind).reshape(rows, *stored.shape[1:])
    except _BROKEN:
        raise Unreadable(f"{key} is damaged or holds Python objects; write plain arrays") from None
    return values.astype(np.float64)


def _header(archive: NpzFile, key: str) -> StoredArray | None:
    """Header of an array; None for a member that is not an `.npy` file.

    Raises:
        ValueError: it states more numbers than the file holds.
    """
    assert archive.zip is not None
    name = f"{key}.npy"
    if name not in archive.zip.namelist():  # no array at all
        return None
    stream: Any
    with archive.zip.open(name) as stream:
        if not stream.peek().startswith(np.lib.format.MAGIC_PREFIX):
            return None
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, kind = read(stream)
        header = StoredArray(shape, kind, fortran and len(shape) > 1, stream.tell())
    if header.start + header.nbytes > archive.zip.getinfo(name).file_size:
        raise ValueError("more than there is")
    return header


def _names(key: str, array: NDArray[np.generic]) -> tuple[str, ...]:
    if array.ndim != 1 or array.dtype.kind != "U":
        raise Unreadable(f"{key} is {array.ndim}-dimensional {array.dtype}, expected a text per joint")
    names = tuple(str(name) for name in array)
    if not names or len(set(names)) < len(names):
        raise Unreadable(f"{key} must be there and differ: {', '.join(names) or 'none'}")
    return names


def _numbers(key: str, array: NDArray[np.generic], dimensions: int) -> Array:
    _check_numbers(key, array.dtype, array.shape, dimensions)
    return array.astype(np.float64)


def _check_numbers(key: str, kind: np.dtype[Any], shape: tuple[int, ...], dimensions: int) -> None:
    """Refuse arrays of another type, or with other dimensions."""
    if kind.kind not in "fiu":
        raise Unreadable(f"{key} has type {kind}, expected real numbers")
    if len(shape) != dimensions:
        raise Unreadable(f"{key} has shape {shape}, expected {dimensions} dimension(s)")
