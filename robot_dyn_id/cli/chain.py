# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id chain`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.cli import show
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import add_robot, read_robot
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from, report_unused
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.chain import write_chain
from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.loads.chain_recording import (
    PRECISION,
    UNDER_BASE,
    IdentifiedChain,
    RecordedSensor,
    identify_recorded_chain,
)
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.recordings.bag_files import is_bag
from robot_dyn_id.recordings.wrenches import HINGES_KEY, KEY, open_hinge_wrenches, open_wrench
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.workflow.identification import open_all
from robot_dyn_id.workflow.joints import make_robot_for, report_recordings

FILE = "chain.yaml"

UNUSED = (
    *("reference_topic", "flexible", "terms", "couplings", "estimator", "drives", "pivots", "prior"),
    *("reversal_speed", "reversal_speeds", "rest_speed", "period", "essential", "bootstrap", "thresholds"),
    *("ignore", "effort_kind", "channel_topics", "exclude"),
)
"""Keys of the configuration that do not apply: efforts are not read, and least squares finds the bodies alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help=f"recording (rosbag2, .npz); without --wrench a .npz with the wrenches of the hinges in the key "
        f"{HINGES_KEY}",
    )
    add_robot(parser)
    parser.add_argument(
        "--wrench",
        action="append",
        default=[],
        metavar="PLACE[=TOPIC]",
        help=f"6-axis sensor: {UNDER_BASE} (under the base), or the joint in whose hinge it is, and its WrenchStamped "
        f"topic (default: the only one); key {KEY} of a .npz; repeatable for bags",
    )
    parser.add_argument(
        "--frame", metavar="LINK", help="link whose frame the wrench is in (default: header.frame_id of the messages)"
    )
    parser.add_argument(
        "--reaction",
        action="store_true",
        help="the sensor reports the wrench that it exerts on the robot, not the opposite one",
    )
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
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Identify, write, and print."""
    if not 0.0 < arguments.precision < 0.1:
        raise UsageError(f"--precision {arguments.precision:g}: must be between 0 and 0.1")
    places = _read_places(arguments)
    claim(arguments, Path(arguments.out) / FILE)
    configuration = read_configuration_from(arguments)
    (recording,) = open_all([arguments.data], configuration)
    model = make_robot_for(read_robot(arguments), configuration, [recording])
    chain = identify_recorded_chain(
        recording,
        _open_sensors(arguments, places, recording, model),
        model,
        configuration.settings,
        arguments.principal,
        arguments.precision,
    )
    findings = (
        *report_unused(configuration, UNUSED, "the bodies of a chain"),
        *report_recordings([recording], model.joint_names),
        *chain.findings,
    )
    file = make_output_folder(arguments.out) / FILE
    summary = write_chain(file, chain, **summarize_findings(findings))
    print_findings(findings)
    if not arguments.json:
        _print(chain)
        show(f"bodies in {file}")
    return 0, {**summary, "file": str(file)}


def _read_places(arguments: argparse.Namespace) -> dict[str, str]:
    """Topics of the sensors by their places; empty: the only topic.

    Raises:
        UsageError: options that contradict one another, or a sensor given twice.
    """
    places: dict[str, str] = {}
    for word in arguments.wrench:
        place, _, topic = word.partition("=")
        if place in places:
            raise UsageError(f"--wrench {place}: given twice")
        places[place] = topic
    bag = is_bag(Path(arguments.data))
    if not places and bag:
        raise UsageError("a bag has no map of its sensors: give --wrench PLACE[=TOPIC]")
    if not places and (arguments.frame or arguments.reaction):
        raise UsageError("--frame and --reaction are for the sensors of --wrench: give it too, or leave them out")
    if places and not bag and (len(places) > 1 or any(places.values())):
        raise UsageError(
            f"--wrench: a .npz has one sensor, in the key {KEY}; give the place of that one, without a topic"
        )
    if len(places) > 1 and arguments.frame:
        raise UsageError("--frame: the frames of several sensors are those of their messages; leave it out")
    return places


def _open_sensors(
    arguments: argparse.Namespace, places: Mapping[str, str], recording: Recording, model: RobotModel
) -> list[RecordedSensor]:
    """The sensors of the recording."""
    if not places:
        found = open_hinge_wrenches(arguments.data, model.joint_names)
        return [RecordedSensor.in_hinge(model, hinge, wrench) for hinge, wrench in found.items()]
    return [
        RecordedSensor.in_link_frame(
            model,
            place,
            open_wrench(arguments.data, recording, topic or None),
            arguments.frame or "",
            arguments.reaction,
        )
        for place, topic in places.items()
    ]


def _print(chain: IdentifiedChain) -> None:
    """A table of all parameters with their standard deviations."""
    estimate = chain.estimate
    show("6-axis sensors at " + ", ".join(chain.sensors))
    for body, names, values, sigmas in zip(
        chain.bodies, estimate.names, estimate.values, estimate.standard_deviations, strict=True
    ):
        show(f"{body}:")
        for name, unit, value, sigma in zip(names, estimate.units, values, sigmas, strict=True):
            found = f"{value:>12.6g} +- {sigma:<9.2g} {unit}" if np.isfinite(value) else "not identifiable"
            show(f"  {name:<6} {found}")
    size = estimate.names.size
    show(f"{estimate.rank} of {size} independent, {size - len(estimate.not_excited)} identifiable one by one")
