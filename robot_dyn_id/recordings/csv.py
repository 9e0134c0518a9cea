# SPDX-License-Identifier: Apache-2.0
"""Text tables: header `t,q_<joint>...`, and columns of other channels.

They are `dq_`, `tau_`, `torque_` or `effort_`, `current_`, `temperature_`, `reference_`.

Columns `kp_<joint>` and `kd_<joint>`, of which every row is the same, are the gains of the drives that follow the
reference.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import find_columns_of
from robot_dyn_id.findings import Finding
from robot_dyn_id.recordings import rtde
from robot_dyn_id.recordings.meaning import STATED_BY_FILE, ColumnMeaning
from robot_dyn_id.recordings.npz import GAINS, MOTOR
from robot_dyn_id.recordings.reading import (
    Unreadable,
    check_regular,
    mask_infinities,
    name_source_of,
    reading,
    rechunk,
    report_dropped,
    report_unused,
)

_TIME = "t"
_PREFIXES = {
    "q_": "q",
    "dq_": "dq",
    "tau_": "tau",
    "torque_": "tau",
    "effort_": "tau",
    "current_": "current",
    "temperature_": "temperature",
    "reference_": "reference",
}
_UNUSED = ("ddq_", *(f"{key}_" for key in GAINS))  # part of the format, and no part of a sample
_SEPARATORS = ",;\t"
_BLANK = None  # any number of spaces, as `str.split` takes it
_ROWS = 1024  # rows parsed at once

VOCABULARIES = (rtde.translate_names,)
"""Functions that translate the column names of other tools, or return None; a new one is one module and one line."""

SHOWN_COLUMNS = 8
"""Number of names of a header that a message shows."""

LONGEST_LINE = 2**20
"""Longest line of a table [characters]; a row of 100 joints with all channels takes some 10,000."""

CUT = "the last row has no line end, so it may be cut off"
UNSTAMPED = "no time stamp (t is empty or NaN)"


@dataclass(frozen=True)
class _Table:
    """MessageLayout of a file.

    Attributes:
        separator: between cells; None: spaces.
        width: cells per row.
        start: line number of the header.
        time: column of the time stamps.
        channels: columns by joint of each `Chunk` field that the file has.
        effort: whether efforts are called so, and not `tau`.
        ignored: names of columns that mean nothing here.
    """

    separator: str | None
    width: int
    start: int
    time: int
    channels: dict[str, dict[str, int]]
    effort: bool
    ignored: tuple[str, ...]

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names in the order of their positions."""
        return tuple(self.channels["q"])


