# SPDX-License-Identifier: Apache-2.0
"""An arm of six flexible joints by both criteria of flexible2r: raw columns, as in the paper, and unit-norm columns.

    python benchmarks/flexible_criteria.py [--draws 20] [--record FILE] [--table FILE]

Every result is a line of the record, and a run continues where the last one ended.
"""

import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from flexible_joints import draw_truth
from measuring import append_row, read_rows, tabulate_draws
from separable import load_arm

from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.flexible import (
    CUTOFF,
    FlexibleJoint,
    FlexibleModel,
    FlexiblePlant,
    Noise,
    compute_agreements,
    identify_flexible,
    make_equations,
)
from robot_dyn_id.signals.filtering import LowPass

ARM, RATIO = "UR5", 100.0

POSES, ALONE, TOGETHER, RATE = 40, 10.0, 20.0, 500.0
"""Number of poses, and lengths of the motions of each joint alone and of all joints [s], at this rate [Hz]."""

NOISE = Noise(q=1e-5, motor_q=3e-5, tau=0.1, motor_tau=1e-3)

CRITERIA = {"none": "raw columns, as in the paper", "columns": "unit-norm columns"}

KINDS = {
    "gravity and inertia": (),
    "friction": ("fv", "fc"),
    "offsets": ("off", "offm"),
    "motors": ("Jm", "fvm", "fcm"),
    "springs": ("K", "preload"),
}
"""Symbols of the parameters of a kind; none: all others."""


def make_truth():
    """The arm and its parameters: the links of the URDF, the others at random, and the kind of each."""
    robot = load_arm(ARM)
    model = FlexibleModel(robot, tuple(FlexibleJoint(name, RATIO) for name in robot.joint_names))
    truth, symbols = draw_truth(model), [name.rstrip("0123456789") for name in model.names]
    other = "gravity and inertia"
    kinds = [next((kind for kind, own in KINDS.items() if symbol in own), other) for symbol in symbols]
    return model, truth, np.array(kinds)


def make_experiments(plant):
    """Poses, motions of single joints and of all, and another motion that is held out, without noise."""
    robot, rng = plant.model.model, np.random.default_rng(1)
    found = [plant.poses("poses", rng.uniform(-1.2, 1.2, (len(robot.joint_names), POSES)))]
    for number, name in enumerate(robot.joint_names):
        motion = draw_random_fourier(robot, 10 + number, ALONE, 8)
        motion.coefficients[[k for k in range(len(robot.joint_names)) if k != number]] = 0.0
        found.append(plant.along(f"{name} alone", motion, ALONE, RATE, (name,)))
    motions = [draw_random_fourier(robot, seed, TOGETHER, 8) for seed in (1, 5)]
    together, other = (plant.along(f"seed {k}", one, TOGETHER, RATE) for k, one in enumerate(motions))
    return [*found, together], other


def run(record, draws):
    """Append the draws that the record lacks."""
    known = {(line["criterion"], line["seed"]) for line in read_rows(record)}
    wanted = [(criterion, seed) for seed in range(draws) for criterion in CRITERIA]
    lacking = [one for one in wanted if one not in known]
    if not lacking:
        return
    model, truth, kinds = make_truth()
    clean, other = make_experiments(FlexiblePlant(model, truth))
    held_out = make_equations(model, other, LowPass(CUTOFF))
    for criterion, seed in lacking:
        noisy = [NOISE.added(one, 100 * seed + k) for k, one in enumerate(clean)]
        solution = identify_flexible(model, noisy, scaling=criterion).solution
        shown = np.isfinite(solution.values)
        errors, scores = solution.values - truth, (solution.values - truth) / solution.standard_deviations
        size = {kind: np.linalg.norm(truth[kinds == kind]) for kind in KINDS}
        line = {"criterion": criterion, "seed": seed, "steps": len(solution.plan.steps)}
        line["unidentified"] = int((~shown).sum())
        line["errors"] = {k: float(np.linalg.norm(errors[(kinds == k) & shown]) / size[k]) for k in KINDS}
        line["scores"] = float(np.sqrt(np.mean(scores[shown] ** 2)))
        line["held_out"] = max(one.nrmse for one in compute_agreements(model, held_out, solution.values))
        append_row(record, line)
        print(line, file=sys.stderr)


HEAD = f"""# Both criteria on an arm of six flexible joints

Written by `benchmarks/flexible_criteria.py`. The {ARM} of example-robot-data with flexible joints (ratio {RATIO:g},
stiffness of 5000 to 15000 N m/rad): {POSES} poses, {ALONE:g} s of each joint alone and {TOGETHER:g} s of all joints
at {RATE:g} Hz, noise of 1e-5 rad (links), 3e-5 rad (motors), 0.1 N m and 1e-3 N m (motors). The steps are planned from
the condition number of raw columns, as in [flexible2r](../docs/papers/flexible2r.md), or of unit-norm columns, from the
same data.

Errors: norm of the errors of all parameters of a kind, relative to the norm of the true ones; medians of the draws, and
ratios of both criteria draw by draw (median, quartiles). Held out: largest error of an equation along another motion.

"""


def write_table(lines):
    """The page."""
    by_seed = {c: {line["seed"]: line for line in lines if line["criterion"] == c} for c in CRITERIA}
    seeds = sorted(set.intersection(*(set(own) for own in by_seed.values())))
    rows = {
        "steps": lambda line: line["steps"],
        "parameters that are not identified": lambda line: line["unidentified"],
        **{f"error of {kind}": lambda line, kind=kind: line["errors"][kind] for kind in KINDS},
        "held out": lambda line: line["held_out"],
        "errors over sigma, rms": lambda line: line["scores"],
    }
    text = (
        f"| median of {len(seeds)} draws | {' | '.join(CRITERIA.values())} | raw over unit-norm |\n|---|---|---|---|\n"
    )
    for words, of in rows.items():
        raw, unit = (np.array([of(by_seed[c][seed]) for seed in seeds], dtype=float) for c in CRITERIA)
        share = words.startswith("error of") or words == "held out"
        shown = [f"{np.median(x):.2%}" if share else f"{np.median(x):.3g}" for x in (raw, unit)]
        low, middle, high = np.quantile(raw / unit, (0.25, 0.5, 0.75)) if share else (np.nan,) * 3
        ratio = f"{middle:.2f} ({low:.2f} to {high:.2f})" if share else ""
        text += f"| {words} | {shown[0]} | {shown[1]} | {ratio} |\n"
    return HEAD + text


if __name__ == "__main__":
    tabulate_draws(__doc__, "flexible_criteria", run, write_table)
