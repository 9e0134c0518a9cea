# SPDX-License-Identifier: Apache-2.0
"""Chen et al. 2021: two flexible joints, excited by polynomials and identified step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.estimators.stepwise import MAX_CONDITION_NUMBER, StepwiseSolution
from robot_dyn_id.excitation.design.search import Design
from robot_dyn_id.excitation.forms.polynomial import Polynomial
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.flexible import Experiment, FlexibleModel
from robot_dyn_id.flexible.rows import list_rows_of
from robot_dyn_id.model.kinematics import Kinematics
from robot_dyn_id.papers.figures import Extent, Figure, Reproduction, Spread, find_missing_extra
from robot_dyn_id.papers.flexible2r.arm import (
    LOW_PASS,
    ORDERS,
    PERIOD,
    START,
    WIDTH,
    add_noise,
    compare_factorization,
    compare_stiffness_with_motor,
    compute_gravity_by_cross_products,
    compute_infinity_norms,
    compute_ranks,
    identify_improved,
    link_side,
    list_true_values,
    make_arm,
    make_experiments,
    thin_experiments,
)
from robot_dyn_id.papers.flexible2r.excitation import (
    JOINTS,
    TIMES,
    compare_readings,
    compute_friction_condition,
    design_from_the_start,
    find_amplitude_ratios,
    find_closed_form,
    find_friction_within_limits,
    free_coefficients,
    plan,
    search_motion,
)
from robot_dyn_id.progress import Progress, Stage
from robot_dyn_id.report.drawing import Curve, Drawing, Panel

__all__ = ["JOINTS", "PUBLISHED", "START", "design_from_the_start", "plan", "reproduce"]

PUBLISHED = {
    "friction": {"link 1": 3.2883, "link 2": 3.2901, "both": 3.3003},
    "no friction": {"link 1": 5.7577, "link 2": 2.0393, "both": 4.2574},
}
"""Table 3: raw condition numbers, those of friction with velocities in deg/s."""

LAST_DIGIT = 1.5e-4
"""Tolerance of the table: one unit of the last digit, and half of one for its rounding."""

READING = "deg/s and 2 of 251 signs 0 are our reading of Table 3"
"""Reason why condition numbers of friction are not compared: units and signs are inferred from the printed ones."""

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
    "factorization": 1e-12,
    "gravity": 1e-9,
    "unidentifiable": 0,
}
"""Acceptance limits of this package: condition numbers; errors in % of the truth; ratios of errors of two orders.
Ranks are the largest that the columns of `compute_ranks` can have: both links with friction; with offsets; offset and
Coulomb friction coincide without reversals; ...; if joint 2
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

SHOWN = ("paper's order, filtered columns", "paper's criterion", "improved order")
"""Orders with their own figures; the others are mentioned in the explanation."""

CRITERIA = ("improved order", "paper's criterion")
"""Orders whose only difference is the criterion: condition number of unit-norm or of raw columns."""

EQUAL_ERRORS = 1e-6
"""Difference of a ratio of errors from 1 below which both orders have the same step: rounding."""

RATED = ("I1", "I2", "fv1", "fc1", "fv2", "fc2", "B1", "B2", "K1", "K2")
"""Parameters that depend on the motions: gravity and offsets are those of the poses."""

SWEEPS: dict[str, tuple[tuple[float, float, float], ...]] = {
    "range of the motion": ((5.0, 500.0, 0.25), (5.0, 500.0, 0.5), (5.0, 500.0, 1.0)),
    "time of the motion": ((2.5, 500.0, 1.0), (5.0, 500.0, 1.0), (10.0, 500.0, 1.0)),
    "sampling rate": ((5.0, 50.0, 1.0), (5.0, 100.0, 1.0), (5.0, 500.0, 1.0)),
}
"""Conclusions 3 and 4 of the paper: period [s], sampling rate [Hz], and amplitude as a share of the largest one."""

ROTOR_MASS = 3.0
"""Mass of the rotor of joint 2 with which equations 4 and 5 are compared [kg]."""

CLAIMS = {
    0: "the paper: full rank only without friction",
    4: "the paper: never of full rank; so it is of standard parameters",
}


