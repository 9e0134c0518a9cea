# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id demo`: a simulated arm, excited, recorded and identified by the real nodes over DDS, in one process."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from robot_dyn_id.cli import note, show, show_progress
from robot_dyn_id.cli.compilation import announce_compilation, compiling
from robot_dyn_id.cli.next_steps import show_next_steps
from robot_dyn_id.cli.outputs import claim
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import DeadlineError, GraphError, InternalError, RobotDynIdError, UsageError
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.kernels.stepping import advance
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.progress import Stage
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.report.advice import RunFiles
from robot_dyn_id.report.folder import PARAMETERS, REPORT, RESULTS, make_output_folder, write_report
from robot_dyn_id.signals.filtering import LowPass, derivative
from robot_dyn_id.simulation.plant import warm_up_regressor, warm_up_tiles
from robot_dyn_id.workflow.results import IdentificationResult

TRIALS: dict[str, tuple[int, dict[str, Any]]] = {
    "training": (0, {}),
    "held_out": (1000, {"period": 10.0, "harmonics": 5, "amplitude_share": 0.6}),
    "twin": (2000, {"period": 6.0, "harmonics": 5, "amplitude_share": 0.5}),
}
"""Folder of each bag; what is added to the seed of its excitation, and what else differs from the configuration."""

SIMULATED_TIME = {"use_sim_time": True}
"""Parameters of all nodes but the simulator: if the process stalls while nodes start, time stalls for all of them."""

GRID, CUTOFF, LAG = 200.0, 5.0, 0.1
"""Rate of the comparison with the twin [Hz], low-pass on both [Hz], and the most that one may be behind [s]."""

TOPIC = "joint_trajectory_controller/joint_trajectory"

JOINT_PREFIX = "rdid_demo_"
"""Prefix of the joint names, so that no robot that receives a command of the demo has the joints that it names."""

DESCRIPTION, PLANT = "arm.urdf", "plant.urdf"
"""Files in the run folder: the arm as its description has it, and as it really is."""

OUTPUTS = (*TRIALS, DESCRIPTION, PLANT, *RESULTS)
"""Names of all files and bags that the demo writes into the run folder."""

STAGE_TIMEOUT_S = 120.0
"""Longest time that an excitation or the identification may take [s]; both need a fraction of it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--out", metavar="DIR", help="run folder (default: runs/demo-<date and time>)")
    parser.add_argument("--seed", type=int, default=1, help="of motion and noise")


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Excite, record, identify, judge, compare with the truth.

    Raises:
        GraphError: no ROS domain is empty, or a robot joins the demo's.
        RobotDynIdError: a step of the demo fails.
    """
    from robot_dyn_id.nodes.runtime.isolation import keep_to_this_host

    begin = time.monotonic()
    if arguments.seed < 0:
        raise UsageError(f"--seed {arguments.seed}: is negative; give 0 or more")
    if arguments.out:
        claim(arguments, *(Path(arguments.out) / name for name in OUTPUTS))
    domain = keep_to_this_host(listen=True)
    folder = make_output_folder(arguments.out or Path("runs") / f"demo-{datetime.now():%Y%m%d-%H%M%S}")
    write_robots(folder)
    announce_compilation(advance)
    with compiling(warm_up_regressor, warm_up_tiles), make_composition() as ros:
        note(f"ROS domain {domain}, which was empty, and namespace {ros.namespace}")
        result, truth, motion, failure = _identify(ros, folder, arguments.seed)
        namespace = ros.namespace
    summary = _with_truth(folder, namespace, truth, motion, failure, time.monotonic() - begin)
    if not arguments.json:
        show(IdentificationResult(result))
        _show_truth(summary, failure)
        files = RunFiles(folder, (str(folder / DESCRIPTION),), (str(folder / "held_out"),))
        show_next_steps(files, result.parameters, summary)
    return int(summary["verdict"] == "bad"), summary


