# SPDX-License-Identifier: Apache-2.0
"""Serial chains from screw axes: the same robots as from URDFs."""

import numpy as np
import pytest
from support.robots import robot

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.screw import compute_body_transforms
from robot_dyn_id.model.screw_chain import compute_frame_of_axis, convert_to_roll_pitch_yaw


def test_the_planar_arm_of_wang_is_that_of_its_urdf():
    model = RobotModel.from_screws([(-1, 0, 0)] * 3, [(0, 0, 0), (0.12, 0, 0.36), (0.2425, 0, 0)], (0, 0, -9.8))
    given = RobotModel.from_urdf(robot("planar3r").urdf, gravity=(0, 0, -9.8))
    for name in ("rotation", "translation", "axis", "parent"):
        assert np.abs(getattr(model, name) - getattr(given, name)).max() < 1e-15, name


@pytest.mark.parametrize("name", ["ur5_robot", "panda"])
def test_an_arm_from_its_screw_axes_has_the_base_parameters_of_its_urdf(name):
    arm = robot(name)
    chain = [j for j in arm.joint_names if not arm.prismatic[arm.body_names.index(j)]]
    arm = RobotModel.from_urdf(arm.urdf, chain)
    placed = compute_body_transforms(arm, np.zeros(len(chain)))
    axes = [t[:3, :3] @ axis for t, axis in zip(placed, arm.axis, strict=True)]
    model = RobotModel.from_screws(axes, [t[:3, 3] for t in placed])
    assert len(compute_base_parameters(Regressor(model)).names) == len(compute_base_parameters(Regressor(arm)).names)
    # the frames are other ones, so that parameters are: the torques of the same bodies are not
    moved = compute_body_transforms(model, np.zeros(len(chain)))
    parameters = np.zeros((len(chain), 10))
    for body, (old, new) in enumerate(zip(placed, moved, strict=True)):
        turn = new[:3, :3].T @ old[:3, :3]
        m, first = arm.inertial_parameters[10 * body], arm.inertial_parameters[10 * body + 1 : 10 * body + 4]
        xx, xy, yy, xz, yz, zz = arm.inertial_parameters[10 * body + 4 : 10 * body + 10]
        inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
        parameters[body] = [m, *(turn @ first), xx, xy, yy, xz, yz, zz]
    motion = draw_random_motion(arm, 20)
    torque = Regressor(arm).torque(motion, arm.inertial_parameters)
    assert np.abs(Regressor(model).torque(motion, parameters.ravel()) - torque).max() < 1e-10 * np.abs(torque).max()


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 0, -1), (0.6, 0, 0.8), (-1, 0, 0), (0.0, 1e-14, -1.0)])
def test_the_axis_of_a_frame_is_the_given_one(axis):
    frame = compute_frame_of_axis(np.array(axis, float), np.array([1.0, 2.0, 3.0]))
    assert np.allclose(frame[:3, 2], axis, atol=1e-12) and np.allclose(frame[:3, 3], [1, 2, 3])
    assert np.allclose(frame[:3, :3] @ frame[:3, :3].T, np.eye(3)) and np.linalg.det(frame[:3, :3]) > 0.0


def test_angles_of_a_urdf_are_recovered_at_the_pole_too():
    for roll, pitch, yaw in ((0.3, -0.4, 2.0), (0.3, np.pi / 2, 0.0), (-0.2, -np.pi / 2, 0.0)):
        (cx, sx), (cy, sy), (cz, sz) = ((np.cos(a), np.sin(a)) for a in (roll, pitch, yaw))
        x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
        y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
        z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
        assert np.allclose(convert_to_roll_pitch_yaw(z @ y @ x), [roll, pitch, yaw])


@pytest.mark.parametrize(
    ("axes", "origins"), [([], []), ([(0, 0, 1)], []), ([(0, 0, 0)], [(0, 0, 0)]), ([(0, np.nan, 1)], [(0, 0, 0)])]
)
def test_axes_that_are_not_axes_are_refused(axes, origins):
    with pytest.raises(UsageError, match="screw axes"):
        RobotModel.from_screws(axes, origins)
