# SPDX-License-Identifier: Apache-2.0
"""Base (minimal) parameters: the combinations of standard parameters and terms that a robot's torque depends on.

They are computed numerically from the regressor at random states (Gautier 1991; Khalil and Dombre, Modeling,
Identification and Control of Robots, 2002, chapter 9): the rank by singular values, the independent columns by a pivot
rule, and every other column as a combination of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import BaseParameters, expression

MIN_COLUMN_NORM = 1e-9
"""Columns of the stacked regressor with a smaller norm are zero."""

RANK_TOLERANCE = 1e-9
"""Singular values of the unit-norm columns below this share of the largest are zero."""

COEFFICIENT_ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Coefficients of a dependent column on unit-norm columns below this times their condition number are rounding."""

MAX_COMBINATION_RESIDUAL = 1e-13
"""Residual norm of a unit-norm column below which it is a combination of others, within rounding."""

STATES_PER_SCALE = 10
"""Number of random states with velocities of the size of a constant of a term."""

PIVOTS = ("rref", "qr")
"""Pivot rules: leftmost independent columns (reduced row echelon form), or largest remaining norm first."""


def draw_random_motion(model: RobotModel, count: int, seed: int = 0, moving: Sequence[int] | None = None) -> Motion:
    """Random states that excite all parameters: positions over a full turn (1 m if prismatic), speeds, accelerations.

    Joint limits are ignored: the parameters that a torque depends on are a property of the equations.

    Args:
        model: the robot.
        count: number of states.
        seed: seed of the random numbers.
        moving: indices of the joints that move, all by default; the others are at rest in one random configuration.
    """
    rng = np.random.default_rng(seed)
    n = len(model.joint_names)
    reach = np.where(model.slides, 1.0, np.pi)[:, None]
    q, dq, ddq = (size * rng.uniform(-1, 1, (n, count)) for size in (reach, 2.0, 5.0))
    if moving is not None:
        still = np.setdiff1d(np.arange(n), moving)
        q[still] = q[still, :1]
        dq[still] = 0.0
        ddq[still] = 0.0
    return Motion(
        q=q,
        dq=dq,
        ddq=ddq,
        temperature=rng.uniform(0, 60, (n, count)),
    )


def draw_exciting_motion(
    regressor: Regressor, count: int, seed: int = 0, moving: Sequence[int] | None = None
) -> Motion:
    """Random states that excite all columns of a regressor, those of terms included.

    A column that changes within a small velocity, such as that of a Stribeck peak, is zero at nearly all of the states
    of `draw_random_motion`: for each such velocity, states with velocities of its size follow them.

    Args:
        regressor: robot and terms.
        count: number of the states of `draw_random_motion`, and of all for terms without a velocity scale.
        seed: see `draw_random_motion`.
        moving: see `draw_random_motion`.
    """
    scales = sorted({scale for _, term in regressor.terms for scale in term.velocity_scales})
    motion = draw_random_motion(regressor.model, count + STATES_PER_SCALE * len(scales), seed, moving)
    speeds = np.append(np.ones(count), np.repeat(scales, STATES_PER_SCALE))
    states = regressor.random_states(np.random.default_rng(seed + 1), len(motion))
    return replace(motion, dq=motion.dq * speeds, states=states)


def stack_regressor(regressor: Regressor, motion: Motion) -> Array:
    """Stack the regressor of all samples joint by joint, shape (n N, c)."""
    dense = regressor.dense(motion)
    return dense.reshape(len(dense), -1).T


