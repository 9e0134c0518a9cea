# SPDX-License-Identifier: Apache-2.0
"""Friction with states in the simulated plant: the exact equations of one joint, passivity, sticking, inverse dynamics."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.robots import OBLIQUE, panda_arm, ratio

from robot_dyn_id.data.trajectory_points import Setpoint, TrajectoryPoints
from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import TERMS, Coupling, Term, Viscous
from robot_dyn_id.dynamics.terms.laws import DAHL, POWER, FrictionLaw
from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.controllers import ComputedTorque, Gains
from robot_dyn_id.simulation.plant import SMALLEST, CompiledDynamics, Plant
from robot_dyn_id.simulation.simulated_robot import SimulatedRobot

DISTANCES = np.array([0.3e-3, 1e-3, 3e-3, 10e-3, 30e-3, 100e-3])
LEVELS = np.array([0.3, 0.2, 0.4, 0.3, 0.2, 0.1])
START = np.array([0.1, -0.5, 0.2, -2.0, 0.3, 1.5, 0.7])


def robot_with(model, values, couplings=()):
    """The URDF's bodies and terms by name, each with its parameters on every joint."""
    terms = place_terms_on_joints(model, [TERMS[name]() for name in values], couplings)
    regressor = Regressor(model, terms)
    bodies = len(model.body_names)
    own = [np.tile(np.atleast_1d(value), bodies) for value in values.values()]
    rest = [np.ones(len(term.symbols)) for coupling in couplings for term in coupling.terms]
    parameters = np.concatenate([model.inertial_parameters, *own, *rest])
    return Dynamics(regressor, np.arange(len(parameters)), parameters)


def one_joint(**values):
    """One joint with a moment of inertia of 1 kg m^2 about a vertical axis."""
    return robot_with(RobotModel.from_urdf(SMALLEST), values)


def simulate(robot, effort, step, duration):
    """Positions under effort(t), held at the middle of each step."""
    plant, path = Plant(robot, np.zeros(1)), []
    for k in range(round(duration / step)):
        plant.advance(np.array([effort((k + 0.5) * step)]), step)
        path.append(plant.q[0])
    return np.array(path)


def exact(effort, friction, duration, t):
    """The same motion by an implicit Runge-Kutta method of variable steps."""

    def slope(time, y):
        dq, z = y[1], y[2:]
        dz = dq / DISTANCES * (1.0 - z * np.sign(dq))
        return np.concatenate([[dq, effort(time) - friction(dq, z)], dz])

    solution = solve_ivp(slope, (0.0, duration), np.zeros(8), "LSODA", t, rtol=1e-9, atol=1e-12, max_step=1e-3)
    return solution.y[0]


def test_one_joint_moves_as_the_equations_of_dahl_say():
    def effort(t):
        return 2.0 * np.sin(5.0 * t) + 0.8 * np.sin(23.0 * t)

    def friction(dq, z):
        return 0.3 * dq + LEVELS @ z

    robot, duration = one_joint(viscous=0.3, dahl=LEVELS), 1.0
    errors = []
    for step in (1e-3, 0.5e-3):
        here = simulate(robot, effort, step, duration)
        truth = exact(effort, friction, duration, step * np.arange(1, len(here) + 1))
        errors.append(np.abs(here - truth).max() / np.abs(truth).max())
    assert errors[0] < 4e-3
    assert errors[1] < 0.6 * errors[0]  # first order, by friction alone


def test_states_follow_the_path_of_the_plant():
    model = panda_arm()
    robot = robot_with(model, {"viscous": 0.5, "dahl": LEVELS, "load_dahl": 0.02 * LEVELS})
    plant = Plant(robot, START)
    states = robot.initial_states()
    for k in range(300):
        before = plant.q.copy()
        plant.advance(robot.gravity(plant.q) + 4.0 * np.sin(0.02 * k + np.arange(7)), 1e-3)
        states = robot.advance(states, before, plant.q, 1e-3)
    assert np.abs(plant.slip).max() > 0.5
    assert plant.slip == pytest.approx(plant.dynamics.slip(states), abs=1e-12)
    assert len(plant.slip) == 6 * 7, "elements of the same distance are one"


ALL = {
    "viscous": 0.3,
    "coulomb": 0.4,
    "offset": 0.1,
    "rotor_inertia": 0.05,
    "asymmetric": (0.3, 0.2, 0.1, 0.4),
    "stribeck": (0.5, 0.3),
    "improved_stribeck": (0.4, 0.2, 0.3, -0.1, 0.05),
    "temperature_coulomb": 0.02,
    "spring": 3.0,
    "load_coulomb": 0.01,
    "dahl": LEVELS,
    "load_dahl": 0.02 * LEVELS,
    "double_coulomb": (0.2, 0.3),
    "saturating_viscous": (0.4, 0.2, 0.3),
    "absolute_velocity": -0.1,
    "position_periodic": (0.8, -0.5, 0.3, 0.4),
}


