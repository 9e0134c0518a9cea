# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id recover`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import note, show, show_progress
from robot_dyn_id.cli.findings import print_findings
from robot_dyn_id.findings import summarize_findings
from robot_dyn_id.recordings.recovery import Recovery, name_target_of, recover
from robot_dyn_id.report.folder import check_output_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Write a complete bag (indexes, footer, metadata.yaml) of every message that can be read, from a bag whose "
        "recorder was killed or whose disk was full. The original is kept; a complete bag is left as it is."
    )
    parser.add_argument("bag", metavar="BAG", help="bag folder, .mcap or .db3")
    parser.add_argument("--out", metavar="DIR", help="new bag folder (default: BAG_recovered, next to the original)")
    parser.add_argument(
        "--replace", action="store_true", help="give the new bag the name of the original, which becomes BAG_damaged"
    )


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Recover and report what was kept and what is lost."""
    path = Path(arguments.bag)
    target = name_target_of(path, Path(arguments.out) if arguments.out else None, arguments.replace)
    if arguments.out:
        check_output_folder(target)
    found = recover(path, target, show_progress)
    for text in found.damage:
        note(f"  ! {text}")
    print_findings(found.findings)
    if not arguments.json:
        _print(found)
    return 0, {
        "whole": found.whole,
        "bag": str(found.bag),
        "original": str(found.original),
        "messages": sum(found.messages.values()),
        "topics": found.messages,
        "seconds": found.seconds,
        "lost_bytes": found.lost_bytes,
        "damage": list(found.damage),
        **summarize_findings(found.findings),
    }


def _print(found: Recovery) -> None:
    if found.whole:
        show(f"{found.bag} is whole, {sum(found.messages.values())} messages: nothing to recover")
        return
    for name, count in found.messages.items():
        show(f"{count:>9} messages of {name}")
    lost = "an unknown number of bytes" if found.lost_bytes is None else f"{found.lost_bytes} bytes"
    show(f"{sum(found.messages.values())} messages in {found.seconds:.3f} s kept; {lost} of messages lost")
    show(f"complete bag in {found.bag}; the original is {found.original}")
