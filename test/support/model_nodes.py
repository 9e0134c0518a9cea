# SPDX-License-Identifier: Apache-2.0
"""An arm that is simulated and its identified parameter set, for tests of the nodes that use one."""

from functools import cache

import numpy as np

from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Dahl, Offset, Viscous
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.messages.conversions import make_parameter_set_message
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording
from support import simulated
from support.simulated import TERMS

VISCOUS, COULOMB, NOISE = 1.5, 1.0, 0.05

RATED = 40.0
ARM = simulated.ARM.replace('effort="5"', f'effort="{RATED}"')
"""The arm of `simulated` with motors that can carry it."""


LEVELS = np.array([0.1, 0.1, 0.2, 0.2, 0.2, 0.2])
"""Levels of the Dahl elements of every joint of the presliding arm [N m]."""


def _identified(terms, values):
    """Parameter set of `ARM` with terms of these values, from recordings of its exact motion with a little noise."""
    model = RobotModel.from_urdf(ARM)
    regressor = Regressor(model, place_terms_on_joints(model, terms))
    n = len(model.joint_names)
    parameters = np.concatenate([model.inertial_parameters, *(np.tile(np.atleast_1d(value), n) for value in values)])
    sensors = Sensors(np.full(n, NOISE), 1e-6, 1e-4)
    motions = ((seed, draw_random_fourier(model, seed), sample_times(20.0, 200.0)) for seed in (1, 2))
    recordings = [simulate_recording(regressor, parameters, motion, t, sensors, seed) for seed, motion, t in motions]
    settings = Settings(terms=terms, estimator=ESTIMATORS["weighted"](), robot_compensates=("none",))
    return identify(recordings[:1], recordings[1:], model, settings, "test").parameters


@cache
def identified():
    """The parameter set of `ARM` with friction."""
    return _identified(TERMS, (VISCOUS, COULOMB, 0.0))


@cache
def presliding():
    """The same with Dahl elements instead of Coulomb friction."""
    return _identified((Viscous(), Dahl(), Offset()), (VISCOUS, LEVELS, 0.0))


def message(parameters=None):
    """Its message."""
    return make_parameter_set_message(parameters or identified())


def impossible():
    """The identified arm, the inertia of its first joint turned around."""
    good = identified()
    values = good.estimate.values.copy()
    values[good.base.names.index("Izz1")] -= 10.0 * np.abs(values).max()
    return replace_values(good, values)
