# SPDX-License-Identifier: Apache-2.0
"""The simulated plant: energy, order of convergence, Pinocchio's accelerations, friction that sticks and never explodes."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from support.robots import MIMICS, OBLIQUE, Truth, panda_arm, ratio

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, RotorInertia, Term, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.plant import CompiledDynamics, Plant, make_nominal_dynamics

START = np.array([0.1, -0.5, 0.2, -2.0, 0.3, 1.5, 0.7])
TERMS = (Viscous(), Coulomb(0.05), Offset(), RotorInertia())


@cache
def dynamics(viscous=0.0, coulomb=0.0, width=0.01):
    return make_nominal_dynamics(panda_arm(), np.full(7, viscous), np.full(7, coulomb), width)


def moving(plant, seed=0):
    plant.dq[:] = np.random.default_rng(seed).uniform(-1, 1, len(plant.dq))
    return plant


def kinetic(plant, model):
    return 0.5 * plant.dq @ model.mass_matrix(plant.q) @ plant.dq


def with_all_terms(model):
    """Only base parameters, all terms, followers included."""
    regressor = Regressor(model, place_terms_on_joints(model, TERMS))
    base = compute_base_parameters(regressor)
    rng = np.random.default_rng(1)
    values = rng.uniform(0.5, 2.0, len(TERMS) * len(model.body_names))
    parameters = np.concatenate([model.inertial_parameters, values])
    return Dynamics(regressor, base.independent, base.mapping @ parameters)


def accelerations(robot, q, dq, effort, duration=1e-8):
    plant = Plant(robot, q)
    plant.dq[:] = dq
    plant.advance(effort, duration)
    return (plant.dq - dq) / duration


def test_accelerations_are_those_of_dynamics_and_of_pinocchio():
    model = panda_arm()
    motion, truth = draw_random_motion(model, 20, seed=3), Truth(model, model.held)
    torque = truth.torque(motion)
    for k in range(20):
        q, dq = motion.q[:, k], motion.dq[:, k]
        here = accelerations(dynamics(), q, dq, torque[k])
        assert ratio(here, motion.ddq[:, k]) < 2e-6  # a step of 1e-8 s
        assert ratio(here, dynamics().forward_dynamics(q, dq, torque[k])) < 2e-6


@pytest.mark.parametrize("text", [OBLIQUE, MIMICS], ids=["tree", "mimics"])
def test_all_terms_and_followers_are_in_the_steps_and_in_the_inverse(text):
    model = RobotModel.from_urdf(text)
    robot, motion = with_all_terms(model), draw_random_motion(model, 20, seed=4)
    compiled = CompiledDynamics(robot)
    for k in range(20):
        q, dq, ddq = motion.q[:, k], motion.dq[:, k], motion.ddq[:, k]
        torque = robot.inverse_dynamics(q, dq, ddq)
        assert ratio(compiled.effort(q, dq, ddq, dq, compiled.slip()), torque) < 1e-12
        assert ratio(accelerations(robot, q, dq, torque), ddq) < 2e-4


def test_energy_is_conserved_without_friction_and_gravity():
    still = RobotModel.from_urdf(panda_arm().urdf, panda_arm().joint_names, gravity=(0, 0, 0))
    robot = make_nominal_dynamics(still, np.zeros(7), np.zeros(7), 0.0)
    plant = moving(Plant(robot, START))
    before = kinetic(plant, robot)
    for _ in range(1000):
        plant.advance(np.zeros(7), 1e-3)
    assert np.abs(plant.dq).max() > 0.1
    assert kinetic(plant, robot) == pytest.approx(before, rel=1e-9)


def test_work_of_gravity_motors_and_friction_is_the_kinetic_energy():
    """Work by Simpson's rule between samples 1 ms apart: power = dq . (effort - gravity - friction)."""
    robot, effort = dynamics(0.2, 0.0), np.linspace(-3, 3, 7)
    plant, power, energy = moving(Plant(robot, START)), [], []
    for _ in range(401):
        q, dq = plant.q.copy(), plant.dq.copy()
        power.append(dq @ (effort - robot.gravity(q) - robot.friction(q, dq)))
        energy.append(kinetic(plant, robot))
        plant.advance(effort, 1e-3)
    work = 1e-3 / 3 * (power[0] + power[-1] + 4 * sum(power[1:-1:2]) + 2 * sum(power[2:-1:2]))
    assert energy[-1] - energy[0] == pytest.approx(work, rel=1e-7)


def test_fourth_order_with_viscous_friction():
    def end(step):
        plant = moving(Plant(dynamics(0.5), START))
        for _ in range(round(0.2 / step)):
            plant.advance(np.full(7, 1.0), step)
        return np.concatenate([plant.q, plant.dq])

    # one call is one step as long as it is no longer than 1 ms
    exact, coarse, fine = end(1e-3 / 16), end(1e-3), end(1e-3 / 2)
    assert np.abs(fine - exact).max() > 1e-14, "nothing left to see"
    order = np.log2(np.abs(coarse - exact).max() / np.abs(fine - exact).max())
    assert 3.6 < order < 4.6


