# SPDX-License-Identifier: Apache-2.0
"""Compilation of each kernel by one of the test processes: the others wait for its machine code instead of theirs."""

import fcntl
from contextlib import ExitStack

held = set()
"""Files of kernels that this process compiles."""


def share_compilation():
    """Lock the file of a kernel that is kept on disk while it is compiled, which looks for its machine code first."""
    try:
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.dispatcher import Dispatcher
    except ImportError:
        return
    compile_here = Dispatcher.compile

    def compile_once(self, signature):
        path = self.py_func.__code__.co_filename
        with ExitStack() as stack:
            stack.enter_context(global_compiler_lock)  # of the threads of this process, so that `held` is that of one
            if hasattr(self._cache, "_cache_file") and path not in held:
                fcntl.flock(stack.enter_context(open(path, "rb")), fcntl.LOCK_EX)
                held.add(path)
                stack.callback(held.remove, path)
            return compile_here(self, signature)

    Dispatcher.compile = compile_once
