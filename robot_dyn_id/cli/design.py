# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id design`."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.cli import note, show, show_progress
from robot_dyn_id.cli.next_steps import show_steps
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import add_robot, list_mesh_folders, list_robot_words, read_robot
from robot_dyn_id.cli.sources import read_configuration_from, read_robot_from
from robot_dyn_id.dynamics.dynamics import check_robot
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.clearance import NOT_CHECKED
from robot_dyn_id.excitation.design.objectives import OBJECTIVES
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS
from robot_dyn_id.excitation.design.planning import (
    DesignTask,
    find_least_known_parameters,
    list_given_limits,
    make_design_task,
)
from robot_dyn_id.excitation.design.reduction import EarlierFit
from robot_dyn_id.excitation.design.search import Design, design
from robot_dyn_id.excitation.design.settings import PURPOSES, STAND_INS, DesignSettings
from robot_dyn_id.excitation.forms.registry import FORMS, repeat_cycle
from robot_dyn_id.excitation.placeholders import find_placeholder_limits, refuse_placeholders
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.files.joint_limits import JointLimitsFile, read_joint_limits
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.shared import is_of_robot
from robot_dyn_id.files.trajectory import StoredExcitation, write_trajectory
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.advice import ABSENT_RECORDING, RunFiles
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.report.text import design_text

