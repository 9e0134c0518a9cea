# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id bench`: speed as ratios to the same work done sample by sample with Pinocchio, in the same run.

And the CPU time of the whole command `identify`, from the start of its process to its end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.cli import progress
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.prior import nominal_prior
from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion, Regressor, terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.errors import InternalError, RobotDynIdError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.files.configuration import shared_file
from robot_dyn_id.model.robot import RobotModel, parse_with_pinocchio
from robot_dyn_id.recordings.npz import write_npz
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.closed_loop import ControllerModel, Replay
from robot_dyn_id.simulation.sensors import Sensors, measured, simulated_recording

REPEATS = 5

RATE, CUTOFF = 100.0, 10.0
"""Sample rate and low-pass cutoff of the recording that estimators are timed on [Hz]."""

COMMAND_RATE = 1000.0
"""Sample rate of the recording that the command is timed on [Hz]."""

COMMAND_SECONDS, COMMAND_SAMPLES = 10.0, 20_000
"""CPU time of the command that is not to be exceeded at that many samples, or at fewer [s]."""

FIXED_SAMPLES = 2_000
"""Samples of the short recording that shows the cost of a start."""

BANDWIDTH, STIFFNESS = 20.0, 50.0
"""Bandwidth of the critically damped PD controller of the recording [rad/s], and stiffness added to it to overcome the
dry friction of 1 N m [N m/rad]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "what",
        nargs="?",
        choices=("speed", "estimators", "command"),
        default="speed",
        help="ratios to peers and the time of `identify` (default), the time of every estimator, or `identify` alone",
    )
    parser.add_argument("--samples", type=int, help="samples of a 7-axis arm (default: 20000; of estimators 10000)")


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Measure and print; medians of CPU time of interleaved runs, the first of each left out."""
    if arguments.what == "estimators":
        return _estimators(arguments)
    goals = _speed(arguments) if arguments.what == "speed" else []
    seconds = _command(arguments.samples or COMMAND_SAMPLES)
    command = [_time_goal(samples, value) for samples, value in seconds.items()]
    if not arguments.json:
        for goal in goals:
            print(f"{goal['ratio']:7.1f} x (goal {goal['goal']:g})  {goal['name']}")
        for goal in command:
            print(
                f"{goal['seconds']:7.1f} s (at most {goal['at_most']:g}{'' if goal['met'] else ', missed'})  "
                f"CPU time of `identify`, {goal['samples']} samples of 7 joints at 1 kHz"
            )
    return 0, {"goals": goals, "command": command}


def _command(samples: int) -> dict[int, float]:
    """CPU time of `identify` without options, from the start of the process to its end [s], by number of samples.

    The first run, which may compile, is left out.

    Raises:
        InternalError: the command fails.
    """
    description = shared_file("urdf/arm7.urdf")
    model = RobotModel.from_file(description)
    regressor = Regressor(model, terms_on_joints(model, (Viscous(), Coulomb(0.01), Offset())))
    friction = np.ones(len(regressor.names) - len(model.inertial_parameters))
    parameters = np.append(1.1 * model.inertial_parameters, friction)
    sensors = Sensors(np.full(len(model.joint_names), 0.1), 1e-5, 1e-3)
    counts = sorted({min(FIXED_SAMPLES, samples), samples})
    seconds: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for count in (counts[0], *counts):
            progress(f"identify, {count} samples")
            data = Path(scratch) / "data.npz"
            t = np.arange(count) / COMMAND_RATE
            made = simulated_recording(regressor, parameters, random_fourier(model, 1), t, sensors, 0).samples
            assert made.dq is not None and made.tau is not None
            write_npz(data, model.joint_names, made.t, q=made.q, dq=made.dq, tau=made.tau)
            words = ["identify", data, "--robot", description, "--out", Path(scratch) / "run", "--force", "--json"]
            before = os.times()
            done = subprocess.run(
                [sys.executable, "-m", "robot_dyn_id", *map(str, words)], capture_output=True, text=True, check=False
            )
            after = os.times()
            if done.returncode > 1:  # 1: the verdict is bad
                raise InternalError(f"identify ended with {done.returncode}: {done.stderr.strip()[-200:]}")
            seconds[count] = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds


