# SPDX-License-Identifier: Apache-2.0
"""Wang et al., Sensors 2025, 25(18), 5749: three parallel axes, one joint excited by a sine at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.dynamics.base_parameters import (
    compute_base_parameters,
    compute_echelon,
    draw_random_motion,
    find_independent_columns,
    stack_regressor,
)
from robot_dyn_id.dynamics.crosscheck import MAX_DIFFERENCE_RATIO, compare_accelerations, cross_check
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.kronecker import PAPER_ORDER
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.stepwise import Observability
from robot_dyn_id.excitation.design.planning import DesignTask
from robot_dyn_id.excitation.forms.sequential import SequentialSine
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.papers.figures import MIN_DRAWS, Extent, Figure, Reproduction, Spread
from robot_dyn_id.papers.inputs import optimize_design, plan_of, read_settings_of
from robot_dyn_id.papers.planar3r.drawings import (
    draw_accelerations,
    draw_conditions,
    draw_errors,
    draw_runs,
    draw_torques,
)
from robot_dyn_id.papers.planar3r.experiment import (
    LARGE,
    EstimateDraws,
    SimulatedExperiment,
    design_one_motion,
    load_arm,
    make_sine,
    make_three_runs,
    make_validation,
)
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.progress import Progress, Stage
from robot_dyn_id.report.drawing import Curve, Drawing
from robot_dyn_id.version import __version__

SOURCE = "Wang et al., Sensors 2025, 25(18), 5749"

SCREWS = "config/screws/planar3r.yaml"
"""Table 1: joint axes and a point on each; the signs of 0.12 and 0.2425 are open."""

PUBLISHED: dict[str, Any] = {
    "rank": 9,
    "rank with friction": 15,
    "pivots": (3, 7, 8, 13, 17, 18, 23, 27, 28),
    "groupings": {
        "Izz1": {"m2": 0.1296, "m3": 0.1296},
        "mx1": {"m2": 0.36, "m3": 0.36},
        "my1": {},
        "Izz2": {"m3": 0.1296},
        "mx2": {"m3": -0.36},
        "my2": {},
        "Izz3": {},
        "mx3": {},
        "my3": {},
    },
    "values": {
        "Izz1": 5.888,
        "mx1": 5.199,
        "my1": 0.0469,
        "Izz2": 3.588,
        "mx2": -1.284,
        "my2": 0.0381,
        "Izz3": 0.111,
        "mx3": -0.287,
        "my3": 0.0016,
    },
    "viscous": (-157.56, -46.302, -9.562),
    "coulomb": (-40.402, -12.837, -2.922),
    "condition numbers": {"joint3": 47.73, "joint2": 52.95, "joint1": 54.34},
    "torque errors": {"joint1": 23.76, "joint2": 17.09, "joint3": 3.55},
}
"""Printed: rank and pivot columns (counted from 1, in the paper's order of parameters), Table 3 and its groupings,
condition numbers in the order in which joints are excited, RMS errors of torques measured on the robot [N m]."""

TARGETS: dict[str, Any] = {
    "groupings": 1e-12,
    "frames": 1e-12,
    "uniqueness": 1e-12,
    "difference from Pinocchio": MAX_DIFFERENCE_RATIO,
    "condition numbers": {"joint3": 35.5, "joint2": 39.0, "joint1": 43.0},
    "ideal norm": 5e-4,
    "ideal worst": 0.02,
    "within 2 sigma": 0.95,
    "correlation": 0.99,
}
"""Acceptance limits of this package; errors as a ratio to the truth."""

TURNS = {"joint1": 15.0, "joint2": 15.0, "joint3": 14.0}
"""Rotational speeds of the excitations [1/min]; printed with rad/s, which would need 4100 N m against friction."""

FRICTION = (Viscous(), Coulomb(0.0))
"""Friction model of the paper, with sgn(dq)."""

SPEEDS = np.geomspace(0.1, 15.0, 61)
"""Frequencies at which condition numbers are evaluated, up to the printed 15 rad/s [rad/s]."""

IDEAL, THREE, OWN, ONE = (
    "ideal sensors",
    "three runs, all torques (the paper)",
    "three runs, torque of the moving joint",
    "one designed motion",
)

ALL_ROWS = ESTIMATORS["generalized"]()
"""Estimator of the designed motion."""

MIN_COMPARED_SPEED = 0.1
"""Lowest joint speed at which accelerations are compared [rad/s]: at a reversal of friction all joints accelerate."""

SAMPLES = 12
"""Number of random samples from which the paper determines the rank."""

CHOSEN = "neither configuration nor columns are printed: posture 0, all torques, leftmost independent columns, raw"
"""Reason why the condition numbers of the printed sines are not compared."""

COMPARISONS = 3
"""Number of comparisons of the one motion with the paper's three runs: norm and largest error, standard deviations."""

RANDOM_SETS = 200
"""Number of sets of `SAMPLES` random samples from which the minimal set is computed again."""


def plan(joint: str, **given: Any) -> DesignTask:
    """Set up the design of one joint's sine: the paper's amplitude; configuration of all joints and frequency are free.

    The parameters are the independent columns of all three torques while the others are at rest: 7, 9 and 11 for
    joints 3, 2 and 1, the best reading of the paper's condition numbers.

    Args:
        joint: name of the moving joint.
        given: replacements of keys of the design file.
    """
    return plan_of(read_settings_of("planar3r", moving=(joint,), **given), load_arm(), FRICTION)


def reproduce(extent: Extent, progress: Progress) -> Reproduction:
    """Reproduce all steps of the paper from its URDF, then replace its three motions by one."""
    experiment = SimulatedExperiment.from_paper()
    progress(Stage("base parameters, compared with Pinocchio's equations"))
    figures = [*check_equations(experiment.model)]
    progress(Stage("condition numbers of the sines"))
    found, drawn = compute_sines(experiment.model, progress)
    simulated, more = compare_simulations(experiment, extent.seeds, progress)
    return Reproduction(
        "planar3r",
        SOURCE,
        (*figures, *found, *simulated),
        (
            f"{extent.seeds} draws of the noise in motions that are simulated once",
            "friction is simulated with positive coefficients; the paper prints negative ones",
            "noise of the sensors: config/planar3r.yaml; the paper states none",
        ),
        (drawn, *more),
    )


def check_equations(model: RobotModel) -> Iterator[Figure]:
    """Compute ranks, pivots, groupings, and agreement with Pinocchio."""
    rigid, motion = Regressor(model), draw_random_motion(model, 500, seed=1)
    few = draw_random_motion(model, SAMPLES)
    with_friction = Regressor(model, place_terms_on_joints(model, FRICTION))
    for name, regressor in (("rank", rigid), ("rank with friction", with_friction)):
        rank = compute_echelon(stack_regressor(regressor, few)).rank
        why = "of the printed equations and joints, whatever the random samples"
        yield Figure(f"{name}, {SAMPLES} samples", rank, PUBLISHED[name], why=why)
    order = [10 * body + place for body in range(3) for place in PAPER_ORDER]
    base = compute_base_parameters(rigid, order=order)
    pivots = np.argsort(order)[base.independent] + 1
    yield Figure(
        "pivot columns that are only in our set or only in the printed one",
        len({*pivots} ^ {*PUBLISHED["pivots"]}),
        target=0.0,
        why=f"ours: {', '.join(map(str, np.sort(pivots)))}",
    )
    printed = np.zeros_like(base.mapping)
    for row, name in enumerate(base.names):
        for column, factor in {name: 1.0, **PUBLISHED["groupings"].get(name, {})}.items():
            printed[row, rigid.names.index(column)] = factor
    yield Figure(
        "K_r: largest difference from the printed groupings",
        float(np.abs(base.mapping - printed).max()),
        better="lower",
        target=TARGETS["groupings"],
    )
    yield from check_uniqueness(rigid, order, base)
    chain = RobotModel.from_file(find_shared_file(SCREWS))
    apart = [np.abs(getattr(chain, name) - getattr(model, name)).max() for name in ("rotation", "translation", "axis")]
    yield Figure(
        "frames from the screw axes of Table 1, eq. 5 and 6: difference from the URDF",
        float(max(apart)),
        better="lower",
        target=TARGETS["frames"],
    )
    values = base.mapping @ model.inertial_parameters
    check = cross_check(rigid, motion)
    identified = Dynamics(rigid, base.independent, values)
    differences = {
        "torque": check.torque,
        "regressor": check.regressor,
        "regressor in Kronecker form": check.kronecker,
        "mass matrix, eq. 26": check.mass_matrix,
        "acceleration from the base parameters, eq. 28": compare_accelerations(identified, motion),
    }
    for name, difference in differences.items():
        yield Figure(
            f"{name}: difference from Pinocchio",
            difference,
            better="lower",
            target=TARGETS["difference from Pinocchio"],
        )
    modes = np.linalg.eigvals(-np.linalg.solve(identified.mass_matrix(np.zeros(3)), np.diag(PUBLISHED["viscous"])))
    yield Figure(
        "fastest velocity mode with friction as printed, eq. 28 [1/s]",
        float(modes.real.max()),
        why="positive: the arm would drive itself; with positive coefficients it is the negative",
    )


def check_uniqueness(regressor: Regressor, order: Sequence[int], base: BaseParameters) -> Iterator[Figure]:
    """Compute the minimal set again from other random samples."""
    places = np.sort(np.argsort(order)[base.independent])
    same, maps = 0, []
    for seed in range(RANDOM_SETS):
        rows = stack_regressor(regressor, draw_random_motion(regressor.model, SAMPLES, seed=seed))[:, order]
        pivots = find_independent_columns(rows)
        same += np.array_equal(pivots, places)
        maps.append(np.linalg.lstsq(rows[:, places], rows)[0])
    yield Figure(f"sets of {SAMPLES} random samples with the same pivots, of {RANDOM_SETS}", same, target=RANDOM_SETS)
    yield Figure(
        f"K_r: largest difference among the {RANDOM_SETS} sets",
        float(max(np.abs(one - maps[0]).max() for one in maps)),
        better="lower",
        target=TARGETS["uniqueness"],
    )


def compute_sines(model: RobotModel, progress: Progress) -> tuple[list[Figure], Drawing]:
    """Compute condition numbers of the paper's sines, of optimized ones, and over frequency."""
    figures, curves, marks = [], [], []
    regressor = Regressor(model, place_terms_on_joints(model, FRICTION))
    for name, published in PUBLISHED["condition numbers"].items():
        progress(Stage(f"designing a sine of {name}"))
        own = make_sine(model.joint_names.index(name), TURNS[name])
        best: Any = optimize_design("planar3r", plan(name)).excitation
        own_figure, best_figure = (compute_condition(regressor, motion) for motion in (own, best))
        sweep = np.array([compute_condition(regressor, replace(own, period=2.0 * np.pi / w), 1000) for w in SPEEDS])
        curves.append(Curve(name, SPEEDS, sweep))
        marks.append((2.0 * np.pi / own.period, published, 2.0 * np.pi / best.period, best_figure))
        digit = 0.005
        figures += [
            Figure(
                f"condition number, {name}, {TURNS[name]:g} r/min, posture 0",
                own_figure,
                published,
                agreement=digit,
                conditions=CHOSEN,
            ),
            Figure(
                f"condition number, {name}, designed",
                best_figure,
                published,
                "lower",
                digit,
                TARGETS["condition numbers"][name],
                conditions=f"posture and frequency optimized, {2.0 * np.pi / best.period:.2f} rad/s",
            ),
            Figure(
                f"frequency of the least condition number, {name}, posture 0 [rad/s]",
                float(SPEEDS[sweep.argmin()]),
                why=f"above it the number rises, to {sweep[-1]:.0f} at {SPEEDS[-1]:g} rad/s: faster is not better",
            ),
        ]
    at, published, best_at, least = np.array(marks).T
    curves += [Curve("published", at, published, "points"), Curve("designed, other postures", best_at, least, "points")]
    return figures, draw_conditions(curves)


def compute_condition(regressor: Regressor, motion: SequentialSine, samples: int = 4000) -> float:
    """Compute the raw condition number of one full period of a joint's sine: all torques, leftmost independent columns.

    Args:
        regressor: robot and friction.
        motion: motion of one joint.
        samples: number of samples in the period; the result is the same above some hundreds.
    """
    begin = (motion.turn - motion.period) / 2.0
    states = Motion(*motion.evaluate(begin + motion.period * np.arange(samples) / samples)[:3])
    rows = stack_regressor(regressor, states)
    return Observability.from_rows(rows[:, find_independent_columns(rows)]).condition_numbers["none"]


def compare_simulations(
    experiment: SimulatedExperiment, draws: int, progress: Progress
) -> tuple[list[Figure], list[Drawing]]:
    """Simulate the paper's three runs and one designed motion under the same noise, and evaluate the models."""
    motions, joint_by_joint = make_three_runs(TURNS), experiment.configuration.settings.estimator
    progress(Stage("simulating the three runs, the one motion and the motion to predict"))
    runs, one, held = (
        [experiment.run(m) for m in motions],
        [experiment.run(design_one_motion())],
        experiment.run(make_validation()),
    )
    ideal = joint_by_joint.fit(experiment.problem(experiment.exact(runs)))
    figures = [*compare_exact_figures(experiment.errors([ideal])), *rank_test(experiment, runs)]
    found, sets = {}, {IDEAL: [experiment.dynamics(ideal)]}
    for name, trials, estimator in ((THREE, runs, joint_by_joint), (OWN, runs, joint_by_joint), (ONE, one, ALL_ROWS)):
        estimates = []
        for seed in range(draws):
            progress(Stage(f"draws of noise: {name}", seed, draws))
            problem = experiment.problem(experiment.measured(trials, seed), all_torques=name == THREE)
            estimates.append(estimator.fit(problem))
        found[name], sets[name] = experiment.errors(estimates), [experiment.dynamics(one) for one in estimates]
        figures += compare_statistics(name, found[name])
    lengths = [sum(motion.duration for motion in motions), design_one_motion().duration]
    figures += [
        Figure(
            f"{ONE}: its length less that of the three runs [s]", lengths[1] - lengths[0], agreement=1e-9, target=0.0
        ),
        *compare_with_three_runs(found),
        *compare_table_3(experiment, found[THREE]),
    ]
    predicted, drawn = forward(experiment, held, sets)
    result = identify(
        experiment.measured(runs, 0),
        experiment.measured([held], 0),
        experiment.model,
        experiment.configuration.settings,
        __version__,
    )
    for joint in result.evaluation.held_out.joints:
        figures.append(
            Figure(
                f"torque on another motion, {joint.name}: RMS error [N m]",
                joint.rmse,
                PUBLISHED["torque errors"][joint.name],
                agreement=0.005,
                conditions="simulated, and the noise chosen here is most of it; measured in the paper",
            )
        )
    figures += compute_boxes(result)
    names = experiment.base.names
    drawings = [*draw_runs(experiment, runs), draw_torques(result), draw_errors(names, found), drawn]
    return [*figures, *predicted], drawings


def compare_exact_figures(exact: EstimateDraws) -> Iterator[Figure]:
    """Errors of the parameters from ideal sensors."""
    yield Figure(
        f"{IDEAL}: norm of the errors / norm of the parameters",
        exact.norms[0],
        better="lower",
        target=TARGETS["ideal norm"],
    )
    yield Figure(
        f"{IDEAL}: largest relative error of parameters above {LARGE:g}",
        exact.worst[0],
        better="lower",
        target=TARGETS["ideal worst"],
    )


def rank_test(experiment: SimulatedExperiment, runs: Sequence[Chunk]) -> Iterator[Figure]:
    """Compute the rank of [H tau] (section 3.2) with exact and with measured torques, and the error bound (eq. 29)."""
    rows = Factors.from_problem(experiment.problem(experiment.measured(runs, 0))).stack(np.ones(3))
    h, measured = rows[:, :-1], rows[:, -1]
    exact = h @ experiment.truth
    yield Figure("rank of H, three runs, all torques", compute_echelon(h).rank, target=PUBLISHED["rank with friction"])
    for name, torque in (("without noise", exact), ("with noise", measured)):
        yield Figure(
            f"rank of [H tau], {name}",
            compute_echelon(np.column_stack([h, torque])).rank,
            why=""
            if name == "without noise"
            else "always rank H + 1 with noise: it does not test whether the solution is unique, the rank of H does",
        )
    estimate = np.linalg.lstsq(h, measured)[0]
    relative = np.linalg.norm(estimate - experiment.truth) / np.linalg.norm(experiment.truth)
    noise = np.linalg.norm(measured - exact) / np.linalg.norm(exact)
    number = Observability.from_rows(h).condition_numbers["none"]
    yield Figure(
        "error bound, eq. 29: relative error of least squares over cond(H) |tau - H lambda| / |H lambda|",
        float(relative / (number * noise)),
        better="lower",
        target=1.0,
        why=f"{relative:.2g} against {number:.4g} x {noise:.2g}: true, and far above what the errors are",
    )


def compare_with_three_runs(found: Mapping[str, EstimateDraws]) -> Iterator[Figure]:
    """Compare the one motion with the paper's three runs, draw by draw: with all torques, and with the paper's rows."""
    one = found[ONE]
    for name, difference in ((THREE, ""), (OWN, "not the paper's scheme, which uses all torques")):
        for what, ratio in (
            ("norm of the errors", one.norms / found[name].norms),
            (f"largest relative error above {LARGE:g}", one.worst / found[name].worst),
        ):
            yield Figure.from_spread(
                f"{ONE} / {name}: {what}",
                Spread(ratio),
                better="lower",
                rerun=1.0,
                comparisons=COMPARISONS,
                conditions=difference,
                why="same length, same noise, within the ranges of the sines; found before the noise",
            )
    ratios = one.sigma / found[THREE].sigma
    each = np.median(ratios, axis=0)
    yield Figure.from_spread(
        f"{ONE} / {THREE}: largest ratio of a reported standard deviation",
        Spread(ratios.max(axis=1)),
        better="lower",
        rerun=1.0,
        comparisons=COMPARISONS,
        why=f"{np.count_nonzero(each > 1.0)} of {len(each)} are larger; {each.min():.2f} to {each.max():.2f}",
    )


def compare_table_3(experiment: SimulatedExperiment, errors: EstimateDraws) -> Iterator[Figure]:
    """Identified parameters next to those of Table 3, of which the simulated arm is made."""
    joints = experiment.model.joint_names
    table = dict(PUBLISHED["values"])
    for symbol, key in (("fv", "viscous"), ("fc", "coulomb")):
        table |= {f"{symbol}{number}": -value for number, value in enumerate(PUBLISHED[key], 1)}
    assert len(joints) == len(PUBLISHED["viscous"])
    for place, (name, text) in enumerate(zip(experiment.base.names, experiment.base.expressions, strict=True)):
        yield Figure.from_spread(
            f"Table 3: {text}",
            Spread(errors.values[:, place]),
            published=table[name],
            conditions="simulated with Table 3 as the truth",
            why=f"reported standard deviation {np.median(errors.sigma[:, place]):.2g}",
        )


def compute_boxes(result: Identification) -> Iterator[Figure]:
    """Numbers of the box plots of torque errors (Fig. 11), as shares of the RMS torque."""
    trace = result.evaluation.trace
    shares = (trace.predicted - trace.measured) / np.sqrt(np.mean(trace.measured**2, axis=1, keepdims=True))
    for name, share in zip(result.parameters.robot.joint_names, shares, strict=True):
        low, middle, high = np.quantile(share, (0.25, 0.5, 0.75))
        reach = 1.5 * (high - low)
        inside = share[(share >= low - reach) & (share <= high + reach)]
        yield Figure(
            f"box of torque errors, {name} (Fig. 11): median / RMS torque",
            float(middle),
            why=f"quartiles {low:.3g} and {high:.3g}, extremes {inside.min():.3g} and {inside.max():.3g}, "
            f"{len(share) - len(inside)} outliers of {len(share)}",
        )


def compare_statistics(name: str, errors: EstimateDraws) -> Iterator[Figure]:
    """Compare the errors over the draws with the reported standard deviations."""
    within, beyond = 1.0 - errors.beyond(2.0).mean(axis=1), errors.beyond(3.0).sum(axis=1).astype(np.float64)
    count, judged = errors.values.size, len(errors.values) >= MIN_DRAWS
    yield Figure(
        f"{name}: share of errors within 2 reported standard deviations",
        float(within.mean()),
        agreement=0.03,
        target=TARGETS["within 2 sigma"] if judged else None,
        why=f"of {count} errors",
    )
    yield Figure(
        f"{name}: errors beyond 3 reported standard deviations",
        float(beyond.sum()),
        better="lower",
        target=float(binom.ppf(0.99, count, 2.0 * norm.sf(3.0))) if judged else None,
        why=f"of {count}; met by 99 % of such experiments if the reported deviations are right: "
        f"{binom.ppf(0.99, count, 2.0 * norm.sf(3.0)):g}",
    )
    yield Figure.from_spread(f"{name}: norm of the errors / norm of the parameters", Spread(errors.norms))
    yield Figure.from_spread(f"{name}: largest relative error of parameters above {LARGE:g}", Spread(errors.worst))


def forward(
    experiment: SimulatedExperiment, held: Chunk, sets: Mapping[str, Sequence[Dynamics]]
) -> tuple[list[Figure], Drawing]:
    """Compare accelerations at true states and torques of another motion, at speeds above `MIN_COMPARED_SPEED`.

    Args:
        experiment: the arm.
        held: the other motion.
        sets: models from all draws of the noise; one from ideal sensors. The first ones are drawn.
    """
    assert held.dq is not None and held.tau is not None
    moves = np.abs(held.dq).min(axis=1) > MIN_COMPARED_SPEED
    true = experiment.plant.forward_dynamics(held.q, held.dq, held.tau)
    figures, drawn = [], {}
    for name, models in sets.items():
        rates = [one.forward_dynamics(held.q, held.dq, held.tau) for one in models]
        joints = np.array(
            [[np.corrcoef(a[moves], b[moves])[0, 1] for a, b in zip(true.T, one.T, strict=True)] for one in rates]
        )
        what = f"forward dynamics, {name}: least correlation of accelerations"
        why = "joints 1 to 3: " + ", ".join(f"{value:.4f}" for value in np.median(joints, axis=0))
        if name == IDEAL:
            figures.append(Figure(what, joints.min(), better="higher", target=TARGETS["correlation"], why=why))
        else:
            figures.append(
                Figure.from_spread(what, Spread(joints.min(axis=1)), better="higher", why=f"{why} (medians)")
            )
        drawn[name] = np.where(moves[:, None], rates[0], np.nan)
    return figures, draw_accelerations(held.t, true, drawn)
