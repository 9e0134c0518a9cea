# SPDX-License-Identifier: Apache-2.0
"""The page about the nodes says what the nodes declare, and every node can be started."""

import ast
import inspect
import math
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import get_type_hints

import pytest

from robot_dyn_id.errors import UsageError
from robot_dyn_id.nodes.computed_torque_controller import ComputedTorqueController
from robot_dyn_id.nodes.executables import load_node
from robot_dyn_id.nodes.runtime.ros_parameters import PATH, TOPIC, list_ros_parameters, read_value
from robot_dyn_id.nodes.tables import NODES, render_markdown

ROOT = Path(__file__).parents[2]


def test_the_page_is_that_of_the_code():
    assert (ROOT / "docs" / "nodes.md").read_text() == render_markdown()


def test_every_node_is_an_executable_named_like_its_module():
    installed = re.search(r"foreach\(node\s+([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())
    assert sorted(["composed", *(node.NAME for node in NODES)]) == installed[1].split()
    assert all(load_node(node.NAME) is node for node in NODES)
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


WRONG = {
    "double": (math.nan, math.inf, -math.inf, 1e300, -1e300, "1.0", None),
    "double_array": ((math.nan,), (1.0, math.inf), (-1e300,), ("1.0",), 1.0),
    "integer": (1.5, "1", True),
    "bool": (1, "true"),
    "string": (1, None),
    "string_array": (("", "a"), ("a", "b", "a"), (1,), "a"),
}
"""Values that no parameter of a type may have."""

WRONG_TEXTS = {
    PATH: ("~none_of_the_users/file", "x" * 5000, "a\0b"),
    TOPIC: ("", "foo//bar", "~x", "1abc", "a b", "/", "topic/", "x" * 300),
}

OF_THE_ROBOT = {"link", "frame", "payload_body", "driver_frame", "joints", "moving_joints", "recorded_joints"}
"""Texts that only the description of the robot can refuse."""

ROWS = [
    (node, row, item)
    for node in NODES
    for row, item in zip(list_ros_parameters(node.SETTINGS), fields(node.SETTINGS), strict=True)
]


@pytest.mark.parametrize(("node", "row", "item"), ROWS, ids=[f"{node.NAME}-{row.name}" for node, row, _ in ROWS])
def test_no_parameter_takes_a_wrong_value(node, row, item):
    wanted = get_type_hints(node.SETTINGS)[row.name]
    wrong = [
        *WRONG[row.type_name],
        *(value for text in WRONG_TEXTS.get(row.rule.kind, ()) for value in (text, (text,))),
    ]
    for bound in (row.rule.minimum, row.rule.maximum):
        if math.isfinite(bound):
            outside = bound + math.copysign(1.0, 1.0 if bound == row.rule.maximum else -1.0)
            wrong += [type(row.rule.minimum)(outside), (outside,)]
    for value in wrong:
        if repr(value) == repr(row.default):
            assert read_value(item, value, wanted) is value
        else:
            with pytest.raises(UsageError, match=f"parameter {row.name} "):
                read_value(item, value, wanted)
    if row.default is not MISSING:
        assert read_value(item, row.default, wanted) == row.default or row.default != row.default


def test_every_text_is_checked():
    texts = [row for _, row, _ in ROWS if row.type_name in ("string", "string_array")]
    assert {row.name for row in texts if not (row.rule.choices or row.rule.kind)} == OF_THE_ROBOT


@pytest.mark.parametrize("name", ["effort_limit", "tracking_error", "latency", "rate", "period", "window"])
def test_no_limit_and_no_time_is_zero(name):
    assert all(row.rule.refusal((0.0,)) for _, row, _ in ROWS if row.name == name)


@pytest.mark.parametrize(
    "words", [("joint_states:=/" + "x" * 250,), ("__node:=" + "x" * 300,), ("__ns:=/" + "x" * 250,)]
)
def test_a_name_that_cannot_be_used_is_wrong_usage(world, words):
    with pytest.raises(UsageError):
        world.add(ComputedTorqueController, *(word for name in words for word in ("-r", name)))