def reproduce(extent: Extent, progress: Progress) -> Reproduction:
    """Reproduce excitation, ranks, and identification in the paper's order and in that given by rank and condition."""
    figures: list[Figure] = []
    drawings: list[Drawing] = []
    _excitation(extent, progress, figures, drawings)
    model = make_arm()
    progress(Stage("ranks of pseudo-observations"))
    figures += [*_gravity(model), *_ranks(model)]
    progress(Stage("simulation of the poses and of three motions"))
    clean = make_experiments(model)
    recorded = add_noise(clean, 0)
    figures += _stiffness(model, recorded[-1])
    progress(Stage("range, time and sampling rate of the motion"))
    swept = _sweeps(model, extent.seeds)
    figures += [*compare_printed_conclusions(), *_conclusions(swept)]
    plain = {
        order: {name: float(error[0]) for name, error in _relative(model, [find(model, clean)]).items()}
        for order, find in ORDERS.items()
    }
    found = _identified(model, [recorded, *(add_noise(clean, draw) for draw in range(1, extent.seeds))], progress)
    errors = {order: _relative(model, [one[order] for one in found]) for order in ORDERS}
    figures += _side_by_side(errors, plain)
    figures += _criteria(model, found)
    first = found[0]["improved order"]
    often, times, several = _most_common_order(found, "improved order")
    by_criterion = _most_common_order(found, "paper's criterion")
    figures.append(
        Figure(
            "groups that the planner cannot identify", len(first.plan.unidentifiable), target=TARGETS["unidentifiable"]
        )
    )
    drawings += [*_motion(model, recorded, first), _by_order(errors), _swept(swept)]
    notes = (
        "the paper prints no masses, friction or motors: those of urdf/flexible2r.urdf and of `TRUTH` are "
        "chosen, so errors are of a simulation and have no published counterpart",
        f"friction of joints and plant: fc tanh(v / {WIDTH:g} rad/s); draws of noise: {extent.seeds}",
        "quartiles of an rms error are those of the single draws, without sign",
        f"improved order found most often, from {times} of {extent.seeds} draws, {several} orders in all: {often}",
        f"order by the paper's criterion, from {by_criterion[1]} of {extent.seeds} draws, {by_criterion[2]} in all: "
        f"{by_criterion[0]}",
        "both criteria see the same poses and motions through the same filters; the paper's printed order has no poses",
    )
    source = "Chen et al., stepwise dynamic parameter identification of robots with flexible joints, 2021"
    return Reproduction("flexible2r", source, tuple(figures), notes, tuple(drawings))


def _excitation(extent: Extent, progress: Progress, figures: list[Figure], drawings: list[Drawing]) -> None:
    """Add the figures of Table 3."""
    exact = find_closed_form(2)
    figures.append(
        Figure(
            "friction: exact optimum, 2 of 251 signs 0",
            exact,
            target=TARGETS["optimum"],
            agreement=OPTIMUM_ERROR,
            why=f"1: {find_closed_form(1):.4f}, 3: {find_closed_form(3):.4f}",
        )
    )
    histories: dict[str, Design] = {}
    for case, published in PUBLISHED["friction"].items():
        progress(Stage(f"excitation of {case}"))
        found = histories[f"{case}, gradients"] = search_motion(case, True, 8)
        reached = compute_friction_condition(found.excitation)
        figures.append(
            Figure(
                f"friction, {case}: condition number, raw, in deg/s ({_size(found.excitation)})",
                reached,
                published,
                "lower",
                LAST_DIGIT,
                conditions=READING,
                why="which only so small a motion reaches in deg/s; in rad/s all limits allow "
                f"{find_friction_within_limits(case):.3g}",
            )
        )
        wide = search_motion(case, False, 10)
        reached = compute_friction_condition(wide.excitation, "columns", 1.0)
        figures.append(
            Figure(
                f"friction, {case}: degree 10, unit-norm columns, all limits",
                reached,
                better="lower",
                target=TARGETS["degree 10"][case],
            )
        )
        if case == "both" or extent.full:
            progress(Stage(f"genetic search of {case}"))
            figures.append(_genetic(case, published, extent, histories))
    drawings += [_searches(histories), _trajectories(histories)]
    for given, words in ((4, "no jerk at both ends"), (3, "7 conditions as printed")):
        figures.append(
            Figure(
                f"free coefficients of degree 8, {words}",
                free_coefficients(8, 4, given),
                target=TARGETS["free coefficients"][given],
            )
        )
    progress(Stage("readings of the condition numbers without friction"))
    for case, published in PUBLISHED["no friction"].items():
        every = list(compare_readings(case))
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


def _genetic(case: str, published: float, extent: Extent, histories: dict[str, Design]) -> Figure:
    name = f"friction, {case}: genetic search of Table 2, raw, in deg/s"
    if missing := find_missing_extra("search"):
        return Figure.not_run(name, missing, published=published, better="lower", agreement=LAST_DIGIT)
    reached = []
    for seed in range(1, (extent.slow_seeds if extent.full else 1) + 1):
        found = search_motion(case, True, 8, genetic=True, seed=seed)
        histories.setdefault(f"{case}, genetic", found)
        reached.append(compute_friction_condition(found.excitation))
    return Figure.from_spread(
        name,
        Spread(np.array(reached)),
        published=published,
        better="lower",
        agreement=LAST_DIGIT,
        conditions=READING,
        why=f"population 20, 800 generations, 0.8, 0.2; {_size(histories[f'{case}, genetic'].excitation)}; nothing is "
        f"below the exact optimum {find_closed_form(2):.4f}",
    )


