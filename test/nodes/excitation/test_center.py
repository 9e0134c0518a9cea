# SPDX-License-Identifier: Apache-2.0
"""Center of a random motion of the excitation publisher where none is given."""

from pathlib import Path

import numpy as np
import pytest

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.design.planning import make_design_task
from robot_dyn_id.files.design import design_settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.excitation.settings import ExcitationSettings, make_plan

MODEL = RobotModel.from_file(Path(__file__).parents[3] / "urdf" / "planar3r.urdf")
GIVEN = {"effort_scale": 0.0, "amplitude_share": 0.05}


def test_a_random_motion_is_about_the_configuration_that_a_design_chooses():
    """Around the middle of the limits the arm is in the ground."""
    plan = make_plan(MODEL, ExcitationSettings(**GIVEN))
    assert "the middle of the position limits is not free" in plan.remark and "posture: [" in plan.remark
    designed = make_design_task(design_settings(effort_scale=0.0), MODEL, Regressor(MODEL))
    middle = plan.excitation.evaluate(np.linspace(0.0, 10.0, 1000, endpoint=False))[0].mean(axis=1)
    np.testing.assert_allclose(middle, designed.center, atol=0.05)


def test_a_configuration_that_is_given_is_not_replaced():
    with pytest.raises(MotionError, match=r"the motion collides: .* ground"):
        make_plan(MODEL, ExcitationSettings(posture=(0.0, 0.0, 0.0), **GIVEN))
