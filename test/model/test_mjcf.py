# SPDX-License-Identifier: Apache-2.0
"""MJCF files as robots: the same dynamics as MuJoCo's own, and errors in one line."""

import numpy as np
import pytest

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import ModelError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription

ROBOT = """<mujoco model="two"><compiler angle="radian" autolimits="true"/>
<default><default class="arm"><joint axis="0 1 0" range="-2 2" damping="0.3"/></default></default>
<worldbody><body name="trunk" pos="0 0 0.4"><freejoint/>
<inertial pos="0 0 0" mass="5" diaginertia="0.1 0.1 0.1"/>
<body name="upper" pos="0.1 0 0.2" quat="0.9 0.1 -0.2 0.3" childclass="arm">
<joint name="swing" pos="0.01 0.02 0.03"/>
<inertial pos="0.2 0.01 0" quat="0.8 0.2 0.1 0" mass="1.5" diaginertia="0.02 0.03 0.04"/>
<body name="slider" pos="0.4 0 0"><joint name="reach" type="slide" axis="1 0.2 0" range="-0.1 0.3"/>
<inertial pos="0 0 0.1" mass="0.7" diaginertia="0.01 0.01 0.02"/>
<body name="tool" pos="0.1 0 0"><inertial pos="0.05 0 0" mass="0.2" diaginertia="0.001 0.001 0.001"/></body>
</body></body></body></worldbody></mujoco>"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text(ROBOT)
    return file


def test_the_dynamics_are_those_of_mujoco_with_the_base_fixed(path):
    mujoco = pytest.importorskip("mujoco")
    model, robot = mujoco.MjModel.from_xml_string(ROBOT), RobotModel.from_file(path)
    assert robot.joint_names == ("swing", "reach")
    data, dynamics = mujoco.MjData(model), Dynamics.from_model(robot)
    for q, v, a in np.random.default_rng(0).uniform(-0.09, 0.29, (20, 3, 2)):
        data.qpos[:3], data.qpos[3:7] = 0.0, [1.0, 0.0, 0.0, 0.0]
        data.qpos[7:], data.qvel[6:], data.qacc[6:] = q, v, a
        mujoco.mj_inverse(model, data)
        theirs = data.qfrc_inverse[6:] - model.dof_damping[6:] * v
        np.testing.assert_allclose(dynamics.inverse_dynamics(q, v, a), theirs, atol=1e-9)


def test_limits_and_links_are_kept(path):
    robot = RobotModel.from_file(path)
    assert robot.limits.lower.tolist() == [-2.0, -0.1]
    assert robot.limits.upper.tolist() == [2.0, 0.3]
    assert robot.prismatic.tolist() == [False, True]
    links = {link.get("name") for link in RobotDescription.from_file(path).root().findall("link")}
    assert links == {"trunk", "upper", "slider", "tool"}


WRONG = {
    "not what MuJoCo reads": (
        ROBOT.replace("<worldbody>", "<worldbod>").replace("</worldbody>", "</worldbod>"),
        "MJCF",
    ),
    "a ball joint": (ROBOT.replace('name="reach" type="slide"', 'name="reach" type="ball"'), "3 degrees of freedom"),
    "a free joint on a hand": (
        ROBOT.replace('<joint name="reach" type="slide" axis="1 0.2 0" range="-0.1 0.3"/>', "<freejoint/>"),
        "slider_free has 6 degrees of freedom",
    ),
    "no joints": (
        '<mujoco model="x"><worldbody><body name="b"><geom size="1"/></body></worldbody></mujoco>',
        "no joint",
    ),
    "broken XML": ("<mujoco><worldbody></mujoco>", "broken XML"),
}


@pytest.mark.parametrize(("text", "reason"), WRONG.values(), ids=WRONG)
def test_files_that_cannot_be_used_are_refused_in_one_line(tmp_path, text, reason):
    file = tmp_path / "robot.xml"
    file.write_text(text)
    with pytest.raises(ModelError) as refusal:
        RobotModel.from_file(file)
    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_xacro_arguments_are_refused(path):
    with pytest.raises(ModelError, match="an MJCF file: it has no argument ur_type"):
        RobotDescription.from_file(path, xacro={"ur_type": "ur5e"})
