# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id simulate`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.cli import show, show_progress
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim, claim_folder
from robot_dyn_id.cli.robots import ROBOT_FILES, add_robot, read_robot
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.identification.prediction.forward_simulation import SimulatedMotion
from robot_dyn_id.progress import Stage
from robot_dyn_id.recordings import write_npz
from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.simulation.controllers import make_usable_dynamics
from robot_dyn_id.workflow.identification import open_all
from robot_dyn_id.workflow.prediction import SIMULATION_RATE_HZ, simulate

TOPIC = "/joint_states"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Forward dynamics of an identified model: it follows a trajectory under position control, or moves under the "
        "efforts of a recording from the recorded state on. Samples have no sensor noise."
    )
    parser.add_argument("data", nargs="?", metavar="DATA", help="recording whose efforts drive the model")
    parser.add_argument("--trajectory", metavar="FILE", help="trajectory.yaml that it follows instead")
    add_robot(parser, f"{ROBOT_FILES} that was identified")
    parser.add_argument("--parameters", required=True, metavar="FILE", help="parameters.yaml, or its folder")
    parser.add_argument("--out", required=True, help="FILE.npz (t, joint_names, q, dq, tau), or a new folder for a bag")
    parser.add_argument("--rate", type=float, metavar="HZ", help="with --trajectory: samples per second, default 1000")
    parser.add_argument("--restart", type=float, metavar="S", help="with DATA: begin again from the recorded state")
    parser.add_argument(
        "--temperature",
        nargs="+",
        type=float,
        metavar="C",
        help="with --trajectory: temperature of all joints or of each one; default: that of the parameters",
    )
    add_force(parser)
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Simulate and write."""
    out = Path(arguments.out)
    _check(arguments, out)
    configuration = read_configuration_from(arguments)
    parameters = read_parameters(arguments.parameters)
    urdf, joints = read_robot(arguments).text, parameters.robot.joint_names
    dynamics = make_usable_dynamics(parameters, urdf, joints, needs_mass_matrix=True)
    make_output_folder(out.parent)
    if arguments.trajectory:
        stored = read_trajectory(arguments.trajectory)
        differs = stored.check_robot(dynamics.regressor.model, stored.limits)
        motion, epoch = stored.excitation, 0
        show_progress(Stage(f"simulating {motion.duration:.0f} s along {arguments.trajectory}"))
        rate = SIMULATION_RATE_HZ if arguments.rate is None else arguments.rate
        simulated = simulate(parameters, motion, rate, temperature=arguments.temperature or ())
        simulated = replace(simulated, findings=(*differs, *simulated.findings))
    else:
        recording = open_all([arguments.data], configuration)[0]
        show_progress(Stage(f"simulating under the efforts of {arguments.data}"))
        restart = math.inf if arguments.restart is None else arguments.restart
        simulated = simulate(parameters, recording, restart=restart, settings=configuration.settings)
        epoch = recording.epoch
    _write(out, parameters.robot.joint_names, simulated, epoch)
    print_findings(simulated.findings)
    if not arguments.json:
        show(f"{len(simulated.t)} samples in {out}")
    distance = dict(zip(parameters.robot.joint_names, simulated.distance.tolist(), strict=True))
    return 0, {"file": str(out), **summarize_findings(simulated.findings), "largest_distance": distance}


def _check(arguments: argparse.Namespace, out: Path) -> None:
    """Whether the options fit together, before anything is read.

    Raises:
        UsageError: they do not, or the output exists.
    """
    if (arguments.data is None) == (arguments.trajectory is None):
        raise UsageError("give either DATA, whose efforts drive the model, or --trajectory FILE, which it follows")
    if arguments.data is None and arguments.restart is not None:
        raise UsageError("--restart is for DATA: along a trajectory the model is under control")
    if arguments.data is not None and arguments.rate is not None:
        raise UsageError("--rate is for --trajectory: samples of DATA have its own rate")
    if arguments.data is not None and arguments.temperature is not None:
        raise UsageError("--temperature is for --trajectory: DATA has its own temperatures")
    if out.suffix not in ("", ".npz"):
        raise UsageError(f"--out {out}: give FILE.npz, or a new folder for a bag")
    if out.suffix:
        claim(arguments, out)
    else:
        claim_folder(out)


def _write(out: Path, joint_names: Sequence[str], simulated: SimulatedMotion, epoch: int) -> None:
    """As `.npz`, or as a bag with stamps from `epoch` [ns] on."""
    channels = {"q": simulated.q, "dq": simulated.dq, "tau": simulated.tau}
    if out.suffix:
        write_npz(out, joint_names, simulated.t + epoch * 1e-9, **channels)
    else:
        stamps = np.round(simulated.t * 1e9).astype(np.int64) + epoch
        write_joint_state_bag(out, TOPIC, joint_names, StampedSamples(stamps, **channels))
