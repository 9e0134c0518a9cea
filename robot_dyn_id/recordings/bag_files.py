# SPDX-License-Identifier: Apache-2.0
"""Files of a bag in order, and reading of their messages."""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import db3, ros1
from robot_dyn_id.recordings.reading import (
    RawMessage,
    Storage,
    Unreadable,
    Warn,
    check_regular,
    join_lines,
    name_source_of,
    reading,
)
from robot_dyn_id.text.yaml import read_yaml


def _load_mcap() -> Storage:
    """The storage of `.mcap` files; packages of a distribution do not bring its libraries."""
    try:
        from robot_dyn_id.recordings import mcap
    except ImportError as error:
        raise Unreadable(
            f"reading it needs the package {error.name}: install it with `python3 -m pip install mcap`, or convert the "
            "bag to sqlite3 with `ros2 bag convert`"
        ) from None
    return mcap


STORAGES: Mapping[str, Callable[[], Storage]] = {".mcap": _load_mcap, ".db3": lambda: db3, ros1.SUFFIX: lambda: ros1}
"""Storage by suffix; a new one is one module and one line."""

_SUFFIXES = f"{', '.join(list(STORAGES)[:-1])} or {list(STORAGES)[-1]}"

METADATA = "metadata.yaml"
LARGEST_MESSAGE = 256 * 2**20
"""Size that a message may have when it is unpacked [bytes]."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_COMPRESSED = ".zstd"  # rosbag2's compression mode "file"
_RATIO = 200  # largest size of what is unpacked over what was packed: a small file could fill the disk
_ANY_SIZE = 64 * 2**20  # [bytes] may be unpacked from any file
_JOURNALS = ("-wal", "-journal")  # files that SQLite keeps next to a database that was not closed


class _Scratch:
    """A folder for copies that lasts as long as this object."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="robot_dyn_id_"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


@dataclass(frozen=True)
class BagFile:
    """One storage file of a bag.

    Attributes:
        source: the file that the user knows.
        path: the file that is read: `source`, or a copy of it that had to be unpacked or set in order.
        scratch: keeps that copy alive.
    """

    source: Path
    path: Path
    scratch: _Scratch | None = field(default=None, repr=False)

    @property
    def storage(self) -> Storage:
        """Format of the file.

        Raises:
            Unreadable: a library for it is not installed.
        """
        return STORAGES[self.path.suffix]()


@dataclass(frozen=True)
class Bag:
    """A bag: the raw messages of one or several storage files, one behind the other.

    Attributes:
        source: the folder or file that the user gave.
        files: its storage files in the order of recording.
    """

    source: str
    files: tuple[BagFile, ...]

    def topics(self) -> dict[str, str]:
        """Type name of each topic.

        Raises:
            InputError: a file cannot be read.
        """
        return self._merge(lambda file: file.storage.topics(file.path))

    def definitions(self) -> dict[str, str]:
        """Definition of each type in the language of `.msg` files, as far as the bag has them.

        Raises:
            InputError: a file cannot be read.
        """
        return self._merge(lambda file: file.storage.definitions(file.path))

    def _merge(self, read: Callable[[BagFile], Mapping[str, str]]) -> dict[str, str]:
        found: dict[str, str] = {}
        for file in self.files:
            with reading(file.source):
                found.update(read(file))
        return found

    def messages(self, topics: Collection[str], warn: Warn) -> Iterator[RawMessage]:
        """Messages of `topics` in the order in which they were stored.

        Args:
            topics: names of the topics.
            warn: receives descriptions of files of which only a part can be read.

        Raises:
            InputError: a file cannot be read.
        """
        for file in self.files:

            def warn_of_file(text: str, name: str = file.source.name) -> None:
                warn(f"{name} is {join_lines(text)}")

            with reading(file.source):
                for topic, kind, log_time, data in file.storage.messages(file.path, topics, warn_of_file):
                    packed = data.startswith(_ZSTD_MAGIC)  # here, as a call for each message takes longer
                    yield topic, kind, log_time, decompress_message(data) if packed else data


def decompress_message(message: bytes) -> bytes:
    """A message of rosbag2's compression mode "message", unpacked; every other one as it is.

    One that cannot be unpacked, or would be larger than `LARGEST_MESSAGE`, stays packed: readers count it as a message
    that they cannot decode.
    """
    if not message.startswith(_ZSTD_MAGIC):  # a message in CDR begins with a zero byte
        return message
    zstandard = _load_zstandard()
    try:
        if zstandard.frame_content_size(message) > LARGEST_MESSAGE:
            return message
        return bytes(zstandard.ZstdDecompressor().decompress(message, max_output_size=LARGEST_MESSAGE))
    except zstandard.ZstdError:
        return message


def _load_zstandard() -> Any:
    """The library of compressed messages and files, which most bags do not have."""
    try:
        import zstandard
    except ImportError:
        raise Unreadable(
            "it is compressed: unpacking it needs the package zstandard: install it with `python3 -m pip install mcap`"
        ) from None
    return zstandard


