# SPDX-License-Identifier: Apache-2.0
"""Qian et al.: a 2-joint arm excited by logistic strokes, identified, and moved again with the identified model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.crosscheck import cross_check
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation.design.planning import DesignTask
from robot_dyn_id.excitation.forms.logistic import Logistic
from robot_dyn_id.excitation.trajectory import Excitation
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.papers.figures import Extent, Figure, Reproduction, Spread
from robot_dyn_id.papers.inputs import model_of, optimize_design, plan_of, read_settings_of
from robot_dyn_id.papers.logistic2r.drawings import draw_all, draw_search, draw_strokes, draw_validation
from robot_dyn_id.papers.logistic2r.genetic import (
    BITS,
    CROSSOVER,
    GENERATIONS,
    INDIVIDUALS,
    MUTATION,
    PENALTY,
    StrokeLimits,
    evolve,
)
from robot_dyn_id.papers.logistic2r.strokes import (
    GRAVITY,
    JOINTS,
    PAPER,
    SAMPLE,
    ControlModel,
    LockableArm,
    Stroke,
    Strokes,
)
from robot_dyn_id.papers.logistic2r.studies import (
    BEST,
    QUIET,
    START,
    WRONG,
    FourierTrials,
    Run,
    compare_noise,
    compare_starts,
    make_quiet_trials,
    repeat_joint_1,
    repeat_trials,
)
from robot_dyn_id.progress import Progress, Stage
from robot_dyn_id.simulation.controllers import Gains

PUBLISHED: dict[str, Any] = {
    "joint1": {"span": 2.313, "steepness": 1.523, "window": 367, "Kp": 2.0, "Kd": 20.0},
    "joint2": {"span": 2.094, "steepness": 0.996, "window": 246, "Kp": 4.0, "Kd": 4.0},
    "exponent": 0.7,
    "theta": {  # after iterations 1, 2, 3 (Tables 4, 5)
        1: (0.493, 1.899, 1.991),
        2: (2.131, 2.011, 2.000),
        3: (0.074, 0.003, 0.002),
        4: (0.203, 0.698, 0.993),
        5: (1.020, 1.012, 1.000),
        6: (0.053, 0.006, 0.000),
    },
    "fourier": (1.98, 2.0, 0.0, 1.007, 1.00, 0.009),  # theta 1 to 6 (Table 6)
    "tracking": (0.6, 0.15, 0.0),  # largest error of joint 2 in iterations 1, 2, 3 [rad]
}
"""Printed values; condition numbers only in a plot, no sample time. Windows are samples on either side."""

PRINTED = np.array([1.991, 2.000, 0.002, 0.993, 1.000, 0.0])
"""Printed parameters after iteration 3."""

UNKNOWN_START = "the paper's start, sampling and integration are not printed"
"""Reason why figures that depend on the start are not compared."""

OTHER_SERIES = "the paper's series is not printed: ours is one within the same limits"
"""Reason why parameters of the Fourier series are not compared."""

UNKNOWN_SEARCH = "the paper's sample time, selection and ranges are not printed"
"""Reason why the condition numbers of the genetic algorithm are not compared: its objective may be another one."""

SERIES = "config/trajectories/logistic2r_fourier.yaml"
"""Fourier series that the strokes are compared with."""

FITTED_START = 3.56
"""Inertia of joint 2 at the start [kg m^2], fitted by us so that the tracking error of iteration 1 is near 0.6 rad."""

TARGETS: dict[str, Any] = {
    "regressor": 1e-10,
    "rates": 1e-12,
    "limits": 1.0,
    "condition": 161.3,  # sum for both joints, within the limits
    "error": 0.01,  # after iteration 3 on the published strokes, 4 on the feasible ones, and of arms unlike their URDF
    "final error": 0.001,
    "validation": 1e-3,  # RMS error of a torque on another motion over the RMS of that torque
}
"""Acceptance limits of this package: largest relative differences and fractions; errors in kg m^2 and kg m."""

LAST_DIGIT = 5e-4
"""Half of the last digit of the printed parameters [kg m^2, kg m]."""

FASTER = 20.0
"""Kp of joint 1 with which the paper's own start does not run away: ten times the printed one."""

