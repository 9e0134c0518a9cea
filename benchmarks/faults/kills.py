# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of every node in every state: the robot comes to rest, others stay, files are readable, a restart works."""

from __future__ import annotations

import contextlib
import io
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from faults.cell import LATENCY, REST_SPEED, STARTING_S, Cell, parameters_of_arm
from faults.results import Result

REST_BOUND_S = LATENCY.horizon + 0.3
"""From the death of the excitation publisher to rest: the segment that lies with the controller, and braking."""

EFFORT_BOUND_S = 0.3
"""From the death of the controller to no effort: the simulator's timeout of 0.1 s, and a busy computer."""

ATTEMPTS = 5
"""Attempts to bring the excitation into a state on a busy computer."""


@dataclass
class Outcome:
    """Result of one kind of kill over its runs.

    Attributes:
        promise: what must hold.
        fault: which node, in which state.
        bound: limit of the figure, if any.
        figures: one per run.
        broken: one line per run that broke the promise.
        runs: number of runs.
    """

    promise: str
    fault: str
    bound: float | None = None
    figures: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    runs: int = 0

    def result(self) -> Result:
        """The row of the table."""
        worst = max(self.figures) if self.figures else None
        notes = tuple(f"{self.broken.count(text)} x {text}" for text in dict.fromkeys(self.broken))[:5]
        return Result(
            self.promise, self.fault, self.runs, len(self.broken), worst, self.bound, "s" if self.bound else "", notes
        )


def _attempt(outcome: Outcome, run: Callable[[], float | None]) -> None:
    """One run; an assertion or a deadline that it misses breaks the promise."""
    outcome.runs += 1
    try:
        figure = run()
    except Exception as problem:
        outcome.broken.append(" ".join(str(problem).split())[:200] or type(problem).__name__)
        return
    if figure is not None:
        outcome.figures.append(figure)
        if outcome.bound is not None and figure > outcome.bound:
            outcome.broken.append(f"longer than {outcome.bound:g} s")


def _check_others(cell: Cell, *but: str) -> None:
    dead = cell.others_alive(*but)
    if dead:
        raise AssertionError(f"{', '.join(dead)} ended too: {cell.processes[dead[0]].text()[-200:]}")


# --- the excitation publisher ----------------------------------------------------------------------------------------


def _into(cell: Cell, state: str, rng: random.Random) -> None:
    """Bring the excitation into a state."""
    from robot_dyn_id.msg import ExcitationStatus as Status
    from std_srvs.srv import SetBool, Trigger

    cell.until_excitation(Status.READY, Status.DONE, Status.FAULT)
    if state == "ready":
        return
    if state == "approaching":
        # away from where the excitation begins: an arm that stands there has no way to go
        cell.run_motion()
        cell.world.wait(rng.uniform(0.5, 3.0))
        cell.stop_motion()
        cell.start_motion()
        cell.world.until(lambda: cell.speed() > REST_SPEED, STARTING_S, "the motion of the approach")
        return
    cell.run_motion()
    cell.world.wait(rng.uniform(0.3, 3.0))
    if state == "paused":
        cell.world.call(SetBool, f"/{cell.namespace}/excitation_publisher/pause", SetBool.Request(data=True))
        cell.world.wait(rng.uniform(0.0, 0.8))
    if state == "stopping":
        stop = cell.world.probe.create_client(Trigger, f"/{cell.namespace}/excitation_publisher/stop")
        cell.world.until(stop.service_is_ready, 20.0, "the service stop")
        stop.call_async(Trigger.Request())  # it answers when braking is over
        cell.world.wait(rng.uniform(0.0, 0.2))
        cell.world.probe.destroy_client(stop)


def _is(cell: Cell, state: str) -> bool:
    """Whether the excitation is in motion, in a state that is a motion: a busy computer may have ended it."""
    from robot_dyn_id.msg import ExcitationStatus as Status

    moving = {"approaching": (Status.APPROACHING, Status.RUNNING), "running": (Status.RUNNING,)}
    return state not in moving or (cell.excitation[-1][0] in moving[state] and cell.speed() > REST_SPEED)


