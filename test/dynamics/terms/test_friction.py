# SPDX-License-Identifier: Apache-2.0
"""Friction and actuator terms: formulas, derivatives, passivity, and what an identification makes of them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares
from support.altered import altered
from support.robots import joint, ratio, urdf
from support.simulated import Simulated, changed

from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import (
    TERMS,
    AbsoluteVelocity,
    Asymmetric,
    Coulomb,
    Coupling,
    Dahl,
    DoubleCoulomb,
    ImprovedStribeck,
    LoadCoulomb,
    LoadDahl,
    Offset,
    PositionPeriodic,
    RotorInertia,
    SaturatingViscous,
    Spring,
    Stribeck,
    TemperatureCoulomb,
    Viscous,
)
from robot_dyn_id.dynamics.terms.contract import Coordinate
from robot_dyn_id.dynamics.terms.friction import FRICTION, replace_friction
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.identification.fit.load import fit_load
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.prediction.prediction import predict_recording
from robot_dyn_id.identification.settings import DEFAULT_TERMS, Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet

Y = np.array([0.5, -0.25, 1.0, 0.0])
DY = np.array([0.2, -0.1, 0.0, -0.4])
DDY = np.array([1.0, -2.0, 3.0, 0.5])
E1, E4, E16 = np.exp([-1.0, -4.0, -16.0])

HAND = {
    "asymmetric": (Asymmetric(0.0), [[1, 0, 0, 0], [0, -1, 0, -1], [0.2, 0, 0, 0], [0, -0.1, 0, -0.4]]),
    "asymmetric smoothed": (
        Asymmetric(0.1),
        [np.tanh([2, 0, 0, 0]), np.tanh([0, -1, 0, -4]), [0.2, 0, 0, 0], [0, -0.1, 0, -0.4]],
    ),
    "stribeck": (Stribeck(0.1), [[1, -1, 0, -1], [E4, -E1, 0, -E16]]),
    "stribeck smoothed": (
        Stribeck(0.1, 0.2),
        [np.tanh([1, -0.5, 0, -2]), np.tanh([1, -0.5, 0, -2]) * [E4, E1, 1, E16]],
    ),
    "improved stribeck": (
        ImprovedStribeck(0.1),
        [[1, -1, 0, -1], [E4, -E1, 0, -E16], DY, [0.04, 0.01, 0, 0.16], [0.008, -0.001, 0, -0.064]],
    ),
    "improved stribeck, signed square": (
        ImprovedStribeck(0.1, signed_square=True),
        [[1, -1, 0, -1], [E4, -E1, 0, -E16], DY, [0.04, -0.01, 0, -0.16], [0.008, -0.001, 0, -0.064]],
    ),
    "spring": (Spring(0.25), [[0.25, -0.5, 0.75, -0.25]]),
    "position periodic": (PositionPeriodic(), [np.sin(Y), np.cos(Y), np.sin(2 * Y), np.cos(2 * Y)]),
    "load": (LoadCoulomb(0.0), [[1, -1, 0, -1]]),
    "temperature": (TemperatureCoulomb(0.1), [np.tanh([2, -1, 0, -4])]),
    "double coulomb": (DoubleCoulomb(0.1, 0.2), [np.tanh([2, -1, 0, -4]), np.tanh([1, -0.5, 0, -2])]),
    "saturating": (
        SaturatingViscous(0.1),
        [
            [np.sqrt(0.2), -np.sqrt(0.1), 0, -np.sqrt(0.4)],
            [np.cbrt(0.2), -np.cbrt(0.1), 0, -np.cbrt(0.4)],
            np.arctan([2, -1, 0, -4]),
        ],
    ),
    "absolute velocity": (AbsoluteVelocity(), [[0.2, 0.1, 0, 0.4]]),
    "dahl in sliding": (Dahl(), [[1, -1, 0, -1]] * 6),
    "load dahl in sliding": (LoadDahl(), [[1, -1, 0, -1]] * 6),
}

NEW = [term for term, _ in HAND.values()]
NONLINEAR = [Coulomb(0.1), *(term for term in NEW if term.free_constants)]


# --- Columns -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("case", HAND)
def test_columns_at_points_worked_out_by_hand(case):
    term, expected = HAND[case]
    columns = term.columns(Y, DY, DDY)
    assert columns.shape == (len(term.symbols), 4) == (len(term.powers), 4)
    np.testing.assert_allclose(columns, expected, rtol=0, atol=1e-15)


def test_the_improved_law_without_square_and_cube_is_stribeck_and_viscous():
    """The option for vacuum."""
    law = ImprovedStribeck(0.07).columns(Y, DY, DDY)[:3]
    parts = np.concatenate([Stribeck(0.07).columns(Y, DY, DDY), Viscous().columns(Y, DY, DDY)])
    assert np.array_equal(law, parts)


def numerical(function, at, step=1e-6):
    return (function(at + step) - function(at - step)) / (2 * step)


@pytest.mark.parametrize("term", NEW, ids=str)
def test_slopes_are_the_derivatives_by_position_velocity_and_acceleration(term):
    rng = np.random.default_rng(3)
    y, dy, ddy = rng.uniform(-1, 1, (3, 200))  # none within a step of a kink at 0
    expected = [
        numerical(lambda x: term.columns(x, dy, ddy), y),
        numerical(lambda x: term.columns(y, x, ddy), dy),
        numerical(lambda x: term.columns(y, dy, x), ddy),
    ]
    slopes = term.slopes(y, dy, ddy)
    assert slopes.shape == (3, len(term.symbols), 200)
    np.testing.assert_allclose(slopes, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("term", NONLINEAR, ids=str)
def test_constant_slopes_are_the_derivatives_by_the_free_constants(term):
    y, dy, ddy = np.random.default_rng(4).uniform(-0.5, 0.5, (3, 200))
    slopes = term.constant_slopes(y, dy, ddy)
    assert slopes.shape == (len(term.free_constants), len(term.symbols), 200)
    for free, slope in zip(term.free_constants, slopes, strict=True):
        at = term.constants[free.name]
        expected = numerical(lambda x, name=free.name: term.with_constants({name: x}).columns(y, dy, ddy), at, 1e-7)
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)
        low, high = free.range(2.0)
        assert 0.0 < low < at < high


def test_what_is_hard_or_linear_has_no_free_constant():
    for term in (Viscous(), Offset(), Spring(), Coulomb(0.0), Asymmetric(0.0)):
        assert term.free_constants == ()
        assert term.constant_slopes(Y, DY, DDY).shape == (0, len(term.symbols), 4)
    assert [free.name for free in Stribeck().free_constants] == ["stribeck_velocity"]
    assert [free.name for free in Stribeck(0.1, 0.01).free_constants] == ["stribeck_velocity", "smoothing_width"]


def test_constants_that_a_term_cannot_have_are_refused():
    with pytest.raises(UsageError, match="viscous: no constant width; it has none"):
        Viscous().with_constants({"width": 1.0})
    with pytest.raises(UsageError, match="stribeck: no constant vs; it has stribeck_velocity, smoothing_width"):
        Stribeck().with_constants({"vs": 1.0})
    with pytest.raises(UsageError, match=r"signed_square must be true or false, not 0\.5"):
        ImprovedStribeck().with_constants({"signed_square": 0.5})
    with pytest.raises(UsageError, match="viscous twice cannot be identified together"):
        Settings(terms=(Viscous(), Viscous()))


def test_units():
    units = {
        "N m": [
            *("N m", "N m", "N m s", "N m s^2", "N m s^3", "N m", "N m", "N m s", "N m s", "1", "N m/K", "N m"),
            *("N m s^0.5", "N m s^0.333", "N m", "N m s"),
        ],
        "N": [
            *("N", "N", "N s/m", "N s^2/m^2", "N s^3/m^3", "N", "N", "N s/m", "N s/m", "1", "N/K", "N/m"),
            *("N s^0.5/m^0.5", "N s^0.333/m^0.333", "N", "N s/m"),
        ],
    }
    terms = (ImprovedStribeck(), Asymmetric(), LoadCoulomb(), TemperatureCoulomb(), Spring())
    terms += (SaturatingViscous(), AbsoluteVelocity())
    for effort, expected in units.items():
        joint = Coordinate("joint", "1", (1.0,), 0.0, effort, slides=effort == "N")
        assert [term.unit(joint, i) for term in terms for i in range(len(term.symbols))] == expected


# --- Energy ------------------------------------------------------------------------------------------------------

MAY_DRIVE = ("spring", "position_periodic", "improved_stribeck", "absolute_velocity")


@pytest.mark.parametrize("term", [term for term in NEW if term.name not in MAY_DRIVE], ids=str)
def test_friction_takes_energy_away(term):
    """Each column on its own, at any speed: parameters that are not negative brake."""
    dy = np.linspace(-5, 5, 1001)
    assert np.all(dy * term.columns(0 * dy, dy, 0 * dy) >= 0.0)


PUBLISHED = {  # fc, fb - fc, kv1, kv2, kv3 and vb of Jing et al., table 1
    1: (14.8791, 20.1409 - 14.8791, 19.7469, 0.0574, -0.1671, 1e-3),
    2: (12.0478, 12.3278 - 12.0478, 37.8161, 0.4232, -0.1859, 1e-3),
    3: (15.5775, 18.3598 - 15.5775, 14.1530, -0.3233, -0.0090, 0.0055),
    4: (4.0419, 6.0389 - 4.0419, 7.3522, 0.7128, -0.0300, 1e-3),
    5: (4.5851, 7.3202 - 4.5851, 5.3967, 0.2969, 0.2570, 0.0011),
}


@pytest.mark.parametrize("number", PUBLISHED)
@pytest.mark.parametrize("signed", [False, True])
def test_the_published_friction_takes_energy_away_up_to_2_rad_per_second(number, signed):
    *values, velocity = PUBLISHED[number]
    dy = np.linspace(-2, 2, 4001)
    friction = values @ ImprovedStribeck(velocity, signed_square=signed).columns(dy, dy, dy)
    assert np.all(dy * friction >= 0.0)
    even = np.abs(friction + friction[::-1]).max()
    assert (even < 1e-12) == signed  # dq^2 is even: not the same friction in both directions


def test_friction_on_a_coupling_and_with_load_takes_energy_away():
    robot = Simulated(terms=(LoadCoulomb(0.0),), couplings=(WRIST,))
    motion = draw_random_motion(robot.model, 200)
    friction = robot.regressor.dense(motion)[30:]
    passive = [name[0] == "f" for name in robot.regressor.names[30:]]
    assert np.all(np.einsum("jk,cjk->ck", motion.dq, friction[passive]) >= 0.0)


# --- Load, temperature, couplings in the torque ------------------------------------------------------------------

WRIST = Coupling("both", (("elbow", 1.0), ("wrist", 0.5)), (RotorInertia(), Viscous(), Coulomb()))


def test_the_load_is_the_torque_of_the_urdf_at_this_state():
    model = Simulated().model
    regressor = Regressor(model, place_terms_on_joints(model, (LoadCoulomb(0.0),)))
    motion = draw_random_motion(model, 50)
    steady = Motion(motion.q, motion.dq, np.zeros_like(motion.ddq))
    load = np.abs(Regressor(model).torque(steady, model.inertial_parameters))
    columns = regressor.dense(motion)[30:]
    for number in range(3):
        expected = np.zeros((3, 50))
        expected[number] = load[number] * np.sign(motion.dq[number])
        assert ratio(columns[number], expected) <= 1e-14


def test_the_temperature_multiplies_and_where_it_is_unknown_it_is_the_reference():
    model = Simulated().model
    regressor = Regressor(model, place_terms_on_joints(model, (TemperatureCoulomb(0.0, 25.0),)))
    motion = draw_random_motion(model, 50)
    columns = regressor.dense(motion)[30:]
    for number in range(3):
        expected = (motion.temperature[number] - 25.0) * np.sign(motion.dq[number])
        np.testing.assert_allclose(columns[number, number], expected, rtol=1e-14)
    assert not np.any(regressor.dense(replace(motion, temperature=None))[30:])
    one = regressor.dense(motion.take(slice(7, 8)))
    np.testing.assert_allclose(one[30:, :, 0], columns[:, :, 7], rtol=1e-14)


def test_dynamics_know_load_and_couplings():
    """Inverse dynamics are the regressor's torque, forward dynamics undo it: the load needs no acceleration."""
    robot = Simulated(terms=(Viscous(), LoadCoulomb()), couplings=(WRIST,))
    dynamics = Dynamics(robot.regressor, np.arange(len(robot.parameters)), robot.parameters)
    motion = draw_random_motion(robot.model, 40)
    q, dq, ddq = motion.q.T, motion.dq.T, motion.ddq.T
    tau = dynamics.inverse_dynamics(q, dq, ddq)
    assert ratio(tau, robot.regressor.torque(motion, robot.parameters).T) <= 1e-13
    assert ratio(dynamics.forward_dynamics(q, dq, tau), ddq) <= 1e-9
    along = np.array([0.0, 1.0, 0.5])
    rigid = Dynamics(Regressor(robot.model), np.arange(30), robot.parameters[:30])
    added = dynamics.mass_matrix(q[0]) - rigid.mass_matrix(q[0])
    np.testing.assert_allclose(added, 0.1 * np.outer(along, along), atol=1e-14)