SEQUENCE = "start, sequence and gains as printed; the readings tried: these gains, and those of the next nine rows"
"""Reason why rows of the paper's own start are judged although its sampling is not printed."""

LABELS = {
    "published": "published strokes",
    "feasible": "feasible strokes",
    "fitted": "published strokes, start fitted to the printed 0.6 rad",
}
"""Names of the runs."""

ROUNDING = 1e-6
"""Rounding of the use of a limit that is 1 by design."""


def plan(joint: str, **given: Any) -> DesignTask:
    """Set up the design of one joint's strokes; the angle of the other, locked joint has no influence.

    Args:
        joint: name of the moving joint.
        given: replacements of keys of the design file.
    """
    held = {name: 0.0 for name in ("joint1", "joint2") if name != joint}
    return plan_of(read_settings_of("logistic2r", **given), model_of("logistic2r", GRAVITY, held), ())


def make_published_strokes(arm: LockableArm) -> Strokes:
    """Published optimum, about the middle of the joints' ranges; T = 40 / w is not printed."""
    strokes = {}
    for joint in JOINTS:
        span, steepness = (np.array([PUBLISHED[joint][name]]) for name in ("span", "steepness"))
        motion = Logistic(np.array([np.pi / 2.0]), 40.0 / float(steepness[0]), 1, (0,), span, steepness)
        strokes[joint] = Stroke(motion, PUBLISHED[joint]["window"] * SAMPLE, read_gains_of(joint))
    return Strokes(arm, strokes, WRONG)


def optimize_feasible_strokes(arm: LockableArm, **given: Any) -> Strokes:
    """Optimize strokes within the limits; keyword arguments replace keys of the design file, such as `seed`."""
    half, strokes = read_settings_of("logistic2r").demand.window / 2.0, {}
    for joint in JOINTS:
        motion = optimize_design("logistic2r", plan(joint), **given).excitation
        assert isinstance(motion, Logistic)
        strokes[joint] = Stroke(motion, half, read_gains_of(joint))
    return Strokes(arm, strokes, WRONG)


def read_fourier_series() -> tuple[Excitation, float]:
    """Fourier series within the same limits, with the number of rows of the feasible strokes, and its length [s].

    It is stored: a search ends at another motion on another processor.
    """
    series = read_trajectory(find_shared_file(SERIES)).excitation
    return series, series.duration


def read_gains_of(joint: str) -> Gains:
    """Printed gains, with the sign of negative feedback."""
    return Gains(PUBLISHED[joint]["Kp"], PUBLISHED[joint]["Kd"], exponent=PUBLISHED["exponent"])


def reproduce(extent: Extent, progress: Progress) -> Reproduction:
    """Reproduce the paper's figures."""
    arm = LockableArm()
    progress(Stage("designing strokes within the limits"))
    published, feasible = make_published_strokes(arm), optimize_feasible_strokes(arm)
    progress(Stage("repeating the published and the feasible strokes"))
    runs = {
        "published": repeat_trials(make_quiet_trials(published, arm.nominal)),
        "feasible": repeat_trials(make_quiet_trials(feasible, arm.nominal)),
        "fitted": repeat_trials(make_quiet_trials(published, arm.nominal, start_inertia=FITTED_START)),
    }
    fourier = FourierTrials(feasible, *read_fourier_series())
    once = fourier.repeated(arm.model.inertial_parameters, QUIET, 0).iterations[0].parameters
    searches = search_genetically(arm, extent, progress)
    figures = [
        *compare_equations(arm, published),
        *compare_design(published, feasible, searches),
        *compare_tables(runs["fitted"]),
        *compare_sequence(published),
        *compare_iterations(runs),
        *compare_starts(published, feasible, TARGETS["error"], extent, progress),
        *compare_fourier(runs["feasible"], once),
        *compare_validation(runs["published"], once),
        *compare_noise(fourier, extent, progress),
    ]
    start = runs["fitted"].trials.start("joint1")
    return Reproduction(
        "logistic2r",
        "Qian et al., dynamic parameter identification with a Logistic excitation trajectory",
        tuple(figures),
        (
            f"start, our rule: {1.0 + WRONG:g} x greatest weight of the URDF's arm along the strokes / (Kp "
            f"droop^{PUBLISHED['exponent']:g}) as the joint's inertia, droop {START:.0%} of the stroke, no gravity "
            "term; the paper's start, 0, gives no torque, and the arm falls",
            f"start fitted to the printed 0.6 rad: {FITTED_START:g} kg m^2 as the inertia of joint 2, as the paper "
            f"prints no start; and {start.scale:.3g} times that of the URDF for joint 1",
            "models: an inertia that is not positive may not move the arm; then the parameters are held near the URDF "
            f"with a standard deviation of {WRONG:.0%}, or the model is refused and the last one stays",
            "the feedback is Kp Sig(e)^a1 + Kd Sig(e')^a2 with e = qd - q and a2 = 2 a1 / (1 + a1): the printed minus "
            "signs would drive the arm away, and 2 a1 / a1 + 1 read literally is 3",
        ),
        (
            *draw_all(runs["fitted"], runs["feasible"]),
            draw_strokes({"published": published, "feasible": feasible}),
            draw_search([curve for curves in searches.curves for curve in curves]),
            draw_validation(compare_validations(arm, runs["published"], once)),
        ),
    )