def make_composition() -> Any:
    """The demo's `Composition`: all topics, `/clock` included, in a namespace.

    It ends if a robot joins the domain, or if a node fails.
    """
    from robot_dyn_id.nodes.runtime.composition import Composition
    from robot_dyn_id.nodes.runtime.isolation import find_robots_outside

    namespace = f"/robot_dyn_id_demo_{secrets.token_hex(4)}"

    def check(ros: Composition) -> None:
        ros.raise_faults()
        topic = find_robots_outside(ros.client, namespace)
        if topic:
            raise GraphError(
                f"a robot has joined the demo's ROS domain {os.environ['ROS_DOMAIN_ID']}, with the topic {topic}: "
                "the demo ends, run it again"
            )

    return Composition(namespace, ("-r", f"/clock:={namespace}/clock"), check)


def write_robots(folder: Path) -> None:
    """Write the arm, with joint names of its own, into the run folder: as it is described, and as it really is."""
    described = prefix_joints(Path(find_shared_file("urdf/arm7.urdf")).read_text(encoding="utf-8"))
    (folder / DESCRIPTION).write_text(described, encoding="utf-8")
    (folder / PLANT).write_text(make_heavier(described), encoding="utf-8")


def prefix_joints(urdf: str) -> str:
    """The robot with `JOINT_PREFIX` in front of every joint's name."""
    root = ET.fromstring(urdf)
    for joint in root.iter("joint"):
        joint.set("name", JOINT_PREFIX + joint.get("name", ""))
    return ET.tostring(root, encoding="unicode")


def make_heavier(urdf: str) -> str:
    """The robot as it really is: every link 5 to 15 % heavier than its description says."""
    root = ET.fromstring(urdf)
    inertials = list(root.iter("inertial"))
    for share, inertial in zip(np.linspace(1.15, 1.05, len(inertials)), inertials, strict=True):
        for part, names in (("mass", ("value",)), ("inertia", ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))):
            element = inertial.find(part)
            for name in names if element is not None else ():
                element.set(name, repr(float(share) * float(element.get(name, "0"))))  # type: ignore[union-attr]
    return ET.tostring(root, encoding="unicode")


def _identify(ros: Any, folder: Path, seed: int) -> tuple[Identification, Dynamics, Any, str]:
    """All nodes, until the twin has followed the robot.

    Returns:
        The identification, the true dynamics, the held-out excitation, and why the twin did not follow; empty if it
        did.
    """
    from robot_dyn_id.msg import IdentificationReport
    from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
    from robot_dyn_id.nodes.excitation.settings import make_plan
    from robot_dyn_id.nodes.identifier import Identifier
    from robot_dyn_id.nodes.runtime.robot_node import LATCHED
    from robot_dyn_id.nodes.simulator import Simulator
    from robot_dyn_id.nodes.torque_residual_monitor import TorqueResidualMonitor

    config, urdf, plant = (find_shared_file("config/arm7.yaml"),), str(folder / DESCRIPTION), folder / PLANT

    def record(trial: str, topics: tuple[str, ...] = ("joint_states",)) -> Any:
        offset, differs = TRIALS[trial]
        excitation = {
            **{"urdf": urdf, "seed": seed + offset, "start": True},
            **{"rehearsal": False, "latency": 4.0},  # the robot is simulated, by this process
            **differs,
            **SIMULATED_TIME,
        }
        return _record(ros, {"folder": str(folder / trial), "topics": topics, **SIMULATED_TIME}, excitation, config)

    show_progress(Stage("starting the simulator"))
    simulator = ros.add(Simulator, {"urdf": str(plant), "seed": seed, "clock": True}, config)
    rates = f"{simulator.settings.rate:g} Hz, sensors at {simulator.settings.publish_rate:g} Hz"
    note(f"simulating {plant} at {rates}")
    record("training")
    held_out = record("held_out")
    show_progress(Stage("identifying"))
    ros.add(TorqueResidualMonitor, SIMULATED_TIME, config)
    reports = ros.heard(IdentificationReport, "identification_report", LATCHED)
    published = ros.heard(ParameterSetMsg, "identified_parameters", LATCHED)
    bags = {"data": [str(folder / "training")], "validation": [str(folder / "held_out")]}
    identifier = ros.add(Identifier, {"urdf": urdf, "folder": str(folder), **bags, **SIMULATED_TIME}, config)
    ros.until(lambda: len(reports) > 0, STAGE_TIMEOUT_S, "the identification")
    if reports[0].verdict == "failed":
        raise DeadlineError(f"nothing was identified: {'; '.join(reports[0].reasons)}")
    failure = ""
    if reports[0].verdict != "bad":
        ros.until(lambda: len(published) > 0, STAGE_TIMEOUT_S, "the identified parameters")
        failure = _follow_with_twin(ros, simulator.settings.publish_rate, record)
    motion = make_plan(RobotModel.from_file(urdf), held_out).excitation
    return identifier.outcome, simulator.settings.nominal(RobotDescription.from_file(plant)), motion, failure


