# SPDX-License-Identifier: Apache-2.0
"""Jing et al., Actuators 2025, 14(10), 497: a space manipulator with six axes and the improved Stribeck friction."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.dynamics.terms import ImprovedStribeck, RotorInertia
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.design.objectives import condition_raw
from robot_dyn_id.excitation.design.planning import DesignTask
from robot_dyn_id.excitation.trajectory import Repeated
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.model.robot import STANDARD_GRAVITY
from robot_dyn_id.papers.figures import Extent, Figure, Reproduction, Spread, find_missing_extra
from robot_dyn_id.papers.inputs import model_of, optimize_design, plan_of, read_settings_of
from robot_dyn_id.papers.space6r.comparison import (
    list_figures_at_table_1,
    list_figures_of_claims,
    list_figures_of_goals,
    list_figures_of_known_gravity,
    list_figures_of_methods,
    list_figures_of_table_2,
)
from robot_dyn_id.papers.space6r.effects import (
    ALPHA,
    LEAST_BREAKAWAY,
    WEIGHTLESS,
    Heat,
    ParameterBound,
    Remainder,
    Weightless,
    compute_ranks,
    compute_velocity_deviations,
)
from robot_dyn_id.papers.space6r.network import NETWORKS, make_network
from robot_dyn_id.papers.space6r.orbit import JOINT, RISE, FrictionRise
from robot_dyn_id.papers.space6r.shown import draw_all, list_notes
from robot_dyn_id.papers.space6r.trials import (
    HYBRID,
    KALMAN,
    LEVELS,
    OURS,
    PAPER,
    RATE,
    SLOW,
    SLOW_SWARM,
    TABLE_1,
    VELOCITIES,
    Conditions,
    Method,
    NoisyTrial,
    Trials,
    sample_states,
)
from robot_dyn_id.progress import Progress, Stage

SOURCE = "Jing et al., Actuators 2025, 14(10), 497"

PARAMETERS = 108.0
"""Identified parameters, as printed."""

TARGETS = {"condition": 130.0, "alpha": 3.0 * 0.00129}
"""Acceptance limits of this package."""

RANKS = {"on the ground": (36, 40, 46, 70, 82), "without weight": (34, 38, 44, 68, 80)}
"""Expected ranks of `PARTS`, from singular values."""

PARTS = ("bodies", "with rotors", "with springs", "with linear friction", "with fb - fc and vb")

MOTION = "config/trajectories/space6r_fourier.yaml"
"""Motion of the identification: the result of one search, so that no figure depends on where another search ends."""

OTHER, OTHER_PERIOD = 2, 12.5
"""Seed and period [s] of the motion along which predictions are evaluated."""

HARMONICS = (3, 4, 5, 6, 7)
"""Numbers of harmonics that are compared."""

SHORT = {"draws": 20, "starts": 1, "finished": 1}
"""Effort of these searches."""

FAST_RATE = 1000.0
"""Sample rate of the comparison at the Stribeck velocities of Table 1 [Hz]."""

FEW = (KALMAN, "lm", "lm, random start")
"""The paper's methods of that comparison, and with `--full` its PSO-LM: some seconds for each draw."""

SHARE = 0.3
"""Deviation of vb of the linearized law, as a share of it."""


def plan(**given: object) -> DesignTask:
    """Set up the design of the Fourier series.

    Args:
        given: replacements of keys of the design file.
    """
    return plan_of(read_settings_of("space6r", **given), model_of("space6r"), (RotorInertia(), ImprovedStribeck()))


def list_conditions(rate: float = RATE, velocities: tuple[float, ...] = VELOCITIES) -> Conditions:
    """Conditions of the comparisons on the ground.

    Args:
        rate: sample rate [Hz].
        velocities: nominal Stribeck velocities [rad/s].
    """
    excitation = read_trajectory(find_shared_file(MOTION)).excitation
    cycle = excitation.cycle if isinstance(excitation, Repeated) else excitation
    motion, other = (
        sample_states(x, rate) for x in (cycle, draw_random_fourier(model_of("space6r"), OTHER, OTHER_PERIOD))
    )
    return Conditions(motion, other, rate, velocities=velocities)


def slow_methods(full: bool) -> tuple[dict[str, Method], dict[str, str]]:
    """Methods that search for minutes and can be run, and the key of `NOT_RUN` of the others."""
    lacking = {name: find_missing_extra("network", full) for name in NETWORKS}
    lacking |= {"ga": find_missing_extra("search", full), SLOW_SWARM: "" if full else "full"}
    methods = {**SLOW, **{name: make_network(name) for name in NETWORKS}}
    missing = {name: key for name, key in lacking.items() if key}
    return {name: method for name, method in methods.items() if name not in missing}, missing


