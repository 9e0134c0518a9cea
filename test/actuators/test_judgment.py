# SPDX-License-Identifier: Apache-2.0
"""Findings about identified actuators, each from data that give it."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record
from support.robots import joint, urdf

from robot_dyn_id.actuators.identification import KnownDrives, identify
from robot_dyn_id.actuators.judgment import judge
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.order import find_reference_order
from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.actuators.validation import validate
from robot_dyn_id.model.robot import RobotModel

DATA = os.environ.get("ROBOT_DYN_ID_DATA")

KNOWN = KnownDrives(TRUTH.kp, TRUTH.kd, np.full(3, np.inf))


@pytest.fixture(scope="module")
def estimate():
    return identify(MODEL, [record(duration=5.0, rate=50.0)], KNOWN)


def codes(estimate, drives=KNOWN, held_out=None):
    return {finding.code: finding for finding in judge(estimate, drives, held_out)}


def simulated(estimate, truth):
    return validate(MODEL, estimate.actuators, [record(truth=truth, seed=3, duration=5.0, rate=50.0)])


def test_other_recordings_of_the_same_robot_find_nothing(estimate):
    found = codes(estimate, held_out=simulated(estimate, TRUTH))
    assert set(found) == {"actuator_one_temperature"}


def test_a_wrong_gain_is_found_by_simulations(estimate):
    wrong = replace(TRUTH, kp=TRUTH.kp * np.array([1.0, 1.0, 0.3]))
    found = codes(estimate, held_out=simulated(estimate, wrong))
    assert found["actuator_joint_error"].joints == ("wrist",)
    assert "wrist" in found["actuator_joint_error"].message


def test_models_that_are_worse_than_drives_and_links_alone_are_bad(estimate):
    ideal = replace(TRUTH, **dict.fromkeys(("armature", "viscous", "coulomb", "offset", "delay"), np.zeros(3)))
    found = codes(estimate, held_out=simulated(estimate, ideal))
    assert found["actuator_simulation_bad"].severity == "error"


@pytest.mark.slow
def test_commands_of_other_joints_explain_no_effort():
    """They are exchanged in training and validation alike."""
    motions = [record(seed=seed, duration=5.0, rate=50.0) for seed in (0, 3)]
    training, other = (replace(one, reference=one.reference[:, [0, 2, 1]]) for one in motions)
    fit = identify(MODEL, [training], KNOWN)
    found = codes(fit, held_out=validate(MODEL, fit.actuators, [other]))["actuator_effort_unexplained"]
    assert found.severity == "error" and found.joints == (MODEL.joint_names[1],)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 1.25, 2.0])
def test_gains_of_another_scale_than_the_masses_are_named(factor):
    """A quarter may be an error of the masses."""
    drives = KnownDrives(factor * TRUTH.kp, factor * TRUTH.kd, KNOWN.limit)
    estimate = identify(MODEL, [record(duration=5.0, rate=50.0)], drives)
    low, high = estimate.links.scale
    assert low < factor < high or max(low / factor, factor / high) < 1.05
    assert ("actuator_gains_scaled" in codes(estimate, drives)) == (factor != 1.25)


def test_gains_that_are_not_known_have_no_scale():
    hidden = np.full(3, np.nan)
    estimate = identify(MODEL, [record(duration=5.0, rate=50.0)], KnownDrives(hidden, hidden, KNOWN.limit))
    assert np.isnan(estimate.links.scale).all()


def test_inertia_about_a_vertical_axis_has_no_scale():
    """It has the effect of armature."""
    model = RobotModel.from_urdf(urdf(joint("turn", "base", "l1", rpy="0 0 0"), links=1))
    truth = ActuatorModel.from_values(model.joint_names, TRUTH.values[:, :1])
    motion = record(model, truth, duration=5.0, rate=50.0)
    estimate = identify(model, [motion], KnownDrives(2.0 * truth.kp, 2.0 * truth.kd, truth.limit))
    assert np.isnan(estimate.links.scale).all()


def test_offsets_that_no_weight_explains_are_named(estimate):
    assert "actuator_offset_large" not in codes(estimate)
    pushed = replace(estimate.actuators, offset=estimate.actuators.offset + np.array([0.0, 60.0, 0.0]))
    found = codes(replace(estimate, actuators=pushed))["actuator_offset_large"]
    assert (found.severity, found.joints) == ("warning", (MODEL.joint_names[1],))


@pytest.mark.slow
def test_a_fit_that_misses_its_own_recording_is_bad_without_another_one():
    """With the true gain the data need more effort than this limit allows."""
    weak = replace(KNOWN, limit=np.array([np.inf, 2.0, np.inf]))
    fit = identify(MODEL, [record(duration=5.0, rate=50.0)], weak)
    assert np.linalg.norm(fit.errors) > 0.3 * np.linalg.norm(fit.tracking)
    assert "actuator_simulation_bad" in {finding.code for finding in judge(fit, weak, None)}


def test_nothing_held_out_is_a_warning(estimate):
    assert codes(estimate)["actuator_not_validated"].severity == "warning"


@pytest.mark.slow
def test_slow_motion_does_not_determine_the_delay_and_the_message_names_the_motion_that_does():
    slow = record(noise=2e-3, duration=6.0, rate=50.0, fastest=0.3, amplitude=0.1)
    found = judge(identify(MODEL, [slow], KNOWN), KNOWN, None)
    poor = [finding for finding in found if finding.code == "actuator_poorly_determined"]
    delay = next(finding for finding in poor if finding.message.startswith("delay"))
    assert "wrist" in delay.joints
    assert delay.action == "record fast changes of the reference, such as steps"


def test_motion_in_one_direction_does_not_separate_friction_from_offset():
    t = np.arange(0.0, 4.0, 0.02)
    reference = 0.1 + np.outer(t**1.2, [0.2, 0.15, 0.25])
    start = CommandedMotion("one way", MODEL.joint_names, t, reference, reference)
    q = simulate_commands(MODEL, TRUTH, start) + 1e-4 * np.random.default_rng(0).normal(size=reference.shape)
    motion = replace(start, q=q).part(50, len(t))
    found = judge(identify(MODEL, [motion], KNOWN), KNOWN, None)
    confounded = [finding for finding in found if finding.code == "actuator_confounded"]
    assert any("coulomb and offset" in finding.message for finding in confounded)


def test_types_whose_values_differ_are_named(estimate):
    typed = identify(MODEL, [record(duration=5.0, rate=50.0)], KNOWN, [("shoulder", "wrist")])
    differ = [finding for finding in judge(typed, KNOWN, None) if finding.code == "actuator_types_differ"]
    assert any(finding.message.startswith("armature of shoulder, wrist") for finding in differ)


@pytest.mark.skipif(DATA is None, reason="ROBOT_DYN_ID_DATA, the folder of measured data, is not set")
def test_references_of_exchanged_legs_are_named_and_those_of_a_measured_robot_are_its_own():
    """Two legs of this robot have the same references of thigh and calf: only the hips differ."""
    folder, legs = Path(str(DATA)) / "unitree_go2", np.arange(12).reshape(4, 3)
    own, exchanged = tuple(range(12)), [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]
    for run in range(8):
        with np.load(folder / f"run_{run}.npz") as stored:
            motion = CommandedMotion("legs", tuple(map(str, own)), *(stored[key] for key in ("t", "q", "reference")))
        assert find_reference_order([motion]) == own
        found = find_reference_order([replace(motion, reference=motion.reference[:, exchanged])])
        assert found == tuple(exchanged[j] if j in legs[:, 0] else j for j in own)


def test_drives_that_follow_badly_follow_their_own_references():
    """Distances of the arm from its references are as large as the motion."""
    for seed in range(6):
        assert find_reference_order([record(seed=seed, duration=5.0, rate=50.0)]) == (0, 1, 2)


def follow(seed, sizes, late, order):
    """Motion of joints that follow references in an order, some of them badly: by another phase."""
    t = np.arange(0.0, 20.0, 0.01)
    phases = np.random.default_rng(seed).uniform(0.0, 6.0, len(sizes))
    turns = np.array([1.0, 1.7, 2.3, 3.1])[: len(sizes), None] * t + phases[:, None]
    reference, q = np.array(sizes)[:, None] * np.sin([turns, turns - np.array(late)[:, None]])
    return CommandedMotion("arm", tuple("abcd"[: len(sizes)]), t, q.T, reference[order].T)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("sizes", "late"),
    [
        ([0.5, 0.5, 0.5, 0.5], [0.1, 0.1, 1.5, 1.5]),  # the others follow badly
        ([0.01, 0.01, 1.0, 1.0], [0.1, 0.1, 1.5, 1.5]),  # and move farther, such as in another unit
    ],
)
def test_joints_that_are_exchanged_are_named_and_no_others(seed, sizes, late):
    assert find_reference_order([follow(seed, sizes, late, [1, 0, 2, 3])]) == (1, 0, 2, 3)
    assert find_reference_order([follow(seed, sizes, late, [0, 1, 2, 3])]) == (0, 1, 2, 3)


def test_references_of_other_joints_are_named(estimate):
    found = codes(replace(estimate, order=(0, 2, 1)))["actuator_references_exchanged"]
    assert found.severity == "error" and found.joints == MODEL.joint_names[1:]
