# SPDX-License-Identifier: Apache-2.0
"""Inertias of a chain from sensors in some of its hinges."""

import numpy as np
import pytest
from support.robots import panda_arm

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.loads.chain import ALL, CENTROIDAL, find_centroidal_frames, simulate_chain
from robot_dyn_id.loads.chain_estimate import bound_deviations, identify_chain
from robot_dyn_id.loads.chain_sensors import (
    ChainWindow,
    HingeSensor,
    bound_from_sensors,
    identify_from_sensors,
    make_sensor_problem,
)
from robot_dyn_id.model.kinematics import Kinematics
from robot_dyn_id.papers.quaternion6r.arm import GRAVITY, SpaceArm, make_swinging

ARM = SpaceArm.from_urdf()
MOTION = make_swinging(np.arange(1, 151) / 15.0)
BODIES = ARM.bodies(ARM.recorded(MOTION))
EVERY = [HingeSensor.six_axis(BODIES, number) for number in range(6)]


def problem(sensors, columns=CENTROIDAL, offsets=False):
    return make_sensor_problem(lambda: [ChainWindow(BODIES, sensors)], GRAVITY, columns, 15.0, offsets)


def test_sensors_in_all_hinges_give_what_the_chain_gives():
    found, expected = identify_from_sensors(problem(EVERY), CENTROIDAL), identify_chain(BODIES, 15.0, GRAVITY)
    assert found.not_excited == expected.not_excited == ("Iyy1", "Izz1")
    assert found.rank == expected.rank == 22
    assert found.names.tolist() == expected.names.tolist() and found.units == expected.units
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    noise = np.arange(1.0, 13.0).reshape(6, 2)
    least = bound_from_sensors(problem(EVERY), CENTROIDAL, np.repeat(noise, 3))
    np.testing.assert_allclose(least.standard_deviations, bound_deviations(BODIES, noise, GRAVITY), rtol=1e-6)


def test_one_sensor_under_the_base_gives_combinations_only():
    """15 of 24, whether the torques of the joints are known or not; the readings are explained exactly."""
    poses = Kinematics(ARM.model).poses(MOTION.q)
    torques = [
        HingeSensor.torque(BODIES, number, (poses.rotation[:, number] @ ARM.model.axis[number]).T)
        for number in range(6)
    ]
    alone, both = (identify_from_sensors(problem(s), CENTROIDAL) for s in (EVERY[:1], [EVERY[0], *torques]))
    assert alone.rank == both.rank == 15
    assert [name for name in alone.names.ravel() if name not in alone.not_excited] == ["Ixx6"], "the tip turns alone"
    np.testing.assert_allclose(alone.values[5, 1], ARM.truth[5, 1], rtol=1e-9)
    assert identify_from_sensors(problem(EVERY[:1], ALL), ALL).rank > 15


def test_one_sensor_under_the_base_is_enough_for_an_arm_with_offset_centers():
    """Panda: all masses and principal moments, where centers of mass and principal axes are known."""
    model = panda_arm()
    rng, t = np.random.default_rng(4), np.linspace(0.0, 3.0, 150)
    w = rng.uniform(1.0, 4.0, (7, 1))
    motion, frames = Motion(np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)), find_centroidal_frames(model)
    bodies, gravity = simulate_chain(model, motion, frames), tuple(model.gravity)
    base = [ChainWindow(bodies, [HingeSensor.six_axis(bodies)])]
    found = identify_from_sensors(make_sensor_problem(lambda: base, gravity, CENTROIDAL, 50.0), CENTROIDAL)
    assert found.rank == 28 and not found.not_excited
    np.testing.assert_allclose(found.values[:, 0], model.inertial_parameters.reshape(-1, 10)[:, 0], rtol=1e-6)


def test_torques_are_the_components_of_the_wrench_along_the_axes():
    regressor_free = Kinematics(ARM.model).poses(MOTION.q)
    axis = (regressor_free.rotation[:, 2] @ ARM.model.axis[2]).T
    sensor = HingeSensor.torque(BODIES, 2, axis)
    np.testing.assert_allclose(sensor.readings[0], (axis * BODIES[2].wrench[:3]).sum(axis=0), rtol=1e-12)
    rows = sensor.rows(BODIES, GRAVITY, CENTROIDAL)
    np.testing.assert_allclose(
        np.einsum("kpn,p->kn", rows, ARM.truth.ravel()), sensor.readings, atol=1e-9 * np.abs(sensor.readings).max()
    )


def test_offsets_of_the_sensors_are_found_with_the_inertias():
    shift = np.linspace(10.0, 60.0, 6)[:, None]
    shifted = [HingeSensor(one.hinge, one.channels, one.axes, one.readings + shift) for one in EVERY]
    found = identify_from_sensors(problem(shifted, offsets=True), CENTROIDAL)
    shown = np.isfinite(found.values)
    assert shown[1:].all() and found.rank <= 22
    np.testing.assert_allclose(found.values[shown], ARM.truth[shown], rtol=1e-6)
    with pytest.raises(InputError, match="no samples of the sensors"):
        make_sensor_problem(list, GRAVITY, CENTROIDAL, 15.0)