def reproduce(extent: Extent, progress: Progress) -> Reproduction:
    """Reproduce ranks, excitation, comparison of estimators, and the claims about friction."""
    progress(Stage("identifiable parameters"))
    figures = list(_of_ranks())
    progress(Stage("excitation"))
    given = list_conditions()
    figures += _of_excitation(given.motion, extent)
    slow, missing = slow_methods(extent.full)
    methods = {name: (method, extent.seeds) for name, method in {**PAPER, **OURS}.items()}
    methods |= {name: (method, extent.slow_seeds) for name, method in slow.items()}
    levels = [Trials.from_methods(level, given, methods, progress) for level in LEVELS]
    for trials in levels:
        figures += [
            *list_figures_of_methods(trials),
            *list_figures_of_goals(trials),
            *list_figures_of_claims(trials, missing),
        ]
        figures += [
            Figure.not_run(f"noise x {trials.level:g}, {name}: error of the torque [N m]", key)
            for name, key in missing.items()
        ]
    figures += list_figures_of_table_2(levels[0])
    for level in LEVELS:
        figures += list_figures_at_table_1(compare_at_table_1(level, extent, progress))
    progress(Stage("known gravity, friction in orbit, Stribeck velocities, temperature"))
    quiet = levels[1]
    figures += list_figures_of_known_gravity(
        [
            (trial.with_known_gravity(True), trial.with_known_gravity(False), outcome)
            for trial, outcome in zip(quiet.trials, quiet.outcomes["separable"], strict=True)
        ]
    )
    figures += [*list_figures_in_orbit(extent.slow_seeds), *_of_remainder(), *_of_velocities(quiet, given.motion)]
    figures += [one for trials in levels for one in _of_parameter_bound(trials.trials[0], trials.level)]
    figures += [*_of_temperature(), *_of_weight(levels[0].trials[0])]
    return Reproduction("space6r", SOURCE, tuple(figures), list_notes(quiet), draw_all(levels))


def compare_at_table_1(level: float, extent: Extent, progress: Progress) -> Trials:
    """Compare the methods at the Stribeck velocities of Table 1 and 1 kHz."""
    paper = (*FEW, HYBRID) if extent.full else FEW
    methods = {**{name: PAPER[name] for name in paper}, **OURS}
    drawn = {name: (method, extent.seeds) for name, method in methods.items()}
    return Trials.from_methods(level, list_conditions(FAST_RATE, TABLE_1["vb"]), drawn, progress)


def _of_excitation(motion: Motion, extent: Extent) -> Iterator[Figure]:
    """Condition number of the motion that is used, over the number of harmonics, and of a genetic search."""
    value = float(np.exp(condition_raw(plan().problem.information.matrix(motion)).value))
    unprinted = "the paper prints neither limits nor frequency: 0.1 Hz and limits are chosen"
    name = "condition number of the excitation, 64 columns"
    yield Figure(f"{name}: {MOTION}", value, better="lower", target=TARGETS["condition"], why=unprinted)
    for harmonics in HARMONICS:
        found = optimize_design("space6r", plan(harmonics=harmonics), search=SHORT)
        yield Figure(
            f"{name}: short search, {harmonics} harmonics",
            found.condition_numbers["none"],
            why="the paper's rule: as many harmonics as lower it; a search ends elsewhere on another processor",
        )
    missing = find_missing_extra("search", extent.full)
    if missing:
        yield Figure.not_run(f"{name}: genetic algorithm, as the paper", missing)
    else:
        found = optimize_design("space6r", plan(), optimizer="genetic")
        yield Figure(f"{name}: genetic algorithm, as the paper", found.condition_numbers["none"])


def _of_ranks() -> Iterator[Figure]:
    for place, gravity in (("on the ground", STANDARD_GRAVITY), ("without weight", WEIGHTLESS)):
        found = compute_ranks(gravity)
        for part, rank, expected in zip(PARTS, found, RANKS[place], strict=True):
            yield Figure(f"identifiable {place}: {part}", rank, target=expected)
        yield Figure(
            f"identified {place}, of 108",
            found[-1],
            published=PARAMETERS,
            why="the others change no torque, or only in combination",
        )


