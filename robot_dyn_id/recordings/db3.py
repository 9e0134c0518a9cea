# SPDX-License-Identifier: Apache-2.0
"""rosbag2's SQLite storage (`.db3`), as raw messages."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from robot_dyn_id.recordings.reading import (
    MSG_LANGUAGE,
    RawMessage,
    Salvage,
    StoredMessage,
    TopicDescription,
    Unreadable,
    Warn,
)

MAGIC, HEADER_BYTES = b"SQLite format 3\0", 100
"""First bytes of a database, and the length of its header."""

CUT_OFF = "the file is cut off; copy it again, or write what is left of it with `robot-dyn-id recover`"
"""Message about a file that is shorter than it was."""

MOST_MISSING = 9
"""Most bytes that are missing, as a multiple of those that are there: a header that states more is damaged."""

FILL_BYTES = 2**20
"""Number of bytes that are written at a time."""


def topics(path: Path) -> dict[str, str]:
    """Type name of each topic.

    Raises:
        Unreadable: not a rosbag2 database.
    """
    return {name: kind for _, name, kind in _topic_rows(path)}


def definitions(path: Path) -> dict[str, str]:
    """Definition of each type in the language of `.msg` files; none in bags from before ROS 2 Iron.

    Raises:
        Unreadable: not a rosbag2 database.
    """
    return {
        topic.type_name: topic.schema
        for topic in _described(path).values()
        if topic.schema and topic.schema_encoding == MSG_LANGUAGE
    }


def messages(path: Path, topics: Collection[str], warn: Warn) -> Iterator[RawMessage]:
    """Messages of `topics` in storage order; of a damaged database, those in front of the damage.

    Raises:
        Unreadable: not a rosbag2 database.
    """
    wanted = {number: (name, kind) for number, name, kind in _topic_rows(path) if name in topics}
    marks = ", ".join("?" * len(wanted))
    # A row in a sector that was lost reads as NULL. Without the column in the query, it would be lost silently.
    rows = f"topic_id IN ({marks}) OR typeof(topic_id) <> 'integer'"
    query = f"SELECT topic_id, timestamp, data FROM messages WHERE {rows} ORDER BY id"
    count = 0
    with closing(_connect(path)) as database:
        try:
            for number, log_time, data in database.execute(query, tuple(wanted)):
                if number not in wanted or not isinstance(data, bytes) or not isinstance(log_time, int):
                    raise sqlite3.DatabaseError("a row that is not a message")
                yield (*wanted[number], log_time, data)
                count += 1
        except sqlite3.Error as error:
            warn(f"damaged behind message {count} ({error}); what follows could not be read")


def salvage(path: Path, found: Salvage) -> Iterator[StoredMessage]:
    """Every message in front of damage.

    Args:
        path: path of the file.
        found: takes the topics and what is wrong with the file; the number of lost bytes is not known.

    Raises:
        Unreadable: not a rosbag2 database.
    """
    query = "SELECT topic_id, timestamp, data FROM messages ORDER BY id"
    count = 0
    with _completed(path, found) as copies, ExitStack() as opened:
        topics = _described(copies[0])
        found.topics.update({topic.name: topic for topic in topics.values()})
        databases = [opened.enter_context(closing(_connect(copy))) for copy in copies]
        try:
            rows = [database.execute(query) for database in databases]
            for row, *others in zip(*rows, strict=False):  # if one of them ends early, the check below finds it
                number, log_time, data = row
                if any(other != row for other in others):
                    raise sqlite3.DatabaseError("a row that is not complete")
                if number not in topics or not isinstance(data, bytes) or not isinstance(log_time, int):
                    raise sqlite3.DatabaseError("a row that is not a message")
                yield StoredMessage(topics[number], log_time, log_time, data)
                count += 1
            (verdict,) = databases[0].execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(str(verdict))
        except sqlite3.Error as error:
            found.damage.append(f"damaged behind message {count} ({error})")
            found.lost_bytes = None


@contextmanager
def _completed(path: Path, found: Salvage) -> Iterator[tuple[Path, ...]]:
    """The file, or two copies of a file that is cut off, with other bytes in place of those that are missing.

    SQLite reads the rows in front of the end of the former only if the latter are there; rows that have some of them
    differ between the copies.
    """
    missing = _count_missing(path)
    if not missing:
        yield (path,)
        return
    found.damage.append(f"cut off: {missing} bytes are missing")
    found.lost_bytes = None
    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for fill in (b"\x00", b"\xff"):
            copies.append(Path(folder) / f"{fill.hex()}.db3")
            shutil.copyfile(path, copies[-1])
            with copies[-1].open("ab") as file:
                for start in range(0, missing, FILL_BYTES):
                    file.write(fill * min(FILL_BYTES, missing - start))
        yield tuple(copies)


def _count_missing(path: Path) -> int:
    """Number of bytes by which a file is shorter than its header states; 0 where the header does not state it."""
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        return 0
    page, changes, pages = struct.unpack_from(">H6xII", header, 16)
    (known,) = struct.unpack_from(">I", header, 92)  # the number of changes at which the number of pages was written
    present = path.stat().st_size
    missing = max(0, (2**16 if page == 1 else page) * pages - present)
    return missing if changes == known and missing <= MOST_MISSING * present else 0


def _described(path: Path) -> dict[int, TopicDescription]:
    """Topics by their number, as the columns that this version of rosbag2 has describe them."""
    types = {number: (name, kind) for number, name, kind in _topic_rows(path)}
    with closing(_connect(path)) as database:
        qos = _column(database, "SELECT id, offered_qos_profiles FROM topics")
        hashes = _column(database, "SELECT id, type_description_hash FROM topics")
        texts = _column(database, "SELECT topic_type, encoded_message_definition FROM message_definitions")
        languages = _column(database, "SELECT topic_type, encoding FROM message_definitions")
    return {
        number: TopicDescription(
            name=name,
            type_name=kind,
            schema=texts.get(kind, ""),
            schema_encoding=languages.get(kind, ""),
            type_hash=hashes.get(number, ""),
            offered_qos=qos.get(number, ""),
        )
        for number, (name, kind) in types.items()
    }


def _column(database: sqlite3.Connection, query: str) -> dict[Any, str]:
    """Texts by key; none where a database of an older rosbag2 has no such table or column."""
    try:
        return {key: str(value) for key, value in database.execute(query) if value is not None}
    except (sqlite3.Error, UnicodeDecodeError):
        return {}


def settle(path: Path) -> None:
    """Bring a database that a killed recorder left behind into order, with its journal; changes the files.

    Raises:
        Unreadable: not a database.
    """
    try:
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise Unreadable(f"its journal cannot be applied ({error})") from None


def _connect(path: Path) -> sqlite3.Connection:
    # Immutable: nothing is locked or written, so that files and folders without write permission work.
    return sqlite3.connect(f"file:{quote(os.fsencode(path.absolute()))}?mode=ro&immutable=1", uri=True)


def _check_tables(database: sqlite3.Connection) -> None:
    """Refuse views and virtual tables, whose rows are made by expressions that need not end.

    Raises:
        Unreadable: there are some.
    """
    kinds = "SELECT count(*) FROM sqlite_master WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL%'"
    (count,) = database.execute(kinds).fetchone()
    if count:
        raise Unreadable("not a rosbag2 database: it defines views; record it again")


def _topic_rows(path: Path) -> list[tuple[int, str, str]]:
    with path.open("rb") as file:  # says why a file cannot be opened, which SQLite does not
        if not file.read(1):
            raise Unreadable("the file is empty; record it again")
    try:
        with closing(_connect(path)) as database:
            _check_tables(database)
            rows = database.execute("SELECT id, name, type FROM topics ORDER BY id").fetchall()
            database.execute("SELECT topic_id, timestamp, data FROM messages LIMIT 0")
            (page_size,) = database.execute("PRAGMA page_size").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if _count_missing(path):
            raise Unreadable(CUT_OFF) from None
        raise Unreadable(f"not a readable rosbag2 database ({error}); copy it again, or record again") from None
    if path.stat().st_size % page_size:  # SQLite would read zeros in place of what is missing of the last page
        raise Unreadable(CUT_OFF)
    return [(number, str(name), str(kind)) for number, name, kind in rows]
