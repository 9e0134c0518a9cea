# SPDX-License-Identifier: Apache-2.0
"""Stribeck friction that `separable` finds on simulated arms, draw by draw, against the truth and against `lm`.

    python benchmarks/separable.py [--draws 30] [--record separable.jsonl] [--table benchmarks/separable.md]

Every result is a line of the record, and a run continues where the last one ended.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, make_joint_coordinates, place_terms_on_joints
from robot_dyn_id.dynamics.terms import ImprovedStribeck, RotorInertia
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators import LevenbergMarquardt, Separable
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.configuration import read_configuration
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.files.term_values import read_term_values
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.papers.inputs import read_node_parameters
from robot_dyn_id.signals.reversals import exclude_reversals
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.simulation.sensors import Sensors, add_sensor_errors, sample_times, simulate_recording
from robot_dyn_id.simulation.simulated_robot import Actuation, SimulatedRobot, simulate_motion

DURATION, RATE = 20.0, 200.0
"""Time [s] and sample rate [Hz] of a draw; its motion is a Fourier series of 10 s, twice."""

NOISE, POSITION_NOISE = 0.01, 2e-6
"""Noise of the efforts, as a share of the RMS of the torque and the sliding friction, and of the angles [rad]."""

SIGMAS = 3.0
"""Standard deviations within which an estimate is right."""

ARMS = {
    "Z1": ("z1", "joint"),
    "iiwa": ("iiwa14", ""),
    "UR5": ("ur5_robot", ""),
    "Panda": ("panda", "panda_joint"),
    "Kinova": ("kinova", "j2s6s200_joint_"),
}
"""URDF of example-robot-data, or of this package, and how the names of the joints begin that are identified."""

SCENARIO = "space6r.launch.py"
"""The paper's arm and Table 1 with the simulator, its sensors and its controller."""

REVERSALS = {"from 0.01 rad/s on": 0.01, "all": 0.0}
"""Speeds below which rows are left out [rad/s]: the one of the configuration, and none."""


@dataclass(frozen=True)
class Draw:
    """A recording with the truth behind it.

    Attributes:
        recording: the recording.
        model: the robot.
        truth: all parameters, those of bodies, rotors and improved Stribeck friction of every joint.
        velocities: Stribeck velocities [rad/s].
    """

    recording: ArrayRecording
    model: RobotModel
    truth: np.ndarray
    velocities: np.ndarray


@cache
def load_arm(arm):
    """Model of an arm; grippers and other joints are fixed."""
    name, start = ARMS[arm]
    files = [file.locate() for file in metadata.files("example-robot-data") if file.name == f"{name}.urdf"]
    path = Path(str(files[0])) if files else find_shared_file(f"urdf/{name}.urdf")
    whole = RobotModel.from_file(path)
    numbered = [one for one in whole.joint_names if one.startswith(start) and one[len(start) :].isdigit()]
    joints = numbered if start else whole.joint_names
    return RobotModel.from_file(path, joints)


def draw_arm(arm, seed):
    """Draw a true robot, its friction and its motion: vb is 2 % to 15 % of the top speed, fb 1.1 to 1.6 fc."""
    model, rng = load_arm(arm), np.random.default_rng(seed)
    n = len(model.joint_names)
    motion = draw_random_fourier(model, seed, 10.0, share=0.5)
    q, dq, ddq, _ = motion.evaluate(sample_times(10.0, RATE))
    top, fastest = np.abs(dq).max(axis=1), np.abs(ddq).max(axis=1)
    rigid = model.inertial_parameters * np.repeat(rng.uniform(0.8, 1.2, len(model.body_names)), 10)
    size = np.sqrt(np.mean(Regressor(model, ()).torque(Motion(q, dq, ddq), rigid) ** 2, axis=1))
    size = np.maximum(size, 0.01 * size.max())
    sliding = size * rng.uniform(0.15, 0.6, n)
    viscous = sliding * rng.uniform(0.3, 1.2, n) / top
    rise = sliding * rng.uniform(0.1, 0.6, n)
    squares, cubes = (viscous * rng.uniform(-0.1, 0.1, n) / top**power for power in (1, 2))
    velocities = top * rng.uniform(0.02, 0.15, n)
    friction = np.array([sliding, rise, viscous, squares, cubes]).T.ravel()
    truth = np.concatenate([rigid, size * rng.uniform(0.01, 0.2, n) / fastest, friction])
    joints = make_joint_coordinates(model)
    terms = [(one, RotorInertia()) for one in joints]
    terms += [(one, ImprovedStribeck(float(v))) for one, v in zip(joints, velocities, strict=True)]
    sensors = Sensors(NOISE * np.hypot(size, sliding), POSITION_NOISE, None)
    at = sample_times(DURATION, RATE)
    recording = simulate_recording(Regressor(model, tuple(terms)), truth, motion, at, sensors, seed)
    return Draw(recording, model, truth, velocities)


