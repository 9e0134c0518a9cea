# SPDX-License-Identifier: Apache-2.0
"""The fit of real bodies and non-negative friction to compressed rows."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from support.robots import panda_arm

from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.consistency import flag_not_negative, is_consistent, pseudo_inertia
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, RotorInertia, Viscous
from robot_dyn_id.estimators.cone_program import BASIS
from robot_dyn_id.estimators.consistent_fit import FLOOR, TERM_RIDGE, fit_consistent


class Rows:
    """Rows of a Panda with many nearly collinear friction columns, most of which are truly zero."""

    def __init__(self, noise, samples=60, extra=14, seed=0):
        model = panda_arm()
        regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(), Offset(), RotorInertia())))
        motion = draw_random_motion(model, samples, seed=seed)
        widths = np.geomspace(0.003, 3.0, extra - 1)
        friction = [np.tanh(motion.dq / width) for width in widths] + [0.0 * motion.dq]  # one that nothing excites
        columns = [np.eye(7)[:, joint, None] * one[joint] for one in friction for joint in range(7)]
        dense = np.concatenate([regressor.dense(motion), np.array(columns)])
        rng = np.random.default_rng(seed)
        self.bounded = np.append(flag_not_negative(regressor), np.ones(len(columns), dtype=bool))
        self.prior = BodyPrior.from_model(model)
        terms = rng.uniform(0.5, 2.0, len(self.bounded)) * (rng.random(len(self.bounded)) < 0.3)
        self.truth = np.append(1.2 * model.inertial_parameters, terms)
        self.rows = dense.reshape(len(dense), -1).T / noise
        self.torque = self.rows @ self.truth + rng.normal(size=len(self.rows))
        stack = np.column_stack([self.rows, self.torque])
        self.gram = stack.T @ stack

    def cost(self, values, strength):
        """The objective, from the rows themselves."""
        inertial = self.prior.bodies.size
        away = (values[:inertial] - self.prior.bodies.ravel()) / self.prior.scales.ravel()
        ridge = TERM_RIDGE * np.sum((self.rows[:, inertial:] * values[inertial:]) ** 2)
        return 0.5 * (np.sum((self.rows @ values - self.torque) ** 2) + strength * away @ away + ridge)


def fit(rows, strength=1.0, **options):
    return fit_consistent(rows.gram, rows.prior, rows.bounded, strength, **options)


@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("noise", [0.3, 30.0])
def test_a_conic_solver_finds_the_same_minimum(noise, strength):
    clarabel = pytest.importorskip("clarabel", reason="the conic solver Clarabel is not installed")
    from scipy import sparse

    rows = Rows(noise)
    ours = fit(rows, strength)
    inertial = rows.prior.bodies.size
    size = np.append(rows.prior.scales.ravel(), 1.0 / np.maximum(np.linalg.norm(rows.rows[:, inertial:], axis=0), 1e-9))
    weights = np.append(np.full(inertial, strength), np.full(len(rows.bounded), TERM_RIDGE))
    scaled = rows.rows * size
    quadratic = scaled.T @ scaled + np.diag(weights)
    linear = -scaled.T @ rows.torque
    linear[:inertial] -= strength * rows.prior.bodies.ravel() / rows.prior.scales.ravel()
    factors = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(rows.prior.bodies)))
    cones, picked = [], np.zeros((inertial, len(size)))
    upper = [(i, j) for j in range(4) for i in range(j + 1)]
    offset = np.tile([-FLOOR if i == j else 0.0 for i, j in upper], len(factors))
    for body, factor in enumerate(factors):
        of_body = slice(10 * body, 10 * body + 10)
        basis = pseudo_inertia(np.diag(size[of_body]))
        turned = factor @ basis @ factor.T
        for row, (i, j) in enumerate(upper):
            picked[10 * body + row, of_body] = -turned[:, i, j] * (1.0 if i == j else np.sqrt(2.0))
        cones.append(clarabel.PSDTriangleConeT(4))
    bounds = inertial + np.flatnonzero(rows.bounded)
    picked = np.concatenate([picked, -np.eye(len(size))[bounds]])
    cones.append(clarabel.NonnegativeConeT(len(bounds)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    program = sparse.csc_matrix(np.triu(quadratic)), linear, sparse.csc_matrix(picked)
    theirs = (
        size * clarabel.DefaultSolver(*program, np.append(offset, np.zeros(len(bounds))), cones, settings).solve().x
    )
    assert rows.cost(ours.values, strength) <= rows.cost(theirs, strength) + 1e-4
    np.testing.assert_allclose(rows.rows @ ours.values, rows.rows @ theirs, rtol=0, atol=0.1)  # of one sigma


def test_without_bodies_it_is_bounded_least_squares():
    rows = Rows(1.0)
    inertial = rows.prior.bodies.size
    ours = fit(rows, 1.0, links=False)
    prior = np.eye(inertial, len(ours.values)) / rows.prior.scales.ravel()[:, None]
    stack = np.concatenate([rows.rows, prior])
    target = np.append(rows.torque, (rows.prior.bodies / rows.prior.scales).ravel())
    low = np.append(np.full(inertial, -np.inf), np.where(rows.bounded, 0.0, -np.inf))
    size = np.maximum(np.linalg.norm(stack, axis=0), 1e-9)
    theirs = lsq_linear(stack / size, target, (low, np.full(len(low), np.inf)), method="bvls").x / size
    assert rows.cost(ours.values, 1.0) <= rows.cost(theirs, 1.0) + 1e-4
    np.testing.assert_allclose(rows.rows @ ours.values, rows.rows @ theirs, rtol=0, atol=0.02)


@pytest.mark.parametrize("strength", [0.0, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("noise", [1e-9, 1e-3, 1.0, 1e3])
def test_whatever_the_data_the_robot_is_a_real_one(noise, strength):
    rows = Rows(noise)
    found = fit(rows, strength)
    inertial = rows.prior.bodies.size
    assert is_consistent(found.values[:inertial])
    assert np.all(found.values[inertial:][rows.bounded] >= 0.0)
    np.testing.assert_array_equal(found.at_zero, found.values[inertial:] == 0.0)
    assert found.at_zero[-7:].all()  # nothing excites these
    assert found.strength >= strength
    if noise <= 1e-3 and strength <= 1.0:
        error = rows.rows @ (found.values - rows.truth)
        assert np.sqrt(np.mean(error**2)) < max(1.0, 1e-5 * np.sqrt(np.mean(rows.torque**2)))


def test_a_strong_prior_holds_and_data_without_information_return_it():
    rows = Rows(1.0)
    inertial = rows.prior.bodies.size
    held = fit(rows, 1e12).values[:inertial].reshape(-1, 10)
    assert np.all(np.abs(held - rows.prior.bodies) < 1e-4 * rows.prior.scales)
    blind = fit_consistent(np.zeros_like(rows.gram), rows.prior, rows.bounded, 1.0)
    np.testing.assert_allclose(blind.values[:inertial], rows.prior.bodies.ravel(), rtol=1e-6, atol=1e-9)
    assert not blind.values[inertial:].any()


def test_the_basis_is_orthonormal():
    np.testing.assert_allclose(np.einsum("sij,tij->st", BASIS, BASIS), np.eye(10), atol=1e-15)
