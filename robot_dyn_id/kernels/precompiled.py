# SPDX-License-Identifier: Apache-2.0
"""Compilation of the kernels of an identification, by `python -m robot_dyn_id.kernels.precompiled`.

`setup.py` calls it when the package is built.
Machine code is for one processor and one version of numba: elsewhere kernels compile at their first call, as others do.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from robot_dyn_id.cores import count_cores
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.kernels.dynamics import BodyTree
from robot_dyn_id.kernels.stepping import Robots, State

_TREE = BodyTree._make(
    (
        *("int64[::1]", "int64[::1]", "float64[::1]", "float64[::1]", "float64[:, :, :, ::1]", "float64[:, :, ::1]"),
        *("float64[:, ::1]", "float64[::1]", "float64[::1]"),
    )
)
_ROBOTS = Robots._make(
    {
        "tree": _TREE,
        "parameters": "float64[:, :, ::1]",
        "slots": "int64[::1]",
        "added": "float64[:, ::1]",
        "constant": "float64[:, ::1]",
        "stiffness": "float64[:, :, ::1]",
        "waves": "float64[:, ::1]",
        "amplitudes": "float64[:, ::1]",
        "weights": "float64[:, ::1]",
        "viscous": "float64[:, :, ::1]",
        "starts": "int64[::1]",
        "laws": "float64[:, ::1]",
        "loads": "float64[:, :, ::1]",
        "shares": "float64[:, :, ::1]",
    }.values()
)
_DYNAMICS = (
    *(_TREE, "float64[:, :, ::1]", *3 * ["float64[:, ::1]"], "int64[::1]", *5 * ["float64[:, ::1]"], "float64[::1]"),
)

SIGNATURES: Mapping[str, Sequence[Any]] = {
    "stepping.advance_lanes": (
        *(_ROBOTS, "float64[:, ::1]", "float64", "int64", State._make(4 * ["float64[:, ::1]"]), "float64[::1]"),
    ),
    "dynamics.dynamics_tiles": _DYNAMICS,
    "regressor.fill_regressor_tiles": (
        *("int64[::1]", "float64[:, :, :, ::1]", "float64[:, :, ::1]", "float64[:, ::1]", "int64[::1]", "int64[::1]"),
        *("float64[::1]", "float64[::1]", *4 * ["float64[:, ::1]"], "int64[:, ::1]", "float64[:, ::1]"),
    ),
    "dynamics.dynamics_single": _DYNAMICS,
    "compression.add_rows": ("float64[::1, :]", "float64[:, ::1]"),
    "compression.add_products": ("float64[::1, :]", "float64[:, ::1]"),
    "profile.follow_profile": ("float64[:, ::1]", "boolean[::1]", *2 * ["float64[::1]"], *2 * ["float64"]),
    "presliding.slide": ("float64[:, ::1]", "float64[::1]", "float64[:, ::1]"),
    "filters.run_sections": ("float64[:, ::1]", "boolean", "float64[:, ::1]", "float64[:, :, ::1]"),
    "filters.run_autoregression": ("float64[::1]", "float64[:, ::1]"),
}
"""Types of the arguments of the kernels that every identification calls, those that take longest first."""


def list_argument_types(name: str) -> tuple[Any, ...]:
    """Types of numba of the arguments of a kernel, a key of `SIGNATURES`."""
    from numba import types
    from numba.core import sigutils

    def convert(given: Any) -> Any:
        if isinstance(given, tuple):
            return types.BaseTuple.from_types(tuple(map(convert, given)), type(given))
        return sigutils.normalize_signature(f"({given},)")[0][0]  # by types, not their text, they are found again

    return tuple(map(convert, SIGNATURES[name]))


def compile_kernel(name: str) -> None:
    """Compile a kernel, and keep its machine code on disk.

    Args:
        name: a key of `SIGNATURES`.
    """
    module, _, function = name.partition(".")
    kernel: Any = getattr(importlib.import_module(f"robot_dyn_id.kernels.{module}"), function)
    kernel.compile(list_argument_types(name))


def compile_all() -> None:
    """Compile all kernels of `SIGNATURES`, on all cores."""
    with multiprocessing.get_context("spawn").Pool(min(count_cores(), len(SIGNATURES))) as pool:
        pool.map(compile_kernel, SIGNATURES, chunksize=1)


if __name__ == "__main__":
    if not COMPILED:
        sys.exit("numba is not installed: nothing is compiled")
    compile_all()
