# SPDX-License-Identifier: Apache-2.0
"""Base parameters: the rank of Pinocchio's regressor, the groupings of the paper, the same answer every time."""

from functools import cache

import numpy as np
import pytest
from support.robots import (
    GRAVITIES,
    KINDS,
    MIMICS,
    OBLIQUE,
    TOLERANCE_DEPENDENT,
    Truth,
    every_kind,
    every_model,
    joint,
    panda_arm,
    ratio,
    robot,
    urdf,
)

from robot_dyn_id.dynamics import base_parameters as module
from robot_dyn_id.dynamics.base_parameters import (
    compute_base_parameters,
    compute_echelon,
    count_sufficient_samples,
    draw_random_motion,
    stack_regressor,
)
from robot_dyn_id.dynamics.kronecker import PAPER_ORDER
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, RotorInertia, SaturatingViscous, Stribeck, Viscous
from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import expression

UNSTEADY = {
    "romeo_laas_small": "angles rounded in the URDF leave coefficients of 1e-10, on both sides of what is negligible"
}
"""Models whose expressions differ in negligible coefficients from one set of random states to another."""


def with_terms(model, *terms):
    return Regressor(model, place_terms_on_joints(model, terms))


@cache
def base(name):
    """The base parameters of a published model, with all its joints and without terms."""
    return compute_base_parameters(Regressor(robot(name)))


def singular_values(stack):
    """Singular values of the unit-norm columns without those below 1e-9, relative to the largest."""
    norms = np.linalg.norm(stack, axis=0)
    triangle = np.linalg.qr(stack[:, norms >= 1e-9] / norms[norms >= 1e-9], mode="r")
    values = np.linalg.svd(triangle, compute_uv=False)
    return values / values[0]


def reproduction(regressor, found, seed):
    """Relative error of the torque of base columns times base parameters, at other states."""
    rng = np.random.default_rng(seed)
    parameters = rng.normal(size=len(regressor.names))
    motion = draw_random_motion(regressor.model, 30, seed=seed)
    stack = stack_regressor(regressor, motion)
    return ratio(stack[:, found.independent] @ (found.mapping @ parameters), stack @ parameters)


# --- Rank and span -----------------------------------------------------------------------------------------------


@every_model
def test_the_rank_is_that_of_pinocchios_regressor(name):
    model, found = robot(name), base(name)
    regressor = Regressor(model)
    peer = Truth(model).regressor(draw_random_motion(model, count_sufficient_samples(regressor), seed=11))
    values = singular_values(peer.reshape(-1, len(regressor.names)))
    assert len(found.names) == np.count_nonzero(values > 1e-9)
    depends_on_tolerance = np.any((values > 1e-11) & (values < 1e-6))
    assert depends_on_tolerance == (name in TOLERANCE_DEPENDENT)
    assert reproduction(regressor, found, seed=12) <= 1e-10


@pytest.mark.parametrize(("tolerance", "rank"), [(1e-9, 36), (1e-11, 37)])
def test_the_rank_of_kinova_depends_on_the_tolerance(tolerance, rank):
    found = compute_base_parameters(Regressor(robot("kinova")), tolerance=tolerance)
    assert len(found.names) == rank
    assert reproduction(Regressor(robot("kinova")), found, seed=12) <= 1e-10


@every_kind
def test_pivots_by_size_give_as_many_and_the_same_torque(name):
    regressor = Regressor(robot(name))
    found = compute_base_parameters(regressor, pivots="qr")
    stack = stack_regressor(
        regressor, draw_random_motion(regressor.model, count_sufficient_samples(regressor), seed=13)
    )
    assert len(found.names) == compute_echelon(stack).rank
    assert reproduction(regressor, found, seed=14) <= 1e-10


@pytest.mark.parametrize("pivots", ["rref", "qr"])
@pytest.mark.parametrize("gravity", GRAVITIES)
@pytest.mark.parametrize("text", [OBLIQUE, MIMICS], ids=["oblique", "mimics"])
def test_trees_mimics_and_prismatic_joints_under_any_gravity(text, gravity, pivots):
    model = RobotModel.from_urdf(text, gravity=GRAVITIES[gravity])
    regressor = with_terms(model, Viscous(), Coulomb(), Offset(), RotorInertia())
    found = compute_base_parameters(regressor, pivots=pivots)
    stack = stack_regressor(regressor, draw_random_motion(model, 60, seed=15))
    assert len(found.names) == np.count_nonzero(singular_values(stack) > 1e-9)
    assert reproduction(regressor, found, seed=16) <= 1e-12