@dataclass(frozen=True)
class CsvRecording:
    """Samples of a text table, read as they are needed.

    Attributes:
        source: the path that the user gave, as one line of text.
        path: the file.
        joint_names: joints in the order of their `q_` columns.
        effort_is_torque: True unless the effort columns are called `effort_`.
        counts: samples left out, by reason.
        table: layout of the file.
        gains: gains of the drives by key, see `npz.GAINS`, and joint; empty where the file has none.
        epoch: 0, `t` is the file's own.
        chunk_size: samples per chunk.
    """

    source: str
    path: Path = field(repr=False)
    joint_names: tuple[str, ...]
    effort_is_torque: bool
    counts: Mapping[str, int]
    table: _Table = field(repr=False)
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    epoch: int = 0
    chunk_size: int = 8192

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Stream the rows; see `Recording.chunks`.

        Raises:
            InputError: a joint that the file does not hold, or a file that cannot be read (any more).
        """
        find_columns_of(self.joint_names, joints, self.source)
        with reading(self.path):
            yield from rechunk(_pieces(self.path, self.table, joints), self.chunk_size)

    def dropped(self, joints: Sequence[str]) -> Mapping[str, int]:
        """Number of rows that are left out, by reason."""
        return self.counts

    def findings(self, joints: Sequence[str]) -> tuple[Finding, ...]:
        """Findings about the rows."""
        unused = report_unused(self.source, "columns", self.table.ignored)
        return (*unused, *report_dropped(self.source, self.counts, "row"))


def open_recording(path: Path, meaning: ColumnMeaning = STATED_BY_FILE, side: str = "") -> CsvRecording:
    """Read a text table once, to find every fault before anything is computed.

    Args:
        path: path of the file.
        meaning: names of the joints of tables of other tools.
        side: what the columns begin with: nothing, or `MOTOR` for those of the motors of flexible joints.

    Raises:
        InputError: no header, missing columns, or a line with too few cells or one that is not a number.
    """
    with reading(path):
        table = _table(path, side, meaning)
        rows = kept = 0
        for block in _blocks(path, table, table.joints):
            rows += len(block)
            kept += int(np.isfinite(block[:, 0]).sum())
        if not kept:
            raise Unreadable("no complete row below the header; record it again")
        ((_, last),) = deque(_lines(path), maxlen=1)
        counts = {CUT: int(_is_row(last) and not _is_whole(last)), UNSTAMPED: rows - kept}
        gains = {} if side else _read_gains(path, table, meaning)
    return CsvRecording(
        source=name_source_of(path),
        path=path,
        joint_names=table.joints,
        effort_is_torque=not table.effort,
        counts={reason: count for reason, count in counts.items() if count},
        table=table,
        gains=gains,
    )


def _read_gains(path: Path, table: _Table, meaning: ColumnMeaning) -> dict[str, dict[str, float]]:
    """Gains of the drives by key and joint; empty where a table has none.

    Raises:
        Unreadable: a gain that changes, that is negative or missing, or that is that of another joint.
    """
    names = _header(path, meaning)[0]
    gains: dict[str, dict[str, float]] = {}
    places = {
        (key, name.removeprefix(f"{key}_")): name for key in GAINS for name in names if name.startswith(f"{key}_")
    }
    if not places:
        return gains
    values = np.array(list(_rows(path, table, [names.index(name) for name in places.values()])))
    for (key, joint), column in zip(places, values.T, strict=True):
        if joint not in table.joints or not (np.all(column == column[0]) and 0.0 <= column[0] < math.inf):
            raise Unreadable(
                f"{places[key, joint]} must be the same number of 0 or more in all rows, for a joint of q_"
            )
        gains.setdefault(key, {})[joint] = float(column[0])
    return gains


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, line ends kept."""
    check_regular(path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number in count(1):
                line = file.readline(LONGEST_LINE + 1)
                if len(line) > LONGEST_LINE:
                    raise Unreadable(f"line {number} is longer than {LONGEST_LINE} characters; is it a table?")
                if not line:
                    return
                yield number, line
    except UnicodeDecodeError:
        raise Unreadable("not a text file; export the table as UTF-8 text") from None


def _is_row(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _is_whole(line: str) -> bool:
    return line.endswith("\n")


def has_motors(path: Path) -> bool:
    """Whether a table has columns of the motors' side.

    Raises:
        InputError: no header.
    """
    with reading(path):
        known = tuple(f"{MOTOR}{prefix}" for prefix in _PREFIXES)
        return any(name.startswith(known) for name in _header(path)[0])


def _header(path: Path, meaning: ColumnMeaning = STATED_BY_FILE) -> tuple[list[str], list[str], str | None, int]:
    """The first line, commented out or not, with `t` and a `q_` column.

    Returns:
        Its cells as this package calls them, and as they are in the file; their separator; number of the line.
    """
    first: list[str] = []
    for number, line in _lines(path):
        text = line.strip().lstrip("#").strip()
        separator = max(_SEPARATORS, key=text.count) if any(one in text for one in _SEPARATORS) else _BLANK
        found = [cell.strip().strip('"') for cell in text.split(separator)]
        translated = (vocabulary(found, meaning) for vocabulary in VOCABULARIES)
        names = next((names for names in translated if names is not None), found)
        if _TIME in names and any(name.startswith("q_") for name in names):
            return names, found, separator, number
        first = first or (found if text else [])
        if _is_row(line):
            break
    if path.stat().st_size == 0:
        raise Unreadable("the file is empty; export it again")
    shown = ", ".join(first[:SHOWN_COLUMNS]) + (", ..." if len(first) > SHOWN_COLUMNS else "")
    raise Unreadable(
        f"no header of a recording ({shown or 'nothing in it'}); its first line must read "
        "t,q_<joint>,...,tau_<joint>,..., or timestamp,actual_q_0,... of RTDE"
    )


def _table(path: Path, side: str, meaning: ColumnMeaning) -> _Table:
    """Find and understand the header."""
    names, written, separator, number = _header(path, meaning)
    own = {f"{side}{prefix}": channel for prefix, channel in _PREFIXES.items()}
    channels: dict[str, dict[str, int]] = {"q": {}}
    prefixes: set[str] = set()
    ignored = []
    for column, name in enumerate(names):
        prefix = next((prefix for prefix in own if name.startswith(prefix)), None)
        if name in names[:column] and (prefix or name == _TIME):
            raise Unreadable(f"column {written[column]} is there twice; rename one")
        if prefix:
            channels.setdefault(own[prefix], {})[name.removeprefix(prefix)] = column
            prefixes.add(prefix)
        elif name != _TIME and not side and not name.startswith((*_UNUSED, MOTOR)):
            ignored.append(name)
    if {f"{side}tau_", f"{side}effort_"} <= prefixes:
        raise Unreadable(
            f"{side}tau_ and {side}effort_ columns; keep {side}tau_ if they are in N m or N, else {side}effort_"
        )
    joints = dict.fromkeys(name for channel in channels.values() for name in channel)
    gaps = [
        f"{prefix}{name}"
        for prefix in own
        if prefix in {*prefixes, f"{side}q_"}
        for name in joints
        if name not in channels[own[prefix]]
    ]
    if gaps:
        raise Unreadable(f"every joint needs the same columns, and there is no {', '.join(gaps)}")
    effort = f"{side}effort_" in prefixes
    return _Table(separator, len(names), number, names.index(_TIME), channels, effort, tuple(ignored))


def _blocks(path: Path, table: _Table, joints: Iterable[str]) -> Iterator[Array]:
    """Numbers of up to `_ROWS` rows at a time: `t`, then each channel of `joints`, shape (rows, columns)."""
    columns = [table.time, *(channel[joint] for channel in table.channels.values() for joint in joints)]
    rows = _rows(path, table, columns)
    while block := list(islice(rows, _ROWS)):
        yield np.array(block)


def _rows(path: Path, table: _Table, columns: Sequence[int]) -> Iterator[list[float]]:
    """Numbers of every whole row.

    Raises:
        Unreadable: a row of wrong length or a cell that is not a number.
    """
    for number, line in _lines(path):
        if number <= table.start or not _is_row(line) or not _is_whole(line):
            continue
        cells = line.split(table.separator)
        if len(cells) != table.width:
            raise Unreadable(f"line {number} has {len(cells)} cells, the header {table.width}; repair the line")
        try:
            yield [_number(cells[column]) for column in columns]
        except ValueError:
            wrong = next(cells[column].strip() for column in columns if not _is_number(cells[column]))
            hint = "use a decimal point, leave a gap empty"
            raise Unreadable(f"line {number}: {wrong!r} is not a number; {hint}") from None


def _number(cell: str) -> float:
    """The number in a cell, NaN in an empty one.

    Raises:
        ValueError: something else is in it.
    """
    if "_" in cell:  # Python would take 1_000 for a number
        raise ValueError
    try:
        return float(cell)
    except ValueError:
        if cell.strip():
            raise
        return math.nan


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _pieces(path: Path, table: _Table, joints: Sequence[str]) -> Iterator[Chunk]:
    """One chunk per block."""
    for block in _blocks(path, table, joints):
        block = block[np.isfinite(block[:, 0])]
        values = {
            name: mask_infinities(block[:, 1 + len(joints) * place : 1 + len(joints) * (place + 1)])
            for place, name in enumerate(table.channels)
        }
        yield Chunk(t=block[:, 0], **values)
