# SPDX-License-Identifier: Apache-2.0
"""Structure of the tests: they mirror the package, and what several share lives in test/support/."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(TESTS.rglob("*.py"))
NAMES = {path.stem for path in FILES if path.stem.startswith("test_")} | {"conftest", "test"}


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_no_test_imports_a_test_file(path):
    parts = {part for name in imported_modules(path) for part in name.split(".")}
    assert not parts & NAMES, "share it in test/support/"