def test_columns_are_taken_in_the_given_order():
    regressor = Regressor(panda_arm())
    columns = len(regressor.names)
    default, backwards = (
        compute_base_parameters(regressor),
        compute_base_parameters(regressor, order=range(columns)[::-1]),
    )
    assert len(backwards.names) == len(default.names) == 43
    # the last column is the first that is looked at, so that it stands alone if any torque depends on it
    assert backwards.names[-1] == "Izz7"
    assert np.count_nonzero(backwards.mapping[-1]) == 1
    # among columns of equal worth the first comes first: m7 takes the place of what only groups with it
    assert "m7" in backwards.names
    assert "m7" not in default.names
    assert compute_base_parameters(regressor, order=range(columns)).names == default.names
    assert reproduction(regressor, backwards, seed=17) <= 1e-10


@pytest.mark.parametrize("name", ["panda", "ur5_robot", "pr2", "planar3r"])
def test_the_leftmost_rule_gives_an_echelon_form(name):
    """A dependent column is a combination of independent ones before it."""
    found = base(name)
    rows, columns = np.nonzero(found.mapping)
    assert np.all(found.independent[rows] <= columns)


@pytest.mark.parametrize("name", ["panda", "ur5_robot", "pr2", "planar3r"])
def test_the_rule_by_size_takes_the_largest_rest_and_the_first_of_equals(name):
    regressor = Regressor(robot(name))
    stack = stack_regressor(regressor, draw_random_motion(regressor.model, count_sufficient_samples(regressor)))
    norms = np.linalg.norm(stack, axis=0)
    columns = stack / np.where(norms < 1e-9, np.inf, norms)
    chosen = []
    while True:
        basis = np.linalg.qr(columns[:, chosen])[0]
        rest = np.linalg.norm(columns - basis @ (basis.T @ columns), axis=0)
        if rest.max() < 1e-6:
            break
        chosen.append(int(np.argmax(rest > (1.0 - 1e-6) * rest.max())))
    assert compute_base_parameters(regressor, pivots="qr").independent.tolist() == sorted(chosen)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pivots": "svd"}, "pivot rule 'svd' is not known; use one of rref, qr"),
        ({"order": [0, 0, *range(2, 70)]}, "not a permutation of the 70 columns"),
        ({"order": [1, 2]}, "not a permutation of the 70 columns"),
    ],
    ids=["pivots", "double", "short"],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(UsageError, match=words):
        compute_base_parameters(Regressor(panda_arm()), **options)


@pytest.mark.parametrize("velocity", [1e-6, 1e-3, 0.05, 50.0])
@pytest.mark.parametrize(
    "term",
    [lambda v: Stribeck(v), lambda v: Stribeck(v, 0.1 * v), lambda v: Coulomb(v), lambda v: SaturatingViscous(v)],
    ids=["stribeck", "smoothed", "coulomb", "saturating"],
)
def test_columns_that_change_within_any_velocity_are_independent(term, velocity):
    """A narrow peak is zero at random states of ordinary velocities, and is a base parameter all the same."""
    terms = (Viscous(), term(velocity)) if velocity < 1.0 else (term(velocity),)
    regressor = with_terms(panda_arm(), *terms)
    found, columns = compute_base_parameters(regressor), regressor.names[70:]
    assert set(columns) <= set(found.names)
    assert not set(columns) & set(found.combined)


# --- The same answer every time ----------------------------------------------------------------------------------


ANOTHER = [(name, 1) for name in (*KINDS, *UNSTEADY)] + [
    (name, seed) for name in ("panda", "ur5_robot", "z1") for seed in (2, 3)
]


@pytest.mark.parametrize(("name", "seed"), ANOTHER)
def test_other_random_states_give_the_same_answer(name, seed, monkeypatch):
    usual = base(name)
    monkeypatch.setattr(
        module,
        "draw_random_motion",
        lambda model, count, first, moving: draw_random_motion(model, count, first + seed, moving),
    )
    other = compute_base_parameters(Regressor(robot(name)))
    assert other.names == usual.names
    assert ratio(other.mapping, usual.mapping) <= 1e-9
    if name not in UNSTEADY:
        assert other.expressions == usual.expressions
        assert other.unidentifiable == usual.unidentifiable


