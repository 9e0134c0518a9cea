# SPDX-License-Identifier: Apache-2.0
"""Terms: their columns, and how they enter the torque of joints, followers and couplings."""

import numpy as np
import pytest
from support.robots import MIMICS, OBLIQUE, panda_arm, ratio

from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.regressor import Regressor, make_joint_coordinates, place_terms_on_joints
from robot_dyn_id.dynamics.terms import TERMS, Coordinate, Coulomb, Offset, RotorInertia, Term, Viscous
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import effort_unit_over

Y, DY, DDY = np.random.default_rng(1).normal(size=(3, 50))

FORMULAS = {
    "viscous": (Viscous(), [DY]),
    "coulomb smoothed": (Coulomb(smoothing_width=0.3), [np.tanh(DY / 0.3)]),
    "coulomb hard": (Coulomb(smoothing_width=0.0), [np.sign(DY)]),
    "offset": (Offset(), [np.ones(50)]),
    "rotor inertia": (RotorInertia(), [DDY]),
}


# --- Columns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", FORMULAS)
def test_columns_are_those_of_the_formula(case):
    term, expected = FORMULAS[case]
    columns = term.columns(Y, DY, DDY)
    assert columns.shape == (len(term.symbols), 50) == (len(term.powers), 50)
    assert np.array_equal(columns, expected)


def differences(function, motion, row, step=1e-6):
    """Central differences of a function of (y, dy, ddy) by one of them."""
    ends = [[x + sign * step * (i == row) for i, x in enumerate(motion)] for sign in (1, -1)]
    return (function(*ends[0]) - function(*ends[1])) / (2 * step)


@pytest.mark.parametrize("case", [case for case in FORMULAS if case != "coulomb hard"])
def test_slopes_are_the_derivatives_of_the_columns(case):
    term, motion = FORMULAS[case][0], (Y, DY, DDY)
    slopes = term.slopes(*motion)
    assert slopes.shape == (3, len(term.symbols), 50)
    assert ratio(slopes, np.array([differences(term.columns, motion, row) for row in range(3)])) <= 1e-8


def test_slopes_are_those_of_the_columns():
    for kind in TERMS.values():
        term = kind()
        slopes = term.slopes(Y, DY, DDY)
        assert slopes.shape == (3, len(term.symbols), 50)
        assert ratio(slopes, np.array([differences(term.columns, (Y, DY, DDY), row) for row in range(3)])) <= 1e-6


def test_the_hard_sign_has_no_slope():
    speeds = np.array([-1.0, 0.0, 1.0])
    assert np.array_equal(Coulomb(0.0).slopes(speeds, speeds, speeds), np.zeros((3, 1, 3)))


def test_a_group_has_the_slopes_of_its_coordinates():
    model = RobotModel.from_urdf(MIMICS)
    motion = draw_random_motion(model, 30, seed=6)
    group = Regressor(model, place_terms_on_joints(model, [Position()])).term_groups[0]
    slopes = group.slopes(motion.q, motion.dq, motion.ddq)
    assert slopes.shape == (3, 2, 6, 30)
    y = model.coupling @ motion.q + model.offset[:, None]
    assert np.array_equal(slopes[0], [np.ones_like(y), 2 * y])
    assert not slopes[1:].any()


def test_terms_are_found_by_their_names():
    assert set(TERMS) >= {"viscous", "coulomb", "offset", "rotor_inertia"}
    for name, kind in TERMS.items():
        assert kind().name == name
    symbols = [symbol for kind in TERMS.values() for symbol in kind.symbols]
    assert len(set(symbols)) == len(symbols)  # a column's name determines its term
    assert not any(symbol[-1].isdigit() for symbol in symbols)  # and its joint


@pytest.mark.parametrize(
    ("effort", "powers", "unit"),
    [
        ("N m", (0, 0), "N m"),
        ("N", (0, 0), "N"),
        ("N m", (1, 1), "N m s"),
        ("N", (1, 1), "N s/m"),
        ("N m", (1, 2), "kg m^2"),
        ("N", (1, 2), "kg"),
        ("N m", (3, 3), "N m s^3"),
        ("N", (3, 3), "N s^3/m^3"),
        ("N m", (2, 2), "N m s^2"),
        ("N", (2, 2), "N s^2/m^2"),
        ("N m", (1, 0), "N m"),
        ("N", (1, 0), "N/m"),
    ],
)
def test_the_unit_of_a_parameter_is_that_of_the_effort_over_its_column(effort, powers, unit):
    slides = effort == "N"
    assert effort_unit_over(effort, slides, *powers) == unit
    amperes = unit.replace(effort, "A") if "kg" not in unit else "A s^2/m" if slides else "A s^2"
    assert effort_unit_over("A", slides, *powers) == amperes