@dataclass(frozen=True)
class GeneticSearches:
    """Searches for the strokes of both joints by the paper's genetic algorithm.

    Attributes:
        sums: sum of the condition numbers of both joints by seed, shape (k,).
        curves: smallest objective of each generation, by seed and joint, shape (k, 2, generations).
        failed: number of seeds with a stroke that violates a limit.
    """

    sums: Array
    curves: Array
    failed: int


def search_genetically(arm: LockableArm, extent: Extent, progress: Progress) -> GeneticSearches:
    """Search span, steepness and window of both joints with the paper's settings."""
    sums, curves, failed = [], [], 0
    limits = read_limits_of(arm)
    for seed in range(extent.seeds):
        progress(Stage("genetic algorithm of the paper", seed, extent.seeds))
        found = [evolve(limits, 2 * seed + joint) for joint in range(len(JOINTS))]
        sums.append(sum(float(curve[-1]) for _, curve in found))
        curves.append([curve for _, curve in found])
        failed += any(limits.excess(variables[None])[0] > 0.0 for variables, _ in found)
    return GeneticSearches(np.array(sums), np.array(curves), failed)


def read_limits_of(arm: LockableArm) -> StrokeLimits:
    """Limits of the paper's eq. 18, the same for both joints."""
    limits = arm.model.limits
    acceleration = float(read_settings_of("logistic2r").acceleration["all"])
    return StrokeLimits(
        float(limits.upper[0] - limits.lower[0]), float(limits.velocity[0]), acceleration, SAMPLE, -GRAVITY[2]
    )


def evaluate_equations_of_the_paper(q: Array, dq: Array, ddq: Array) -> Array:
    """Regressor of the paper, g = 9.8 and a1 = 1, shape (N, 2, 6), motion of shape (2, N); "d1" in eq. 6 is a1."""
    (c1, s1), (c2, s2), (c12, s12) = ((np.cos(x), np.sin(x)) for x in (q[0], q[1], q[0] + q[1]))
    g, none, both, mixed = -GRAVITY[2], np.zeros_like(c1), ddq[0] + ddq[1], 2.0 * ddq[0] + ddq[1]
    whirl = (2.0 * dq[0] + dq[1]) * dq[1]
    first = ddq[0], g * c1, -g * s1, both, mixed * c2 - whirl * s2 + g * c12, -mixed * s2 - whirl * c2 - g * s12
    along, across = ddq[0] * c2 + dq[0] ** 2 * s2 + g * c12, -ddq[0] * s2 + dq[0] ** 2 * c2 - g * s12
    return np.array([first, (none, none, none, both, along, across)]).transpose(2, 0, 1)


