# SPDX-License-Identifier: Apache-2.0
"""Episodes of LeRobot data sets (`.parquet`): `observation.state`, `action`, `timestamp`.

Source: Hugging Face LeRobot, data set formats v2 (a file per episode) and v3 (several episodes per file).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.recordings.meaning import STATED_BY_FILE, ColumnMeaning
from robot_dyn_id.recordings.npz import LARGEST, KeyedRecording
from robot_dyn_id.recordings.reading import (
    Unreadable,
    check_regular,
    join_lines,
    mask_infinities,
    name_source_of,
    reading,
)

SUFFIX = ".parquet"

EPISODE_MARK = "#"
"""Between the name of a file and the number of one of its episodes: `file-000.parquet#3`."""

POSITION, TIME, EPISODE = "observation.state", "timestamp", "episode_index"

OPTIONAL = {
    "observation.velocity": "dq",
    "observation.effort": "tau",
    "observation.current": "current",
    "action": "reference",
}
"""Further columns that are read, where they have a value per joint: velocities and commanded positions in the unit of
the positions, efforts as the data set has them, currents [A]."""

_IN_RADIANS = ("q", "dq", "reference")
_BOOKKEEPING = ("frame_index", "index", "task_index", "next.done", "next.reward", "next.success", EPISODE)
_INFORMATION = Path("meta/info.json")
_LEVELS = 4  # folders between a file and the root of its data set, at most


def is_episode(path: Path) -> bool:
    """Whether this is by its name a file of a data set, or an episode of one."""
    return path.suffix.partition(EPISODE_MARK)[0] == SUFFIX


def open_recording(path: Path, meaning: ColumnMeaning = STATED_BY_FILE) -> KeyedRecording:
    """Read one episode.

    Args:
        path: the file; `FILE#EPISODE` where it holds several.
        meaning: unit of the positions, which no data set states; names of the joints, where it has no
            `meta/info.json`.

    Raises:
        InputError: not a Parquet file, a larger one than `LARGEST`, a column that is missing or there twice, several
            episodes, positions of an unknown unit, joints without names, or pyarrow is not installed.
    """
    name, mark, number = str(path).rpartition(EPISODE_MARK)
    file = Path(name) if mark else path
    with reading(file):
        check_regular(file)
        unit = meaning.radians()
        columns, others = _load(file, number if mark else None)
        t = _numbers(TIME, columns.pop(TIME))
        position = _matrix(POSITION, columns.pop(POSITION))
        names = meaning.joints(position.shape[1], _names(file))
        values = {"q": position}
        for column, channel in OPTIONAL.items():
            if column in columns:
                array = _matrix(column, columns[column])
                if array.shape == position.shape:
                    values[channel] = array
                else:
                    others += (column,)
        scaled = {key: mask_infinities(array * (unit if key in _IN_RADIANS else 1.0)) for key, array in values.items()}
        stamped = np.isfinite(t)
        if not stamped.any():
            raise Unreadable("no samples")
    samples = Chunk(t=t[stamped], **{key: array[stamped] for key, array in scaled.items()})
    return KeyedRecording(
        source=name_source_of(path),
        joint_names=names,
        samples=samples,
        effort_is_torque=False,
        unstamped=int((~stamped).sum()),
        ignored=others,
    )


def _load(path: Path, episode: str | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Columns of one episode that are read, as arrays by name, and the names of the other columns.

    Raises:
        Unreadable: not a Parquet file, one that is too large or lacks rows or necessary columns, or another episode.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise Unreadable(
            "LeRobot data sets need the package pyarrow; install it: python3 -m pip install pyarrow"
        ) from None
    if path.stat().st_size == 0:
        raise Unreadable("the file is empty; download it again")
    try:
        with parquet.ParquetFile(path) as file:
            held = list(file.schema_arrow.names)
            wanted = _wanted(held)
            groups, rows = _rows_of_episode(file, EPISODE in held, episode, path.name)
            _check_size(file.metadata, groups, wanted)
            table = file.read_row_groups(groups, columns=wanted)
            columns = {name: table.column(name).to_numpy()[rows] for name in wanted}
    except (pyarrow.ArrowException, ValueError, TypeError, KeyError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of the content
            raise
        raise Unreadable(f"not a Parquet file, or a damaged one ({join_lines(error)}); download it again") from None
    return columns, tuple(name for name in held if name not in (*wanted, *_BOOKKEEPING))


def _wanted(held: list[str]) -> list[str]:
    """Names of the columns that are read.

    Raises:
        Unreadable: a necessary one is missing, or one is there twice.
    """
    missing = [name for name in (POSITION, TIME) if name not in held]
    if missing:
        raise Unreadable(f"no column {', '.join(missing)}; it holds {', '.join(held) or 'nothing'}")
    wanted = [name for name in (POSITION, TIME, *OPTIONAL) if name in held]
    double = [name for name in (*wanted, EPISODE) if held.count(name) > 1]
    if double:
        raise Unreadable(f"column {double[0]} is there {held.count(double[0])} times; remove all but one")
    return wanted


def _check_size(metadata: Any, groups: list[int], names: list[str]) -> None:
    """Refuse what would fill the memory: a small file can hold many values of little difference.

    Raises:
        Unreadable: the columns of these row groups are larger than `LARGEST`.
    """
    total = 0
    for group in map(metadata.row_group, groups):
        for column in map(group.column, range(group.num_columns)):
            if any(column.path_in_schema == name or column.path_in_schema.startswith(f"{name}.") for name in names):
                total += max(8 * column.num_values, column.total_uncompressed_size)
    if total > LARGEST:
        raise Unreadable(
            f"its columns take {total / 2**30:.1f} GiB, and at most {LARGEST / 2**30:g} GiB are read; write every "
            "episode into a file of its own"
        )


def _rows_of_episode(file: Any, numbered: bool, number: str | None, name: str) -> tuple[list[int], Any]:
    """Row groups that hold one episode, and the rows of it among theirs.

    Raises:
        Unreadable: no rows, several episodes and none chosen, or one that the file does not hold.
    """
    metadata = file.metadata
    groups = list(range(metadata.num_row_groups))
    if metadata.num_rows == 0:
        raise Unreadable("no samples")
    if not numbered:
        if number is not None:
            raise Unreadable(f"no column {EPISODE}; give the file without {EPISODE_MARK}{number}")
        return groups, slice(None)
    _check_size(metadata, groups, [EPISODE])
    column = file.read(columns=[EPISODE]).column(EPISODE)
    if column.null_count:
        raise Unreadable(f"{EPISODE} is empty in {column.null_count} rows; download the file again")
    episodes = column.to_numpy()
    if episodes.dtype.kind not in "iu":
        raise Unreadable(f"{EPISODE} does not hold integers")
    held = np.unique(episodes)
    if number is None:
        if len(held) > 1:
            raise Unreadable(
                f"holds the episodes {held[0]} to {held[-1]}; give one each as a trial: '{name}{EPISODE_MARK}{held[0]}'"
            )
        return groups, slice(None)
    if not number.isdecimal() or int(number) not in held:
        shown = f"{held[0]} to {held[-1]}" if len(held) > 1 else str(held[0])
        raise Unreadable(f"no episode {number}; it holds {shown}")
    ends = np.cumsum([metadata.row_group(group).num_rows for group in groups])
    chosen = episodes == int(number)
    parts = np.split(chosen, ends[:-1])
    groups = [group for group in groups if parts[group].any()]
    return groups, np.concatenate([parts[group] for group in groups])


def _numbers(name: str, column: Any) -> Array:
    """Values of a column of numbers, shape (rows,).

    Raises:
        Unreadable: something else.
    """
    if column.dtype.kind not in "iuf":
        raise Unreadable(f"{name} does not hold numbers")
    return np.asarray(column, dtype=np.float64)


def _matrix(name: str, column: Any) -> Array:
    """Values of a column of lists, shape (rows, joints).

    Raises:
        Unreadable: rows of different lengths, or not numbers.
    """
    try:
        matrix = np.array([np.asarray(row, dtype=np.float64) for row in column])
    except (TypeError, ValueError):
        raise Unreadable(f"{name} is not a list of numbers of constant length in every row") from None
    if matrix.ndim != 2:
        raise Unreadable(f"{name} is not a list of numbers of constant length in every row")
    return matrix


def _names(path: Path) -> tuple[str, ...]:
    """Names of the joints from the data set's `meta/info.json`; empty if it has none."""
    for folder in list(path.resolve().parents)[:_LEVELS]:
        try:
            content = json.loads((folder / _INFORMATION).read_text(encoding="utf-8"))
            names = content["features"][POSITION]["names"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if isinstance(names, dict):  # {"motors": [...]} of format v2
            names = next(iter(names.values()), [])
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return tuple(name.removesuffix(".pos") for name in names)
    return ()
