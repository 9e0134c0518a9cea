# SPDX-License-Identifier: Apache-2.0
"""Files of a public repository at a fixed commit."""

from __future__ import annotations

import io
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array

REMOTE = "https://github.com/{owner}/{name}"
"""Address of a repository."""


class UnreachableError(Exception):
    """A repository that cannot be fetched, or does not have a file."""


@dataclass(frozen=True)
class Checkout:
    """A repository at a commit; its files are read without a work tree.

    Attributes:
        folder: bare clone.
        commit: the commit.
    """

    folder: Path
    commit: str

    @classmethod
    def clone(cls, repository: str, commit: str, cache: Path, remote: str = REMOTE) -> Checkout:
        """Clone a repository, unless it has been.

        Args:
            repository: owner and name.
            commit: the commit.
            cache: folder of all clones.
            remote: address with the fields `owner` and `name`.

        Raises:
            UnreachableError: no network, or no such repository or commit.
        """
        owner, name = repository.split("/")
        folder = cache / f"{owner}+{name}.git"
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            address = remote.format(owner=owner, name=name)
            _run("git", "clone", "--quiet", "--bare", "--filter=blob:none", address, str(folder))
        _run("git", "-C", str(folder), "cat-file", "-e", commit)
        return cls(folder, commit)

    def read(self, path: str) -> bytes:
        """Content of a file.

        Raises:
            UnreachableError: there is no such file.
        """
        return _run("git", "-C", str(self.folder), "show", f"{self.commit}:{path}")

    def read_text(self, path: str) -> str:
        """Text of a file."""
        return self.read(path).decode()

    def read_table(self, path: str, delimiter: str | None = None, header: int = 0) -> Array:
        """Numbers of a table, shape (rows, columns)."""
        return np.atleast_2d(np.genfromtxt(io.BytesIO(self.read(path)), delimiter=delimiter, skip_header=header))


def _run(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["git failed"]
        raise UnreachableError(lines[-1])
    return done.stdout