def compare_equations(arm: LockableArm, strokes: Strokes) -> list[Figure]:
    """Figures on exact identities."""
    motion = Motion(*np.random.default_rng(0).uniform(-3.0, 3.0, (3, 2, 200)))
    ours = arm.regressor.dense(motion)[arm.base.independent[PAPER]].transpose(2, 1, 0)
    theirs = evaluate_equations_of_the_paper(motion.q, motion.dq, motion.ddq)
    difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    check = cross_check(arm.regressor, motion).max_difference
    rates = 0.0
    for stroke in strokes.of.values():
        t = np.arange(0.0, stroke.motion.duration, SAMPLE)
        kept, direction = stroke.samples(t)
        q, *true = (x[0] for x in stroke.motion.evaluate(t[kept])[:3])
        for own, exact in zip(stroke.rates(q, direction), true, strict=True):
            rates = max(rates, float(np.abs(own - exact).max() / np.abs(exact).max()))
    order = [group for step in strokes.plan().steps for group in step.groups]
    found = "determined by rank and condition number"
    return [
        Figure("equations of the paper - regressor, relative", difference, target=TARGETS["regressor"], better="lower"),
        Figure("regressor - Pinocchio's, relative", check, target=TARGETS["regressor"], better="lower"),
        Figure(
            "rates of the angle (eq. 15, 16) - derivatives, relative", rates, target=TARGETS["rates"], better="lower"
        ),
        Figure("step in which link 2 is identified", 1.0 + order.index("link 2"), published=1.0, why=found),
        Figure("step in which link 1 is identified", 1.0 + order.index("link 1"), published=2.0, why=found),
    ]


def compute_condition(stroke: Stroke) -> float:
    """Raw condition number of the equations of a joint's own three parameters."""
    around = SAMPLE * np.arange(-round(stroke.half / SAMPLE), round(stroke.half / SAMPLE))
    q, _, ddq = stroke.motion.evaluate(np.concatenate([middle + around for middle in stroke.motion.middles]))[:3]
    return float(np.linalg.cond(np.column_stack([ddq[0], -GRAVITY[2] * np.cos(q[0]), GRAVITY[2] * np.sin(q[0])])))


def find_largest_use(arm: LockableArm, joint: str, stroke: Stroke) -> Array:
    """Largest use of a joint's limits of position (from mid-range), velocity and acceleration, shape (3,)."""
    number, limits = arm.model.joint_names.index(joint), arm.model.limits
    q, dq, ddq = (x[0] for x in stroke.motion.evaluate(np.arange(0.0, stroke.motion.duration, 1e-3))[:3])
    lower, upper = limits.lower[number], limits.upper[number]
    room = (upper - lower) / 2.0, limits.velocity[number], read_settings_of("logistic2r").acceleration["all"]
    moved = q - (lower + upper) / 2.0, dq, ddq
    return np.array([np.abs(x).max() / most for x, most in zip(moved, room, strict=True)])


def compare_design(published: Strokes, feasible: Strokes, searches: GeneticSearches) -> list[Figure]:
    """Figures on limits and condition numbers: the published optimum violates its own limits."""
    shares = {joint: find_largest_use(published.arm, joint, stroke) for joint, stroke in published.of.items()}
    own = max(float(find_largest_use(feasible.arm, joint, stroke).max()) for joint, stroke in feasible.of.items())
    theirs, ours = (
        sum(compute_condition(stroke) for stroke in strokes.of.values()) for strokes in (published, feasible)
    )
    figures = [
        Figure(
            f"{what} over its limit, published optimum, joint 1",
            float(share),
            target=TARGETS["limits"],
            better="higher",
            why="above 1 the published optimum breaks the paper's own limits, eq. 18",
        )
        for what, share in zip(("velocity", "acceleration"), shares["joint1"][1:], strict=True)
    ]
    return [
        *figures,
        Figure(
            "greatest use of a limit, published optimum, joint 2",
            float(shares["joint2"].max()),
            target=TARGETS["limits"],
            better="lower",
        ),
        Figure(
            "sum of condition numbers, published optimum",
            theirs,
            why=f"evaluated at {1.0 / SAMPLE:g} Hz: the paper only draws it, and prints no sample time",
        ),
        Figure.from_spread(
            "sum of condition numbers, genetic algorithm of the paper, window free",
            Spread(searches.sums, searches.failed),
            why=f"{BITS} bits, {INDIVIDUALS} individuals, {CROSSOVER:g} and {MUTATION:g}, {GENERATIONS} generations, "
            f"penalty {PENALTY:g}; its selection is not printed",
        ),
        Figure(
            "sum of condition numbers, our optimum within all limits", ours, target=TARGETS["condition"], better="lower"
        ),
        Figure.from_spread(
            "sum of condition numbers, our optimum over that of the genetic algorithm",
            Spread(ours / searches.sums, searches.failed),
            rerun=1.0,
            better="lower",
            conditions=UNKNOWN_SEARCH,
        ),
        Figure("greatest use of a limit, our optimum", own, target=TARGETS["limits"] + ROUNDING, better="lower"),
    ]