def excitation_publisher(cell: Cell, runs: int, rng: random.Random, states: Sequence[str]) -> Iterator[Outcome]:
    """Kill the excitation publisher in each of its states."""
    cell.start("simulator")
    cell.start("recorder", start=True)  # the excitation moves only while a recorder that is there records
    cell.start("identifier")
    cell.start("torque_residual_monitor")
    cell.wait_started("simulator", "recorder", "identifier", "torque_residual_monitor")
    for state in states:
        outcome = Outcome(
            "robot at rest, others run, restart works", f"SIGKILL of excitation_publisher, {state}", REST_BOUND_S
        )

        def run(state: str = state) -> float:
            cell.excitation.clear()
            process = cell.start("excitation_publisher")
            if state == "waiting":
                cell.world.wait(rng.uniform(0.3, 2.0))
            else:
                cell.wait_started("excitation_publisher")
                for _ in range(ATTEMPTS):
                    _into(cell, state, rng)
                    if _is(cell, state):
                        break
                    cell.trigger("excitation_publisher/stop")
                else:
                    raise AssertionError(f"not run: not {state} in {ATTEMPTS} attempts, {cell.excitation[-1]}")
            took = cell.until_rest(cell.kill(process))
            _check_others(cell, "excitation_publisher")
            return took

        for _ in range(runs):
            _attempt(outcome, run)
        yield outcome


# --- the simulator: the robot's driver is gone ------------------------------------------------------------------------


def simulator(cell: Cell, runs: int, rng: random.Random, states: Sequence[str]) -> Iterator[Outcome]:
    """Kill the robot's driver: the excitation must end and say so, and start again when the driver is back."""
    from robot_dyn_id.msg import ExcitationStatus as Status

    cell.start("recorder", start=True)
    for name in ("excitation_publisher", "identifier", "torque_residual_monitor"):
        cell.start(name)
    for state in states:
        outcome = Outcome(
            "excitation stops and names the cause, others run, restart works", f"SIGKILL of simulator, {state}", 2.0
        )

        def run(state: str = state) -> float:
            cell.start("simulator")
            cell.wait_started("simulator", "excitation_publisher")
            cell.until_excitation(Status.READY, Status.DONE, Status.FAULT)
            if state == "running":
                cell.run_motion()
                cell.world.wait(rng.uniform(0.2, 2.0))
            begin = time.monotonic()
            cell.processes["simulator"].kill()
            cell.world.until(
                lambda: cell.excitation[-1][0] in (Status.FAULT, Status.WAITING) and cell.excitation[-1][1],
                10.0,
                f"the excitation says that joint states are missing, not {cell.excitation[-1]}",
            )
            took = time.monotonic() - begin
            _check_others(cell, "simulator")
            return took if state == "running" else None  # type: ignore[return-value]

        for _ in range(runs):
            _attempt(outcome, run)
        yield outcome


# --- the recorder ----------------------------------------------------------------------------------------------------


def recorder(cell: Cell, runs: int, rng: random.Random, states: Sequence[str]) -> Iterator[Outcome]:
    """Kill the recorder: its bag is readable, but for the last second."""
    from robot_dyn_id.msg import RecordingStatus as Status
    from std_srvs.srv import SetBool

    from robot_dyn_id.nodes.runtime.robot_node import LATCHED

    statuses = cell.world.heard(Status, f"/{cell.namespace}/recording_status", LATCHED)
    cell.start("simulator")
    cell.start("torque_residual_monitor")
    cell.wait_started("simulator", "torque_residual_monitor")
    for state in states:
        outcome = Outcome("bag readable except the last second, restart works", f"SIGKILL of recorder, {state}", 1.0)

        def run(state: str = state) -> float | None:
            cell.recording.clear()
            process = cell.start("recorder")
            bag = cell.bag
            cell.wait_started("recorder")
            cell.until_recording(Status.IDLE)
            moment = 0.0
            if state != "idle":
                cell.trigger("recorder/start")
                cell.until_recording(Status.RECORDING)
                cell.world.until(lambda: any(statuses[-1].counts), STARTING_S, "messages in the file")
                cell.world.wait(rng.uniform(0.5, 3.0))
            if state == "paused":
                cell.world.call(SetBool, f"/{cell.namespace}/recorder/pause", SetBool.Request(data=True))
                moment = cell.moment()
                cell.world.wait(rng.uniform(0.0, 0.5))
            moment = moment or cell.moment()
            process.kill()
            _check_others(cell, "recorder")
            if state == "idle":
                return None
            lost = moment - _last_stamp(bag)
            _recovered(bag)
            return lost

        for _ in range(runs):
            _attempt(outcome, run)
        yield outcome


