# SPDX-License-Identifier: Apache-2.0
"""Presliding terms: exact states, passivity, and their use in regressor and dynamics."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from support.altered import altered
from support.processes import run_program
from support.simulated import GRIPPER, LIFT, Simulated

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Coupling, Dahl, LoadCoulomb, LoadDahl, Offset, Term, Viscous
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.prediction.prediction import predict_recording
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.model.robot import RobotModel

STEP = 1e-3


@pytest.fixture(scope="module")
def regressor() -> Regressor:
    model = RobotModel.from_urdf(LIFT)
    return Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(), Dahl(), Offset())))


def test_states_are_the_solution_of_the_dahl_equation():
    term = Dahl()
    path = np.concatenate([np.linspace(0.0, 0.02, 101), np.linspace(0.02, -0.005, 101)[1:]])
    states = term.integrate(path[None], STEP, term.initial_states()[:, None])[:, 0]
    d = term.displacements
    np.testing.assert_allclose(states[:, 100], 1.0 - np.exp(-0.02 / d), rtol=1e-12)
    np.testing.assert_allclose(states[:, -1], -1.0 + (2.0 - np.exp(-0.02 / d)) * np.exp(-0.025 / d), rtol=1e-12)
    thinned = term.integrate(path[None, ::20], 20 * STEP, term.initial_states()[:, None])[:, 0]
    np.testing.assert_allclose(thinned, states[:, ::20], rtol=1e-12)  # exact: the sample rate has no influence


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # importing it fails
import numpy as np
from robot_dyn_id.dynamics.terms import Dahl
from robot_dyn_id.kernels.compiled import COMPILED
assert not COMPILED
path = np.cumsum(np.random.default_rng(3).normal(0.0, 2e-3, (2, 500)), axis=1)
np.save(sys.argv[1], Dahl().integrate(path, 0.01, np.full((6, 2), 0.2)))
"""


@pytest.mark.skipif(not COMPILED, reason="numba is not installed: there is nothing to compare with")
def test_numpy_gives_what_numba_gives(tmp_path):
    command = [sys.executable, "-c", WITHOUT_NUMBA, str(tmp_path / "numpy.npy")]
    done = run_program(*command)
    assert (done.returncode, done.stderr) == (0, "")
    path = np.cumsum(np.random.default_rng(3).normal(0.0, 2e-3, (2, 500)), axis=1)
    fast = Dahl().integrate(path, 0.01, np.full((6, 2), 0.2))
    np.testing.assert_allclose(np.load(tmp_path / "numpy.npy"), fast, rtol=0, atol=1e-14)


def test_states_keep_their_value_at_rest_and_are_the_sign_in_sliding():
    term = Dahl()
    start = np.linspace(-0.9, 0.9, 6)[:, None]
    assert np.array_equal(term.integrate(np.full((1, 50), 0.3), STEP, start)[:, 0, -1], start[:, 0])
    far = term.integrate(np.array([[0.0, 50.0]]), STEP, start)[:, 0, -1]
    rest = np.zeros(1)
    np.testing.assert_allclose(far, term.columns(rest, rest + 1.0, rest)[:, 0])
    assert not term.columns(rest, rest, rest).any()


def test_every_element_is_passive():
    term, rng = Dahl(), np.random.default_rng(2)
    path = np.cumsum(rng.normal(0.0, 2e-3, 4000))[None]
    states = term.integrate(path, STEP, term.initial_states()[:, None])[:, 0]
    assert np.abs(states).max() <= 1.0
    d = term.displacements[:, None]
    moved = np.diff(path)
    way, before, after = np.sign(moved), states[:, :-1], states[:, 1:]
    work = np.abs(moved) - d * way * (after - before)  # integral of z dy, as d dz = (1 - way z) dy
    stored = 0.5 * d * (after**2 - before**2)
    assert (work - stored >= -1e-15).all()


