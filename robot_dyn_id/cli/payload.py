# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id payload`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.cli import show
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import add_robot, read_robot
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from
from robot_dyn_id.dynamics.dynamics import check_robot
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.files.payload import MOMENTS, make_declared_payload, read_declared, summarize_declared, write_payload
from robot_dyn_id.files.values import file_errors
from robot_dyn_id.findings import Definition, Finding, Section, summarize_findings
from robot_dyn_id.loads.declared import DeclaredPayload, compare_declared
from robot_dyn_id.loads.identification import (
    ARM_MODEL_DOUBTFUL,
    PAYLOAD_CONTRADICTED,
    add_payload,
    estimate_payload,
    estimate_tool,
)
from robot_dyn_id.loads.payload import Payload, PayloadEstimate, move_parameters
from robot_dyn_id.loads.payload_accuracy import report_uncertainty
from robot_dyn_id.loads.wrench import CHANNELS
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings.wrenches import open_wrench
from robot_dyn_id.report.folder import PAGE, PARAMETERS, make_output_folder
from robot_dyn_id.report.loads import SENSOR_UNITS, render_payload_page
from robot_dyn_id.report.result import write_result_page
from robot_dyn_id.report.text import fit_text
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.identification import open_all
from robot_dyn_id.workflow.joints import make_robot_for, report_recordings

SENSOR_OFFSET_NOT_IDENTIFIED = Definition(
    "sensor_offset_not_identified",
    Section.LOADS,
    "info",
    "The motion does not separate the offset of a wrench channel from the weight of the tool.",
    "turn the sensor about all axes",
)