SLIDES = urdf(joint("lift", "base", "l1", kind="prismatic"), joint("turn", "l1", "l2"), links=2)


@pytest.mark.parametrize(
    ("coupling", "words"),
    [
        ((("turn", 1.0), ("knee", 1.0)), "coupling both: knee is not among the joints lift, turn"),
        ((("turn", 1.0), ("lift", 1.0)), "coupling both: turn, lift are prismatic and revolute: their sum has no unit"),
        ((), "give every joint that it is a sum of"),
        ((("turn", np.nan),), "weight of turn must be a number other than 0, not nan"),
    ],
)
def test_couplings_that_make_no_sense(coupling, words):
    with pytest.raises(UsageError, match=words):
        place_terms_on_joints(RobotModel.from_urdf(SLIDES), (), (Coupling("both", coupling, (Viscous(),)),))


def test_names_of_couplings():
    one = Coupling("turn", (("turn", 1.0),), (Viscous(),))
    with pytest.raises(UsageError, match="coupling turn: this is the name of a joint"):
        place_terms_on_joints(RobotModel.from_urdf(SLIDES), (), (one,))
    with pytest.raises(UsageError, match="two couplings are called turn"):
        Settings(couplings=(one, one))


# --- Identification ----------------------------------------------------------------------------------------------


