# SPDX-License-Identifier: Apache-2.0
"""Hours of work in minutes: all nodes at 1 kHz with flat memory; two robots that do not hear one another."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from faults.cell import Cell, cell, parameters_of_arm, tracebacks
from faults.results import Result

GROWTH_MIB = 10.0
"""Largest growth of a node's memory over the second half of the run."""

QUIET_LINES = 60
"""Log lines of a node in a run without faults, at most; a busy computer may cause some."""


def memory(world: Any, folder: Path, seconds: float) -> list[Result]:
    """Run all nodes at 1 kHz for some time and compare their memory in the middle and at the end."""
    from robot_dyn_id.msg import ExcitationStatus, RecordingStatus

    folder.mkdir(parents=True, exist_ok=True)
    parameters = parameters_of_arm(folder)
    with cell(world, folder / "memory", "memory", watch=False) as made:
        made.start("simulator", rate=1000.0, publish_rate=1000.0)
        made.start("excitation_publisher", periods=10_000)
        made.start("recorder")
        made.start("identifier", parameters=parameters)
        made.start("torque_residual_monitor")
        made.start("computed_torque_controller", remap=["effort_command:=unused_effort_command"])
        made.wait_started(*made.processes)
        made.until_recording(RecordingStatus.IDLE)
        made.trigger("recorder/start")
        made.until_excitation(ExcitationStatus.READY)
        made.start_motion()
        made.until_excitation(ExcitationStatus.RUNNING)
        samples: dict[str, list[float]] = {name: [] for name in made.processes}
        pause = min(1.0, seconds / 60.0)
        for _ in range(round(seconds / pause)):
            made.world.wait(pause)
            for name, process in made.processes.items():
                if process.alive:
                    samples[name].append(process.memory())
        return [_growth(made, name, values, seconds) for name, values in samples.items()]


def _growth(made: Cell, name: str, values: list[float], seconds: float) -> Result:
    process, tenth = made.processes[name], max(1, len(values) // 10)
    growth = median(values[-tenth:]) - median(values[len(values) // 2 - tenth : len(values) // 2] or values[:1])
    notes = []
    if not process.alive:
        notes.append(f"it ended: {process.text()[-300:]}")
    if tracebacks(process.text()) or process.lines() > QUIET_LINES + seconds / 5.0:
        notes.append(f"{process.lines()} log lines, {tracebacks(process.text())} tracebacks: {process.text()[-200:]}")
    broken = bool(notes) or growth > GROWTH_MIB
    notes.append(f"{median(values[-tenth:]):.0f} MiB at the end")
    fault = f"{seconds:.0f} s of all nodes at 1 kHz: {name}"
    return Result(
        "memory flat, short logs, no node ends", fault, 1, int(broken), growth, GROWTH_MIB, "MiB", tuple(notes)
    )


def namespaces(world: Any, folder: Path, runs: int) -> list[Result]:
    """Move and identify one of two equal robots in one domain: the other one hears nothing of it."""
    broken: list[str] = []
    with cell(world, folder / "left", "left") as left, cell(world, folder / "right", "right") as right:
        for made in (left, right):
            made.start("simulator")
            made.start("excitation_publisher")
            made.start("recorder", start=True)
            made.start("identifier")
            made.start("torque_residual_monitor")
        for made in (left, right):
            made.wait_started(*made.processes)
        for _ in range(runs):
            try:
                broken += _crosstalk(left, right)
            except Exception as error:
                broken.append(" ".join(str(error).split())[:300])
            left, right = right, left
    notes = tuple(f"{broken.count(text)} x {text}" for text in dict.fromkeys(broken))[:4]
    return [
        Result("no crosstalk", "two robots in two namespaces, one moves", runs, min(runs, len(broken)), notes=notes)
    ]


def _crosstalk(moving: Cell, resting: Cell) -> list[str]:
    """Reaction of the resting robot and its nodes to an excitation and identification of the other one."""
    from robot_dyn_id.msg import ExcitationStatus as Status
    from robot_dyn_id.msg import IdentificationReport

    from robot_dyn_id.nodes.runtime.robot_node import RELIABLE

    for made in (moving, resting):
        made.until_excitation(Status.READY, Status.DONE)
    reports: dict[str, list[Any]] = {made.namespace: [] for made in (moving, resting)}
    listen = moving.world.probe.create_subscription
    subscriptions = [
        listen(IdentificationReport, f"/{name}/identification_report", heard.append, RELIABLE)
        for name, heard in reports.items()
    ]
    moment, reported, recorded = resting.moment(), len(resting.excitation), len(resting.recording)
    moving.start_motion()
    moving.until_excitation(Status.RUNNING)
    moving.world.wait(4.0)
    moving.stop_motion()
    moving.until_excitation(Status.READY, Status.DONE)
    reports[moving.namespace].clear()
    moving.trigger("identifier/identify")
    moving.world.until(lambda: bool(reports[moving.namespace]), 60.0, "report of the identification")
    for subscription in subscriptions:
        moving.world.probe.destroy_subscription(subscription)
    problems = []
    if resting.until_rest(moment) > 0.0:
        problems.append("the other robot moves")
    if len({state for state, _ in resting.excitation[reported:]}) > 1:
        problems.append("the other excitation publisher changes its state")
    if len({state for state, _ in resting.recording[recorded:]}) > 1:
        problems.append("the other recorder changes its state")
    if reports[resting.namespace]:
        problems.append("the other identifier reports too")
    return problems
