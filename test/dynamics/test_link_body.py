# SPDX-License-Identifier: Apache-2.0
"""Links as bodies: geometry of known solids, and standard deviations of all that follows from known parameters."""

import numpy as np
import pytest
from support.robots import brick

from robot_dyn_id.dynamics.consistency import convert_to_central
from robot_dyn_id.dynamics.link_body import LinkBody

CENTER, SIDES = np.array([0.1, -0.2, 0.3]), np.array([0.2, 0.4, 0.6])


def test_a_brick_is_described_as_it_is():
    body = LinkBody.from_parameters(brick(3.0, CENTER, SIDES))
    assert (body.mass, body.consistent) == (pytest.approx(3.0), True)
    np.testing.assert_allclose(body.center, CENTER)
    moments = 3.0 / 12.0 * (np.sum(SIDES**2) - SIDES**2)
    np.testing.assert_allclose(np.diag(body.inertia), moments)
    np.testing.assert_allclose(body.principal, np.sort(moments))
    # an ellipsoid with the same second moments as the brick: a^2 / 5 = side^2 / 12
    np.testing.assert_allclose(np.sort(body.semi_axes), np.sort(SIDES * np.sqrt(5.0 / 12.0)))
    assert np.linalg.det(body.axes) == pytest.approx(1.0)
    assert np.isnan([body.mass_sigma, *body.center_sigma, *body.inertia_sigma.ravel()]).all()


def test_standard_deviations_are_those_of_draws():
    parameters = brick(3.0, CENTER, SIDES)
    rng = np.random.default_rng(4)
    root = 1e-4 * rng.normal(size=(10, 10))
    body = LinkBody.from_parameters(parameters, root @ root.T)
    draws = parameters + rng.normal(size=(20_000, 10)) @ root.T
    described = [convert_to_central(draw) for draw in draws]
    spread = np.std([np.concatenate([[m], center, inertia.ravel()]) for m, center, inertia in described], axis=0)
    found = np.concatenate([[body.mass_sigma], body.center_sigma, body.inertia_sigma.ravel()])
    np.testing.assert_allclose(found, spread, rtol=0.03)


def test_what_is_not_determined_makes_all_that_depends_on_it_unknown():
    covariance = 1e-8 * np.eye(10)
    covariance[0], covariance[:, 0] = np.nan, np.nan
    body = LinkBody.from_parameters(brick(3.0, CENTER, SIDES), covariance)
    assert np.isnan([body.mass_sigma, *body.center_sigma, *body.inertia_sigma.ravel()]).all()
    covariance = 1e-8 * np.eye(10)
    covariance[5], covariance[:, 5] = np.nan, np.nan  # Ixy
    body = LinkBody.from_parameters(brick(3.0, CENTER, SIDES), covariance)
    assert np.isfinite([body.mass_sigma, *body.center_sigma]).all()
    assert np.isnan(body.inertia_sigma[0, 1])
    assert np.isfinite(np.diag(body.inertia_sigma)).all()


def test_a_body_that_cannot_exist_has_no_ellipsoid():
    body = LinkBody.from_parameters(np.array([1.0, 0, 0, 0, 1.0, 0, 1.0, 0, 0, 3.0]))
    assert not body.consistent
    assert np.isnan(body.semi_axes).all()
    massless = LinkBody.from_parameters(np.zeros(10))
    assert np.isnan(massless.center).all()
