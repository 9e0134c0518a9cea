# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id compare`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show, show_progress
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.cli.sources import add_configuration, read_configuration_from
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.parameters import find_parameters_file, read_parameters
from robot_dyn_id.report.folder import COMPARISON, COMPARISON_PAGE, PARAMETERS
from robot_dyn_id.workflow.comparison import compare
from robot_dyn_id.workflow.identification import open_all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    runs = "folder of an identification, or parameters.yaml; the first one is the reference"
    parser.add_argument("runs", nargs="+", metavar="RUN", help=runs)
    parser.add_argument("--data", nargs="+", metavar="DATA", default=[], help="recordings to evaluate all models on")
    parser.add_argument("--out", metavar="DIR", help="folder for comparison.json and comparison.html (default: print)")
    add_force(parser)
    add_configuration(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Compare, write the page with `--out`, and print.

    Raises:
        UsageError: one run, or options of recordings without any.
    """
    if len(arguments.runs) < 2:
        raise UsageError(f"one RUN was given ({arguments.runs[0]}): give two or more to compare")
    unused = [f"--{name}" for name in ("config", "topic", "definitions") if getattr(arguments, name) is not None]
    if unused and not arguments.data:
        raise UsageError(f"{', '.join(unused)}: has no effect without --data")
    if arguments.out:
        claim(arguments, *(Path(arguments.out) / name for name in (COMPARISON, COMPARISON_PAGE)))
    configuration = read_configuration_from(arguments)
    files = [find_parameters_file(run) for run in arguments.runs]
    models = [read_parameters(file) for file in files]
    recordings = open_all(arguments.data, configuration) if arguments.data else []
    result = compare(models, _names(arguments.runs, files), recordings, configuration.settings, show_progress)
    summary = result.save(arguments.out) if arguments.out else result.summary()
    if not arguments.json:
        show(result)
        if arguments.out:
            show(f"page in {Path(arguments.out) / COMPARISON_PAGE}")
    return 0, summary


def _names(runs: list[str], files: list[Path]) -> list[str]:
    """Names of the folders, or of files with a name of their own; the paths if these names are not unique."""
    names = [file.resolve().parent.name if file.name == PARAMETERS else file.stem for file in files]
    return names if len(set(names)) == len(names) else runs
