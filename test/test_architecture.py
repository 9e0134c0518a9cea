"""Architecture of the package: which module may import which."""

import ast
from pathlib import Path

import pytest

import robot_dyn_id

ROOT = Path(robot_dyn_id.__file__).parent

LAYERS = (
    ("errors", "faults", "__init__"),
    ("text_files", "xacro_process", "dataset", "parameters"),
    ("screw", "quaternions", "kernels"),
    ("urdf", "robot", "terms"),
    ("stored_terms", "regressor", "prior", "problem"),
    ("base_parameters", "kronecker", "dynamics", "crosscheck", "consistency", "signals", "plant", "stepwise"),
    ("trajectory_tracking", "controllers", "closed_loop"),
    (
        "excitation",
        "estimators",
        "simulation",
        "simulated_robot",
        "wrench",
        "chain",
        "chain_estimate",
        "chain_likelihood",
        "payload",
        "drive_gains",
        "flexible",
    ),
    (
        "trained",
        "validation",
        "settings",
        "estimation",
        "evaluation",
        "assembly",
        "identifiability",
        "prediction",
        "forward_simulation",
        "pipeline",
        "online",
        "monitoring",
        "load_identification",
        "iteration",
        "flexible_verdict",
    ),
    (
        "yaml_files",
        "parameter_io",
        "trajectory_io",
        "configuration_values",
        "flexible_settings",
        "configuration",
        "parameter_files",
        "design_settings",
        "joint_limits",
        "planning",
        "recordings",
        "export",
        "payload_io",
        "flexible_data",
        "flexible_io",
        "report",
        "offline",
    ),
    ("nodes", "starting", "launching"),
    ("papers",),
    ("cli", "__main__"),
)
"""A module imports from lower layers, and within its layer only from what is written before it."""

RANK = {name: (layer, place) for layer, names in enumerate(LAYERS) for place, name in enumerate(names)}

ONLY_IN = {
    "pinocchio": {"robot", "crosscheck", "excitation", "cli"},
    "coal": {"excitation"},
    "rclpy": {"nodes"},
    "matplotlib": {"report"},
    "yaml": {"yaml_files", "parameter_io", "recordings"},
    "launch": {"launching"},
    "numba": {"kernels"},
}
"""Libraries that only some modules may import (`cli` for the benchmarks, which time the peer)."""

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
    assert own in RANK, f"{own} has no layer: write it into LAYERS"
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
