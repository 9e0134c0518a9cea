# SPDX-License-Identifier: Apache-2.0
"""Robots drawn from the posterior: consistent, distributed as stated, repeatable; wrong use is refused."""

from functools import cache

import numpy as np
import pytest
from support.altered import altered
from support.given_parameters import parameter_set
from support.simulated import ARM

from robot_dyn_id.dynamics.consistency import is_consistent
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.identification.prediction.robot_draws import draw_robots

COUNT = 2000


@cache
def identified(share):
    """A consistent robot whose parameters are known to a share of their values, and to 0.01 where these are small."""
    parameters = parameter_set(ARM, terms=(Viscous(), Coulomb(0.01)))
    sigma = share * np.maximum(np.abs(parameters.estimate.values), 0.01 / max(share, 1e-3) * share)
    correlation = np.full((len(sigma), len(sigma)), 0.3) + 0.7 * np.eye(len(sigma))
    return altered(
        parameters, estimate={"standard_deviations": sigma, "covariance": correlation * sigma[:, None] * sigma}
    )


def combine(parameters, draws):
    """Base parameters of the drawn bodies, without terms."""
    inertial = draws.bodies.reshape(len(draws.values), -1)
    return inertial @ parameters.base.mapping[:, : inertial.shape[1]].T


def test_small_deviations_give_the_normal_distribution_of_the_covariance():
    parameters = identified(1e-3)
    draws = draw_robots(parameters, COUNT, seed=0)
    assert draws.rejected == 0
    errors = (draws.values - parameters.estimate.values) / parameters.estimate.standard_deviations
    assert np.abs(errors.mean(axis=0)).max() < 5.0 / np.sqrt(COUNT)
    truth = parameters.estimate.covariance / np.outer(
        parameters.estimate.standard_deviations, parameters.estimate.standard_deviations
    )
    assert np.abs(np.cov(errors.T) - truth).max() < 8.0 / np.sqrt(COUNT)


@pytest.mark.parametrize("share", [1e-3, 0.02, 1.0])
def test_every_robot_is_consistent_and_has_the_drawn_parameters(share):
    parameters = identified(share)
    draws = draw_robots(parameters, 200, seed=0)
    assert all(is_consistent(bodies.ravel()) for bodies in draws.bodies)
    terms = np.array(["fv" in name or "fc" in name for name in parameters.base.names])
    assert draws.values[:, terms].min() >= 0.0
    np.testing.assert_allclose(combine(parameters, draws)[:, ~terms], draws.values[:, ~terms], rtol=1e-9, atol=1e-10)
    assert {1e-3: draws.rejected == 0, 0.02: 0 < draws.rejected < 200, 1.0: draws.rejected == 200}[share]


def test_rejected_draws_are_replaced_by_draws_of_the_truncated_distribution():
    """The viscous friction of one joint is 0 +- 1: half of the draws are rejected, what remains is half a normal."""
    parameters = parameter_set(ARM, terms=(Viscous(),), values=np.array([0.0, 1.0, 1.0]))
    where = parameters.base.names.index("fv1")
    covariance = np.zeros_like(parameters.estimate.covariance)
    covariance[where, where] = 1.0
    alone = altered(
        parameters, estimate={"covariance": covariance, "standard_deviations": np.sqrt(np.diag(covariance))}
    )
    draws = draw_robots(alone, COUNT, seed=0)
    assert abs(draws.rejected - COUNT / 2) < 4.0 * np.sqrt(COUNT / 4)
    friction = draws.values[:, where]
    assert friction.mean() == pytest.approx(np.sqrt(2.0 / np.pi), abs=4.0 * 0.6 / np.sqrt(COUNT))
    assert np.median(friction) == pytest.approx(0.6745, abs=0.08)
    assert np.delete(draws.values, where, axis=1).std(axis=0).max() < 1e-12


def test_robots_vary_also_where_all_friction_was_estimated_as_zero():
    """A corner of the consistent set, from which a random direction nearly never leads into it."""
    parameters = parameter_set(ARM, terms=(Viscous(), Coulomb(0.01)), values=np.zeros(6))
    friction = np.array([name[:2] in ("fv", "fc") for name in parameters.base.names])
    covariance = np.diag(friction.astype(float))
    draws = draw_robots(
        altered(parameters, estimate={"covariance": covariance, "standard_deviations": np.sqrt(np.diag(covariance))}),
        COUNT,
        seed=0,
    )
    assert draws.rejected > 0.95 * COUNT
    np.testing.assert_allclose(draws.values[:, friction].mean(axis=0), np.sqrt(2.0 / np.pi), atol=0.1)


def test_the_seed_repeats_the_robots_and_spread_scales_their_deviations():
    parameters = identified(1e-3)
    one, again, other = (draw_robots(parameters, 50, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.values, again.values)
    assert np.abs(one.values - other.values).max() > 0.0
    wide = draw_robots(parameters, 50, 3, spread=2.0)
    np.testing.assert_allclose(
        wide.values - parameters.estimate.values, 2.0 * (one.values - parameters.estimate.values), rtol=1e-6
    )


def test_parameters_that_the_data_do_not_determine_are_held_and_named():
    parameters = identified(1e-3)
    sigmas = parameters.estimate.standard_deviations.copy()
    sigmas[2] = np.inf
    draws = draw_robots(altered(parameters, estimate={"standard_deviations": sigmas}), 20, seed=0)
    assert draws.held == (parameters.base.names[2],)
    assert np.ptp(draws.values[:, 2]) == 0.0
    assert np.ptp(draws.values[:, 1]) > 0.0


def test_robots_are_drawn_near_a_set_whose_own_bodies_are_not_consistent():
    """Zeros in the dependent columns give the same torques."""
    parameters = identified(1e-3)
    zeros = np.zeros(len(parameters.base.column_names))
    zeros[parameters.base.independent] = parameters.estimate.values
    inertial = len(parameters.bodies.standard_parameters)
    other = altered(
        parameters,
        bodies={"standard_parameters": zeros[:inertial], "physically_consistent": False},
        terms={"values": zeros[inertial:]},
    )
    draws = draw_robots(other, 20, seed=0)
    assert all(is_consistent(bodies.ravel()) for bodies in draws.bodies)
    errors = (draws.values - parameters.estimate.values) / parameters.estimate.standard_deviations
    assert np.abs(errors).max() < 6.0


def test_wrong_use_is_refused():
    parameters = identified(1e-3)
    with pytest.raises(UsageError, match="number of robots"):
        draw_robots(parameters, 0, seed=0)
    with pytest.raises(UsageError, match="spread"):
        draw_robots(parameters, 2, seed=0, spread=float("nan"))
    with pytest.raises(InputError, match="no covariance"):
        draw_robots(
            altered(
                parameters,
                estimate={
                    "covariance": 0.0 * parameters.estimate.covariance,
                    "standard_deviations": np.zeros(len(parameters.estimate.values)),
                },
            ),
            2,
            seed=0,
        )