def warm(robot, recording, seed, duration, rate=100.0):
    """The recording of a robot whose joints warm up on the way."""
    t = np.arange(round(duration * rate)) / rate
    q, dq, ddq, _ = draw_random_fourier(robot.model, seed).evaluate(t)
    temperature = 20.0 + np.array([[30.0], [20.0], [40.0]]) * (1.0 - np.exp(-t / 20.0))
    with_heat = robot.regressor.torque(Motion(q, dq, ddq, temperature), robot.parameters)
    heat = with_heat - robot.regressor.torque(Motion(q, dq, ddq), robot.parameters)
    return changed(recording, tau=lambda tau: tau + heat.T, temperature=temperature.T)


MODELS = {
    "asymmetric": ((Asymmetric(),), ()),
    "stribeck": ((Viscous(), Stribeck(0.2), Offset()), ()),
    "improved_stribeck": ((ImprovedStribeck(0.2), Offset()), ()),
    "signed square": ((ImprovedStribeck(0.2, signed_square=True), Offset()), ()),
    "load": ((Viscous(), Coulomb(), LoadCoulomb(), Offset()), ()),
    "temperature": ((Viscous(), Coulomb(), TemperatureCoulomb(), Offset()), ()),
    "spring": ((Viscous(), Coulomb(), Spring(0.3), Offset()), ()),
    "position periodic": ((Viscous(), Coulomb(), PositionPeriodic(), Offset()), ()),
    "coupling": ((Viscous(), Coulomb(), Offset()), (WRIST,)),
    "presliding": ((Viscous(), Dahl(), Offset()), ()),
    "load presliding": ((Viscous(), Coulomb(), LoadDahl(), Offset()), ()),
    "saturating": ((Viscous(), DoubleCoulomb(), SaturatingViscous(), AbsoluteVelocity(), Offset()), ()),
}


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    """A robot, its recording, its settings and what was identified."""
    terms, couplings = MODELS[request.param]
    robot = Simulated(terms=terms, couplings=couplings)
    recording = robot.record(duration=60.0, noise=0.05, velocity=1e-4)
    if request.param == "temperature":
        recording = warm(robot, recording, 1, 60.0)
    settings = Settings(terms=terms, couplings=couplings, reversal_speed="auto", cutoff=10.0)
    return robot, recording, settings, identify(*split([recording], robot.joints), robot.model, settings, "test")