def compare_tables(run: Run) -> list[Figure]:
    """Tables 4 and 5 entry by entry: parameters and tracking errors of iterations 1 to 3 from `FITTED_START`."""
    given: dict[str, Any] = {"conditions": UNKNOWN_START}
    figures, names = [], ("Izz1", "mx1", "my1", "Izz2", "mx2", "my2")
    for k, printed in enumerate(PUBLISHED["tracking"]):
        ours = run.trials.deviation(run.found.iterations[k].trial, "joint2")
        figures.append(Figure(f"tracking error of joint 2, iteration {k + 1} [rad]", ours, printed, "lower", **given))
    for k, printed in enumerate(PUBLISHED["theta"][4]):
        words, ours = f"error of theta 4 (Izz2) after iteration {k + 1}, fitted start [kg m^2]", run.theta[k][3]
        truth = run.trials.theta[PAPER][3]
        figures.append(Figure(words, abs(ours - truth), abs(printed - truth), "lower", **given))
    for number, name in enumerate(names, 1):
        for k, printed in enumerate(PUBLISHED["theta"][number]):
            words, ours = f"theta {number} ({name}) after iteration {k + 1}", float(run.theta[k][number - 1])
            figures.append(Figure(words, ours, printed, **given))
    return figures


def compare_sequence(strokes: Strokes) -> list[Figure]:
    """Table 5 by the paper's own sequence: joint 1 with theta 4 to 6 known and theta 1 to 3 zero at the start.

    That start has M = 3 kg m^2 and the weight of link 2. With the printed gains its loop runs away.
    """
    figures = []
    for proportional in (PUBLISHED["joint1"]["Kp"], FASTER):
        gains = Gains(proportional, PUBLISHED["joint1"]["Kd"], exponent=PUBLISHED["exponent"])
        known = np.zeros(6)
        known[PAPER] = np.append(np.zeros(3), PRINTED[3:])
        found, reason = repeat_joint_1(strokes, gains, known, 3)
        own = proportional == PUBLISHED["joint1"]["Kp"]
        words = f"paper's start and sequence, Kp {proportional:g}, Kd {gains.derivative:g}"
        for number in (1, 2, 3):
            for k, printed in enumerate(PUBLISHED["theta"][number]):
                value = float(found[k][PAPER][number - 1]) if k < len(found) else math.nan
                figures.append(
                    Figure(
                        f"theta {number} after iteration {k + 1}, {words}",
                        value,
                        printed,
                        agreement=LAST_DIGIT,
                        conditions="" if own else f"Kp of {proportional:g} in place of {PUBLISHED['joint1']['Kp']:g}",
                        why=reason if k >= len(found) else SEQUENCE if own else "",
                    )
                )
    return figures


def compare_iterations(runs: dict[str, Run]) -> list[Figure]:
    """Errors of the parameters after each iteration, without noise."""
    figures = []
    largest = {
        ("fitted", 3): TARGETS["error"],
        ("published", 3): TARGETS["error"],
        ("feasible", 3): None,
        ("feasible", 4): TARGETS["error"],
    }
    for (name, iteration), most in largest.items():
        words = f"greatest error after iteration {iteration}, {LABELS[name]}"
        figures.append(Figure(words, runs[name].error(iteration), target=most, better="lower"))
    for name, run in runs.items():
        figures.append(
            Figure(
                f"greatest error, {BEST}, {LABELS[name]}",
                run.best_error,
                target=TARGETS["final error"],
                better="lower",
                why="; ".join((run.found.reason, *run.found.refused)),
            )
        )
    return figures


