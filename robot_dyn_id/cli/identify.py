# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id identify`."""

from __future__ import annotations

import argparse
import re
from contextlib import closing
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show, show_progress
from robot_dyn_id.cli.compilation import first_identification
from robot_dyn_id.cli.next_steps import show_next_steps
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.robots import add_robot, list_robot_words, read_robot
from robot_dyn_id.cli.sources import add_configuration, add_exclusion, list_configuration_words, read_configuration_from
from robot_dyn_id.dynamics.terms.friction import FRICTION
from robot_dyn_id.errors import UnsafeDataError, UsageError
from robot_dyn_id.estimators import ESTIMATORS, PRIOR_USERS
from robot_dyn_id.estimators.essential import MAX_RELATIVE_DEVIATION
from robot_dyn_id.files.factor import FACTOR, read_factor, write_factor
from robot_dyn_id.progress import Stage
from robot_dyn_id.report.advice import RunFiles
from robot_dyn_id.report.folder import RESULTS
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings, open_all
from robot_dyn_id.workflow.updating import identify_with_factor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="rosbag2 folder, .mcap, .db3, .npz or .csv; one trial each"
    )
    add_robot(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for parameters.yaml and the reports")
    add_force(parser)
    parser.add_argument(
        "--validate", nargs="+", default=[], metavar="DATA", help="trials to validate on (default: cross-validation)"
    )
    parser.add_argument(
        "--train-range",
        nargs=2,
        type=float,
        metavar=("A", "B"),
        help="train on these seconds of the recording, validate on the rest, or on --validate alone",
    )
    add_exclusion(parser)
    parser.add_argument("--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"), help="in the base frame [m/s^2]")
    parser.add_argument("--cutoff", type=float, metavar="HZ", help="zero-phase low-pass (default: from the data)")
    parser.add_argument("--estimator", choices=list(ESTIMATORS), help="default: consistent")
    parser.add_argument(
        "--prior",
        metavar="FILE",
        help=f"URDF with credible masses, or earlier parameters.yaml (for {PRIOR_USERS}; default: URDF of --robot)",
    )
    parser.add_argument("--friction", choices=list(FRICTION), help="default: chosen from the data")
    parser.add_argument(
        "--essential",
        nargs="?",
        type=float,
        const=MAX_RELATIVE_DEVIATION,
        metavar="SHARE",
        help=f"leave out parameters that are less certain than this (default: {MAX_RELATIVE_DEVIATION})",
    )
    parser.add_argument("--bootstrap", type=int, metavar="N", help="standard deviations from N draws of residuals")
    parser.add_argument(
        "--save-factor", action="store_true", help=f"write {FACTOR}, which --add updates later (estimator weighted)"
    )
    parser.add_argument(
        "--add",
        metavar="FACTOR",
        help=f"{FACTOR} of earlier recordings, which are identified together with DATA (estimator weighted)",
    )
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Identify, write, and print."""
    folder = Path(arguments.out)
    with_factor = arguments.save_factor or arguments.add is not None
    if with_factor and arguments.estimator == "consistent":
        raise UsageError("--estimator consistent: factors are of `weighted`: leave the option out, or the factor")
    claim(arguments, *(folder / name for name in (*RESULTS, *([FACTOR] if with_factor else []))))
    configuration = read_configuration_from(arguments)
    recordings = open_all(arguments.data, configuration)
    held_out = open_all(arguments.validate, configuration)
    train_range = tuple(arguments.train_range) if arguments.train_range else None
    robot = read_robot(arguments)
    selection = DataSelection(recordings, held_out, train_range)
    try:
        with first_identification():
            if with_factor:
                earlier = None if arguments.add is None else read_factor(arguments.add)
                updated = identify_with_factor(robot, configuration, selection, earlier, show_progress)
                result, factor = updated.result, updated.factor
            else:
                result, factor = identify_recordings(robot, configuration, selection, show_progress), None
    except UnsafeDataError as error:
        raise _with_option(error) from error
    show_progress(Stage(f"writing {folder}"))
    prediction = ((arguments.validate or arguments.data)[0], *list_configuration_words(arguments))
    files = RunFiles(folder, list_robot_words(arguments), prediction)
    with closing(result):
        summary = result.save(folder, files)
    if factor is not None:
        write_factor(folder / FACTOR, factor)
    if not arguments.json:
        show(result)
        show_next_steps(files, result.parameters, summary)
    return int(result.evaluation.verdict.word == "bad"), summary


def _with_option(error: UnsafeDataError) -> UnsafeDataError:
    """The error with the option that sets the gravity vector which was found, if one was."""
    vector = re.search(r"`gravity: \[(.*?)\]`", error.action)
    if vector is None:
        return error
    option = f"--gravity {vector.group(1).replace(',', '')}"
    return UnsafeDataError(f"{error.message}; or add {option}", f"{error.action}; or add {option}", error.findings)
