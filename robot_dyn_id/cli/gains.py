# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id gains`."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import add_robot, read_robot
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from
from robot_dyn_id.files.payload import read_payload
from robot_dyn_id.findings import Definition, Section, summarize_findings
from robot_dyn_id.loads.identification import identify_gains
from robot_dyn_id.report.folder import make_output_folder, name_page_of_file
from robot_dyn_id.report.loads import render_gains_page
from robot_dyn_id.report.result import write_result_page
from robot_dyn_id.report.text import fit_text
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.text.yaml import format_yaml
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.identification import open_all
from robot_dyn_id.workflow.joints import make_robot_for, report_recordings

GAIN_NOT_IDENTIFIED = Definition(
    "gain_not_identified",
    Section.LOADS,
    "info",
    "The payload changes the torque of a joint too little to determine its gain.",
    "use a heavier payload, or motions in which the joint carries it",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--bare", nargs="+", required=True, metavar="DATA", help="recordings without the payload")
    parser.add_argument("--loaded", nargs="+", required=True, metavar="DATA", help="recordings with it")
    add_robot(parser)
    parser.add_argument(
        "--payload", required=True, metavar="FILE", help="link, mass, center_of_mass and inertia of the payload (YAML)"
    )
    written = "configuration file with the gains to write; next to gains.yaml, the page is gains_report.html"
    parser.add_argument("--out", required=True, metavar="FILE", help=written)
    add_force(parser)
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Identify, write, and print."""
    file = Path(arguments.out)
    page = name_page_of_file(file)
    claim(arguments, file, page)
    configuration = read_configuration_from(arguments)
    bare, loaded = (open_all(paths, configuration) for paths in (arguments.bare, arguments.loaded))
    model = make_robot_for(read_robot(arguments), configuration, [*bare, *loaded])
    identified = identify_gains(bare, loaded, model, read_payload(arguments.payload), configuration.settings)
    gains, fit = identified.gains, identified.fit
    joints = {
        g.joint: {"gain": abs(g.value), "sign": int(math.copysign(1, g.value))} for g in gains if math.isfinite(g.value)
    }
    make_output_folder(file.parent)
    write_atomically(file, format_yaml({"joints": joints}))
    unknown = [gain.joint for gain in gains if gain.joint not in joints]
    findings = (*identified.findings, *report_recordings([*bare, *loaded], model.joint_names))
    if unknown:
        message = f"this payload and these motions do not determine the gain of {', '.join(unknown)}"
        findings = (*findings, GAIN_NOT_IDENTIFIED.found(message, unknown))
    limit = configuration.settings.thresholds.bad_nrmse
    verdict, findings = fit.verdict(not unknown, limit), (*findings, *fit.findings(limit))
    provenance = {
        "without the payload": ", ".join(arguments.bare),
        "with it": ", ".join(arguments.loaded),
        "payload": str(arguments.payload),
        "robot": str(arguments.robot),
        "software": f"robot_dyn_id {__version__}",
    }
    write_result_page(page, render_gains_page(identified, verdict, findings, provenance))
    print_findings(findings)
    if not arguments.json:
        for gain in gains:
            text = f"{gain.value:>10.5g} +- {gain.standard_deviation:<8.2g} effort per current"
            missing = "not identifiable from this payload and these motions"
            show(f"{gain.joint:<24} {text if gain.joint in joints else missing}")
        show(fit_text(fit, verdict))
        show(f"configuration with the gains in {file}; page in {page}")
    answer = [
        {"joint": g.joint, "gain": g.value, "standard_deviation": g.standard_deviation}
        for g in gains
        if g.joint in joints
    ]
    entries = {"gains": answer, "not_identified": unknown, "file": str(file), "page": str(page)}
    return int(verdict == "bad"), {"verdict": verdict, **fit.summary(), **entries, **summarize_findings(findings)}
