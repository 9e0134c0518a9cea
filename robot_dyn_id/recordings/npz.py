"""The neutral `.npz`: `t`, `q`, `joint_names`; if there are, `dq`, `tau`, `current`, `temperature`, `reference`."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.dataset import Array, ArrayRecording, Chunk
from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.reading import Unreadable, finite, reading, sentences

_REQUIRED = ("t", "q", "joint_names")
_CHANNELS = ("q", "dq", "tau", "current", "temperature", "reference")
_UNUSED = ("ddq", "units", "wrench")  # part of the format, and no part of a sample
_BROKEN = (
    *(ValueError, TypeError, KeyError, EOFError, MemoryError, OverflowError, RuntimeError, SyntaxError),
    *(struct.error, zlib.error, zipfile.BadZipFile),
)
"""What NumPy and zipfile raise on archives that are damaged or hold something else."""

UNSTAMPED = "no time stamp (t is NaN)"


@dataclass(frozen=True)
class NpzRecording(ArrayRecording):
    """Samples of a `.npz`, and what was left out of them.

    Attributes:
        unstamped: number of samples without a time stamp.
        ignored: keys that mean nothing here.
    """

    unstamped: int = 0
    ignored: tuple[str, ...] = ()

    def dropped(self, joints: Sequence[str]) -> Mapping[str, int]:
        """Number of samples that are left out, by reason."""
        return {UNSTAMPED: self.unstamped} if self.unstamped else {}

    def notes(self, joints: Sequence[str]) -> tuple[str, ...]:
        """What a person should know about the samples."""
        ignored = (f"keys not used: {', '.join(self.ignored)}",) if self.ignored else ()
        return (*ignored, *sentences(self.dropped(joints), "sample"))


def open_recording(path: Path) -> NpzRecording:
    """Read a `.npz`.

    Raises:
        InputError: not an archive, a missing key, an array of wrong type or shape.
    """
    with reading(path):
        arrays, ignored = _load(path)
        names = _names(arrays.pop("joint_names"))
        t = _numbers("t", arrays.pop("t"), 1)
        values = {key: _numbers(key, array, 2) for key, array in arrays.items()}
        for key, array in values.items():
            if array.shape != (len(t), len(names)):
                expected = f"{(len(t), len(names))} (t x joint_names)"
                raise Unreadable(f"{key} has shape {array.shape}, expected {expected}")
        stamped = np.isfinite(t)
        if not stamped.any():
            raise Unreadable("no samples")
    samples = Chunk(t=t[stamped], **{key: finite(array[stamped]) for key, array in values.items()})
    return NpzRecording(str(path), names, samples, unstamped=int((~stamped).sum()), ignored=ignored)


def write_npz(path: Path, joint_names: Sequence[str], t: Array, **values: Array) -> None:
    """Write a `.npz`, whole or not at all.

    Args:
        path: file to write; an existing one is replaced.
        joint_names: one per column.
        t: time [s], shape (n,).
        **values: arrays by key (`q`, `dq`, `tau`, ...), each of shape (n, joints).

    Raises:
        InputError: the file cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, allow_pickle=False, t=t, joint_names=np.array(joint_names, str), **values)
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        with suppress(OSError):
            part.unlink()


def _load(path: Path) -> tuple[dict[str, NDArray[np.generic]], tuple[str, ...]]:
    """Arrays of the known keys that are there, and the other keys."""
    if path.stat().st_size == 0:
        raise Unreadable("the file is empty; write it again")
    with path.open("rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
        except _BROKEN:
            raise Unreadable("not a .npz archive, or a damaged one; write it with numpy.savez") from None
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise Unreadable("a single array (.npy), not a .npz archive; write it with numpy.savez")
        missing = [key for key in _REQUIRED if key not in archive.files]
        if missing:
            raise Unreadable(f"no key {', '.join(missing)}; it holds {', '.join(archive.files) or 'nothing'}")
        known = dict.fromkeys((*_REQUIRED, *_CHANNELS))
        arrays = {key: _array(archive, key) for key in known if key in archive.files}
        return arrays, tuple(key for key in archive.files if key not in known and key not in _UNUSED)


def _array(archive: np.lib.npyio.NpzFile, key: str) -> NDArray[np.generic]:
    try:
        array: NDArray[np.generic] = archive[key]
    except _BROKEN:
        raise Unreadable(f"{key} is damaged or holds Python objects; write plain arrays") from None
    if not isinstance(array, np.ndarray):  # a member of that name that is no .npy
        raise Unreadable(f"{key} is no array; write it with numpy.savez")
    return array


def _names(array: NDArray[np.generic]) -> tuple[str, ...]:
    if array.ndim != 1 or array.dtype.kind != "U":
        raise Unreadable(f"joint_names is {array.ndim}-dimensional {array.dtype}, expected a text per joint")
    names = tuple(str(name) for name in array)
    if not names or len(set(names)) < len(names):
        raise Unreadable(f"joint_names must be there and differ: {', '.join(names) or 'none'}")
    return names


def _numbers(key: str, array: NDArray[np.generic], dimensions: int) -> Array:
    if array.dtype.kind not in "fiu":
        raise Unreadable(f"{key} has type {array.dtype}, expected real numbers")
    if array.ndim != dimensions:
        raise Unreadable(f"{key} has shape {array.shape}, expected {dimensions} dimension(s)")
    return array.astype(np.float64)
