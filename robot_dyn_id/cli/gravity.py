# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id gravity`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.cli import show
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import add_robot, list_mesh_folders, read_robot
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from, read_robot_from
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.collision.obstacles import Surroundings
from robot_dyn_id.excitation.design.planning import make_motion_limits
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.excitation.placeholders import find_placeholder_limits, refuse_placeholders
from robot_dyn_id.files.joint_trajectory import write_joint_trajectory
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.workflow.gravity_calibration import (
    CALIBRATED,
    GRAVITY,
    LoadedRecordings,
    calibrate_recordings,
)
from robot_dyn_id.workflow.gravity_poses import plan_gravity_poses
from robot_dyn_id.workflow.identification import open_all

POSES = "poses.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", nargs="*", metavar="DATA", help="recordings of the arm (rosbag2, .npz, .csv)")
    add_robot(parser)
    parser.add_argument(
        "--out", required=True, metavar="DIR", help=f"folder for {GRAVITY} and, with a scale, {CALIBRATED}"
    )
    parser.add_argument("--plan", action="store_true", help=f"write the motion to record, {POSES}, instead")
    parser.add_argument(
        "--trust-urdf-mass", action="store_true", help="scale of masses and gains: the total mass of the URDF"
    )
    parser.add_argument(
        "--loaded", nargs="+", metavar="DATA", help="scale of masses and gains: recordings with a known weight"
    )
    parser.add_argument("--known-mass", type=float, metavar="KG", help="mass of the known weight [kg]")
    parser.add_argument("--known-link", metavar="LINK", help="link that carries the known weight")
    parser.add_argument(
        "--known-center",
        nargs=3,
        type=float,
        metavar=("X", "Y", "Z"),
        help="center of mass of the known weight in the frame of this link [m] (default: 0 0 0)",
    )
    parser.add_argument(
        "--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"), help="gravity vector in the base frame [m/s^2]"
    )
    add_force(parser)
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Calibrate, write, and print."""
    _check_scale(arguments)
    if arguments.plan:
        return 0, _planned(arguments)
    if not arguments.data:
        raise UsageError("give DATA, recordings of held poses, or --plan to write the motion that reaches them")
    scaled = bool(arguments.trust_urdf_mass or arguments.loaded)
    folder = Path(arguments.out)
    claim(arguments, folder / GRAVITY, *((folder / CALIBRATED,) if scaled else ()))
    configuration = read_configuration_from(arguments)
    bare = open_all(arguments.data, configuration)
    loaded = open_all(arguments.loaded or (), configuration)
    known = None
    if loaded:
        center = np.array(arguments.known_center or (0.0, 0.0, 0.0))
        known = LoadedRecordings(loaded, arguments.known_mass, arguments.known_link, center)
    robot = read_robot(arguments)
    result = calibrate_recordings(robot, bare, configuration, known, arguments.trust_urdf_mass)
    answer = result.write(folder)
    print_findings(result.findings)
    if not arguments.json:
        _print(answer)
    return 0, answer


def _planned(arguments: argparse.Namespace) -> dict[str, Any]:
    """Plan the motion, write, and print.

    Raises:
        UsageError: recordings are given.
    """
    if arguments.data or arguments.loaded or arguments.trust_urdf_mass:
        raise UsageError("--plan is about a motion that is still to be recorded: leave DATA and the scale out")
    path = Path(arguments.out) / POSES
    claim(arguments, path)
    model = read_robot_from(read_robot(arguments), read_configuration_from(arguments))
    refuse_placeholders(
        find_placeholder_limits(model, {}, ("position",)), "correct the limits of the URDF: the arm moves by them"
    )
    limits, notes = make_motion_limits(DesignSettings(), model)
    clearance = Clearance(model, Surroundings().scene(), folders=list_mesh_folders(arguments))
    motion = plan_gravity_poses(model, limits, clearance)
    make_output_folder(arguments.out)
    write_joint_trajectory(path, motion.rows(model.joint_names))
    warnings = [*notes, *([clearance.note] if clearance.note else [])]
    seconds = float(motion.times[-1])
    if not arguments.json:
        for warning in warnings:
            show(f"  ! {warning}")
        show(f"{motion.poses} poses, each held twice, {seconds:.0f} s, in {path}; begin at its first point")
    return {
        "trajectory_file": str(path),
        "poses": motion.poses,
        "seconds": seconds,
        "start": dict(zip(model.joint_names, motion.points[:, 0].tolist(), strict=True)),
        "collision_check": clearance.basis,
        "warnings": warnings,
    }


def _check_scale(arguments: argparse.Namespace) -> None:
    """Check the options of the common scale.

    Raises:
        UsageError: two scales, or an incomplete known weight.
    """
    if arguments.trust_urdf_mass and arguments.loaded:
        raise UsageError("--trust-urdf-mass and --loaded are two scales of the masses: give one of them")
    given = arguments.known_mass is not None, arguments.known_link is not None
    if arguments.loaded and not all(given):
        raise UsageError("--loaded needs --known-mass KG and --known-link LINK: the weight that these recordings hold")
    if not arguments.loaded and (any(given) or arguments.known_center):
        raise UsageError("a known weight needs --loaded DATA: recordings with it; DATA are recordings without it")


def _print(answer: dict[str, Any]) -> None:
    """A table of the joints, and one of the masses where they are known."""
    width = max(len(entry["name"]) for entry in answer["joints"])
    show(f"{answer['poses']} holds; efforts in drive units, gains in N m or N per drive unit")
    show(f"{'joint':<{width}}  {'gravity':>9}  {'friction':>9}  {'residual':>9}  gain")
    for entry in answer["joints"]:
        gain = f"{entry['gain']:.4g} +- {entry['gain_standard_deviation']:.2g}" if "gain" in entry else "-"
        show(
            f"{entry['name']:<{width}}  {entry['gravity_rms']:>9.4g}  {entry['friction']:>9.4g}  "
            f"{entry['residual_rms']:>9.3g}  {gain}"
        )
    for body in answer.get("bodies", ()):
        show(f"mass behind {body['name']}: {body['mass']:.4g} +- {body['mass_standard_deviation']:.2g} kg")
    urdf = f"; URDF with these masses in {answer['urdf_file']}" if "urdf_file" in answer else ""
    show(f"gravity in {answer['file']}{urdf}")
