# SPDX-License-Identifier: Apache-2.0
"""Value of designed motions of a 7-axis arm: against random ones, for parameters, one after another.

The condition number of unit-norm columns depends on which columns stand for the base parameters. Its figures are given
for the leftmost independent columns, which this package uses, and for the rightmost ones, which the goals were set
with; there motions differ more. Standard deviations of D-optimal and condition-optimal motions are compared as
geometric means, which do not depend on that choice.
"""

from __future__ import annotations

import argparse
import sys

from measuring import Goal, at_least, at_most, one_thread, table

if __name__ == "__main__":
    one_thread()

import time
from dataclasses import replace
from functools import partial

import arms
import numpy as np

from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.excitation.design.objectives import a_optimal
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS, SearchEffort
from robot_dyn_id.excitation.design.planning import DesignTask, make_design_task
from robot_dyn_id.excitation.design.problem import DesignProblem
from robot_dyn_id.excitation.design.search import Design, design
from robot_dyn_id.files.design import design_settings
from robot_dyn_id.parameters import BaseParameters

ACCELERATION = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
RANDOM, FREE = 1000, 1000
MANY = SearchEffort(draws=300, starts=24, finished=8)
WHOLE = {"clearance": 0.0, "velocity_scale": 0.95, "effort_scale": 1.0, "friction": 0.0}
WIDTH = 0.03  # of the smoothed Coulomb friction [rad/s]
WORST, PER_SEED, MEDIAN, WITH_CLEARANCE, DEVIATION = 10, 2.7, 3.0, 2.0, 0.6


def planned(**demands) -> DesignTask:
    """The arm with viscous and Coulomb friction, 5 harmonics, 10 s, its limits."""
    model = arms.model("panda")
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(WIDTH))))
    acceleration = dict(zip(model.joint_names, ACCELERATION, strict=True))
    return make_design_task(design_settings(acceleration=acceleration, **{**WHOLE, **demands}), model, regressor)


def rightmost(base: BaseParameters, regressor: Regressor) -> BaseParameters:
    """The same parameters, represented by the rightmost independent columns."""
    rows = regressor.dense(arms.motion(regressor.model, 200)).transpose(2, 1, 0).reshape(-1, len(regressor.names))
    chosen: list[int] = []
    directions = np.zeros((len(rows), 0))
    for column in range(len(regressor.names) - 1, -1, -1):
        left = rows[:, column]
        if (size := np.linalg.norm(left)) < 1e-9:
            continue
        left = left / size
        for _ in range(2):
            left = left - directions @ (directions.T @ left)
        if np.linalg.norm(left) > 1e-6:
            chosen.append(column)
            directions = np.column_stack([directions, left / np.linalg.norm(left)])
    assert len(chosen) == len(base.names)
    independent = np.array(sorted(chosen))
    return replace(base, independent=independent, names=tuple(regressor.names[i] for i in independent))


def against_random(seeds: int) -> list[Goal]:
    """Condition numbers of designs over that of the best of many random motions."""
    plan, goals = planned(objective="condition", effort_scale=0.0), []
    for columns in ("leftmost", "rightmost"):
        problem = plan.problem
        if columns == "rightmost":
            information = problem.information
            information = replace(information, base=rightmost(information.base, information.regressor))
            problem = replace(problem, information=information)
        # the noise of the goal is the same for all joints
        problem = replace(problem, information=replace(problem.information, noise=np.ones(7)))
        rng = np.random.default_rng(100)
        best = min(problem.objective_value(problem.parametrization.random(rng, 1.0)) for _ in range(RANDOM))
        found = [design(problem, OPTIMIZERS["gradient"], seed, MANY) for seed in range(1, seeds + 1)]
        ratios = [float(np.exp(best - one.objective_value)) for one in found]
        details = {"best_random": float(np.exp(best)), "seconds": max(one.seconds for one in found)}
        name = f"design: condition, {columns} columns, best of {RANDOM} random ones over it"
        goals += [
            at_least(f"{name}, worst seed", min(ratios), PER_SEED, **details),
            at_least(f"{name}, median", float(np.median(ratios)), MEDIAN, best=float(np.exp(best)) / max(ratios)),
        ]
    return goals


