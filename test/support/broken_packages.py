# SPDX-License-Identifier: Apache-2.0
"""Packages of interfaces that can be imported, but whose libraries cannot be loaded."""

import importlib
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def without_library(package, folder):
    """In this context, `package` is a copy of it in `folder` that has no compiled library."""
    original = Path(importlib.import_module(package).__file__).parent
    shutil.copytree(original, folder / package, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    own = {name: module for name, module in sys.modules.items() if name.split(".")[0] == package}
    for name in own:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]
        sys.modules.update(own)