def count_sufficient_samples(regressor: Regressor) -> int:
    """Number of random states that determine the rank of a regressor with a wide margin."""
    columns, joints = regressor.structure.shape
    return int(max(30, -(-3 * columns // joints)))


@dataclass(frozen=True)
class Echelon:
    """Rank and scaled triangular factor of a stacked regressor.

    Attributes:
        norms: column norms, 0 where below `MIN_COLUMN_NORM`, shape (c,).
        factor: R of the columns scaled to unit norm (zero columns left zero), shape (<= c, c).
        singular_values: singular values of R, descending.
        rank: number of singular values above `RANK_TOLERANCE` times the largest.
    """

    norms: Array
    factor: Array
    singular_values: Array
    rank: int


def compute_echelon(stack: Array, drop: float = MIN_COLUMN_NORM, tolerance: float = RANK_TOLERANCE) -> Echelon:
    """Determine the rank of a stacked regressor of shape (rows, c) by `MIN_COLUMN_NORM` and `RANK_TOLERANCE`."""
    norms = np.linalg.norm(stack, axis=0)
    norms = np.where(norms < drop, 0.0, norms)
    scaled = np.divide(stack, norms, out=np.zeros_like(stack), where=norms > 0)
    factor = np.asarray(np.linalg.qr(scaled, mode="r"))
    values = np.linalg.svd(factor, compute_uv=False)
    largest = values[0] if len(values) else 0.0
    return Echelon(norms, factor, values, int(np.count_nonzero(values > tolerance * largest)) if largest else 0)


def compute_base_parameters(
    regressor: Regressor,
    pivots: str = "rref",
    order: Sequence[int] | None = None,
    tolerance: float = RANK_TOLERANCE,
    moving: Sequence[int] | None = None,
) -> BaseParameters:
    """Find the base parameters of a regressor.

    Example:
        ```python
        base = rdi.compute_base_parameters(rdi.Regressor(robot))
        for name, expression in zip(base.names, base.expressions):
            print(name, "=", expression)
        ```

    Args:
        regressor: robot and terms.
        pivots: `rref`: the leftmost independent columns; `qr`: the largest remaining column first, ties (within
            1e-6) to the leftmost, so that every machine takes the same one.
        order: order in which columns are considered, a permutation of range(c); by default that of the regressor.
        tolerance: see `RANK_TOLERANCE`.
        moving: indices of the joints that move, all by default: the parameters that are then identifiable while the
            other joints are at rest in a generic configuration.

    Raises:
        UsageError: unknown pivot rule, or `order` is not a permutation.
    """
    if pivots not in PIVOTS:
        raise UsageError(f"pivot rule {pivots!r} is not known; use one of {', '.join(PIVOTS)}")
    columns = len(regressor.names)
    sequence = np.arange(columns) if order is None else np.array(order, dtype=np.int64)
    if not np.array_equal(np.sort(sequence), np.arange(columns)):
        raise UsageError(f"column order is not a permutation of the {columns} columns")
    motion = draw_exciting_motion(regressor, count_sufficient_samples(regressor), moving=moving)
    form = compute_echelon(stack_regressor(regressor, motion), tolerance=tolerance)
    independent = _select(form, sequence, pivots)
    mapping = _mapping(form, independent)
    rows = list(mapping)
    return BaseParameters(
        names=tuple(regressor.names[i] for i in independent),
        expressions=tuple(_expression(row, i, regressor.names) for row, i in zip(rows, independent, strict=True)),
        units=tuple(regressor.units[i] for i in independent),
        independent=independent,
        mapping=mapping,
        column_names=regressor.names,
    )


def combine_columns(regressor: Regressor, independent: Integers) -> Array:
    """Every column of a regressor as a combination of independent ones: base = mapping @ full, shape (p, c).

    Args:
        regressor: robot and terms.
        independent: indices of the independent columns, ascending, shape (p,).
    """
    motion = draw_exciting_motion(regressor, count_sufficient_samples(regressor))
    return _mapping(compute_echelon(stack_regressor(regressor, motion)), independent)


def _expression(row: Array, own: int, names: Sequence[str]) -> str:
    """Expression of a combination: the parameter that names it first, the others in column order."""
    others = [i for i in np.flatnonzero(row).tolist() if i != own]
    return expression([1.0, *row[others]], [names[own], *(names[i] for i in others)])


def find_independent_columns(stack: Array) -> Integers:
    """The leftmost independent columns of a stacked regressor of shape (rows, c), ascending."""
    return _select(compute_echelon(stack), np.arange(stack.shape[1]), "rref")


def _select(form: Echelon, sequence: Integers, pivots: str) -> Integers:
    """Select `form.rank` independent columns by the pivot rule, ascending.

    The minimum pivot is lowered until the rule selects as many columns as the rank: with a wide gap in the singular
    values, the first value suffices. Columns that a larger pivot has selected stay: those that only the rounded angles
    of a URDF make independent come after them.
    """
    live = sequence[form.norms[sequence] > 0]
    pick = _leftmost if pivots == "rref" else _largest
    chosen: list[int] = []
    for exponent in np.arange(3.0, 13.0, 0.25):
        chosen = pick(form.factor, np.array([*chosen, *live[~np.isin(live, chosen)]]), 10.0**-exponent)
        if len(chosen) >= form.rank:
            break
    return np.sort(np.array(chosen[: form.rank], dtype=np.int64))


def _leftmost(factor: Array, sequence: Integers, smallest: float) -> list[int]:
    directions = np.empty((min(factor.shape[0], len(sequence)), factor.shape[0]))
    chosen: list[int] = []
    for column in sequence.tolist():
        if len(chosen) == len(directions):
            break
        basis, rest = directions[: len(chosen)], factor[:, column]
        for _ in range(2):  # twice is enough for orthogonality to rounding (Kahan, Parlett)
            rest = rest - (basis @ rest) @ basis
        size = math.sqrt(rest @ rest)
        if size > smallest:
            np.divide(rest, size, out=directions[len(chosen)])
            chosen.append(column)
    return chosen


def _largest(factor: Array, sequence: Integers, smallest: float) -> list[int]:
    rest = factor[:, sequence].copy()
    chosen: list[int] = []
    for _ in range(min(rest.shape)):
        sizes = np.linalg.norm(rest, axis=0)
        best = int(np.argmax(sizes > (1.0 - 1e-6) * sizes.max()))
        if sizes[best] <= smallest:
            break
        direction = rest[:, best] / sizes[best]
        for _ in range(2):
            rest -= np.outer(direction, direction @ rest)
        rest[:, best] = 0.0
        chosen.append(int(sequence[best]))
    return chosen


def _mapping(form: Echelon, independent: Integers) -> Array:
    """Every column as a combination of the independent ones, shape (p, c).

    A column is solved for twice: for all independent columns, then for those with coefficients above rounding alone,
    unless the column needs the others after all (near-dependent sets have true coefficients that small).
    """
    chosen = form.factor[:, independent]
    mapping, _, rank, values = np.linalg.lstsq(chosen, form.factor, rcond=None)
    if rank:
        negligible = COEFFICIENT_ROUNDING * values[0] / values[-1]
        for column in np.setdiff1d(np.flatnonzero(form.norms), independent):
            support = np.flatnonzero(np.abs(mapping[:, column]) > negligible)
            target = form.factor[:, column]
            sparse = np.linalg.lstsq(chosen[:, support], target, rcond=None)[0]
            if np.linalg.norm(chosen[:, support] @ sparse - target) < MAX_COMBINATION_RESIDUAL:
                mapping[:, column] = 0.0
                mapping[support, column] = sparse
    mapping[:, independent] = np.eye(len(independent))
    scale = np.where(form.norms > 0, form.norms, 1.0)
    return np.asarray(mapping * scale[None, :] / scale[independent][:, None])
