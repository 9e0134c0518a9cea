# SPDX-License-Identifier: Apache-2.0
"""Many plants at once: each equal to the single plant with its parameters and to Pinocchio, on any number of cores."""

import numpy as np
import pinocchio
import pytest
from support.given_parameters import heavier
from support.robots import MIMICS, panda_arm, ratio

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import TERMS
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.batch_plant import LANES, BatchPlant
from robot_dyn_id.simulation.plant import Plant

FRICTION = {"viscous": 0.3, "coulomb": 0.4, "offset": 0.1, "rotor_inertia": 0.05, "spring": 0.5}
PRESLIDING = {"viscous": 0.3, "dahl": 0.1, "load_dahl": 0.01, "saturating_viscous": 0.2}
FADING = {"stribeck": 0.5, "absolute_velocity": 0.05, "coulomb": 0.2}


def robots(model, values, count, seed=0):
    """A robot with terms, and parameters of `count` unlike copies, shape (count, c)."""
    regressor = Regressor(model, place_terms_on_joints(model, [TERMS[name]() for name in values]))
    rng = np.random.default_rng(seed)
    terms = np.array([values[column.term.name] for column in regressor.term_columns])
    bodies = np.array([heavier(model, k) for k in range(count)])
    parameters = np.hstack([bodies, terms * rng.uniform(0.5, 1.5, (count, len(terms)))])
    return Dynamics(regressor, np.arange(parameters.shape[1]), parameters[0]), parameters


def states(model, count, seed=1):
    q, dq = np.random.default_rng(seed).uniform(-1.0, 1.0, (2, count, len(model.joint_names)))
    return q, dq


def single(robot, parameters, q, dq):
    plant = Plant(Dynamics(robot.regressor, robot.columns, parameters), q)
    plant.dq[:] = dq
    return plant


@pytest.mark.parametrize("values", [FRICTION, PRESLIDING, FADING], ids=["coulomb", "presliding", "fading"])
def test_every_robot_moves_as_the_single_plant_with_its_parameters(values):
    model, count = panda_arm(), 5
    robot, parameters = robots(model, values, count)
    q, dq = states(model, count)
    batch = BatchPlant(robot, parameters, q)
    batch.dq[:] = dq
    plants = [single(robot, *of_one) for of_one in zip(parameters, q, dq, strict=True)]
    for k in range(40):
        effort = 10.0 * np.sin(0.3 * k + np.arange(count * 7).reshape(count, 7))
        batch.advance(effort, 2e-3)
        for plant, own in zip(plants, effort, strict=True):
            plant.advance(own, 2e-3)
    moved = np.array([plant.q for plant in plants])
    assert np.abs(moved - q).max() > 0.01
    assert ratio(batch.q, moved) < 1e-10
    assert ratio(batch.dq, np.array([plant.dq for plant in plants])) < 1e-9


def test_followers_of_mimic_joints_move_as_in_the_single_plant():
    model = RobotModel.from_urdf(MIMICS)
    robot, parameters = robots(model, FRICTION, 3)
    q, dq = states(model, 3)
    batch = BatchPlant(robot, parameters, q)
    batch.dq[:] = dq
    batch.advance(np.zeros_like(q), 0.02)
    for k in range(3):
        plant = single(robot, parameters[k], q[k], dq[k])
        plant.advance(np.zeros(q.shape[1]), 0.02)
        assert ratio(batch.q[k], plant.q) < 1e-12


def test_accelerations_are_those_of_pinocchio_with_the_bodies_of_each_robot():
    model, count, duration = panda_arm(), 8, 1e-8
    robot, parameters = robots(model, {}, count)
    q, dq = states(model, count)
    batch = BatchPlant(robot, parameters, q)
    batch.dq[:] = dq
    effort = np.random.default_rng(2).uniform(-20, 20, q.shape)
    batch.advance(effort, duration)
    whole = pinocchio.buildModelFromXML(model.urdf)
    fingers = [whole.getJointId(name) for name in whole.names if "finger" in name]
    peer = pinocchio.buildReducedModel(whole, fingers, pinocchio.neutral(whole))
    for k in range(count):
        for body, standard in enumerate(parameters[k].reshape(-1, 10)):
            peer.inertias[body + 1] = pinocchio.Inertia.FromDynamicParameters(standard)
        truth = pinocchio.aba(peer, peer.createData(), q[k], dq[k], effort[k])
        assert ratio((batch.dq[k] - dq[k]) / duration, truth) < 2e-6  # a step of 1e-8 s