@pytest.mark.parametrize("width", [0.02, 1e-4, 0.0])
@pytest.mark.parametrize("coulomb", [0.5, 20.0])
def test_stiff_friction_neither_explodes_nor_adds_energy(width, coulomb):
    """20 N m on a wrist of 0.01 kg m^2: the decay rate is above 1e5 1/s, and infinite with the hard sign."""
    still = RobotModel.from_urdf(panda_arm().urdf, panda_arm().joint_names, gravity=(0, 0, 0))
    robot = make_nominal_dynamics(still, np.full(7, 0.1), np.full(7, coulomb), width)
    plant = moving(Plant(robot, START))
    energy = [kinetic(plant, robot)]
    for _ in range(2000):
        plant.advance(np.zeros(7), 1e-3)
        energy.append(kinetic(plant, robot))
    assert np.all(np.diff(energy) <= 1e-9 * energy[0])
    assert np.abs(plant.dq).max() < max(width / 50, 1e-9)


def test_stiff_viscous_friction_does_not_explode():
    plant = moving(Plant(dynamics(500.0), START))
    for _ in range(200):
        plant.advance(np.zeros(7), 1e-3)
    assert np.abs(plant.dq).max() < 1.0
    # it sinks so slowly that friction carries the arm
    assert ratio(500.0 * plant.dq, -dynamics().gravity(plant.q)) < 0.02


def test_an_arm_sticks_where_friction_carries_it_and_slides_where_not():
    robot = dynamics(0.0, 100.0, 0.0)
    plant = Plant(robot, START)
    for _ in range(1000):
        plant.advance(np.zeros(7), 1e-3)
    assert np.abs(plant.q - START).max() < 1e-9, "it crept"
    push = np.zeros(7)
    push[0] = 110.0  # joint 1 is vertical
    for _ in range(100):
        plant.advance(push, 1e-3)
    assert plant.dq[0] > 0.1


def test_smoothed_friction_creeps_with_the_velocity_of_its_law():
    """A joint about the vertical, under 60 % of its friction: tanh(dq / width) = 0.6."""
    robot = dynamics(0.0, 100.0, 0.01)
    plant, push = Plant(robot, START), np.zeros(7)
    push[0] = 60.0
    for _ in range(2000):
        plant.advance(push, 1e-3)
    assert plant.dq[0] == pytest.approx(0.01 * np.arctanh(0.6), rel=1e-3)


def test_sliding_is_exact_under_coulomb_friction():
    """Without gravity a joint alone decelerates evenly: v0 - fc / I t."""
    text = panda_arm().urdf
    one = RobotModel.from_urdf(text, ["panda_joint7"], gravity=(0, 0, 0))
    robot = make_nominal_dynamics(one, np.zeros(1), np.full(1, 0.02), 0.001)
    plant, inertia = Plant(robot, np.zeros(1)), robot.mass_matrix(np.zeros(1))[0, 0]
    plant.dq[:] = 5.0
    for _ in range(100):
        plant.advance(np.zeros(1), 1e-3)
    assert plant.dq[0] == pytest.approx(5.0 - 0.02 / inertia * 0.1, rel=1e-12)
    assert plant.q[0] == pytest.approx(0.5 - 0.5 * 0.02 / inertia * 0.01, rel=1e-12)


def test_motors_have_limits_and_joints_stops():
    limit = panda_arm().limits.effort
    plant = Plant(dynamics(), START, limit)
    applied = plant.advance(np.full(7, 1e4), 1e-3)
    assert np.array_equal(applied, limit)
    assert plant.beyond_stops() == ()
    plant.q[3] = 0.5
    assert plant.beyond_stops() == ("panda_joint4",)


def test_a_longer_tick_is_many_steps():
    one, many = moving(Plant(dynamics(1.0, 1.0), START)), moving(Plant(dynamics(1.0, 1.0), START))
    one.advance(np.ones(7), 5e-3)
    for _ in range(5):
        many.advance(np.ones(7), 1e-3)
    assert np.array_equal(one.q, many.q)
    assert np.array_equal(one.dq, many.dq)


def test_what_cannot_be_simulated_is_refused():
    with pytest.raises(InputError, match="broke down near q"):
        Plant(dynamics(), START).advance(np.full(7, np.nan), 1e-3)
    negative = Dynamics(dynamics().regressor, dynamics().columns, -dynamics().values)
    with pytest.raises(InputError, match="not positive definite"):
        Plant(negative, START)


@dataclass(frozen=True)
class Stribeck(Term):
    """A law that the compiled loops do not know."""

    name = "decaying"
    symbols = ("fs",)
    powers = ((0, 0),)

    def columns(self, y, dy, ddy):
        return (np.sign(dy) * np.exp(-(dy**2)))[None, :]


def test_a_term_that_the_loops_do_not_know_is_refused_by_name():
    regressor = Regressor(panda_arm(), place_terms_on_joints(panda_arm(), (Offset(), Stribeck())))
    parameters = np.concatenate([panda_arm().inertial_parameters, np.ones(7), np.zeros(7)])
    assert CompiledDynamics(Dynamics(regressor, np.arange(84), parameters)).coordinates == 0
    parameters[-1] = 0.1
    with pytest.raises(InputError, match="term decaying cannot be simulated"):
        CompiledDynamics(Dynamics(regressor, np.arange(84), parameters))
