# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics of five arms after the recipe of planar3r, and with `consistent` from the same files.

    python benchmarks/forward_models.py [--record forward_models.jsonl] [--table benchmarks/forward_models.md]

Every result is a line of the record, and a run continues where the last one ended.
"""

import argparse
import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from separable import ARMS, load_arm

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import ESTIMATORS, Consistent
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS
from robot_dyn_id.excitation.design.planning import make_design_task
from robot_dyn_id.excitation.design.search import design
from robot_dyn_id.files.design import design_settings
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.simulation.controllers import make_usable_dynamics
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

TERMS = (Viscous(), Coulomb(0.02))

RATE, NOISE, POSITION_NOISE = 100.0, 0.1, 1e-6
"""Samples per second [Hz], noise of the efforts [N m] and of the angles [rad]: those of the overview's rows."""

HEAVIER, VISCOUS, SLIDING = 1.2, 2.0, 1.0
"""Bodies of the true arms over those of their URDFs; friction [N m s/rad, N m]."""

SINE_PERIODS = {"Kinova": 8.0}
"""Periods of the sines of arms with slow joints; 3 s for the others [s]."""

FEWEST_SPEED = 0.1
"""Speed of a joint below which its acceleration is not compared [rad/s]: there the sign of friction decides."""

RECIPES = {
    "stepwise": ("sines", ESTIMATORS["stepwise"]()),
    "consistent": ("sines", Consistent()),
    "consistent, one designed motion more": ("both", Consistent()),
}
"""Data and estimator: the recipe, `consistent` from the same file, and with a Fourier motion of all joints."""


def simulate(arm, name, motion, seconds, seed):
    """Recording of the true arm."""
    regressor, truth = make_truth(arm)
    sensors = Sensors(np.full(len(regressor.model.joint_names), NOISE), POSITION_NOISE, None)
    recording = simulate_recording(regressor, truth, motion, sample_times(seconds, RATE), sensors, seed)
    return replace(recording, source=name)


def make_truth(arm):
    """Columns and parameters of the true arm."""
    model = load_arm(arm)
    regressor = Regressor(model, place_terms_on_joints(model, TERMS))
    n = len(model.joint_names)
    names = regressor.names[10 * len(model.body_names) :]
    friction = [VISCOUS if name.startswith("fv") else SLIDING for name in names]
    assert len(friction) == 2 * n
    return regressor, np.concatenate([HEAVIER * model.inertial_parameters, friction])


def design_motion(arm, form, **given):
    """Motion by a small search, without a check of collisions."""
    model = load_arm(arm)
    search = {"draws": 4, "starts": 1, "finished": 1, "steps": 2}
    settings = design_settings(form=form, clearance=0.0, search=search, **given)
    task = make_design_task(settings, model, Regressor(model, place_terms_on_joints(model, TERMS)))
    return design(task.problem, OPTIMIZERS[settings.optimizer], settings.seed, settings.search).excitation


def judge(arm, parameters, motion):
    """Correlation of the accelerations of each joint along a motion, from its true states and torques."""
    regressor, truth = make_truth(arm)
    q, dq, ddq, _ = motion.evaluate(sample_times(10.0, RATE))
    tau = regressor.torque(Motion(q, dq, ddq), truth)
    try:
        make_usable_dynamics(parameters, load_arm(arm).urdf, parameters.robot.joint_names, True)
        refused = ""
    except InputError as error:
        refused = str(error)
    dynamics = Dynamics.from_parameters(parameters)
    usable = dynamics.is_positive_definite(q.T)
    found = np.full_like(q, np.nan)
    if usable.any():
        found[:, usable] = dynamics.forward_dynamics(q.T[usable], dq.T[usable], tau.T[usable]).T
    fast = (np.abs(dq) > FEWEST_SPEED) & usable
    pairs = [(f[own], t[own]) for f, t, own in zip(found, ddq, fast, strict=True)]
    return refused, [float(np.corrcoef(*pair)[0, 1]) if len(pair[0]) > 1 else math.nan for pair in pairs]


