# SPDX-License-Identifier: Apache-2.0
"""Compilation of the kernels of an identification, by `python -m robot_dyn_id.kernels.precompiled`.

`setup.py` calls it when the package is built.
Machine code is for one processor and one version of numba: elsewhere kernels compile at their first call, as others do.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Mapping
from typing import Any

from robot_dyn_id.cores import available_cores
from robot_dyn_id.kernels.compiled import COMPILED

SIGNATURES: Mapping[str, str] = {
    "stepping.advance_lanes": (
        "(int64[::1], int64[::1], float64[::1], float64[::1], float64[:, :, :, ::1], float64[:, :, ::1], "
        "float64[:, ::1], float64[::1], float64[::1], float64[:, :, ::1], int64[::1], float64[:, ::1], "
        "float64[:, ::1], float64[:, :, ::1], float64[:, ::1], float64[:, :, ::1], int64[::1], float64[:, "
        "::1], float64[:, :, ::1], float64[:, :, ::1], float64[:, ::1], float64, int64, float64[:, ::1], "
        "float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1])"
    ),
    "dynamics.dynamics_tiles": (
        "(int64[::1], int64[::1], float64[::1], float64[::1], float64[:, :, :, ::1], float64[:, :, ::1], "
        "float64[:, ::1], float64[::1], float64[::1], float64[:, :, ::1], float64[:, ::1], float64[:, ::1], "
        "float64[:, ::1], int64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], "
        "float64[:, ::1], float64[::1])"
    ),
    "regressor.regressor_tiles": (
        "(int64[::1], float64[:, :, :, ::1], float64[:, :, ::1], float64[:, ::1], int64[::1], int64[::1], "
        "float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], "
        "int64[:, ::1], float64[:, ::1])"
    ),
    "dynamics.dynamics_single": (
        "(int64[::1], int64[::1], float64[::1], float64[::1], float64[:, :, :, ::1], float64[:, :, ::1], "
        "float64[:, ::1], float64[::1], float64[::1], float64[:, :, ::1], float64[:, ::1], float64[:, ::1], "
        "float64[:, ::1], int64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], "
        "float64[:, ::1], float64[::1])"
    ),
    "compression.add_rows": "(float64[::1, :], float64[:, ::1])",
    "compression.add_products": "(float64[::1, :], float64[:, ::1])",
    "profile.follow_profile": "(float64[:, ::1], boolean[::1], float64[::1], float64[::1], float64, float64)",
    "presliding.slide": "(float64[:, ::1], float64[::1], float64[:, ::1])",
    "filters.run_sections": "(float64[:, ::1], boolean, float64[:, ::1], float64[:, :, ::1])",
    "filters.run_autoregression": "(float64[::1], float64[:, ::1])",
}
"""Signatures of the kernels that every identification calls, by module and name, those that take longest first."""


def compile_kernel(name: str) -> None:
    """Compile a kernel, and keep its machine code on disk.

    Args:
        name: a key of `SIGNATURES`.
    """
    from numba.core import sigutils

    module, _, function = name.partition(".")
    kernel: Any = getattr(importlib.import_module(f"robot_dyn_id.kernels.{module}"), function)
    arguments, _ = sigutils.normalize_signature(
        SIGNATURES[name]
    )  # by their types, not their text, they are found again
    kernel.compile(arguments)


def compile_all() -> None:
    """Compile all kernels of `SIGNATURES`, on all cores."""
    with multiprocessing.get_context("spawn").Pool(min(available_cores(), len(SIGNATURES))) as pool:
        pool.map(compile_kernel, SIGNATURES, chunksize=1)


if __name__ == "__main__":
    if not COMPILED:
        sys.exit("numba is not installed: nothing is compiled")
    compile_all()