def _of_velocities(trials: Trials, motion: Motion) -> Iterator[Figure]:
    for velocity in (0.001, 0.0055, 0.05):
        yield Figure(
            f"vb = {velocity:g}: least deviation of vb / vb, worst joint",
            float(compute_velocity_deviations(velocity, motion).max()),
            why="Cramer-Rao bound, rigid parameters known, noise x 1, 100 Hz; fb is taken for "
            f"{LEAST_BREAKAWAY:g} fc where it is less in the table",
        )
    away = []
    for trial, outcome in zip(trials.trials, trials.outcomes["separable, weighted"], strict=True):
        true = [term.stribeck_velocity for _, term in trial.regressor.terms if isinstance(term, ImprovedStribeck)]
        for value, constant in zip(true, outcome.estimate.constants if outcome.estimate else (), strict=False):
            away.append(abs(np.log(constant.value / value)) * constant.value / constant.standard_deviation)
    yield Figure(
        f"noise x {trials.level:g}: true vb within 2 standard deviations, share",
        float(np.mean(np.array(away) < 2.0)),
        why=f"separable, weighted; six joints, {len(trials.trials)} draws",
    )


def _of_remainder() -> Iterator[Figure]:
    found = Remainder.from_share(SHARE)
    yield Figure(
        f"eq. 6, linearized friction, vb off by {SHARE:.0%}: error over the remainder of its series, worst joint",
        float((found.error / found.bound).max()),
        better="lower",
        target=1.0,
        why=f"bound {found.bound.max():.3g} N m, error {found.error.max():.3g} N m",
    )


def _of_parameter_bound(trial: NoisyTrial, level: float) -> Iterator[Figure]:
    """Eq. 7 as printed, for parameters with vb known and with nominal vb."""
    known, nominal = (ParameterBound.from_trial(trial, one) for one in (True, False))
    yield Figure(
        f"eq. 7, noise x {level:g}, vb known: relative error of the parameters over its bound",
        known.error / known.bound,
        better="lower",
        target=1.0,
        why=f"error {known.error:.2g}, bound {known.bound:.2g}, condition number {known.condition_number:.3g}",
    )
    yield Figure(
        f"eq. 7, noise x {level:g}, vb nominal: condition number x relative error of Y, below 1 where it is defined",
        nominal.product,
        why=f"error of the parameters {nominal.error:.2g}, bound {nominal.bound:.2g}",
    )


def list_figures_in_orbit(draws: int) -> Iterator[Figure]:
    """Estimated rise of a breakaway torque and the time to its detection, one robot for each draw."""
    found = [FrictionRise.from_seed(seed) for seed in range(draws)]
    lost = sum(math.isinf(one.delay) for one in found)
    off = [abs(one.estimated - one.true) / one.true if np.isfinite(one.delay) else np.inf for one in found]
    first = found[0]
    yield Figure.from_spread(
        f"in orbit, fb of joint {JOINT + 1} rises by {RISE:.0%}: error of the estimated rise, share",
        Spread(np.array(off), lost),
        better="lower",
        why=f"monitor of the moving robot, noise x 0.1; first draw: {first.estimated:.3g} +- "
        f"{first.standard_deviation:.2g} N m, true {first.true:.3g}",
    )
    yield Figure.from_spread(
        "in orbit: time from the rise to its detection [s]",
        Spread(np.array([one.delay for one in found]), lost),
        better="lower",
        why=f"other parts reported as changed: {', '.join(first.others) or 'none'}",
    )


def _of_temperature() -> Iterator[Figure]:
    heat = Heat.from_seed(0)
    yield Figure(
        "alpha: error from one direction of one speed [N m/K]",
        abs(float(heat.one[0, 0]) - ALPHA),
        better="lower",
        target=TARGETS["alpha"],
        why=f"{_pm(heat.one[0])}; two directions {_pm(heat.both)}, 8 speeds {_pm(heat.several[0])}",
    )
    yield Figure(
        "fc at one speed [N m]",
        float(heat.one[1, 0]),
        why=f"the true one is {TABLE_1['fc'][0]}: viscous friction is part of it, and 8 speeds separate "
        f"{_pm(heat.several[1])}, kv1 {_pm(heat.several[2])}",
    )


def _of_weight(ground: NoisyTrial) -> Iterator[Figure]:
    found = Weightless.from_trial(ground)
    for place, share in zip(("on the ground", "without weight"), found.friction, strict=True):
        yield Figure(f"friction {place}, joint 2: share of the torque", float(share[1]), why=f"joint 3: {share[2]:.2f}")
    for name, errors in (
        ("without weight, used on the ground", found.to_ground),
        ("on the ground, used without weight", found.to_orbit),
    ):
        yield Figure(
            f"identified {name}: error, worst joint [N m]",
            float(errors.max()),
            why=f"joint {1 + int(np.argmax(errors))}",
        )


def _pm(pair: Array) -> str:
    return f"{pair[0]:.4g} +- {pair[1]:.2g}"
