# SPDX-License-Identifier: Apache-2.0
"""Small problems of excitation design, and a check of their gradients."""

from pathlib import Path

import numpy as np

from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.excitation.design.planning import make_design_task
from robot_dyn_id.files.design import design_settings
from robot_dyn_id.model.robot import RobotModel

URDFS = Path(__file__).resolve().parents[2] / "urdf"


ARM7, PLANAR = (RobotModel.from_file(URDFS / f"{name}.urdf") for name in ("arm7", "planar3r"))


LITTLE = {"draws": 20, "starts": 2, "finished": 1, "steps": 60, "population": 10, "generations": 6}


def regressor_of_arm(model):
    return Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(0.05), Offset())))


def plan(model=ARM7, **demands):
    given = {"acceleration": {"all": 6.0}, "clearance": 0.0, "search": LITTLE, **demands}
    return make_design_task(design_settings(**given), model, regressor_of_arm(model))


def slope_error(function, jacobian, x, seed=0, step=1e-6):
    """Largest difference between a Jacobian and central differences along a random direction, as a share.

    Differences of fourth order: smoothed limits bend within a few hundred steps.
    """
    along = step * np.random.default_rng(seed).normal(size=len(x))
    near, far = (function(x + k * along) - function(x - k * along) for k in (1.0, 2.0))
    along, numeric = along / step, (8.0 * near - far) / (12.0 * step)
    return np.abs(jacobian(x) @ along - numeric).max() / np.abs(numeric).max()