@pytest.mark.slow
def test_parameters_are_recovered_within_their_uncertainty(case):
    robot, _, _, result = case
    estimate = result.estimate
    assert estimate.unexcited == ()
    off = np.abs(estimate.values - robot.base_values) / estimate.standard_deviations
    assert np.all(off < 4.5), dict(zip(robot.base.names, np.round(off, 1), strict=True))
    assert (off < 1.96).mean() > 0.75
    first = 10 * len(robot.model.body_names)
    alone = [i for i, column in enumerate(robot.base.independent) if column >= first]
    certain = estimate.standard_deviations[alone] < 0.5 * np.abs(robot.base_values[alone])
    assert certain.mean() > 0.6  # and the uncertainty is small enough to mean something


@pytest.mark.slow
def test_a_parameter_set_carries_its_terms(case, tmp_path):
    robot, recording, _, result = case
    write_parameters(tmp_path / "parameters.yaml", result.parameters)
    read = read_parameters(tmp_path / "parameters.yaml")
    regressor = Regressor.from_parameters(read)
    assert regressor.terms == robot.regressor.terms
    motion = draw_random_motion(robot.model, 30)
    columns = read.base.independent
    full = np.concatenate([read.bodies.standard_parameters, read.terms.values])
    torque = regressor.torque(motion, read.estimate.values, columns)
    assert ratio(torque, regressor.torque(motion, full)) <= 1e-12
    _, tau, findings = predict_recording(recording, read)
    inside = slice(100, -100)
    assert findings == ()
    assert np.linalg.norm((tau - recording.samples.tau)[inside]) < 0.03 * np.linalg.norm(recording.samples.tau[inside])