def test_the_number_of_cores_changes_no_bit_and_no_robot_depends_on_another():
    model, count = RobotModel.from_urdf(MIMICS), 3 * LANES - 5
    robot, parameters = robots(model, FRICTION | PRESLIDING, count)
    q, dq = states(model, count)
    ends = []
    for threads, broken in ((1, False), (2, False), (2, True)):
        batch = BatchPlant(robot, parameters, q, threads=threads)
        batch.dq[:] = dq
        if broken:
            batch.dq[7] = 1e200
        for _ in range(5):
            batch.advance(np.ones_like(q), 2e-3)
        assert batch.diverged.nonzero()[0].tolist() == ([7] if broken else [])
        ends.append(np.hstack([batch.q, batch.dq]))
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(np.delete(ends[1], 7, axis=0), np.delete(ends[2], 7, axis=0))
    np.testing.assert_array_equal(ends[2][7, : q.shape[1]], q[7])  # it keeps its last valid state


def test_robots_that_are_placed_have_new_friction_states():
    model = panda_arm()
    robot, parameters = robots(model, PRESLIDING, 3)
    used, fresh = BatchPlant(robot, parameters, np.zeros(7)), BatchPlant(robot, parameters, np.zeros(7))
    used.advance(np.full((3, 7), 20.0), 0.05)
    others = used.q[[0, 2]].copy()
    used.place(np.array([False, True, False]), np.zeros(7), np.zeros(7))
    np.testing.assert_array_equal(used.q[[0, 2]], others)
    for plant in (used, fresh):
        plant.advance(np.full((3, 7), 5.0), 0.01)
    np.testing.assert_array_equal(used.q[1], fresh.q[1])
    assert np.abs(used.q[0] - fresh.q[0]).max() > 1e-3


def test_the_steps_are_of_fourth_order_and_keep_the_energy():
    model = RobotModel.from_urdf(panda_arm().urdf, panda_arm().joint_names, gravity=(0, 0, 0))
    robot, parameters = robots(model, {}, 4)
    q, dq = states(model, 4)

    def run(step, duration=0.1):
        batch = BatchPlant(robot, parameters, q)
        batch.dq[:] = 2.0 * dq
        for _ in range(round(duration / step)):
            batch.advance(np.zeros_like(q), step)
        return batch

    exact, coarse, fine = (run(step) for step in (1e-3 / 16, 1e-3, 1e-3 / 2))
    order = np.log2(np.abs(coarse.q - exact.q).max(axis=1) / np.abs(fine.q - exact.q).max(axis=1))
    assert np.all((order > 3.5) & (order < 4.7))
    for k in range(4):
        own = Dynamics(robot.regressor, robot.columns, parameters[k])
        energies = [v @ own.mass_matrix(p) @ v for p, v in ((q[k], 2.0 * dq[k]), (coarse.q[k], coarse.dq[k]))]
        assert energies[1] == pytest.approx(energies[0], rel=1e-8)


def test_wrong_use_is_refused():
    model = panda_arm()
    robot, parameters = robots(model, FRICTION, 2)
    with pytest.raises(UsageError, match="number of robots: 0"):
        BatchPlant(robot, parameters[:0], np.zeros(7))
    with pytest.raises(UsageError, match="threads"):
        BatchPlant(robot, parameters, np.zeros(7), threads=-1)
    with pytest.raises(InputError, match="finite"):
        BatchPlant(robot, np.where(np.arange(2)[:, None] == 1, np.nan, parameters), np.zeros(7))
    with pytest.raises(InputError, match="mass matrix"):
        BatchPlant(robot, -parameters, np.zeros(7))
