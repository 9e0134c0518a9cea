# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id bench`: speed against peers in the same run, cost of whole commands, comparison with the last run."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.bench import commands
from robot_dyn_id.bench.fleet import measure_fleet
from robot_dyn_id.bench.growth import measure_growth, render_growth_page
from robot_dyn_id.bench.history import BenchRun, Slowdown, list_slower, read_run
from robot_dyn_id.bench.kernels import measure_kernels
from robot_dyn_id.bench.measuring import REPEATS, BenchFigure
from robot_dyn_id.cli import note, show, show_progress
from robot_dyn_id.cli.outputs import add_force, claim
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.prior import make_nominal_prior
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.errors import RobotDynIdError, UsageError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.progress import Stage
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.closed_loop import ControllerModel, Replay
from robot_dyn_id.simulation.sensors import Sensors, add_sensor_errors
from robot_dyn_id.text.files import write_atomically

RATE, CUTOFF = 100.0, 10.0
"""Sample rate and low-pass cutoff of the recording that estimators are timed on [Hz]."""

SAMPLES, QUICK_SAMPLES, QUICK_REPEATS = 20_000, 10_000, 3
"""Samples of the motion that kernels are timed on, and the smaller numbers of `--quick`."""

COMMAND_SECONDS, COMMAND_SAMPLES = 10.0, 20_000
"""CPU time of the command that is not to be exceeded at that many samples, or at fewer [s]."""

FIXED_SAMPLES = 2_000
"""Samples of the short recording that shows the cost of a start."""

RESULTS, PAGE = "bench.json", "growth.html"
"""Files of `--out`."""

BANDWIDTH, STIFFNESS = 20.0, 50.0
"""Bandwidth of the critically damped PD controller of the recording [rad/s], and stiffness added to it to overcome the
dry friction of 1 N m [N m/rad]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "what",
        nargs="?",
        choices=("all", "speed", "starts", "estimators", "command"),
        default="all",
        help="everything but the estimators (default), kernels against peers, start times, the time of every "
        "estimator, or `identify` without options alone",
    )
    parser.add_argument("--samples", type=int, help="samples of a 7-axis arm (default: 20000; of estimators 10000)")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and smaller sizes, a minute in all")
    parser.add_argument("--out", metavar="DIR", help=f"keep {RESULTS} and {PAGE}, which draws how the cost grows")
    parser.add_argument("--last", metavar="FILE", help=f"earlier results to compare with (default: {RESULTS} in --out)")
    parser.add_argument(
        "--accept-slower",
        action="store_true",
        help=f"keep slower figures, too, in {RESULTS} instead of earlier ones",
    )
    add_force(parser)


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Measure, print, and compare with the last run.

    Raises:
        UsageError: files are requested of a part that has none.
        InputError: earlier results that cannot be read.
    """
    if arguments.what in ("estimators", "command") and (arguments.out or arguments.last or arguments.quick):
        raise UsageError(f"--out, --last and --quick are not for `{arguments.what}`; leave them out")
    if arguments.accept_slower and not arguments.out:
        raise UsageError("--accept-slower is for the results that --out keeps")
    if arguments.what == "estimators":
        return _estimators(arguments)
    if arguments.what == "command":
        return _command_times(arguments)
    folder = Path(arguments.out) if arguments.out else None
    if folder:
        claim(arguments, folder / RESULTS, folder / PAGE)
    kept = Path(arguments.last) if arguments.last else folder / RESULTS if folder else None
    last = read_run(kept) if kept is not None and (arguments.last or kept.is_file()) else None
    measured_run = _measure(arguments)
    found = list_slower(measured_run, last) if last else []
    answer = {**measured_run.summary(), "command": [], "compared_with": str(kept) if last else None}
    answer["slower"] = [vars(one) for one in found]
    answer["unlike"] = list(measured_run.unlike(last)) if last else []
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        stored = measured_run
        if (folder / RESULTS).is_file() and not stored.unlike(before := read_run(folder / RESULTS)):
            if not arguments.accept_slower:
                stored = stored.without(list_slower(stored, before), before)
            stored = stored.completed(before)  # the run of one part keeps the figures of the others
        text = json.dumps(stored.summary(), indent=1, allow_nan=False)
        write_atomically(folder / RESULTS, f"{text}\n")
        write_atomically(folder / PAGE, render_growth_page(measured_run.growth))
    if not arguments.json:
        _print(measured_run, last, found)
    return 0, answer


def _measure(arguments: argparse.Namespace) -> BenchRun:
    """Figures of the requested parts."""
    quick, everything = arguments.quick, arguments.what == "all"
    repeats = QUICK_REPEATS if quick else REPEATS
    figures: list[BenchFigure] = []
    samples = arguments.samples or (QUICK_SAMPLES if quick else SAMPLES)
    if arguments.what != "starts":
        figures += measure_kernels(samples, repeats, show_progress)
        figures += measure_fleet(repeats)
    if arguments.what != "speed":
        figures += commands.measure_starts(repeats, show_progress)
    if everything:
        figures += commands.measure_commands(quick, show_progress)
        show_progress(Stage("measuring: growth with samples, joints and parameters"))
    return BenchRun.from_figures(figures, measure_growth(quick) if everything or arguments.out else {}, quick, samples)


