# SPDX-License-Identifier: Apache-2.0
"""Chen et al. 2021: two flexible joints, excited by polynomials and identified step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.estimators.stepwise import MAX_CONDITION_NUMBER, StepwiseSolution
from robot_dyn_id.excitation.design.search import Design
from robot_dyn_id.flexible import Experiment, FlexibleModel
from robot_dyn_id.flexible.rows import rows_of
from robot_dyn_id.papers.figures import Extent, Figure, Reproduction, missing_extra
from robot_dyn_id.papers.flexible2r.arm import (
    LOW_PASS,
    ORDERS,
    START,
    WIDTH,
    arm,
    experiments,
    link_side,
    noisy,
    ranks,
    stiffness_with_motor,
    true_values,
)
from robot_dyn_id.papers.flexible2r.excitation import (
    JOINTS,
    closed_form,
    free_coefficients,
    friction_condition,
    friction_within_limits,
    from_the_start,
    plan,
    readings,
    searched,
)
from robot_dyn_id.progress import Progress
from robot_dyn_id.report.drawing import Curve, Drawing, Panel

__all__ = ["JOINTS", "PUBLISHED", "START", "from_the_start", "plan", "reproduce"]

PUBLISHED = {
    "friction": {"link 1": 3.2883, "link 2": 3.2901, "both": 3.3003},
    "no friction": {"link 1": 5.7577, "link 2": 2.0393, "both": 4.2574},
}
"""Table 3: raw condition numbers, those of friction with velocities in deg/s."""

LAST_DIGIT = 1.5e-4
"""Tolerance of the table: one unit of the last digit, and half of one for its rounding."""

TARGETS: dict[str, Any] = {
    "optimum": 3.2882,
    "degree 10": {"link 1": 2.78, "link 2": 2.52, "both": 2.86},
    "free coefficients": {4: 1, 3: 2},  # by derivatives that are given at the end
    "ranks": (10, 12, 10, 6, 6, 6, 6, 4),
    "no noise": 0.1,
    "errors": {
        "I1": 8.0,
        "I2": 8.0,
        "h1x": 0.2,
        "h2x": 0.2,
        "fv1": 2.0,
        "fc1": 2.0,
        "fv2": 2.0,
        "fc2": 2.0,
        "B1": 2.0,
        "B2": 2.0,
        "K1": 0.1,
        "K2": 0.1,
    },
    "ratio": 1.0,
    "unidentifiable": 0,
}
"""Acceptance limits of this package: condition numbers; errors in % of the truth; ratios of errors of two orders.
Ranks are the largest that the columns of `ranks` can have: both links with friction; with offsets; offset and Coulomb
friction coincide without reversals; ...; if joint 2
moves alone, the weight of link 1 and the offset of joint 1 coincide."""

OPTIMUM_ERROR = 5e-4
"""Largest distance from the optimum."""

NAMES = {
    "I1": "Izz1",
    "I2": "Izz2",
    "h1x": "mx1",
    "h1y": "my1",
    "h2x": "mx2",
    "h2y": "my2",
    "fv1": "fv1",
    "fc1": "fc1",
    "fv2": "fv2",
    "fc2": "fc2",
    "M01": "off1",
    "M02": "off2",
    "B1": "Jm1",
    "B2": "Jm2",
    "K1": "K1",
    "K2": "K2",
}
"""Names of the parameters in this package by their names in the paper; the paper has B_mf1 for fvm1."""

SIDE_BY_SIDE = ("I1", "I2", "h1x", "h2x", "M01", "M02")
"""Parameters for which the improved order is to be better than the paper's."""

SHOWN = ("paper's order", "improved order")
"""Orders with their own figures; the others are mentioned in the explanation."""

DRAWS = 10
"""Draws of noise per seed."""

CLAIMS = {
    0: "the paper: full rank only without friction",
    4: "the paper: never of full rank; so it is of standard parameters",
}


def reproduce(extent: Extent, progress: Progress) -> Reproduction:
    """Reproduce excitation, ranks, and identification in the paper's order and in that given by rank and condition."""
    figures: list[Figure] = []
    drawings: list[Drawing] = []
    _excitation(extent, progress, figures, drawings)
    model = arm()
    progress("ranks of pseudo-observations")
    figures += _ranks(model)
    progress("simulation of the poses and of three motions")
    clean = experiments(model)
    recorded, draws = noisy(clean, 0), DRAWS * extent.slow_seeds
    figures += _stiffness(model, recorded[-1])
    plain = {
        order: _relative(model, np.abs(find(model, clean).values - true_values(model)))
        for order, find in ORDERS.items()
    }
    found, errors = _identified(model, [recorded, *(noisy(clean, draw) for draw in range(1, draws))], progress)
    figures += _side_by_side(errors, plain)
    first, orders = found[0]["improved order"], Counter(_order(one["improved order"]) for one in found)
    often, times = orders.most_common(1)[0]
    figures.append(
        Figure(
            "groups that the planner cannot identify", len(first.plan.unidentifiable), target=TARGETS["unidentifiable"]
        )
    )
    drawings += [*_motion(model, recorded, first), _by_order(errors)]
    notes = (
        "the paper prints no masses, friction or motors: those of urdf/flexible2r.urdf and flexible2r_arm.py are "
        "chosen, so errors are of a simulation and have no published counterpart",
        f"friction of joints and plant: fc tanh(v / {WIDTH:g} rad/s); {draws} draws of noise",
        f"order found most often, from {times} of {draws} draws, {len(orders)} orders in all: {often}",
    )
    source = "Chen et al., stepwise dynamic parameter identification of robots with flexible joints, 2021"
    return Reproduction("flexible2r", source, tuple(figures), notes, tuple(drawings))


