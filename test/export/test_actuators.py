# SPDX-License-Identifier: Apache-2.0
"""Exported actuators, loaded again by the tools that they are written for."""

import ast
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record
from support.sdf_reader import urdf_of

from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.actuators import make_friction_urdf, make_isaac_lab, make_position_mjcf, make_position_sdf
from robot_dyn_id.model.robot import RobotModel


def simulate_in_mujoco(text, motion):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = motion.q[0]
    for number, (samples, _) in enumerate(model.actuator_history):
        times = np.arange(-samples, 0) * model.opt.timestep
        if samples:
            mujoco.mj_initCtrlHistory(model, data, number, times, np.full(samples, motion.reference[0, number]))
    positions, steps = [], round(motion.period / model.opt.timestep)
    for reference in motion.reference:
        positions.append(data.qpos.copy())
        data.ctrl[:] = reference
        mujoco.mj_step(model, data, steps)
    return np.array(positions)


@pytest.mark.parametrize(
    "actuators",
    [
        replace(TRUTH, coulomb=np.zeros(3), delay=np.zeros(3)),
        replace(TRUTH, coulomb=np.zeros(3)),
        TRUTH,
        replace(TRUTH, limit=np.array([40.0, 50.0, 8.0])),
        replace(
            TRUTH,
            delay=np.zeros(3),
            upper_reference=np.array([0.4, np.inf, 0.3]),
            lower_reference=np.array([-np.inf, -0.4, -9.0]),
        ),
    ],
    ids=["no friction", "no Coulomb friction", "everything", "limits", "ends of references"],
)
def test_mujoco_moves_the_exported_robot_as_this_package_does(actuators):
    motion = record(truth=actuators, noise=0.0, duration=2.2, rate=100.0)
    ours = simulate_commands(MODEL, actuators, motion)
    theirs = simulate_in_mujoco(make_position_mjcf(MODEL, actuators), motion)
    within = motion.t - motion.t[0] <= 1.0
    assert np.ptp(ours[within]) > 0.8
    fastest = np.abs(np.gradient(ours, motion.period, axis=0)).max()
    half_step = 0.5e-3 * fastest if actuators.delay.any() else 0.0
    assert np.abs(ours - theirs)[within].max() < 0.5e-3 + half_step


def test_joints_stop_in_mujoco_where_they_do_here():
    stops = {"upper_stop": np.array([np.inf, np.inf, 0.1]), "lower_stop": np.array([-0.1, -np.inf, -np.inf])}
    actuators = replace(TRUTH, delay=np.zeros(3), **stops)
    motion = record(truth=actuators, noise=0.0, duration=2.2, rate=100.0)
    ours = simulate_commands(MODEL, actuators, motion)
    theirs = simulate_in_mujoco(make_position_mjcf(MODEL, actuators), motion)
    assert ours[:, 2].max() == 0.1
    assert ours[:, 0].min() == -0.1
    without = simulate_commands(MODEL, replace(TRUTH, delay=np.zeros(3)), motion)
    assert np.abs(ours - without).max() > 0.1
    assert np.abs(ours - theirs).max() < 8e-3  # stops of MuJoCo yield at an impact


def test_the_isaac_lab_text_is_python_with_all_values():
    tree = ast.parse(make_isaac_lab(replace(TRUTH, delay=np.array([0.0, 0.01, 0.01]), limit=np.array([1.0, 2.0, 3.0]))))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    values = {}
    for call in calls:
        own = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
        for name in own["joint_names_expr"]:
            values[name] = {key: value[name] if isinstance(value, dict) else value for key, value in own.items()}
    assert [values[name]["max_delay"] for name in MODEL.joint_names] == [0, 2, 2]
    for number, name in enumerate(MODEL.joint_names):
        assert values[name]["stiffness"] == TRUTH.kp[number]
        assert values[name]["armature"] == TRUTH.armature[number]
        assert values[name]["effort_limit"] == number + 1.0


def test_inertias_that_mujoco_refuses_are_refused_by_name():
    hollow = replace(MODEL, inertial_parameters=np.zeros_like(MODEL.inertial_parameters))
    with pytest.raises(InputError, match="shoulder"):
        make_position_mjcf(hollow, TRUTH)


def read_friction(text):
    found = {}
    for joint in ElementTree.fromstring(text).iter("joint"):
        dynamics = joint.find("dynamics")
        if dynamics is not None:
            found[joint.get("name")] = {key: float(dynamics.get(key)) for key in ("damping", "friction")}
    return found


def test_the_written_urdf_is_the_same_robot_with_the_friction_of_the_actuators():
    text = make_friction_urdf(MODEL, TRUTH)
    assert RobotModel.from_urdf(text).inertial_parameters.tolist() == MODEL.inertial_parameters.tolist()
    assert read_friction(text) == {
        name: {"damping": viscous, "friction": coulomb}
        for name, viscous, coulomb in zip(MODEL.joint_names, TRUTH.viscous, TRUTH.coulomb, strict=True)
    }
    assert "armature, offset, delay, gains and ends of references" in text


def test_the_written_sdf_is_the_same_robot_with_position_controllers():
    actuators = replace(TRUTH, limit=np.array([40.0, np.inf, 8.0]))
    text = make_position_sdf(MODEL, actuators)
    urdf, gravity = urdf_of(text)
    np.testing.assert_allclose(RobotModel.from_urdf(urdf).inertial_parameters, MODEL.inertial_parameters, atol=1e-12)
    np.testing.assert_array_equal(gravity, MODEL.gravity)
    friction = read_friction(urdf)
    controllers = {one.findtext("joint_name"): one for one in ElementTree.fromstring(text).iter("plugin")}
    assert set(controllers) == set(MODEL.joint_names)
    for number, name in enumerate(MODEL.joint_names):
        values = {one.tag: float(one.text) for one in controllers[name] if "_" in one.tag and one.tag[:1] in "pdic"}
        assert (values["p_gain"], values["d_gain"]) == (actuators.kp[number], actuators.kd[number])
        assert values["cmd_offset"] == -actuators.offset[number]
        assert friction[name] == {"damping": actuators.viscous[number], "friction": actuators.coulomb[number]}
        if np.isinf(actuators.limit[number]):
            assert "cmd_max" not in values
        else:  # of the controller's effort, which holds the offset
            assert 0.5 * (values["cmd_max"] - values["cmd_min"]) == actuators.limit[number]