GIVEN = (
    *("purpose", "form", "period", "periods", "harmonics"),
    *("objective", "optimizer", "seed", "clearance", "stand_ins"),
)
"""Options that override keys of the design file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for trajectory.yaml and preview.html")
    parser.add_argument(
        "--design",
        metavar="FILE",
        help="demands: form, limits, obstacles, objective, ... (YAML); key by key in place of those of --config",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="joints, gravity and terms of the identification (YAML), or the name of a robot (such as ur5e), which "
        "also gives the demands",
    )
    parser.add_argument("--limits", metavar="FILE", help="joint limits in the format of MoveIt's joint_limits.yaml")
    parser.add_argument(
        "--after", metavar="RUN", help="earlier identification: target its poorly identified parameters"
    )
    parser.add_argument(
        "--parameters", metavar="FILE", help="parameters.yaml: its torque is kept within the effort limits"
    )
    parser.add_argument(
        "--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"), help="gravity vector in the base frame [m/s^2]"
    )
    parser.add_argument(
        "--acceleration", type=float, metavar="A", help="acceleration limit of all joints [rad/s^2 or m/s^2]"
    )
    parser.add_argument(
        "--for",
        dest="purpose",
        choices=PURPOSES,
        help="what the motion identifies (default: links, with the friction of the joints): links; the same for "
        "computed torque, above all the inertias that its feedback acts through; or actuators under position commands, "
        "with sweeps and steps of 20 s",
    )
    parser.add_argument("--form", choices=FORMS, help="form of the motion (default: fourier)")
    parser.add_argument("--period", type=float, metavar="S", help="duration of one period [s] (default: 10)")
    parser.add_argument("--periods", type=int, metavar="N", help="number of periods (default: 1)")
    parser.add_argument(
        "--harmonics", type=int, metavar="N", help="number of harmonics of a Fourier series (default: 5)"
    )
    parser.add_argument("--objective", choices=OBJECTIVES, help="objective that is minimized (default: d_optimal)")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, help="search method (default: gradient)")
    parser.add_argument(
        "--clearance",
        type=float,
        metavar="M",
        help="minimum distance that is kept [m] (default: 0.02; 0: no check)",
    )
    parser.add_argument("--stand-ins", choices=STAND_INS, help="shapes of links that have none (default: capsules)")
    parser.add_argument("--seed", type=int, help="seed of the random numbers (default: 1)")
    add_force(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Design a motion, write it, and print its margins to every limit."""
    if arguments.after and arguments.parameters:
        raise UsageError("--after brings its own parameters: leave --parameters out")
    claim(arguments, *(Path(arguments.out) / name for name in ("trajectory.yaml", "preview.html")))
    prior = _earlier(arguments.after or arguments.parameters)
    if prior is not None:
        check_robot(prior, RobotModel.from_description(read_robot(arguments)))
    model, regressor = _robot(arguments, prior if arguments.after else None)
    limits = read_joint_limits(arguments.limits, model) if arguments.limits else JointLimitsFile()
    settings = _settings(arguments, limits)
    limits = limits.extended(
        max_velocity=list_given_limits(settings.velocity_limit, model, "velocity_limit"),
        max_effort=list_given_limits(settings.effort_limit, model, "effort_limit"),
    )
    kinds = ("position", "velocity", *(("effort",) if settings.effort_scale > 0.0 else ()))
    refuse_placeholders(
        find_placeholder_limits(model, limits.known, kinds),
        "give --limits FILE, or velocity_limit and effort_limit in the design file",
    )
    wider = limits.list_wider(model)
    model = limits.narrowed(model)
    regressor = replace(regressor, model=model)
    plan = make_design_task(settings, model, regressor, prior, include_prior=bool(arguments.after))
    for line in (*wider, *plan.notes):
        note(f"  ! {line}")
    if plan.clearance is not None and plan.clearance.stand_ins:
        note("  stand-ins replace missing shapes: give the package of meshes that were not found with --package DIR")
    found = design(plan.problem, OPTIMIZERS[settings.optimizer], settings.seed, settings.search, show_progress)
    folder = make_output_folder(arguments.out)
    about = f"{plan.objective} {found.objective_value:.6g} by {settings.optimizer}, seed {settings.seed}"
    excitation: Any = repeat_cycle(found.excitation, plan.problem.parametrization, settings.demand.periods)
    path = folder / "trajectory.yaml"
    stored = StoredExcitation.from_excitation(
        model, plan.limits, excitation, about, plan.collision_check, plan.surroundings
    )
    write_trajectory(path, stored)
    checked = plan.collision_check != NOT_CHECKED
    _preview(folder / "preview.html", model, plan, found, settings)
    targeted = _targeted(plan.earlier, found) if plan.earlier is not None else []
    if not arguments.json:
        show(plan.usage)
        _print(found, targeted, path, folder)
        if plan.collision_note:
            show(plan.collision_note)
        if checked:
            _show_next_steps(arguments, folder, path, settings.purpose)
    return 0 if checked else 1, {
        "feasible": found.feasible and checked,
        "velocity_scale": settings.velocity_scale,
        "effort_scale": settings.effort_scale,
        "friction": plan.torques.friction,
        "posture": dict(zip(model.joint_names, plan.center.tolist(), strict=True)),
        "collision_check": plan.collision_check,
        "stand_ins": list(plan.clearance.stand_ins) if plan.clearance is not None else [],
        "objective": {
            "name": plan.objective,
            "value": found.objective_value,
            "best_random": _finite(found.random_objective_values[0]),
        },
        "condition_number": {"value": _finite(found.condition_numbers["columns"]), "scaling": "columns"},
        "condition_numbers": {name: _finite(value) for name, value in found.condition_numbers.items()},
        "margins": [asdict(margin) for margin in found.margins],
        "seconds": found.seconds,
        "evaluations": found.evaluations,
        "interrupted": found.interrupted,
        "parameters": targeted,
        "warnings": [*([plan.collision_note] if plan.collision_note else []), *wider, *plan.notes],
        "trajectory_file": str(path),
        "preview_file": str(folder / "preview.html"),
    }


def _show_next_steps(arguments: argparse.Namespace, folder: Path, trajectory: Path, purpose: str) -> None:
    """Print how a motion that was checked for collisions is looked at, run, and used."""
    robot, actuators = list_robot_words(arguments), purpose == "actuators"
    given = [f"urdf:={robot[0]}"] if Path(robot[0]).suffix == ".urdf" else []  # else that of `robot_description`
    launch = "actuators.launch.py" if actuators else "excite.launch.py"
    run = shlex.join([launch, "params_file:=PARAMETERS.yaml", *given, f"trajectory:={trajectory}"])
    config = ("--config", arguments.config) if arguments.config else ()
    gravity = ("--gravity", *map(str, arguments.gravity)) if arguments.gravity else ()
    options = (*config, *(() if actuators else gravity), "--out", str(folder / "run"))
    verb = "actuators" if actuators else "identify"
    use = RunFiles(folder, robot, ()).format(verb, ABSENT_RECORDING, "--robot", *robot, *options)
    show_steps(
        {
            "motion with its margins to all limits": f"open {folder / 'preview.html'} in a browser",
            "all checks of the node without a motion; then the same without `dry_run`": (
                f"ros2 launch robot_dyn_id {run} dry_run:=true"
            ),
            "model from the recording of the motion": use,
        }
    )


