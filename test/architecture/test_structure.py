# SPDX-License-Identifier: Apache-2.0
"""Structure of the tests: they mirror the package, and what several share lives in test/support/."""

import ast
from pathlib import Path

from architecture import figures

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(TESTS.rglob("*.py"))
NAMES = {path.stem for path in FILES if path.stem.startswith("test_")} | {"conftest", "test"}


def imported_modules(path):
    for node in figures.nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def imports_a_test_file(path):
    return not NAMES.isdisjoint(part for name in imported_modules(path) for part in name.split("."))


def test_no_test_imports_a_test_file():
    wrong = [path.relative_to(TESTS).as_posix() for path in FILES if imports_a_test_file(path)]
    assert wrong == [], "share it in test/support/"