# --- The planar arm of Wang et al., Sensors 2025, 25(18), 5749 ---------------------------------------------------

PAPER_PIVOTS = [3, 7, 8, 13, 17, 18, 23, 27, 28]
"""Counted from 1, in the paper's order of columns."""

TABLE_3 = {
    "mx1": ("mx1 + 0.36 m2 + 0.36 m3", 5.199),
    "my1": ("my1", 0.0469),
    "Izz1": ("Izz1 + 0.1296 m2 + 0.1296 m3", 5.888),
    "mx2": ("mx2 - 0.36 m3", -1.284),
    "my2": ("my2", 0.0381),
    "Izz2": ("Izz2 + 0.1296 m3", 3.588),
    "mx3": ("mx3", -0.287),
    "my3": ("my3", 0.0016),
    "Izz3": ("Izz3", 0.111),
}
"""Groupings and values [kg m, kg m^2]."""

PAPER_COLUMNS = [10 * body + k for body in range(3) for k in PAPER_ORDER]


def groupings(names):
    """The mapping of Table 3, written out."""
    mapping = np.zeros((len(TABLE_3), len(names)))
    lengths = {"mx1": [("m2", 0.36), ("m3", 0.36)], "mx2": [("m3", -0.36)], "Izz2": [("m3", 0.1296)]}
    lengths["Izz1"] = [("m2", 0.1296), ("m3", 0.1296)]
    for row, own in enumerate(TABLE_3):
        mapping[row, names.index(own)] = 1.0
        for other, value in lengths.get(own, []):
            mapping[row, names.index(other)] = value
    return mapping


