# SPDX-License-Identifier: Apache-2.0
"""Exported actuators, loaded again by the tools that they are written for."""

import ast
from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record

from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.actuators import make_isaac_lab, make_position_mjcf


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
    ],
    ids=["no friction", "no Coulomb friction", "everything", "limits"],
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