@pytest.mark.parametrize("text", [OBLIQUE, ""], ids=["tree", "panda"])
def test_inverse_and_forward_dynamics_are_those_of_the_model_with_every_term(text):
    assert set(ALL) == set(TERMS)
    model = RobotModel.from_urdf(text) if text else panda_arm()
    joints = model.joint_names[-2:]
    coupling = Coupling("wrist", ((joints[0], 1.0), (joints[1], 1.0)), (TERMS["dahl"](), TERMS["viscous"]()))
    robot = robot_with(model, ALL, () if text else (coupling,))
    compiled, rng = CompiledDynamics(robot), np.random.default_rng(0)
    motion = draw_random_motion(model, 10, seed=4)
    for k in range(10):
        q, dq, ddq = motion.q[:, k], motion.dq[:, k], motion.ddq[:, k]
        states = robot.regressor.random_states(rng, 1)
        bodies = states[TERMS["load_dahl"]()].shape[1]
        states[TERMS["load_dahl"]()] = states[TERMS["dahl"]()][:, :bodies]  # of one path
        torque = robot.inverse_dynamics(q, dq, ddq, states)
        assert ratio(compiled.effort(q, dq, ddq, dq, compiled.slip(states)), torque) < 1e-12
        plant = Plant(robot, q)
        plant.dq[:], plant.slip[:] = dq, compiled.slip(states)
        plant.advance(torque, 1e-8)
        assert ratio((plant.dq - dq) / 1e-8, ddq) < 1e-3


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_free_motion_loses_energy_until_the_springs_hold_it(scale):
    """Kinetic energy and that of the elements, fd d z^2 / 2 each: 30 N m on a wrist of 0.01 kg m^2 is stiff."""
    model = RobotModel.from_urdf(panda_arm().urdf, panda_arm().joint_names, gravity=(0, 0, 0))
    robot = robot_with(model, {"viscous": 0.1, "dahl": scale * LEVELS})
    plant, energy = Plant(robot, START), []
    plant.dq[:] = np.random.default_rng(0).uniform(-1, 1, 7)
    for _ in range(1000):
        kinetic = 0.5 * plant.dq @ robot.mass_matrix(plant.q) @ plant.dq
        energy.append(kinetic + 0.5 * np.sum(scale * LEVELS * DISTANCES * plant.slip.reshape(7, 6) ** 2))
        plant.advance(np.zeros(7), 1e-3)
    assert np.all(np.diff(energy) <= 2e-3 * energy[0])
    assert kinetic < 1e-3 * energy[0]


def test_an_arm_hangs_in_its_elements_without_creeping():
    """Elements of 300 N m in all hold the arm: it swings, comes to rest, and stays."""
    robot = robot_with(panda_arm(), {"viscous": 2.0, "dahl": 200.0 * LEVELS})
    plant = Plant(robot, START)
    for _ in range(3000):
        plant.advance(np.zeros(7), 1e-3)
    rest = plant.q.copy()
    for _ in range(1000):
        plant.advance(np.zeros(7), 1e-3)
    assert np.abs(plant.q - START).max() < 0.05
    assert np.abs(plant.q - rest).max() < 1e-6


def test_saturating_friction_limits_the_speed_and_is_accurate_while_it_slides():
    def effort(t):
        return 2.0 * np.sin(5.0 * t)

    def friction(dq, z):
        return 0.5 * np.sign(dq) * np.abs(dq) ** 0.5

    values = np.zeros(len(TERMS["saturating_viscous"].symbols))
    values[0] = 0.5
    here = simulate(one_joint(saturating_viscous=values), effort, 1e-3, 2.0)
    truth = exact(effort, friction, 2.0, 1e-3 * np.arange(1, 2001))
    assert np.abs(here - truth).max() < 1e-4 * np.abs(truth).max()


STRIBECK = {"fci": 1.0, "dfi": 1.5, "kva": 0.4, "kvb": 0.3, "kvc": -0.05}


def stribeck_joint(velocity, width=0.0):
    """One joint with improved Stribeck friction."""
    model = RobotModel.from_urdf(SMALLEST)
    term = TERMS["improved_stribeck"](velocity, width)
    parameters = np.concatenate([model.inertial_parameters, list(STRIBECK.values())])
    return Dynamics(Regressor(model, place_terms_on_joints(model, (term,))), np.arange(len(parameters)), parameters)


