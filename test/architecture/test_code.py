# SPDX-License-Identifier: Apache-2.0
"""Rules of the code that no linter holds: number of arguments, names of classes, a test for every module."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest
from architecture import figures

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent / "robot_dyn_id"
FILES = [path for folder in figures.folders(ROOT) for path in sorted(folder.glob("*.py")) if path.stem != "_built_for"]


def identity(path):
    return path.relative_to(ROOT).as_posix()


# --- Arguments ---------------------------------------------------------------------------------------------------

MOST_ARGUMENTS = 6

MORE_ARGUMENTS: set[str] = set()
"""Functions that still take more; the list only shrinks."""


def crowded(path):
    """Functions of a file with too many arguments; constructors make one value of what belongs together."""
    for node in figures.nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "__init__":
            given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            if len([one for one in given if one.arg not in ("self", "cls")]) > MOST_ARGUMENTS:
                yield f"{identity(path)}: {node.name}"


def test_functions_take_at_most_six_arguments():
    found = {name for path in FILES if path.parent.name != "kernels" for name in crowded(path)}
    assert found <= MORE_ARGUMENTS


# --- Names -------------------------------------------------------------------------------------------------------


def test_no_two_public_classes_have_one_name():
    places = defaultdict(list)
    for path in FILES:
        for node in figures.nodes(path)[0].body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(identity(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


# --- Layout ------------------------------------------------------------------------------------------------------


def unformatted(path):
    """Lines of a file that are kept from the formatter."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if re.search(r"# fmt: (skip|off)", line)]


@pytest.mark.parametrize("path", [path for path in FILES if unformatted(path)], ids=identity)
def test_only_tables_are_kept_from_the_formatter(path):
    """Tables are literals of numbers or words without a call that does something."""
    statements = [node for node in figures.nodes(path) if isinstance(node, ast.stmt)]
    for number in unformatted(path):
        (*_, innermost) = sorted(
            (node for node in statements if node.lineno <= number + 1 and node.end_lineno >= number),
            key=lambda node: (node.lineno, -node.end_lineno),
        )
        numbers = [
            node for node in ast.walk(innermost) if isinstance(node, ast.Constant) and type(node.value) in (int, float)
        ]
        assert isinstance(innermost, ast.Assign | ast.AnnAssign), f"line {number} is not a table"
        assert len(numbers) >= 6, f"line {number} is not a table of numbers"


# --- Tests -------------------------------------------------------------------------------------------------------

TESTED_ELSEWHERE = {
    "kernels/": "dynamics",  # compiled loops are compared with Pinocchio and with numpy by those who call them
    "cli/": "cli",  # by command line: the commands are imported by name
    "workflow/": "workflow",  # by the front door, which loads it by name
    "papers/": "papers",  # one file for each paper
    "data/wrench.py": "loads",
    "dynamics/prior.py": "estimators/test_everyday_estimators.py",
    "dynamics/problem.py": "estimators/test_estimators.py",
    "excitation/placeholders.py": "nodes/test_excitation_publisher.py",
    "excitation/execution/held_joints.py": "nodes/test_excitation_publisher.py",
    "files/payload.py": "cli/test_payload.py",
    "report/figure.py": "workflow/test_front_door.py",
    "loads/payload_accuracy.py": "workflow/test_payload_motion.py",
    "files/chain.py": "cli/test_chain.py",
    "files/actuators.py": "cli/test_actuators.py",
    "files/flexible.py": "cli/test_flexible.py",
    "files/flexible_data.py": "cli/test_flexible.py",
    "files/joint_limits.py": "cli/test_design.py",
    "files/design.py": "excitation/design",
    "flexible/verdict.py": "cli/test_flexible.py",
    "identification/prediction/forward_simulation.py": "cli/test_simulate.py",
    "model/quaternions.py": "papers/test_quaternion6r.py",
    "model/screw.py": "dynamics",
    "nodes/launch": "integration/test_launch_files.py",
    "nodes/starting.py": "nodes/runtime/test_running.py",
    "nodes/runtime/composition.py": "support/ros_world.py",  # every test of a node runs in one
    "recordings/recovery.py": "recordings/test_recovery.py",  # by the command `recover`
    "recordings/experiments.py": "cli/test_flexible.py",
    "recordings/wrenches.py": "cli/test_payload.py",
    "report/drawing.py": "papers",
    "report/folder.py": "cli",
    "report/text.py": "workflow",
    "text/": "text",
}
"""Modules that no test of their room imports, and where they are tested."""


def module_names(path):
    """Names of a file's imports that are modules of the package, as paths."""
    for name in figures.imported(path):
        words = name.split(".")[1:]
        for stem in ("/".join(words), "/".join(words[:-1])):
            for file in (f"{stem}.py", f"{stem}/__init__.py"):
                if stem and (ROOT / file).exists():
                    yield file


def reached(room):
    """Modules of a room that its tests import, directly or through other modules of the room."""
    found = set()
    waiting = [file for test in (TESTS / room).rglob("test_*.py") for file in module_names(test)]
    while waiting:
        file = waiting.pop()
        if file not in found and file.split("/")[0] == room:
            found.add(file)
            waiting += module_names(ROOT / file)
    return found


@pytest.mark.parametrize("room", sorted({identity(path).split("/")[0] for path in FILES if path.parent != ROOT}))
def test_the_tests_of_a_room_reach_all_of_its_modules(room):
    names = {identity(path) for path in FILES if identity(path).startswith(f"{room}/")} - reached(room)
    left = {name for name in names if not name.endswith("__init__.py") and not name.startswith(tuple(TESTED_ELSEWHERE))}
    assert left == set()


def test_the_places_of_tests_exist():
    assert [place for place in TESTED_ELSEWHERE.values() if not (TESTS / place).exists()] == []


def test_every_folder_of_tests_is_a_folder_of_the_package():
    own = {"support", "architecture", "integration", "examples"}
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    assert {folder for folder in folders if folder.parts[:1] != () and folder.parts[0] not in own} <= {
        path.relative_to(ROOT) for path in figures.folders(ROOT)
    }