def _follow_with_twin(ros: Any, rate: float, record: Callable[[str, tuple[str, ...]], Any]) -> str:
    """A simulator of the identified model follows the robot; why not, if it does not: the model stays what it is.

    Args:
        ros: the demo's `Composition`.
        rate: rate of the twin's joint states, that of the robot [Hz].
        record: records an excitation.
    """
    from sensor_msgs.msg import JointState

    from robot_dyn_id.nodes.runtime.robot_node import SENSOR
    from robot_dyn_id.nodes.simulator import Simulator

    try:
        show_progress(Stage("starting the twin"))
        states, twins = (ros.heard(JointState, f"{name}joint_states", SENSOR) for name in ("", "twin/"))
        ros.until(lambda: len(states) > 0, STAGE_TIMEOUT_S, "joint states")
        twin = {"model": "parameters", "publish_rate": rate, "initial_position": list(states[-1].position)}
        names = [f"{name}:={ros.namespace}/{name}" for name in ("identified_parameters", TOPIC)]
        remappings = tuple(word for name in names for word in ("-r", name))
        ros.add(Simulator, {**twin, **SIMULATED_TIME}, arguments=remappings, namespace=f"{ros.namespace}/twin")
        ros.until(lambda: len(twins) > 0 and ros.client.count_subscribers(TOPIC) > 1, STAGE_TIMEOUT_S, "the twin")
        record("twin", ("joint_states", "twin/joint_states"))
    except InternalError:
        raise
    except RobotDynIdError as error:
        return f"the twin did not follow the robot: {error}"
    return ""


def _record(ros: Any, bag: dict[str, Any], excitation: dict[str, Any], config: tuple[Path, ...]) -> Any:
    """Record one excitation into one bag, and return the settings of the excitation."""
    from std_srvs.srv import Trigger

    from robot_dyn_id.msg import ExcitationStatus
    from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
    from robot_dyn_id.nodes.recorder import Recorder
    from robot_dyn_id.nodes.runtime.robot_node import LATCHED

    show_progress(Stage(f"starting the excitation for {bag['folder']}"))
    recorder = ros.add(Recorder, bag, config)
    publisher = ros.add(ExcitationPublisher, excitation, config)
    statuses = ros.heard(ExcitationStatus, "excitation_status", LATCHED)
    ends = (ExcitationStatus.DONE, ExcitationStatus.FAULT)

    def ended() -> bool:
        return bool(statuses) and statuses[-1].state in ends

    shown = -1
    deadline = time.monotonic() + STAGE_TIMEOUT_S
    while not ended() and time.monotonic() < deadline:
        ros.wait(0.5)
        if statuses and statuses[-1].state == ExcitationStatus.RUNNING and int(statuses[-1].elapsed) // 5 > shown:
            shown = int(statuses[-1].elapsed) // 5
            show_progress(Stage(f"recording {bag['folder']} [s]", statuses[-1].elapsed, statuses[-1].duration))
    if not ended() or statuses[-1].state == ExcitationStatus.FAULT:
        reason = statuses[-1].reason if statuses else "no status was received"
        raise DeadlineError(
            f"the excitation did not end: {reason}; the arm is simulated in real time: end other programs that keep "
            "the computer busy, and run the demo again"
        )
    answer = ros.call(Trigger, "recorder/stop")
    if not answer.success:
        raise DeadlineError(f"the recorder: {answer.message}")
    settings = publisher.settings
    for node in (publisher, recorder):
        ros.remove(node)
    return settings


