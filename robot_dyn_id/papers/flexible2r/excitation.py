# SPDX-License-Identifier: Apache-2.0
"""The excitation of `flexible2r`: designs of polynomials, and the readings of the paper's Table 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import comb, perm
from typing import Any

import numpy as np
from scipy.optimize import minimize

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.estimators.stepwise import Observability
from robot_dyn_id.excitation.design.objectives import ConditionNumber
from robot_dyn_id.excitation.design.planning import DesignTask
from robot_dyn_id.excitation.design.search import Design
from robot_dyn_id.excitation.forms.polynomial import Polynomial
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.papers.flexible2r.arm import PERIOD, START, make_arm
from robot_dyn_id.papers.inputs import model_of, optimize_design, plan_of, read_settings_of

JOINTS = {"link 1": ("joint1",), "link 2": ("joint2",), "both": ("joint1", "joint2")}
"""The columns of the paper's Table 3, by the joints that move."""

PER_DEGREE = 180.0 / np.pi
"""One N m s/deg in N m s/rad: the paper's raw condition numbers have velocities in deg/s."""

GENETIC = {"population": 20, "generations": 800, "crossover": 0.8, "mutation": 0.2}
"""The paper's Table 2."""

TIMES = np.mod(np.arange(251) / 50.0, PERIOD)
"""The paper's samples: the last is the first one again."""

WITHOUT_FRICTION = {
    "link 1": (("Izz1", "mx1", "my1"), ("Izz1", "mx1", "my1", "off1")),
    "link 2": (("Izz2", "mx2", "my2"), ("Izz2", "mx2", "my2", "off2")),
    "both": (("Izz1", "mx1", "my1"), ("Izz1", "mx1", "my1", "Izz2", "mx2", "my2")),
}
"""Columns that the paper may mean where it says that it has left friction out."""

STARTS = 3
"""Number of the grid's best amplitudes from which a search starts."""


def plan(case: str, raw: bool = False, **given: Any) -> DesignTask:
    """The design of polynomials for the friction of one link, or of both; joints that stand are held.

    Args:
        case: key of `JOINTS`.
        raw: whether the figure is the paper's, the raw condition number in degrees, not that of unit-norm columns.
        given: what takes the place of keys of the design file: the paper's degree is 8.
    """
    settings = read_settings_of("flexible2r", **given)
    settings = replace(settings, acceleration={k: v for k, v in settings.acceleration.items() if k in JOINTS[case]})
    held = {name: START for name in JOINTS["both"] if name not in JOINTS[case]}
    found = plan_of(settings, model_of("flexible2r", held=held), (Viscous(), Coulomb(0.0)))
    if not raw:
        return found
    units = np.array([PER_DEGREE if name.startswith("fv") else 1.0 for name in found.problem.information.names])
    return replace(found, problem=replace(found.problem, objective=ConditionNumber(units)))


def search_motion(case: str, raw: bool, degree: int, genetic: bool = False, seed: int = 1) -> Design:
    """The best motion: as the design file says, or by the paper's genetic search.

    Raises:
        UsageError: a genetic search needs pymoo.
    """
    given = {"optimizer": "genetic", "search": GENETIC, "seed": seed} if genetic else {}
    return optimize_design("flexible2r", plan(case, raw, degree=degree), **given)


def design_from_the_start(motion: Polynomial) -> Polynomial:
    """A designed motion from where the paper begins, every joint to the side where its range is.

    Friction depends on neither: the design has the middle of the range as its start, so that both sides are open to it;
    joint 1 begins at its lower limit.
    """
    middle: Array = motion.basis(np.array([motion.duration / 2.0]))[0, :, 0]
    side = np.where(motion.coefficients @ middle < 0.0, -1.0, 1.0)
    return replace(motion, center=np.full(len(side), START), coefficients=side[:, None] * motion.coefficients)


def compute_friction_condition(motion: Trajectory, scaling: str = "none", unit: float = PER_DEGREE) -> float:
    """Condition number of the friction columns [v, sign v] of the joints that move, at the paper's samples.

    It does not depend on where a motion begins, nor to which side it goes. Velocities are 0 at the two ends. That of a
    turn which falls on a sample is a rounding error, and counts as what it is, with a sign: two of the 251 signs are 0.
    """
    return compute_friction_condition_of(motion.evaluate(TIMES)[1], unit).condition_numbers[scaling]


def compute_friction_condition_of(dq: Array, unit: float = PER_DEGREE) -> Observability:
    """Condition number of velocities at the paper's samples, shape (n, 251)."""
    rows = np.zeros((len(dq), len(TIMES), 2 * len(dq)))
    for joint, speed in enumerate(dq):
        sign = np.where(TIMES == 0.0, 0.0, np.where(speed < 0.0, -1.0, 1.0))
        rows[joint, :, 2 * joint : 2 * joint + 2] = np.column_stack([unit * speed, sign])
    return Observability.from_rows(rows.reshape(-1, 2 * len(dq)))


def find_closed_form(zeros: int, intervals: int = 250) -> float:
    """Smallest raw condition number of [v, sign v] over amplitudes of t^4 (T - t)^4, for a number of zero signs.

    The paper has 250 intervals: of T = 5 s at 50 Hz. Only their number counts, as an amplitude in s is one in T.

    Of two columns c = cond has c^2 + c^-2 + 2 = (|v|^2 + n)^2 / (|v|^2 n - (sum |v|)^2), n the number of signs; least
    at |v|^2 = n, where the right side is 4 / (1 - x), x = (sum |v|)^2 / (|v|^2 n).
    """
    speed = np.abs(make_unit(intervals)[1])
    x = speed.sum() ** 2 / ((speed**2).sum() * (len(speed) - zeros))
    half = 2.0 / (1.0 - x) - 1.0
    return float(np.sqrt(half + np.sqrt(half**2 - 1.0)))