PAYLOAD = "payload.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", nargs="+", metavar="DATA", help="recordings with the payload (rosbag2, .npz, .csv)")
    add_robot(parser)
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
    parser.add_argument(
        "--declared",
        nargs="+",
        metavar="FILE|NUMBER",
        help="test a declared payload: a file like payload.yaml, or 1, 4 or 10 numbers in the frame of the link: mass "
        "[kg], center of mass [m], inertia about it ixx ixy iyy ixz iyz izz [kg m^2]; exit code 1 if it is wrong",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help=f"folder for {PAYLOAD}, {PARAMETERS} and {PAGE}")
    add_force(parser)
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Identify, write, and print."""
    if (arguments.parameters is None) == (arguments.wrench is None):
        raise UsageError("give either --parameters (the bare arm, for joint torques) or --wrench (a 6-axis sensor)")
    if arguments.reaction and arguments.wrench is None:
        raise UsageError("--reaction is for a 6-axis sensor: give --wrench too, or leave it out")
    folder = Path(arguments.out)
    files = (folder / PAYLOAD, *((folder / PARAMETERS,) if arguments.parameters else ()), folder / PAGE)
    claim(arguments, *files)
    declared = _declared(arguments) if arguments.declared else None
    found = _from_wrench(arguments) if arguments.parameters is None else _from_torques(arguments)
    test = None if declared is None else compare_declared(found.estimate, declared)
    answer: dict[str, Any] = {} if test is None else {"declared": summarize_declared(test)}
    fit = found.estimate.fit
    assert fit is not None  # every estimate of a recording has one
    limit = read_configuration_from(arguments).settings.thresholds.bad_nrmse
    findings = (*found.findings, *fit.findings(limit), *(() if test is None else test.findings()))
    payload = found.estimate.payload() if test is None or found.estimate.has_mass else None
    rough = () if payload is None else report_uncertainty(payload)
    sound = {ARM_MODEL_DOUBTFUL.code, PAYLOAD_CONTRADICTED.code}.isdisjoint(one.code for one in findings)
    verdict = fit.verdict(sound and not found.estimate.unexcited.any() and not rough, limit)
    answer |= {"verdict": verdict, **fit.summary()}
    if payload is None:  # no body to write: the test is the answer
        answer = {**found.entries, **answer, **summarize_findings(findings)}
        for file in files:  # with --force: an older payload is not that of this recording
            file.unlink(missing_ok=True)
    else:
        findings = (*findings, *rough, *payload.findings)
        file = make_output_folder(arguments.out) / PAYLOAD
        if found.arm is not None:
            write_parameters(file.parent / PARAMETERS, add_payload(found.arm, payload))
            answer["parameters_file"] = str(file.parent / PARAMETERS)
        more = {**found.entries, **answer, **summarize_findings(findings)}
        answer = {**write_payload(file, payload, **more), "file": str(file)}
    provenance = {
        "identified from": ", ".join(arguments.data),
        "robot": str(arguments.robot),
        "link": str(arguments.link),
        "identified with": "a 6-axis sensor" if found.arm is None else f"joint torques, on {arguments.parameters}",
        "software": f"robot_dyn_id {__version__}",
    }
    page = make_output_folder(folder) / PAGE
    write_result_page(page, render_payload_page(answer, fit, found.units, findings, provenance))
    answer["page"] = str(page)
    print_findings(findings)
    if not arguments.json:
        if payload is not None:
            _print(payload)
        for name, (value, sigma) in found.entries.get("sensor_offsets", {}).items():
            show(f"offset of {name}: {value:.4g} +- {sigma:.2g}")
        show(fit_text(fit, verdict))
        if test is not None:
            show(test.describe())
        if "file" in answer:
            arm = f"; arm with it in {answer['parameters_file']}" if found.arm is not None else ""
            show(f"payload in {answer['file']}{arm}")
        show(f"page in {page}")
    return int(verdict == "bad" or (test is not None and not test.accepted)), answer


@dataclass(frozen=True)
class _Found:
    """Estimate of a payload, findings, further entries of the answer, units of the fit, and the arm without it."""

    estimate: PayloadEstimate
    findings: tuple[Finding, ...]
    entries: dict[str, Any]
    units: dict[str, str]
    arm: ParameterSet | None = None


def _declared(arguments: argparse.Namespace) -> DeclaredPayload:
    """Declared payload of a file, or of numbers, in the frame of the link.

    Raises:
        UsageError: words that are neither a file nor numbers of a payload.
        InputError: a file that declares no payload.
    """
    words, link = arguments.declared, arguments.link
    numbers = _numbers(words)
    if numbers:
        with file_errors("--declared", UsageError):
            return make_declared_payload(link, numbers)
    if len(words) > 1:
        raise UsageError(f"--declared: {' '.join(words)} is neither one file nor 1, 4 or 10 numbers")
    declared = read_declared(words[0], link)
    if declared.link == link:
        return declared
    model = RobotModel.from_description(read_robot(arguments))
    places = find_placement_of(model, declared.link), find_placement_of(model, link)
    return replace(declared, link=link, parameters=move_parameters(declared.parameters, *places))


def _numbers(words: Sequence[str]) -> list[float]:
    """Words as numbers; empty if one of them is not a number."""
    try:
        return [float(word) for word in words]
    except ValueError:
        return []


def _from_torques(arguments: argparse.Namespace) -> _Found:
    configuration = read_configuration_from(arguments)
    arm = read_parameters(arguments.parameters)
    check_robot(arm, RobotModel.from_description(read_robot(arguments)))
    recordings = open_all(arguments.data, configuration)
    estimate, findings = estimate_payload(recordings, arm, arguments.link, configuration.settings)
    units = dict(zip(arm.robot.joint_names, Regressor.from_parameters(arm).model.effort_units, strict=True))
    return _Found(estimate, (*findings, *report_recordings(recordings, arm.robot.joint_names)), {}, units, arm)


def _from_wrench(arguments: argparse.Namespace) -> _Found:
    if len(arguments.data) > 1:
        raise UsageError("--wrench takes one recording: its offsets may differ from one to the next")
    configuration = read_configuration_from(arguments)
    (recording,) = open_all(arguments.data, configuration)
    model = make_robot_for(read_robot(arguments), configuration, [recording])
    wrench = open_wrench(arguments.data[0], recording, arguments.wrench or None)
    estimate, offsets, sigmas = estimate_tool(
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
        findings = (*findings, SENSOR_OFFSET_NOT_IDENTIFIED.found(message))
    return _Found(estimate, findings, {"sensor_offsets": known}, SENSOR_UNITS)


def _print(payload: Payload) -> None:
    """A table of mass, center of mass and central inertia with their standard deviations."""
    values = [payload.mass, *payload.center_of_mass]
    values += [payload.inertia[place] for place in MOMENTS.values()]
    names = ("mass", *(f"center {axis}" for axis in "xyz"), *(name.capitalize() for name in MOMENTS))
    units = ("kg", *("m",) * 3, *("kg m^2",) * 6)
    show(f"in the frame of {payload.link}; moments of inertia about the center of mass")
    for name, unit, value, sigma in zip(names, units, values, payload.central_standard_deviations, strict=True):
        show(
            f"{name:<10} {value:>11.5g} +- {sigma:<9.2g} {unit}" if np.isfinite(sigma) else f"{name:<10} not identified"
        )
