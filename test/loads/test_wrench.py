# SPDX-License-Identifier: Apache-2.0
"""The wrench that a moving body needs, against Pinocchio."""

import numpy as np
import pinocchio
from support.robots import panda_arm

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.loads.wrench import compute_frame_motion, wrench_regressor
from robot_dyn_id.model.kinematics import find_placement_of


def test_regressor_and_frame_motion_are_pinocchios():
    """A link in the middle of the chain: the wrench that Pinocchio gives the same body there."""
    robot = panda_arm()
    q, dq, ddq, _ = draw_random_fourier(robot, 3).evaluate(np.linspace(0.0, 5.0, 20))
    motion = compute_frame_motion(robot, Motion(q, dq, ddq), at := find_placement_of(robot, "panda_hand"))
    body = pinocchio.Inertia.Random()
    full = pinocchio.buildModelFromXML(robot.urdf)
    full.gravity.linear = robot.gravity
    model = pinocchio.buildReducedModel(full, [8, 9], pinocchio.neutral(full))
    data = model.createData()
    ours = np.einsum("icn,c->in", wrench_regressor(motion), body.toDynamicParameters())
    placement = pinocchio.SE3(at.rotation, at.position)
    for k in range(q.shape[1]):
        pinocchio.forwardKinematics(model, data, q[:, k], dq[:, k], ddq[:, k])
        acceleration, velocity = (placement.actInv(x[at.body + 1]) for x in (data.a, data.v))
        turned = (data.oMi[at.body + 1] * placement).rotation
        acceleration.linear -= turned.T @ robot.gravity
        wrench = body * acceleration + velocity.cross(body * velocity)
        np.testing.assert_allclose(ours[:, k], [*wrench.angular, *wrench.linear], rtol=0, atol=1e-10)
