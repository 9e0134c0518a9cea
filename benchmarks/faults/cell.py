# SPDX-License-Identifier: Apache-2.0
"""A robot cell of real processes: the installed executables with their logs in files, and an observer.

The position cell is a simulated arm behind its trajectory controller with excitation publisher, recorder, identifier
and torque_residual_monitor; the effort cell is the arm under the efforts of the node `computed_torque_controller`.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from faults import ROOT
from robot_dyn_id.excitation.execution.latency import Latency

sys.path.insert(0, str(ROOT / "test"))

URDF = ROOT / "urdf" / "arm7.urdf"
JOINTS = tuple(f"joint{number}" for number in range(1, 8))
ACCELERATION = 5.0
"""Largest acceleration of the motion and of braking [rad/s^2]."""

PR_SET_PDEATHSIG = 1
"""Option of prctl(2), Linux only."""

REST_SPEED = 0.01
"""A joint below this speed is at rest [rad/s]."""

REST_TIME_S = 0.5
"""Time without motion after which a robot is at rest: one that turns around is at rest for an instant [s]."""

BRAKED_S = 3.0
"""Time after a fault of the excitation until the robot must be at rest [s]; a busy computer is late."""

HEARD_S = 0.05
"""Time in which joint states are heard that the robot had sent before [s]."""

STARTING_S = 60.0
"""Longest time that a node may take to be there on a busy computer."""

LATENCY = Latency(0.5)
"""A computer that two cells share may be late by more than the default of a robot allows."""

PARAMETERS: Mapping[str, Mapping[str, object]] = {
    "simulator": {"urdf": URDF, "rate": 250.0, "publish_rate": 125.0, "viscous": [1.5], "coulomb": [0.5]},
    "excitation_publisher": {
        **{"urdf": URDF, "period": 4.0, "periods": 3, "amplitude_share": 0.3, "acceleration": [ACCELERATION]},
        **{"latency": LATENCY.longest, "posture": [0.2] * 7, "effort_scale": 0.0, "rehearsal": False},
    },
    "recorder": {"start": False},
    "identifier": {"urdf": URDF},
    "torque_residual_monitor": {},
    "external_torque_estimator": {},
    "gravity_calibrator": {"urdf": URDF},
    "gravity_compensator": {"urdf": URDF, "latency": LATENCY.longest},
    "payload_identifier": {"urdf": URDF, "link": "link7"},
    "marker_publisher": {},
    "computed_torque_controller": {"urdf": URDF, "latency": 0.2, "robot_compensates": ["none"]},
}
"""ROS parameters of each node in a cell."""


@cache
def executables() -> Path:
    """Folder of the installed executables.

    Raises:
        FileNotFoundError: the package is not installed in this environment.
    """
    for prefix in (sys.prefix, *os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        folder = Path(prefix) / "lib" / "robot_dyn_id"
        if (folder / "recorder").is_file():
            return folder
    raise FileNotFoundError("the executables of robot_dyn_id are not installed: run `make` or source the workspace")


def _end_with_suite() -> None:
    """In a new process: end it with the suite, whatever ends that, so that no robot is left behind in the domain."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A node as a process.

    Attributes:
        name: name of the node.
        log: file with all that it has written.
    """

    def __init__(self, name: str, log: Path, arguments: list[str]) -> None:
        """Start it."""
        self.name, self.log = name, log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, str(executables() / name), "--ros-args", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=_end_with_suite,  # noqa: PLW1509
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def code(self) -> int | None:
        """Exit code, None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        """End it as Ctrl-C does; returns the exit code."""
        if self.alive:
            self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(20.0)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def text(self) -> str:
        """All that it has logged."""
        return self.log.read_text(errors="replace")

    def lines(self) -> int:
        """Number of lines that it has logged."""
        return self.text().count("\n")

    def memory(self) -> float:
        """Resident memory [MiB]."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Cell:
    """Processes of one namespace and what they publish.

    Attributes:
        processes: running nodes by name.
        simulated_time: whether all nodes use the time of the simulated arm.
        excitation: state and reason of every excitation status, newest last.
        recording: the same of the recorder.
        on_disk: messages that the recorder has on the disk.
        states: arrival, stamp, positions and velocities of every joint state of the robot.
        ended: stamp of the joint state at which the excitation had last left a state of motion.
        begun_again: reasons for which a motion ended in its approach, before any fault, and was begun again.
    """

    def __init__(
        self, world: Any, folder: Path, namespace: str = "cell", watch: bool = True, simulated_time: bool = False
    ) -> None:
        """Begin with no nodes.

        Args:
            world: world of `ros_world`, in the process of the suite.
            folder: for logs, bags and results.
            namespace: namespace of the cell.
            watch: whether joint states and efforts are kept; at 1 kHz that takes much of a core.
            simulated_time: whether all nodes use the time of the simulated arm, which a busy computer slows down.
        """
        from robot_dyn_id.msg import ExcitationStatus, RecordingStatus
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        from robot_dyn_id.nodes.runtime.robot_node import LATCHED, SENSOR

        self.world, self.folder, self.namespace, self.simulated_time = world, folder, namespace, simulated_time
        folder.mkdir(exist_ok=True, parents=True)
        self.processes: dict[str, Process] = {}
        self.excitation: list[tuple[int, str]] = []
        self.recording: list[tuple[int, str]] = []
        self.on_disk = 0
        self.states: list[tuple[float, float, np.ndarray, np.ndarray, np.ndarray]] = []
        self.efforts: list[np.ndarray] = []
        self.ended = 0.0
        self.begun_again: list[str] = []
        self._bags = 0
        self._clients: dict[str, Any] = {}
        self._before: dict[str, set[tuple[int, ...]]] = {}
        listen = world.probe.create_subscription
        self._subscriptions = [
            listen(ExcitationStatus, f"/{namespace}/excitation_status", self._follow, LATCHED),
            listen(RecordingStatus, f"/{namespace}/recording_status", self._record, LATCHED),
        ]
        if watch:
            topics = f"/{namespace}/robot/joint_states", f"/{namespace}/effort_command"
            self._subscriptions += [
                listen(JointState, topics[0], self._see, SENSOR),
                listen(Float64MultiArray, topics[1], lambda m: self.efforts.append(np.array(m.data)), SENSOR),
            ]

    def _record(self, message: Any) -> None:
        self.recording.append((message.state, message.reason))
        self.on_disk = sum(message.counts)

    def _follow(self, message: Any) -> None:
        moving = (message.APPROACHING, message.RUNNING, message.RETURNING)
        if self.excitation and self.excitation[-1][0] in moving and message.state not in moving:
            self.ended = self.moment()
        self.excitation.append((message.state, message.reason))

    def _see(self, message: Any) -> None:
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        values = (np.array(channel) for channel in (message.position, message.velocity, message.effort))
        self.states.append((time.time(), stamp, *values))
        if len(self.states) > 200_000:
            del self.states[:100_000]

    def start(
        self,
        name: str,
        relayed: bool = False,
        remap: Sequence[str] = (),
        **parameters: object,
    ) -> Process:
        """Start a node; one of this name that a failed run has left is ended first.

        Args:
            name: name of the node.
            relayed: whether a relay stands between robot and node, which then hears another topic.
            remap: further rules, such as `old:=new`.
            **parameters: over `PARAMETERS`.
        """
        if name in self.processes and self.processes[name].alive:
            self.processes[name].kill()
        self._before[name] = self._endpoints(name)
        rules = [f"__ns:=/{self.namespace}", *remap]
        if name == "simulator" or not relayed:
            rules.append("joint_states:=robot/joint_states")
        values: dict[str, object] = {**PARAMETERS[name], **parameters}
        if self.simulated_time:
            values["clock" if name == "simulator" else "use_sim_time"] = True
        if name in ("identifier", "gravity_calibrator", "payload_identifier"):
            values.setdefault("folder", self.folder / f"run_{name}_{time.monotonic_ns()}")
        if name == "recorder":
            self._bags += 1
            self.bag = self.folder / f"bag_{self._bags}"
            values.setdefault("folder", self.bag)
            values.setdefault("topics", ["joint_states" if relayed else "robot/joint_states"])
        words = [word for key, value in values.items() for word in ("-p", f"{key}:={_yaml(value)}")]
        process = Process(
            name, self.folder / f"{name}.log", [*(word for rule in rules for word in ("-r", rule)), *words]
        )
        self.processes[name] = process
        return process

    def _endpoints(self, name: str) -> set[tuple[int, ...]]:
        """Publishers of diagnostics of a node; those of a killed process stay in the graph for a while."""
        found = self.world.probe.get_publishers_info_by_topic("/diagnostics")
        owner = (name, f"/{self.namespace}")
        return {tuple(info.endpoint_gid) for info in found if (info.node_name, info.node_namespace) == owner}

    def wait_started(self, *names: str) -> None:
        """Wait until nodes publish their diagnostics.

        Raises:
            RuntimeError: one of them has ended.
        """
        for name in names:
            process = self.processes[name]
            self.world.until(
                lambda name=name, process=process: self._endpoints(name) - self._before[name] or not process.alive,
                STARTING_S,
                f"start of {name}",
            )
            if not process.alive:
                raise RuntimeError(f"{name} ended: {process.text()[-500:]}")

    def until_excitation(self, *states: int, timeout: float = STARTING_S) -> None:
        """Wait for a state of the excitation.

        Raises:
            AssertionError: it has another one; the latest are named.
        """
        end = time.monotonic() + timeout
        while not (self.excitation and self.excitation[-1][0] in states):
            if time.monotonic() > end:
                raise AssertionError(
                    f"/{self.namespace}: excitation {states} not within {timeout:g} s: {self.excitation[-3:]}"
                )
            self.world.wait(0.02)

    def until_recording(self, *states: int, timeout: float = STARTING_S) -> None:
        """Wait for a state of the recorder."""
        self.world.until(lambda: self.recording and self.recording[-1][0] in states, timeout, f"recording {states}")

    def trigger(self, service: str, timeout: float = 20.0) -> Any:
        """Call a `Trigger` service of a node, such as `recorder/start`.

        Its client stays: on a busy computer a service may answer before it has found the client, which loses it.
        """
        from std_srvs.srv import Trigger

        name = f"/{self.namespace}/{service}"
        if service not in self._clients:
            self._clients[service] = self.world.probe.create_client(Trigger, name)
        client = self._clients[service]
        self.world.until(client.service_is_ready, timeout, f"service {name}")
        future = client.call_async(Trigger.Request())
        self.world.until(future.done, timeout, f"answer of {name}")
        return future.result()

    def start_motion(self) -> None:
        """Ask for the excitation until it begins: it is refused while the computer is held up."""
        end = time.monotonic() + STARTING_S
        while not self.trigger("excitation_publisher/start").success:
            if time.monotonic() > end:
                raise RuntimeError(f"the excitation does not start: {self.excitation[-3:]}")
            self.world.wait(0.2)

    def run_motion(self) -> None:
        """Wait until the excitation runs; it is started again where a computer that was held up ended its approach.

        Raises:
            RuntimeError: it does not run in time.
        """
        from robot_dyn_id.msg import ExcitationStatus as Status

        end = time.monotonic() + STARTING_S
        while time.monotonic() < end:
            first = len(self.excitation)
            self.start_motion()
            self.world.until(
                lambda first=first: self._states(first) & {Status.APPROACHING, Status.RUNNING}, STARTING_S, "motion"
            )
            while self.excitation[first][0] not in (Status.APPROACHING, Status.RUNNING):  # of before the start
                first += 1
            self.world.until(
                lambda first=first: self._states(first) & {Status.RUNNING, Status.FAULT}, STARTING_S, "motion or fault"
            )
            if Status.RUNNING in self._states(first):
                return
            self.begun_again += [reason for state, reason in self.excitation[first:] if state == Status.FAULT][:1]
        raise RuntimeError(f"the excitation does not run: {self.excitation[-3:]}")

    def _states(self, first: int) -> set[int]:
        """States of the excitation from the status of this number on."""
        return {state for state, _ in self.excitation[first:]}

    def excitation_faults(self) -> list[str]:
        """Reasons of the faults in which the excitation has ended."""
        from robot_dyn_id.msg import ExcitationStatus as Status

        later = itertools.pairwise(self.excitation)
        return [reason for (before, _), (state, reason) in later if state == Status.FAULT != before]

    def speed(self) -> float:
        """Largest joint speed of the newest joint state [rad/s]."""
        return float(np.abs(self.states[-1][3]).max())

    def moment(self) -> float:
        """The present by the stamps of the robot [s]; 0 before the first joint state."""
        return self.states[-1][1] if self.states else 0.0

    def kill(self, process: Process) -> float:
        """Kill a process, not the robot's driver; stamp of the first joint state that is heard after its death [s].

        A simulator that was held up makes up for it in a burst: the latest joint state may be older than the death.
        """
        process.kill()
        self.world.wait(HEARD_S)
        heard = len(self.states)
        self.world.until(lambda: len(self.states) > heard, STARTING_S, "a joint state")
        return self.moment()

    def moved_after(self, moment: float) -> float:
        """Time from a moment to the last joint state in motion [s], by the stamps of the robot."""
        for _, stamp, _, dq, _ in reversed(self.states):
            if stamp <= moment:
                break
            if np.abs(dq).max() > REST_SPEED:
                return stamp - moment
        return 0.0

    def until_rest(self, moment: float, bound: float = BRAKED_S) -> float:
        """Wait until joint states show the robot at rest; the measure of every promise about motion.

        Args:
            moment: time from which it is measured, by the stamps of the robot [s].
            bound: longest time from then until the rest [s].

        Returns:
            Time from the moment to the last joint state in motion [s].

        Raises:
            AssertionError: a joint moves after the bound.
        """

        def known() -> bool:
            moved = self.moved_after(moment)
            return moved > bound or self.moment() - moment - moved >= REST_TIME_S

        self.world.until(known, bound + STARTING_S, "joint states that show rest")
        took = self.moved_after(moment)
        if took > bound:
            raise AssertionError(
                f"at {self.speed():.2g} rad/s {took:.2f} s after it had to brake, not at rest within {bound:g} s: "
                f"{self.excitation[-1][1][:100] if self.excitation else ''}"
            )
        return took

    def stop_motion(self) -> None:
        """Stop the excitation, which must succeed, and only when the robot is at rest.

        Raises:
            AssertionError: it does not, or the robot moves after the answer.
        """
        answer = self.trigger("excitation_publisher/stop")
        if self.simulated_time:
            self.world.wait(HEARD_S)
        moment = self.moment() if self.simulated_time else time.time()
        if not answer.success:
            raise AssertionError(f"stop answers: {answer.message}")
        if self.until_rest(moment) > 0.0:
            raise AssertionError("the robot moves after the answer of stop")

    def others_alive(self, *but: str) -> list[str]:
        """Names of nodes that have ended although nothing ended them."""
        return [name for name, process in self.processes.items() if name not in but and not process.alive]

    def close(self) -> None:
        """End all nodes."""
        for process in self.processes.values():
            process.end()
        for subscription in self._subscriptions:
            self.world.probe.destroy_subscription(subscription)
        for client in self._clients.values():
            self.world.probe.destroy_client(client)


def _yaml(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_yaml(item) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


@contextlib.contextmanager
def cell(
    world: Any, folder: Path, namespace: str = "cell", watch: bool = True, simulated_time: bool = False
) -> Iterator[Cell]:
    """A cell whose nodes are ended with it; see `Cell`."""
    made = Cell(world, folder, namespace, watch, simulated_time)
    try:
        yield made
    finally:
        made.close()


def tracebacks(text: str) -> int:
    """Number of tracebacks in a log."""
    return len(re.findall(r"^Traceback \(most recent call last\)", text, re.MULTILINE))


def parameters_of_arm(folder: Path) -> Path:
    """Identified parameters of the simulated arm, from its exact motion with a little noise."""
    path = folder / "arm7_parameters.yaml"
    if path.exists():
        return path
    from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
    from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
    from robot_dyn_id.excitation import draw_random_fourier
    from robot_dyn_id.files.parameters import write_parameters
    from robot_dyn_id.identification.pipeline import identify
    from robot_dyn_id.identification.settings import Settings
    from robot_dyn_id.model.robot import RobotModel
    from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

    terms, model = (Viscous(), Coulomb(), Offset()), RobotModel.from_file(URDF)
    regressor, n = Regressor(model, place_terms_on_joints(model, terms)), len(JOINTS)
    values = np.concatenate([model.inertial_parameters, np.full(n, 1.5), np.full(n, 0.5), np.zeros(n)])
    sensors = Sensors(np.full(n, 0.05), 1e-6, 1e-4)
    trials = [
        simulate_recording(
            regressor, values, draw_random_fourier(model, seed), sample_times(20.0, 200.0), sensors, seed
        )
        for seed in (1, 2)
    ]
    write_parameters(path, identify(trials[:1], trials[1:], model, Settings(terms=terms), "test").parameters)
    return path


def gravity_of_arm(folder: Path) -> Path:
    """Gravity calibration of the simulated arm, as of one without torque sensors."""
    path = folder / "arm7_gravity.yaml"
    if path.exists():
        return path
    from support.low_cost_arm import LowCostArm

    from robot_dyn_id.files.gravity import write_gravity
    from robot_dyn_id.loads.gravity import calibrate_gravity
    from robot_dyn_id.loads.holds import find_holds
    from robot_dyn_id.model.robot import RobotModel

    model = RobotModel.from_file(URDF)
    write_gravity(path, model, calibrate_gravity(model, find_holds([LowCostArm(model).record()], model.joint_names)))
    return path
