"""The two-link arm with flexible joints that tests and benchmarks identify: known parameters, simulated experiments."""

from pathlib import Path

import numpy as np

from robot_dyn_id.excitation.polynomial import Polynomial
from robot_dyn_id.flexible import FlexibleJoint, FlexibleModel, FlexiblePlant
from robot_dyn_id.robot import RobotModel

URDF = Path(__file__).resolve().parents[1] / "urdf" / "flexible2r.urdf"
RATIO, PERIOD, RATE = 101.0, 5.0, 500.0
AMPLITUDES = np.radians([31.25, 35.156])  # what the acceleration limits of 40 and 45 deg/s^2 allow in 5 s
TRUTH = {
    **{"fv1": 6.0, "fv2": 4.0, "fc1": 5.0, "fc2": 3.0, "off1": 0.8, "off2": -0.6, "K1": 1.2e4, "K2": 0.8e4},
    **{"Jm1": 2e-4, "fvm1": 1e-3, "fcm1": 0.05, "Jm2": 1.5e-4, "fvm2": 8e-4, "fcm2": 0.04},
    **{"offm1": -0.8 / RATIO, "offm2": 0.6 / RATIO},  # the motors' torques have no offset of their own
}


def flexible_model(**options):
    model = RobotModel.from_urdf(URDF)
    return FlexibleModel(model, tuple(FlexibleJoint(name, RATIO, **options) for name in model.joint_names))


def true_values(model):
    full = np.zeros(len(model.regressor.names))
    full[:20] = model.model.inertial_parameters
    values = np.zeros(len(model.names))
    values[: len(model.base.names)] = model.base.mapping @ full
    for name, value in TRUTH.items():
        if name in model.names:
            values[model.names.index(name)] = value
    return values


def motion_experiment(plant, moving):
    """a_init + c t^4 (T - t)^4 of the joints that move, from 30 degrees."""
    names = plant.model.model.joint_names
    coefficients = np.zeros((2, 9))
    coefficients[:, 4] = [a * 256 / 70 if name in moving else 0.0 for a, name in zip(AMPLITUDES, names, strict=True)]
    motion = Polynomial(np.radians([30.0, 30.0]), coefficients, PERIOD)
    return plant.run(" and ".join(moving), motion, PERIOD, RATE, moving)


def static_experiment(plant, per_joint=5):
    limits = plant.model.model.limits
    grid = np.meshgrid(*(np.linspace(*ends, per_joint) for ends in zip(limits.lower, limits.upper, strict=True)))
    return plant.poses("static", np.reshape(grid, (2, -1)))


def experiments(model, motions=(("joint1",), ("joint2",), ("joint1", "joint2"))):
    plant = FlexiblePlant(model, true_values(model))
    return [static_experiment(plant), *(motion_experiment(plant, moving) for moving in motions)]
