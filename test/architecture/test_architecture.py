# SPDX-License-Identifier: Apache-2.0
"""Architecture of the package: which room may import which."""

import ast
from pathlib import Path

import pytest

import robot_dyn_id

ROOT = Path(robot_dyn_id.__file__).parent

ROOMS = (
    "findings",
    "errors",
    "options",
    "arrays",
    "__init__",
    "faults",
    "text",
    "parameters",
    "data",
    "kernels",
    "recordings",
    "model",
    "dynamics",
    "signals",
    "excitation",
    "simulation",
    "estimators",
    "identification",
    "online",
    "loads",
    "flexible",
    "export",
    "report",
    "files",
    "workflow",
    "papers",
    "nodes",
    "cli",
    "__main__",
)
"""Folders and files of the root, in the order of the pipeline: each imports only from those before it."""

RANK = {name: place for place, name in enumerate(ROOMS)}

ONLY_IN = {
    "pinocchio": {"model", "dynamics", "excitation", "cli"},
    "coal": {"excitation"},
    "rclpy": {"nodes"},
    "matplotlib": {"report"},
    "yaml": {"text", "recordings"},
    "launch": {"nodes"},
    "numba": {"kernels"},
}
"""Libraries that only some rooms may import (`cli` for the benchmarks, which time the peer)."""

MODULES = sorted(path for path in ROOT.rglob("*.py") if "msg" not in path.relative_to(ROOT).parts[:1])


def top(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_imports_go_down(path):
    own = top(path)
    if own in ("_built_for", "__init__"):
        return
    assert own in RANK, f"{own} has no place: write it into ROOMS"
    for name in imported(path):
        parts = name.split(".")
        if parts[0] != "robot_dyn_id" or len(parts) == 1 or parts[1] in (own, "msg", "__version__", "_built_for"):
            continue
        assert RANK[parts[1]] < RANK[own], f"{own} imports {parts[1]}, which is not below it"


@pytest.mark.parametrize("library", ONLY_IN)
def test_libraries_stay_where_they_belong(library):
    users = {top(path) for path in MODULES if any(name.split(".")[0] == library for name in imported(path))}
    assert users <= ONLY_IN[library]


def test_no_drawers():
    assert not {top(path) for path in MODULES} & {"utils", "tools", "helpers", "common", "base"}