def free_coefficients(degree: int, at_start: int, at_end: int) -> int:
    """Number of free coefficients where a number of derivatives, from the 0th on, are prescribed at both ends."""
    powers = range(degree + 1)
    rows = [[perm(m, d) if m == d else 0 for m in powers] for d in range(at_start)]
    rows += [[perm(m, d) for m in powers] for d in range(at_end)]
    return degree + 1 - int(np.linalg.matrix_rank(np.array(rows, dtype=np.float64)))


def find_amplitude_ratios(shares: Array) -> Array:
    """Raw condition number of [v, sign v] over the smallest one, for amplitudes as shares of the best, same shape."""
    speed = np.abs(make_unit(250)[1])
    count = len(speed) - 2
    best = np.sqrt(count / (speed**2).sum())
    columns = [np.column_stack([share * best * speed, np.where(TIMES == 0.0, 0.0, 1.0)]) for share in shares]
    return np.array([np.linalg.cond(one) for one in columns]) / find_closed_form(2)


def make_unit(intervals: int = 250) -> Array:
    """The polynomial of amplitude 1 at N intervals: position, velocity, acceleration, shape (3, N + 1)."""
    coefficients = np.zeros((1, 9))
    coefficients[0, 4] = 256.0 / comb(8, 4)
    return np.array(
        Polynomial(np.zeros(1), coefficients, PERIOD).evaluate(
            np.mod(PERIOD / intervals * np.arange(intervals + 1), PERIOD)
        )[:3]
    )[:, 0]


@dataclass(frozen=True)
class TableReading:
    """Possible reading of a figure of Table 3, and its smallest condition number.

    Attributes:
        columns: columns of the parameters.
        degrees: whether accelerations are in deg/s^2, not rad/s^2.
        all_limits: whether the accelerations' limits are kept, not only those of range and speed.
        least: raw condition number.
    """

    columns: tuple[str, ...]
    degrees: bool
    all_limits: bool
    least: float

    def __str__(self) -> str:
        """The reading in words."""
        unit, limits = "deg" if self.degrees else "rad", "all limits" if self.all_limits else "no acceleration limits"
        return f"{', '.join(self.columns)}; {unit}; {limits}"


def compare_readings(case: str) -> Iterator[TableReading]:
    """Readings of the condition number without friction; degree 8, from the paper's start, the other joint there."""
    model, unit = make_arm(), make_unit()
    moving = [model.model.joint_names.index(name) for name in JOINTS[case]]
    for columns, degrees, all_limits in product(WITHOUT_FRICTION[case], (False, True), (False, True)):
        chosen = [model.base.names.index(name) for name in columns]
        scale = np.array([PER_DEGREE if degrees and name.startswith("I") else 1.0 for name in columns])

        def condition(amplitudes: Array, chosen: list[int] = chosen, scale: Array = scale) -> float:
            states = np.zeros((3, len(model.model.joint_names), len(TIMES)))
            states[0] = START
            states[:, moving] += amplitudes[:, None] * unit[:, None, :]
            dense = model.regressor.dense(Motion(*states))[model.base.independent[chosen]][:, moving]
            values = np.linalg.svd(scale[:, None] * dense.reshape(len(chosen), -1), compute_uv=False)
            return float(values[0] / values[-1]) if values[-1] > 0.0 else np.inf

        yield TableReading(
            columns, degrees, all_limits, find_least(condition, *find_amplitudes_within(case, all_limits))
        )


def find_friction_within_limits(case: str) -> float:
    """Least raw condition number of friction with velocities in rad/s, all limits kept; degree 8."""
    speed = make_unit()[1]
    return find_least(
        lambda amplitudes: compute_friction_condition_of(amplitudes[:, None] * speed, 1.0).condition_numbers["none"],
        *find_amplitudes_within(case, True),
    )


def find_amplitudes_within(case: str, all_limits: bool) -> tuple[Array, Array]:
    """Least and greatest amplitude of the joints that move within their limits [rad]."""
    model = model_of("flexible2r")
    acceleration = read_settings_of("flexible2r").acceleration
    moving = [model.joint_names.index(name) for name in JOINTS[case]]
    _, speed, change = np.abs(make_unit()).max(axis=1)
    most = model.limits.velocity[moving] / speed
    if all_limits:
        most = np.minimum(most, np.array([acceleration[name] for name in JOINTS[case]]) / change)
    down, up = START - model.limits.lower[moving], model.limits.upper[moving] - START
    return -np.minimum(most, np.maximum(down, 0.0)), np.minimum(most, up)


def find_least(condition: Callable[[Array], float], lower: Array, upper: Array) -> float:
    """The least value over a box of amplitudes: a grid, and a simplex search from its best places."""
    count = 48 if len(lower) == 1 else 16
    edges = [np.linspace(low, high, count) for low, high in zip(lower, upper, strict=True)]
    places = sorted((np.array(place) for place in product(*edges)), key=condition)
    bounds = list(zip(lower, upper, strict=True))
    found = [minimize(condition, place, method="Nelder-Mead", bounds=bounds) for place in places[:STARTS]]
    return float(min(result.fun for result in found))
