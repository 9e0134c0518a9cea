# SPDX-License-Identifier: Apache-2.0
"""Files of screws as robots: the same kinematics and dynamics as those of URDFs, and errors in one line."""

from copy import deepcopy

import numpy as np
import pinocchio
import pytest
from support.robots import Truth, panda_arm, robot

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.consistency import convert_to_parameters, pseudo_inertia
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import ModelError
from robot_dyn_id.files.prior import read_prior
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.screw import exponential
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.text.yaml import format_yaml

PLANAR = find_shared_file("config/screws/planar3r.yaml")

SLIDING = """<robot name="sliding"><link name="floor"/>
<link name="cart"><inertial><origin xyz="0.1 0.2 0" rpy="0.3 0.2 0.1"/><mass value="3"/>
<inertia ixx="0.2" ixy="0.01" ixz="0.02" iyy="0.3" iyz="-0.03" izz="0.25"/></inertial></link>
<link name="boom"><inertial><origin xyz="0 0.1 0.4"/><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0.01" iyy="0.12" iyz="0" izz="0.05"/></inertial></link>
<link name="ram"><inertial><origin xyz="0.3 0 0"/><mass value="1"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<joint name="rail" type="prismatic"><parent link="floor"/><child link="cart"/><origin xyz="0.1 0 0.5" rpy="0.4 0 1"/>
<axis xyz="0.6 0 0.8"/><limit lower="-1.5" upper="2" velocity="1.25" effort="300"/></joint>
<joint name="swing" type="revolute"><parent link="cart"/><child link="boom"/><origin xyz="0 0.3 0.1" rpy="0 1.2 0.3"/>
<axis xyz="0 -1 0"/><limit lower="-2" upper="1" velocity="3" effort="90"/></joint>
<joint name="reach" type="prismatic"><parent link="boom"/><child link="ram"/><origin xyz="0.2 0 0.6" rpy="1 1 1"/>
<axis xyz="0 0 1"/><limit lower="0" upper="0.5" velocity="0.5" effort="50"/></joint></robot>"""

ARMS = {
    "UR5": lambda: RobotModel.from_urdf(robot("ur5_robot").urdf),
    "Panda": panda_arm,
    "rail, swing and ram": lambda: RobotModel.from_urdf(SLIDING),
}

every_arm = pytest.mark.parametrize("name", ARMS)


def pinocchio_of(arm):
    """Pinocchio's model of an arm, its fixed joints lumped, with its data in configuration 0."""
    model = Truth(arm, arm.held).model
    data = model.createData()
    pinocchio.forwardKinematics(model, data, pinocchio.neutral(model))
    return model, data


def describe(arm):
    """Content of a file of screws of an arm, by Pinocchio's kinematics; the points lie elsewhere on the axes."""
    model, data = pinocchio_of(arm)
    screws = []
    for place, joint in enumerate(arm.joint_names):
        pose, inertia = data.oMi[place + 1], model.inertias[place + 1]
        axis = pose.rotation @ arm.axis[place]
        moments = pose.rotation @ inertia.inertia @ pose.rotation.T
        names = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
        limits = arm.limits
        screws.append(
            {
                "name": joint,
                "type": "prismatic" if arm.slides[place] else "revolute",
                "axis": (2.5 * axis).tolist(),
                "point": (pose.translation + 0.1 * (place + 1) * axis).tolist(),
                "limits": {
                    "lower": float(limits.lower[place]),
                    "upper": float(limits.upper[place]),
                    "velocity": float(limits.velocity[place]),
                    "effort": float(limits.effort[place]),
                },
                "link": {
                    "name": f"body{place}",
                    "mass": float(inertia.mass),
                    "center_of_mass": pose.act(inertia.lever).tolist(),
                    "inertia": {name: float(moments[row, column]) for name, row, column in names},
                },
            }
        )
    return {"name": "arm", "screws": screws}


def write(folder, content):
    """A file of screws."""
    path = folder / "arm.yaml"
    path.write_text(format_yaml(content))
    return path


@pytest.fixture
def pair(tmp_path, name):
    """An arm, and the same arm from the file of its screws."""
    arm = ARMS[name]()
    return arm, RobotModel.from_file(write(tmp_path, describe(arm)))


def test_the_example_is_the_robot_of_its_urdf():
    read, given = RobotModel.from_file(PLANAR), robot("planar3r")
    assert read.name == given.name and read.joint_names == given.joint_names
    for name in ("rotation", "translation", "axis", "parent", "inertial_parameters"):
        assert np.abs(getattr(read, name) - getattr(given, name)).max() < 1e-14, name
    ours, theirs = (compute_base_parameters(Regressor(model)) for model in (read, given))
    assert ours.names == theirs.names and ours.expressions == theirs.expressions
    motion = draw_random_motion(given, 20)
    expected = Truth(given).regressor(motion)
    assert np.abs(Regressor(read).dense(motion).transpose(2, 1, 0) - expected).max() < 1e-10 * np.abs(expected).max()


