# SPDX-License-Identifier: Apache-2.0
"""The recorder at 1 kHz for a minute next to other nodes, and killed at random moments: nothing may be missing.

Three processes on the same host: this one publishes seven joints, a second one decodes them and sends efforts as a
controller would, the third is the recorder. Counters and bytes on disk are compared with those that were published.
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, one_thread, script

if __name__ == "__main__":
    one_thread()

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))

from support.joint_state_source import Source, bytes_of_unfinished, bytes_on_disk, start_recorder
from support.ros_world import World

from robot_dyn_id.nodes.runtime.isolation import keep_to_this_host
from robot_dyn_id.recordings.bag_files import open_bag

keep_to_this_host(listen=False)

SECONDS, RATE, KILLS = 60, 1000, 20

OTHER_NODES = """
import rclpy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from robot_dyn_id.nodes.runtime.robot_node import SENSOR, STREAM
from robot_dyn_id.nodes.runtime.running import make_executor, spin

rclpy.init()
node = rclpy.create_node("other_nodes")
effort = node.create_publisher(Float64MultiArray, "effort_command", SENSOR)
answer = lambda message: effort.publish(Float64MultiArray(data=message.position))
node.create_subscription(JointState, "joint_states", answer, STREAM)
executor = make_executor()
executor.add_node(node)
spin(executor, lambda: False)
"""


def measure() -> list[Goal]:
    """The long recording, then the short ones."""
    with tempfile.TemporaryDirectory() as scratch, other_nodes():
        return [*_minute(Path(scratch) / "bag"), *_killed(Path(scratch))]


def _minute(folder: Path) -> list[Goal]:
    title = f"recorder: 7 joints at {RATE} Hz for {SECONDS} s"
    with recorded(folder) as (world, process):
        source = _source(world, SECONDS * RATE)
        world.until(lambda: len(source.published) > 0)
        start, before = time.monotonic(), _cpu(process.pid)
        world.until(lambda: source.done, 3.0 * SECONDS)
        seconds = time.monotonic() - start
        load = (_cpu(process.pid) - before) / seconds
        world.until(_idle(1.0), 10.0)
        process.terminate()
        log = process.communicate(timeout=30)[1]
    found = bytes_on_disk(folder)
    present = set(found)
    missing = sum(data not in present for data in source.published)
    summary = next((line.split("]: ")[-1] for line in log.splitlines() if "Hz, jitter" in line), log)
    return [
        at_most(f"{title}: messages missing on disk", missing, 0, published=len(source.published), on_disk=len(found)),
        at_least(f"{title}: bytes equal, in order", found == source.published, 1, rate=len(found) / seconds),
        at_most(f"{title}: CPU of the recorder, of one core", load, 0.5, says=summary),
    ]


def _killed(scratch: Path) -> list[Goal]:
    title, moments = f"recorder killed at {KILLS} random moments", random.Random(1)
    lost: dict[str, list[int]] = {"our reader": [], "mcap's stream reader": []}
    for number in range(KILLS):
        folder = scratch / f"killed_{number}"
        with recorded(folder) as (world, process):
            source = _source(world, None)
            world.until(lambda: len(source.published) > 0)  # noqa: B023
            world.until(_idle(moments.uniform(0.5, 4.0)))
            process.kill()
            published = len(source.published)
            process.wait()
        readers: dict[str, Callable[[Path], list[bytes]]] = {
            "our reader": _ours,
            "mcap's stream reader": bytes_of_unfinished,
        }
        for name, read in readers.items():
            found = read(folder)
            whole = found == source.published[: len(found)]
            lost[name].append(published - len(found) if whole else published)
    return [
        at_least(
            f"{title}: all but the last second reads back, {name}",
            sum(item < RATE for item in items),
            KILLS,
            worst_lost_messages=max(items),
            each="/".join(map(str, items)),
        )
        for name, items in lost.items()
    ]


def _ours(folder: Path) -> list[bytes]:
    return [data for *_, data in open_bag(folder).messages(["/joint_states"], lambda text: None)]


def _source(world: World, count: int | None) -> Source:
    return world.add(lambda **options: Source(rate=RATE, count=count, listeners=2, **options))


def _idle(seconds: float) -> Callable[[], bool]:
    """A condition that holds after a while."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def _cpu(process: int) -> float:
    """CPU time [s] that a process took so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def recorded(folder: Path) -> Iterator[tuple[World, Any]]:
    """World with a recorder in a process of its own."""
    world = World()
    process = start_recorder("-p", f"folder:={folder}")
    try:
        yield world, process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()
        world.close()


@contextmanager
def other_nodes() -> Iterator[None]:
    """The other nodes."""
    with subprocess.Popen([sys.executable, "-c", OTHER_NODES]) as process:
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    script(measure)