@pytest.mark.parametrize(("steady", "width", "accuracy"), [(6.0, 0.0, 1e-6), (0.0, 0.02, 2e-3)])
def test_stribeck_friction_is_followed_within_the_steps(steady, width, accuracy):
    """To the order of the held effort in sliding; through reversals, which are dry friction, to first order."""

    def effort(t):
        return steady + 4.0 * np.sin(5.0 * t)

    def friction(dq, z):
        s = np.tanh(dq / width) if width else np.sign(dq)
        fc, rise, *viscous = STRIBECK.values()
        return (fc + rise * np.exp(-((dq / 0.5) ** 2))) * s + np.dot(viscous, [dq, dq**2, dq**3])

    here = simulate(stribeck_joint(0.5, width), effort, 1e-3, 2.0)
    truth = exact(effort, friction, 2.0, 1e-3 * np.arange(1, 2001))
    assert np.abs(here - truth).max() < accuracy * np.abs(truth).max()


@pytest.mark.parametrize("velocity", [1e-3, 0.05])
def test_a_joint_with_stribeck_friction_sticks_up_to_its_breakaway_torque(velocity):
    """Also where the fall is far steeper than a step resolves; what breaks away is driven by the excess over fc."""
    plant, breakaway = Plant(stribeck_joint(velocity), np.zeros(1)), 2.5
    for _ in range(200):
        plant.advance(np.array([0.999 * breakaway]), 1e-3)
    assert plant.q[0] == plant.dq[0] == 0.0
    for _ in range(100):
        plant.advance(np.array([1.1 * breakaway]), 1e-3)
    assert velocity > 1e-3 or plant.dq[0] == pytest.approx(0.1 * (1.1 * breakaway - 1.0), rel=0.05)
    assert plant.dq[0] > 0.02
    for _ in range(300):
        plant.advance(np.zeros(1), 1e-3)
    assert plant.dq[0] == pytest.approx(0.0, abs=1e-9), "it comes to rest and does not chatter"


def test_springs_swing_at_their_frequency():
    """A spring of 100 N m/rad about 0.2 rad on 1 kg m^2: 10 rad/s, and no energy is lost."""
    model = RobotModel.from_urdf(SMALLEST)
    parameters = np.append(model.inertial_parameters, 100.0)
    spring = place_terms_on_joints(model, (TERMS["spring"](0.2),))
    plant = Plant(Dynamics(Regressor(model, spring), np.arange(11), parameters), np.array([0.5]))
    for _ in range(1000):
        plant.advance(np.zeros(1), 1e-3)
    assert plant.q[0] == pytest.approx(0.2 + 0.3 * np.cos(10.0), abs=1e-8)


def test_temperature_changes_friction_in_all_dynamics_alike():
    model = panda_arm()
    robot = robot_with(model, {"coulomb": 3.0, "temperature_coulomb": -0.04}).at_temperature(50.0)
    state, rest = np.full(7, 0.3), np.zeros(7)
    compiled = CompiledDynamics(robot)
    torque = robot.inverse_dynamics(START, state, rest)
    assert ratio(compiled.effort(START, state, rest, state, compiled.slip()), torque) < 1e-12
    assert robot.friction(START, np.ones(7)) == pytest.approx(np.full(7, 3.0 - 0.04 * 30.0))
    plant = Plant(robot, START)
    plant.place(Motion(START[:, None], state[:, None], rest[:, None], np.full((7, 1), 20.0)), 0)
    warm = robot.at_temperature(np.full(7, 20.0)).inverse_dynamics(START, state, rest)
    assert ratio(plant.dynamics.effort(START, state, rest, state, plant.slip), warm) < 1e-12
    for wrong in (np.nan, [1.0, 2.0]):
        with pytest.raises(UsageError, match="temperature"):
            robot.at_temperature(wrong)


@dataclass(frozen=True)
class OwnElement(Term):
    """A term from outside the package: one Dahl element of its own, and friction that grows with the square root."""

    name = "own"
    symbols = ("fx", "fy")
    powers = ((0, 0), (0, 0))
    state_names = ("deflection",)
    state_parameters = ()

    def columns(self, y, dy, ddy):
        return np.array([np.sign(dy), np.sign(dy) * np.sqrt(np.abs(dy))])

    def state_columns(self, y, dy, ddy, states):
        return np.array([states[0], np.sign(dy) * np.sqrt(np.abs(dy))])

    def integrate(self, y, step, start):
        states = np.empty((1, *y.shape))
        states[:, :, 0] = start
        for k in range(1, y.shape[1]):
            moved = y[:, k] - y[:, k - 1]
            states[0, :, k] = np.sign(moved) - (np.sign(moved) - states[0, :, k - 1]) * np.exp(-np.abs(moved) / 0.02)
        return states

    @property
    def laws(self):
        return FrictionLaw(DAHL, 0.02, symbol=0), FrictionLaw(POWER, 0.5, symbol=1)


