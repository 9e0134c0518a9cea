# SPDX-License-Identifier: Apache-2.0
"""Store of the factors of a fleet's recordings: what is done is read by a run that is started again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from robot_dyn_id.errors import InputError
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.files.factor import LARGEST, parse_factor
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.text.files import replacing
from robot_dyn_id.version import __version__


@dataclass(frozen=True)
class FactorStore:
    """Files by the content that they depend on: recording, options, and version of this package.

    Attributes:
        folder: the folder of the files.
        options: hash of the robot description, the configuration and the version.
    """

    folder: Path
    options: str

    @classmethod
    def from_options(cls, folder: str | Path, robot: RobotDescription, configuration: Configuration) -> FactorStore:
        """The store in a folder, which is made if needed.

        Args:
            folder: the folder.
            robot: robot description of the fleet.
            configuration: configuration of the identification, filters included.

        Raises:
            InputError: the folder cannot be made.
        """
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path}: cannot be made ({error.strerror or error})") from None
        text = "\n".join((robot.text, repr(configuration), __version__))
        return cls(path, hashlib.sha256(text.encode()).hexdigest())

    def get(self, digest: str) -> bytes:
        """The factor of the recording with a digest; empty if there is none, or it is damaged."""
        path = self._path(digest)
        try:
            if path.stat().st_size > LARGEST:
                return b""
            content = path.read_bytes()
            parse_factor(content, str(path))
        except (OSError, InputError):
            return b""
        return content

    def read(self, digest: str) -> bytes:
        """The factor of a recording that this run has found or put here.

        Raises:
            InputError: it is not there any more.
        """
        path = self._path(digest)
        try:
            return path.read_bytes()
        except OSError as error:
            raise InputError(
                f"{path}: removed during the run ({error.strerror or error}); run the command again"
            ) from None

    def put(self, digest: str, content: bytes) -> None:
        """Keep the factor of the recording with a digest.

        Raises:
            InputError: it cannot be written.
        """
        with replacing(self._path(digest)) as part:
            part.write_bytes(content)

    def _path(self, digest: str) -> Path:
        return self.folder / f"{hashlib.sha256(f'{digest}{self.options}'.encode()).hexdigest()}.npz"
