# SPDX-License-Identifier: Apache-2.0
"""Simulation under position commands: the equations of motion, and the derivatives by every parameter."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, command, record
from support.simulated import GRIPPER, LIFT

from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import simulate_commands, split_into_limbs
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.actuators import BREAKAWAY, COULOMB, DELAY, KINDS, LIMIT, LOAD_COULOMB
from robot_dyn_id.model.robot import RobotModel

LIMB = split_into_limbs(MODEL)[0]

FORK = """<robot name="fork"><link name="base"/>{}</robot>""".format(
    "".join(
        f"""<link name="{side}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
        <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
        <joint name="{side}_joint" type="continuous"><parent link="base"/><child link="{side}"/>
        <axis xyz="0 1 0"/></joint>"""
        for side in ("left", "right")
    )
)


def changed(kind, joint, step):
    values = TRUTH.values
    values[kind, joint] += step
    return ActuatorModel.from_values(TRUTH.joint_names, values)


def limited():
    """Limits that the drives reach."""
    return replace(TRUTH, limit=np.array([18.0, 15.0, 4.0]), delay=np.array([0.0081, 0.0067, 0.0112]))


def ended():
    """End stops and ends of references that the motion reaches, on both sides."""
    return replace(
        TRUTH,
        lower_stop=np.array([-np.inf, -0.1, -np.inf]),
        upper_stop=np.array([0.1, np.inf, np.inf]),
        lower_reference=np.array([-np.inf, -np.inf, -0.05]),
        upper_reference=np.array([np.inf, 0.08, np.inf]),
        delay=np.array([0.0081, 0.0067, 0.0112]),
    )


def loaded(actuators=TRUTH):
    """Friction that depends on the load, of two joints."""
    return replace(actuators, load_coulomb=np.array([0.03, 0.0, 0.1]))


def elastic(actuators=TRUTH):
    """Presliding friction of two joints; the other one has hard Coulomb friction."""
    return replace(actuators, breakaway_displacement=np.array([0.01, 0.0, 0.003]))


def constant_reference(q0, duration=25.0, rate=100.0):
    t = np.arange(0.0, duration, 1.0 / rate)
    reference = np.tile(q0, (len(t), 1))
    return CommandedMotion("hold", MODEL.joint_names, t, reference, reference)


def test_without_friction_the_robot_comes_to_rest_where_drive_and_weight_balance():
    actuators = replace(TRUTH, coulomb=np.zeros(3))
    q = simulate_commands(MODEL, actuators, constant_reference(np.array([0.3, 0.4, -0.2])))[-1]
    gravity = Dynamics.from_model(MODEL).inverse_dynamics(q, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(actuators.kp * (np.array([0.3, 0.4, -0.2]) - q), gravity + actuators.offset, atol=1e-3)


def test_a_joint_sticks_while_drive_and_weight_are_below_the_coulomb_friction():
    motion = constant_reference(np.array([0.3, 0.4, -0.2]))
    held = replace(TRUTH, coulomb=np.full(3, 1e3))
    np.testing.assert_array_equal(simulate_commands(MODEL, held, motion), motion.q)


def test_a_joint_comes_to_rest_where_drive_and_weight_are_within_the_friction_of_its_load():
    """Pushed from both sides, it sticks with the whole friction of its load against its motion."""
    reference, dynamics = np.array([0.3, 0.4, -0.2]), Dynamics.from_model(MODEL)
    share, none = np.array([0.0, 0.3, 0.0]), np.zeros(3)
    actuators = replace(TRUTH, kd=20.0 * TRUTH.kd, coulomb=none, load_coulomb=share)
    for side in (1.0, -1.0):
        begin = np.tile(reference + side * np.array([0.0, 0.4, 0.0]), (2500, 1))
        q = simulate_commands(MODEL, actuators, replace(constant_reference(reference), q=begin))[-1]
        load = dynamics.inverse_dynamics(q, none, none)
        friction = actuators.kp * (reference - q) - load - actuators.offset
        np.testing.assert_allclose(friction, -side * share * np.abs(load), atol=0.02 * np.abs(load[1]))


def test_a_presliding_joint_deflects_like_a_spring_and_keeps_the_deflection_of_a_load():
    """z = 1 - exp(-x / d) for a first motion by x, which friction and drive carry together at rest."""
    distance, none = 0.02, np.zeros(3)
    actuators = replace(TRUTH, kd=20.0 * TRUTH.kd, breakaway_displacement=np.full(3, distance))
    begin = np.array([0.3, 0.4, -0.2])
    motion = replace(constant_reference(begin + np.array([0.0, 0.0, 0.03])), q=np.tile(begin, (2500, 1)))
    q = simulate_commands(MODEL, actuators, motion)[-1]
    load = Dynamics.from_model(MODEL).inverse_dynamics(q, none, none) + actuators.offset
    friction = actuators.kp * (motion.reference[0] - q) - load
    moved = q - begin
    assert (np.abs(moved) > 1e-3).any()
    expected = actuators.coulomb * np.sign(moved) * (1.0 - np.exp(-np.abs(moved) / distance))
    np.testing.assert_allclose(friction, expected, atol=1e-3)


@pytest.mark.parametrize("distance", [0.03, 0.003, 0.0003])
def test_simulations_with_presliding_converge_with_the_second_order_of_the_step(distance):
    actuators, motion = replace(TRUTH, breakaway_displacement=np.full(3, distance)), record(duration=3.0, noise=0.0)
    coarse, middle, fine = (LIMB.simulate(actuators, motion, longest=step)[0] for step in (2.5e-3, 1.25e-3, 6.25e-4))
    errors = [np.sqrt(np.mean((one - other) ** 2)) for one, other in ((coarse, middle), (middle, fine))]
    assert errors[1] < 0.3 * errors[0]
    hard = LIMB.simulate(TRUTH, motion, longest=6.25e-4)[0]
    assert 0.3 * distance < np.abs(fine - hard).max() < 10.0 * distance


def test_the_effort_balances_the_equation_of_motion_to_the_second_order_of_the_step():
    actuators = replace(TRUTH, coulomb=np.zeros(3))
    dynamics, residuals = Dynamics.from_model(MODEL), []
    for rate in (800.0, 1600.0):  # one step per sample
        t, reference = command(MODEL, duration=1.5, rate=rate)
        smooth = np.zeros_like(reference) + 0.3 * np.sin(3.0 * t)[:, None]
        motion = CommandedMotion("sine", MODEL.joint_names, t, smooth, smooth)
        q, v = LIMB.simulate(replace(actuators, delay=np.zeros(3)), motion)[0], None
        h = 1.0 / rate
        v, a = (q[2:] - q[:-2]) / (2 * h), (q[2:] - 2 * q[1:-1] + q[:-2]) / h**2
        taken = dynamics.inverse_dynamics(q[1:-1], v, a)
        taken = taken + actuators.armature * a + actuators.viscous * v + actuators.offset
        mean = 0.5 * (smooth[:-2] + smooth[1:-1])  # of the two steps around a sample
        residuals.append(np.abs(actuators.kp * (mean - q[1:-1]) - actuators.kd * v - taken)[100:].max())
    assert residuals[1] < 0.4 * residuals[0]
    assert residuals[1] < 0.05


def test_a_stopped_joint_is_at_its_stop_at_rest_and_moves_away_when_the_drive_pulls():
    actuators = replace(TRUTH, upper_stop=np.array([np.inf, np.inf, 0.1]))
    free, stopped = (record(truth=one, duration=4.0, noise=0.0) for one in (TRUTH, actuators))
    assert free.q[:, 2].max() > 0.2
    assert stopped.q[:, 2].max() == 0.1
    at_stop = stopped.q[:, 2] == 0.1
    assert 0.05 < at_stop.mean() < 0.5
    assert np.count_nonzero(np.diff(at_stop.astype(int)) == -1) >= 2
    assert stopped.q[:, 2].min() < -0.1


def test_a_stop_carries_what_the_drive_pushes_and_the_other_joints_balance_their_weight():
    reference, stop = np.array([0.3, 0.4, 1.0]), 0.2
    actuators = replace(TRUTH, coulomb=np.zeros(3), upper_stop=np.array([np.inf, np.inf, stop]))
    motion = replace(constant_reference(reference), q=np.tile([0.3, 0.4, 0.0], (2500, 1)))
    q = simulate_commands(MODEL, actuators, motion)[-1]
    assert q[2] == stop
    gravity = Dynamics.from_model(MODEL).inverse_dynamics(q, np.zeros(3), np.zeros(3))
    taken = gravity + actuators.offset
    np.testing.assert_allclose((actuators.kp * (reference - q))[:2], taken[:2], atol=1e-3)
    assert actuators.kp[2] * (reference[2] - stop) > 5.0 + taken[2]


def test_references_beyond_their_range_have_the_effect_of_its_ends():
    motion = record(duration=3.0, noise=0.0)
    lower, upper = np.array([-0.1, -np.inf, -0.05]), np.array([np.inf, 0.08, 0.1])
    assert (motion.reference < lower).any()
    assert (motion.reference > upper).any()
    ranged = replace(TRUTH, lower_reference=lower, upper_reference=upper)
    expected = simulate_commands(MODEL, TRUTH, motion.within(lower, upper))
    np.testing.assert_allclose(simulate_commands(MODEL, ranged, motion), expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    "actuators",
    [TRUTH, limited(), ended(), loaded(), elastic(), loaded(elastic(ended()))],
    ids=["free", "limited", "ended", "loaded", "elastic", "all"],
)
def test_derivatives_equal_finite_differences(actuators):
    motion = record(duration=3.0, noise=0.0)
    q0, v0 = motion.q[0], np.array([0.1, -0.2, 0.3])
    known = np.isfinite(actuators.values)
    known[BREAKAWAY] = actuators.breakaway_displacement > 0.0
    columns = np.flatnonzero(known)
    q, rollout = LIMB.simulate(actuators, motion, q0, v0)
    if np.isfinite(actuators.limit).all():
        assert (rollout.limited > 0.01).all()
    slopes = rollout.differentiate(columns)
    for place, column in enumerate(columns):
        values, kind, step = actuators.values, column // 3, 1e-7
        values[kind, column % 3] += step
        if kind == DELAY:
            assert values[kind, column % 3] < 0.0125  # within one step of the simulation
        other = ActuatorModel.from_values(actuators.joint_names, values)
        difference = (LIMB.simulate(other, motion, q0, v0)[0] - q) / step
        scale = np.abs(slopes[:, :, place]).max()
        assert scale > 0.0, KINDS[kind]
        assert np.abs(difference - slopes[:, :, place]).max() < 5e-4 * scale, KINDS[kind]
    presliding = actuators.breakaway_displacement.any()
    assert slopes.shape[2] == len(columns) + (9 if presliding else 6)
    for place in range(slopes.shape[2] - len(columns)):
        change = 1e-7 * np.eye(9)[place]
        moved = LIMB.simulate(actuators, motion, q0 + change[:3], v0 + change[3:6], change[6:])[0]
        slope = slopes[:, :, len(columns) + place]  # two joints reverse in one step
        assert np.abs((moved - q) / 1e-7 - slope).max() < max(5e-3 * np.abs(slope).max(), 1e-6)


def test_derivatives_without_reversals_equal_finite_differences_to_rounding():
    motion = record(truth=replace(TRUTH, coulomb=np.zeros(3)), duration=3.0, noise=0.0)
    actuators = replace(TRUTH, coulomb=np.zeros(3))
    columns = np.arange(3 * LIMIT)
    columns = columns[~np.isin(columns // 3, (COULOMB, LOAD_COULOMB, BREAKAWAY))]
    q, rollout = LIMB.simulate(actuators, motion)
    slopes = rollout.differentiate(columns)
    for place, column in enumerate(columns):
        values = actuators.values
        values[column // 3, column % 3] += 1e-6
        other = ActuatorModel.from_values(actuators.joint_names, values)
        difference = (LIMB.simulate(other, motion)[0] - q) / 1e-6
        scale = np.abs(slopes[:, :, place]).max()
        assert np.abs(difference - slopes[:, :, place]).max() < 2e-5 * scale, KINDS[column // 3]


def test_a_delay_of_whole_samples_is_the_reference_of_earlier_samples():
    motion = record(duration=2.0, noise=0.0, rate=100.0)
    held = motion.held[1]
    shifted = held[len(held) - len(motion.t) - 3 : -3]
    late = replace(TRUTH, delay=np.full(3, 0.03))
    now = replace(TRUTH, delay=np.zeros(3))
    np.testing.assert_allclose(
        simulate_commands(MODEL, late, motion),
        simulate_commands(MODEL, now, replace(motion, reference=shifted)),
        atol=1e-9,
    )


def test_limbs_of_a_fixed_base_do_not_act_on_each_other():
    model = RobotModel.from_urdf(FORK)
    limbs = split_into_limbs(model)
    assert [limb.joint_names for limb in limbs] == [("left_joint",), ("right_joint",)]
    assert [limb.joint_names for limb in split_into_limbs(MODEL)] == [MODEL.joint_names]
    assert len(split_into_limbs(RobotModel.from_urdf(GRIPPER))) == 1


def test_prismatic_joints_lift_their_weight():
    model = RobotModel.from_urdf(LIFT)
    one = np.ones(2)
    actuators = ActuatorModel(
        model.joint_names, 0.1 * one, one, 0.0 * one, 0.0 * one, 0.0 * one, 2e3 * one, 1e2 * one, np.inf * one
    )
    t = np.arange(0.0, 4.0, 0.01)
    hold = CommandedMotion("hold", model.joint_names, t, np.zeros((len(t), 2)), np.zeros((len(t), 2)))
    q = simulate_commands(model, actuators, hold)[-1]
    weight = Dynamics.from_model(model).inverse_dynamics(q, 0.0 * one, 0.0 * one)
    np.testing.assert_allclose(-2e3 * q, weight, atol=1e-2)


def test_a_simulation_that_diverges_names_the_joints_and_what_to_check():
    motion = record(duration=2.0)
    unstable = replace(TRUTH, delay=np.full(3, 0.0), kp=np.full(3, 1e12), kd=np.zeros(3), limit=np.full(3, 1e15))
    with pytest.raises(InputError, match=r"run 0: the simulation of shoulder, elbow, wrist .* has diverged"):
        LIMB.simulate(unstable, motion, motion.q[0], np.full(3, 1e7))