def without_collisions() -> list[Goal]:
    """The same without collisions, 2 cm in the search."""
    plan = planned(objective="condition", effort_scale=0.0, clearance=0.02)
    problem, clearance = plan.problem, plan.clearance
    information = problem.information
    problem = replace(
        problem,
        information=replace(information, base=rightmost(information.base, information.regressor), noise=np.ones(7)),
    )
    rng, best, free = np.random.default_rng(200), np.inf, 0
    fine = np.arange(0.0, problem.parametrization.duration, 1e-3)
    while free < FREE:
        x = problem.parametrization.random(rng, 1.0)
        q = problem.parametrization.trajectory(x).evaluate(fine[::20])[0]
        if clearance.smallest(q)[0].min() <= 0.0:
            continue
        free += 1
        figure, finely = problem.objective_value(x), problem.parametrization.trajectory(x).evaluate(fine)[0]
        if figure < best and not clearance.encounters(fine, finely):
            best = figure
    began = time.perf_counter()
    found = design(problem, OPTIMIZERS["gradient"], 1, SearchEffort(draws=200, starts=12, finished=4))
    seconds = time.perf_counter() - began
    touches = len(clearance.encounters(fine, found.excitation.evaluate(fine)[0]))
    name = "design without collisions, rightmost columns"
    return [
        at_least(
            f"{name}: best of {FREE} free random ones over it",
            float(np.exp(best - found.objective_value)),
            WITH_CLEARANCE,
            best_random=float(np.exp(best)),
            condition=float(np.exp(found.objective_value)),
        ),
        at_most(f"{name}: pairs that touch on a grid of 1 ms", touches, 0),
        at_most(f"{name}: time [s]", seconds, 120.0),
    ]


def deviations(problem: DesignProblem, found: Design, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations of the parameters: by the exact covariance, and of as many simulated identifications."""
    motion = Motion(*found.excitation.evaluate(np.arange(0.0, 10.0, 0.01))[:3])
    regressor, base, noise = problem.information.regressor, problem.information.base, problem.information.noise
    rows = regressor.dense(motion)[base.independent].transpose(2, 1, 0) / noise[None, :, None]
    rows = rows.reshape(-1, len(base.names))
    exact = np.sqrt(np.linalg.inv(rows.T @ rows).diagonal())
    draws = np.random.default_rng(3).normal(size=(len(rows), runs))
    return exact, np.linalg.lstsq(rows, draws, rcond=None)[0].std(axis=1, ddof=1)


def for_parameters() -> list[Goal]:
    """D-optimal against condition-optimal motions."""
    spread = {}
    for objective in ("d_optimal", "condition"):
        problem = planned(objective=objective).problem
        found = design(problem, OPTIMIZERS["gradient"], 1, MANY)
        spread[objective] = deviations(problem, found, 100)
    ratios = [
        float(np.exp(np.mean(np.log(mine) - np.log(theirs))))
        for mine, theirs in zip(spread["d_optimal"], spread["condition"], strict=True)
    ]
    name = "design: standard deviations, D-optimal over condition-optimal"
    return [at_most(f"{name}, exact", ratios[0], DEVIATION), at_most(f"{name}, 100 runs", ratios[1], DEVIATION)]


def one_after_another() -> list[Goal]:
    """A second motion for the weakest parameters against the first one once more."""
    goals = []
    truth = np.abs(base_values(planned().problem))
    for first, goal in (("random", 2.0), ("condition", 2.0), ("d_optimal", 1.1)):
        problem = planned(objective="condition" if first == "condition" else "d_optimal").problem
        if first == "random":
            x = problem.parametrization.random(np.random.default_rng(7), 1.0)
        else:
            x = design(problem, OPTIMIZERS["gradient"], 1, MANY).coefficients
        known = problem.information_matrix(x)
        relative = np.sqrt(np.linalg.inv(known).diagonal()) / truth
        weak = np.argsort(relative)[-WORST:]
        scale = np.maximum(truth, 1e-9)
        wanted = partial(a_optimal, chosen=weak, scale=scale)
        second = design(replace(problem, prior=known, objective=wanted), OPTIMIZERS["gradient"], 2, MANY)
        again = (relative / np.sqrt(2.0))[weak].sum()
        designed = (second.standard_deviations / truth)[weak].sum()
        goals.append(at_least(f"design after a {first} motion: the first once more over it", again / designed, goal))
    return goals


def base_values(problem: DesignProblem) -> np.ndarray:
    """The truth: the URDF's base parameters, friction 1 N m s and 1 N m."""
    base, model = problem.information.base, problem.information.regressor.model
    full = np.concatenate([model.inertial_parameters, np.ones(2 * len(model.joint_names))])
    values = base.mapping @ full
    return np.where(np.abs(values) > 1e-6, values, 1.0)


PARTS = {
    "random": against_random,
    "collisions": lambda seeds: without_collisions(),
    "deviations": lambda seeds: for_parameters(),
    "sequence": lambda seeds: one_after_another(),
}


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    for part in arguments.parts or PARTS:
        print(table(PARTS[part](arguments.seeds)), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, ".")
    main()
