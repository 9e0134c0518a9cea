# SPDX-License-Identifier: Apache-2.0
"""Check the size of an environment that holds this package and its dependencies: `size.py ENVIRONMENT`."""

import sys
from pathlib import Path

LIMIT_MB = 870
"""Largest size [MB] of all files, without pip and setuptools; docs/installation.md has the shares of the packages."""

NOT_OURS = ("pip", "setuptools", "pkg_resources")


def main() -> int:
    """Print the largest packages; 1 if the limit is exceeded."""
    (packages,) = Path(sys.argv[1]).glob("lib/python*/site-packages")
    sizes = {
        entry.name: sum(file.stat().st_size for file in [entry, *entry.rglob("*")] if file.is_file()) / 1e6
        for entry in packages.iterdir()
        if entry.name.split("-")[0] not in NOT_OURS
    }
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True)[:12]:
        print(f"{sizes[name]:8.0f} MB  {name}")
    total = sum(sizes.values())
    print(f"{total:8.0f} MB  in all, of {LIMIT_MB} MB")
    return int(total > LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