@pytest.mark.slow
def test_the_message_carries_its_terms(case):
    pytest.importorskip("rclpy", reason="rclpy is not installed: no ROS 2 here")
    from robot_dyn_id.nodes.messages.conversions import make_parameter_set_message

    robot, _, _, result = case
    assert (
        Regressor.from_parameters(ParameterSet.from_message(make_parameter_set_message(result.parameters))).terms
        == robot.regressor.terms
    )


@pytest.mark.slow
def test_constants_of_a_file_that_make_no_sense_are_named(case):
    parameters = case[3].parameters
    if not len(parameters.terms.constant_names):
        return
    with pytest.raises(InputError, match="constant_values holds nan"):
        altered(parameters, terms={"constant_values": np.full(len(parameters.terms.constant_values), np.nan)})
    wrong = altered(parameters, terms={"constant_values": np.full(len(parameters.terms.constant_values), -1.0)})
    with pytest.raises(InputError, match=r"parameter set: "):
        Regressor.from_parameters(wrong)
    names = tuple(f"{name}s" for name in parameters.terms.constant_names)
    with pytest.raises(InputError, match=r"parameter set: .*(no constant|is not among)"):
        Regressor.from_parameters(altered(parameters, terms={"constant_names": names}))


def test_data_without_temperature_are_refused():
    robot = Simulated(terms=(Coulomb(), TemperatureCoulomb()))
    cold = robot.record(duration=20.0)
    settings = Settings(terms=(Coulomb(), TemperatureCoulomb()))
    with pytest.raises(
        InputError, match=r"simulation.*: term temperature_coulomb needs the temperatures of the joints"
    ):
        identify(*split([cold], robot.joints), robot.model, settings, "test")


