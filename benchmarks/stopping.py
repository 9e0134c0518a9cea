"""How fast the excitation publisher stops a robot: faults at random moments, over real DDS, 50 runs of each.

The robot is the follower of the tests, all nodes are in one process. Half of the runs command whole trajectories, half
stream. For every run: the time from the fault to the arrival of the braking motion at the controller, and the time from
there to the rest in which that motion ends, beyond the v / a of the slowest joint, v being what the joints do at that
arrival. A run that is stopped before its fault, because the machine was held up, is repeated, and counted.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measuring import Goal, at_most, script

ROOT = Path(__file__).resolve().parents[1]
RUNS = 50
ACCELERATION = 10.0
MODES = ("trajectory", "streaming")


def silence(follower) -> None:
    follower.speak = False


def not_a_number(follower) -> None:
    def disturb(message):
        message.position[2] = math.nan
        return message

    follower.disturb = disturb


def tracking_error(follower) -> None:
    def disturb(message):
        message.position[4] += 3 * 0.2
        return message

    follower.disturb = disturb


def missing_joint(follower) -> None:
    def disturb(message):
        message.name, message.position, message.velocity = message.name[1:], message.position[1:], message.velocity[1:]
        return message

    follower.disturb = disturb


FAULTS = (silence, not_a_number, tracking_error, missing_joint)


class Cell:
    """A follower, the node and what it tells."""

    def __init__(self, world, mode: str) -> None:
        from follower import Follower
        from robot_dyn_id.msg import ExcitationStatus

        from robot_dyn_id.nodes.contract import LATCHED
        from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher

        parameters = {
            "urdf": ROOT / "urdf" / "arm7.urdf",
            "mode": mode,
            "period": 2.0,
            "periods": 2,
            "acceleration": f"[{ACCELERATION}]",
            "posture": "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]",
        }
        names = [f"joint{i}" for i in range(1, 8)]
        self.world, self.state = world, ExcitationStatus
        self.follower = world.add(lambda **options: Follower(names, np.zeros(7), **options), namespace=mode)
        arguments = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        self.node = world.add(ExcitationPublisher, *arguments, namespace=mode)
        self.told: list[tuple[float, int, float]] = []
        self.early = 0
        self.mode = mode
        world.probe.create_subscription(ExcitationStatus, f"{mode}/excitation_status", self.hear, LATCHED)

    def hear(self, message) -> None:
        self.told.append((time.monotonic(), message.state, message.elapsed))

    def run_until(self, progress: float) -> None:
        """Let the excitation begin, and get to some place [s]."""
        while not self.got_to(progress):
            self.early += 1

    def got_to(self, progress: float) -> bool:
        """Whether the excitation got there before anything stopped it."""
        from std_srvs.srv import Trigger

        self.world.until(lambda: self.told and self.told[-1][1] in (self.state.READY, self.state.FAULT))
        self.world.until(lambda: self.follower.at_rest() and not self.node._obstacle())
        name = f"{self.mode}/excitation_publisher/start"
        self.world.until(lambda: self.world.call(Trigger, name).success)  # refused while the machine is held up
        begun, fault = len(self.told), self.state.FAULT

        def there() -> bool:
            return self.told[-1][1] == self.state.RUNNING and self.told[-1][2] >= progress

        self.world.until(lambda: there() or fault in [state for _, state, _ in self.told[begun:]])
        return there()

    def stopped(self, fault: Callable) -> tuple[float, float, float]:
        """Seconds from the fault to the braking motion, from there to rest beyond v / a, and the longest hold-up.

        The hold-up is the largest gap between two turns of the robot's timer of 5 ms until the braking motion arrived:
        while nothing of the process runs, nothing can be stopped.
        """
        follower, before = self.follower, len(self.follower.received)
        began = time.monotonic()
        fault(follower)
        self.world.until(lambda: self.told[-1][1] == self.state.FAULT)
        self.world.until(follower.at_rest, 5.0)
        trajectories = zip(follower.received, follower.speeds, follower.ends, strict=True)
        arrival, speed, rest = next(
            (t, v, end)
            for (t, message), v, end in list(trajectories)[before:]
            if not len(message.points[0].accelerations)
        )
        follower.speak, follower.disturb = True, lambda message: message
        turns = [t for t, _, _ in follower.history if began - 0.1 <= t <= arrival + 0.1]
        return arrival - began, rest - speed.max() / ACCELERATION, float(np.diff(turns).max())

    def deserted(self) -> float:
        """Seconds from the loss of the controller to the report."""
        self.follower.leave()
        began = time.monotonic()
        self.world.until(lambda: self.told[-1][1] == self.state.FAULT)
        told = next(t for t, state, _ in self.told if t > began and state == self.state.FAULT)
        self.follower.come()
        return told - began


def measure() -> list[Goal]:
    """All faults, `RUNS` runs each."""
    os.environ |= {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": str(1 + os.getpid() % 101)}
    sys.path.insert(0, str(ROOT / "test"))
    from ros_world import World

    world, rng = World(), np.random.default_rng(1)
    cells = [Cell(world, mode) for mode in MODES]
    goals = []
    for fault in FAULTS:
        figures = []
        for run in range(RUNS):
            cell = cells[run % len(cells)]
            cell.run_until(rng.uniform(0.0, 1.5))
            figures.append(cell.stopped(fault))
        delay, excess, held_up = np.array(figures).T
        name = fault.__name__.replace("_", " ")
        worst = delay.argmax()
        details = {"median": float(np.median(delay)), "held up then": float(held_up[worst])}
        goals += [
            at_most(f"{name}: stop commanded after the fault, largest [s]", delay[worst], 0.2, **details),
            at_most(f"{name}: at rest after v / a, largest [s]", excess.max(), 0.02, median=float(np.median(excess))),
        ]
    lost = []
    for run in range(RUNS):
        cell = cells[run % len(cells)]
        cell.run_until(rng.uniform(0.0, 1.5))
        lost.append(cell.deserted())
    goals.append(at_most("controller lost: reported, largest [s]", max(lost), 0.2, median=float(np.median(lost))))
    print(
        f"{RUNS} runs of each; {sum(cell.early for cell in cells)} more were stopped before their fault",
        file=sys.stderr,
    )
    world.close()
    return goals


if __name__ == "__main__":
    script(measure)
