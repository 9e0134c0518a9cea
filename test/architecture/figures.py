# SPDX-License-Identifier: Apache-2.0
"""Figures of the package's structure, counted from its imports: `python test/architecture/figures.py [PACKAGE]`.

A room of a folder is a file or a subfolder directly in it. `__init__.py` is a room where it imports from the package,
the generated messages and `_built_for.py` are left out. An arrow is a pair of rooms of one folder of which the first
imports, anywhere in its files, from the second. The layer of a room is 1 if it imports from no other room of its folder, else
1 more than the highest layer of those that it imports from. A circle is a set of rooms that import each other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PACKAGE = "robot_dyn_id"
GENERATED = {"action", "msg", "srv", "_built_for"}

Arrows = Mapping[str, frozenset[str]]
"""Rooms of a folder, each with the rooms that it imports from."""


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the syntax tree of a file; the first is its module."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Full names of everything of the package that a file imports."""
    found: list[str] = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(found)


def rooms(folder: Path) -> dict[str, list[Path]]:
    """Names of the rooms of a folder with their files."""
    found = {}
    for path in sorted(folder.iterdir()):
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path] * (path.suffix == ".py")
        if files and path.stem not in GENERATED and (path.stem != "__init__" or any(imported(path))):
            found[path.stem] = files
    return found


def arrows(folder: Path, root: Path) -> Arrows:
    """Arrows between the rooms of a folder below the package's root."""
    inside, prefix = rooms(folder), (PACKAGE, *folder.relative_to(root).parts)

    def goal(name: str) -> str | None:
        parts = name.split(".")
        if tuple(parts[: len(prefix)]) != prefix or len(parts) == len(prefix):
            return None
        own = parts[len(prefix)]
        return own if own in inside else "__init__"

    return {
        room: frozenset({goal(name) for path in files for name in imported(path)} & inside.keys() - {room})
        for room, files in inside.items()
    }


def circles(arrows: Arrows) -> list[set[str]]:
    """Rooms that import each other, directly or through others."""
    reach = {room: set(goals) for room, goals in arrows.items()}
    for middle in arrows:
        for goals in reach.values():
            if middle in goals:
                goals |= reach[middle]
    groups = {frozenset(other for other in reach[room] if room in reach[other]) for room in arrows}
    return [set(group) for group in groups if group]


def layers(arrows: Arrows) -> int:
    """Number of layers of rooms without circles; 0 if there are circles."""
    if circles(arrows):
        return 0
    height: dict[str, int] = {}

    def of(room: str) -> int:
        if room not in height:
            height[room] = 1 + max(map(of, arrows[room]), default=0)
        return height[room]

    return max(map(of, arrows), default=0)


def folders(root: Path) -> list[Path]:
    """The package and all its folders with code."""
    found = [path for path in sorted(root.rglob("*")) if path.is_dir() and any(path.glob("*.py"))]
    return [root, *(path for path in found if not {*path.relative_to(root).parts} & {*GENERATED, "__pycache__"})]


def main(root: Path) -> None:
    """Print the table."""
    print(f"{'folder':30} {'rooms':>6} {'layers':>6} {'arrows':>6} {'circles':>7}")
    for folder in folders(root):
        inside = arrows(folder, root)
        name = folder.relative_to(root.parent).as_posix()
        count = sum(map(len, inside.values()))
        print(f"{name:30} {len(inside):6} {layers(inside):6} {count:6} {len(circles(inside)):7}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / PACKAGE)
