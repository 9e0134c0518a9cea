# SPDX-License-Identifier: Apache-2.0
"""Gravity calibration from poses held after an approach from both sides."""

from dataclasses import replace

import numpy as np
import pytest
from support.low_cost_arm import LowCostArm
from support.robots import robot
from support.simulated import ARM

from robot_dyn_id.errors import InputError
from robot_dyn_id.loads.gravity import KnownWeight, calibrate_gravity, report_calibration
from robot_dyn_id.loads.holds import find_holds
from robot_dyn_id.model.robot import RobotModel

SMALL = RobotModel.from_urdf(ARM)

TEST_POSES = 200


def calibrated(arm, recording=None, **options):
    holds = find_holds([recording or arm.record()], arm.model.joint_names)
    return calibrate_gravity(arm.model, holds, **options)


def relative_errors(arm, found):
    limits, rng = arm.model.limits, np.random.default_rng(7)
    q = rng.uniform(limits.lower, limits.upper, (TEST_POSES, len(limits.lower))).T
    true = arm.effort(q)
    return np.sqrt(((found.effort(arm.model, q) - true) ** 2).mean(axis=1) / (true**2).mean(axis=1))


def scores(arm, found):
    """Errors of inverse gains and masses in their standard deviations."""
    weight = found.carries_weight
    gains = (found.inverse_gains - 1.0 / arm.gains)[weight] / found.inverse_gain_deviations[weight]
    return np.concatenate([gains, ((found.bodies - arm.bodies) / found.body_deviations).ravel()])


def test_gravity_of_a_low_cost_arm_within_five_percent():
    arm = LowCostArm(robot("so101"), seed=3)
    found = calibrated(arm)
    assert found.carries_weight.all()
    assert relative_errors(arm, found).max() < 0.05
    assert {finding.code for finding in report_calibration(arm.model, found)} == {"gravity_scale_unknown"}


@pytest.mark.parametrize("seed", range(3))
def test_gains_masses_and_friction_within_their_uncertainty(seed):
    arm = LowCostArm(SMALL, seed=seed, same_total=True, backlash=0.0)
    found = calibrated(arm, trust_mass=True)
    assert np.abs(scores(arm, found)).max() < 4.0
    weight = found.carries_weight
    np.testing.assert_allclose((found.friction * arm.gains)[weight], arm.friction[weight], rtol=0.05)
    assert found.has_scale


@pytest.mark.parametrize("seed", range(3))
def test_known_weight_fixes_the_scale(seed):
    arm = LowCostArm(SMALL, seed=seed, backlash=0.0)
    link, mass, center = SMALL.body_names[-1], 0.8, np.array([0.05, 0.0, 0.1])
    link = _child(link)
    loaded = KnownWeight.at_link(SMALL, find_holds([arm.record()], SMALL.joint_names), mass, link, center)
    heavy = find_holds([arm.record(added=loaded.added)], SMALL.joint_names)
    found = calibrated(arm, known=KnownWeight(heavy, loaded.added))
    assert np.abs(scores(arm, found)).max() < 4.0
    assert found.has_scale
    np.testing.assert_allclose(found.bodies[:, 0].sum(), arm.bodies[:, 0].sum(), rtol=0.2)


def _child(joint):
    from xml.etree import ElementTree

    element = next(e for e in ElementTree.fromstring(ARM).iter("joint") if e.get("name") == joint)
    return element.find("child").get("link")


def test_scale_is_not_claimed_without_one():
    found = calibrated(LowCostArm(SMALL))
    assert not found.has_scale


def test_joint_with_a_vertical_axis_is_named():
    upright = RobotModel.from_urdf(ARM, gravity=(0.0, 0.0, -9.81))
    vertical = np.abs(LowCostArm(upright).effort(np.random.default_rng(0).normal(size=(3, 20)))).max(axis=1) < 1e-9
    if not vertical.any():
        pytest.skip("no vertical axis")
    found = calibrated(LowCostArm(upright))
    assert (found.carries_weight == ~vertical).all()


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda arm: arm.record(fixed=[1]), "not moved"),
        (lambda arm: arm.record(arm.path(sides=(1.0,))), "one side"),
        (lambda arm: arm.record(arm.path(dwell=0.0)), "no pose is held"),
        (lambda arm: arm.record(arm.path(poses=2)), "poses are held"),
        (lambda arm: arm.record(limit=0.3), "at its limit"),
    ],
)
def test_recordings_that_do_not_determine_gravity_are_refused(wrong, word):
    arm = LowCostArm(SMALL)
    with pytest.raises(InputError, match=word):
        calibrated(arm, wrong(arm))


def test_weight_too_light_for_the_scale_is_refused():
    arm = LowCostArm(SMALL)
    holds = find_holds([arm.record()], SMALL.joint_names)
    light = KnownWeight.at_link(SMALL, holds, 1e-4, _child(SMALL.body_names[-1]), np.zeros(3))
    with pytest.raises(InputError, match="known weight"):
        calibrated(arm, known=light)


@pytest.fixture(scope="module")
def weighed():
    """Poses of an arm without and with a weight of 0.8 kg, and the weight as it is known."""
    arm = LowCostArm(SMALL, seed=1)
    bare = find_holds([arm.record()], SMALL.joint_names)

    def known(holds=bare, mass=0.8, center=(0.05, 0.0, 0.1)):
        return KnownWeight.at_link(SMALL, holds, mass, _child(SMALL.body_names[-1]), np.array(center))

    return bare, find_holds([arm.record(added=known().added)], SMALL.joint_names), known


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda bare, heavy, known: (bare, known(bare)), "given twice"),
        (lambda bare, heavy, known: (bare, known(replace(bare, drive=1.000001 * bare.drive))), "does not explain"),
        (lambda bare, heavy, known: (heavy, known(bare)), "does not explain"),
        (lambda bare, heavy, known: (bare, known(heavy, mass=8.0)), "does not explain|times as heavy"),
        (lambda bare, heavy, known: (bare, known(heavy, mass=0.08)), "does not explain|times as heavy"),
        (lambda bare, heavy, known: (bare, known(heavy, center=(0.0, 0.0, 0.0))), "does not explain"),
    ],
    ids=["same recording", "same poses without the weight", "swapped", "ten times", "a tenth", "no center"],
)
def test_known_weight_that_contradicts_the_poses_is_refused(weighed, wrong, word):
    bare, known = wrong(*weighed)
    with pytest.raises(InputError, match=word):
        calibrate_gravity(SMALL, bare, known)


def test_contact_shows_as_a_residual():
    arm = LowCostArm(SMALL)
    recording = arm.record()
    tau = recording.samples.tau.copy()
    tau[len(tau) // 2 : 3 * len(tau) // 4] += 0.5 * np.abs(tau).max(axis=0)
    touched = replace(recording, samples=replace(recording.samples, tau=tau))
    codes = [finding.code for finding in report_calibration(SMALL, calibrated(arm, touched))]
    assert "gravity_residual_large" in codes