def _estimators(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """CPU time of every estimator, filters included, once each after a short run that compiles; no goals."""
    model, count = RobotModel.from_file(shared_file("urdf/arm7.urdf")), arguments.samples or 10_000
    regressor = Regressor(model, terms_on_joints(model, (Viscous(), Coulomb(0.05), Offset())))
    base, motion = base_parameters(regressor), random_fourier(model, 1)
    friction = np.ones(len(regressor.names) - len(model.inertial_parameters))
    parameters = np.append(1.1 * model.inertial_parameters, friction)
    dynamics = Dynamics(regressor, np.arange(len(parameters)), parameters)
    controller = _controller(dynamics, motion)
    plan = replace(SignalPlan.from_low_pass(RATE, LowPass(CUTOFF), False), row_stride=1).periodic(motion.period)
    seconds: dict[str, float] = {}
    for samples in (min(count, 4000), count):
        recording = _recording(dynamics, controller, motion, samples)
        trials = FilteredTrials([recording], model.joint_names, {}, plan)
        problem = trials.problem(regressor, base.independent, nominal_prior(model, base.mapping))
        for name, kind in ESTIMATORS.items():
            progress(f"{name}, {samples} samples")
            options = {"controller": controller} if "controller" in {item.name for item in fields(kind)} else {}  # type: ignore[arg-type]
            start = time.process_time()
            try:
                kind(**options).fit(problem)
            except RobotDynIdError as error:
                progress(str(error))
                seconds.pop(name, None)
            else:
                seconds[name] = time.process_time() - start
    if not arguments.json:
        for name, value in seconds.items():
            print(f"{value:8.2f} s  {name}")
    return 0, {"goals": [], "samples": count, "seconds": seconds}


def _controller(dynamics: Dynamics, motion: Trajectory) -> ControllerModel:
    """A PD law with gains by the inertia of each joint where the motion begins."""
    inertia = np.diag(dynamics.mass_matrix(motion.evaluate(np.zeros(1))[0][:, 0]))
    names = dynamics.regressor.model.joint_names
    both = BANDWIDTH**2 * inertia + STIFFNESS, 2.0 * BANDWIDTH * inertia
    proportional, derivative = (tuple(zip(names, gains.tolist(), strict=True)) for gains in both)
    return ControllerModel("pd", proportional, derivative)


def _recording(dynamics: Dynamics, controller: ControllerModel, motion: Trajectory, samples: int) -> ArrayRecording:
    """The robot under its controller, with sensors, and the reference of the controller."""
    t = np.arange(samples) / RATE
    wanted = Motion(*motion.evaluate(t)[:3])
    reference = FilteredWindow(
        segment=0,
        t=t,
        motion=wanted,
        tau=None,
        number=np.arange(samples),
        own=np.ones(samples, dtype=bool),
        settled=slice(0, samples),
        valid=np.ones(wanted.q.shape, dtype=bool),
        reference=wanted,
    )
    (true,) = Replay(controller, dynamics, [reference])
    assert true.tau is not None
    joints = dynamics.regressor.model.joint_names
    sensors = Sensors(np.full(len(joints), 0.1), 1e-6, 1e-3)
    shown = measured(joints, Chunk(true.t, true.motion.q.T, true.motion.dq.T, true.tau.T), sensors, 0)
    return replace(shown, samples=replace(shown.samples, reference=wanted.q[:, : len(true.t)].T))


def _speed(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Ratios of kernels and estimators to their peers."""
    model, samples = RobotModel.from_file(shared_file("urdf/arm7.urdf")), arguments.samples or 20_000
    regressor = Regressor(model, terms_on_joints(model, (Viscous(), Coulomb(), Offset())))
    independent = base_parameters(regressor).independent
    motion = Motion(*random_fourier(model, 1).evaluate(np.linspace(0.0, 10.0, samples))[:3])
    rng = np.random.default_rng(0)
    torque = regressor.torque(motion, rng.normal(size=len(regressor.names)))
    rigid, n = Regressor(model), len(model.joint_names)
    dense, rows = np.zeros((10 * n, n, len(motion))), np.zeros((len(motion), n, 10 * n))
    problem = UnfilteredProblem.from_samples(regressor, independent, motion, torque)
    loop = _pinocchio_loop(model, motion, rows)

    def stacked_least_squares() -> None:
        loop()
        friction = regressor.dense(motion)[10 * n :].transpose(2, 1, 0)
        stack = np.concatenate([rows, friction], axis=2).reshape(len(motion) * n, -1)
        np.linalg.lstsq(stack[:, independent], torque.T.ravel(), rcond=None)

    progress("measuring")
    seconds = interleaved(
        {
            "regressor": lambda: regressor_into(rigid, motion, dense),
            "loop": loop,
            "qr": lambda: Factors.from_problem(problem, method="qr").solve(np.ones(n)),
            "gram": lambda: Factors.from_problem(problem, method="gram").solve(np.ones(n)),
            "lstsq": stacked_least_squares,
        }
    )
    return [
        _goal("stacked regressor against a Python loop over Pinocchio", seconds["loop"] / seconds["regressor"], 7.0),
        _goal("samples to parameters by QR against loop and lstsq", seconds["lstsq"] / seconds["qr"], 15.0),
        _goal("samples to parameters by Gram against loop and lstsq", seconds["lstsq"] / seconds["gram"], 30.0),
    ]


def regressor_into(regressor: Regressor, motion: Motion, out: Array) -> None:
    """Fill a preallocated dense regressor."""
    regressor.dense(motion, out)


def interleaved(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median CPU time of each contender [s], all run in turn, the first round left out."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(REPEATS + 1):
        for name, work in contenders.items():
            start = time.process_time()
            work()
            if number:
                times[name].append(time.process_time() - start)
    return {name: float(np.median(values)) for name, values in times.items()}


def _pinocchio_loop(model: RobotModel, motion: Motion, rows: Array) -> Callable[[], None]:
    import pinocchio

    peer = parse_with_pinocchio(model.urdf, model.name, model.gravity)
    data = peer.createData()
    q, dq, ddq = (np.ascontiguousarray(values.T) for values in (motion.q, motion.dq, motion.ddq))

    def loop() -> None:
        for k in range(len(rows)):
            rows[k] = pinocchio.computeJointTorqueRegressor(peer, data, q[k], dq[k], ddq[k])

    return loop


def _time_goal(samples: int, seconds: float) -> dict[str, Any]:
    """CPU time of the command against its limit, which grows with the samples above `COMMAND_SAMPLES`."""
    most = COMMAND_SECONDS * max(1.0, samples / COMMAND_SAMPLES)
    return {"samples": samples, "seconds": seconds, "at_most": most, "met": seconds <= most}


def _goal(name: str, ratio: float, goal: float) -> dict[str, Any]:
    return {"name": name, "ratio": ratio, "goal": goal, "met": bool(ratio >= goal)}
