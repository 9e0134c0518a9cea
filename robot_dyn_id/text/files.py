# SPDX-License-Identifier: Apache-2.0
"""Text files named by the user: regular files of limited size, with one line for all that can be wrong."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from robot_dyn_id.errors import InputError, RobotDynIdError

MIB = 2**20
"""Bytes of a mebibyte."""


def read_text(path: str | Path, what: str, limit: int, error: type[RobotDynIdError] = InputError) -> str:
    """Read a UTF-8 text file, without a byte order mark.

    Devices, pipes and sockets are refused: they may never end, or never begin.

    Args:
        path: file; `~` is the home folder.
        what: expected content, for the message.
        limit: largest size [bytes].
        error: class of the error that is raised.

    Raises:
        RobotDynIdError: the file cannot be opened, is not a regular file, is too large, or is not UTF-8 text.
    """
    try:
        return _read(Path(path).expanduser(), limit).decode("utf-8-sig")
    except FileNotFoundError:
        raise error(f"{path}: cannot read the {what} (No such file or directory); check the path") from None
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except UnicodeDecodeError:
        reason = f"not a text file; give a file with a {what}"
    except (ValueError, RuntimeError):  # a null character, or the home folder of an unknown user
        reason = "not the name of a file"
    raise error(f"{path}: cannot read the {what} ({reason})")


def _read(path: Path, limit: int) -> bytes:
    """Content of a regular file.

    Raises:
        OSError: the file cannot be read; `strerror` is the reason.
    """
    # Without O_NONBLOCK, a pipe without a writer could not even be opened to see what it is.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(0, "Is a directory")
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "not a regular file; copy what it gives into one")
        content = file.read(limit + 1)  # the size alone is 0 for what a kernel makes up
    if len(content) > limit:
        raise OSError(0, f"larger than {limit / MIB:.3g} MiB")
    return content


def name_part_of(path: Path) -> Path:
    """The file that takes what is written until it is complete and renamed."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a file to write, which replaces `path` if no exception occurs, so that `path` is complete at any time.

    Raises:
        InputError: the folder cannot be written to.
    """
    part = name_part_of(path)
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        with suppress(OSError):
            part.unlink()


def write_atomically(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all; what UTF-8 does not have, as in names of files, is escaped.

    Raises:
        InputError: the folder cannot be written to.
    """
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