def _size(motion: Trajectory) -> str:
    """Size of a motion: largest excursion and speed of a joint."""
    q, dq, *_ = motion.evaluate(TIMES)
    excursion, speed = np.rad2deg(np.abs(q - q[:, :1]).max()), np.rad2deg(np.abs(dq).max())
    return f"a motion of {excursion:.1f} deg at {speed:.1f} deg/s"


def _trajectories(histories: dict[str, Design]) -> Drawing:
    """Draw angle, velocity and acceleration of the optimal motions (Figs. 6 and 7)."""
    t = np.linspace(0.0, PERIOD, 251)
    panels = []
    for order, unit in enumerate(("angle [deg]", "velocity [deg/s]", "acceleration [deg/s^2]")):
        curves = []
        for name, found in histories.items():
            case, _, search = name.partition(", ")
            assert isinstance(found.excitation, Polynomial)
            states = design_from_the_start(found.excitation).evaluate(t)[order]
            for joint, values in enumerate(np.rad2deg(states), 1):
                curves.append(Curve(f"{case}: joint {joint}, {search}" if len(states) > 1 else name, t, values))
        panels.append(Panel("time [s]", unit, tuple(curves)))
    return Drawing("flexible2r_trajectories", "Optimal motions of degree 8 for friction", tuple(panels))


def _gravity(model: FlexibleModel) -> Iterator[Figure]:
    """Figures of equations 4 and 5: gravity by cross products against the columns of the base parameters."""
    q = np.random.default_rng(0).uniform(model.model.limits.lower[:, None], model.model.limits.upper[:, None], (2, 50))
    rest = Motion(q, np.zeros_like(q), np.zeros_like(q))
    links = list_true_values(model)[: len(model.base.names)].copy()
    links[[model.base.names.index(name) for name in ("off1", "off2")]] = 0.0
    columns = model.regressor.dense(rest)[model.base.independent]
    first, second = Kinematics(model.model).poses(q).position[0, :2]
    for rotor, what in ((0.0, "links"), (ROTOR_MASS, f"links and a rotor of joint 2 of {ROTOR_MASS:g} kg")):
        heavier = links.copy()
        heavier[model.base.names.index("mx1")] += rotor * float(np.linalg.norm(second - first))
        expected = np.einsum("pjn,p->jn", columns, heavier)
        found = compute_gravity_by_cross_products(model, q, rotor)
        yield Figure(
            f"gravity by cross products, {what}: largest difference from the columns [N m]",
            float(np.abs(found - expected).max()),
            better="lower",
            target=TARGETS["gravity"],
            why="equations 4 and 5" + (": the rotor's mass is a part of h1x" if rotor else ""),
        )


def _ranks(model: FlexibleModel) -> Iterator[Figure]:
    """Figures of section 4.2, and the condition number for which the paper splits the link side."""
    for place, ((name, (rank, columns)), most) in enumerate(
        zip(compute_ranks(model).items(), TARGETS["ranks"], strict=True)
    ):
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
    truth = list_true_values(model)
    difference, lengths = compare_factorization(recorded)
    yield Figure(
        "motor and stiffness in one equation: columns are [Y_m, Y_k / N], largest relative difference (eq. 14, 15)",
        difference,
        better="lower",
        target=TARGETS["factorization"],
    )
    for joint, size in compute_infinity_norms(recorded).items():
        why = "the largest deflection of its spring, m / N - q [rad]"
        yield Figure(f"eq. 16, {joint}: infinity norm of Y_k", size, why=why)
    for joint, ratio in lengths.items():
        why = "it alone makes the raw condition number large"
        yield Figure(f"{joint}: longest column of Y_m over that of Y_k / N", ratio, why=why)
    for place, (observability, stiffness) in enumerate(compare_stiffness_with_motor(model, recorded).values(), 1):
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


Errors = Mapping[str, Mapping[str, Array]]
"""Absolute errors of every draw in % of the truth, shape (k,), by order and parameter."""


Recorded = Sequence[Experiment]
"""One draw of noise: poses and motions."""


