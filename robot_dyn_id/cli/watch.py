# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id watch`: state of a running ROS graph in the terminal, until Ctrl-C."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from robot_dyn_id.cli import discard_output, show
from robot_dyn_id.cli.terminal import can_draw_on
from robot_dyn_id.errors import UsageError
from robot_dyn_id.termination import handle_termination

PERIOD_S = 0.5
"""Time between two drawings [s]."""

FIRST_LOOK_S = 2.0
"""Time for which one snapshot receives messages [s]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = (
        "The command subscribes only: it neither commands a robot nor sets a parameter. Ctrl-C ends it, with exit code "
        "0. Where standard output is not a terminal it prints one snapshot."
    )
    parser.add_argument("--namespace", default="", metavar="NS", help="only topics in this namespace (default: all)")
    parser.add_argument("--once", action="store_true", help="print one snapshot and end")
    parser.add_argument(
        "--wait", type=float, default=FIRST_LOOK_S, metavar="S", help="time for one snapshot [s] (default: %(default)s)"
    )


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Show the state of the graph until Ctrl-C, or once.

    Raises:
        UsageError: a wrong time or namespace, or a middleware or ROS domain that cannot be used.
    """
    if not (math.isfinite(arguments.wait) and arguments.wait > 0.0):
        raise UsageError(f"--wait {arguments.wait:g}: give a time above 0")
    if arguments.namespace and not arguments.namespace.startswith("/"):
        raise UsageError(f"--namespace {arguments.namespace}: give an absolute namespace, /{arguments.namespace}")
    from robot_dyn_id.nodes.runtime.middleware import check_domain, check_middleware

    check_middleware()
    check_domain()
    from robot_dyn_id.nodes.watcher import Watcher

    once = arguments.once or arguments.json or not can_draw_on(sys.stdout)
    with Watcher(arguments.namespace) as watcher:
        if not once:
            _draw_until_interrupted(watcher)
            return 0, {}
        watcher.observe(arguments.wait)
        snapshot = watcher.snapshot()
    if not arguments.json:
        for line in format_snapshot(snapshot):
            show(line)
    return 0, snapshot


def _draw_until_interrupted(watcher: Any) -> None:
    """Draw the dashboard until a signal that ends a process."""
    from rich.console import Console
    from rich.live import Live

    ended: list[int] = []
    handle_termination(lambda number, frame: ended.append(number), always=(signal.SIGINT, signal.SIGTERM))
    console = Console(file=sys.stdout, highlight=False)
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while not ended:
                live.update(_dashboard(watcher.snapshot()), refresh=True)
                watcher.observe(PERIOD_S)
    except OSError:
        if not ended:
            raise
        discard_output()  # the terminal is closed


def format_snapshot(snapshot: dict[str, Any]) -> Iterator[str]:
    """The snapshot as plain text, one line per topic, joint or node."""
    sections = list(_sections(snapshot))
    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    if not sections:
        yield (
            f"no joint states and no nodes of this package in ROS domain {domain}, namespace {snapshot['namespace']}; "
            "check ROS_DOMAIN_ID, or run robot-dyn-id doctor"
        )
    for title, names, rows in sections:
        widths = [max(len(row[place]) for row in (names, *rows)) for place in range(len(names))]
        yield f"{title}:"
        for row in (names, *rows):
            cells = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
            yield f"  {cells}".rstrip()


