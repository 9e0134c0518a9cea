"""Which identified models may move a robot."""

from dataclasses import replace

import numpy as np
import pytest
from model_nodes import ARM, identified

from robot_dyn_id.assembly import with_values
from robot_dyn_id.controllers import usable_dynamics
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import urdf_hash

JOINTS = ("shoulder", "elbow", "wrist")


def impossible():
    """The identified arm, the inertia of its first joint turned around."""
    good = identified()
    values = good.values.copy()
    values[good.names.index("Izz1")] -= 10.0 * np.abs(values).max()
    return with_values(good, values)


@pytest.mark.parametrize("needed", [True, False])
def test_a_sound_model_may_do_everything(needed):
    dynamics = usable_dynamics(identified(), ARM, JOINTS, needed)
    assert dynamics.is_positive_definite(np.zeros((5, 3))).all()


def test_an_indefinite_mass_matrix_may_only_carry_the_weight():
    torques = usable_dynamics(impossible(), ARM, JOINTS, needs_mass_matrix=False)
    assert np.isfinite(torques.gravity(np.zeros(3))).all()
    assert not torques.is_positive_definite(np.zeros(3))
    with pytest.raises(InputError, match=r"mass matrix is not positive definite in 100% of the trained poses"):
        usable_dynamics(impossible(), ARM, JOINTS, needs_mass_matrix=True)


def test_another_robot_a_bad_verdict_and_missing_joints_are_refused():
    other = ARM.replace('name="small"', 'name="other"')
    stranger = replace(identified(), urdf=other, urdf_sha256=urdf_hash(other))
    for parameters, joints, words in (
        (stranger, JOINTS, "those of another URDF"),
        (
            replace(identified(), verdict="bad", reasons=("it is",)),
            JOINTS,
            r"verdict on the parameters is bad \(it is\)",
        ),
        (identified(), JOINTS[:2], "joint wrist of the parameters is not in the joint states"),
    ):
        with pytest.raises(InputError, match=words):
            usable_dynamics(parameters, ARM, joints, needs_mass_matrix=False)
