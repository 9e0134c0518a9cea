# SPDX-License-Identifier: Apache-2.0
"""Compilation of kernels, and their execution without numba.

A kernel is written once. Its innermost loop reads `for k in samples(n):` and uses `k` only as an index of the last
axis: compiled, `k` is a sample number and the loop is vectorized; without numba `samples` yields one slice, and the
very same lines are NumPy operations on whole tiles. Both give the same results up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    import numba
except ImportError:
    numba = None

COMPILED = numba is not None
"""Whether kernels are compiled (numba is installed) or run as NumPy operations."""

if COMPILED:

    def compiled(function: Function) -> Function:
        """Compile `function` on its first call and keep the machine code on disk."""
        # contract: fused multiply-add is the one liberty taken with floating point.
        jit = numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
        return jit(function)  # type: ignore[no-any-return]

    def inlined(function: Function) -> Function:
        """Compile `function` separately and inline its machine code, so that the callers' loops are vectorized.

        Inlining the Python source instead (`inline="always"`) gives the same code in three times the compile time.
        """
        jit = numba.njit(
            forceinline=True,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            nogil=True,
            fastmath={"contract"},
            error_model="numpy",
        )
        return jit(function)  # type: ignore[no-any-return]

    @numba.njit(inline="always")  # type: ignore[untyped-decorator]
    def samples(n: int) -> Iterable[Any]:
        """The sample numbers of a tile of `n` samples."""
        return range(n)

    @numba.njit(inline="always")  # type: ignore[untyped-decorator]
    def shifted(start: int, k: Any) -> Any:
        """The index of a tile's sample `k` in an array where the tile begins at `start`."""
        return start + k

else:

    def compiled(function: Function) -> Function:
        """Leave `function` as it is: it runs as NumPy operations."""
        return function

    inlined = compiled

    def samples(n: int) -> Iterable[Any]:
        """All samples of a tile at once."""
        return (slice(0, n),)

    def shifted(start: int, k: Any) -> Any:
        """The index of a tile's sample `k` in an array where the tile begins at `start`."""
        return slice(start + k.start, start + k.stop)
