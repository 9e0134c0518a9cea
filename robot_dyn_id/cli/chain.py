# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id chain`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.cli import show
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import add_robot, read_robot
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from, report_unused
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.chain import write_chain
from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.loads.chain_recording import PRECISION, IdentifiedChain, identify_recorded_chain
from robot_dyn_id.recordings.wrenches import HINGES_KEY, open_hinge_wrenches
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.workflow.identification import open_all
from robot_dyn_id.workflow.joints import make_robot_for, report_recordings

FILE = "chain.yaml"

UNUSED = (
    *("reference_topic", "flexible", "terms", "couplings", "estimator", "drives", "pivots", "prior"),
    *("reversal_speed", "reversal_speeds", "rest_speed", "period", "essential", "bootstrap", "thresholds"),
    *("ignore", "effort_kind", "channel_topics", "recorded_joints", "definitions", "exclude"),
)
"""Keys of the configuration that do not apply: efforts are not read, and least squares finds the bodies alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "data", metavar="DATA", help=f"recording (.npz) with the wrenches of the hinges in the key {HINGES_KEY}"
    )
    add_robot(parser)
    parser.add_argument(
        "--principal",
        action="store_true",
        help="centers of mass and principal axes are those of the URDF: identify m, Ixx, Iyy, Izz in them",
    )
    parser.add_argument(
        "--precision",
        type=float,
        default=PRECISION,
        metavar="RATIO",
        help="relative precision of the motion, to separate excited parameters from noise (default: %(default)g)",
    )
    parser.add_argument("--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"), help="in the base frame [m/s^2]")
    parser.add_argument("--out", required=True, metavar="DIR", help=f"folder for {FILE}")
    add_force(parser)
    add_configuration(parser, bags=False)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Identify, write, and print."""
    if not 0.0 < arguments.precision < 0.1:
        raise UsageError(f"--precision {arguments.precision:g}: must be between 0 and 0.1")
    claim(arguments, Path(arguments.out) / FILE)
    configuration = read_configuration_from(arguments)
    (recording,) = open_all([arguments.data], configuration)
    model = make_robot_for(read_robot(arguments), configuration, [recording])
    wrenches = open_hinge_wrenches(arguments.data, model.joint_names)
    chain = identify_recorded_chain(
        recording, wrenches, model, configuration.settings, arguments.principal, arguments.precision
    )
    findings = (
        *report_unused(configuration, UNUSED, "the bodies of a chain"),
        *report_recordings([recording], model.joint_names),
    )
    file = make_output_folder(arguments.out) / FILE
    summary = write_chain(file, chain, **summarize_findings(findings))
    print_findings(findings)
    if not arguments.json:
        _print(chain)
        show(f"bodies in {file}")
    return 0, {**summary, "file": str(file)}


def _print(chain: IdentifiedChain) -> None:
    """A table of all parameters with their standard deviations."""
    estimate = chain.estimate
    show("6-axis sensors in the hinges " + ", ".join(chain.bodies[hinge] for hinge in chain.hinges))
    for body, names, values, sigmas in zip(
        chain.bodies, estimate.names, estimate.values, estimate.standard_deviations, strict=True
    ):
        show(f"{body}:")
        for name, unit, value, sigma in zip(names, estimate.units, values, sigmas, strict=True):
            found = f"{value:>12.6g} +- {sigma:<9.2g} {unit}" if np.isfinite(value) else "not identifiable"
            show(f"  {name:<6} {found}")
    size = estimate.names.size
    show(f"{estimate.rank} of {size} independent, {size - len(estimate.not_excited)} identifiable one by one")
