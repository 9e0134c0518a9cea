# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics of five arms after the recipe of planar3r, and the bound by the information in the data.

    python benchmarks/forward_models.py [--record forward_models.jsonl] [--table benchmarks/forward_models.md]

Every result is a line of the record, and a run continues where the last one ended.
"""

import argparse
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from measuring import append_row, read_rows
from separable import ARMS, load_arm

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import ESTIMATORS, Consistent, Estimator
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.design.information import Information
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS
from robot_dyn_id.excitation.design.planning import make_design_task
from robot_dyn_id.excitation.design.search import design
from robot_dyn_id.files.design import design_settings
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.simulation.controllers import make_usable_dynamics
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

TERMS = (Viscous(), Coulomb(0.02))

NOISE = 0.1
"""Noise of the efforts [N m]."""

HEAVIER, VISCOUS, SLIDING = 1.2, 2.0, 1.0
"""Bodies of the true arms over those of their URDFs; friction [N m s/rad, N m]."""

SINE_PERIODS = {"Kinova": 8.0}
"""Periods of the sines of arms with slow joints; 3 s for the others [s]."""

FEWEST_SPEED = 0.1
"""Speed of a joint below which its acceleration is not compared [rad/s]: there the sign of friction decides."""

DRAWS, BOUND_DRAWS = 10, 200
"""Draws of the noise of the recordings; draws of the parameters of an efficient estimator."""

HELD_OUT_S = 10.0
"""Time of the motion that accelerations are compared along [s]."""


@dataclass(frozen=True)
class Sampling:
    """Samples of a recording.

    Attributes:
        rate: samples per second [Hz].
        position_noise: noise of the angles [rad].
    """

    rate: float
    position_noise: float


OVERVIEW, ENCODERS = Sampling(100.0, 1e-6), Sampling(1000.0, 1e-5)
"""Samples of the overview's rows; those of a drive at 1 kHz with an encoder of 18 bits (a step of 2.4e-5 rad)."""


BOUNDS = {"efficient": "", "efficient, errors of friction alone": "friction", "efficient, of bodies alone": "bodies"}
"""Rows of the bound by the parameters that have errors; the others are true."""


@dataclass(frozen=True)
class Recipe:
    """Data and estimator.

    Attributes:
        motions: names of the motions.
        estimator: the estimator.
        sampling: samples of the recordings.
        bounds: rows of the bound that the data set.
    """

    motions: tuple[str, ...]
    estimator: Estimator
    sampling: Sampling = OVERVIEW
    bounds: Mapping[str, str] = field(default_factory=lambda: BOUNDS)


RECIPES = {
    "stepwise": Recipe(("sines",), ESTIMATORS["stepwise"](), bounds={}),
    "consistent": Recipe(("sines",), Consistent()),
    "consistent, one Fourier motion more": Recipe(("sines", "fourier"), Consistent()),
    "consistent, one motion for computed torque": Recipe(("computed torque",), Consistent(), ENCODERS),
}
"""The recipe; `consistent` from the same file; with a Fourier motion of all joints; from one long motion alone."""

PERIODS = {"fourier": 3, "computed torque": 24}
"""Repetitions of the periodic motions."""


def design_motions(arm):
    """Motions by name, with their durations [s]."""
    motions = {
        "sines": design_motion(arm, "sequential_sine", period=SINE_PERIODS.get(arm, 3.0)),
        "fourier": design_motion(arm, "fourier", period=10.0),
        "computed torque": design_motion(arm, "fourier", period=10.0, purpose="computed_torque"),
    }
    return {name: (motion, PERIODS.get(name, 1) * motion.duration) for name, motion in motions.items()}


def simulate(arm, name, motion, seconds, sampling, seed):
    """Recording of the true arm."""
    regressor, truth = make_truth(arm)
    sensors = Sensors(np.full(len(regressor.model.joint_names), NOISE), sampling.position_noise, None)
    at = sample_times(seconds, sampling.rate)
    return replace(simulate_recording(regressor, truth, motion, at, sensors, seed), source=name)


@cache
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


def draw_held_out(arm):
    """Motion that accelerations are compared along."""
    return draw_random_fourier(load_arm(arm), 1, HELD_OUT_S, share=0.5)


