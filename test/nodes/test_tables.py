# SPDX-License-Identifier: Apache-2.0
"""The page about the nodes says what the nodes declare, and every node can be started."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from robot_dyn_id.nodes.tables import NODES, markdown

ROOT = Path(__file__).parents[2]


def test_the_page_is_that_of_the_code():
    assert (ROOT / "docs" / "nodes.md").read_text() == markdown()


def test_every_node_is_an_executable_named_like_its_module():
    installed = re.search(r"foreach\(node\s+([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())
    assert sorted(node.NAME for node in NODES) == installed[1].split()
    assert all(node.__module__ == f"robot_dyn_id.nodes.{node.NAME}" for node in NODES)


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.NAME)
def test_no_node_takes_a_name_that_its_base_has(node, world):
    """rclpy keeps its own state in `_parameters`, `_clock`, ...: what overwrites it breaks services of the node."""
    bases = [kind for kind in node.__mro__[1:] if kind.__module__.startswith("robot_dyn_id.")]
    taken = {name for kind in node.__mro__[1:] if kind not in bases for name in vars(kind)} | set(vars(world.probe))
    tree = ast.parse(Path(inspect.getfile(node)).read_text())
    own = next(part for part in tree.body if isinstance(part, ast.ClassDef) and part.name == node.__name__)
    assigned = {
        part.attr
        for part in ast.walk(own)
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and getattr(part.value, "id", "") == "self"
    }
    defined = {part.name for part in own.body if isinstance(part, ast.FunctionDef)}
    assert not assigned & taken
    assert not (defined - {"__init__"}) & (taken - {name for kind in bases for name in vars(kind)})