def _print(measured_run: BenchRun, last: BenchRun | None, found: list[Slowdown]) -> None:
    """Table of the figures, of the growth, and of what got slower."""
    width = max(len(figure.name) for figure in measured_run.figures)
    for figure in measured_run.figures:
        value = "not run" if figure.value is None else f"{figure.value:.4g} {figure.unit}"
        goal = "" if figure.goal is None else f"(goal: at {'most' if figure.at_most else 'least'} {figure.goal:g})"
        more = "missed" if figure.met is False else figure.why
        show(f"{figure.name:<{width}}  {value:>14}  {goal} {more}".rstrip())
    for what, points in measured_run.growth.items():
        costs = ", ".join(f"{point.size}: {point.estimation:.3g}" for point in points)
        show(f"samples to parameters over {what}, us per sample: {costs}")
    if last is not None:
        if unlike := measured_run.unlike(last):
            show(f"not compared: the last run is of another {', '.join(unlike)} ({last.computer})")
            return
        for one in found:
            show(f"slower: {one.name}: {one.before:.4g} -> {one.now:.4g} {one.unit} (spread {100 * one.spread:.0f} %)")
        if not found:
            show("nothing got slower by more than the spread")


def _command_times(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """CPU time of `identify` without options against its limit."""
    goals = [_time_goal(samples, value) for samples, value in _command(arguments.samples or COMMAND_SAMPLES).items()]
    if not arguments.json:
        for goal in goals:
            show(
                f"{goal['seconds']:7.1f} s (at most {goal['at_most']:g}{'' if goal['met'] else ', missed'})  "
                f"CPU time of `identify`, {goal['samples']} samples of 7 joints at 1 kHz"
            )
    return 0, {"goals": [], "command": goals}


def _command(samples: int) -> dict[int, float]:
    """CPU time of `identify` without options, from the start of the process to its end [s], by number of samples.

    The first run, which may compile, is left out.

    Raises:
        InternalError: the command fails.
    """
    counts = sorted({min(FIXED_SAMPLES, samples), samples})
    seconds: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for count in (counts[0], *counts):
            show_progress(Stage(f"identify, {count} samples"))
            data, out = Path(scratch) / f"data{count}.npz", Path(scratch) / "run"
            if not data.exists():
                commands.write_recording(data, count, commands.RATE)
            words: list[str | Path] = [
                "identify",
                data,
                "--robot",
                find_shared_file("urdf/arm7.urdf"),
                "--out",
                out,
                "--force",
            ]
            seconds[count] = commands.run_command(words).seconds
    return seconds


def _estimators(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """CPU time of every estimator, filters included, once each after a short run that compiles; no goals."""
    model, count = RobotModel.from_file(find_shared_file("urdf/arm7.urdf")), arguments.samples or 10_000
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(0.05), Offset())))
    base, motion = compute_base_parameters(regressor), draw_random_fourier(model, 1)
    friction = np.ones(len(regressor.names) - len(model.inertial_parameters))
    parameters = np.append(1.1 * model.inertial_parameters, friction)
    dynamics = Dynamics(regressor, np.arange(len(parameters)), parameters)
    controller = _controller(dynamics, motion)
    plan = replace(SignalPlan.from_low_pass(RATE, LowPass(CUTOFF), False), row_stride=1).periodic(motion.period)
    seconds: dict[str, float] = {}
    for run, samples in enumerate((min(count, 4000), count)):
        recording = _recording(dynamics, controller, motion, samples)
        trials = FilteredTrials([recording], model.joint_names, {}, plan)
        problem = trials.problem(regressor, base.independent, make_nominal_prior(model, base.mapping))
        for number, (name, kind) in enumerate(ESTIMATORS.items()):
            show_progress(Stage("measuring estimators", run * len(ESTIMATORS) + number, 2 * len(ESTIMATORS), name))
            options = {"controller": controller} if "controller" in {item.name for item in fields(kind)} else {}  # type: ignore[arg-type]
            start = time.process_time()
            try:
                kind(**options).fit(problem)
            except RobotDynIdError as error:
                note(str(error))
                seconds.pop(name, None)
            else:
                seconds[name] = time.process_time() - start
    if not arguments.json:
        for name, value in seconds.items():
            show(f"{value:8.2f} s  {name}")
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
    shown = add_sensor_errors(joints, Chunk(true.t, true.motion.q.T, true.motion.dq.T, true.tau.T), sensors, 0)
    return replace(shown, samples=replace(shown.samples, reference=wanted.q[:, : len(true.t)].T))


def _time_goal(samples: int, seconds: float) -> dict[str, Any]:
    """CPU time of the command against its limit, which grows with the samples above `COMMAND_SAMPLES`."""
    most = COMMAND_SECONDS * max(1.0, samples / COMMAND_SAMPLES)
    return {"samples": samples, "seconds": seconds, "at_most": most, "met": seconds <= most}