def _with_truth(
    folder: Path, namespace: str, truth: Dynamics, motion: Any, failure: str, seconds: float
) -> dict[str, Any]:
    """Add to the report what only a simulation provides: the error of the true torque, and the motion of the twin."""
    model = Dynamics.from_parameters(read_parameters(folder / PARAMETERS))
    q, dq, ddq = (x.T for x in motion.evaluate(np.arange(0.0, motion.duration, 0.01))[:3])
    tau = truth.inverse_dynamics(q, dq, ddq)
    report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    return write_report(
        folder,
        noise_free_nrmse=float(np.linalg.norm(model.inverse_dynamics(q, dq, ddq) - tau) / np.linalg.norm(tau)),
        twin=compare_with_twin(folder / "twin", namespace) if (folder / "twin").exists() and not failure else None,
        warnings=[*report["warnings"], *([failure] if failure else [])],
        seconds=seconds,
        run_folder=str(folder),
        namespace=namespace,
    )


def compare_with_twin(bag: Path, namespace: str) -> dict[str, Any]:
    """Correlation of accelerations and of efforts of the robot and its twin, which followed the same trajectory.

    Accelerations are derivatives of the recorded velocities, all low-passed alike. Each of the two begins when the
    message reaches it, so that one is a few milliseconds behind; this `lag` [s] is found from the velocities and taken
    off.

    Args:
        bag: recording of both.
        namespace: absolute namespace of the robot; the twin's is `twin` in it.
    """
    recordings = [open_recording(bag, f"{namespace}/{name}joint_states") for name in ("", "twin/")]
    series, epoch = [], recordings[0].epoch
    for recording in recordings:
        names = sorted(recording.joint_names)
        chunks = list(recording.chunks(names))
        t, dq, tau = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("t", "dq", "tau"))
        keep = np.diff(t, prepend=-np.inf) > 0.0
        series.append((t[keep] + (recording.epoch - epoch) * 1e-9, dq[keep], tau[keep]))
    first, last = max(t[0] for t, _, _ in series), min(t[-1] for t, _, _ in series)
    grid = np.arange(first + LAG, last - LAG, 1.0 / GRID)
    ours, theirs = ([CubicSpline(t, values) for values in channels] for t, *channels in series)
    lags = np.arange(-LAG, LAG, 1e-3)
    lag = float(lags[np.argmin([np.linalg.norm(ours[0](grid) - theirs[0](grid + lag)) for lag in lags])])
    low_pass = LowPass(CUTOFF)
    robot = [low_pass.apply(spline(grid).T, GRID) for spline in ours]
    twin = [low_pass.apply(spline(grid + lag).T, GRID) for spline in theirs]
    robot[0], twin[0] = derivative(robot[0], GRID), derivative(twin[0], GRID)
    agreement = {
        name: [float(np.corrcoef(a, b)[0, 1]) for a, b in zip(robot[i], twin[i], strict=True)]
        for i, name in enumerate(("acceleration", "effort"))
    }
    return {**agreement, "lag": lag}


def _show_truth(summary: dict[str, Any], failure: str) -> None:
    """Print what only a simulation provides: the error of the true torque, and how well the twin agrees."""
    show(f"\nagainst the true torque of the simulated arm: NRMSE {summary['noise_free_nrmse']:.2%}")
    if summary["twin"] is not None:
        names = [joint["name"] for joint in summary["held_out"]["joints"]]
        for quantity in ("acceleration", "effort"):
            least, name = min(zip(summary["twin"][quantity], names, strict=True))
            show(f"twin that knows only the model: correlation of the {quantity} at least {least:.4f} ({name})")
    if failure:
        show(f"  ! {failure}")
    show(f"{summary['seconds']:.1f} s")
