# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id flexible`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show, show_progress
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import add_robot, read_robot
from robot_dyn_id.cli.sources import (
    CONFIGURATION_UNUSED,
    add_configuration,
    read_configuration_from,
    read_robot_from,
    report_unused,
)
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.files.flexible import StoredFlexible, plan_summary, write_flexible
from robot_dyn_id.files.flexible_data import ExperimentData, check_names, open_experiments, read_experiments
from robot_dyn_id.files.flexible_section import FlexibleSettings
from robot_dyn_id.findings import Finding, summarize_findings
from robot_dyn_id.flexible import (
    CUTOFF,
    Agreement,
    FlexibleModel,
    compute_agreements,
    find_least_experiments,
    identify_flexible,
    make_equations,
    make_pseudo_plan,
)
from robot_dyn_id.flexible.curves import EquationCurve, compute_equation_curves
from robot_dyn_id.flexible.verdict import judge_flexible
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.progress import Stage
from robot_dyn_id.recordings.rosbag2 import MessageReading
from robot_dyn_id.report.flexible import render_flexible_page
from robot_dyn_id.report.folder import PAGE, make_output_folder
from robot_dyn_id.report.result import write_result_page
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.joints import make_robot_for, report_unknown_joints, report_unrecorded

FILE = "flexible.yaml"

UNUSED = (
    *("reference_topic", "velocity", "motion_cutoff", "terms", "couplings", "estimator", "pivots", "prior"),
    *("reversal_speed", "rest_speed", "period", "essential", "bootstrap", "ignore", "channel_topics"),
)
"""Keys of the configuration that mean nothing here: the model has its own terms, the steps their own weights."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("data", nargs="*", metavar="DATA", help="one file per experiment: rosbag2, .npz or .csv")
    add_robot(parser)
    parser.add_argument("--out", metavar="DIR", help=f"folder for {FILE} and {PAGE}")
    parser.add_argument("--plan", action="store_true", help="list the experiments to record")
    parser.add_argument("--validate", nargs="+", default=[], metavar="DATA", help="other experiments to validate on")
    add_force(parser)
    parser.add_argument("--cutoff", type=float, metavar="HZ", help=f"zero-phase low-pass (default: {CUTOFF:g})")
    parser.add_argument(
        "--limit",
        type=float,
        metavar="N",
        help="condition number above which groups are found in steps; inf: all at once",
    )
    parser.add_argument("--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"), help="in the base frame [m/s^2]")
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Plan, or identify, write, and print."""
    configuration = read_configuration_from(arguments)
    settings = _settings(arguments, configuration)
    gravity = configuration.gravity or STANDARD_GRAVITY
    robot = read_robot(arguments)
    check_names(configuration.held, settings, RobotModel.from_description(robot, gravity=gravity).joint_names)
    if arguments.plan:
        if arguments.data or arguments.validate or arguments.out:
            raise UsageError("--plan is about experiments that are still to be recorded: leave DATA and --out out")
        return 0, _planned(settings.model(read_robot_from(robot, configuration)), settings, arguments.json)
    if not arguments.data or not arguments.out:
        raise UsageError("give DATA and --out DIR to identify, or --plan to learn which experiments are needed")
    folder = Path(arguments.out)
    claim(arguments, folder / FILE, folder / PAGE)
    stored, curves, units = _identified(arguments, configuration, settings)
    make_output_folder(folder)
    write_flexible(folder / FILE, stored)
    answer = {**_answer(stored, folder / FILE), "page": str(folder / PAGE)}
    page = render_flexible_page(answer, curves, units, stored.findings, _provenance(stored, arguments.robot))
    write_result_page(folder / PAGE, page)
    print_findings(stored.findings)
    if not arguments.json:
        _print(stored)
        show(f"\n{_count(stored)} in {folder / FILE}; page in {folder / PAGE}")
    return int(stored.verdict.word == "bad"), answer


def _provenance(stored: StoredFlexible, robot: str) -> dict[str, str]:
    """Origin of the result, by name."""
    return {
        "robot": f"{stored.robot_name}, {robot}",
        "identified from": ", ".join(stored.data_sources),
        "data, SHA-256": stored.data_sha256,
        "URDF, SHA-256": stored.urdf_sha256,
        "low-pass": f"{stored.low_pass.cutoff:g} Hz, Butterworth of order {stored.low_pass.order}, zero-phase",
        "software": f"robot_dyn_id {stored.software_version}",
    }


def _settings(arguments: argparse.Namespace, configuration: Configuration) -> FlexibleSettings:
    if configuration.flexible is None:
        raise UsageError(
            f"{arguments.config or 'no --config'}: the section flexible names the flexible joints and "
            f"their ratios; see docs/flexible.md"
        )
    settings = configuration.flexible
    return settings if arguments.limit is None else replace(settings, limit=arguments.limit)


def _planned(model: FlexibleModel, settings: FlexibleSettings, quiet: bool) -> dict[str, Any]:
    plan = make_pseudo_plan(model, settings.limit, settings.scaling)
    used = list(dict.fromkeys(name.rpartition(": ")[0] for step in plan.steps for name in step.equations))
    least = find_least_experiments(model)
    if not quiet:
        show(plan)
        show(f"\nexperiments of this plan: {'; '.join(used)}")
        show(f"the minimal set with the same identifiable parameters: {'; '.join(least)}; the others improve precision")
        show("record joint and motor angles, torque sensors and motor torques in each")
    return {"plan": plan_summary(plan), "experiments": used, "least_experiments": list(least)}