def run(record):
    """Append the results that the record lacks."""
    known = {(line["arm"], line["recipe"]) for line in read(record)}
    for arm in ARMS:
        lacking = [recipe for recipe in RECIPES if (arm, recipe) not in known]
        if not lacking:
            continue
        sines = design_motion(arm, "sequential_sine", period=SINE_PERIODS.get(arm, 3.0))
        fourier = design_motion(arm, "fourier", period=10.0)
        data = {
            "sines": simulate(arm, "sines", sines, sines.duration, 0),
            "fourier": simulate(arm, "fourier", fourier, 3 * fourier.duration, 1),
        }
        held_out = draw_random_fourier(load_arm(arm), 1, 10.0, share=0.5)
        other = simulate(arm, "other", held_out, 10.0, 2)
        for recipe in lacking:
            source, estimator = RECIPES[recipe]
            settings = Settings(
                terms=TERMS,
                estimator=estimator,
                velocity="derivative",
                reversal_speed=0.05,
                rest_speed=0.001 if source == "sines" else 0.0,
            )
            recordings = list(data.values()) if source == "both" else [data["sines"]]
            found = identify(recordings, [other], load_arm(arm), settings, "benchmark")
            refused, correlations = judge(arm, found.parameters, held_out)
            line = {"arm": arm, "recipe": recipe, "refused": refused, "correlations": correlations}
            line |= {"error": float(found.evaluation.held_out.all_joints_nrmse), "own": compute_own_torques(arm)}
            with record.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, file=sys.stderr)


def compute_own_torques(arm):
    """Inertia that each joint feels of its own in the true arm, and its share of the torque at the top acceleration."""
    regressor, truth = make_truth(arm)
    dynamics = Dynamics(regressor, np.arange(len(truth)), truth)
    motion = draw_random_fourier(load_arm(arm), 1, 10.0, share=0.5)
    q, _, ddq, _ = motion.evaluate(sample_times(10.0, RATE))
    inertia = np.diagonal(dynamics.mass_matrix(q.T), axis1=1, axis2=2).T
    return [float(np.sqrt(np.mean((m * a) ** 2))) for m, a in zip(inertia, ddq, strict=True)]


def read(record):
    """Results so far."""
    return [json.loads(line) for line in record.read_text().splitlines()] if record.is_file() else []


HEAD = f"""# Forward dynamics of five arms

Written by `benchmarks/forward_models.py`. The recipe of [planar3r](../docs/papers/planar3r.md): one joint moves at a
time (`design --form sequential_sine`), `stepwise`; then `consistent` from the same file; then with one Fourier motion
of all joints more (`design --form fourier`, three periods of 10 s). Arms are {HEAVIER - 1:.0%} heavier than their
URDFs, friction of {VISCOUS:g} N m s/rad and {SLIDING:g} N m, noise of {NOISE:g} N m and {POSITION_NOISE:g} rad at
{RATE:g} Hz; designs by the small search of the test, without a check of collisions.

Accelerations: correlation of the forward dynamics with the truth along another motion, from its true states and
torques, joint by joint, where it is faster than {FEWEST_SPEED:g} rad/s and the mass matrix is positive definite
(-: nowhere). Inertia: RMS of the torque that accelerates the joint's own inertia along that motion [N m]. Where it is
far below the friction, an error of the friction of a few percent is as large, and the acceleration of this joint is
not predicted.

| arm | recipe | `simulate` | accelerations | torque error |
|---|---|---|---|---|
"""


def table(lines):
    """A row for each arm and recipe, and the inertias of each arm."""
    rows = []
    for arm in ARMS:
        own = [one for one in lines if one["arm"] == arm]
        for one in own:
            answer = "refused" if one["refused"] else "runs"
            values = ", ".join("-" if math.isnan(value) else f"{value:.3f}" for value in one["correlations"])
            rows.append(f"| {arm} | {one['recipe']} | {answer} | {values} | {one['error']:.2%} |")
        if own:
            rows.append(f"| | inertia [N m] | | {', '.join(f'{value:.2g}' for value in own[0]['own'])} | |")
    return HEAD + "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, default=Path("forward_models.jsonl"))
    parser.add_argument("--table", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    run(options.record)
    options.table.write_text(table(read(options.record)))


if __name__ == "__main__":
    main()