@every_arm
def test_torques_are_those_that_pinocchio_computes_from_the_urdf(pair):
    arm, read = pair
    motion = draw_random_motion(arm, 50)
    expected = Truth(arm, arm.held).torque(motion)
    found = Regressor(read).torque(motion, read.inertial_parameters).T
    assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()


@every_arm
def test_the_regressor_is_that_of_the_urdf_in_other_frames(pair):
    """Parameters of a body in its frame of the file become those in its frame of the URDF by T J T' (pseudo-inertia)."""
    arm, read = pair
    motion, (_, data) = draw_random_motion(arm, 20), pinocchio_of(arm)
    poses, base = [data.oMi[place + 1].homogeneous for place in range(len(arm.body_names))], np.eye(4)
    expected, columns = Truth(arm, arm.held).regressor(motion), []
    for place, pose in enumerate(poses):
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = read.rotation[place], read.translation[place]
        base = base @ step
        moved = np.linalg.inv(pose) @ base
        turn = convert_to_parameters(moved @ pseudo_inertia(np.eye(10)) @ moved.T).T
        columns.append(expected[:, :, 10 * place : 10 * place + 10] @ turn)
    found = Regressor(read).dense(motion).transpose(2, 1, 0)
    assert np.abs(found - np.concatenate(columns, axis=2)).max() < 1e-10 * np.abs(found).max()
    assert len(compute_base_parameters(Regressor(read)).names) == len(compute_base_parameters(Regressor(arm)).names)


@every_arm
def test_the_product_of_exponentials_of_a_file_gives_the_poses_of_pinocchio(tmp_path, name):
    """exp([S1] q1) ... exp([Si] qi) M_i, from the numbers in the file alone, is the pose of link i of the URDF."""
    arm = ARMS[name]()
    content, (model, data) = describe(arm), pinocchio_of(arm)
    homes = [data.oMi[place + 1].homogeneous.copy() for place in range(len(arm.joint_names))]
    read = Truth(RobotModel.from_file(write(tmp_path, content))).model
    again = read.createData()
    pinocchio.forwardKinematics(read, again, pinocchio.neutral(read))
    zeros = [again.oMi[place + 1].homogeneous.copy() for place in range(len(homes))]
    for q in np.random.default_rng(0).uniform(-1.5, 1.5, (10, len(homes))):
        pinocchio.forwardKinematics(model, data, q)
        pinocchio.forwardKinematics(read, again, q)
        product = np.eye(4)
        for place, (screw, angle) in enumerate(zip(content["screws"], q, strict=True)):
            axis = np.array(screw["axis"]) / np.linalg.norm(screw["axis"])
            slides = screw["type"] == "prismatic"
            twist = [0, 0, 0, *axis] if slides else [*axis, *np.cross(screw["point"], axis)]
            product = product @ exponential(np.array(twist), angle)
            assert np.abs(product @ homes[place] - data.oMi[place + 1].homogeneous).max() < 1e-12
            assert np.abs(product @ zeros[place] - again.oMi[place + 1].homogeneous).max() < 1e-12


@every_arm
def test_a_robot_that_was_read_has_the_screws_limits_and_masses_of_its_file(tmp_path, name):
    content = describe(ARMS[name]())
    read = RobotModel.from_file(write(tmp_path, content))
    assert read.joint_names == tuple(one["name"] for one in content["screws"])
    again = describe(read)
    for before, after in zip(content["screws"], again["screws"], strict=True):
        assert before["type"] == after["type"] and before["limits"] == after["limits"]
        assert before["link"]["mass"] == after["link"]["mass"]
        axis = np.array(before["axis"]) / 2.5
        apart = np.subtract(after["point"], before["point"])
        for one, other in (
            (before["axis"], after["axis"]),
            (np.cross(apart, axis), np.zeros(3)),
            (before["link"]["center_of_mass"], after["link"]["center_of_mass"]),
            ([*before["link"]["inertia"].values()], [*after["link"]["inertia"].values()]),
        ):
            assert np.abs(np.subtract(one, other)).max() < 1e-13


def test_what_may_be_left_out_and_what_it_means(tmp_path):
    content = {"screws": [{"name": "hinge", "axis": [0, 0, 1e-200], "point": [0, 0, 1]}]}
    path = write(tmp_path, content)
    read = RobotModel.from_file(path)
    assert read.name == "arm" and read.axis.tolist() == [[0, 0, 1]] and not read.inertial_parameters.any()
    assert [*read.limits.lower, *read.limits.upper] == [-np.inf, np.inf]
    assert [link.get("name") for link in RobotDescription.from_file(path).root().findall("link")] == ["base", "link1"]
    content["screws"][0]["link"] = {"mass": 2, "center_of_mass": [0.5, 0, 1]}
    assert np.allclose(RobotModel.from_file(write(tmp_path, content)).inertial_parameters[:4], [2, 1, 0, 0])


def test_a_prior_may_be_a_file_of_screws():
    assert read_prior(PLANAR) == RobotDescription.from_file(PLANAR)


JOINT = {"name": "a", "axis": [0, 0, 1], "point": [0, 0, 0]}

BODY = {"mass": 1.0, "center_of_mass": [0, 0, 0], "inertia": {"ixx": 1, "iyy": 1, "izz": 1}}

