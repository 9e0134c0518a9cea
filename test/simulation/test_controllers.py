# SPDX-License-Identifier: Apache-2.0
"""Identified models that may move a robot, and the efforts that they may command."""

import numpy as np
import pytest
from support.altered import altered
from support.model_nodes import ARM, RATED, identified, impossible

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import urdf_hash
from robot_dyn_id.simulation.controllers import check_static_efforts, find_rated_efforts, make_usable_dynamics

JOINTS = ("shoulder", "elbow", "wrist")


@pytest.mark.parametrize("needed", [True, False])
def test_a_sound_model_may_do_everything(needed):
    dynamics = make_usable_dynamics(identified(), ARM, JOINTS, needed)
    assert dynamics.is_positive_definite(np.zeros((5, 3))).all()


def test_an_indefinite_mass_matrix_may_only_carry_the_weight():
    torques = make_usable_dynamics(impossible(), ARM, JOINTS, needs_mass_matrix=False)
    assert np.isfinite(torques.gravity(np.zeros(3))).all()
    assert not torques.is_positive_definite(np.zeros(3))
    with pytest.raises(InputError, match=r"mass matrix is not positive definite in 100% of the trained poses"):
        make_usable_dynamics(impossible(), ARM, JOINTS, needs_mass_matrix=True)


def test_another_robot_a_bad_verdict_and_missing_joints_are_refused():
    other = ARM.replace('name="small"', 'name="other"')
    stranger = altered(identified(), robot={"urdf": other, "urdf_sha256": urdf_hash(other)})
    for parameters, joints, words in (
        (stranger, JOINTS, "those of another URDF"),
        (
            altered(identified(), judgment={"verdict": "bad", "reasons": ("it is",)}),
            JOINTS,
            r"verdict on the parameters is bad \(it is\)",
        ),
        (identified(), JOINTS[:2], "joint wrist of the parameters is not in the joint states"),
    ):
        with pytest.raises(InputError, match=words):
            make_usable_dynamics(parameters, ARM, joints, needs_mass_matrix=False)


def rated_at(effort):
    """The arm with other ratings."""
    return RobotModel.from_urdf(ARM.replace(f'effort="{RATED}"', f'effort="{effort}"'))


def test_ratings_are_those_of_the_urdf_which_the_user_may_lower_but_not_raise():
    model = rated_at(40)
    assert find_rated_efforts(model).tolist() == [40.0] * 3
    assert find_rated_efforts(model, (10.0,)).tolist() == [10.0] * 3
    assert find_rated_efforts(model, (10.0, 50.0, 40.0)).tolist() == [10.0, 40.0, 40.0]
    assert find_rated_efforts(rated_at(0), (10.0,)).tolist() == [10.0] * 3
    with pytest.raises(InputError, match=r"joint shoulder has no effort limit in the URDF \(0\): .* effort_limit"):
        find_rated_efforts(rated_at(0))
    for given, words in (((1.0, 2.0), "effort_limit has 2 values"), ((0.0,), "positive"), ((np.nan,), "positive")):
        with pytest.raises(UsageError, match=words):
            find_rated_efforts(model, given)


def test_a_model_whose_weight_the_motors_cannot_carry_is_refused():
    good = Dynamics.from_parameters(identified())
    check_static_efforts(good, np.full(3, RATED))
    heavy = Dynamics.from_parameters(replace_values(identified(), 100.0 * identified().estimate.values))
    with pytest.raises(InputError, match=r"needs 11.* N m to hold joint elbow .* above the rated 40: check"):
        check_static_efforts(heavy, np.full(3, RATED))
    pose = np.array([0.0, 40.0, 0.0])  # beyond the limits, where a spring would be stretched
    worst = np.abs(good.gravity(pose)).max()
    with pytest.raises(InputError, match="above the rated"):
        check_static_efforts(good, np.full(3, 0.999 * worst), q=pose)