def is_storage(path: Path) -> bool:
    """Whether the name is that of a storage file, compressed or not."""
    return _plain(path).suffix in STORAGES


def list_files_of(folder: Path) -> tuple[Path, ...]:
    """All files of a folder that belong to bags: storage files, their journals and metadata.yaml.

    Raises:
        InputError: the folder cannot be read.
    """
    with reading(folder):
        found = sorted(folder.iterdir())
    suffixes = (*STORAGES, *(f"{suffix}{_COMPRESSED}" for suffix in STORAGES), *(f".db3{one}" for one in _JOURNALS))
    return tuple(file for file in found if file.name == METADATA or file.name.endswith(suffixes))


def is_bag(path: Path) -> bool:
    """Whether this is a bag: a folder, or by its name a storage file.

    Raises:
        InputError: the path cannot be looked at.
    """
    with reading(path):
        return path.is_dir() or is_storage(path)


def open_bag(path: Path) -> Bag:
    """Find the files of a bag folder, or take the one storage file that `path` is.

    Raises:
        InputError: a folder without storage files, or with those of several bags; a file that cannot be read.
    """
    with reading(path):
        files = _files_of(path) if path.is_dir() else (path,)
        _check_compression((path if path.is_dir() else path.parent) / METADATA, files)
    opened = []
    for file in files:
        with reading(file):
            opened.append(_opened(file))
    return Bag(name_source_of(path), tuple(opened))


def _plain(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == _COMPRESSED else path


def _files_of(folder: Path) -> tuple[Path, ...]:
    listed = _listed(folder / METADATA)
    if listed:
        absent = [path.name for path in listed if not path.exists()]
        if absent:
            raise Unreadable(f"{', '.join(absent)} is missing, which {METADATA} names; copy the whole folder")
        return listed
    found = sorted((path for path in folder.iterdir() if is_storage(path)), key=_split_number)
    if not found:
        raise Unreadable(f"no recording in this folder; it needs files ending in {_SUFFIXES}")
    # The recorder names the parts of one bag NAME_0, NAME_1, ...
    if len({re.sub(r"_\d+$", "", _plain(path).stem) + _plain(path).suffix for path in found}) > 1:
        names = ", ".join(path.name for path in found)
        raise Unreadable(f"several bags and no {METADATA}; give one of {names}")
    return tuple(found)


def _split_number(path: Path) -> tuple[int, str]:
    number = re.search(r"_(\d+)$", _plain(path).stem)
    return (int(number[1]) if number else -1, path.name)


def _listed(metadata: Path) -> tuple[Path, ...]:
    """Files that metadata.yaml names; none if it is missing or broken: the files then determine it."""
    names = read_information(metadata).get("relative_file_paths")
    return tuple(metadata.parent / str(name) for name in names) if isinstance(names, list) else ()


def read_information(metadata: Path) -> dict[str, Any]:
    """Statements of metadata.yaml about its bag; empty if it is missing or broken."""
    try:
        content = read_yaml(metadata, METADATA)["rosbag2_bagfile_information"]
    except (InputError, KeyError, TypeError):
        return {}
    return content if isinstance(content, dict) else {}


def _check_compression(metadata: Path, files: Collection[Path]) -> None:
    """Refuse files of a bag that is compressed by something else than zstd.

    Raises:
        Unreadable: they are.
    """
    stated = read_information(metadata)
    packed = stated.get("compression_format")
    if not packed or packed == "zstd" or not stated.get("compression_mode"):
        return
    listed = stated.get("relative_file_paths")
    if isinstance(listed, list) and any(file.name in map(str, listed) for file in files):
        raise Unreadable(
            f"compressed as {packed!r}, and only zstd can be read: convert the bag with `ros2 bag convert`, "
            "without compression"
        )


def _opened(path: Path) -> BagFile:
    if not is_storage(path):
        raise Unreadable(f"no storage file of a bag; it must end in {_SUFFIXES}")
    check_regular(path)
    if path.suffix == _COMPRESSED:
        return _unpacked(path)
    journals = [journal for suffix in _JOURNALS if _size(journal := path.with_name(path.name + suffix))]
    if not journals:
        return BagFile(path, path)
    scratch = _Scratch()
    for file in (path, *journals):
        shutil.copyfile(file, scratch.folder / file.name)
    db3.settle(scratch.folder / path.name)
    return BagFile(path, scratch.folder / path.name, scratch)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _unpacked(path: Path) -> BagFile:
    scratch = _Scratch()
    target = scratch.folder / _plain(path).name
    zstandard = _load_zstandard()
    try:
        left = _ANY_SIZE + _RATIO * path.stat().st_size
        with path.open("rb") as packed, target.open("wb") as unpacked:
            for piece in zstandard.ZstdDecompressor().read_to_iter(packed, write_size=2**20):
                left -= len(piece)
                if left < 0:
                    raise Unreadable(f"it unpacks to more than {_RATIO} times its size: no bag does")
                unpacked.write(piece)
    except zstandard.ZstdError as error:
        raise Unreadable(f"cannot be decompressed ({error}); copy it again") from None
    return BagFile(path, target, scratch)