def _last_stamp(bag: Path) -> float:
    """Stamp of the last sample that this package reads from a bag [s since the epoch]."""
    from robot_dyn_id.recordings import open_recording

    recording = open_recording(bag)
    last = 0.0
    for chunk in recording.chunks(recording.joint_names):
        last = float(chunk.t[-1])
    return last + 1e-9 * float(getattr(recording, "epoch", 0))


def _recovered(bag: Path) -> None:
    """Check that `robot-dyn-id recover` makes it a bag that other readers take."""
    from mcap.reader import make_reader

    from robot_dyn_id.cli import VERBS, main

    if "recover" not in VERBS:
        raise AssertionError("there is no `robot-dyn-id recover`")
    made = bag.with_name(f"{bag.name}_recovered")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as output:
        code = main(["recover", str(bag), "--out", str(made)])
    if code != 0:
        raise AssertionError(f"recover ends with exit code {code}: {output.getvalue()[-200:]}")
    whole = made if made.exists() else bag
    (file,) = whole.glob("*.mcap")
    with file.open("rb") as stream:
        summary = make_reader(stream).get_summary()
    if summary is None or not summary.statistics or not (whole / "metadata.yaml").is_file():
        raise AssertionError("a recovered bag without summary or metadata")


# --- identifier and monitor ------------------------------------------------------------------------------------------


def identifier(cell: Cell, runs: int, rng: random.Random, states: Sequence[str]) -> Iterator[Outcome]:
    """Kill the identifier while it listens and while it identifies."""
    from robot_dyn_id.msg import ExcitationStatus as Status

    for name in ("simulator", "excitation_publisher", "torque_residual_monitor"):
        cell.start(name)
    cell.wait_started("simulator", "excitation_publisher", "torque_residual_monitor")
    for state in states:
        outcome = Outcome("others run, restart works", f"SIGKILL of identifier, {state}")

        def run(state: str = state) -> None:
            process = cell.start("identifier")
            if state == "waiting":
                cell.world.wait(rng.uniform(0.2, 1.5))
            else:
                cell.wait_started("identifier")
                cell.until_excitation(Status.READY, Status.DONE)
                cell.run_motion()
                cell.world.wait(rng.uniform(0.5, 2.0))
                if state == "identifying":
                    cell.world.wait(3.0)
                    cell.trigger("identifier/identify")
                    cell.world.wait(rng.uniform(0.0, 1.0))
            process.kill()
            _check_others(cell, "identifier")
            if state != "waiting":
                cell.stop_motion()

        for _ in range(runs):
            _attempt(outcome, run)
        yield outcome


def monitor(cell: Cell, runs: int, rng: random.Random, states: Sequence[str]) -> Iterator[Outcome]:
    """Kill the monitor before and after it has a model."""
    parameters = parameters_of_arm(cell.folder.parent)
    cell.start("simulator")
    cell.start("identifier", parameters=parameters, listen=False)
    cell.wait_started("simulator", "identifier")
    for state in states:
        outcome = Outcome("others run, restart works", f"SIGKILL of torque_residual_monitor, {state}")

        def run(state: str = state) -> None:
            process = cell.start("torque_residual_monitor")
            if state == "running":
                cell.wait_started("torque_residual_monitor")
            cell.world.wait(rng.uniform(0.1, 1.0))
            process.kill()
            _check_others(cell, "torque_residual_monitor")

        for _ in range(runs):
            _attempt(outcome, run)
        yield outcome


