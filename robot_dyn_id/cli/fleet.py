# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id fleet`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_dyn_id.cli import show, show_progress
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.files.manifest import read_manifest
from robot_dyn_id.progress import Stage
from robot_dyn_id.workflow.fleet import identify_fleet
from robot_dyn_id.workflow.fleet_results import PAGE, POOLED, REPORT, FleetResult, format_probability
from robot_dyn_id.workflow.scheduler import Certificates, check_address, open_executor

STATED = ("robot_differs", "recording_left_out")
"""Findings that the text states in lines of its own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("task", choices=["identify"], help="identify: parameters of every robot and of all together")
    parser.add_argument("manifest", metavar="MANIFEST", help="recordings by robot, date and configuration (YAML)")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for parameter sets, factors and the report")
    add_force(parser)
    parser.add_argument(
        "--store", metavar="DIR", help="folder that keeps what is done for the next run (default: store in --out)"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="Dask scheduler, tls://HOST:PORT or tcp://HOST:PORT (default: local)"
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="local processes; 0: this one (default: one per core, with Dask)"
    )
    parser.add_argument("--tls-ca", metavar="FILE", help="certificate of the authority of a tls:// scheduler")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate of this client")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of this client")
    parser.add_argument(
        "--insecure", action="store_true", help="use a tcp:// scheduler on another computer, which runs what it is sent"
    )


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Identify, write, and print."""
    folder = Path(arguments.out)
    claim(arguments, *(folder / name for name in (REPORT, PAGE, f"{POOLED}.yaml")))
    certificates = _certificates(arguments)
    if arguments.workers is not None and (arguments.workers < 0 or arguments.scheduler):
        raise UsageError("--workers: must be 0 or more, and only without --scheduler")
    if arguments.scheduler:
        _check_scheduler(arguments, certificates)
    elif certificates or arguments.insecure:
        raise UsageError("--tls-ca, --tls-cert, --tls-key and --insecure: only with --scheduler")
    manifest = read_manifest(arguments.manifest)
    store = Path(arguments.store) if arguments.store else folder / "store"
    with open_executor(arguments.scheduler, arguments.workers, certificates, arguments.insecure) as executor:
        result = identify_fleet(manifest, executor, store, show_progress)
    show_progress(Stage(f"writing {folder}"))
    summary = result.save(folder)
    if not arguments.json:
        show(_text(result, folder))
    return 0, summary


def _certificates(arguments: argparse.Namespace) -> Certificates | None:
    """Files of a TLS connection, if they are given.

    Raises:
        UsageError: some of them are missing.
        InputError: a file is not there.
    """
    files = {name: getattr(arguments, name) for name in ("tls_ca", "tls_cert", "tls_key")}
    missing = [f"--{name.replace('_', '-')}" for name, file in files.items() if not file]
    if len(missing) == len(files):
        return None
    if missing:
        raise UsageError(f"{', '.join(missing)} is missing: TLS needs all three files")
    for file in files.values():
        if not Path(file).is_file():
            raise InputError(f"{file}: no such file; give the certificates and the key of the scheduler")
    return Certificates(*files.values())


def _check_scheduler(arguments: argparse.Namespace, certificates: Certificates | None) -> None:
    """Check the address of the scheduler, in terms of the command's options.

    Raises:
        UsageError: not an address, or certificates are missing.
        InputError: an unprotected scheduler on another computer.
    """
    address = arguments.scheduler
    if address.startswith("tls://") and certificates is None:
        raise UsageError(f"--scheduler {address}: needs --tls-ca, --tls-cert and --tls-key")
    try:
        check_address(address, certificates, arguments.insecure)
    except InputError as error:
        raise InputError(f"{error.message}: --insecure", error.action) from None


def _text(result: FleetResult, folder: Path) -> str:
    """Text that the command prints."""
    robots = sum(len(group.robots) for group in result.configurations)
    lines = [f"{robots} robots, {result.recordings} recordings, {len(result.left_out)} left out"]
    for one in result.differing:
        names = ", ".join(difference.name for difference in one.differences)
        where = names or "no single parameter significantly"
        lines.append(f"robot {one.robot} differs from the fleet ({format_probability(one.probability)}) in {where}")
        lines.append(f"  {'; '.join(one.in_words)}")
    lines += [f"{finding.severity}: {finding.message}" for finding in result.findings if finding.code not in STATED]
    if not result.differing and any(group.is_compared for group in result.configurations):
        lines.append("no robot differs from the fleet")
    lines += [f"left out: {one.entry.recording} of robot {one.entry.robot}: {one.reason}" for one in result.left_out]
    return "\n".join([*lines, f"parameters, factors and report in {folder / PAGE}"])
