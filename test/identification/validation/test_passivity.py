# SPDX-License-Identifier: Apache-2.0
"""Friction that drives a joint instead of braking it is reported, and excludes forward simulation."""

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import TERMS
from robot_dyn_id.identification.validation.passivity import report_driving_friction
from robot_dyn_id.identification.validation.uses import Criterion, judge_uses
from robot_dyn_id.model.robot import RobotModel

NAMES = ("viscous", "coulomb", "absolute_velocity", "offset")


def drivers(viscous, coulomb, difference, speeds=(1.0, 1.0, 1.0)):
    """Joints that are driven; every joint has an offset, which does not count as friction."""
    model = RobotModel.from_urdf(ARM)
    regressor = Regressor(model, place_terms_on_joints(model, [TERMS[name]() for name in NAMES]))
    values = (viscous, coulomb, difference, (5.0, -5.0, 5.0))
    parameters = np.concatenate([model.inertial_parameters, *(np.broadcast_to(value, 3) for value in values)])
    robot = Dynamics(regressor, np.arange(len(parameters)), parameters)
    found = report_driving_friction(robot, np.zeros(3), np.array(speeds))
    return found[0].joints if found else ()


def test_friction_that_brakes_is_not_reported():
    assert drivers(0.5, 1.0, 0.3) == ()
    assert drivers(-0.5, 1.0, 0.0) == ()  # Coulomb friction is larger at all trained speeds


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_difference_between_directions_that_exceeds_the_friction_is_reported(sign):
    assert drivers(0.1, 0.0, (0.0, sign * 0.3, 0.05)) == ("elbow",)


def test_the_trained_speeds_decide():
    assert drivers(-0.5, 1.0, 0.0, (1.0, 5.0, 1.0)) == ("elbow",)


def test_rounding_drives_nothing():
    assert drivers((0.0, 5.0, 5.0), (-2e-12, 1.0, 1.0), 0.0) == ()
    assert drivers((0.0, 5.0, 5.0), (-1e-3, 1.0, 1.0), 0.0) == ("shoulder",)


def test_it_excludes_forward_simulation_of_that_joint():
    model = RobotModel.from_urdf(ARM)
    regressor = Regressor(model, place_terms_on_joints(model, [TERMS["viscous"]()]))
    robot = Dynamics(regressor, np.arange(33), np.append(model.inertial_parameters, [1.0, -1.0, 1.0]))
    findings = report_driving_friction(robot, np.zeros(3), np.ones(3))
    criteria = [Criterion("forward_simulation", "rollout_error_high", name, 0.0, "rad", 1.0, 2.0) for name in "abc"]
    (judged,) = judge_uses(("shoulder", "elbow", "wrist"), criteria, findings)
    assert (judged.fit.answer, judged.fit.because) == ("no", ("friction_not_passive",))
    assert judged.fit.joints == ("elbow",)
