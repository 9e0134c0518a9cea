# SPDX-License-Identifier: Apache-2.0
"""Columns of momentum and drift against Pinocchio, and rotor inertias against the mass matrix."""

import numpy as np
import pinocchio
import pytest
from support.robots import MIMICS, OBLIQUE, Truth, panda_arm, robot

from robot_dyn_id.dynamics.momentum import MomentumRegressor
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, RotorInertia, Viscous
from robot_dyn_id.model.robot import RobotModel

ROBOTS = {
    "oblique": lambda: RobotModel.from_urdf(OBLIQUE, gravity=(3.0, -5.0, -7.5)),
    "mimics": lambda: RobotModel.from_urdf(MIMICS),
    **{name: lambda name=name: robot(name) for name in ("planar3r", "tiago_pro", "icub")},
}


@pytest.mark.parametrize("name", ROBOTS)
def test_momentum_and_drift_are_those_of_pinocchio(name):
    """Prismatic, mimic and branched joints: G' M G dq, and G' (C' dq - g) of the model without mimic joints."""
    model = ROBOTS[name]()
    truth, columns = Truth(model), MomentumRegressor(Regressor(model))
    q, dq = np.random.default_rng(1).uniform(-1.5, 1.5, (2, len(model.joint_names), 3))
    both = (model.inertial_parameters @ each for each in columns.columns(q.T, dq.T))
    for (full, rate, _), momentum, drift in zip(truth._states(Motion(q, dq, dq)), *both, strict=True):
        mass = np.triu(pinocchio.crba(truth.model, truth.data, full))
        coriolis = pinocchio.computeCoriolisMatrix(truth.model, truth.data, full, rate)
        gravity = pinocchio.computeGeneralizedGravity(truth.model, truth.data, full)
        inertia = (mass + np.triu(mass, 1).T) @ rate
        for ours, theirs in ((momentum, inertia), (drift, coriolis.T @ rate - gravity)):
            expected = model.coupling.T @ theirs
            np.testing.assert_allclose(ours, expected, rtol=0.0, atol=1e-11 * np.abs(theirs).max())


def test_rotors_have_momentum_and_friction_has_none():
    model = panda_arm()
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(), RotorInertia())))
    q, dq = np.random.default_rng(2).uniform(-1.0, 1.0, (2, 1, 7))
    (momentum,), (drift,) = MomentumRegressor(regressor).columns(q, dq)
    bodies, n = 70, 7
    assert not momentum[bodies : bodies + 2 * n].any()
    np.testing.assert_array_equal(momentum[bodies + 2 * n :], np.diag(dq[0]))
    assert not drift[bodies:].any()
