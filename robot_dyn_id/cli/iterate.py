# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id iterate`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.cli import show, show_progress
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import add_robot, read_robot
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from, read_robot_from
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.files.term_values import read_term_values
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.progress import Stage
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.simulation.controllers import Gains, check_robot
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.iteration import (
    IterationResult,
    SimulatedTrials,
    Trial,
    TrialIdentifier,
    iterate,
    scale_inertia_for_motion,
)

MAX_DEVIATION = np.pi
"""Distance of a joint from the motion at which a trial is stopped [rad or m]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Rehearse an iterative identification on a simulated robot: move with what the URDF says, identify, move again "
        "with the identified model, until the tracking error stops shrinking. A model that may not be used for control "
        "is not used; the last good one stays."
    )
    add_robot(parser)
    parser.add_argument("--trajectory", required=True, metavar="FILE", help="trajectory.yaml that the robot follows")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for parameters.yaml")
    parser.add_argument(
        "--parameters", metavar="FILE", help="parameters.yaml of the simulated robot (default: see --mismatch)"
    )
    parser.add_argument(
        "--mismatch",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="largest share by which bodies are lighter or heavier than in the URDF; also the margin of the first "
        "trial's inertia, with --parameters too (default: 0.5)",
    )
    parser.add_argument(
        "--terms", metavar="FILE", help="friction and other terms of the simulated robot (YAML; default: none)"
    )
    parser.add_argument(
        "--limit-effort", action="store_true", help="limit efforts to those of the URDF (default: not limited)"
    )
    parser.add_argument("--droop", type=float, default=0.3, metavar="RAD", help="largest gravity sag (default: 0.3)")
    parser.add_argument(
        "--bandwidth", type=float, default=10.0, metavar="W", help="bandwidth of the feedback [rad/s] (default: 10)"
    )
    parser.add_argument(
        "--proportional", type=float, nargs="+", metavar="KP", help="proportional gains [1/s^2], one or per joint"
    )
    parser.add_argument(
        "--derivative", type=float, nargs="+", metavar="KD", help="derivative gains [1/s], one or per joint"
    )
    parser.add_argument(
        "--exponent",
        type=float,
        default=1.0,
        metavar="A",
        help="exponent of the feedback; below 1: finite time (default: 1)",
    )
    parser.add_argument(
        "--rate", type=float, default=500.0, metavar="HZ", help="rate of the controller [Hz] (default: 500)"
    )
    parser.add_argument("--trials", type=int, default=6, metavar="N", help="largest number of trials (default: 6)")
    parser.add_argument(
        "--effort-noise",
        type=float,
        default=0.02,
        metavar="NM",
        help="standard deviation of the effort noise (default: 0.02)",
    )
    parser.add_argument(
        "--position-noise",
        type=float,
        default=1e-5,
        metavar="RAD",
        help="standard deviation of the position noise (default: 1e-5)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulated robot and of the noise (default: 0)")
    add_force(parser)
    add_configuration(parser, bags=False)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Repeat trials on the simulated robot, and write the best model."""
    path = Path(arguments.out) / "parameters.yaml"
    claim(arguments, path)
    for name in ("bandwidth", "rate", "droop"):
        if not getattr(arguments, name) > 0.0:
            raise UsageError(f"--{name} {getattr(arguments, name):g}: must be positive")
    if not 0.0 <= arguments.mismatch < 1.0:
        raise UsageError(f"--mismatch {arguments.mismatch:g}: at least 0 and below 1")
    configuration = read_configuration_from(arguments)
    model = read_robot_from(read_robot(arguments), configuration)
    stored = read_trajectory(arguments.trajectory)
    findings = stored.check_robot(model, stored.limits)
    trials = _trials(arguments, model, stored.excitation)

    def trial(known: ParameterSet | None, number: int) -> Trial:
        show_progress(
            Stage(f"trial {number} {'with the inertia of the URDF' if known is None else 'with the identified model'}")
        )
        return trials(known, number)

    found = iterate(trial, TrialIdentifier(model, configuration.settings, __version__), max_trials=arguments.trials)
    folder = make_output_folder(arguments.out)
    if found.parameters is not None:
        write_parameters(folder / "parameters.yaml", found.parameters)
    if not arguments.json:
        _print(found, path)
    print_findings(findings)
    return int(found.parameters is None), {
        "converged": found.converged,
        "reason": found.reason,
        "refused": list(found.refused),
        "tracking_errors": list(found.errors),
        "trials": len(found.errors),
        "parameters_file": None if found.parameters is None else str(path),
        **summarize_findings(findings),
    }


def _trials(arguments: argparse.Namespace, model: RobotModel, motion: Any) -> SimulatedTrials:
    """The simulated robot under its controller.

    Raises:
        UsageError: wrong gains, or noise that is negative.
        InputError: the parameters are those of another robot, or the URDF has no inertia.
    """
    if not (arguments.effort_noise >= 0.0 and arguments.position_noise >= 0.0):
        raise UsageError("--effort-noise and --position-noise must not be negative")
    usual, prior = Gains.from_bandwidth(arguments.bandwidth), Dynamics.from_model(model)
    gains = Gains(
        tuple(arguments.proportional) if arguments.proportional else usual.proportional,
        tuple(arguments.derivative) if arguments.derivative else usual.derivative,
        exponent=arguments.exponent,
    )
    start = scale_inertia_for_motion(motion, motion.duration, prior, gains, arguments.droop, 1.0 + arguments.mismatch)
    sensors = Sensors(
        np.full(len(model.joint_names), arguments.effort_noise),
        arguments.position_noise,
        10.0 * arguments.position_noise,
    )
    return SimulatedTrials(
        _robot(arguments, model),
        motion,
        motion.duration,
        arguments.rate,
        sensors,
        gains,
        start,
        limit_effort=arguments.limit_effort,
        max_deviation=MAX_DEVIATION,
        seed=arguments.seed,
    )


def _robot(arguments: argparse.Namespace, model: RobotModel) -> Dynamics:
    """Dynamics of the simulated robot: of a parameter set, or bodies unlike those of the URDF."""
    if arguments.parameters:
        if arguments.terms:
            raise UsageError("--terms together with --parameters: the parameter set contains its friction already")
        parameters = read_parameters(arguments.parameters)
        check_robot(parameters, model.urdf)
        return Dynamics.from_parameters(parameters)
    rng, bodies = np.random.default_rng(arguments.seed), len(model.body_names)
    share = rng.uniform(1.0 - arguments.mismatch, 1.0 + arguments.mismatch, bodies)
    further = read_term_values(arguments.terms, model) if arguments.terms else ()
    regressor = Regressor(model, tuple((coordinate, term) for coordinate, term, _ in further))
    inertial: Array = np.repeat(share, 10) * model.inertial_parameters
    values = np.concatenate([inertial, *(one for *_, one in further)])
    return Dynamics(regressor, np.arange(len(values)), values)


def _print(found: IterationResult[ParameterSet], path: Path) -> None:
    for number, error in enumerate(found.errors, 1):
        show(f"trial {number}: tracking error {error:.3g} of the motion")
    for refusal in found.refused:
        show(f"refused: {refusal}")
    show(f"{found.reason}\n" + (f"wrote {path}" if found.parameters is not None else "no model follows better"))
