# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id reproduce`."""

from __future__ import annotations

import argparse
import importlib
import math
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import progress
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.errors import UsageError
from robot_dyn_id.papers import PAPERS
from robot_dyn_id.papers.figures import Extent, Figure, Reproduction
from robot_dyn_id.report.drawing import write_drawing
from robot_dyn_id.report.folder import output_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Reproduce a published identification from its inputs, and compare its figures with ours."
    parser.epilog = "papers: " + "; ".join(f"{name}: {idea}" for name, idea in PAPERS.items())
    parser.add_argument("paper", metavar="NAME", choices=sorted(PAPERS), help=", ".join(PAPERS))
    parser.add_argument("--seeds", type=int, metavar="N", help="repetitions with other noise; default 1, 5 with --full")
    parser.add_argument("--full", action="store_true", help="also the slow baselines")
    parser.add_argument("--plots", metavar="DIR", help="write drawings that correspond to the paper's figures")
    add_force(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Reproduce a paper and print its figures."""
    seeds = (5 if arguments.full else 1) if arguments.seeds is None else arguments.seeds
    if seeds < 1:
        raise UsageError(f"--seeds {seeds}: at least 1")
    if arguments.plots:  # drawings are called after their paper
        claim(arguments, *sorted(Path(arguments.plots).glob(f"{arguments.paper}_*.svg")))
    folder = output_folder(arguments.plots) if arguments.plots else None
    module = importlib.import_module(f"robot_dyn_id.papers.{arguments.paper}.reproduction")
    result: Reproduction = module.reproduce(Extent(seeds, arguments.full), progress)
    files = [str(write_drawing(drawing, folder)) for drawing in result.drawings] if folder else []
    if not arguments.json:
        _print(result, files)
    return int(any(figure.missed for figure in result.figures)), {
        "paper": result.paper,
        "source": result.source,
        "figures": [_answer(figure) for figure in result.figures],
        "notes": list(result.notes),
        "plots": files,
    }


def _answer(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "published": figure.published,
        "ours": figure.ours if math.isfinite(figure.ours) else None,
        "target": figure.target,
        "verdict": figure.verdict,
        "why": figure.why,
    }


def _print(result: Reproduction, files: list[str]) -> None:
    print(f"{result.paper}: {result.source}")
    width = max(len(figure.name) for figure in result.figures)
    print(f"{'':<{width}} {'published':>11} {'ours':>11} {'target':>11}  verdict")
    for figure in result.figures:
        print(
            f"{figure.name:<{width}} {_number(figure.published):>11} {_number(figure.ours):>11} {_mark(figure):>11}"
            f"  {figure.verdict}"
        )
        if figure.why:
            print(f"    {figure.why}")
    for note in result.notes:
        print(f"note: {note}")
    for file in files:
        print(f"drawn: {file}")


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.5g}"


def _mark(figure: Figure) -> str:
    """Target of a figure with its side."""
    side = {"lower": "<= ", "higher": ">= ", "same": ""}[figure.better]
    return "" if figure.target is None else side + _number(figure.target)