def _identified(
    arguments: argparse.Namespace, configuration: Configuration, settings: FlexibleSettings
) -> tuple[StoredFlexible, tuple[EquationCurve, ...], dict[str, str]]:
    """Content of the file, curves of the page, and the unit of the effort of each joint."""
    groups = arguments.data, arguments.validate
    how = MessageReading.given(configuration.definitions, configuration.recorded_joints)
    recorded, others = (open_experiments(paths, configuration.topic, settings, how) for paths in groups)
    both = {one.source for one in recorded} & {one.source for one in others}
    if both:
        raise UsageError(f"{min(both)}: cannot be identified from and validated on at the same time")
    links = [one.links for one in (*recorded, *others)]
    robot = make_robot_for(read_robot(arguments), configuration, links)
    lacking = [joint.name for joint in settings.joints if joint.name not in robot.joint_names]
    if lacking:
        raise UsageError(
            f"joint {lacking[0]} is flexible, and not in every file or not in identify: record it, or "
            f"leave it out of flexible.joints"
        )
    model = settings.model(robot)
    drives = configuration.settings.drives
    data, more = (read_experiments(group, model, drives, settings) for group in (recorded, others))
    low_pass = LowPass(
        CUTOFF if configuration.settings.cutoff is None else configuration.settings.cutoff,
        configuration.settings.filter_order,
    )
    show_progress(Stage(f"identifying {len(model.names)} parameters from {len(data.experiments)} experiments"))
    found = identify_flexible(model, data.experiments, low_pass, settings.limit, settings.scaling)
    held_out = _held_out(model, more, low_pass, found.solution.values)
    findings = (
        *_report_unused(configuration, settings, [*arguments.data, *arguments.validate]),
        *report_unrecorded(robot, configuration.held),
        *report_unknown_joints(links, robot, settings.motor_names),
        *data.findings,
        *more.findings,
        *judge_flexible(model, found, held_out, configuration.settings.thresholds),
    )
    stored = StoredFlexible.from_identification(
        model,
        found,
        held_out,
        low_pass,
        findings=findings,
        data_sources=data.sources,
        data_sha256=data.sha256,
        software_version=__version__,
    )
    shown = more.experiments or data.experiments
    curves = compute_equation_curves(model, shown, low_pass, found.solution.values)
    return stored, curves, dict(zip(robot.joint_names, robot.effort_units, strict=True))


def _held_out(model: FlexibleModel, data: ExperimentData, low_pass: LowPass, values: Any) -> tuple[Agreement, ...]:
    found = [one for experiment in data.experiments for one in make_equations(model, experiment, low_pass)]
    return compute_agreements(model, found, values)


def _report_unused(
    configuration: Configuration, settings: FlexibleSettings, paths: Sequence[str]
) -> tuple[Finding, ...]:
    """Findings about unused configuration entries."""
    names = [name for name in settings.experiments if name not in [Path(path).name for path in paths]]
    unused = [f"flexible.experiments: {', '.join(names)}: not among the data"] if names else []
    return (
        *report_unused(configuration, UNUSED, "flexible joints"),
        *(CONFIGURATION_UNUSED.found(message) for message in unused),
    )


def _print(stored: StoredFlexible) -> None:
    show(stored.plan)
    show(f"\n{'parameter':<12} {'value':>12}    {'sigma':<10} unit")
    for name, value, sigma, unit in zip(
        stored.names, stored.values, stored.standard_deviations, stored.units, strict=True
    ):
        known = f"{value:>12.6g} +- {sigma:<10.2g} {unit}"
        show(f"{name:<12} {'not identified' if math.isnan(value) else known}")
    shown, what = (stored.held_out, "held out") if stored.held_out else (stored.fit, "training data")
    width = max(len(one.equation) for one in shown)
    show(f"\n{'equation':<{width}} {'RMS':>9} {'error':>9}  NRMSE  ({what})")
    for one in shown:
        error = (
            "not evaluated: it contains a parameter that is not identified"
            if math.isnan(one.error)
            else (f"{one.error:>9.3g} {one.nrmse:>6.1%}")
        )
        show(f"{one.equation:<{width}} {one.rms:>9.3g} {error}")
    show(f"verdict: {stored.verdict.word}")


def _count(stored: StoredFlexible) -> str:
    known = sum(math.isfinite(value) for value in stored.values)
    return f"{known} of {len(stored.names)} parameters"


def _answer(stored: StoredFlexible, file: Path) -> dict[str, Any]:
    rows = zip(
        stored.names,
        stored.expressions,
        stored.units,
        stored.values.tolist(),
        stored.standard_deviations.tolist(),
        strict=True,
    )
    keys = ("name", "expression", "unit", "value", "standard_deviation")
    errors = {
        name: [{"equation": one.equation, "rms": one.rms, "error": one.error, "nrmse": one.nrmse} for one in found]
        for name, found in (("fit", stored.fit), ("held_out", stored.held_out))
    }
    return {
        "verdict": stored.verdict.word,
        "reasons": list(stored.verdict.reasons),
        "parameters": [dict(zip(keys, row, strict=True)) for row in rows],
        "unidentified": dict(stored.unidentified),
        "plan": plan_summary(stored.plan),
        **errors,
        **summarize_findings(stored.findings),
        "file": str(file),
    }