def test_dynamics_advance_as_the_regressor_integrates(regressor):
    t = np.arange(400) * STEP
    q = np.array([np.sin(3.0 * t), 0.2 * np.cos(5.0 * t)])
    along = regressor.integrate(q, STEP)[Dahl()]
    values = np.concatenate([regressor.model.inertial_parameters, np.linspace(0.1, 1.0, len(regressor.term_columns))])
    dynamics = Dynamics(regressor, np.arange(len(values)), values)
    states = dynamics.initial_states()
    for k in range(len(t) - 1):
        states = dynamics.advance(states, q[:, k], q[:, k + 1], STEP)
    np.testing.assert_allclose(states[Dahl()][..., 0], along[..., -1], rtol=1e-12)
    batch = dynamics.advance(dynamics.initial_states(2), q[:, :2].T, q[:, 5:7].T, STEP)
    pair = regressor.integrate(q[:, [1, 6]], STEP)[Dahl()][..., -1]
    np.testing.assert_allclose(batch[Dahl()][..., 1], pair, rtol=1e-12)


def test_dynamics_with_states_invert_each_other_and_agree_with_the_regressor(regressor):
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 20, 2))
    values = np.concatenate([regressor.model.inertial_parameters, rng.uniform(0.1, 1.0, len(regressor.term_columns))])
    dynamics = Dynamics(regressor, np.arange(len(values)), values)
    states = regressor.random_states(rng, 20)
    tau = dynamics.inverse_dynamics(q, dq, ddq, states)
    np.testing.assert_allclose(dynamics.forward_dynamics(q, dq, tau, states), ddq, rtol=1e-9, atol=1e-9)
    motion = Motion(q.T.copy(), dq.T.copy(), ddq.T.copy(), states=states)
    np.testing.assert_allclose(regressor.torque(motion, values), tau.T, rtol=1e-12)
    assert np.abs(tau - dynamics.inverse_dynamics(q, dq, ddq)).max() > 0.1
    some = motion.take(slice(3, 9))
    np.testing.assert_allclose(regressor.torque(some, values), tau.T[:, 3:9], rtol=1e-12)


def test_every_element_is_a_base_parameter_of_its_own(regressor):
    names = compute_base_parameters(regressor).names
    assert {f"fd{letter}{joint}" for letter in "abcdef" for joint in (1, 2)} <= set(names)
    motion = draw_random_motion(regressor.model, 50)
    history = replace(motion, states=regressor.random_states(np.random.default_rng(0), 50))
    assert np.linalg.matrix_rank(regressor.dense(history)[-16:-2, 0].T) == 7  # Coulomb is another column
    assert np.linalg.matrix_rank(regressor.dense(motion)[-16:-2, 0].T) == 2  # without a history all are the sign


def test_states_follow_the_coordinate_of_a_mimic_joint_and_of_a_coupling():
    model = RobotModel.from_urdf(GRIPPER)
    sum_of_both = Coupling("both", (("turn", 1.0), ("finger", -2.0)), (Dahl(),))
    regressor = Regressor(model, place_terms_on_joints(model, (Dahl(),), (sum_of_both,)))
    q = np.cumsum(np.random.default_rng(4).normal(0.0, 3e-3, (2, 200)), axis=1)
    states = regressor.integrate(q, STEP)[Dahl()]
    for coordinate, path in enumerate((q[0], q[1], -0.5 * q[1] + 0.3, q[0] - 2.0 * q[1])):
        alone = Dahl().integrate(path[None], STEP, np.zeros((6, 1)))[:, 0]
        np.testing.assert_allclose(states[:, coordinate], alone, rtol=1e-9, atol=1e-12)


# --- Load ----------------------------------------------------------------------------------------------------------


def test_the_load_is_computed_from_the_load_parameters():
    model = RobotModel.from_urdf(LIFT)
    heavier = tuple((2.0 * model.inertial_parameters).tolist())
    terms = place_terms_on_joints(model, (LoadCoulomb(0.0), LoadDahl()))
    own, given = Regressor(model, terms), Regressor(model, terms, heavier)
    motion = own.with_states(draw_random_motion(model, 40), STEP)
    np.testing.assert_allclose(given.dense(motion)[20:], 2.0 * own.dense(motion)[20:], rtol=1e-12)
    np.testing.assert_array_equal(given.with_terms(terms[:2]).load_parameters, heavier)
    with pytest.raises(UsageError, match="load_parameters has 3 numbers, expected 20"):
        Regressor(model, terms, (1.0, 2.0, 3.0))


def test_deflections_of_the_load_term_are_multiplied_by_the_absolute_load():
    model = RobotModel.from_urdf(LIFT)
    regressor = Regressor(model, place_terms_on_joints(model, (LoadDahl(),)))
    motion = draw_random_motion(model, 30)
    motion = replace(motion, states=regressor.random_states(np.random.default_rng(0), 30))
    load = np.abs(regressor.signals(motion)["load"])
    columns = regressor.dense(motion)[20:].reshape(2, 6, 2, 30)
    for joint in range(2):
        np.testing.assert_allclose(columns[joint, :, joint], load[joint] * motion.states[LoadDahl()][:, joint])
        assert not columns[joint, :, 1 - joint].any()