def _identified(
    model: FlexibleModel, every: Sequence[Recorded], progress: Progress
) -> list[dict[str, StepwiseSolution]]:
    """Identify from every draw of noise in every order."""
    found = []
    for draw, recorded in enumerate(every, 1):
        progress(Stage(f"identification in {len(ORDERS)} orders", draw - 1, len(every)))
        found.append({order: find(model, recorded) for order, find in ORDERS.items()})
    return found


def _order(found: StepwiseSolution) -> str:
    """Steps of a solution as text."""
    return "; ".join(f"{n}. {', '.join(step.groups)}" for n, step in enumerate(found.plan.steps, 1))


def _relative(model: FlexibleModel, found: Sequence[StepwiseSolution]) -> dict[str, Array]:
    """Absolute relative errors of the parameters that are not zero [%], shape (k,) for k solutions."""
    truth = list_true_values(model)
    errors = np.abs(np.array([one.values - truth for one in found]))
    return {model.names[i]: 100.0 * errors[:, i] / abs(truth[i]) for i in np.flatnonzero(truth)}


def _rms(errors: Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _side_by_side(errors: Errors, plain: Mapping[str, Mapping[str, float]]) -> Iterator[Figure]:
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
        others = ", ".join(f"{order} {_rms(found[own]):.2g}" for order, found in errors.items() if order not in SHOWN)
        for order in SHOWN:
            ours = order == "improved order"
            why = f"without noise {plain[order][own]:.2g}" + (f"; {others}" if ours else "")
            yield Figure(
                f"{name}, {order}: rms error [%]",
                _rms(errors[order][own]),
                better="lower",
                target=TARGETS["errors"].get(name) if ours else None,
                why=why,
                spread=Spread(errors[order][own]),
            )
    for name in SIDE_BY_SIDE:
        improved_error, printed_error = (
            _rms(errors[order][NAMES[name]]) for order in ("improved order", "paper's order, filtered columns")
        )
        yield Figure(
            f"{name}: error of the improved order, with poses, by that of the paper's without, columns filtered alike",
            improved_error / printed_error,
            why="not the same data: the paper's printed order has no poses at rest",
        )


def _criteria(model: FlexibleModel, found: Sequence[dict[str, StepwiseSolution]]) -> Iterator[Figure]:
    """Figures on the paper's own raw criterion against that of unit-norm columns: same data, same filters."""
    same = np.array([float(_is_papers_sequence(_groups_in_order(one["paper's criterion"]))) for one in found])
    yield Figure(
        "paper's criterion: share of draws with link 2 before link 1, links before motors, motors before springs",
        float(same.mean()),
        spread=Spread(same),
        better="higher",
        target=1.0,
        why="the order that the paper prints, but for friction, which is not separated first",
    )
    truth = list_true_values(model)
    for name in SIDE_BY_SIDE:
        column = model.names.index(NAMES[name])
        errors = np.array([[abs(one[order].values[column] - truth[column]) for order in CRITERIA] for one in found])
        yield Figure.from_spread(
            f"{name}: error of the improved order over that of the paper's criterion",
            Spread(errors[:, 0] / errors[:, 1]),
            rerun=1.0,
            better="lower",
            agreement=EQUAL_ERRORS,
            comparisons=len(SIDE_BY_SIDE),
            why=f"draw by draw, same data, same filters; one of {len(SIDE_BY_SIDE)} comparisons, 95 % for all together",
        )


def _groups_in_order(found: StepwiseSolution) -> list[str]:
    return [group for step in found.plan.steps for group in step.groups]


def _is_papers_sequence(groups: Sequence[str]) -> bool:
    """Whether links come before motors, motors before springs, and link 2 before link 1."""
    link = ("gravity", "inertia", "offset", "friction")
    kinds = [("link", "motor", "spring").index("link" if g.startswith(link) else g.split(" ")[0]) for g in groups]
    joints = [group[-1] for group in groups if group.startswith(link)]
    return kinds == sorted(kinds) and joints == sorted(joints, reverse=True)


def _most_common_order(found: Sequence[dict[str, StepwiseSolution]], order: str) -> tuple[str, int, int]:
    """Order that most draws gave, their number, and the number of different orders."""
    orders = Counter(_order(one[order]) for one in found)
    often, times = orders.most_common(1)[0]
    return often, times, len(orders)


Swept = dict[str, list[tuple[tuple[float, float, float], Array]]]
"""For each sweep the conditions of `SWEEPS` with the mean error of every draw [%], shape (k,)."""


def _sweeps(model: FlexibleModel, draws: int) -> Swept:
    """Errors of the improved order over the conditions of `SWEEPS`: geometric mean of the errors of `RATED`."""
    truth = list_true_values(model)
    columns = [model.names.index(NAMES[name]) for name in RATED]
    plants: dict[tuple[float, float], list[Experiment]] = {}
    rated: dict[tuple[float, float, float], Array] = {}
    for condition in dict.fromkeys(one for conditions in SWEEPS.values() for one in conditions):
        period, rate, share = condition
        if (period, share) not in plants:
            plants[period, share] = make_experiments(model, period=period, share=share)
        found = [
            identify_improved(model, thin_experiments(add_noise(plants[period, share], draw), rate)).values[columns]
            for draw in range(draws)
        ]
        rated[condition] = 100.0 * np.exp(np.log(np.abs(np.array(found) / truth[columns] - 1.0)).mean(axis=1))
    return {name: [(one, rated[one]) for one in conditions] for name, conditions in SWEEPS.items()}


def compare_printed_conclusions() -> Iterator[Figure]:
    """Figures of conclusions 3 and 4 as printed: on the condition number of the friction columns."""
    shares = np.array([0.5, 2.0, 15.0])
    ratios = find_amplitude_ratios(shares)
    listed = ", ".join(f"{ratio:.3g} at {share:g}" for ratio, share in zip(ratios, shares, strict=True))
    yield Figure(
        "conclusion 3, range: condition number at half and twice the best amplitude over the smallest, lower of both",
        float(ratios[:2].min()),
        better="higher",
        target=1.0,
        why=f"it is not proportional to the range, as printed: {listed} times that amplitude",
    )
    for name, intervals, words in (
        ("sampling rate", (50, 5000), "10 Hz over that at 1 kHz, 5 s"),
        ("time", (50, 1000), "1 s over that of 20 s, 50 Hz"),
    ):
        few, many = (find_closed_form(2, number) for number in intervals)
        turn = find_closed_form(3, intervals[0])
        yield Figure(
            f"conclusion 4, {name}: smallest condition number of {words}",
            few / many,
            better="higher",
            target=1.0,
            why=f"it grows where rate and time are small, as printed: {few:.3f}, {many:.3f}; two signs are 0 of fewer "
            f"samples ({turn:.3f} where that of the turn is 0, too)",
        )


def _conclusions(swept: Swept) -> Iterator[Figure]:
    """Errors over range, time and sampling rate: what the condition number of conclusions 3 and 4 stands for."""
    for name, points in swept.items():
        values = ", ".join(
            f"{np.median(errors):.2g} % at T = {period:g} s, {rate:g} Hz, {share:.0%} of the amplitude"
            for (period, rate, share), errors in points
        )
        yield Figure.from_spread(
            f"{name}: error at the largest over that at the smallest",
            Spread(points[-1][1] / points[0][1]),
            better="lower",
            target=TARGETS["ratio"],
            why=f"{values}: medians of the geometric mean error of {len(RATED)} parameters, ten periods each",
        )


def _swept(swept: Swept) -> Drawing:
    """Draw the errors over range, time and sampling rate."""
    panels = []
    for (name, points), place, unit in zip(
        swept.items(), (2, 0, 1), ("share of the largest", "T [s]", "[Hz]"), strict=True
    ):
        x, y = np.array([one[place] for one, _ in points]), np.array([np.median(errors) for _, errors in points])
        panels.append(Panel(f"{name}, {unit}", "mean error [%]", (Curve("improved order", x, y),), "xy"))
    return Drawing("flexible2r_sweeps", "Errors over range, time and sampling rate", tuple(panels))


def _searches(histories: dict[str, Design]) -> Drawing:
    """Draw the optimization curves."""
    curves = []
    for name, found in histories.items():
        steps, figures = np.append(found.history, [[found.evaluations], [found.objective_value]], axis=1)
        curves.append(Curve(name, steps, np.exp(figures)))
    panel = Panel("evaluations of the objective", "condition number at the search's samples", tuple(curves), "xy")
    return Drawing("flexible2r_search", "Friction: best motion of degree 8 during the search", (panel,))


def _motion(model: FlexibleModel, recorded: Recorded, found: StepwiseSolution) -> Iterator[Drawing]:
    """Draw measured and modeled torques of both joints, and the springs."""
    panels, springs, both = [], [], recorded[-1]
    states, t = both.states(LOW_PASS), np.arange(both.q.shape[1]) / both.rate
    for row in list_rows_of(model, states):
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
        Curve(order, places, np.array([_rms(found[own]) for own in NAMES.values()]), "points")
        for order, found in errors.items()
    ]
    panel = Panel("parameter", "rms error [%]", tuple(curves), "y", tuple(NAMES))
    return Drawing("flexible2r_errors", "Errors of the parameters by order of identification", (panel,))
