# SPDX-License-Identifier: Apache-2.0
"""Braking of the excitation publisher: faults at random moments, over real DDS, 100 runs of each.

The robot is the follower of the tests, all nodes are in one process but those that Ctrl-C or SIGKILL end. Half of the
runs send the motion in pieces, half send it whole. For every run: the time from the fault to the arrival of the
braking motion at the controller, the time from there to the rest in which that motion ends, beyond the v / a of the
slowest joint, v being what the joints do at that arrival, and whether the status gives the right reason. A run that is
stopped before its fault, because the machine was held up, is repeated, and counted. `stopping.py 10` does 10 runs
of each, `stopping.py 10 NaN Ctrl-C` of these.

A node that is killed cannot command anything: its runs send pieces, and what is measured is the time to rest beyond
the horizon and v / a, v being the speed at which the braking begins, and the way of the joint that goes farthest.

Every fault has a line of its own on standard error: the worst values, and how many runs met all requirements.
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from measuring import Goal, at_least, at_most, script

from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.nodes.runtime.isolation import keep_to_this_host

ROOT = Path(__file__).resolve().parents[1]
RUNS = 100
ACCELERATION = 10.0

DELAY = 0.2
"""Longest time from a fault to the arrival of the braking motion, or to the report [s]."""

EXCESS = 0.02
"""Allowance over v / a until rest [s]: two points of the trajectory."""

HORIZON = Latency(0.1).horizon
"""Length of the segments of the motion [s], with the default latency."""

SEGMENTS = (True, False)


def disturbed(change: Callable) -> Callable:
    """A fault that changes every joint state."""

    def fault(cell) -> None:
        def disturb(message):
            change(message)
            return message

        cell.follower.disturb = disturb

    return fault


def silent(cell) -> None:
    cell.follower.speak = False


def interrupted(cell) -> None:
    cell.process.send_signal(signal.SIGINT)


def not_a_number(message) -> None:
    message.position[2] = math.nan


def far(message) -> None:
    message.position[4] += 3 * 0.2


def fast(message) -> None:
    message.velocity[1] = 3.0


def blocked(message) -> None:
    message.effort[5] = -25.0


def lacking(message) -> None:
    message.name, message.position = message.name[1:], message.position[1:]
    message.velocity, message.effort = message.velocity[1:], message.effort[1:]


FAULTS = {
    "silence": (silent, "joint states for 0."),
    "NaN": (disturbed(not_a_number), "joint joint3: its measured position is nan"),
    "tracking error x 3": (disturbed(far), "rad away from its command, more than 0.2 rad"),
    "velocity": (disturbed(fast), "joint joint2: its measured velocity is 3 rad/s, more than 2.2 rad/s"),
    "effort": (disturbed(blocked), "joint joint6: its measured effort is -25 N m, more than 18 N m"),
    "missing joint": (disturbed(lacking), "joint states lack joint1"),
}
"""Fault of a robot, and the words that the status must contain."""


class Cell:
    """A follower, the node, and its status messages."""

    def __init__(self, world, segments: bool, namespace: str = "") -> None:
        from robot_dyn_id.msg import ExcitationStatus
        from support.follower import Follower

        from robot_dyn_id.nodes.runtime.robot_node import LATCHED

        parameters = {
            "urdf": ROOT / "urdf" / "arm7.urdf",
            "segments": str(segments).lower(),
            "rehearsal": "false",
            "period": 2.0,
            "periods": 2,
            "acceleration": f"[{ACCELERATION}]",
            "posture": "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]",
        }
        names = [f"joint{i}" for i in range(1, 8)]
        self.world, self.state, self.namespace = (
            world,
            ExcitationStatus,
            namespace or ("pieces" if segments else "whole"),
        )
        self.follower = world.add(lambda **options: Follower(names, np.zeros(7), **options), namespace=self.namespace)
        self.arguments = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        self.statuses: list[tuple[float, int, float, str]] = []
        self.early = 0
        world.probe.create_subscription(ExcitationStatus, f"{self.namespace}/excitation_status", self.hear, LATCHED)
        self.begin()

    def begin(self) -> None:
        """Start the node."""
        from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher

        self.node = self.world.add(ExcitationPublisher, *self.arguments, namespace=self.namespace)

    def commandable(self) -> bool:
        """Whether the node has found the follower, which may have left before."""
        return not self.node._obstacle()

    def hear(self, message) -> None:
        self.statuses.append((time.monotonic(), message.state, message.elapsed, message.reason))

    def run_until(self, progress: float) -> None:
        """Let the excitation begin, and get to some place [s]."""
        while not self.got_to(progress):
            self.early += 1

    def got_to(self, progress: float) -> bool:
        """Whether the excitation got there before anything stopped it."""
        from std_srvs.srv import Trigger

        self.world.until(lambda: self.statuses and self.statuses[-1][1] in (self.state.READY, self.state.FAULT))
        self.world.until(lambda: self.follower.at_rest() and self.commandable())
        name = f"{self.namespace}/excitation_publisher/start"
        self.world.until(lambda: self.world.call(Trigger, name).success)  # refused while the machine is held up
        begun, ends = len(self.statuses), {self.state.FAULT, self.state.DONE}

        def there() -> bool:
            return self.statuses[-1][1] == self.state.RUNNING and self.statuses[-1][2] >= progress

        self.world.until(lambda: there() or ends & {state for _, state, *_ in self.statuses[begun:]})
        return there()

    def over(self) -> bool:
        """Whether the node has done what a fault demands."""
        return self.statuses[-1][1] == self.state.FAULT

    def stopped(self, fault: Callable, words: str) -> tuple[float, float, float, bool]:
        """Seconds from the fault to the braking motion, from there to rest beyond v / a, and of the longest hold-up.

        The last value is whether the status gave a reason with these words. The hold-up is the largest gap between two
        turns of the robot's timer of 5 ms until the braking motion arrived: while nothing of the process runs, nothing
        can be stopped.
        """
        follower, before = self.follower, len(self.follower.received)
        began = time.monotonic()
        heard = len(self.statuses)
        fault(self)
        self.world.until(self.over)
        self.world.until(follower.at_rest, 5.0)
        trajectories = zip(follower.received, follower.speeds, follower.ends, strict=True)
        arrival, speed, rest = next(
            (t, v, end)
            for (t, message), v, end in list(trajectories)[before:]
            if not len(message.points[0].accelerations)
        )
        follower.speak, follower.disturb = True, lambda message: message
        turns = [t for t, _, _ in follower.history if began - 0.1 <= t <= arrival + 0.1]
        named = any(words in reason for *_, reason in self.statuses[heard:])
        if not named:
            print(f"  instead of {words!r}: {[status[1:] for status in self.statuses[heard - 1 :]]}", file=sys.stderr)
        return arrival - began, rest - speed.max() / ACCELERATION, float(np.diff(turns).max()), named

    def deserted(self) -> tuple[float, bool]:
        """Seconds from the loss of the controller to the report, and whether that names it."""
        self.follower.leave()
        began = time.monotonic()
        self.world.until(lambda: self.statuses[-1][1] == self.state.FAULT)
        reported, why = next((t, why) for t, state, _, why in self.statuses if t > began and state == self.state.FAULT)
        self.follower.come()
        return reported - began, why.startswith("no controller: no subscriber of ")


class Interrupted(Cell):
    """The node is a process of its own, one for each run, that Ctrl-C ends."""

    def begin(self) -> None:
        self.process: subprocess.Popen | None = None

    def commandable(self) -> bool:
        return True  # it would not be ready otherwise

    def run_until(self, progress: float) -> None:
        code = "from robot_dyn_id.nodes.starting import start; start('excitation_publisher')"
        remap = ["--ros-args", "-r", f"__ns:=/{self.namespace}"]
        self.statuses.clear()
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *remap, *self.arguments], stderr=subprocess.DEVNULL
        )
        super().run_until(progress)

    def over(self) -> bool:
        return self.process.poll() is not None

    def killed(self) -> tuple[float, float, float]:
        """Seconds from SIGKILL to rest, the same beyond horizon and v / a, and the longest way of a joint [rad]."""
        self.process.kill()
        self.process.wait()
        began = time.monotonic()
        self.world.until(self.follower.at_rest, 20.0)
        after = [(t, q, dq) for t, q, dq in self.follower.history if t >= began]
        rest = max((t for t, _, dq in after if dq.any()), default=began) - began
        (_, message), end = self.follower.received[-1], self.follower.ends[-1]
        braking = next(k for k, point in enumerate(message.points) if not point.accelerations) - 1
        speed = np.abs(message.points[braking].velocities).max() if end else 0.0
        return rest, rest - HORIZON - speed / ACCELERATION, float(np.abs(after[-1][1] - after[0][1]).max())


def report(line: str, begun: float) -> None:
    """One line for each fault as soon as it is known, with the time that its runs took."""
    print(f"{line} ({time.monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)


def goals_of(name: str, cells: list[Cell], fault: Callable, words: str, runs: int, rng) -> list[Goal]:
    """The figures of one fault; the cells take turns."""
    figures, begun = [], time.monotonic()
    for run in range(runs):
        cell = cells[run % len(cells)]
        cell.run_until(rng.uniform(0.0, 1.5))
        figures.append(cell.stopped(fault, words))
    delay, excess, held_up, named = np.array(figures).T
    worst = delay.argmax()
    kept = (delay <= DELAY) & (excess <= EXCESS) & (named == 1.0)
    report(
        f"{name:<20} met by {np.count_nonzero(kept)} of {runs} runs; worst: commanded after "
        f"{1e3 * delay.max():.0f} ms, at rest "
        f"{1e3 * excess.max():+.0f} ms from v / a, reason named {int(named.sum())} x",
        begun,
    )
    details = {"median": float(np.median(delay)), "held up then": float(held_up[worst])}
    return [
        at_most(f"{name}: stop commanded after the fault, largest [s]", delay[worst], DELAY, **details),
        at_most(f"{name}: at rest after v / a, largest [s]", excess.max(), EXCESS, median=float(np.median(excess))),
        at_least(f"{name}: reason published, share of the runs", named.mean(), 1.0),
    ]


LOST, CTRL_C, KILLED = "controller killed", "Ctrl-C", "node killed"


def measure(runs: int, chosen: Sequence[str]) -> list[Goal]:
    """The chosen faults; none: all."""
    keep_to_this_host(listen=False)
    sys.path.insert(0, str(ROOT / "test"))
    from support.ros_world import World

    world, rng = World(), np.random.default_rng(1)
    cells = [Cell(world, segments) for segments in SEGMENTS]
    goals = []
    for name, (fault, words) in FAULTS.items():
        if not chosen or name in chosen:
            goals += goals_of(name, cells, fault, words, runs, rng)
    if not chosen or LOST in chosen:
        goals += goals_of_loss(cells, runs, rng)
    ended = [Interrupted(world, segments, f"ended_{number}") for number, segments in enumerate(SEGMENTS)]
    if not chosen or CTRL_C in chosen:
        goals += goals_of(CTRL_C, ended, interrupted, "the node is ending", runs, rng)
    if not chosen or KILLED in chosen:
        goals += goals_of_death(world, runs, rng)
    print(
        f"{runs} runs of each; {sum(cell.early for cell in cells + ended)} more were stopped before their fault",
        file=sys.stderr,
    )
    world.close()
    return goals


def goals_of_loss(cells: list[Cell], runs: int, rng) -> list[Goal]:
    """Figures of the loss of the controller, which can only be reported."""
    lost, begun = [], time.monotonic()
    for run in range(runs):
        cell = cells[run % len(cells)]
        cell.run_until(rng.uniform(0.0, 1.5))
        lost.append(cell.deserted())
    delay, named = np.array(lost).T
    kept = np.count_nonzero((delay <= DELAY) & (named == 1.0))
    report(f"{LOST:<20} met by {kept} of {runs} runs; worst: reported after {1e3 * delay.max():.0f} ms", begun)
    return [
        at_most(f"{LOST}: reported, largest [s]", delay.max(), DELAY, median=float(np.median(delay))),
        at_least(f"{LOST}: reason published, share of the runs", named.mean(), 1.0),
    ]


def goals_of_death(world, runs: int, rng) -> list[Goal]:
    """The figures of a node that is killed; the last piece that it sent brings the robot to rest."""
    figures, begun = [], time.monotonic()
    for run in range(runs):
        # the graph holds a killed node for a while, in which another one is refused
        cell = Interrupted(world, True, f"killed_{run}")
        cell.run_until(rng.uniform(0.0, 1.5))
        figures.append(cell.killed())
        world.executor.remove_node(cell.follower)
    rest, excess, way = np.array(figures).T
    report(
        f"{KILLED:<20} met by {np.count_nonzero(excess <= EXCESS)} of {runs} runs; at rest after "
        f"{np.median(rest):.2f} s (median), {rest.max():.2f} s (largest), within {way.max():.2f} rad",
        begun,
    )
    details = {"largest [s]": float(rest.max()), "largest way [rad]": float(way.max())}
    return [at_most(f"{KILLED}: at rest after horizon and v / a, largest [s]", excess.max(), EXCESS, **details)]


if __name__ == "__main__":
    script(lambda: measure(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS, sys.argv[2:]))
