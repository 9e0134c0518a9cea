# SPDX-License-Identifier: Apache-2.0
"""Architecture of the package: imports without circles at every depth; figures.py counts what is held here."""

import ast
from functools import cache
from pathlib import Path

import pytest
from architecture import figures

import robot_dyn_id

ROOT = Path(robot_dyn_id.__file__).parent

ONLY_IN = {
    "pinocchio": {"model", "dynamics", "excitation", "bench"},
    "coal": {"excitation"},
    "rclpy": {"nodes"},
    "matplotlib": {"report"},
    "rich": {"cli"},
    "yaml": {"text", "recordings"},
    "launch": {"nodes"},
    "numba": {"kernels"},
    "gymnasium": {"workflow"},
}
"""Libraries that only some rooms may import (`bench` times the peer)."""

GENERATED = ("action", "msg", "srv")
"""Packages that the build makes of the interface definitions."""

MODULES = sorted(path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in GENERATED)


def top(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def imported(path: Path) -> set[str]:
    names = set()
    for node in figures.nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("library", ONLY_IN)
def test_libraries_stay_where_they_belong(library):
    users = {top(path) for path in MODULES if any(name.split(".")[0] == library for name in imported(path))}
    assert users <= ONLY_IN[library]


def test_no_drawers():
    assert not {top(path) for path in MODULES} & {"utils", "tools", "helpers", "common", "base"}


def test_no_circles():
    """Rooms of a folder, files and subfolders, have an order in which each imports only from those before it."""
    found = {str(folder): figures.circles(figures.arrows(folder, ROOT)) for folder in figures.folders(ROOT)}
    assert {folder: circles for folder, circles in found.items() if circles} == {}


def test_classes_of_nodes_are_short():
    """The decisions of a node are classes of the core; only lists of parameters may be longer."""
    classes = [node for path in (ROOT / "nodes").rglob("*.py") for node in figures.nodes(path)]
    lines = {one.name: one.end_lineno - one.lineno + 1 for one in classes if isinstance(one, ast.ClassDef)}
    long = {name: count for name, count in lines.items() if count > 200 and not name.endswith("Settings")}
    assert long == {}


def test_no_node_resets_a_timer():
    """An EventsExecutor (rclpy 7 to 9) calls a timer once more for each reset, without an end, and starves the rest."""
    files = list((ROOT / "nodes").rglob("*.py"))
    calls = [(path, node.func) for path in files for node in figures.nodes(path) if isinstance(node, ast.Call)]
    resets = [(path, call) for path, call in calls if isinstance(call, ast.Attribute) and call.attr == "reset"]
    assert [path for path, call in resets if "timer" in ast.unparse(call.value)] == []


def test_circles_and_layers_are_counted():
    round_trip = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"b"}), "d": frozenset()}
    assert figures.circles(round_trip) == [{"b", "c"}]
    assert figures.layers(round_trip) == 0
    assert figures.layers({"a": frozenset({"b", "c"}), "b": frozenset({"c"}), "c": frozenset()}) == 3
