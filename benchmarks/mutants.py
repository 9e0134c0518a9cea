# SPDX-License-Identifier: Apache-2.0
"""Mutation score of the suite: the share of small changes of the core that its tests find.

    python benchmarks/mutants.py --count 300 --seed 1 --out build/mutants.json

Each mutant changes one comparison, arithmetic or logical operator, constant, condition or returned value of a module,
in a copy of the package. The tests of its room run until one fails: the test file of the module's name if there is
one, then all of its folder, without tests of nodes, of processes and of long studies. A mutant that passes all of them
survives; some change nothing that a test could find. Kernels are left out: each change compiles all of them again.
Run it in the folder of the sources, with an environment that has the package's tests.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGE, TESTS = Path("robot_dyn_id"), Path("test")

CORE = (
    *("data", "model", "dynamics", "signals", "estimators", "identification", "excitation", "simulation"),
    *("online", "loads", "flexible", "fleet", "files", "recordings", "text"),
)
"""Folders that are mutated."""

QUICK = ("-m", "not real_time and not slow", "--no-processes")
"""Options of the tests that `make quick` runs."""

TIMEOUT_S = 300.0
"""Duration after which a mutant counts as found: it does not end."""

COMPARISONS = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Mult}
LOGIC = {ast.And: ast.Or, ast.Or: ast.And}


def mutate(node: ast.AST) -> str:
    """Change a node of a syntax tree in place, and describe the change; empty: it is not of a kind that is changed."""
    match node:
        case ast.Compare(ops=[operator, *_]):
            node.ops = [COMPARISONS[type(operator)](), *node.ops[1:]]
            return f"{type(operator).__name__} to {type(node.ops[0]).__name__}"
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in ARITHMETIC:
            node.op = ARITHMETIC[type(operator)]()
            return f"{type(operator).__name__} to {type(node.op).__name__}"
        case ast.BoolOp(op=operator):
            node.op = LOGIC[type(operator)]()
            return f"{type(operator).__name__} to {type(node.op).__name__}"
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value) | float(value)):
            node.value = value + 1
        case ast.If(test=test) | ast.IfExp(test=test):
            node.test = ast.UnaryOp(ast.Not(), test)
            return "condition negated"
        case ast.Return(value=ast.expr()):
            node.value = ast.Constant(None)
            return "returns None"
        case _:
            return ""
    return f"{value} to {node.value}"


def places(tree: ast.Module) -> Iterator[int]:
    """Positions of the nodes that can be changed, in the order of `ast.walk`; those of types are not."""
    left_out = {
        id(part)
        for node in ast.walk(tree)
        for field in ("annotation", "returns")
        if (kind := getattr(node, field, None)) is not None
        for part in ast.walk(kind)
    }
    for position, node in enumerate(ast.walk(tree)):
        if id(node) not in left_out and mutate(copy.copy(node)):
            yield position


def tests_of(module: Path) -> list[Path]:
    """Test paths of a module, the nearest first."""
    folder = TESTS / module.relative_to(PACKAGE).parent
    own = folder / f"test_{module.stem}.py"
    while not folder.is_dir():
        folder = folder.parent
    return [own, folder] if own.is_file() else [folder]


def passes(path: Path, root: Path) -> bool:
    """Whether the tests of a path pass with the copy of the package in a folder; exit code 5 is "no test"."""
    command = [Path(sys.executable).with_name("pytest"), "-x", "-q", "-p", "no:cacheprovider", *QUICK, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, check=False, capture_output=True, env=environment, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode in (0, 5)


def main() -> None:
    """Make the mutants, run their tests, and print the share that is found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file of all mutants with their results")
    given = parser.parse_args()
    modules = [path for folder in CORE for path in sorted((PACKAGE / folder).rglob("*.py"))]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in modules}
    candidates = [(path, position) for path, tree in trees.items() for position in places(tree)]
    results, sound = [], {}
    with TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(PACKAGE, root / PACKAGE)
        for path in Path().resolve().iterdir():  # files that the package finds next to it
            if path.name != PACKAGE.name:
                (root / path.name).symlink_to(path)
        for path, position in random.Random(given.seed).sample(candidates, given.count):
            tree = copy.deepcopy(trees[path])
            node = next(node for place, node in enumerate(ast.walk(tree)) if place == position)
            change, tests = mutate(node), tests_of(path)
            for one in tests:
                if one not in sound:
                    sound[one] = passes(one, root)
            if not all(sound[one] for one in tests):
                continue
            (root / path).write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
            found = not all(passes(one, root) for one in tests)
            shutil.copy2(path, root / path)
            results.append({"place": f"{path}:{node.lineno}", "change": change, "found": found})
            print("found   " if found else "SURVIVES", results[-1]["place"], change, flush=True)
    broken = [str(path) for path, passed in sound.items() if not passed]
    count = Counter(one["found"] for one in results)
    print(f"{count[True]} of {len(results)} found; left out, as their tests fail without a mutant: {broken or 'none'}")
    if given.out:
        given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
