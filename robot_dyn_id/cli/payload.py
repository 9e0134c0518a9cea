# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id payload`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.sources import add_configuration, configuration_from
from robot_dyn_id.dynamics.dynamics import check_robot
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.files.payload import MOMENTS, write_payload
from robot_dyn_id.findings import Finding, make_finding, summarize_findings
from robot_dyn_id.loads.identification import identify_payload, identify_tool, with_payload
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.loads.wrench import CHANNELS
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.recordings.wrenches import open_wrench
from robot_dyn_id.report.folder import PARAMETERS, output_folder
from robot_dyn_id.workflow.identification import open_all
from robot_dyn_id.workflow.joints import report_recordings, robot_for

PAYLOAD = "payload.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", nargs="+", metavar="DATA", help="recordings with the payload (rosbag2, .npz, .csv)")
    parser.add_argument("--robot", required=True, metavar="URDF", help="URDF or xacro file")
    parser.add_argument("--link", required=True, help="link that carries the payload; with --wrench the sensor's frame")
    parser.add_argument("--parameters", metavar="FILE", help="parameters.yaml of the bare arm: from joint torques")
    parser.add_argument(
        "--wrench",
        nargs="?",
        const="",
        metavar="TOPIC",
        help="from a 6-axis sensor: WrenchStamped topic of a bag, key wrench of a .npz",
    )
    parser.add_argument(
        "--reaction",
        action="store_true",
        help="the sensor reports the wrench that it exerts on the tool, not the opposite one",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help=f"folder for {PAYLOAD} and {PARAMETERS}")
    add_force(parser)
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Identify, write, and print."""
    if (arguments.parameters is None) == (arguments.wrench is None):
        raise UsageError("give either --parameters (the bare arm, for joint torques) or --wrench (a 6-axis sensor)")
    if arguments.reaction and arguments.wrench is None:
        raise UsageError("--reaction is for a 6-axis sensor: give --wrench too, or leave it out")
    folder = Path(arguments.out)
    claim(arguments, folder / PAYLOAD, *((folder / PARAMETERS,) if arguments.parameters else ()))
    payload, findings, more = _from_wrench(arguments) if arguments.parameters is None else _from_torques(arguments)
    file = output_folder(arguments.out) / PAYLOAD
    findings = (*findings, *payload.findings)
    summary = write_payload(file, payload, **more, **summarize_findings(findings))
    print_findings(findings)
    if not arguments.json:
        _print(payload)
        for name, (value, sigma) in more.get("sensor_offsets", {}).items():
            print(f"offset of {name}: {value:.4g} +- {sigma:.2g}")
        print(f"payload in {file}" + (f"; arm with it in {more['parameters_file']}" if arguments.parameters else ""))
    return 0, {**summary, "file": str(file)}


def _from_torques(arguments: argparse.Namespace) -> tuple[Payload, tuple[Finding, ...], dict[str, Any]]:
    configuration = configuration_from(arguments)
    arm = read_parameters(arguments.parameters)
    check_robot(arm, RobotModel.from_file(arguments.robot))
    recordings = open_all(arguments.data, configuration)
    payload, findings = identify_payload(recordings, arm, arguments.link, configuration.settings)
    file = output_folder(arguments.out) / PARAMETERS
    write_parameters(file, with_payload(arm, payload))
    findings = (*findings, *report_recordings(recordings, arm.joint_names))
    return payload, findings, {"parameters_file": str(file)}


def _from_wrench(arguments: argparse.Namespace) -> tuple[Payload, tuple[Finding, ...], dict[str, Any]]:
    if len(arguments.data) > 1:
        raise UsageError("--wrench takes one recording: its offsets may differ from one to the next")
    configuration = configuration_from(arguments)
    (recording,) = open_all(arguments.data, configuration)
    model = robot_for(RobotDescription.from_file(arguments.robot), configuration, [recording])
    wrench = open_wrench(arguments.data[0], recording, arguments.wrench or None)
    payload, offsets, sigmas = identify_tool(
        recording, wrench, model, arguments.link, configuration.settings, arguments.reaction
    )
    known = {
        name: [float(value), float(sigma)]
        for name, value, sigma in zip(CHANNELS, offsets, sigmas, strict=True)
        if np.isfinite(sigma)
    }
    findings = report_recordings([recording], model.joint_names)
    unknown = [name for name in CHANNELS if name not in known]
    if unknown:
        message = f"the offset of {', '.join(unknown)} cannot be separated from the tool"
        findings = (*findings, make_finding("sensor_offset_not_identified", message))
    return payload, findings, {"sensor_offsets": known}


def _print(payload: Payload) -> None:
    """A table of mass, center of mass and central inertia with their standard deviations."""
    values = [payload.mass, *payload.center_of_mass]
    values += [payload.inertia["xyz".index(name[1]), "xyz".index(name[2])] for name in MOMENTS]
    names = ("mass", *(f"center {axis}" for axis in "xyz"), *(name.capitalize() for name in MOMENTS))
    units = ("kg", *("m",) * 3, *("kg m^2",) * 6)
    print(f"in the frame of {payload.link}; moments of inertia about the center of mass")
    for name, unit, value, sigma in zip(names, units, values, payload.central_standard_deviations, strict=True):
        print(
            f"{name:<10} {value:>11.5g} +- {sigma:<9.2g} {unit}" if np.isfinite(sigma) else f"{name:<10} not identified"
        )
