# SPDX-License-Identifier: Apache-2.0
"""Compiled templates on disk: compiling those of the report takes a tenth of a short identification."""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import tempfile
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, bc_magic


class CompiledTemplates(jinja2.BytecodeCache):
    """Code of templates in `__pycache__`, where Python keeps that of modules and under the same rules.

    It is written nowhere else: only who may change the modules of this package may change it. It is not written at
    all if Python does not write compiled modules (`PYTHONDONTWRITEBYTECODE`) or the folder is read-only. A file begins
    with a hash of what the code depends on and of the code: another template, Python or Jinja compiles again.
    """

    def __init__(self, folder: Path, settings: bytes) -> None:
        """Keep the code next to templates.

        Args:
            folder: folder of the templates.
            settings: content that defines the environment, on which the code depends too.
        """
        self.folder = folder
        self._made_of = jinja2.__version__.encode() + bc_magic + settings

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Name of the template."""
        return name

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read the code of a template if it is there and current."""
        with suppress(OSError):
            content = self.path(bucket.key).read_bytes()
            size = hashlib.sha256().digest_size
            if content[:size] == self._hash(bucket, content[size:]):
                bucket.code = marshal.loads(content[size:])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the code of a template, all of it or nothing."""
        if sys.dont_write_bytecode:
            return
        path, code = self.path(bucket.key), marshal.dumps(bucket.code)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(prefix=path.name, dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(self._hash(bucket, code) + code)
                os.replace(part, path)
            except OSError:
                os.unlink(part)

    def path(self, name: str) -> Path:
        """File of the code of a template."""
        return Path(cache_from_source(str(self.folder / name))).with_suffix(".j2c")

    def _hash(self, bucket: Bucket, code: bytes) -> bytes:
        return hashlib.sha256(self._made_of + bucket.checksum.encode() + code).digest()