# --- Parameter sets ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relaxation(Term):
    """A spring in series with a damper, on each joint: a state that depends on time."""

    time_constant: float = 0.5

    name: ClassVar[str] = "relaxation"
    symbols: ClassVar[tuple[str, ...]] = ("kr",)
    powers: ClassVar[tuple[tuple[float, float], ...]] = ((1, 0),)
    state_names: ClassVar[tuple[str, ...]] = ("damper",)
    state_parameters: ClassVar[tuple[str, ...]] = ("time_constant",)

    def columns(self, y, dy, ddy):
        return self.time_constant * dy[None]

    def state_columns(self, y, dy, ddy, states):
        return states

    def integrate(self, y, step, start):
        kept = np.exp(-step / self.time_constant)
        states = np.empty((1, *y.shape))
        states[..., 0] = start
        for k in range(1, y.shape[1]):  # exact for constant velocities between samples
            gained = self.time_constant * (1.0 - kept) * (y[:, k] - y[:, k - 1]) / step
            states[..., k] = kept * states[..., k - 1] + gained
        return states


@pytest.mark.slow
def test_a_term_of_the_user_with_a_state_joins_by_its_class(tmp_path, monkeypatch):
    monkeypatch.setattr("support.simulated.PARAMETERS", {"fv": 1.5, "kr": 4.0})
    terms = (Viscous(), Relaxation())
    robot = Simulated(LIFT, terms)
    recording = robot.record(duration=60.0, noise=0.02, velocity=1e-4)
    result = identify(*split([recording], robot.joints), robot.model, Settings(terms=terms), "test")
    values = dict(zip(result.parameters.base.names, result.parameters.estimate.values, strict=True))
    assert values["kr1"] == pytest.approx(4.0, rel=0.02)
    assert values["kr2"] == pytest.approx(4.0, rel=0.02)
    write_parameters(tmp_path / "parameters.yaml", result.parameters)
    with pytest.raises(InputError, match="term relaxation on lift is not known"):
        Regressor.from_parameters(read_parameters(tmp_path / "parameters.yaml"))
    read = read_parameters(tmp_path / "parameters.yaml", [Relaxation])
    assert [(state.name, state.joint, state.parameter_values) for state in read.terms.states] == [
        ("relaxation.damper", "lift", (0.5,)),
        ("relaxation.damper", "turn", (0.5,)),
    ]
    _, tau, _ = predict_recording(recording, read)
    inside = slice(200, -200)
    assert np.linalg.norm((tau - recording.samples.tau)[inside]) < 0.03 * np.linalg.norm(recording.samples.tau[inside])


@pytest.mark.slow
def test_states_and_load_parameters_are_stored(tmp_path):
    terms = (Viscous(), Dahl(breakaway_displacement_6=0.2), LoadCoulomb(), Offset())
    robot = Simulated(LIFT, terms)
    parameters = identify(
        *split([robot.record(duration=20.0, noise=0.02)], robot.joints), robot.model, Settings(terms=terms), "test"
    ).parameters
    assert len(parameters.terms.states) == 2
    assert parameters.terms.states[1].parameter_values[-1] == 0.2
    heavier = altered(parameters, bodies={"load_parameters": 2.0 * robot.model.inertial_parameters})
    write_parameters(tmp_path / "parameters.yaml", heavier)
    read = read_parameters(tmp_path / "parameters.yaml")
    assert read.terms.states == parameters.terms.states
    regressor = Regressor.from_parameters(read)
    assert regressor.load_parameters == tuple(heavier.bodies.load_parameters.tolist())
    assert regressor.terms == robot.regressor.terms
    other = replace(read.terms.states[0], parameter_values=(*read.terms.states[0].parameter_values[:-1], 0.5))
    with pytest.raises(InputError, match="states is not that of its URDF and terms"):
        Regressor.from_parameters(altered(read, terms={"states": (other, *read.terms.states[1:])}))
    with pytest.raises(InputError, match=r"load_parameters has shape \(3,\)"):
        altered(read, bodies={"load_parameters": np.ones(3)})
