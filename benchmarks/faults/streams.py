# SPDX-License-Identifier: Apache-2.0
"""Faulty joint states and clocks: a relay between robot and nodes loses, delays, changes or repeats messages.

What must hold under every fault: no node ends, the robot never leaves its limits of speed, the excitation goes on or
brakes to rest, logs stay short, and after the fault the excitation starts again.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from faults.cell import STARTING_S, URDF, Cell, tracebacks
from faults.results import Result

LINES_PER_S = 2.0
"""Log lines per second of fault that one node may write on average, besides the first twenty."""

Fault = Callable[[Any, random.Random], Sequence[tuple[float, Any]]]
"""Takes a joint state; returns messages with the time in which each is to be sent [s]."""


def _changed(change: Callable[[Any, random.Random], None], share: float = 1.0) -> Fault:
    def fault(message: Any, rng: random.Random) -> Sequence[tuple[float, Any]]:
        if rng.random() < share:
            message = copy.deepcopy(message)
            change(message, rng)
        return [(0.0, message)]

    return fault


def _dropped(share: float) -> Fault:
    return lambda message, rng: [] if rng.random() < share else [(0.0, message)]


def _delayed(shortest: float, longest: float) -> Fault:
    return lambda message, rng: [(rng.uniform(shortest, longest), message)]


def _not_a_number(message: Any, rng: random.Random) -> None:
    channel = rng.choice((message.position, message.velocity, message.effort))
    channel[rng.randrange(len(channel))] = rng.choice((float("nan"), float("inf"), -float("inf")))


def _wrong_names(message: Any, rng: random.Random) -> None:
    message.name = rng.choice(
        (
            [f"{name}_{rng.randrange(10**6)}" for name in message.name],
            message.name[:1] * len(message.name),
            [],
            ["x" * 10_000, *message.name[1:]],
        )
    )


def _wrong_lengths(message: Any, rng: random.Random) -> None:
    channel = rng.choice(("name", "position", "velocity", "effort"))
    values = list(getattr(message, channel))
    setattr(message, channel, rng.choice(([], values[:-1], values * 2)))


def _stamped(shift: Callable[[random.Random], float]) -> Callable[[Any, random.Random], None]:
    def change(message: Any, rng: random.Random) -> None:
        stamp = message.header.stamp
        nanoseconds = stamp.sec * 10**9 + stamp.nanosec + round(1e9 * shift(rng))
        stamp.sec, stamp.nanosec = divmod(max(0, nanoseconds), 10**9)

    return change


def _frozen(message: Any, rng: random.Random) -> None:
    message.header.stamp.sec, message.header.stamp.nanosec = 1000, 0


FAULTS: dict[str, Fault] = {
    "joint states, 1 % dropped": _dropped(0.01),
    "joint states, 10 % dropped": _dropped(0.1),
    "joint states, 50 % dropped": _dropped(0.5),
    "joint states, all dropped": _dropped(1.0),
    "joint states delayed by 0.05 s": _delayed(0.05, 0.05),
    "joint states delayed by 0.5 s": _delayed(0.5, 0.5),
    "joint states reordered within 0.05 s": _delayed(0.0, 0.05),
    "joint states duplicated": lambda message, rng: [(0.0, message)] * 2,
    "joint states, NaN or infinity in each": _changed(_not_a_number),
    "joint states, NaN or infinity in 1 %": _changed(_not_a_number, 0.01),
    "joint states with wrong names": _changed(_wrong_names),
    "joint states with wrong lengths": _changed(_wrong_lengths),
    "joint states at 10 kHz": lambda message, rng: [(0.0, message)] * 80,
    "stamps 1 h ahead": _changed(_stamped(lambda rng: 3600.0)),
    "stamps 1 h back": _changed(_stamped(lambda rng: -3600.0)),
    "stamps that jump by up to 1 s": _changed(_stamped(lambda rng: rng.uniform(-1.0, 1.0))),
    "frozen stamps": _changed(_frozen),
}
"""Faults of the stream. The robot publishes 125 messages per second, so that 80 of each are 10 kHz."""


class Relay:
    """Passes joint states of the robot on to the nodes of a cell.

    Attributes:
        fault: what happens to each of them; None while the relay is sound.
        sent: number of messages sent.
    """

    def __init__(self, cell: Cell, seed: int) -> None:
        """Begin without a fault."""
        from sensor_msgs.msg import JointState

        from robot_dyn_id.nodes.runtime.robot_node import RELIABLE, SENSOR

        self._node, self._rng, self._waiting = cell.world.probe, random.Random(seed), []
        self.fault: Fault | None = None
        self.sent, self._closed = 0, False
        self._publisher = self._node.create_publisher(JointState, f"/{cell.namespace}/joint_states", RELIABLE)
        self._subscription = self._node.create_subscription(
            JointState, f"/{cell.namespace}/robot/joint_states", self._take, SENSOR
        )
        self._timer = self._node.create_timer(0.002, self._send)

    def _take(self, message: Any) -> None:
        if self.fault is None:
            self._publish(message)
            return
        now = time.monotonic()
        for delay, changed in self.fault(message, self._rng):
            if delay == 0.0:
                self._publish(changed)
            else:
                self._waiting.append((now + delay, changed))

    def _send(self) -> None:
        now = time.monotonic()
        due = sorted((item for item in self._waiting if item[0] <= now), key=lambda item: item[0])
        self._waiting = [item for item in self._waiting if item[0] > now]
        for _, message in due:
            self._publish(message)

    def _publish(self, message: Any) -> None:
        if self._closed:  # rclpy may still have a callback of a subscription that is destroyed
            return
        self.sent += 1
        self._publisher.publish(message)

    def close(self) -> None:
        """Take the relay out of the graph."""
        self._closed = True
        self._node.destroy_timer(self._timer)
        self._node.destroy_subscription(self._subscription)
        self._node.destroy_publisher(self._publisher)


class ClockRelay:
    """Passes the simulator's clock on to the nodes of a cell, shifted and at times halted.

    Attributes:
        shift: added to the time [s].
        halted: whether the clock stops.
    """

    def __init__(self, cell: Cell) -> None:
        """Begin with the true time."""
        from rosgraph_msgs.msg import Clock

        from robot_dyn_id.nodes.runtime.robot_node import RELIABLE

        self.shift, self.halted = 0.0, False
        self._publisher = cell.world.probe.create_publisher(Clock, f"/{cell.namespace}/clock", RELIABLE)
        cell.world.probe.create_subscription(Clock, f"/{cell.namespace}/robot/clock", self._take, RELIABLE)

    def _take(self, message: Any) -> None:
        if self.halted:
            return
        time_of_clock = message.clock
        nanoseconds = time_of_clock.sec * 10**9 + time_of_clock.nanosec + round(1e9 * self.shift)
        time_of_clock.sec, time_of_clock.nanosec = divmod(max(0, nanoseconds), 10**9)
        self._publisher.publish(message)


CLOCKS: dict[str, tuple[float, bool]] = {
    "/clock jumps 10 s ahead": (10.0, False),
    "/clock jumps 1e8 s ahead": (1e8, False),
    "/clock jumps 10 s back": (-10.0, False),
    "/clock stops": (0.0, True),
}
"""Shift [s] of the clock, and whether it stops."""


def _speed_limits() -> np.ndarray:
    from robot_dyn_id.model.robot import RobotModel

    return np.asarray(RobotModel.from_file(URDF).limits.velocity)


class Trial:
    """A cell with a relay, in which one fault after the other is tried.

    Attributes:
        rate: largest rate of messages that the relay reached under a fault [1/s].
    """

    def __init__(self, cell: Cell, seed: int = 1) -> None:
        """Start the nodes; with simulated time there is a relay of the clock too."""
        self.cell, self.relay, self._limits = cell, Relay(cell, seed), _speed_limits()
        self.rate = 0.0
        self.clock = ClockRelay(cell) if cell.simulated_time else None
        cell.start("simulator", remap=["/clock:=robot/clock"])
        relayed: dict[str, Any] = {"relayed": True, "remap": ["/clock:=clock"]}
        cell.start("recorder", **relayed, start=True)
        # a busy relay passes simulated time on late, and in bursts
        cell.start("excitation_publisher", **relayed, latency=1.0 if cell.simulated_time else 0.1)
        for name in ("identifier", "torque_residual_monitor"):
            cell.start(name, **relayed)
        cell.wait_started(*cell.processes)

    def close(self) -> None:
        """Take the relay away; the cell ends its nodes."""
        self.relay.close()

    def _begin_fault(self, fault: Fault | tuple[float, bool]) -> None:
        if callable(fault):
            self.relay.fault = fault
        else:
            assert self.clock is not None
            self.clock.shift, self.clock.halted = fault

    def _end_fault(self) -> None:
        self.relay.fault = None
        if self.clock is not None:
            # It jumps back: a clock that stays apart from the stamps is refused for good, and rightly so.
            self.clock.shift, self.clock.halted = 0.0, False

    def run(self, fault: Fault | tuple[float, bool], duration: float) -> str:
        """One run of a fault, first at rest and then in motion; empty if all held, else what did not."""
        from robot_dyn_id.msg import ExcitationStatus as Status

        cell = self.cell
        cell.until_excitation(Status.READY, Status.DONE, Status.FAULT)
        problem = self._under(fault, duration, "at rest")
        if problem:
            return problem
        cell.until_excitation(Status.READY, Status.DONE, Status.FAULT)
        cell.run_motion()
        cell.world.wait(0.5)
        return self._under(fault, duration, "in motion") or self._restarts()

    def _under(self, fault: Fault | tuple[float, bool], duration: float, when: str) -> str:
        """Apply a fault for some time and check what must hold under it."""
        from robot_dyn_id.msg import ExcitationStatus as Status

        cell, ends = self.cell, (Status.FAULT, Status.DONE, Status.WAITING)
        lines = {name: process.lines() for name, process in cell.processes.items()}
        begin, wall, heard, sent = time.monotonic(), time.time(), len(cell.excitation), self.relay.sent
        moment = cell.moment()
        self._begin_fault(fault)
        cell.world.wait(duration)
        self.rate = max(self.rate, (self.relay.sent - sent) / (time.monotonic() - begin))
        if any(state in ends for state, _ in cell.excitation[heard:]):
            try:
                cell.until_rest(max(cell.ended, moment))
            except AssertionError as problem:
                return f"{when}: {problem}"
        took = time.monotonic() - begin
        self._end_fault()
        if cell.others_alive():
            name = cell.others_alive()[0]
            return f"{when}: {name} ended: {cell.processes[name].text()[-200:]}"
        for name, process in cell.processes.items():
            written = process.lines() - lines[name]
            if written > 20 + LINES_PER_S * took:
                return f"{when}: {name} logs {written} lines in {took:.1f} s"
            if tracebacks(process.text()):
                return f"{when}: {name} logs a traceback"
        fast = [np.abs(dq) / self._limits for arrival, _, _, dq, _ in cell.states if arrival > wall]
        if fast and np.max(fast) > 1.1:
            return f"{when}: the robot reaches {np.max(fast):.2f} times its speed limit"
        return ""

    def _restarts(self) -> str:
        """End the motion, and wait until another one can be started."""
        from robot_dyn_id.msg import ExcitationStatus as Status

        cell = self.cell
        try:
            cell.stop_motion()
            cell.until_excitation(Status.READY, Status.DONE, Status.FAULT, timeout=STARTING_S)
        except Exception as problem:
            return f"no restart after the fault: {problem}; {cell.excitation[-1]}"
        return ""


def run(world: Any, folder: Path, runs: int, duration: float = 3.0, chosen: Sequence[str] = ()) -> list[Result]:
    """Try the faults of joint states and clock.

    Args:
        world: world of `ros_world`.
        folder: for logs and results.
        runs: number of runs of each fault.
        duration: duration of a fault [s].
        chosen: faults; empty: all.
    """
    from faults.cell import cell

    results = []
    faults: dict[str, Fault | tuple[float, bool]] = {**FAULTS, **CLOCKS}
    for number, name in enumerate(chosen or faults):
        broken: list[str] = []
        done = 0
        with cell(world, folder / f"fault_{number}", f"stream_{number}", simulated_time=name in CLOCKS) as made:
            trial = Trial(made)
            while done < runs and not made.others_alive():
                done += 1
                try:
                    problem = trial.run(faults[name], duration)
                except Exception as error:
                    problem = " ".join(str(error).split())[:200]
                if problem:
                    broken.append(problem)
            trial.close()
        notes = (f"up to {trial.rate:.0f} messages per second reached",)
        notes += tuple(f"{broken.count(text)} x {text}" for text in dict.fromkeys(broken))[:4]
        notes += tuple(f"begun again: {reason}" for reason in made.begun_again[:4])
        results.append(
            Result(
                "goes on or brakes to rest, no node ends, short logs, starts again",
                name,
                done,
                len(broken),
                notes=notes,
            )
        )
        print(f"  {name}: {results[-1].verdict}, {trial.rate:.0f} messages/s", *notes, sep="\n    ", flush=True)
    return results
