# SPDX-License-Identifier: Apache-2.0
"""Simulations of one robot from many states at once: each is that of a single plant."""

import numpy as np
import pytest
from support.robots import panda_arm

from robot_dyn_id.dynamics.regressor import place_terms_on_joints
from robot_dyn_id.dynamics.terms import Dahl
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.kernels.stepping import dry_friction
from robot_dyn_id.simulation.plant import Plant, make_nominal_dynamics
from robot_dyn_id.simulation.plant_lanes import PlantLanes, warm_up_dry_friction, warm_up_lanes

LANES = 5


@pytest.fixture(scope="module")
def dynamics():
    """Panda with Coulomb friction, and presliding on the first joint."""
    model = panda_arm()
    (coordinate, term), *_ = place_terms_on_joints(model, (Dahl(),))
    presliding = coordinate, term, np.full(len(term.symbols), 2.0)
    return make_nominal_dynamics(model, np.full(7, 0.5), np.full(7, 1.0), 0.01, (presliding,))


def states(seed=0):
    rng = np.random.default_rng(seed)
    start = np.array([0.1, -0.5, 0.2, -2.0, 0.3, 1.5, 0.7])[:, None]
    return start + 0.2 * rng.normal(size=(7, LANES)), 0.3 * rng.normal(size=(7, LANES)), rng.uniform(-1, 1, (7, LANES))


def test_every_lane_is_the_simulation_of_a_single_plant(dynamics):
    q, dq, effort = states()
    plants = [Plant(dynamics, q[:, lane]) for lane in range(LANES)]
    slip = np.zeros((len(plants[0].slip), LANES))
    slip[:, 2] = 0.4
    for lane, plant in enumerate(plants):
        plant.dq[:], plant.slip[:] = dq[:, lane], slip[:, lane]
    lanes = PlantLanes(plants[0].dynamics, q, dq, slip)
    kept = np.arange(LANES)
    for count, still in ((20, np.ones(LANES, dtype=bool)), (20, np.array([True, False, True, False, True]))):
        lanes.take(still[kept])
        kept = kept[still[kept]]
        for _ in range(count):
            lanes.advance(effort[:, kept], 0.005)
            for lane in kept:
                plants[lane].advance(effort[:, lane], 0.005)
        np.testing.assert_allclose(lanes.q, np.stack([plants[lane].q for lane in kept], axis=1), rtol=0, atol=1e-10)
        np.testing.assert_allclose(lanes.dq, np.stack([plants[lane].dq for lane in kept], axis=1), rtol=0, atol=1e-9)
    assert not lanes.diverged.any()


def test_a_lane_that_diverges_leaves_the_others_as_they_are(dynamics):
    q, dq, effort = states()
    compiled = Plant(dynamics, q[:, 0]).dynamics
    slip = np.zeros((len(compiled.slip()), LANES))
    alone, wild = (PlantLanes(compiled, q, dq, slip) for _ in range(2))
    huge = effort.copy()
    huge[:, 1] = 1e200
    for _ in range(5):
        alone.advance(effort, 0.01)
        wild.advance(huge, 0.01)
    assert wild.diverged.tolist() == [False, True, False, False, False]
    others = ~wild.diverged
    np.testing.assert_array_equal(wild.q[:, others], alone.q[:, others])


@pytest.mark.skipif(not COMPILED, reason="numba is not installed")
def test_what_is_compiled_in_advance_is_what_the_simulation_calls():
    warm_up_lanes()
    warm_up_dry_friction()
    kept = dry_friction._cache._cache_file._load_index()
    assert len({signature for signature, *_ in kept}) == 1
