# SPDX-License-Identifier: Apache-2.0
"""`factor.npz`: a factor of recordings as arrays and one header of plain text; nothing is unpickled."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.identification.factor import Factor
from robot_dyn_id.parameters import Fingerprint, Ranges
from robot_dyn_id.text.files import MIB, replacing

FACTOR = "factor.npz"
"""Name of the file in a folder of results."""

FORMAT_LINE = "robot_dyn_id factor"

FORMAT_VERSION = 1

LARGEST = 64 * MIB
"""Largest size of a file [bytes]: hundreds of times that of a factor of an arm."""

_RANGES = ("q_min", "q_max", "dq_max", "ddq_max")

_TEXTS = ("urdf_sha256", "velocity", "effort_kind")
_COUNTS = ("decimation", "filter_order", "autoregressive_order")
_NUMBERS = ("sample_rate", "cutoff", "motion_cutoff", "period", "rest_speed")
_OF_JOINTS = ("reversal_speeds", "drive_gains", "drive_signs", "relative_gains")
"""Choices by the type of their values."""

_DAMAGED = (
    *(LookupError, ValueError, TypeError, AttributeError, EOFError, OSError, ArithmeticError),
    *(MemoryError, RecursionError, RuntimeError, zipfile.BadZipFile, NotImplementedError),
)


def encode_factor(factor: Factor) -> bytes:
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
        arrays = _read_arrays(content)
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
        part.write_bytes(encode_factor(factor))


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


def _read_arrays(content: bytes) -> dict[str, Array]:
    """Arrays of an archive without compression, which are together no larger than the archive.

    Raises:
        ValueError: compressed arrays, Python objects, or sizes that do not fit.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not stored or sum(member.file_size for member in members) > len(content):
            raise ValueError("compressed")
        return {member.filename.removesuffix(".npy"): _parse_array(archive.read(member)) for member in members}


def _parse_array(content: bytes) -> Array:
    """Array of an `.npy` file, whose header states the size that the file has.

    Raises:
        ValueError: Python objects, or another size.
    """
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("version")
    shape, fortran, kind = np.lib.format.read_array_header_1_0(stream)
    start = stream.tell()
    if kind.hasobject or fortran or min(shape, default=0) < 0:
        raise ValueError("objects")
    if math.prod(shape) * kind.itemsize != len(content) - start:
        raise ValueError("size")
    return np.frombuffer(content, kind, math.prod(shape), start).reshape(shape)


def _check_choices(choices: Any, joints: int, parameters: int) -> None:
    """Check names and types of the choices.

    Raises:
        ValueError: they are not those that factors have.
    """
    right = (
        all(isinstance(choices[name], str) for name in _TEXTS)
        and all(isinstance(choices[name], int) and choices[name] >= 0 for name in _COUNTS)
        and choices["decimation"] > 0
        and all(_are_numbers([choices[name]]) and choices[name] >= 0.0 for name in _NUMBERS)
        and min(choices[name] for name in ("sample_rate", "cutoff", "motion_cutoff")) > 0.0
        and all(_are_numbers(choices[name]) and len(choices[name]) in (0, joints) for name in _OF_JOINTS)
        and _are_numbers(choices["gravity"])
        and len(choices["gravity"]) == 3
        and isinstance(choices["held"], Mapping)
        and _are_numbers(list(choices["held"].values()))
        and all(isinstance(name, str) for name in (*choices["joint_names"], *choices["column_names"]))
        and all(_is_constant(*one) for one in choices["term_constants"])
        and all(isinstance(column, int) for column in choices["independent_columns"])
        and len(choices["independent_columns"]) == parameters
    )
    if not right:
        raise ValueError("choices")


def _is_constant(term: Any, joint: Any, value: Any) -> bool:
    """Whether this is a constant of a term on a joint."""
    return isinstance(term, str) and isinstance(joint, str) and _are_numbers([value])


def _are_numbers(values: Any) -> bool:
    """Whether this is a list of finite numbers."""
    return isinstance(values, list) and all(type(one) in (int, float) and math.isfinite(one) for one in values)


def _restore(header: dict[str, Any], arrays: dict[str, Any]) -> Factor:
    """The factor of a header and arrays.

    Raises:
        ValueError: choices, values or shapes that do not fit, or values that are not finite.
    """
    joints = len(header["choices"]["joint_names"])
    supports = tuple(np.asarray(arrays[f"support_{joint}"], dtype=np.int64) for joint in range(joints))
    parameters = int(header["parameters"])
    _check_choices(header["choices"], joints, parameters)
    if any(len(support) and not 0 <= support.min() <= support.max() < parameters for support in supports):
        raise ValueError("support")
    triangles = tuple(np.triu(_unpack(arrays[f"triangle_{j}"], len(s) + 1)) for j, s in enumerate(supports))
    upper = [_unpack(arrays[f"score_{j}"], len(s)) for j, s in enumerate(supports)]
    ranges = _finite(arrays["ranges"]).reshape(len(_RANGES), joints)
    counts = np.asarray(arrays["counts"], dtype=np.int64).reshape(joints)
    noise = _finite(arrays["noise"]).reshape(joints)
    if counts.min(initial=0) < 0 or noise.min(initial=0.0) < 0.0 or int(header["dropped"]) < 0:
        raise ValueError("negative")
    factors = Factors(parameters, supports, triangles, counts)
    scores = tuple(np.triu(matrix) + np.triu(matrix, 1).T for matrix in upper)
    starts, stops = _finite(arrays["spans"]).reshape(2, -1)
    return Factor(
        choices=header["choices"],
        statistics=RowStatistics(factors, scores, noise),
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
