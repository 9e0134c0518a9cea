# SPDX-License-Identifier: Apache-2.0
"""Comparisons of an estimate after the fit."""

import numpy as np
import pytest
from support.robots import joint, urdf

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Dahl, Offset, RotorInertia, Viscous
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.identification.fit.estimation import count_free
from robot_dyn_id.identification.fit.identifiability import find_inseparable
from robot_dyn_id.model.robot import RobotModel


def test_parameters_at_a_bound_do_not_count():
    values = np.array([1.0, -0.2, 1e-15, 0.0, 3e-6, 0.4])
    deviations = np.array([0.1, 5.0, 0.1, 0.3, 1e-2, np.inf])
    none = np.zeros(0)
    estimate = Estimate(values, np.diag(np.zeros(6)), deviations, 1.0, none, none, 6)
    assert count_free(estimate) == 2


@pytest.mark.parametrize(("angle", "together"), [("1.5708", ("Izz2", "Ir2")), ("1.2", ())])
def test_rounded_right_angles_leave_parameters_that_no_motion_separates(angle, together):
    text = urdf(joint("a", "base", "l1", rpy="0 0 0"), joint("b", "l1", "l2", rpy=f"{angle} 0 0"), links=2)
    model = RobotModel.from_urdf(text)
    regressor = Regressor(model, place_terms_on_joints(model, (RotorInertia(), Viscous(), Dahl(), Offset())))
    base = compute_base_parameters(regressor)
    assert {"Izz2", "Ir2"} <= set(base.names)
    assert find_inseparable(regressor, base, base.names) == together
    assert find_inseparable(regressor, base, [name for name in base.names if name != "Ir2"]) == ()
