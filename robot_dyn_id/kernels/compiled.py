# SPDX-License-Identifier: Apache-2.0
"""Compilation of kernels, and their execution without numba.

A kernel is written once. Its innermost loop reads `for k in samples(n):` and uses `k` only as an index of the last
axis: compiled, `k` is a sample number and the loop is vectorized; without numba `samples` yields one slice, and the
very same lines are NumPy operations on whole tiles. Both give the same results up to rounding.

Machine code is kept on disk. numba loads it again while the file of the kernel itself is unchanged, by its time; but
what is inlined in it comes from other files too, and an installation copies files: here it is valid for the contents of
all kernels together. Of several processes that need a kernel, such as the nodes of a launch file, one compiles it.
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    import numba
except ImportError:
    numba = None

COMPILED = numba is not None
"""Whether kernels are compiled (numba is installed) or run as NumPy operations."""


def hash_sources(folder: Path) -> str:
    """SHA-256 of the names and the contents of the Python files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def is_on_disk(kernel: Callable[..., Any]) -> bool:
    """Whether machine code of a kernel is kept on disk, so that its first call need not compile it.

    Args:
        kernel: a compiled function; True for one that is never compiled.
    """
    index: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if not hasattr(index, "_load_index"):
        return True
    processor = kernel.targetctx.codegen().magic_tuple()  # type: ignore[attr-defined]
    return any(key[1] == processor for key in index._load_index())


if COMPILED:
    from llvmlite import binding
    from numba.core.compiler_lock import global_compiler_lock

    _SOURCES = hash_sources(Path(__file__).parent)

    MANY_REGISTERS = platform.machine() in {"aarch64", "arm64"} or binding.get_host_cpu_features().get("avx512f", False)
    """Whether the processor has 32 vector registers; those of x86 without AVX-512 have 16."""

    def compiled(function: Function) -> Function:
        """Compile `function` on its first call and keep the machine code on disk."""
        return _kept(function)

    def compiled_part(function: Function) -> Function:
        """The same for a function that only kernels call: without what a call from Python needs, it compiles faster."""
        return _kept(function, no_cpython_wrapper=True)

    def _kept(function: Function, **options: bool) -> Function:
        # contract: fused multiply-add is the one liberty taken with floating point.
        jit = numba.njit(
            cache=True, nogil=True, no_cfunc_wrapper=True, fastmath={"contract"}, error_model="numpy", **options
        )
        kernel = jit(function)
        index: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
        if hasattr(index, "_source_stamp"):  # not with NUMBA_DISABLE_JIT
            index._source_stamp = _SOURCES
            kernel.compile = _alone(kernel.compile, function.__code__.co_filename)
        return kernel  # type: ignore[no-any-return]

    _locked: set[str] = set()
    """Files that this process has locked: it alone compiles their kernels."""

    def _alone(compile_kernel: Callable[[Any], object], file: str) -> Callable[[Any], object]:
        """Let one process at a time compile the kernels of a file: the others load its machine code, then."""

        def compile_alone(signature: Any) -> object:
            with global_compiler_lock, _lock(file):  # the first excludes the other threads of this process
                return compile_kernel(signature)

        return compile_alone

    @contextmanager
    def _lock(file: str) -> Iterator[None]:
        """Lock a file against other processes, where its file system can."""
        with ExitStack() as stack:
            if file not in _locked:
                with suppress(OSError):
                    fcntl.flock(stack.enter_context(open(file, "rb")), fcntl.LOCK_EX)
                _locked.add(file)
                stack.callback(_locked.remove, file)
            yield

    def inlined(function: Function) -> Function:
        """Compile `function` separately and inline its machine code, so that the callers' loops are vectorized.

        Inlining the Python source instead (`inline="always"`) gives the same code in three times the compile time.
        """
        return _inlined(function, {"contract"})

    def inlined_sum(function: Function) -> Function:
        """Inline a function that sums over samples: in any order, so that sums are vectorized too."""
        return _inlined(function, {"contract", "reassoc"})

    def _inlined(function: Function, liberties: set[str]) -> Function:
        jit = numba.njit(
            forceinline=True,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            nogil=True,
            fastmath=liberties,
            error_model="numpy",
        )
        return jit(function)  # type: ignore[no-any-return]

    def inserted(function: Function) -> Function:
        """Insert the source of a function that does little more than call others into the callers."""
        return numba.njit(inline="always")(function)  # type: ignore[no-any-return]

    @inserted
    def samples(n: int) -> Iterable[Any]:
        """The sample numbers of a tile of `n` samples."""
        return range(n)

    @inserted
    def shifted(start: int, k: Any) -> Any:
        """The index of a tile's sample `k` in an array where the tile begins at `start`.

        It is unsigned: numba counts negative indices from the end, and a loop in which the compiler cannot exclude
        them loads and stores one sample at a time.
        """
        return np.uintp(start + k)

else:
    MANY_REGISTERS = True

    def compiled(function: Function) -> Function:
        """Leave `function` as it is: it runs as NumPy operations."""
        return function

    inlined = inlined_sum = compiled_part = inserted = compiled

    def samples(n: int) -> Iterable[Any]:
        """All samples of a tile at once."""
        return (slice(0, n),)

    def shifted(start: int, k: Any) -> Any:
        """The index of a tile's sample `k` in an array where the tile begins at `start`."""
        return slice(start + k.start, start + k.stop)
