# SPDX-License-Identifier: Apache-2.0
"""Copies of an identified robot: the single simulator for each of them, efforts clipped, wrong use refused."""

import copy
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.altered import altered, scaled
from support.given_parameters import parameter_set
from support.simulated import ARM

from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.simulation.batch_plant import LANES
from robot_dyn_id.simulation.plant import Plant
from robot_dyn_id.workflow.batch_simulation import BatchSimulation

LIMIT = 5.0
COUNT = 6


@cache
def identified():
    parameters = parameter_set(ARM, terms=(Viscous(), Coulomb(0.01)))
    sigma = 0.01 * np.abs(parameters.estimate.values)
    ranges = {"q_min": np.full(3, -0.4), "q_max": np.full(3, 0.6), "dq_max": np.ones(3), "ddq_max": np.ones(3)}
    uncertain = {"standard_deviations": sigma, "covariance": np.diag(sigma**2)}
    return altered(parameters, estimate=uncertain, judgment={"verdict": "good"}, ranges=ranges)


def test_without_a_seed_all_robots_are_the_estimate_and_begin_at_rest():
    batch = BatchSimulation(identified(), COUNT)
    np.testing.assert_allclose(batch.q, np.full((COUNT, 3), 0.1))
    batch.step(np.ones((COUNT, 3)), 0.01)
    assert np.ptp(batch.q, axis=0).max() == 0.0
    assert np.abs(batch.dq).max() > 0.0


def test_each_robot_is_simulated_as_the_single_simulator_does_with_its_parameters():
    batch = BatchSimulation(identified(), COUNT, seed=0)
    plants = [Plant(batch.dynamics(k), batch.q[k], batch.effort_limit) for k in range(COUNT)]
    for k in range(20):
        effort = 8.0 * np.sin(k + np.arange(COUNT * 3).reshape(COUNT, 3))
        applied = batch.step(effort, 0.005)
        for plant, own, given in zip(plants, effort, applied, strict=True):
            np.testing.assert_array_equal(plant.advance(own, 0.005), given)
    np.testing.assert_allclose(batch.q, [plant.q for plant in plants], rtol=1e-10, atol=1e-12)
    assert np.ptp(batch.q, axis=0).min() > 0.0


def test_efforts_beyond_the_limits_are_clipped_and_reported():
    batch = BatchSimulation(identified(), 2)
    np.testing.assert_array_equal(batch.effort_limit, LIMIT)
    applied = batch.step([[6.0, -7.0, 1.0], [0.0, 5.0, -5.0]])
    np.testing.assert_array_equal(applied, [[5.0, -5.0, 1.0], [0.0, 5.0, -5.0]])
    np.testing.assert_array_equal(batch.limited, [[True, True, False], [False, False, False]])


def test_robots_are_reset_by_mask_or_number():
    batch = BatchSimulation(identified(), 4)
    batch.step(np.ones((4, 3)), 0.05)
    before = batch.q.copy()
    batch.reset([0.2, 0.2, 0.2], 0.5, [1, 3])
    np.testing.assert_array_equal(batch.q[[1, 3]], 0.2)
    np.testing.assert_array_equal(batch.dq[[1, 3]], 0.5)
    np.testing.assert_array_equal(batch.q[[0, 2]], before[[0, 2]])
    batch.reset(before[:2], environments=np.array([True, False, False, True]))
    np.testing.assert_array_equal(batch.q[[0, 3]], before[:2])


def test_a_bad_verdict_is_refused_and_so_is_a_mass_matrix_that_is_none():
    with pytest.raises(InputError, match="verdict"):
        BatchSimulation(altered(identified(), judgment={"verdict": "bad", "reasons": ("it fails",)}), 2)
    opposite = altered(scaled(identified(), -1.0), bodies={"physically_consistent": False})
    with pytest.raises(InputError, match="positive definite"):
        BatchSimulation(opposite, 2)


def test_friction_that_drives_a_joint_is_refused():
    friction = parameter_set(ARM, terms=(Viscous(), Coulomb(0.01)), values=-np.ones(6))
    one = altered(replace(friction, ranges=identified().ranges), judgment={"verdict": "good"})
    with pytest.raises(InputError, match="drives joints"):
        BatchSimulation(one, 2)


def test_draws_that_are_mostly_rejected_are_reported():
    one = identified()
    sigma = 2.0 * np.abs(one.estimate.values)
    wide = altered(one, estimate={"standard_deviations": sigma, "covariance": np.diag(sigma**2)})
    with pytest.warns(UserWarning, match="physically consistent"):
        BatchSimulation(wide, 20, seed=0)


def test_no_parameter_set_and_a_negative_seed_are_refused():
    with pytest.raises(UsageError, match="load_parameters"):
        BatchSimulation("run/parameters.yaml", 2)
    with pytest.raises(UsageError, match="seed: -1"):
        BatchSimulation(identified(), 2, seed=-1)


def test_a_position_beyond_the_limits_is_reported():
    batch = BatchSimulation(identified(), 2)
    with pytest.warns(UserWarning, match="99 of joint"):
        batch.reset([99.0, 0.0, 0.0])


@pytest.mark.parametrize("count", [0, -1])
def test_no_environments_are_refused(count):
    with pytest.raises(UsageError, match=f"environments: {count}"):
        BatchSimulation(identified(), count)


def test_wrong_efforts_durations_and_states_are_refused_by_name():
    batch = BatchSimulation(identified(), 2)
    before = batch.q.copy()
    with pytest.raises(UsageError, match=r"shape \(3,\); give \(2, 3\)"):
        batch.step(np.zeros(3))
    with pytest.raises(UsageError, match="nan for joint wrist of environment 1"):
        batch.step([[0.0, 0.0, 0.0], [0.0, 0.0, np.nan]])
    for duration in (0.0, -1.0, np.nan, np.inf, 61.0):
        with pytest.raises(UsageError, match="duration"):
            batch.step(np.zeros((2, 3)), duration)
    with pytest.raises(UsageError, match="q: shape"):
        batch.reset(np.zeros((3, 3)))
    with pytest.raises(UsageError, match="dq: give finite"):
        batch.reset(np.zeros(3), np.inf)
    for wrong in ([2], [True], [1, 0], [0.5], [-1], [-1, 0]):
        with pytest.raises(UsageError, match="environments"):
            batch.reset(np.zeros(3), environments=wrong)
    np.testing.assert_array_equal(batch.q, before)


def test_a_batch_is_copied_with_its_state_after_steps_in_threads():
    batch = BatchSimulation(identified(), 2 * LANES, threads=2)
    effort = np.ones((2 * LANES, 3))
    batch.step(effort, 0.01)
    others = [copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))]
    batch.step(effort, 0.01)
    for other in others:
        other.step(effort, 0.01)
        np.testing.assert_array_equal(other.q, batch.q)