@pytest.mark.slow
@pytest.mark.parametrize("masses", [1.0, 0.3, 0.0])
def test_the_load_is_that_of_a_first_fit_whatever_the_masses_of_the_urdf(masses):
    terms = (Viscous(), Coulomb(0.1), LoadCoulomb(0.1))
    robot = Simulated(terms=terms)
    recording = robot.record(duration=60.0, noise=0.02, velocity=1e-4)
    model = replace(robot.model, inertial_parameters=masses * robot.model.inertial_parameters)
    result = identify(*split([recording], robot.joints), model, Settings(terms=terms), "test")
    motion = draw_random_motion(model, 100)
    true, found = (one.signals(motion)["load"] for one in (robot.regressor, result.model.regressor))
    assert np.linalg.norm(found - true) < 0.05 * np.linalg.norm(true)
    values = dict(zip(result.parameters.base.names, result.parameters.estimate.values, strict=True))
    assert [values[f"fl{joint}"] for joint in (2, 3)] == pytest.approx([0.1, 0.1], rel=0.1)
    assert result.parameters.bodies.load_parameters.any()
    given = replace(robot.regressor, load_parameters=())
    assert fit_load(robot.regressor, None) is robot.regressor  # load parameters are given already
    assert fit_load(given.with_terms(given.terms[:3]), None).load_parameters == ()  # no term needs a load


@pytest.mark.slow
def test_a_slow_temperature_sensor_is_held_and_its_absence_dropped():
    robot = Simulated(terms=(Viscous(), Coulomb(), TemperatureCoulomb(), Offset()))
    recording = warm(robot, robot.record(duration=60.0, noise=0.05), 1, 60.0)
    temperature = recording.samples.temperature.copy()
    sparse = np.full_like(temperature, np.nan)
    sparse[50::100] = temperature[50::100]  # one reading per second, the first after half a second
    settings = Settings(terms=(Viscous(), Coulomb(), TemperatureCoulomb(), Offset()))
    data = changed(recording, temperature=sparse)
    result = identify(*split([data], robot.joints), robot.model, settings, "test")
    assert result.training.survey.repairs.dropped == {"temperature missing or not finite": 50}
    parameters = result.parameters
    heat = np.array(parameters.terms.names) == "temperature_coulomb"
    assert np.all(np.abs(parameters.terms.values[heat] + 0.01) < 5 * parameters.terms.standard_deviations[heat])
    with pytest.raises(InputError, match="needs the temperatures"):
        predict_recording(robot.record(), parameters)


# --- The contract of nonlinear constants ---------------------------------------------------------------------------


