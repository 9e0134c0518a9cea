# SPDX-License-Identifier: Apache-2.0
"""Workspaces of compiled functions: results do not depend on what the memory held before."""

import numpy as np
import pytest
from support.given_parameters import parameter_set
from support.robots import OBLIQUE

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.model.robot import RobotModel

ROUNDS = 100
PARAMETERS = parameter_set(OBLIQUE, terms=(Viscous(), Coulomb()))
DYNAMICS = Dynamics.from_parameters(PARAMETERS)
REGRESSOR = Regressor(RobotModel.from_urdf(OBLIQUE))
Q, DQ, TAU = (np.random.default_rng(seed).uniform(-1.0, 1.0, (70, 4)) for seed in range(3))


def leave_not_a_number(rng):
    """Free memory of many sizes that holds no numbers, for the next allocations."""
    blocks = [np.full(int(size), np.nan) for size in rng.integers(1, 20_000, 60)]
    del blocks


@pytest.mark.parametrize(
    "compute",
    [
        lambda: DYNAMICS.gravity(Q[0]),
        lambda: DYNAMICS.inverse_dynamics(Q, DQ, TAU),
        lambda: DYNAMICS.mass_matrix(Q[0]),
        lambda: DYNAMICS.mass_matrix(Q),
        lambda: DYNAMICS.forward_dynamics(Q[0], DQ[0], TAU[0]),
        lambda: DYNAMICS.forward_dynamics(Q, DQ, TAU),
        lambda: REGRESSOR.dense(Motion(Q.T.copy(), DQ.T.copy(), TAU.T.copy())),
    ],
    ids=["gravity", "torques", "mass matrix", "mass matrices", "acceleration", "accelerations", "regressor"],
)
def test_results_do_not_depend_on_memory_that_was_freed(compute):
    """A robot with revolute and prismatic joints, each of which leaves other rows of a workspace unused."""
    rng = np.random.default_rng(0)
    expected = compute()
    assert np.isfinite(expected).all()
    for _ in range(ROUNDS):
        leave_not_a_number(rng)
        np.testing.assert_array_equal(compute(), expected)
