# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id reproduce`."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show, show_progress
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.errors import UsageError
from robot_dyn_id.papers import PAPERS
from robot_dyn_id.papers.figures import MIN_DRAWS, Extent, Reproduction
from robot_dyn_id.report.drawing import write_drawing
from robot_dyn_id.report.folder import make_output_folder, name_page_of_file
from robot_dyn_id.report.reproduction import render_reproduction_page
from robot_dyn_id.report.result import write_result_page
from robot_dyn_id.version import __version__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Reproduce a published identification from its inputs, and compare its figures with ours."
    parser.epilog = "papers: " + "; ".join(f"{name}: {idea}" for name, idea in PAPERS.items())
    parser.add_argument("paper", metavar="NAME", choices=sorted(PAPERS), help=", ".join(PAPERS))
    parser.add_argument(
        "--seeds", type=int, metavar="N", help=f"repetitions with other noise; default 1, {MIN_DRAWS} with --full"
    )
    parser.add_argument("--full", action="store_true", help="also the slow baselines")
    parser.add_argument(
        "--plots", metavar="DIR", help="write the page, and drawings that correspond to the paper's figures"
    )
    add_force(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Reproduce a paper and print its figures."""
    seeds = (MIN_DRAWS if arguments.full else 1) if arguments.seeds is None else arguments.seeds
    if seeds < 1:
        raise UsageError(f"--seeds {seeds}: at least 1")
    if arguments.plots:  # drawings are called after their paper
        drawn = sorted(Path(arguments.plots).glob(f"{arguments.paper}_*.svg"))
        claim(arguments, *drawn, name_page_of_file(Path(arguments.plots) / arguments.paper))
    folder = make_output_folder(arguments.plots) if arguments.plots else None
    module = importlib.import_module(f"robot_dyn_id.papers.{arguments.paper}.reproduction")
    result: Reproduction = module.reproduce(Extent(seeds, arguments.full), show_progress)
    files = [str(write_drawing(drawing, folder)) for drawing in result.drawings] if folder else []
    missed = sum(figure.missed for figure in result.figures)
    answer: dict[str, Any] = {
        "paper": result.paper,
        "source": result.source,
        "figures": [figure.answer() for figure in result.figures],
        "verdicts": result.count_verdicts(),
        "notes": list(result.notes),
        "plots": files,
    }
    lines = [*result.table(), *(f"drawn: {file}" for file in files)]
    if folder:
        page = name_page_of_file(folder / arguments.paper)
        write_result_page(
            page, render_reproduction_page(answer, result.drawings, missed, f"robot_dyn_id {__version__}")
        )
        answer["page"] = str(page)
        lines.append(f"page in {page}")
    if not arguments.json:
        show("\n".join(lines))
    return int(missed > 0), answer
