"""`robot-dyn-id bench`: speed as ratios to the same work done sample by sample with Pinocchio, in the same run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from robot_dyn_id.base_parameters import base_parameters
from robot_dyn_id.cli import progress
from robot_dyn_id.closed_loop import Controller
from robot_dyn_id.configuration import shared_file
from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import RobotDynIdError, UsageError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.prior import Prior, nominal_prior
from robot_dyn_id.problem import LinearProblem, Origin, Tile
from robot_dyn_id.regressor import Layout, Motion, Regressor, terms_on_joints
from robot_dyn_id.robot import RobotModel, parse_with_pinocchio
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan, linear_problem
from robot_dyn_id.signals.walk import walker
from robot_dyn_id.simulation import Sensors, simulated_recording
from robot_dyn_id.terms import Coulomb, Offset, Viscous

TILE = 2048
REPEATS = 5

RATE, CUTOFF = 100.0, 10.0
CONTROLLER = Controller("computed_torque", (("all", 400.0),), (("all", 40.0),))
"""Of the recording that estimators are timed on [Hz], and for those that simulate the robot."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("what", nargs="?", choices=("speed", "estimators"), default="speed",
                        help="ratios to peers (default), or the time of every estimator")  # fmt: skip
    parser.add_argument("--samples", type=int, help="samples of a 7-axis arm (default: 20000; of estimators 10000)")


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Measure and print; medians of CPU time of interleaved runs, the first of each left out."""
    return _estimators(arguments) if arguments.what == "estimators" else _speed(arguments)


def _estimators(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """CPU time of every estimator, filters included, once each after a short run that compiles; no goals."""
    model, count = RobotModel.from_urdf(shared_file("urdf/arm7.urdf")), arguments.samples or 10_000
    regressor = Regressor(model, terms_on_joints(model, (Viscous(), Coulomb(0.05), Offset())))
    base, motion = base_parameters(regressor), random_fourier(model, 1)
    friction = np.ones(len(regressor.names) - len(model.inertial_parameters))
    plan = replace(SignalPlan.of(RATE, LowPass(CUTOFF), False), row_stride=1).periodic(motion.period)
    sensors = Sensors(np.full(len(model.joint_names), 0.1), 1e-6, 1e-3)
    seconds: dict[str, float] = {}
    for samples in (min(count, 4000), count):
        values = np.append(1.1 * model.inertial_parameters, friction)
        recording = simulated_recording(regressor, values, motion, samples / RATE, RATE, sensors, 0)
        walk = walker([recording], model.joint_names, {}, plan)
        problem = linear_problem(regressor, base.independent, walk, plan, nominal_prior(model, base.mapping))
        for name, kind in ESTIMATORS.items():
            progress(f"{name}, {samples} samples")
            told = {"controller": CONTROLLER} if "controller" in {item.name for item in fields(kind)} else {}  # type: ignore[arg-type]
            start = time.process_time()
            try:
                kind(**told).fit(problem)
            except RobotDynIdError as error:
                progress(str(error))
                seconds.pop(name, None)
            else:
                seconds[name] = time.process_time() - start
    if not arguments.json:
        for name, value in seconds.items():
            print(f"{value:8.2f} s  {name}")
    return 0, {"goals": [], "samples": count, "seconds": seconds}


def _speed(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    model, samples = RobotModel.from_urdf(shared_file("urdf/arm7.urdf")), arguments.samples or 20_000
    regressor = Regressor(model, terms_on_joints(model, (Viscous(), Coulomb(), Offset())))
    independent = base_parameters(regressor).independent
    motion = Motion(*random_fourier(model, 1).evaluate(np.linspace(0.0, 10.0, samples))[:3])
    rng = np.random.default_rng(0)
    torque = regressor.torque(motion, rng.normal(size=len(regressor.names)))
    rigid, n = Regressor(model), len(model.joint_names)
    dense, rows = np.zeros((10 * n, n, len(motion))), np.zeros((len(motion), n, 10 * n))
    problem = raw_problem(regressor, Layout.of(regressor, independent), motion, torque)
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
            "qr": lambda: Factors.of(problem, method="qr").solve(np.ones(n)),
            "gram": lambda: Factors.of(problem, method="gram").solve(np.ones(n)),
            "lstsq": stacked_least_squares,
        }
    )
    goals = [
        _goal("stacked regressor against a Python loop over Pinocchio", seconds["loop"] / seconds["regressor"], 7.0),
        _goal("samples to parameters by QR against loop and lstsq", seconds["lstsq"] / seconds["qr"], 15.0),
        _goal("samples to parameters by Gram against loop and lstsq", seconds["lstsq"] / seconds["gram"], 30.0),
    ]
    if not arguments.json:
        for goal in goals:
            print(f"{goal['ratio']:7.1f} x (goal {goal['goal']:g})  {goal['name']}")
    return 0, {"goals": goals}


def regressor_into(regressor: Regressor, motion: Motion, out: Array) -> None:
    """Fill a preallocated dense regressor."""
    regressor.dense(motion, out)


def raw_problem(
    regressor: Regressor, layout: Layout, motion: Motion, torque: Array, rate: float = 1.0, prior: Prior | None = None
) -> LinearProblem:
    """The linear problem of samples as they are, without filters, in tiles of `TILE` samples."""
    packed = np.empty((layout.starts[-1], TILE))

    def tiles() -> Iterator[Tile]:
        for start in range(0, len(motion), TILE):
            part = slice(start, min(start + TILE, len(motion)))
            block = packed if part.stop - start == TILE else np.empty((layout.starts[-1], part.stop - start))
            regressor.fill(motion.take(part), layout.slots, block)
            for joint, tau in enumerate(torque[:, part]):
                rows = layout.block(block, joint)
                rows[-1] = tau
                yield Tile(joint, 0, rows)

    names = tuple(regressor.names[column] for column in layout.columns)
    origin = Origin(
        regressor,
        layout.columns,
        speeds=lambda: np.abs(motion.dq).max(axis=1),
        problem_of=lambda other, columns: raw_problem(other, Layout.of(other, columns), motion, torque, rate),
        along=_no_windows,
        low_pass=np.asarray,
    )
    joints = regressor.model.joint_names
    return LinearProblem(names, joints, layout.supports, tiles, rate, origin, prior)


def _no_windows(replay: object) -> LinearProblem:
    raise UsageError("samples as they are cannot be simulated along another motion: make the problem from a recording")


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


def _goal(name: str, ratio: float, goal: float) -> dict[str, Any]:
    return {"name": name, "ratio": ratio, "goal": goal, "met": bool(ratio >= goal)}
