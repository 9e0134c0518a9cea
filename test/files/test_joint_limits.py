# SPDX-License-Identifier: Apache-2.0
"""Limits that are given in addition to those of the URDF: the narrower ones count, and wider ones are named."""

from robot_dyn_id.files.joint_limits import JointLimitsFile
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel


def test_limits_that_are_wider_than_those_of_the_urdf_are_named():
    model = RobotModel.from_file(find_shared_file("urdf/arm7.urdf"))
    first, second = model.joint_names[:2]
    lower, velocity = (float(values[0]) for values in (model.limits.lower, model.limits.velocity))
    narrow = 0.5 * float(model.limits.velocity[1])
    limits = JointLimitsFile(
        {
            "min_position": {first: lower - 1.0, second: 1.0001 * float(model.limits.lower[1])},
            "max_velocity": {first: 2.0 * velocity, second: narrow},
        }
    )
    kept = limits.narrowed(model).limits
    assert (kept.lower[0], *kept.velocity[:2]) == (lower, velocity, narrow)
    assert limits.list_wider(model) == [
        f"lower position limits of the URDF count, which are narrower than those given: {first} {lower:g} "
        f"(not {lower - 1.0:g})",
        f"velocity limits of the URDF count, which are narrower than those given: {first} {velocity:g} "
        f"(not {2.0 * velocity:g})",
    ]