WRONG = {
    "no list": ({"screws": 3}, "screws: must be a list"),
    "no joint": ({"screws": []}, "screws: must be a list"),
    "a joint that is a number": ({"screws": [3]}, "screws[0]: must hold keys and values, not 3"),
    "an unknown key of the file": ({"screws": [JOINT], "bas": "x"}, "unknown key 'bas'; did you mean 'base'?"),
    "an unknown key": ({"screws": [{**JOINT, "axes": 1}]}, "screws[0]: unknown key 'axes'; did you mean 'axis'?"),
    "an unknown type": ({"screws": [{**JOINT, "type": "ball"}]}, "screws[0].type: unknown type 'ball'"),
    "no name": ({"screws": [{"axis": [0, 0, 1], "point": [0, 0, 0]}]}, "screws[0].name is missing"),
    "an empty name": ({"screws": [{**JOINT, "name": ""}]}, "screws[0].name: must be a string, not ''"),
    "no axis": ({"screws": [{"name": "a", "point": [0, 0, 0]}]}, "screws[0].axis is missing"),
    "no point": ({"screws": [JOINT, {"name": "b", "axis": [0, 0, 1]}]}, "screws[1].point is missing"),
    "an axis of length 0": ({"screws": [{**JOINT, "axis": [0, 0, 0]}]}, "screws[0].axis: must be longer than 0"),
    "two numbers": ({"screws": [{**JOINT, "axis": [0, 1]}]}, "screws[0].axis: must be a list of 3 numbers, not [0, 1]"),
    "a word": ({"screws": [{**JOINT, "point": [0, 0, "b"]}]}, "screws[0].point[2]: must be a finite number, not 'b'"),
    "a truth": ({"screws": [{**JOINT, "point": [0, 0, True]}]}, "screws[0].point[2]: must be a finite number"),
    "one name twice": ({"screws": [JOINT, JOINT]}, "two joints have the name a; rename one of them"),
    "a link as the base": ({"base": "link1", "screws": [JOINT]}, "two links have the name link1"),
    "no mass": ({"screws": [{**JOINT, "link": {"center_of_mass": [0, 0, 0]}}]}, "screws[0].link.mass is missing"),
    "no mass at all": ({"screws": [{**JOINT, "link": {**BODY, "mass": 0}}]}, "mass: must be above 0, not 0"),
    "no center": ({"screws": [{**JOINT, "link": {"mass": 1}}]}, "screws[0].link.center_of_mass is missing"),
    "no izz": (
        {"screws": [{**JOINT, "link": {**BODY, "inertia": {"ixx": 1, "iyy": 1}}}]},
        "screws[0].link.inertia.izz is missing",
    ),
    "a slide without range": ({"screws": [{**JOINT, "type": "prismatic"}]}, "screws[0].limits.lower is missing"),
    "half a range": ({"screws": [{**JOINT, "limits": {"lower": 1}}]}, "screws[0].limits.upper is missing"),
    "a range upside down": (
        {"screws": [{**JOINT, "limits": {"lower": 1, "upper": 1}}]},
        "screws[0].limits: lower is 1, which must be below upper, 1",
    ),
    "no speed": ({"screws": [{**JOINT, "limits": {"velocity": 0}}]}, "screws[0].limits.velocity: must be above 0"),
    "no screws": ({"joints": [JOINT]}, "unknown key 'joints'"),
}


def refuse(path):
    """The message of the refusal of a file, which is one line that begins with the name of the file."""
    with pytest.raises(ModelError) as refusal:
        RobotModel.from_file(path)
    message = str(refusal.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message


@pytest.mark.parametrize(("content", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_content_is_refused_in_one_line(tmp_path, content, reason):
    assert reason in refuse(write(tmp_path, deepcopy(content)))


@pytest.mark.parametrize(
    ("text", "reason"),
    {
        "NaN": ("screws: [{name: a, axis: [0, 0, .nan], point: [0, 0, 0]}]", "screws[0].axis[2]: must be a finite"),
        "infinite": ("screws: [{name: a, axis: [0, 0, 1], point: [0, -.inf, 0]}]", "screws[0].point[1]: must be"),
        "1e-3": ("screws: [{name: a, axis: [0, 0, 1e-3], point: [0, 0, 0]}]", "'1e-3'; write 1.0e-3: YAML 1.1"),
        "a key twice": ("screws: []\nscrews: []\n", "the key screws is there twice, in lines 1 and 2"),
        "nothing": ("", "must hold keys and values, not None"),
        "not YAML": ("screws: [", "not a YAML file"),
        "a name with a line break": ('screws: [{name: "a\\nb", axis: [0, 0, 1], point: [0, 0, 0]}]', "printable"),
    }.values(),
)
def test_wrong_text_is_refused_in_one_line(tmp_path, text, reason):
    path = tmp_path / "arm.yaml"
    path.write_text(text)
    assert reason in refuse(path)


def test_xacro_arguments_are_refused():
    with pytest.raises(ModelError, match="a file of screws: it has no argument ur_type"):
        RobotDescription.from_file(PLANAR, xacro={"ur_type": "ur5e"})