def _excitation(extent: Extent, progress: Progress, figures: list[Figure], drawings: list[Drawing]) -> None:
    """Add the figures of Table 3."""
    exact = closed_form(2)
    figures.append(
        Figure(
            "friction: exact optimum, 2 of 251 signs 0",
            exact,
            target=TARGETS["optimum"],
            agreement=OPTIMUM_ERROR,
            why=f"1: {closed_form(1):.4f}, 3: {closed_form(3):.4f}",
        )
    )
    histories: dict[str, Design] = {}
    for case, published in PUBLISHED["friction"].items():
        progress(f"excitation of {case}")
        found = histories[f"{case}, gradients"] = searched(case, True, 8)
        reached = friction_condition(found.excitation)
        figures.append(
            Figure(
                f"friction, {case}: condition number, raw",
                reached,
                published,
                "lower",
                LAST_DIGIT,
                why=f"deg/s; in rad/s all limits allow {friction_within_limits(case):.3g}",
            )
        )
        wide = searched(case, False, 10)
        reached = friction_condition(wide.excitation, "columns", 1.0)
        figures.append(
            Figure(
                f"friction, {case}: degree 10, unit-norm columns, all limits",
                reached,
                better="lower",
                target=TARGETS["degree 10"][case],
            )
        )
        if case == "both" or extent.full:
            progress(f"genetic search of {case}")
            figures.append(_genetic(case, published, histories))
    drawings.append(_searches(histories))
    for given, words in ((4, "no jerk at both ends"), (3, "7 conditions as printed")):
        figures.append(
            Figure(
                f"free coefficients of degree 8, {words}",
                free_coefficients(8, 4, given),
                target=TARGETS["free coefficients"][given],
            )
        )
    progress("readings of the condition numbers without friction")
    for case, published in PUBLISHED["no friction"].items():
        every = list(readings(case))
        nearest = min(every, key=lambda one: abs(one.least - published))
        figures.append(
            Figure(
                f"no friction, {case}: condition number, raw",
                nearest.least,
                published,
                "same",
                LAST_DIGIT,
                why=f"columns, units and limits are not printed; nearest of {len(every)} readings: {nearest}",
            )
        )


def _genetic(case: str, published: float, histories: dict[str, Design]) -> Figure:
    name, most = f"friction, {case}: genetic search of Table 2", max(PUBLISHED["friction"].values())
    if missing := missing_extra("search"):
        return Figure.not_run(name, missing, published=published, better="lower", agreement=LAST_DIGIT)
    found = histories[f"{case}, genetic"] = searched(case, True, 8, genetic=True)
    reached = friction_condition(found.excitation)
    return Figure(name, reached, published, "lower", LAST_DIGIT, most, "population 20, 800 generations, 0.8, 0.2")


def _ranks(model: FlexibleModel) -> Iterator[Figure]:
    """Figures of section 4.2, and the condition number for which the paper splits the link side."""
    for place, ((name, (rank, columns)), most) in enumerate(zip(ranks(model).items(), TARGETS["ranks"], strict=True)):
        yield Figure(f"rank, {name}, of {columns}", rank, target=float(most), why=CLAIMS.get(place, ""))
    whole = link_side(model).condition_numbers
    why = f"of unit-norm columns {whole['columns']:.3g}; above {MAX_CONDITION_NUMBER:g} the paper splits"
    yield Figure(
        "10 columns of the link side, paper's motion: condition number, raw",
        whole["none"],
        None,
        "higher",
        target=MAX_CONDITION_NUMBER,
        why=why,
    )


def _stiffness(model: FlexibleModel, recorded: Experiment) -> Iterator[Figure]:
    """Figures of section 4.5: a condition number that depends on units."""
    truth = true_values(model)
    for place, (observability, stiffness) in enumerate(stiffness_with_motor(model, recorded).values(), 1):
        numbers, true = observability.condition_numbers, truth[model.names.index(f"K{place}")]
        name = f"stiffness {place} with the motor's columns"
        yield Figure(
            f"{name}: condition number, raw",
            numbers["none"],
            None,
            "higher",
            target=MAX_CONDITION_NUMBER,
            why="the paper: extremely large, so that stiffness must not be identified jointly",
        )
        yield Figure(f"{name}: condition number, unit-norm columns", numbers["columns"], better="lower")
        yield Figure(
            f"{name}: error of K [%]",
            100.0 * abs(stiffness / true - 1.0),
            better="lower",
            why="identified jointly nevertheless, from one motion with noise",
        )