def test_the_planar_arm_has_the_frames_of_the_paper():
    """R_i = Rod' with Rod the shortest turn of the axis s to z; origins p_i in the base."""
    s, z = np.array([-1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    x, y, w = np.cross(s, z)
    cross = np.array([[0, -w, y], [w, 0, -x], [-y, x, 0]])
    rod = np.eye(3) + cross + cross @ cross  # of a right angle
    places = np.array([[0, 0, 0], [0.12, 0, 0.36], [0.2425, 0, 0]])
    model = robot("planar3r")
    assert ratio(rod @ s, z) <= 1e-15
    assert ratio(model.rotation, np.array([rod.T, np.eye(3), np.eye(3)])) <= 1e-15
    assert (
        ratio(model.translation, np.array([places[0], rod @ (places[1] - places[0]), rod @ (places[2] - places[1])]))
        < 1e-15
    )
    assert np.array_equal(model.axis, [z, z, z])


@pytest.mark.parametrize("order", [None, PAPER_COLUMNS], ids=["our order", "the paper's order"])
def test_the_planar_arm_has_the_groupings_of_the_paper(order):
    model = robot("planar3r")
    found = compute_base_parameters(Regressor(model), order=order)
    place_in_paper = np.argsort(PAPER_COLUMNS)  # of each of our columns
    assert sorted(place_in_paper[found.independent] + 1) == PAPER_PIVOTS
    assert found.names == tuple(TABLE_3)
    assert np.abs(found.mapping - groupings(list(found.column_names))).max() <= 1e-12
    assert found.expressions == tuple(text for text, _ in TABLE_3.values())
    assert found.units == ("kg m", "kg m", "kg m^2") * 3
    assert found.mapping @ model.inertial_parameters == pytest.approx(
        [value for _, value in TABLE_3.values()], abs=1e-14
    )


def test_the_planar_arm_has_rank_9_and_15_with_friction():
    model = robot("planar3r")
    assert len(compute_base_parameters(Regressor(model)).names) == 9
    friction = compute_base_parameters(with_terms(model, Viscous(), Coulomb(smoothing_width=0.0)))
    assert friction.names == (*TABLE_3, "fv1", "fv2", "fv3", "fc1", "fc2", "fc3")
    assert friction.expressions[9:] == friction.names[9:]


def test_the_planar_arm_reports_what_is_not_identifiable():
    found = compute_base_parameters(Regressor(robot("planar3r")))
    flat = ("mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz")
    expected = [f"{symbol}{body}" for body in (1, 2, 3) for symbol in flat]
    assert sorted(found.unidentifiable) == sorted(["m1", *expected])
    assert set(found.combined) == {"mx1", "m2", "m3", "Izz1", "mx2", "Izz2"}


def test_gravity_along_the_axes_hides_the_first_link():
    sideways = RobotModel.from_urdf(robot("planar3r").urdf, gravity=(9.8, 0, 0))
    found = compute_base_parameters(Regressor(sideways))
    assert found.names == ("Izz1", "mx2", "my2", "Izz2", "mx3", "my3", "Izz3")
    assert {"mx1", "my1"} <= set(found.unidentifiable)


# --- Terms -------------------------------------------------------------------------------------------------------


def test_rotor_inertias_join_the_inertia_where_they_are_not_separable():
    found = compute_base_parameters(with_terms(robot("planar3r"), RotorInertia()))
    # Izz1 turns with joint 1 alone, as its rotor does; Izz2 and Izz3 are carried by other joints too
    assert found.expressions[2] == "Izz1 + 0.1296 m2 + 0.1296 m3 + Ir1"
    assert found.names == (*TABLE_3, "Ir2", "Ir3")
    assert {"Ir1", "Izz1"} <= set(found.combined)
    assert not {"Ir2", "Ir3"} & set(found.combined)


def test_a_mimic_followers_friction_joins_its_leaders():
    found = compute_base_parameters(with_terms(RobotModel.from_urdf(MIMICS), Viscous(), Offset()))
    follower, body = {}, found.column_names
    for name, text in zip(found.names, found.expressions, strict=True):
        follower[name] = text
    numbers = {name: i + 1 for i, name in enumerate(RobotModel.from_urdf(MIMICS).body_names)}
    a, b, c = (numbers[name] for name in "abc")
    assert f"fv{a}" in body
    assert follower[f"fv{a}"] == f"fv{a} + 2.25 fv{b} + 0.5625 fv{c}"  # multipliers squared
    assert follower[f"off{a}"] == f"off{a} - 1.5 off{b} - 0.75 off{c}"


# --- Text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coefficients", "text"),
    [
        ([1.0, 0.1296, -1.0], "a + 0.1296 b - c"),
        ([-1.0, 0.0, 2.0], "-a + 2 c"),
        ([1.0, 1.0 - 1e-13, -1.0 + 1e-13], "a + b - c"),
        ([1.0, 4e-10, -0.123456789], "a - 0.123457 c"),
        ([0.03647925 + 1e-15, 0.03647925 - 1e-15, 0.0], "0.0364792 a + 0.0364792 b"),
    ],
    ids=["plain", "sign first", "units", "negligible", "tie"],
)
def test_expressions_read_like_sums(coefficients, text):
    assert expression(coefficients, ["a", "b", "c"]) == text


def test_the_arm_of_panda_reads_as_in_the_books():
    found = compute_base_parameters(Regressor(panda_arm()))
    assert len(found.names) == 43
    named = dict(zip(found.names, found.expressions, strict=True))
    assert named["Izz1"] == "Izz1 + Iyy2"
    assert named["my2"] == "my2 - 0.316 m3 - mz3 - 0.316 m4 - 0.316 m5 - 0.316 m6 - 0.316 m7"
    assert {"m1", "mx1", "my1", "mz1", "Ixx1", "Ixy1", "Iyy1", "Ixz1", "Iyz1", "m2", "mz2"} == set(found.unidentifiable)


def test_columns_that_only_rounded_angles_make_independent_displace_no_others():
    """Right angles with eight digits: without the rotor's column others would be multiplied by up to 1e14."""
    text = urdf(
        joint("turn", "base", "l1", xyz="0 0 0.3", rpy="-0.2 -1.7 -0.05"),
        joint("out", "l1", "l2", "prismatic", xyz="0.03 -0.01 0.36", rpy="-1.57079633 1.57079633 -1.57079633"),
        joint("across", "l2", "l3", "prismatic", xyz="-0.06 0.2 0.05", rpy="-1.57079633 0 1.57079633"),
        links=3,
    )
    regressor = with_terms(RobotModel.from_urdf(text), Viscous(), RotorInertia())
    base = compute_base_parameters(regressor)
    assert {"Ir3", "fv3"} <= set(base.names)
    assert np.abs(base.mapping).max() < 1e9
    motion = draw_random_motion(regressor.model, 50, seed=3)
    stack = stack_regressor(regressor, motion)
    np.testing.assert_allclose(stack[:, base.independent] @ base.mapping, stack, atol=1e-6)
