# SPDX-License-Identifier: Apache-2.0
"""Physical consistency: bodies that could exist, friction that brakes."""

import re

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.consistency import (
    convert_to_parameters,
    find_violation,
    is_consistent,
    make_consistent,
    pseudo_inertia,
    report_negative_terms,
)
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, RotorInertia, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.model.robot import RobotModel

BOX = np.array([2.0, 0.2, 0.0, 0.0, 0.1, 0.0, 0.2 + 0.02, 0.0, 0.0, 0.2 + 0.02])
"""2 kg, its center 0.1 m along x, moments of inertia 0.1, 0.2, 0.2 about the center."""


def test_the_pseudo_inertia_of_points_is_the_sum_of_their_squares():
    rng = np.random.default_rng(0)
    points, masses = rng.normal(size=(5, 3)), rng.uniform(0.1, 1.0, 5)
    inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True))
    xx, xy, xz, _, yy, yz, _, _, zz = inertia.ravel()
    parameters = np.array([masses.sum(), *(masses @ points), xx, xy, yy, xz, yz, zz])
    homogeneous = np.column_stack([points, np.ones(5)])
    np.testing.assert_allclose(pseudo_inertia(parameters), (homogeneous.T * masses) @ homogeneous, atol=1e-14)
    assert is_consistent(parameters)


@pytest.mark.parametrize(
    ("index", "value"), [(0, -2.0), (1, 2.0), (4, 0.5), (5, 0.3)], ids=["mass", "far center", "triangle", "product"]
)
def test_a_violation_is_reported(index, value):
    impossible = BOX.copy()
    impossible[index] = value
    assert is_consistent(BOX)
    assert not is_consistent(np.concatenate([BOX, impossible]))


def test_negative_friction_is_reported_except_where_allowed():
    model = RobotModel.from_urdf(ARM)
    terms = place_terms_on_joints(model, (Viscous(), Coulomb(), Offset(), RotorInertia()))
    regressor = Regressor(model, terms)
    base = compute_base_parameters(regressor)
    values, sigmas = np.full(len(base.names), -1.0), np.full(len(base.names), 0.2)
    accidents = {"fv2", "Ir2"} & set(base.names)
    for name in accidents:
        sigmas[base.names.index(name)] = 0.5
    findings = report_negative_terms(regressor, base, values, sigmas)
    assert {one.code for one in findings} == {"negative_parameter"}
    reported = set(re.findall(r"(f[vc]\d|Ir\d) =", " ".join(one.message for one in findings)))
    alone = {name for name, row in zip(base.names, base.mapping, strict=True) if np.count_nonzero(row) == 1}
    assert reported == {name for name in alone if name[:2] in ("fv", "fc", "Ir")} - accidents
    assert {"fv1", "fc1", "fc2"} <= reported
    assert findings[0].joints == model.joint_names[:1]
    assert findings[0].message.startswith(f"joint {model.joint_names[0]}: fv1 = -1 +- 0.2 and fc1 = -1 +- 0.2 negative")
    assert findings[0].action == "check the sign of the effort"
    elbow = next(one for one in findings if one.joints == ("elbow",))  # fc2 alone
    assert "smoothing width" in elbow.action
    assert report_negative_terms(regressor, base, -values, sigmas) == ()


def test_pseudo_inertia_and_back():
    parameters = np.random.default_rng(1).normal(size=(3, 5, 10))
    np.testing.assert_allclose(convert_to_parameters(pseudo_inertia(parameters)), parameters, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("index", "value", "words"),
    [
        (0, -2.0, "its mass is -2 kg"),
        (1, 2.0, r"a principal moment of inertia is -1.78 kg m\^2"),
        (4, 0.5, r"its principal moments 0.2, 0.2, 0.5 kg m\^2 break the triangle inequality"),
    ],
)
def test_the_reason_of_a_violation_is_given(index, value, words):
    impossible = BOX.copy()
    impossible[index] = value
    assert find_violation(BOX) == ""
    assert re.fullmatch(words, find_violation(impossible))


def test_a_prior_of_real_bodies_is_left_alone():
    bodies = RobotModel.from_urdf(ARM).inertial_parameters.reshape(-1, 10)
    ours, findings = make_consistent(bodies, ("a", "b", "c"))
    np.testing.assert_allclose(ours, bodies, rtol=1e-12, atol=1e-15)
    assert findings == ()


def test_a_prior_that_could_not_exist_gets_floors_of_the_robots_own_size_and_is_named():
    flat, massless, plate = BOX.copy(), np.zeros(10), BOX.copy()
    flat[4] = 0.5
    plate[4:] = [0.2, 0.0, 0.12, 0.0, 0.0, 0.12]  # 0.2, 0.1, 0.1 about the center: no thickness along x
    for scale in (1.0, 1e-3):  # of lengths: nothing is a fixed number of meters
        size = scale ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
        bodies = np.array([BOX, flat, massless, plate]) * size
        ours, findings = make_consistent(bodies, ("box", "flat", "massless", "plate"))
        assert all(is_consistent(body) for body in ours)
        np.testing.assert_allclose(ours[0], bodies[0], rtol=1e-12, atol=1e-18)
        assert [one.joints for one in findings] == [("flat",), ("massless",), ("plate",)]
        assert "break the triangle inequality" in findings[0].message
        assert "its mass is 0 kg" in findings[1].message
        assert ours[2, 0] == pytest.approx(1e-3 * 2.0)
        more = np.linalg.eigvalsh(pseudo_inertia(ours[3]) - pseudo_inertia(bodies[3]))
        assert more[0] > -1e-12 * np.abs(bodies[3]).max() * scale**2  # a floor of the new prior is one of the old
        np.testing.assert_allclose(ours[3], bodies[3], rtol=1e-3)


@pytest.mark.parametrize(
    ("bodies", "words"),
    [(np.zeros((2, 10)), "no moving link a mass"), (np.eye(2, 10)[[0, 0]], "no moving link an inertia")],
)
def test_a_prior_without_size_is_refused(bodies, words):
    with pytest.raises(InputError, match=words):
        make_consistent(bodies, ("a", "b"))
