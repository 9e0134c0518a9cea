# SPDX-License-Identifier: Apache-2.0
"""Links of the robot description, and others where these predict better."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import GOOD, MODEL, TRUTH, record

from robot_dyn_id.actuators.actuator_set import ActuatorSet
from robot_dyn_id.actuators.identification import KnownDrives, identify
from robot_dyn_id.actuators.judgment import judge
from robot_dyn_id.actuators.validation import validate
from robot_dyn_id.dynamics.consistency import find_violation
from robot_dyn_id.export.actuators import make_friction_urdf
from robot_dyn_id.files.actuators import read_actuators, write_actuators
from robot_dyn_id.model.robot import RobotModel

KNOWN = KnownDrives(TRUTH.kp, TRUTH.kd, np.full(3, np.inf))

OPTIONS = {"duration": 5.0, "rate": 50.0, "noise": 1e-3}


def change_links():
    """The same arm with a heavier wrist, whose center of mass is elsewhere."""
    bodies = MODEL.inertial_parameters.reshape(-1, 10).copy()
    bodies[2] *= 1.6
    bodies[1, 1:4] += bodies[1, 0] * np.array([0.02, 0.0, 0.02])
    return replace(MODEL, inertial_parameters=bodies.ravel())


@pytest.mark.slow
def test_wrong_links_are_replaced_by_consistent_ones_that_predict_other_motions(tmp_path):
    actual = change_links()
    found = identify(MODEL, [record(actual, seed=seed, **OPTIONS) for seed in range(3)], KNOWN)
    assert found.links.gain > 0.9
    errors = validate(found.links.robot, found.actuators, [record(actual, seed=7, **OPTIONS)])
    assert errors.share < 0.1
    assert errors.rms(np.inf) < 0.1 * validate(MODEL, TRUTH, [record(actual, seed=7, **OPTIONS)]).rms(np.inf)
    assert not any(find_violation(body) for body in found.links.robot.inertial_parameters.reshape(-1, 10))
    (finding,) = (one for one in judge(found, KNOWN, None) if one.code == "actuator_other_links")
    assert f"{found.links.gain:.0%}" in finding.message
    bodies = found.links.robot.inertial_parameters
    write_actuators(tmp_path / "actuators.yaml", ActuatorSet.from_estimate(found, GOOD))
    stored = read_actuators(tmp_path / "actuators.yaml")
    np.testing.assert_array_equal(stored.model(MODEL.urdf).inertial_parameters, bodies)
    np.testing.assert_array_equal(stored.actuators.values, found.actuators.values)


@pytest.mark.slow
def test_right_links_are_kept():
    actual = change_links()
    found = identify(actual, [record(actual, seed=seed, **OPTIONS) for seed in range(3)], KNOWN)
    assert found.links.gain == 0.0
    assert found.links.robot is actual


@pytest.mark.slow
def test_links_are_kept_where_they_give_the_scale_of_unknown_gains():
    actual = change_links()
    unknown = KnownDrives(*np.full((2, 3), np.nan), np.full(3, np.inf))
    assert identify(MODEL, [record(actual, seed=seed, **OPTIONS) for seed in range(3)], unknown).links.robot is MODEL


def test_the_urdf_has_the_other_links():
    actual = change_links()
    read = RobotModel.from_urdf(make_friction_urdf(actual, TRUTH, links=True))
    np.testing.assert_allclose(read.inertial_parameters, actual.inertial_parameters, rtol=1e-9, atol=1e-12)