def test_a_term_from_outside_the_package_is_simulated_with_its_states():
    model = panda_arm()
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), OwnElement())))
    parameters = np.concatenate([model.inertial_parameters, np.full(7, 0.5), np.tile([1.0, 0.4], 7)])
    robot = Dynamics(regressor, np.arange(len(parameters)), parameters)
    plant, states, rest = Plant(robot, START), robot.initial_states(), np.zeros(7)
    for k in range(200):
        before = plant.q.copy()
        plant.advance(robot.gravity(plant.q) + 4.0 * np.sin(0.03 * k + np.arange(7)), 1e-3)
        states = robot.advance(states, before, plant.q, 1e-3)
    assert plant.slip[::2] == pytest.approx(states[OwnElement()][0, :, 0], abs=1e-12)
    torque = plant.dynamics.effort(plant.q, plant.dq, rest, plant.dq, plant.slip)
    assert ratio(torque, robot.bias(plant.q, plant.dq, states)) < 1e-12


def test_the_position_controller_follows_with_presliding_friction():
    robot = robot_with(panda_arm(), {"viscous": 0.5, "dahl": 3.0 * LEVELS, "load_dahl": 0.05 * LEVELS})
    simulated = SimulatedRobot(robot, START, 1e-3)
    distance = [np.abs(simulated.tick()[0] - START).max() for _ in range(300)]
    assert max(distance) < 1e-4


def follow(law, plant, amplitude):
    """Largest distance from slow sines under a law, after the first reversals."""
    distance = []
    for k in range(3000):
        t = 1e-3 * k
        wave = 2.0 * np.pi * 0.5 * t + np.arange(7)
        q = START + amplitude * (np.sin(wave) - np.sin(np.arange(7)))
        wanted = Setpoint(q, np.pi * amplitude * np.cos(wave), -(np.pi**2) * amplitude * np.sin(wave))
        if k == 0:
            plant.dq[:] = wanted.dq
        plant.advance(law.effort(wanted, plant.q, plant.dq, 1e-3).wanted, 1e-3)
        distance.append(np.abs(plant.q - q).max())
    return max(distance[1500:])


@pytest.mark.slow
def test_computed_torque_compensates_the_hysteresis_of_the_setpoints():
    """Motion of 10 mrad, within the breakaway of the elements: their limit sign(dq) is the wrong torque."""
    robot = robot_with(panda_arm(), {"viscous": 0.5, "dahl": 3.0 * LEVELS, "load_dahl": 0.05 * LEVELS})
    gains = Gains.from_bandwidth(20.0)

    class Memoryless(ComputedTorque):
        """The same law without states."""

        def __init__(self, dynamics, gains):
            super().__init__(dynamics, gains)
            self._states = {}

    with_states = follow(ComputedTorque(robot, gains), Plant(robot, START), 0.01)
    without = follow(Memoryless(robot, gains), Plant(robot, START), 0.01)
    assert with_states < 2e-4
    assert with_states < 0.1 * without


def test_recorded_efforts_drive_the_model_from_the_recorded_states():
    """A start without the friction states of the recorded motion pushes the robot away by their torque."""
    robot = robot_with(panda_arm(), {"viscous": 2.0, "dahl": 6.0 * LEVELS})
    simulated = SimulatedRobot(robot, START, 1e-3)
    t = np.linspace(0.0, 6.0, 601)
    wave = np.pi * t[:, None] + np.arange(7)
    q = START + 0.2 * (np.sin(wave) - np.sin(np.arange(7))) * np.minimum(t, 1.0)[:, None]
    simulated.tracker.follow(TrajectoryPoints(t, q, np.gradient(q, t, axis=0)), 0.0, 0.0)
    samples = np.array([simulated.tick() for _ in range(6000)])
    motion = robot.regressor.with_states(Motion(samples[:, 0].T, samples[:, 1].T, 0.0 * samples[:, 0].T), 1e-3)
    distance = []
    for states in (motion, Motion(motion.q, motion.dq, motion.ddq)):
        plant = Plant(robot, START)
        plant.place(states, 3000)
        for k in range(3000, 3500):
            plant.advance(0.5 * (samples[k, 2] + samples[k + 1, 2]), 1e-3)
        distance.append(np.abs(plant.q - samples[3500, 0]).max())
    assert distance[0] < 2e-3
    assert distance[0] < 0.1 * distance[1]