# --- the controller --------------------------------------------------------------------------------------------------


def controller(cell: Cell, runs: int, rng: random.Random, states: Sequence[str]) -> Iterator[Outcome]:
    """Kill the controller of an arm under effort control: the efforts end with the simulator's timeout."""
    parameters = parameters_of_arm(cell.folder.parent)
    cell.start("identifier", parameters=parameters, listen=False)
    cell.start("torque_residual_monitor")
    for state in states:
        outcome = Outcome(
            "no effort after the simulator's timeout, others run, restart works",
            f"SIGKILL of computed_torque_controller, {state}",
            EFFORT_BOUND_S,
        )

        def run(state: str = state) -> float | None:
            cell.start("simulator", control="effort", brakes=True)
            cell.efforts.clear()
            process = cell.start("computed_torque_controller", law="computed_torque")
            cell.wait_started("simulator", "identifier", "torque_residual_monitor")
            if state == "holding":
                cell.world.until(lambda: _pulls(cell.efforts[-1:]), 60.0, "efforts of the controller")
                cell.world.wait(rng.uniform(0.2, 1.0))
            else:
                cell.world.wait(rng.uniform(0.1, 1.0))
            first, moment = len(cell.states), cell.kill(process)  # a new simulator begins its time again
            cell.world.until(lambda: cell.moment() - moment > 1.0, STARTING_S, "joint states after the kill")
            _check_others(cell, "computed_torque_controller")
            pulled = [
                stamp
                for _, stamp, _, _, effort in cell.states[first:]
                if stamp > moment and np.abs(effort).max() > 1e-6
            ]
            cell.processes["simulator"].kill()  # the arm has fallen: the next run begins with another one
            if state == "waiting":
                return None
            return max(0.0, pulled[-1] - moment) if pulled else 0.0

        for _ in range(runs):
            _attempt(outcome, run)
        yield outcome


def _pulls(efforts: list[Any]) -> bool:
    return bool(efforts) and bool(np.abs(efforts[-1]).max() > 1e-3)


Scenario = Callable[[Cell, int, random.Random, Sequence[str]], Iterator[Outcome]]

SCENARIOS: dict[str, tuple[Scenario, tuple[str, ...]]] = {
    "excitation_publisher": (
        excitation_publisher,
        ("waiting", "ready", "approaching", "running", "paused", "stopping"),
    ),
    "simulator": (simulator, ("ready", "running")),
    "recorder": (recorder, ("idle", "recording", "paused")),
    "identifier": (identifier, ("waiting", "listening", "identifying")),
    "torque_residual_monitor": (monitor, ("starting", "running")),
    "computed_torque_controller": (controller, ("waiting", "holding")),
}
"""Kills by the node that is killed, and its states."""

WALL_TIME = ("simulator",)
"""Nodes after whose death time goes on by the clock of the computer: simulated time ends with the simulator."""


def run(
    world: Any, folder: Path, runs: int, chosen: Sequence[str] = (), states: Sequence[str] = (), seed: int = 1
) -> list[Result]:
    """Kill nodes.

    Args:
        world: world of `ros_world`.
        folder: for logs, bags and results.
        runs: kills in each state of each node.
        chosen: nodes to kill; empty: all.
        states: states in which the processes are killed; empty for all.
        seed: seed of the random times.
    """
    from faults.cell import cell

    results = []
    for name in chosen or SCENARIOS:
        with cell(world, folder / name, f"kill_{name}", simulated_time=name not in WALL_TIME) as made:
            scenario, known = SCENARIOS[name]
            wanted = [state for state in known if not states or state in states]
            for outcome in scenario(made, runs, random.Random(f"{seed} {name}"), wanted):
                results.append(outcome.result())
                print(f"  {results[-1].fault}: {results[-1].verdict}, worst {results[-1].worst}", flush=True)
                for note in results[-1].notes:
                    print(f"    {note}", flush=True)
    return results
