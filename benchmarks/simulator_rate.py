# SPDX-License-Identifier: Apache-2.0
"""Goal 10: the simulator as a node of its own process at 1 kHz: rate, period, share of a core.

The arm of seven joints with friction and noise follows a trajectory; a listener in another process takes the arrival
times, as any recorder would see them. Periods of stamps are exact by construction; those of arrival are judged. On a
machine that others use too the 99th percentile is about them: read it together with the share of late wake-ups of a
bare timer, which is measured in the same minute.
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, one_thread

if __name__ == "__main__":
    one_thread()

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.nodes.runtime.isolation import keep_to_this_host

SECONDS = 10.0
ARM = Path(__file__).resolve().parents[1] / "urdf" / "arm7.urdf"
PARAMETERS = {
    "urdf": str(ARM),
    "viscous": "[1.0]",
    "coulomb": "[0.5]",
    "effort_noise": "[0.1]",
    "position_noise": "1e-5",
    "velocity_noise": "1e-3",
}
NODE = "import sys; from robot_dyn_id.nodes.executables import run_executable; sys.exit(run_executable('simulator'))"


def measure() -> list[Goal]:
    """One run."""
    keep_to_this_host(listen=False)
    bare = bare_timer()
    arguments = [word for name, value in PARAMETERS.items() for word in ("-p", f"{name}:={value}")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([sys.executable, "-c", NODE, "--ros-args", *arguments], stderr=subprocess.PIPE) as process:
        try:
            arrivals, begin, end = listen(process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    periods = 1e3 * np.diff(arrivals)
    rate = (len(arrivals) - 1) / (arrivals[-1] - arrivals[0])
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    details: dict[str, Any] = {
        "bare_timer": bare,
        "worst_ms": float(periods.max()),
        "samples": len(arrivals),
        "whole_process_cpu_s": whole,
    }
    return [
        at_most("simulator: difference from 1000 Hz", abs(rate - 1000.0), 5.0, rate=rate),
        at_most("simulator: 99th percentile of the period [ms]", np.percentile(periods, 99), 1.3, **details),
        at_most("simulator: share of a core", (end - begin) / SECONDS, 0.25),
        at_least("simulator: messages that arrived of those sent", len(arrivals) / (1000.0 * SECONDS), 0.999),
    ]


def listen(process: int) -> tuple[np.ndarray, float, float]:
    """Arrival times while a trajectory is followed [s], and the CPU time of the process at begin and end [s]."""
    import rclpy
    from builtin_interfaces.msg import Duration
    from rclpy.node import Node
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    from robot_dyn_id.nodes.runtime.robot_node import RELIABLE, STREAM
    from robot_dyn_id.nodes.runtime.running import make_executor, spin

    rclpy.init()
    node, executor = Node("listener"), make_executor()
    executor.add_node(node)
    arrivals: list[float] = []
    names: list[str] = []

    def take(message: bytes) -> None:
        arrivals.append(time.monotonic())

    def learn(message: Any) -> None:
        names[:] = message.name

    first = node.create_subscription(JointState, "joint_states", learn, STREAM)
    publisher = node.create_publisher(JointTrajectory, "joint_trajectory_controller/joint_trajectory", RELIABLE)
    if not spin(executor, lambda: bool(names) and publisher.get_subscription_count() > 0, 60.0):
        raise TimeoutError("the simulator does not publish")
    node.destroy_subscription(first)
    node.create_subscription(JointState, "joint_states", take, STREAM, raw=True)
    points = [
        JointTrajectoryPoint(
            positions=[0.3 * np.sin(k)] * 7, velocities=[0.3 * np.cos(k)] * 7, time_from_start=Duration(sec=1 + k)
        )
        for k in range(int(SECONDS) + 10)
    ]
    points[-1].velocities = [0.0] * 7
    publisher.publish(JointTrajectory(joint_names=names, points=points))
    spin(executor, lambda: len(arrivals) > 2000, 20.0)
    arrivals.clear()
    begin = cpu_seconds(process)
    spin(executor, lambda: False, SECONDS)
    end, times = cpu_seconds(process), np.array(arrivals)
    executor.shutdown()
    node.destroy_node()
    rclpy.shutdown()
    return times, begin, end


def cpu_seconds(process: int) -> float:
    """CPU time of a process so far, user and system [s]."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bare_timer() -> str:
    """Delay by the machine of a program that only sleeps for the next millisecond, 99th percentile [ms]."""
    wakes, start = [], time.monotonic()
    for k in range(3000):
        time.sleep(max(0.0, start + 1e-3 * k - time.monotonic()))
        wakes.append(time.monotonic())
    return f"{1e3 * np.percentile(np.diff(wakes), 99):.3g} ms"


if __name__ == "__main__":
    from measuring import table

    goals = measure()
    print(json.dumps(goals) if "--json" in sys.argv else table(goals))
