# SPDX-License-Identifier: Apache-2.0
"""An arm that is simulated and its identified parameter set, for tests of the nodes that use one."""

from functools import cache

import numpy as np

from robot_dyn_id.dynamics.regressor import Regressor, terms_on_joints
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.identification.assembly import with_values
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.messages.conversions import parameter_set_message
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulated_recording
from support import simulated
from support.simulated import TERMS

VISCOUS, COULOMB, NOISE = 1.5, 1.0, 0.05

RATED = 40.0
ARM = simulated.ARM.replace('effort="5"', f'effort="{RATED}"')
"""The arm of `simulated` with motors that can carry it."""


@cache
def identified():
    """The parameter set of `ARM` with friction, from recordings of its exact motion with a little noise."""
    model = RobotModel.from_urdf(ARM)
    regressor = Regressor(model, terms_on_joints(model, TERMS))
    n = len(model.joint_names)
    values = np.concatenate([model.inertial_parameters, np.full(n, VISCOUS), np.full(n, COULOMB), np.zeros(n)])
    sensors = Sensors(np.full(n, NOISE), 1e-6, 1e-4)
    recordings = [
        simulated_recording(regressor, values, random_fourier(model, seed), sample_times(20.0, 200.0), sensors, seed)
        for seed in (1, 2)
    ]
    return identify(recordings[:1], recordings[1:], model, Settings(terms=TERMS), "test").parameters


def message(parameters=None):
    """Its message."""
    return parameter_set_message(parameters or identified())


def impossible():
    """The identified arm, the inertia of its first joint turned around."""
    good = identified()
    values = good.values.copy()
    values[good.names.index("Izz1")] -= 10.0 * np.abs(values).max()
    return with_values(good, values)
