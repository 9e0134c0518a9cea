# SPDX-License-Identifier: Apache-2.0
"""Machine code of kernels on disk."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from pathlib import Path

from robot_dyn_id.kernels.compiled import is_on_disk


@dataclass(frozen=True)
class StoredKernels:
    """Machine code on disk.

    Attributes:
        count: number of kernels that are kept on disk.
        compiled: number of those whose machine code is there and up to date.
        folder: folder of the machine code; None if kernels are not compiled.
    """

    count: int
    compiled: int
    folder: Path | None


def find_stored_kernels() -> StoredKernels:
    """Look for the machine code of all kernels; all their modules are imported."""
    count = compiled = 0
    folder = None
    for found in pkgutil.iter_modules([str(Path(__file__).parent)]):
        module = importlib.import_module(f"{__package__}.{found.name}")
        for kernel in vars(module).values():
            cache = getattr(kernel, "_cache", None)
            index = getattr(cache, "_cache_file", None)
            if cache is None or index is None or kernel.__module__ != module.__name__:
                continue
            count += 1
            compiled += is_on_disk(kernel)
            folder = Path(cache.cache_path)
    return StoredKernels(count, compiled, folder)