def correlate(arm, dynamics):
    """Correlation of the accelerations of each joint along the held-out motion, from its true states and torques.

    Returns:
        Share of the motion at which the mass matrix is positive definite, and the correlations there.
    """
    regressor, truth = make_truth(arm)
    q, dq, ddq, _ = draw_held_out(arm).evaluate(sample_times(HELD_OUT_S, OVERVIEW.rate))
    tau = regressor.torque(Motion(q, dq, ddq), truth)
    usable = dynamics.is_positive_definite(q.T)
    found = np.full_like(q, np.nan)
    if usable.any():
        found[:, usable] = dynamics.forward_dynamics(q.T[usable], dq.T[usable], tau.T[usable]).T
    fast = (np.abs(dq) > FEWEST_SPEED) & usable
    pairs = [(f[own], t[own]) for f, t, own in zip(found, ddq, fast, strict=True)]
    return float(usable.mean()), [float(np.corrcoef(*pair)[0, 1]) if len(pair[0]) > 1 else math.nan for pair in pairs]


def is_refused(arm, parameters):
    """Whether `simulate` refuses the model."""
    try:
        make_usable_dynamics(parameters, load_arm(arm).urdf, parameters.robot.joint_names, True)
    except InputError:
        return True
    return False


def identify_draw(arm, recipe, motions, seed):
    """Identify from a draw of the noise: line of the record."""
    given = RECIPES[recipe]
    settings = Settings(
        terms=TERMS, estimator=given.estimator, velocity="derivative", reversal_speed=0.05, rest_speed=0.001
    )
    seeds = np.random.default_rng([seed, *recipe.encode()]).integers(2**31, size=len(given.motions) + 1)
    data = [
        simulate(arm, name, *motions[name], given.sampling, int(one))
        for name, one in zip(given.motions, seeds[:-1], strict=True)
    ]
    other = simulate(arm, "other", draw_held_out(arm), HELD_OUT_S, given.sampling, int(seeds[-1]))
    found = identify(data, [other], load_arm(arm), settings, "benchmark")
    usable, correlations = correlate(arm, Dynamics.from_parameters(found.parameters))
    refused, error = is_refused(arm, found.parameters), float(found.evaluation.held_out.all_joints_nrmse)
    return {"refused": refused, "usable": usable, "correlations": correlations, "error": error}


def draw_efficient(arm, recipe, motions, subset):
    """Draw parameters around the truth with the covariance of an efficient estimator: lines of the record.

    It is the inverse of the Fisher information of all samples about the base parameters, at the true noise of the
    efforts, the true motion and the true law of friction: no unbiased estimate has smaller standard deviations.
    """
    regressor, truth = make_truth(arm)
    base, given = compute_base_parameters(regressor), RECIPES[recipe]
    information = Information(regressor, base, np.full(len(regressor.model.joint_names), NOISE))
    total = 0.0
    for motion, seconds in (motions[name] for name in given.motions):
        q, dq, ddq, _ = motion.evaluate(sample_times(seconds, given.sampling.rate))
        total = total + information.matrix(Motion(q, dq, ddq))
    rng = np.random.default_rng(0)
    errors = rng.multivariate_normal(np.zeros(len(total)), np.linalg.inv(total), BOUND_DRAWS, method="cholesky")
    of_bodies = base.independent < 10 * len(regressor.model.body_names)
    errors *= {"": True, "friction": ~of_bodies, "bodies": of_bodies}[subset]
    lines = []
    for error in errors:
        usable, correlations = correlate(arm, Dynamics(regressor, base.independent, base.mapping @ truth + error))
        lines.append({"refused": usable < 1.0, "usable": usable, "correlations": correlations})
    return lines


def run(record):
    """Append the rows that the record lacks."""
    known = {(line["arm"], line["recipe"], line["row"]) for line in read_rows(record)}
    for arm in ARMS:
        rows = [(arm, recipe, row) for recipe, given in RECIPES.items() for row in ("ours", *given.bounds)]
        lacking = [one for one in rows if one not in known]
        motions = design_motions(arm) if lacking else {}
        for _, recipe, row in lacking:
            if row == "ours":
                draws = [identify_draw(arm, recipe, motions, seed) for seed in range(DRAWS)]
            else:
                draws = draw_efficient(arm, recipe, motions, RECIPES[recipe].bounds[row])
            for draw in draws:
                append_row(record, {"arm": arm, "recipe": recipe, "row": row} | draw)
            print(arm, recipe, row, file=sys.stderr)


