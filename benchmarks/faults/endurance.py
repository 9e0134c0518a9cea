# SPDX-License-Identifier: Apache-2.0
"""Hours of work in minutes: all nodes in motion with flat memory; two robots that do not hear one another."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from statistics import median
from typing import Any

from faults.cell import STARTING_S, Cell, cell, gravity_of_arm, parameters_of_arm, tracebacks
from faults.results import Result
from robot_dyn_id.errors import DeadlineError

GROWTH_MIB = 10.0
"""Largest growth of a node's memory over the second half of the run."""

QUIET_LINES = 60
"""Log lines of a node in a run without faults, at most; a busy computer may cause some."""

LINES_OF_A_MOTION = 20
"""Log lines of a node about one motion, at most: its course, what is not monitored, and what is made of it."""

PATIENT = {"periods": 10_000, "latency": 2.0}
"""Parameters of the excitation where memory is measured, and not deadlines: a busy computer is late."""

STEADY_S, STEADY_MIB = 5, 1.0
"""A node has started when its memory grows by less than this [MiB] within this time [s]."""

LEAST_MOTION = 0.5
"""Share of the run in which the arm must be in motion: on a slow computer the excitation may end and begin again."""

UNUSED = ("effort_command:=unused_effort_command",)
"""Remapping of nodes that command efforts: the arm follows the excitation."""


def memory(world: Any, folder: Path, seconds: float, rate: float = 1000.0) -> list[Result]:
    """Run all nodes for some time while the arm moves, and compare their memory in the middle and at the end.

    Args:
        world: world of `ros_world`.
        folder: for logs and bags.
        seconds: duration [s].
        rate: rate of the joint states [Hz]; at 1 kHz not every computer can start the motion within a minute.
    """
    from robot_dyn_id.msg import RecordingStatus

    folder.mkdir(parents=True, exist_ok=True)
    parameters, gravity = parameters_of_arm(folder), gravity_of_arm(folder)
    with cell(world, folder / "memory", "memory", watch=False, simulated_time=True) as made:
        made.start("simulator", rate=max(500.0, rate), publish_rate=rate)
        made.start("excitation_publisher", **PATIENT)
        made.start("recorder")
        made.wait_started(*made.processes)
        made.until_recording(RecordingStatus.IDLE)
        made.trigger("recorder/start")
        made.world.until(lambda: _moves(made), 2.0 * STARTING_S, "motion")
        for name, options in {
            "identifier": {"parameters": parameters},
            "torque_residual_monitor": {},
            "external_torque_estimator": {},
            "computed_torque_controller": {"remap": UNUSED},
            "gravity_compensator": {"calibration": gravity, "remap": UNUSED},
            "gravity_calibrator": {"calibration": gravity},
            "payload_identifier": {"parameters": parameters},
            "marker_publisher": {},
        }.items():  # one after the other: all of them at once would hold up the motion
            made.start(name, **options)
            made.wait_started(name)
        _until_steady(made)
        samples: dict[str, list[float]] = {name: [] for name in made.processes}
        pause, moving = min(1.0, seconds / 60.0), 0
        for _ in range(round(seconds / pause)):
            made.world.wait(pause)
            moving += _moves(made)
            for name, process in made.processes.items():
                if process.alive:
                    samples[name].append(process.memory())
        fault = f"{seconds:.0f} s of all nodes at {rate:g} Hz"
        share = moving * pause / seconds
        notes = (
            f"in motion for {share:.0%} of the time",
            *dict.fromkeys(f"excitation: {r}" for _, r in made.excitation if r),
        )
        motion = Result("the arm moves", fault, 1, int(share < LEAST_MOTION), notes=notes[:4])
        return [motion, *(_growth(made, name, values, seconds, fault) for name, values in samples.items())]


def _until_steady(made: Cell) -> None:
    """Wait until no node takes more memory for its start, which a busy computer delays; a large leak does not end."""
    end, before = time.monotonic() + STARTING_S, dict.fromkeys(made.processes, 0.0)
    while time.monotonic() < end:
        now = {name: process.memory() for name, process in made.processes.items() if process.alive}
        if all(size - before[name] < STEADY_MIB for name, size in now.items()):
            return
        before = now
        for _ in range(STEADY_S):
            made.world.wait(1.0)
            _moves(made)


def _moves(made: Cell) -> bool:
    """Whether the excitation runs; it is started again if it ended, which is refused while the computer is held up."""
    from robot_dyn_id.msg import ExcitationStatus as Status

    state = made.excitation[-1][0] if made.excitation else Status.WAITING
    if state in (Status.READY, Status.DONE, Status.FAULT):
        with contextlib.suppress(DeadlineError):  # the share of the time in motion has a row of its own
            made.trigger("excitation_publisher/start")
        made.world.wait(0.2)
    return bool(state == Status.RUNNING)


def _motions(made: Cell) -> int:
    """Number of motions that were begun."""
    from robot_dyn_id.msg import ExcitationStatus as Status

    states = [state for state, _ in made.excitation]
    return sum(
        now == Status.APPROACHING != before for before, now in zip([Status.WAITING, *states], states, strict=False)
    )


def _growth(made: Cell, name: str, values: list[float], seconds: float, fault: str) -> Result:
    process, tenth = made.processes[name], max(1, len(values) // 10)
    growth = median(values[-tenth:]) - median(values[len(values) // 2 - tenth : len(values) // 2] or values[:1])
    notes = []
    if not process.alive:
        notes.append(f"it ended: {process.text()[-300:]}")
    lines = QUIET_LINES + seconds / 5.0 + LINES_OF_A_MOTION * _motions(made)
    if tracebacks(process.text()) or process.lines() > lines:
        notes.append(f"{process.lines()} log lines, {tracebacks(process.text())} tracebacks: {process.text()[-200:]}")
    broken = bool(notes) or growth > GROWTH_MIB
    notes.append(f"{median(values[-tenth:]):.0f} MiB at the end")
    promise = "memory flat, short logs, no node ends"
    return Result(promise, f"{fault}: {name}", 1, int(broken), growth, GROWTH_MIB, "MiB", tuple(notes))


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
        faults = left.excitation_faults() + right.excitation_faults()
    notes = tuple(f"{broken.count(text)} x {text}" for text in dict.fromkeys(broken))[:4]
    if faults:
        notes += (f"{len(faults)} motions ended in a fault, and were begun again: {faults[0]}",)
    return [
        Result("no crosstalk", "two robots in two namespaces, one moves", runs, min(runs, len(broken)), notes=notes)
    ]


def _crosstalk(moving: Cell, resting: Cell) -> list[str]:
    """Reaction of the resting robot and its nodes to an excitation and identification of the other one."""
    from robot_dyn_id.msg import ExcitationStatus as Status
    from robot_dyn_id.msg import IdentificationReport

    from robot_dyn_id.nodes.runtime.robot_node import RELIABLE

    at_rest = Status.READY, Status.DONE, Status.FAULT  # a computer that was held up ends a motion in a fault
    for made in (moving, resting):
        made.until_excitation(*at_rest)
    reports: dict[str, list[Any]] = {made.namespace: [] for made in (moving, resting)}
    listen = moving.world.probe.create_subscription
    subscriptions = [
        listen(IdentificationReport, f"/{name}/identification_report", heard.append, RELIABLE)
        for name, heard in reports.items()
    ]
    moment, reported, recorded = resting.moment(), len(resting.excitation), len(resting.recording)
    moving.run_motion()
    moving.world.wait(4.0)
    moving.stop_motion()
    moving.until_excitation(*at_rest)
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