@cache
def load_scenario():
    """The paper's arm with the values of Table 1."""
    model = RobotModel.from_file(find_shared_file("urdf/space6r.urdf"))
    valued = read_term_values(find_shared_file("config/terms/space6r.yaml"), model)
    valued = [one for name in ("rotor_inertia", "improved_stribeck") for one in valued if one[1].name == name]
    truth = np.concatenate([model.inertial_parameters, *(values for *_, values in valued)])
    return model, Regressor(model, tuple((at, term) for at, term, _ in valued)), truth


def draw_scenario(seed):
    """The arm of the launch file under its controller, with friction that sticks, along another motion in each draw."""
    model, regressor, truth = load_scenario()
    given = read_node_parameters("space6r", "simulator")
    motion = draw_random_fourier(model, seed, 10.0, share=0.5)
    dynamics = Dynamics(regressor, np.arange(len(truth)), truth)
    start = motion.evaluate(np.zeros(1))[0][:, 0]
    true = simulate_motion(SimulatedRobot(dynamics, start, 1e-3, Actuation(limit_effort=False)), motion)
    step = round(1e3 / given["publish_rate"])
    true = Chunk(*(getattr(true, name)[::step] for name in ("t", "q", "dq", "tau")))
    sensors = Sensors(
        np.array(given["effort_noise"]), 0.0, given["velocity_noise"], resolution=float(given["resolution"])
    )
    recording = add_sensor_errors(model.joint_names, true, sensors, seed)
    return Draw(recording, model, truth, np.array([term.stribeck_velocity for _, term in regressor.terms[-6:]]))


def identify(draw, reversal_speed, estimator):
    """Errors of vb, fb - fc and fc of each joint, in standard deviations; 0 where not identifiable, and reported so."""
    given = read_configuration(find_shared_file("config/identification/space6r.yaml")).settings
    names = draw.recording.joint_names
    trials = FilteredTrials.from_recordings([draw.recording], names, {}, given.signals)
    trials, _ = exclude_reversals(trials, reversal_speed, {})
    regressor = Regressor(draw.model, place_terms_on_joints(draw.model, (RotorInertia(), ImprovedStribeck())))
    base = compute_base_parameters(regressor)
    problem = trials.problem(regressor, base.independent, None)
    began = time.process_time()
    try:
        found = estimator.fit(problem)
    except ConvergenceError:
        return {"failed": True, "seconds": time.process_time() - began}
    seconds = time.process_time() - began
    truth = base.mapping @ draw.truth
    first = [i for i, name in enumerate(problem.names) if name.startswith("fci")]
    rise = [i for i, name in enumerate(problem.names) if name.startswith("dfi")]
    sigmas = np.array([constant.standard_deviation for constant in found.constants])
    values = np.array([constant.value for constant in found.constants])
    return {
        "failed": False,
        "seconds": seconds,
        "vb": ((values - draw.velocities) / sigmas).tolist(),
        "rise": ((found.values - truth) / found.standard_deviations)[rise].tolist(),
        "fc": ((found.values - truth) / found.standard_deviations)[first].tolist(),
        "known": np.isfinite(sigmas).tolist(),
        "codes": sorted({finding.code for finding in found.findings}),
    }


def run(count, record):
    """Append the results that the record lacks."""
    known = {(line["arm"], line["draw"], line["rows"], line["estimator"]) for line in read(record)}
    for seed in range(count):
        for arm in (*ARMS, SCENARIO):
            draw = None
            for rows, speed in REVERSALS.items():
                for estimator in (Separable(), LevenbergMarquardt()) if speed else (Separable(),):
                    if (arm, seed, rows, estimator.name) in known:
                        continue
                    draw = draw or (draw_scenario(seed) if arm == SCENARIO else draw_arm(arm, seed))
                    line = {"arm": arm, "draw": seed, "rows": rows, "estimator": estimator.name}
                    line |= identify(draw, speed, estimator)
                    with record.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    print(line, file=sys.stderr)


