# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode gradients of regressors with the usual terms."""

import numpy as np

from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, RotorInertia, Viscous
from robot_dyn_id.excitation.design.information import compute_regressor_gradient
from robot_dyn_id.model.robot import RobotModel
from support.robots import MIMICS, OBLIQUE, robot

SMALL = {"oblique": OBLIQUE, "mimics": MIMICS}


def model_of(name):
    return RobotModel.from_urdf(SMALL[name]) if name in SMALL else robot(name)


def everywhere(regressor):
    """Slots for every entry of the dense regressor that can be other than zero."""
    c, n = regressor.structure.shape
    return np.where(regressor.structure, np.arange(c * n).reshape(c, n), -1)


def gradient(regressor, motion, cotangent):
    """Derivatives of sum cotangent * Y, shape (3, n, N); the cotangent has the shape (c, n, N)."""
    c, n, count = cotangent.shape
    return np.array(
        compute_regressor_gradient(regressor, motion, everywhere(regressor), cotangent.reshape(c * n, count))
    )


def with_terms(model):
    return Regressor(model, place_terms_on_joints(model, [Viscous(), Coulomb(0.3), Offset(), RotorInertia()]))


def compared(names):
    results = {}
    for name in names:
        regressor = with_terms(model_of(name))
        cotangent = np.random.default_rng(8).normal(size=(*regressor.structure.shape, 150))
        results[name] = gradient(regressor, draw_random_motion(regressor.model, 150, seed=8), cotangent)
    return results
