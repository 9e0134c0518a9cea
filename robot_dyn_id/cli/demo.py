"""`robot-dyn-id demo`: a simulated arm is recorded into real bags, identified, and judged."""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id import __version__
from robot_dyn_id.cli import progress
from robot_dyn_id.cli.answers import print_evaluation
from robot_dyn_id.configuration import shared_file
from robot_dyn_id.dataset import Array, Recording
from robot_dyn_id.excitation import FourierSeries, random_fourier
from robot_dyn_id.offline import output_folder, write_results
from robot_dyn_id.parameter_io import write_parameters
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.pipeline import identify
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.recordings.bag_writer import write_joint_state_bag
from robot_dyn_id.regressor import Motion, Regressor, regressor_of, terms_on_joints
from robot_dyn_id.report.summary import identification_summary
from robot_dyn_id.robot import RobotModel
from robot_dyn_id.settings import Settings
from robot_dyn_id.simulation import Sensors, simulated_recording

RATE = 200.0
DURATION = 40.0
NOISE = np.array([0.3, 0.6, 0.4, 0.4, 0.1, 0.1, 0.05])
"""Standard deviation of the efforts [N m]: that of a joint-torque-sensor arm, correlated over 0.1 s."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("--out", metavar="DIR", help="run folder (default: runs/demo-<date and time>)")
    parser.add_argument("--seed", type=int, default=1, help="of motion and noise")


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Simulate, record, identify, judge."""
    start = time.monotonic()
    folder = output_folder(arguments.out or Path("runs") / f"demo-{datetime.now():%Y%m%d-%H%M%S}")
    settings = Settings()
    model = RobotModel.from_urdf(shared_file("urdf/arm7.urdf"))
    regressor = Regressor(model, terms_on_joints(model, settings.terms))
    truth = true_parameters(model)
    progress(f"recording {2 * DURATION:g} s of {model.name} at {RATE:g} Hz into {folder}")
    motions = random_fourier(model, arguments.seed), random_fourier(model, arguments.seed + 1000, share=0.7)
    training = _record(folder / "training", regressor, truth, motions[0], arguments.seed)
    held_out = _record(folder / "held_out", regressor, truth, motions[1], arguments.seed + 1000)
    result = identify([training], [held_out], model, settings, __version__, progress)
    file = folder / "parameters.yaml"
    error = _true_error(result.parameters, regressor, truth, motions[1])
    seconds = time.monotonic() - start
    summary = {
        **identification_summary(result, str(file)),
        "noise_free_nrmse": error,
        "seconds": seconds,
        "run_folder": str(folder),
    }
    write_results(folder, summary, result.evaluation, result.parameters)
    write_parameters(file, result.parameters)
    if not arguments.json:
        print_evaluation(result.evaluation)
        print(f"error against the noise-free torque: {error:.2%}")
        print(f"{seconds:.1f} s; bags, parameters.yaml and report.html in {folder}")
    return int(result.evaluation.verdict.word == "bad"), summary


def true_parameters(model: RobotModel) -> Array:
    """The URDF's inertias, made 5 to 15 % heavier joint by joint, with friction and sensor offsets."""
    heavier = np.repeat(np.linspace(1.15, 1.05, len(model.body_names)), 10)
    size = np.linspace(1.0, 0.2, len(model.joint_names))
    return np.concatenate([heavier * model.inertial_parameters, 3.0 * size, 2.5 * size, 0.2 * size])


def _record(folder: Path, regressor: Regressor, truth: Array, motion: FourierSeries, seed: int) -> Recording:
    samples = simulated_recording(
        regressor, truth, motion, DURATION, RATE, Sensors(effort=NOISE, correlation_time=0.1), seed
    ).samples
    stamps = 1_700_000_000_000_000_000 + np.round(samples.t * 1e9).astype(np.int64)
    names = regressor.model.joint_names
    write_joint_state_bag(folder, "/joint_states", names, stamps, samples.q, samples.dq, samples.tau)
    return open_recording(folder)


def _true_error(parameters: ParameterSet, regressor: Regressor, truth: Array, motion: FourierSeries) -> float:
    """All-joint error of the identified torque against the noise-free one, along the held-out motion."""
    q, dq, ddq, _ = motion.evaluate(np.arange(0.0, motion.period, 0.01))
    states = Motion(q, dq, ddq)
    exact = regressor.torque(states, truth)
    full = np.zeros(len(parameters.column_names))
    full[parameters.independent_columns] = parameters.values
    return float(np.linalg.norm(regressor_of(parameters).torque(states, full) - exact) / np.linalg.norm(exact))