def test_terms_have_their_constants():
    assert Coulomb(smoothing_width=0.05).constants == {"smoothing_width": 0.05}
    assert Viscous().constants == {}


def test_a_smoothed_sign_is_a_sign_far_from_rest_and_zero_at_rest():
    speeds = np.array([-1.0, 0.0, 1.0])
    for width in (0.0, 1e-6, 0.02):
        assert np.array_equal(Coulomb(width).columns(speeds, speeds, speeds), [[-1, 0, 1]])


# --- In the torque -----------------------------------------------------------------------------------------------


class Position(Term):
    """A new term, as a spring would be: it takes a class, and a line in `TERMS` to be found by name."""

    name = "position"
    symbols = ("k0", "k1")
    powers = ((0, 0), (0, 0))

    def columns(self, y, dy, ddy):
        return np.array([y, y**2])

    def slopes(self, y, dy, ddy):
        return np.array([[np.ones_like(y), 2 * y], *np.zeros((2, 2, len(y)))])


def all_terms():
    return [*(term for term, _ in FORMULAS.values()), Position()]


def term_rows(regressor, motion):
    """The columns of the terms, shape (N, n, columns)."""
    inertial = 10 * len(regressor.model.body_names)
    return regressor.dense(motion)[inertial:].transpose(2, 1, 0)


def test_a_term_acts_on_its_own_joint_only():
    model = panda_arm()
    motion = draw_random_motion(model, 30, seed=2)
    rows = term_rows(Regressor(model, place_terms_on_joints(model, [Viscous(), RotorInertia()])), motion)
    expected = np.zeros((30, 7, 14))
    for joint in range(7):
        expected[:, joint, joint] = motion.dq[joint]
        expected[:, joint, 7 + joint] = motion.ddq[joint]
    assert np.array_equal(rows, expected)


@pytest.mark.parametrize("text", [OBLIQUE, MIMICS], ids=["oblique", "mimics"])
def test_the_columns_of_followers_are_projected(text):
    """G' f(G q + offset, G dq, G ddq): what the followers' own torques do at the joints that lead them."""
    model = RobotModel.from_urdf(text)
    motion = draw_random_motion(model, 30, seed=3)
    bodies = [model.coupling @ x for x in (motion.q, motion.dq, motion.ddq)]
    bodies[0] = bodies[0] + model.offset[:, None]
    expected = []
    for term in all_terms():
        for body in range(len(model.body_names)):
            columns = term.columns(*(x[body] for x in bodies))
            expected += [np.outer(column, model.coupling[body]) for column in columns]
    rows = term_rows(Regressor(model, place_terms_on_joints(model, all_terms())), motion)
    assert ratio(rows, np.stack(expected, axis=2)) <= 1e-15


def test_a_follower_takes_the_power_that_its_leader_gives():
    model = RobotModel.from_urdf(MIMICS)
    motion = draw_random_motion(model, 30, seed=4)
    rows = term_rows(Regressor(model, place_terms_on_joints(model, [Viscous()])), motion)
    power = np.einsum("jk,kjc->ck", motion.dq, rows)
    assert ratio(power, (model.coupling @ motion.dq) ** 2) <= 1e-15


def test_coordinates_are_named_and_numbered_like_the_bodies():
    model = RobotModel.from_urdf(MIMICS)
    coordinates = make_joint_coordinates(model)
    assert tuple(c.name for c in coordinates) == model.body_names
    assert [c.label for c in coordinates] == ["1", "2", "3", "4", "5", "6"]
    assert np.array_equal([c.weights for c in coordinates], model.coupling)
    assert np.array_equal([c.offset for c in coordinates], model.offset)
    units = {c.name: (c.effort_unit, c.slides) for c in coordinates}
    assert units == dict.fromkeys("abde", ("N m", False)) | dict.fromkeys("cf", ("N", True))


def test_a_coupling_of_two_joints_is_one_coordinate():
    """Friction at the motor of a coupled wrist, which turns with the difference of two joints."""
    model = panda_arm()
    wrist = Coordinate("wrist", "67", (0.0,) * 5 + (1.0, -0.5), 0.1, "N m", slides=False)
    regressor = Regressor(model, ((wrist, Viscous()), (wrist, Offset())))
    motion = draw_random_motion(model, 30, seed=5)
    rows, speed = term_rows(regressor, motion), motion.dq[5] - 0.5 * motion.dq[6]
    assert regressor.names[70:] == ("fv67", "off67")
    assert ratio(rows[:, :, 0], np.outer(speed, wrist.weights)) <= 1e-15
    assert np.array_equal(rows[:, :, 1], np.tile(wrist.weights, (30, 1)))
    assert np.array_equal(regressor.structure[70:], [[False] * 5 + [True] * 2] * 2)