def compare_fourier(run: Run, once: ControlModel | None) -> list[Figure]:
    """Comparison without noise, Table 6: a Fourier series identified once, and strokes identified repeatedly."""
    truth = run.trials.theta[PAPER]
    series = np.full(6, np.nan) if once is None else once.values[PAPER]
    error = float(np.abs(series - truth).max())
    return [
        Figure(
            "greatest error without noise, Fourier series, once",
            error,
            target=TARGETS["error"],
            better="lower",
            why="one motion by the usual pipeline, from the same start; the paper's strokes need three",
        ),
        Figure(
            "greatest error without noise, feasible strokes, iteration 3",
            run.error(3),
            rerun=error,
            better="lower",
            why="rerun: the Fourier series, once",
        ),
        *(
            Figure(
                f"Table 6, theta {number} of the Fourier series, once", float(value), printed, conditions=OTHER_SERIES
            )
            for number, (value, printed) in enumerate(zip(series, PUBLISHED["fourier"], strict=True), 1)
        ),
    ]


SECONDS = ("-sin t", "cos 2t")
"""Motions of joint 2 in the validations, q1 = sin t: the paper's, in which q1 + q2 = 0, and one in which it is not."""


def compare_validation(run: Run, once: ControlModel | None) -> list[Figure]:
    """Torques of other motions, 0 to 10 s, by our parameters and by the printed ones."""
    truth = run.trials.theta[PAPER]
    sets = {"iteration 3": run.theta[2], BEST: run.best}
    if once is not None:
        sets["Fourier series, once"] = once.values[PAPER]
    figures = []
    for words, theta in sets.items():
        for joint in range(len(JOINTS)):
            for second in SECONDS:
                rows = evaluate_validation_rows(second)[:, joint]
                rounding = LAST_DIGIT * np.abs(rows).sum(axis=1)
                ours, printed = (_rms(rows @ (one - truth)) for one in (theta, PRINTED))
                figures.append(
                    Figure(
                        f"torque {joint + 1}, q1 = sin t, q2 = {second}, {words}: RMS error [N m]",
                        ours,
                        rerun=printed,
                        better="lower",
                        agreement=_rms(rounding),
                        target=TARGETS["validation"] * _rms(rows @ truth),
                        conditions=UNKNOWN_START,
                        why="rerun: the printed parameters of iteration 3, tolerance: their last digit"
                        + ("; q1 + q2 = 0 leaves Izz2 out of torque 2" if joint and second == SECONDS[0] else ""),
                    )
                )
    return figures


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def evaluate_validation_rows(second: str) -> Array:
    """Regressor of the paper along a validation motion, 0 to 10 s at 100 Hz, shape (N, 2, 6)."""
    t = VALIDATION_TIMES
    sine = np.array([np.sin(t), np.cos(t), -np.sin(t)])
    faster = np.array([np.cos(2.0 * t), -2.0 * np.sin(2.0 * t), -4.0 * np.cos(2.0 * t)])
    other = -sine if second == SECONDS[0] else faster
    return evaluate_equations_of_the_paper(*np.array([sine, other]).swapaxes(0, 1))


VALIDATION_TIMES = np.linspace(0.0, 10.0, 1001)
"""Times of the validation motions [s]."""


def compare_validations(arm: LockableArm, run: Run, once: ControlModel | None) -> dict[str, tuple[Array, Array]]:
    """True torques and errors of the parameters of each source along the validation motions, by title."""
    sets = {"strokes, iteration 3": run.theta[2], "printed": PRINTED}
    if once is not None:
        sets["Fourier series, once"] = once.values[PAPER]
    truth = arm.nominal[PAPER]
    return {
        f"{words}, q2 = {second}": (
            evaluate_validation_rows(second) @ truth,
            evaluate_validation_rows(second) @ (theta - truth),
        )
        for second in SECONDS
        for words, theta in sets.items()
    }