Errors = dict[str, dict[str, float]]
"""Errors in % of the truth, by order and parameter."""


Recorded = Sequence[Experiment]
"""One draw of noise: poses and motions."""


def _identified(
    model: FlexibleModel, every: Sequence[Recorded], progress: Progress
) -> tuple[list[dict[str, StepwiseSolution]], Errors]:
    """Identify from every draw of noise in every order; returns the solutions and the RMS errors over the draws."""
    found, truth = [], true_values(model)
    for draw, recorded in enumerate(every, 1):
        progress(f"identification in {len(ORDERS)} orders, draw {draw} of {len(every)}")
        found.append({order: find(model, recorded) for order, find in ORDERS.items()})
    errors = {order: np.array([one[order].values - truth for one in found]) for order in ORDERS}
    return found, {order: _relative(model, np.sqrt((x**2).mean(axis=0))) for order, x in errors.items()}


def _order(found: StepwiseSolution) -> str:
    """Steps of a solution as text."""
    return "; ".join(f"{n}. {', '.join(step.groups)}" for n, step in enumerate(found.plan.steps, 1))


def _relative(model: FlexibleModel, errors: Array) -> dict[str, float]:
    """Relative errors of the parameters that are not zero [%]."""
    truth = true_values(model)
    return {model.names[i]: 100.0 * float(errors[i] / abs(truth[i])) for i in np.flatnonzero(truth)}


def _side_by_side(errors: Errors, plain: Errors) -> Iterator[Figure]:
    """Figures of sections 4.6 and 4.7."""
    for order, found in plain.items():
        ours = order in ("improved order", "at once")
        yield Figure(
            f"{order}, no noise: worst error [%]",
            max(found.values()),
            better="lower",
            target=TARGETS["no noise"] if ours else None,
            why=f"of {len(found)} parameters",
        )
    for name, own in NAMES.items():
        others = ", ".join(f"{order} {found[own]:.2g}" for order, found in errors.items() if order not in SHOWN)
        for order in SHOWN:
            ours = order == "improved order"
            why = f"without noise {plain[order][own]:.2g}" + (f"; {others}" if ours else "")
            yield Figure(
                f"{name}, {order}: rms error [%]",
                errors[order][own],
                better="lower",
                target=TARGETS["errors"].get(name) if ours else None,
                why=why,
            )
    for name in SIDE_BY_SIDE:
        ratio = errors["improved order"][NAMES[name]] / errors["paper's order"][NAMES[name]]
        yield Figure(
            f"{name}: error of the improved order by that of the paper's",
            ratio,
            better="lower",
            target=TARGETS["ratio"],
        )


def _searches(histories: dict[str, Design]) -> Drawing:
    """Draw the optimization curves."""
    curves = []
    for name, found in histories.items():
        steps, figures = np.append(found.history, [[found.evaluations], [found.objective_value]], axis=1)
        curves.append(Curve(name, steps, np.exp(figures)))
    panel = Panel("evaluations of the objective", "condition number, raw", tuple(curves), "xy")
    return Drawing("flexible2r_search", "Friction: best motion of degree 8 during the search", (panel,))


def _motion(model: FlexibleModel, recorded: Recorded, found: StepwiseSolution) -> Iterator[Drawing]:
    """Draw measured and modeled torques of both joints, and the springs."""
    panels, springs, both = [], [], recorded[-1]
    states, t = both.states(LOW_PASS), np.arange(both.q.shape[1]) / both.rate
    for row in rows_of(model, states):
        if row.kind == "link":
            curves = Curve("measured", t, row.target), Curve("identified", t, row.rows @ found.values)
            panels.append(Panel("time [s]", f"torque of {row.joint} [N m]", curves))
        if row.kind == "spring":
            stiffness = model.columns(("K",), row.joint)[0]
            deflection = 1e3 * row.rows[:, stiffness]
            ends = np.array([deflection.min(), deflection.max()])
            line = 1e-3 * found.values[stiffness] * ends
            offset = row.rows[0].copy()
            offset[stiffness] = 0.0
            fitted = Curve(f"{found.values[stiffness]:.0f} N m/rad", ends, line + float(offset @ found.values))
            measured = Curve("measured", deflection[::10], row.target[::10], "points")
            springs.append(Panel("deflection [mrad]", f"torque of {row.joint} [N m]", (measured, fitted)))
    yield Drawing("flexible2r_torques", "Torque sensors, both joints moving, mean of ten periods", tuple(panels))
    yield Drawing("flexible2r_springs", "Springs", tuple(springs))


def _by_order(errors: Errors) -> Drawing:
    """Draw the errors of the parameters by order."""
    places = np.arange(len(NAMES), dtype=np.float64)
    curves = [
        Curve(order, places, np.array([found[own] for own in NAMES.values()]), "points")
        for order, found in errors.items()
    ]
    panel = Panel("parameter", "rms error [%]", tuple(curves), "y", tuple(NAMES))
    return Drawing("flexible2r_errors", "Errors of the parameters by order of identification", (panel,))
