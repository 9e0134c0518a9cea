# SPDX-License-Identifier: Apache-2.0
"""Plain least squares, as a script of an afternoon has it: base parameters, viscous and Coulomb friction, offset.

It shares no code with the package: regressors are Pinocchio's, base parameters those of a pivoted QR, accelerations
central differences. Each joint has a weight, the inverse RMS of its residuals.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio
import scipy.linalg
from scipy.interpolate import CubicSpline

from robot_dyn_id.arrays import Array
from robots.scoring import Series, low_pass
from robots.sets import MODEL, RobotSet

COULOMB_WIDTH = 0.05
"""Width of the smooth sign of the Coulomb friction [rad/s or m/s]."""

TOLERANCE = 1e-5
"""Relative size of a diagonal element of R up to which its column depends on the others."""

PASSES = 3
"""Number of fits, each with the weights of the one before."""


def predict_by_least_squares(one: RobotSet, folder: Path) -> Series:
    """Identify from the training files, and predict the held-out one."""
    model = pinocchio.buildModelFromUrdf(str(folder / MODEL))
    with np.load(folder / f"{one.held_out}.npz") as stored:
        names = [str(name) for name in stored["joint_names"]]
    fixed = [model.getJointId(name) for name in model.names[1:] if name not in names]
    model = pinocchio.buildReducedModel(model, fixed, pinocchio.neutral(model))
    order = [names.index(name) for name in model.names[1:]]
    rows, efforts = zip(*(_make_rows(one, model, folder / f"{name}.npz", order)[1:] for name in one.train), strict=True)
    regressor, effort = np.concatenate(rows), np.concatenate(efforts)
    columns, values = _fit(regressor, effort)
    t, regressor, _ = _make_rows(one, model, folder / f"{one.held_out}.npz", order, trimmed=False)
    predicted = np.einsum("knc,c->kn", regressor[:, :, columns], values)
    wanted = [list(model.names[1:]).index(name) for name in one.joints or names]
    return Series(t, predicted[:, wanted])


def _make_rows(
    one: RobotSet, model: pinocchio.Model, path: Path, order: list[int], trimmed: bool = True
) -> tuple[Array, Array, Array]:
    """Stamps, regressors (N, n, c) and efforts (N, n) on a uniform grid, low-passed."""
    with np.load(path) as stored:
        stamps, positions, measured = stored["t"], stored["q"][:, order], stored[one.effort][:, order]
    rising = np.append(True, np.diff(stamps) > 0)
    grid = np.arange(stamps[rising][0], stamps[rising][-1], 1.0 / one.rate)
    q = CubicSpline(stamps[rising], positions[rising])(grid)
    effort = np.column_stack([np.interp(grid, stamps[rising], column) for column in measured[rising].T])
    missing = np.isnan(effort).any(axis=0)
    q, effort = (low_pass(values, one.rate, one.cutoff) for values in (q, np.where(missing, 0.0, effort)))
    effort[:, missing] = np.nan
    dq = np.gradient(q, 1.0 / one.rate, axis=0)
    ddq = np.gradient(dq, 1.0 / one.rate, axis=0)
    edge = round(one.edge * one.rate) if trimmed else 0
    inside = slice(edge, len(grid) - edge, 2 if trimmed else 1)
    data, n = model.createData(), model.nv
    regressor = np.zeros((len(grid[inside]), n, 13 * n))
    for k, state in enumerate(zip(q[inside], dq[inside], ddq[inside], strict=True)):
        regressor[k, :, : 10 * n] = pinocchio.computeJointTorqueRegressor(model, data, *state)
    joints = np.arange(n)
    regressor[:, joints, 10 * n + joints] = dq[inside]
    regressor[:, joints, 11 * n + joints] = np.tanh(dq[inside] / COULOMB_WIDTH)
    regressor[:, joints, 12 * n + joints] = 1.0
    return grid[inside], regressor, effort[inside]


def _fit(regressor: Array, effort: Array) -> tuple[Array, Array]:
    """Independent columns and their parameters; joints without efforts are left out."""
    measured = np.flatnonzero(np.isfinite(effort).all(axis=0))
    regressor, effort = regressor[:, measured], effort[:, measured]
    flat = regressor.reshape(-1, regressor.shape[-1])
    sizes = np.linalg.norm(flat, axis=0)
    used = np.flatnonzero(sizes > 1e-9 * sizes.max())
    triangle, pivots = scipy.linalg.qr(flat[:, used] / sizes[used], mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    columns = used[pivots[: int((diagonal > TOLERANCE * diagonal[0]).sum())]]
    weights = np.ones(len(measured))
    for _ in range(PASSES):
        rows = (regressor[:, :, columns] * weights[:, None]).reshape(-1, len(columns))
        values, *_ = np.linalg.lstsq(rows, (effort * weights).ravel(), rcond=None)
        residual = effort - regressor[:, :, columns] @ values
        weights = 1.0 / np.maximum(np.sqrt((residual**2).mean(axis=0)), 1e-12)
    return columns, values
