# SPDX-License-Identifier: Apache-2.0
"""Architecture of the package: which room may import which, at every depth; figures.py counts what is held here."""

import ast
from functools import cache
from pathlib import Path

import pytest
from architecture import figures

import robot_dyn_id

ROOT = Path(robot_dyn_id.__file__).parent

ROOMS = (
    "uses",
    "findings",
    "wording",
    "errors",
    "options",
    "arrays",
    "termination",
    "cores",
    "version",
    "faults",
    "progress",
    "text",
    "parameters",
    "kernels",
    "data",
    "recordings",
    "model",
    "dynamics",
    "signals",
    "excitation",
    "simulation",
    "estimators",
    "identification",
    "fleet",
    "online",
    "loads",
    "flexible",
    "export",
    "report",
    "files",
    "workflow",
    "__init__",
    "papers",
    "bench",
    "nodes",
    "cli",
    "__main__",
)
"""Folders and files of the root, in the order of the pipeline: each imports only from those before it."""

INSIDE = {
    "dynamics": (
        *(
            "kronecker",
            "terms",
            "stored_terms",
            "regressor",
            "torque_parts",
            "base_parameters",
            "dynamics",
            "momentum",
            "compensation",
            "prior",
        ),
        *("consistency", "link_body", "body_prior", "crosscheck", "problem"),
    ),
    "signals": (
        *(
            "cleaning",
            "fingerprint",
            "bridging",
            "windows",
            "filtering",
            "ends",
            "ranges",
            "torque_shares",
            "left_out",
            "blocks",
            "term_states",
            "running",
            "strokes",
            "sharp_columns",
            "processing",
            "cutoff",
            "survey",
            "stillness",
            "zeros",
            "trials",
            "agreement",
        ),
        *(
            "samples",
            "gain_factors",
            "hypotheses",
            "delays",
            "weight_gains",
            "channel_faults",
            "stamps",
            "health",
            "diagnosis",
        ),
        "reversals",
        *("spikes", "positions", "resolution", "directions", "holds"),
    ),
    "excitation": (
        *("limits", "placeholders", "trajectory", "quintic_path", "parametrization", "forms", "__init__", "collision"),
        "center",
        "design",
        "execution",
    ),
    "estimators": (
        *("options", "factors", "contract", "weighting", "whitening", "sandwich", "feasible_gls", "newey_west"),
        *(
            "least_squares",
            "row_statistics",
            "robust",
            "ridge",
            "map",
            "total_least_squares",
            "period_averaged",
            "cone_program",
            "non_negative",
            "bounded_intervals",
            "consistent_fit",
            "link_cost",
            "essential",
        ),
        *("consistent", "bootstrap", "stepwise", "constants", "simulated", "__init__"),
    ),
    "identification": (
        *(
            "holdout",
            "passivity",
            "change_words",
            "comparison",
            "extrapolation",
            "model",
            "scales",
            "load",
            "spectrum",
            "thinning",
            "metrics",
            "residual_profile",
            "rollout",
            "verdict",
            "uses",
            "settings",
            "factor",
            "zeros",
            "shared_motion",
            "residuals",
            "noise_directions",
            "fallback",
            "identifiability",
            "estimation",
            "trace",
            "evaluation",
            "explanation",
            "cross_validation",
            "correction",
            "selection",
            "robot_draws",
        ),
        *("assembly", "prediction", "feed_forward", "motion_efforts", "forward_simulation", "pipeline", "iteration"),
    ),
    "files": (
        *(
            "spelling",
            "values",
            "shared",
            "formats",
            "joint_limits",
            "parameters_header",
            "parameters",
            "prior",
            "term_values",
            "trajectory",
        ),
        *("joint_trajectory", "payload", "gravity", "chain", "design"),
        *("flexible_section", "flexible", "configuration", "flexible_data", "factor", "manifest"),
    ),
    "papers": ("figures", "inputs", "flexible2r", "logistic2r", "planar3r", "quaternion6r", "space6r"),
    "nodes": (
        *("runtime", "messages", "starting", "launch_arguments", "recording", "excitation"),
        *("simulator_settings", "simulated_controller", "simulator", "excitation_publisher", "recorder", "identifier"),
        *("payload", "payload_identifier"),
        *(
            "computed_torque_controller",
            "torque_residual_monitor",
            "external_torque_estimator",
            "marker_publisher",
            "gravity_compensator",
            "gravity_calibrator",
            "watcher",
            "tables",
            "access_policy",
            "launching",
        ),
    ),
}
"""Order of the rooms inside the large folders, by the same rule."""

RANK = {name: place for place, name in enumerate(ROOMS)}

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


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


def upward(path: Path) -> set[str]:
    """Rooms of the root that a file imports from although they are not below its own."""
    own = top(path)
    rooms = {name.split(".")[1] for name in imported(path) if name.startswith("robot_dyn_id.")}
    return {room for room in rooms - {own, *GENERATED, "__version__", "_built_for"} if RANK[room] >= RANK[own]}


def test_imports_go_down():
    files = [path for path in MODULES if top(path) != "_built_for"]
    assert {top(path) for path in files} <= set(RANK), "write it into ROOMS"
    assert {identity(path): found for path in files if (found := upward(path))} == {}


@pytest.mark.parametrize("library", ONLY_IN)
def test_libraries_stay_where_they_belong(library):
    users = {top(path) for path in MODULES if any(name.split(".")[0] == library for name in imported(path))}
    assert users <= ONLY_IN[library]


def test_no_drawers():
    assert not {top(path) for path in MODULES} & {"utils", "tools", "helpers", "common", "base"}


@pytest.mark.parametrize("folder", INSIDE)
def test_imports_inside_large_folders_go_down(folder):
    arrows = figures.arrows(ROOT / folder, ROOT)
    order = INSIDE[folder]
    assert set(arrows) <= set(order), f"write it into INSIDE[{folder!r}]"
    wrong = [(room, to) for room in arrows for to in arrows[room] if order.index(to) > order.index(room)]
    assert wrong == []


def test_no_circles():
    found = {str(folder): figures.circles(figures.arrows(folder, ROOT)) for folder in figures.folders(ROOT)}
    assert {folder: circles for folder, circles in found.items() if circles} == {}


def test_circles_and_layers_are_counted():
    round_trip = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"b"}), "d": frozenset()}
    assert figures.circles(round_trip) == [{"b", "c"}]
    assert figures.layers(round_trip) == 0
    assert figures.layers({"a": frozenset({"b", "c"}), "b": frozenset({"c"}), "c": frozenset()}) == 3