def _dashboard(snapshot: dict[str, Any]) -> Any:
    """The snapshot as tables with colors."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from robot_dyn_id.cli.styled import STYLES

    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    head = Text(f"robot-dyn-id watch   ROS domain {domain}, namespace {snapshot['namespace']}   Ctrl-C ends", "bold")
    parts: list[Any] = [head]
    for title, names, rows in _sections(snapshot):
        table = Table(title=title, title_justify="left", title_style="bold cyan", box=None, padding=(0, 2, 0, 0))
        for name in names:
            table.add_column(name, overflow="fold", header_style="dim")
        for row in rows:
            table.add_row(*(Text(cell, STYLES.get(cell, "")) for cell in row))
        parts += ["", table]
    if len(parts) == 1:
        parts += ["", Text("no joint states and no nodes of this package yet", "yellow")]
    return Group(*parts)


Section = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
"""Title, names of the columns, and rows."""


def _sections(snapshot: dict[str, Any]) -> Iterator[Section]:
    """Tables of a snapshot; those without rows are left out."""
    for section in (
        _joint_states(snapshot),
        _recordings(snapshot),
        _excitations(snapshot),
        _residuals(snapshot),
        _external_torques(snapshot),
        _identifications(snapshot),
        _models(snapshot),
        _refused(snapshot),
        _nodes(snapshot),
    ):
        if section[2]:
            yield section


def _joint_states(snapshot: dict[str, Any]) -> Section:
    rows: list[tuple[str, ...]] = [
        (
            one["topic"],
            "silent" if one["silent"] else f"{one['rate']:.1f} Hz",
            f"{1e3 * one['jitter']:.2f} ms",
            f"{one['age']:.1f} s",
            str(len(one["joints"])),
            ", ".join(one["fields"]),
        )
        for one in snapshot["joint_states"]
    ]
    return "joint states", ("topic", "rate", "jitter", "age", "joints", "fields"), rows


def _recordings(snapshot: dict[str, Any]) -> Section:
    rows: list[tuple[str, ...]] = [
        (one["recorder"], _state(one), str(one["messages"]), str(one["lost"]), one["reason"] or one["folder"])
        for one in snapshot["recordings"]
    ]
    return "recording", ("node", "state", "messages", "lost", "folder or reason"), rows


def _excitations(snapshot: dict[str, Any]) -> Section:
    rows: list[tuple[str, ...]] = []
    for one in snapshot["excitations"]:
        margin = f"{one['worst_margin']:.0%} ({one['worst_margin_cause']})" if one["worst_margin_cause"] else "-"
        done = f"{one['elapsed']:.1f} of {one['duration']:.1f} s"
        rows.append((one["node"], _state(one), done, margin, one["reason"] or "-"))
    return "excitation", ("node", "state", "done", "worst margin", "reason"), rows


def _residuals(snapshot: dict[str, Any]) -> Section:
    known = {
        (_namespace(node["name"]), key): value
        for node in snapshot["nodes"]
        if node["level"] != "silent"
        for key, value in node["values"].items()
    }
    rows: list[tuple[str, ...]] = [
        (joint["joint"], "silent", "-", "-", "-", "-")
        if one["silent"]
        else (
            joint["joint"],
            f"{joint['measured']:.3g}",
            f"{joint['predicted']:.3g}",
            f"{joint['residual']:.3g}",
            f"{joint['rms']:.3g}",
            known.get((_namespace(one["topic"]), f"{joint['joint']}: NRMSE (held-out)"), "-"),
        )
        for one in snapshot["residuals"]
        for joint in one["joints"]
    ]
    return "torque residual", ("joint", "measured", "predicted", "residual", "RMS", "NRMSE (held-out)"), rows


def _external_torques(snapshot: dict[str, Any]) -> Section:
    rows: list[tuple[str, ...]] = [
        (joint["joint"], "silent", "-", "-")
        if one["silent"]
        else (
            joint["joint"],
            f"{joint['torque']:.3g}",
            "learning" if math.isnan(joint["limit"]) else f"{joint['limit']:.3g}",
            "contact" if joint["joint"] in one["contact_joints"] else "-",
        )
        for one in snapshot["external_torques"]
        for joint in one["joints"]
    ]
    return "external torque", ("joint", "torque", "limit", "contact"), rows


def _identifications(snapshot: dict[str, Any]) -> Section:
    rows: list[tuple[str, ...]] = [
        (
            f"{one['topic']} (no publisher)" if one["silent"] else one["topic"],
            one["verdict"],
            " > ".join("-" if math.isnan(value) else f"{value:.2%}" for value in one["history"]),
            f"{one['condition_number']:.3g}",
            ", ".join(one["findings"][:3]) or "-",
        )
        for one in snapshot["identifications"]
    ]
    return "identification", ("topic", "verdict", "held-out NRMSE", "condition", "findings"), rows


def _models(snapshot: dict[str, Any]) -> Section:
    rows: list[tuple[str, ...]] = [
        (
            f"{one['topic']} (no publisher)" if one["silent"] else one["topic"],
            one["robot"],
            one["verdict"],
            f"{one['good']} of {one['parameters']}",
            "-" if one["largest_change"] is None else f"{one['largest_change']:.2g} sigma",
        )
        for one in snapshot["models"]
    ]
    return "models", ("topic", "robot", "verdict", "well identified", "latest change"), rows


def _refused(snapshot: dict[str, Any]) -> Section:
    rows: list[tuple[str, ...]] = [(one["topic"], one["reason"]) for one in snapshot["refused"]]
    return "messages that are left out", ("topic", "reason"), rows


def _state(one: dict[str, Any]) -> str:
    """State of a node by its messages; of a silent one the last."""
    return f"silent (was {one['last_state']})" if one["silent"] else str(one["state"])


def _namespace(name: str) -> str:
    """Namespace of the full name of a node or topic."""
    return name.rpartition("/")[0]


def _nodes(snapshot: dict[str, Any]) -> Section:
    rows: list[tuple[str, ...]] = [(one["name"], one["level"], one["message"]) for one in snapshot["nodes"]]
    return "nodes", ("node", "level", "message"), rows
