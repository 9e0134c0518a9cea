# SPDX-License-Identifier: Apache-2.0
"""Purposes of a designed motion of the links; that of actuators is in `test/actuators`."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, QUICK_DESIGN

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.dynamics.terms import Coulomb, RotorInertia, Viscous
from robot_dyn_id.identification.validation.scales import compute_inertia_deviation
from robot_dyn_id.workflow.excitation import design

QUICK = {
    **QUICK_DESIGN,
    "search": {"draws": 20, "starts": 2, "finished": 1, "steps": 20},
    "terms": (Viscous(), Coulomb(), RotorInertia()),
}


@pytest.mark.slow
def test_a_motion_for_computed_torque_determines_the_mass_matrix_better_than_one_for_links():
    own, other = design(MODEL, purpose="computed_torque", **QUICK), design(MODEL, **QUICK)
    assert own.task.objective == "joint_inertias"
    assert all(margin.margin >= -1e-9 for margin in own.design.margins)
    regressor, base = own.task.problem.information.regressor, own.task.problem.information.base
    model = replace(regressor.model, gravity=np.zeros(3))
    poses = np.random.default_rng(3).uniform(-1.0, 1.0, (3, 50))
    bodies = [value for value in MODEL.inertial_parameters] + [0.0] * 9
    deviations = []
    for one in (own, other):
        problem = one.task.problem
        covariance = np.linalg.inv(problem.information.matrix(sample(one.trajectory)))
        motion = Motion(poses, np.zeros_like(poses), np.zeros_like(poses))
        values = base.mapping @ np.array(bodies)
        found = compute_inertia_deviation(replace(regressor, model=model), base.independent, values, covariance, motion)
        deviations.append(np.sqrt(np.mean(found**2)))
    assert deviations[0] < 0.8 * deviations[1], deviations


def sample(trajectory):
    t = np.arange(0.0, trajectory.duration, 0.01)
    return Motion(*trajectory.evaluate(t)[:3])
