# SPDX-License-Identifier: Apache-2.0
"""MATLAB's `.mat` (versions 4 to 7) with the variables of the neutral `.npz`: `t`, `q`, `tau`, `joint_names`, ..."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.recordings.meaning import STATED_BY_FILE, ColumnMeaning
from robot_dyn_id.recordings.npz import CHANNELS, LARGEST, KeyedRecording, make_recording_of
from robot_dyn_id.recordings.reading import Unreadable, check_regular, join_lines, reading

SUFFIX = ".mat"

_HDF5 = b"\x89HDF"
_SIGNATURE_PLACES = (0, 512)  # MATLAB writes a header of 512 bytes in front of HDF5

_BROKEN = (ValueError, TypeError, KeyError, IndexError, EOFError, MemoryError, OverflowError, NotImplementedError)


def open_recording(path: Path, meaning: ColumnMeaning = STATED_BY_FILE) -> KeyedRecording:
    """Read a `.mat`.

    Units are those of the `.npz`: s, rad or m, N m or N, A, degrees Celsius. Arrays have a row per sample; `t` is a row
    or a column.

    Args:
        path: path of the file.
        meaning: names of the joints, where the file has no `joint_names`.

    Raises:
        InputError: not a MAT-file, or one of version 7.3; a missing variable, one of wrong type or shape.
    """
    with reading(path):
        check_regular(path)
        variables = _load(path)
        missing = [name for name in ("t", "q") if name not in variables]
        if missing:
            held = ", ".join(variables) or "nothing"
            raise Unreadable(f"no variable {', '.join(missing)}; it holds {held}")
        arrays = {name: variables[name] for name in ("t", *CHANNELS) if name in variables}
        arrays["t"] = _stamps(arrays["t"])
        for name in CHANNELS:
            if name in arrays:
                _check_rows(name, arrays[name], len(arrays["t"]))
        arrays["joint_names"] = np.array(meaning.joints(arrays["q"].shape[1], _texts(variables.get("joint_names"))))
        return make_recording_of(path, arrays, tuple(name for name in variables if name not in arrays))


def _load(path: Path) -> dict[str, Any]:
    """Variables by name.

    Raises:
        Unreadable: not a MAT-file, one of version 7.3, or too large.
    """
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError

    with path.open("rb") as file:
        for place in _SIGNATURE_PLACES:
            file.seek(place)
            if file.read(len(_HDF5)) == _HDF5:
                raise Unreadable("a MAT-file of version 7.3 (HDF5); save it as version 7: save('FILE.mat', ..., '-v7')")
    try:
        # Names and shapes first: what is compressed could fill the memory.
        size = 8 * sum(int(np.prod(shape, dtype=float)) for _, shape, _ in whosmat(path))
        if size > LARGEST:
            raise Unreadable(f"its arrays take {size / 2**30:.1f} GiB, and at most {LARGEST / 2**30:g} GiB are read")
        content = loadmat(path, appendmat=False)
    except (MatReadError, OSError, zlib.error, struct.error, *_BROKEN) as error:
        raise Unreadable(f"not a MAT-file, or a damaged one ({join_lines(error)}); save it again with '-v7'") from None
    return {name: value for name, value in content.items() if not name.startswith("__")}


def _stamps(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Time stamps, shape (N,), of a row or a column.

    Raises:
        Unreadable: neither.
    """
    if np.ndim(array) != 2 or 1 not in array.shape:
        raise Unreadable(f"t has shape {np.shape(array)}, expected one row or one column")
    return array.ravel()


def _check_rows(name: str, array: Any, samples: int) -> None:
    """Refuse arrays with a column per sample.

    Raises:
        Unreadable: a channel that is transposed, or not a matrix.
    """
    if np.ndim(array) != 2:
        raise Unreadable(f"{name} has shape {np.shape(array)}, expected samples x joints")
    if array.shape[0] != samples and array.shape[1] == samples:
        raise Unreadable(
            f"{name} has shape {array.shape}, with a column per sample; save it with a row per sample: {name} = {name}'"
        )


def _texts(names: Any) -> tuple[str, ...]:
    """Texts of a cell array, a string array is not readable; of a matrix of characters its rows.

    Raises:
        Unreadable: something else.
    """
    if names is None:
        return ()
    items = [item[0] if isinstance(item, np.ndarray) and item.size else item for item in np.ravel(names)]
    if not all(isinstance(item, str) for item in items):
        raise Unreadable("joint_names is not a cell array of texts; save {'joint1', 'joint2', ...}")
    return tuple(str(item).strip() for item in items)