def test_variable_projection_finds_the_constants_of_all_joints():
    """Linear parameters solved for, constants optimized by their logarithms with the Jacobian of Kaufman (1975)."""
    truth = [(c, Stribeck(v, w)) for c, v, w in _joints((0.2, 0.1, 0.3), (0.02, 0.01, 0.03))]
    model = Simulated().model
    regressor = Regressor(model, tuple(truth))
    rng = np.random.default_rng(5)
    motion = Motion(*draw_random_fourier(model, 3).evaluate(np.linspace(0.0, 20.0, 3000))[:3])
    values = np.concatenate([1.1 * model.inertial_parameters, np.tile([1.0, 0.6], 3)])
    tau = regressor.torque(motion, values) + 0.01 * rng.normal(size=(3, 3000))
    speeds = np.abs(motion.dq).max(axis=1)
    start = [(c, Stribeck(0.05 * s, 0.02 * s)) for (c, _), s in zip(truth, speeds, strict=True)]
    free = [(i, constant) for i, (_, term) in enumerate(start) for constant in term.free_constants]
    bounds = np.log([constant.range(speeds[i]) for i, constant in free]).T

    def at(logs):
        terms = list(start)
        for (i, constant), value in zip(free, np.exp(logs), strict=True):
            terms[i] = (terms[i][0], terms[i][1].with_constants({constant.name: float(value)}))
        moved = Regressor(model, tuple(terms))
        matrix = moved.dense(motion).reshape(len(moved.names), -1).T
        left, values, _ = np.linalg.svd(matrix, full_matrices=False)
        return terms, left[:, values > 1e-9 * values[0]], np.linalg.lstsq(matrix, tau.ravel(), rcond=1e-9)[0]

    def residual(logs):
        _, basis, _ = at(logs)
        return tau.ravel() - basis @ (basis.T @ tau.ravel())

    def jacobian(logs):
        terms, basis, linear = at(logs)
        columns = []
        for (i, constant), value in zip(free, np.exp(logs), strict=True):
            term, dy = terms[i][1], motion.dq[i]
            slopes = term.constant_slopes(dy, dy, dy)[[c.name for c in term.free_constants].index(constant.name)]
            column = np.zeros_like(tau)
            column[i] = -value * (linear[30 + 2 * i : 32 + 2 * i] @ slopes)
            columns.append(column.ravel() - basis @ (basis.T @ column.ravel()))
        return np.array(columns).T

    first = np.log([start[i][1].constants[constant.name] for i, constant in free])
    numeric = np.array([(residual(first + h) - residual(first - h)) / 2e-5 for h in 1e-5 * np.eye(len(first))]).T
    exact = jacobian(first)  # but for the part in the columns' own space, which Kaufman leaves out
    _, basis, _ = at(first)
    assert ratio(exact, numeric - basis @ (basis.T @ numeric)) <= 1e-5
    found = least_squares(residual, first, jacobian, bounds=bounds)
    sigma = 0.01 * np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    expected = np.log([truth[i][1].constants[constant.name] for i, constant in free])
    assert np.all(np.abs(found.x - expected) < 4.0 * sigma)
    assert np.all(sigma < 0.2)


def _joints(velocities, widths):
    coordinates = dict.fromkeys(c for c, _ in Simulated().regressor.terms)
    return zip(coordinates, velocities, widths, strict=True)


# --- Combinations by name ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FRICTION)
def test_combinations_are_taken_without_overlaps(name):
    terms = replace_friction((*DEFAULT_TERMS, RotorInertia()), name)
    Settings(terms=terms)
    assert [term.name for term in terms[: len(FRICTION[name])]] == list(FRICTION[name])
    assert RotorInertia() in terms
    assert (Offset() in terms) == (name != "asymmetric")
    assert set(FRICTION[name]) <= set(TERMS)


def test_constants_that_were_given_stay():
    assert replace_friction((Viscous(), Stribeck(0.3), Offset()), "stribeck") == (Viscous(), Stribeck(0.3), Offset())
