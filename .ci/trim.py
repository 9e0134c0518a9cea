# SPDX-License-Identifier: Apache-2.0
"""Take out of an environment what nothing reads at run time: `trim.py ENVIRONMENT`.

Wheels hold no links, so that a library with three names is there three times; and the wheels of Pinocchio bring the
C++ headers of all that they are built with.
"""

import hashlib
import os
import shutil
import sys
from collections import defaultdict
from pathlib import Path

HEADERS = "lib/python*/site-packages/cmeel.prefix/include"


def trim(environment: Path) -> None:
    """Remove the headers, and make shared libraries of the same content names of one file."""
    for folder in environment.glob(HEADERS):
        shutil.rmtree(folder)
    same = defaultdict(list)
    for file in environment.rglob("*.so*"):
        if file.is_file() and not file.is_symlink():
            same[file.stat().st_size, hashlib.sha256(file.read_bytes()).digest()].append(file)
    for first, *others in same.values():
        for other in others:
            link = other.with_name(f"{other.name}.link")
            os.link(first, link)
            link.replace(other)


if __name__ == "__main__":
    trim(Path(sys.argv[1]))
