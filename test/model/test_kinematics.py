# SPDX-License-Identifier: Apache-2.0
"""Path of a link along a motion."""

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.errors import InputError
from robot_dyn_id.model.kinematics import trace_link
from robot_dyn_id.model.robot import RobotModel

MODEL = RobotModel.from_urdf(ARM)


def test_the_path_is_that_of_pinocchio():
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromXML(ARM)
    data, positions = model.createData(), np.random.default_rng(0).uniform(-1.0, 1.0, (5, 3))
    path = trace_link(MODEL, "l2", list(MODEL.joint_names), positions)
    for q, point in zip(positions, path, strict=True):
        pinocchio.framesForwardKinematics(model, data, q)
        np.testing.assert_allclose(point, data.oMf[model.getFrameId("l2")].translation, atol=1e-12)


def test_a_preview_of_another_robot_is_refused():
    with pytest.raises(InputError, match="stranger"):
        trace_link(MODEL, "", ["stranger"], np.zeros((2, 1)))


@pytest.mark.parametrize("rows", [[[0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0]], [[]], [[0.0, 0.0, float("nan")]]], ids=str)
def test_points_of_other_lengths_are_refused(rows):
    with pytest.raises(InputError, match="preview"):
        trace_link(MODEL, "", list(MODEL.joint_names), rows)