def read(record):
    """Results so far."""
    return [json.loads(line) for line in record.read_text().splitlines()] if record.is_file() else []


HEAD = f"""# Stribeck friction that `separable` finds, draw by draw

Written by `benchmarks/separable.py`. Arms of `example-robot-data` (iiwa: `urdf/iiwa14.urdf`) with bodies 20 % around
their URDFs, friction of 15 to 60 % of the RMS torque of each joint, fb of 1.1 to 1.6 fc, vb of 2 to 15 % of the top
speed; {DURATION:g} s at {RATE:g} Hz of a random Fourier series, noise of {NOISE:.0%} of the torque. `{SCENARIO}`:
Table 1 of the paper, the simulator with friction that sticks, its encoders and its noise; its vb of 0.001 to
0.0055 rad/s are less than what a joint gains in a sample. Terms and filters of `config/identification/space6r.yaml`.

A joint of a draw is right if vb, fb - fc and fc are within {SIGMAS:g} of their reported standard deviations; where vb
and fb - fc are reported as not identifiable, if fc is; these are counted as unknown. Named: joints that are not right,
in draws with a finding about constants. Silent: the others that are not right. Time: of the CPU, median.

| arm | rows | estimator | draws | failed | joints right | unknown | named | silent | draws right | time [s] |
|---|---|---|---|---|---|---|---|---|---|---|
"""


def table(lines):
    """One row for each arm, choice of rows and estimator."""
    rows = []
    for arm in (*ARMS, SCENARIO):
        for choice, speed in REVERSALS.items():
            for estimator in ("separable", "lm") if speed else ("separable",):
                own = [one for one in lines if (one["arm"], one["rows"], one["estimator"]) == (arm, choice, estimator)]
                rows.append(_row(f"{arm} | {choice} | `{estimator}`", own))
    return HEAD + "\n".join(rows) + "\n\n" + _list_silent(lines) + "\n"


def _list_silent(lines):
    """Joints of `separable` that are not right and not named, with rows from the speed of the configuration on."""
    found = []
    for one in lines:
        if one["estimator"] != "separable" or not REVERSALS[one["rows"]] or one["failed"]:
            continue
        if any("constants" in code for code in one["codes"]):
            continue
        errors = np.array([one["vb"], one["rise"], one["fc"]])
        for joint in np.flatnonzero(np.abs(errors).max(axis=0) > SIGMAS):
            values = ", ".join(f"{value:.1f}" for value in errors[:, joint])
            found.append(f"- {one['arm']}, draw {one['draw']}, joint {joint + 1}: {values}")
    title = "Silent joints of `separable` from 0.01 rad/s on: errors of vb, fb - fc, fc in standard deviations.\n\n"
    return title + "\n".join(found)


def _row(title, own):
    ended = [one for one in own if not one["failed"]]
    right = [np.abs([one["vb"], one["rise"], one["fc"]]).max(axis=0) <= SIGMAS for one in ended]
    unknown = sum(np.count_nonzero(r & ~np.array(one["known"])) for r, one in zip(right, ended, strict=True))
    flags = [any("constants" in code for code in one["codes"]) for one in ended]
    wrong = [(np.count_nonzero(~r), flag) for r, flag in zip(right, flags, strict=True)]
    joints = sum(map(len, right))
    share = sum(map(np.count_nonzero, right)) / max(joints, 1)
    named, silent = (sum(count for count, flag in wrong if flag is kind) for kind in (True, False))
    cells = (
        *(len(own), len(own) - len(ended), f"{share:.1%} of {joints}", unknown, named, silent),
        *(sum(r.all() for r in right), f"{np.median([one['seconds'] for one in own]):.2g}"),
    )
    return f"| {title} | " + " | ".join(map(str, cells)) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--record", type=Path, default=Path("separable.jsonl"))
    parser.add_argument("--table", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    run(options.draws, options.record)
    options.table.write_text(table(read(options.record)))


if __name__ == "__main__":
    main()