def compute_own_torques(arm):
    """Inertia that each joint feels of its own in the true arm, and its share of the torque at the top acceleration."""
    regressor, truth = make_truth(arm)
    dynamics = Dynamics(regressor, np.arange(len(truth)), truth)
    q, _, ddq, _ = draw_held_out(arm).evaluate(sample_times(HELD_OUT_S, OVERVIEW.rate))
    inertia = np.diagonal(dynamics.mass_matrix(q.T), axis1=1, axis2=2).T
    return [float(np.sqrt(np.mean((m * a) ** 2))) for m, a in zip(inertia, ddq, strict=True)]


HEAD = f"""# Forward dynamics of five arms

Written by `benchmarks/forward_models.py`. The recipe of [planar3r](../docs/papers/planar3r.md): one joint moves at a
time (`design --form sequential_sine`), `stepwise`; then `consistent` from the same file; then with one Fourier motion
of all joints more (`design --form fourier`, {PERIODS["fourier"]} periods of 10 s), all at {OVERVIEW.rate:g} Hz with
{OVERVIEW.position_noise:g} rad of noise. Last, one motion alone, designed for the inertias of the joints
(`design --for computed_torque`, {PERIODS["computed torque"]} periods of 10 s), at {ENCODERS.rate:g} Hz with
{ENCODERS.position_noise:g} rad. Arms are {HEAVIER - 1:.0%} heavier than their URDFs, friction of {VISCOUS:g} N m s/rad
and {SLIDING:g} N m, noise of {NOISE:g} N m in every sample; designs by the small search of the test, without a check of
collisions.

Values: correlation of the forward dynamics with the true acceleration along another motion, from its true states and
torques, joint by joint, where it is faster than {FEWEST_SPEED:g} rad/s and the mass matrix is positive definite; median
of {DRAWS} draws of the noise (lowest to highest). Refused: share of the draws whose model `simulate` refuses.

Efficient: the bound by the information in the data. Parameters are drawn {BOUND_DRAWS} times around the truth with the
covariance of an efficient estimator, the inverse of the Fisher information of all samples at the true motion, noise and
law of friction; median (5 % to 95 %). Refused: share without a positive-definite mass matrix along the motion.
`consistent` knows more than the data, that every body is real, and may be better. Errors of friction alone: the errors
of bodies are set to zero; of bodies alone: those of friction.

Inertia: RMS of the torque that accelerates the joint's own inertia along the motion [N m]. Where it is far below the
friction, an error of the friction of a few per mille is as large, and the acceleration of this joint is not predicted.
"""


def table(lines):
    """A table for each arm: rows of recipes and bounds, columns of joints."""
    text = HEAD
    for arm in ARMS:
        own = [line for line in lines if line["arm"] == arm]
        if not own:
            continue
        inertia = compute_own_torques(arm)
        joints = range(1, len(inertia) + 1)
        text += f"\n## {arm}\n\n| | {' | '.join(map(str, joints))} | refused | torque error |\n"
        text += "|---" * (len(joints) + 3) + "|\n"
        text += f"| inertia [N m] | {' | '.join(f'{value:.2g}' for value in inertia)} | | |\n"
        for recipe, given in RECIPES.items():
            for row in ("ours", *given.bounds):
                draws = [line for line in own if (line["recipe"], line["row"]) == (recipe, row)]
                text += write_row(recipe if row == "ours" else row, draws) if draws else ""
    return text


def write_row(name, draws):
    """Row of a recipe or of its bound."""
    ends = (5, 95) if "error" not in draws[0] else (0, 100)
    cells = [name]
    for values in np.array([line["correlations"] for line in draws]).T:
        known = values[np.isfinite(values)]
        low, high = np.percentile(known, ends) if len(known) else (math.nan, math.nan)
        cells.append(f"{np.median(known):.3f} ({low:.3f} to {high:.3f})" if len(known) else "-")
    cells.append(f"{np.mean([line['refused'] for line in draws]):.0%}")
    cells.append(f"{np.median([line['error'] for line in draws]):.2%}" if "error" in draws[0] else "")
    return f"| {' | '.join(cells)} |\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, default=Path("forward_models.jsonl"))
    parser.add_argument("--table", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    run(options.record)
    options.table.write_text(table(read_rows(options.record)))


if __name__ == "__main__":
    main()
