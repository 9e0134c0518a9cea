# SPDX-License-Identifier: Apache-2.0
"""`factor.npz`: a factor of recordings as arrays and one header of plain text; nothing is unpickled."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.identification.factor import Factor
from robot_dyn_id.signals.fingerprint import Fingerprint
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.text.files import MIB, replacing

FACTOR = "factor.npz"
"""Name of the file in a folder of results."""

FORMAT_LINE = "robot_dyn_id factor"

FORMAT_VERSION = 1

LARGEST = 64 * MIB
"""Largest size of a file [bytes]: hundreds of times that of a factor of an arm."""

_RANGES = ("q_min", "q_max", "dq_max", "ddq_max")

_DAMAGED = (*(KeyError, ValueError, TypeError, EOFError, OSError, IndexError), zipfile.BadZipFile, NotImplementedError)


def factor_bytes(factor: Factor) -> bytes:
    """Content of the file of a factor."""
    rows = factor.statistics
    header = {
        "format": FORMAT_LINE,
        "format_version": FORMAT_VERSION,
        "choices": dict(factor.choices),
        "parameters": rows.factors.parameters,
        "sources": list(factor.sources),
        "data_sha256": factor.data_sha256,
        "dropped": factor.dropped,
    }
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
        "counts": rows.factors.counts,
        "noise": rows.noise,
        "ranges": np.array([getattr(factor.ranges, name) for name in _RANGES]),
        "digests": factor.fingerprint.digests,
        "spans": np.array([factor.fingerprint.starts, factor.fingerprint.stops]),
    }
    for joint, support in enumerate(rows.factors.supports):
        arrays[f"support_{joint}"] = support
        arrays[f"triangle_{joint}"] = _pack(_square(rows.factors.triangles[joint]))
        arrays[f"score_{joint}"] = _pack(rows.scores[joint])
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def parse_factor(content: bytes, source: str) -> Factor:
    """The factor of a file's content.

    Args:
        content: the content.
        source: name for messages.

    Raises:
        InputError: not a factor, damaged, or of another version of the format.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays["header"].tobytes())
        if header.get("format") != FORMAT_LINE:
            raise ValueError("no factor")
        version = header["format_version"]
    except _DAMAGED:
        raise InputError(f"{source}: not a factor file of this tool, or damaged; make it again") from None
    if version != FORMAT_VERSION:
        raise InputError(f"{source}: format_version is {version!r}, this version reads {FORMAT_VERSION}; make it again")
    try:
        return _restore(header, arrays)
    except _DAMAGED:
        raise InputError(f"{source}: the factor is damaged; make it again") from None


def write_factor(path: str | Path, factor: Factor) -> None:
    """Write a factor as a whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    with replacing(Path(path)) as part:
        part.write_bytes(factor_bytes(factor))


def read_factor(path: str | Path) -> Factor:
    """Read a factor.

    Raises:
        InputError: not readable, too large, not a factor, damaged, or of another version of the format.
    """
    file = Path(path).expanduser()
    try:
        if not file.is_file():
            raise InputError(f"{path}: no such file; give the {FACTOR} of an identification")
        if file.stat().st_size > LARGEST:
            raise InputError(f"{path}: larger than {LARGEST // MIB} MiB, which no factor is")
        content = file.read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read the factor ({getattr(error, 'strerror', None) or error})") from None
    return parse_factor(content, str(path))


def _restore(header: dict[str, Any], arrays: dict[str, Any]) -> Factor:
    """The factor of a header and arrays.

    Raises:
        ValueError: values that are not finite, or shapes that do not fit.
    """
    joints = len(header["choices"]["joint_names"])
    supports = tuple(np.asarray(arrays[f"support_{joint}"], dtype=np.int64) for joint in range(joints))
    parameters = int(header["parameters"])
    if any(len(support) and not 0 <= support.min() <= support.max() < parameters for support in supports):
        raise ValueError("support")
    triangles = tuple(np.triu(_unpack(arrays[f"triangle_{j}"], len(s) + 1)) for j, s in enumerate(supports))
    upper = [_unpack(arrays[f"score_{j}"], len(s)) for j, s in enumerate(supports)]
    ranges = _finite(arrays["ranges"]).reshape(len(_RANGES), joints)
    counts = np.asarray(arrays["counts"], dtype=np.int64).reshape(joints)
    factors = Factors(parameters, supports, triangles, counts)
    scores = tuple(np.triu(matrix) + np.triu(matrix, 1).T for matrix in upper)
    starts, stops = _finite(arrays["spans"]).reshape(2, -1)
    return Factor(
        choices=header["choices"],
        statistics=RowStatistics(factors, scores, _finite(arrays["noise"]).reshape(joints)),
        sources=tuple(str(source) for source in header["sources"]),
        data_sha256=str(header["data_sha256"]),
        fingerprint=Fingerprint(np.asarray(arrays["digests"], dtype=np.uint32), starts, stops),
        ranges=Ranges(*ranges),
        dropped=int(header["dropped"]),
    )


def _square(triangle: Array) -> Array:
    """An upper triangular factor with as many rows as columns."""
    size = triangle.shape[1]
    square = np.zeros((size, size))
    rows = triangle if len(triangle) <= size else np.linalg.qr(triangle, mode="r")
    square[: len(rows)] = rows
    return square


def _pack(matrix: Array) -> Array:
    """Upper triangle of a square matrix, row by row."""
    return np.asarray(matrix[np.triu_indices(len(matrix))])


def _unpack(packed: Array, size: int) -> Array:
    """Square matrix of a packed upper triangle; zeros below the diagonal.

    Raises:
        ValueError: another number of values, or values that are not finite.
    """
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = _finite(packed)
    return matrix


def _finite(values: Any) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("not finite")
    return array