def _finite(value: float) -> float | None:
    """A number for JSON, in which infinity becomes null."""
    return float(value) if np.isfinite(value) else None


def _earlier(path: str | None) -> ParameterSet | None:
    if path is None:
        return None
    return read_parameters(path)


def _robot(arguments: argparse.Namespace, prior: ParameterSet | None) -> tuple[RobotModel, Regressor]:
    """The robot and the columns that are to be identified: those of the earlier identification, if there is one."""
    configuration, joints = read_configuration_from(arguments), read_design_settings(*_files(arguments)).joints
    if prior is not None:
        regressor = Regressor.from_parameters(prior)
        names = regressor.model.joint_names
        if joints and set(joints) != set(names):
            raise UsageError(
                f"{_files(arguments)[-1]}: joints: the earlier identification has {', '.join(names)}: "
                "only these can be designed for after it"
            )
        return regressor.model, regressor
    model = read_robot_from(read_robot(arguments), replace(configuration, identify=joints or configuration.identify))
    return model, Regressor(model, place_terms_on_joints(model, configuration.settings.fixed_terms))


def _files(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Files with demands, in ascending precedence: the configuration of a robot, and the design file."""
    of_robot = arguments.config is not None and is_of_robot(arguments.config)
    return (*((arguments.config,) if of_robot else ()), *((arguments.design,) if arguments.design else ()))


def _settings(arguments: argparse.Namespace, limits: JointLimitsFile) -> DesignSettings:
    given = {name: getattr(arguments, name) for name in GIVEN if getattr(arguments, name) is not None}
    given |= {kind: limits.of(f"max_{kind}") for kind in ("acceleration", "jerk") if limits.of(f"max_{kind}")}
    if arguments.acceleration is not None:
        given["acceleration"] = {"all": arguments.acceleration}
    settings = read_design_settings(*_files(arguments), **given)
    return replace(settings, folders=(*settings.folders, *list_mesh_folders(arguments)))


def _targeted(earlier: EarlierFit, found: Design) -> list[dict[str, Any]]:
    """Least-known parameters of the earlier identification, with their standard deviations before and after."""
    names = list(earlier.names)
    rows = []
    for name in find_least_known_parameters(earlier):
        number = names.index(name)
        before, after = float(earlier.standard_deviations[number]), float(found.standard_deviations[number])
        rows.append(
            {
                "name": name,
                "value": float(earlier.values[number]),
                "standard_deviation": before if np.isfinite(before) else None,
                "predicted": after,
            }
        )
    return rows


def _preview(path: Path, model: RobotModel, plan: DesignTask, found: Design, settings: DesignSettings) -> None:
    from robot_dyn_id.report.margins import PlannedMotion
    from robot_dyn_id.report.preview import PreviewOptions, write_preview

    t = np.linspace(0.0, found.excitation.duration, 2 + int(found.excitation.duration / 0.005))
    motion = found.excitation.evaluate(t)
    shown = replace(model, limits=replace(model.limits, effort=plan.effort))
    write_preview(
        path,
        shown,
        PlannedMotion(t, *motion[:3], plan.torques.torque(motion)),
        PreviewOptions(
            limits=plan.limits,
            title=f"{settings.form} for {model.name}",
            obstacles=plan.surroundings.obstacles,
            folders=settings.folders,
            clearance=plan.clearance,
            words=plan.collision_note,
            usage=plan.usage,
        ),
    )


def _print(found: Design, targeted: list[dict[str, Any]], path: Path, folder: Path) -> None:
    show(design_text(found))
    for row in targeted:
        before = "unknown" if row["standard_deviation"] is None else f"{row['standard_deviation']:.3g}"
        show(f"  {row['name']}: value {row['value']:.4g}, standard deviation {before} -> {row['predicted']:.3g}")
    if found.interrupted:
        show("interrupted: the best motion so far")
    show(f"{found.evaluations} evaluations in {found.seconds:.1f} s; wrote {path} and {folder / 'preview.html'}")
