# SPDX-License-Identifier: Apache-2.0
"""Gains from currents and the URDF's masses: as exact as these are, and reported as unknown where nothing is carried."""

from dataclasses import replace

import numpy as np
import pytest
from support.observations import corrected, samples_of
from support.simulated import Simulated, changed

from robot_dyn_id.data.corrected import ReadAsCurrent
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.identification.diagnosis.observation import observe_recordings
from robot_dyn_id.identification.diagnosis.samples import MotionSamples
from robot_dyn_id.identification.diagnosis.weight_gains import estimate_weight_gains
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.relative_gains import RelativeGains, estimate_relative_gains
from robot_dyn_id.identification.settings import EFFORT_KINDS, Settings
from robot_dyn_id.identification.stages.effort_meaning import interpret_efforts, read_as_trained
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.trials import FilteredTrials

GAINS = np.array([12.0, -30.0, 8.0])


def meaning_of(recordings, model, settings):
    return interpret_efforts(observe_recordings(recordings, model, settings.drives, False), [], model, settings)


def currents_of(recording, model):
    """Samples whose efforts are the currents."""
    settings = Settings()
    observed = read_as_trained(observe_recordings([recording], model, {}, False), "current")
    unit = dict.fromkeys(model.joint_names, Drive.from_unknown_gain(1.0))
    trials = FilteredTrials.from_recordings(observed, model.joint_names, unit, settings.signals)
    return MotionSamples.from_trials(trials)


@pytest.fixture(scope="module")
def robot():
    exact = Simulated()
    exact.parameters[:30] = exact.model.inertial_parameters
    return exact


@pytest.fixture(scope="module")
def currents(robot):
    recording = robot.record(duration=30.0, noise=0.02)
    return changed(recording, current=recording.samples.tau / GAINS, tau=None)


@pytest.mark.slow
def test_gains_are_those_of_the_drives(robot, currents):
    meaning = meaning_of([currents], robot.model, Settings())
    for name, gain in zip(robot.joints, GAINS, strict=True):
        drive = meaning.drives[name]
        assert drive.gain * drive.sign == pytest.approx(gain, rel=0.05)
    assert [one.code for one in meaning.findings] == ["gains_from_masses"]


@pytest.mark.slow
def test_configured_gains_are_kept(robot, currents):
    settings = Settings(drives={"elbow": Drive(29.0, -1.0)})
    meaning = meaning_of([currents], robot.model, settings)
    assert meaning.drives["elbow"] == Drive(29.0, -1.0)
    assert meaning.drives["shoulder"].gain == pytest.approx(12.0, rel=0.05)


@pytest.mark.slow
def test_a_stated_gain_is_used_and_the_masses_contradict_it(robot, currents):
    """It is a sixth of the true one: the other gains follow from it, and the weight of all bodies is a sixth, too."""
    settings = Settings(drives={"elbow": Drive(5.0, -1.0)})
    meaning = meaning_of([currents], robot.model, settings)
    assert meaning.model.effort_units == ("N m", "N m", "N m")
    assert [(one.code, one.severity) for one in meaning.findings] == [
        ("gains_from_masses", "info"),
        ("relative_gains", "warning"),
    ]
    assert [meaning.drives[name].gain for name in robot.joints] == pytest.approx([2.0, 5.0, 8.0 / 6.0], rel=0.02)
    found = identify([currents], [], robot.model, settings, "test")
    assert found.evaluation.verdict.word == "bad"
    assert "urdf_contradicted" in {one.code for one in found.evaluation.findings if one.severity == "error"}


@pytest.mark.slow
def test_a_gain_that_the_motion_does_not_show_is_not_related(robot):
    """The last link has hardly any inertia: its drive overcomes friction alone, and any gain explains its current."""
    bodies = np.concatenate([robot.model.inertial_parameters[:20], 1e-4 * robot.model.inertial_parameters[20:]])
    light = Simulated()
    light.model, light.parameters[:30] = replace(robot.model, inertial_parameters=bodies), bodies
    recording = light.record(duration=30.0, noise=0.02)
    measured = changed(recording, current=recording.samples.tau / np.abs(GAINS), tau=None)
    observed = read_as_trained(observe_recordings([measured], robot.model, {}, False), "current")
    unit = dict.fromkeys(robot.joints, Drive.from_unknown_gain(1.0))
    trials = FilteredTrials.from_recordings(observed, robot.joints, unit, Settings().signals)
    bare = replace(robot.model, inertial_parameters=np.zeros(30))
    found = estimate_relative_gains(trials, bare)
    assert list(found.values) == ["shoulder", "elbow"]
    assert found.values["elbow"] / found.values["shoulder"] == pytest.approx(abs(GAINS[1] / GAINS[0]), rel=0.05)


@pytest.mark.slow
def test_efforts_are_currents_where_that_is_stated(robot, currents):
    stated = changed(currents, tau=currents.samples.current, current=None)
    assert meaning_of([stated], robot.model, Settings()).findings == ()
    meaning = meaning_of([stated], robot.model, Settings(effort_kind="current"))
    assert meaning.drives["wrist"].gain == pytest.approx(8.0, rel=0.05)


@pytest.mark.slow
def test_a_joint_that_carries_nothing_has_no_gain(robot, currents):
    noise = np.random.default_rng(0).normal(size=len(currents.samples))
    current = currents.samples.current.copy()
    current[:, 2] = noise
    meaning = meaning_of([changed(currents, current=current)], robot.model, Settings())
    assert meaning.drives["wrist"] == Drive.from_unknown_gain(1.0)
    assert [(one.code, one.joints) for one in meaning.findings][1] == ("gain_unknown", ("wrist",))
    assert meaning.model.effort_units == ("N m", "N m", "A")


@pytest.mark.slow
def test_currents_of_a_robot_without_masses_stay_currents(robot, currents):
    bare = replace(robot.model, inertial_parameters=np.zeros(30))
    meaning = meaning_of([currents], bare, Settings(effort_kind="current"))
    assert meaning.model.effort_units == ("rel. A", "rel. A", "rel. A")
    assert [one.code for one in meaning.findings][-1] == "gain_unknown"


@pytest.mark.slow
def test_the_motion_shows_gains_relative_to_one_another(robot, currents):
    """Without masses, and with none that are right: only the factor that is common to all stays unknown."""
    bare = replace(robot.model, inertial_parameters=np.zeros(30))
    measured = changed(currents, current=currents.samples.current * np.sign(GAINS))
    meaning = meaning_of([measured], bare, Settings())
    found = np.log([meaning.drives[name].gain for name in robot.joints])
    true = np.log(np.abs(GAINS))
    np.testing.assert_allclose(found - found.mean(), true - true.mean(), atol=0.1)
    assert all(not meaning.drives[name].is_known for name in robot.joints)
    assert [one.code for one in meaning.findings] == ["relative_gains", "gain_unknown"]
    (row,) = meaning.tried
    assert row.chosen and row.gain > row.required


@pytest.mark.slow
def test_a_joint_without_efforts_does_not_hide_the_gains_of_the_others(robot, currents):
    bare = replace(robot.model, inertial_parameters=np.zeros(30))
    dead = np.where([True, True, False], currents.samples.current * np.sign(GAINS), 0.37)
    meaning = meaning_of([changed(currents, current=dead)], bare, Settings())
    found = [meaning.drives[name].gain for name in robot.joints[:2]]
    assert found[1] / found[0] == pytest.approx(abs(GAINS[1] / GAINS[0]), rel=0.05)


@pytest.mark.slow
def test_masses_that_are_wrong_by_different_factors_give_the_mean_gain_alone(robot, currents):
    factors = np.repeat([0.5, 1.0, 2.0], 10)
    wrong = replace(robot.model, inertial_parameters=factors * robot.model.inertial_parameters)
    meaning = meaning_of([currents], wrong, Settings())
    ratios = np.log([abs(meaning.drives[name].gain) for name in robot.joints]) - np.log(np.abs(GAINS))
    assert np.ptp(ratios) < 0.1 and np.abs(ratios).max() < np.log(2.0)
    assert [one.code for one in meaning.findings] == ["relative_gains", "gains_from_masses"]


@pytest.mark.slow
def test_the_sign_of_a_gain_is_that_which_all_joints_agree_on(robot, currents):
    """The center of mass of the last link is on the wrong side in the URDF: by its weight alone its drive is reversed."""
    bodies = robot.model.inertial_parameters.copy()
    bodies[21:24] *= -0.5
    wrong = replace(robot.model, inertial_parameters=bodies)
    measured = changed(currents, current=currents.samples.current * np.sign(GAINS))
    assert estimate_weight_gains(currents_of(measured, wrong), wrong)[2].value < 0.0
    meaning = meaning_of([measured], wrong, Settings())
    found = [meaning.drives[name].gain * meaning.drives[name].sign for name in robot.joints]
    ratios = np.array(found) / np.abs(GAINS)
    assert (ratios > 0.5).all() and np.ptp(ratios) < 0.05


def test_intervals_cover_masses_that_are_wrong_by_up_to_two(robot):
    """A counterweight nearly cancels the weight of the last link: small errors of both are large ones of the gain."""
    bodies = robot.model.inertial_parameters.reshape(3, 10).copy()
    bodies[1, 1:4] = -1.1 * bodies[2, 0] * robot.model.translation[2]
    balanced = Simulated()
    balanced.model = replace(robot.model, inertial_parameters=bodies.ravel())
    balanced.parameters[:30] = bodies.ravel()
    recording = balanced.record(duration=30.0, noise=0.02)
    measured = changed(recording, current=recording.samples.tau / GAINS, tau=None)
    trials = currents_of(measured, balanced.model)
    rng = np.random.default_rng(0)
    covered, wide = [], []
    for factors in np.exp(np.log(2.0) / 1.96 * rng.normal(size=(40, 3))):
        wrong = replace(balanced.model, inertial_parameters=(factors[:, None] * bodies).ravel())
        for gain, true in zip(estimate_weight_gains(trials, wrong), GAINS, strict=True):
            if gain.known:
                low, high = gain.interval
                covered.append(low <= true <= high)
                wide.append(high > 4.1 * low)
    assert np.mean(covered) > 0.9 and np.mean(wide) > 0.1


def test_external_torques_are_refused(robot, currents):
    with pytest.raises(InputError, match="external"):
        meaning_of([currents], robot.model, Settings(effort_kind="external"))


def test_compensated_efforts_are_read_without_gravity(robot, currents):
    meaning = meaning_of([currents], robot.model, Settings(effort_kind="gravity_compensated"))
    assert not meaning.model.gravity.any()
    assert meaning.effort_kind == "gravity_compensated"


@pytest.mark.slow
def test_the_kind_of_currents_is_stored_and_that_of_assumed_torques_is_unknown(robot, currents):
    torques = robot.record(duration=5.0)
    for recording, kind in ((currents, "current"), (torques, "unknown")):
        assert meaning_of([recording], robot.model, Settings()).effort_kind == kind


def test_kinds_are_checked():
    for kind in EFFORT_KINDS:
        assert Settings(effort_kind=kind).effort_kind == kind
    with pytest.raises(UsageError, match="effort_kind"):
        Settings(effort_kind="volts")


@pytest.mark.slow
def test_currents_alone_give_a_model_in_one_call(robot, currents):
    result = identify([currents], [], robot.model, Settings(cutoff=5.0), "test")
    assert result.evaluation.held_out.all_joints_nrmse < 0.05
    assert "gains_from_masses" in {one.code for one in result.findings}
    again = validate([replace(currents, source="again")], result.parameters, Settings())  # with the gains of the set
    assert again.held_out.all_joints_nrmse < 0.05
    assert "torques_read_as_currents" not in {one.code for one in again.findings}
    torques = replace(robot.record(duration=30.0, noise=0.02), source="torques")
    assert "torques_read_as_currents" in {
        one.code for one in validate([torques], result.parameters, Settings()).findings
    }
    other = validate([currents], result.parameters, Settings(drives={"elbow": Drive(50.0), "wrist": Drive()}))
    assert [joint.nrmse > 0.5 for joint in other.held_out.joints] == [False, True, False]


def test_efforts_become_currents(currents):
    stated = changed(currents, tau=currents.samples.current, current=None)
    view = corrected(stated, ReadAsCurrent())
    chunk = samples_of(view)
    assert chunk.tau is None and not view.effort_is_torque
    np.testing.assert_array_equal(chunk.current, stated.samples.tau)


def test_gains_that_were_not_related_stay_as_they_are(robot):
    """Their unit would be another one than that of the model that was made for them."""
    related, alone = Drive.from_unknown_gain(1.0, 2.0), Drive.from_unknown_gain(-1.0)
    drives = {"shoulder": related, "elbow": related, "wrist": alone}
    read = Read((), (), "range", robot.model, Settings(drives=drives), "current", None, ())
    row = Tried("relative_gains", "gains", 0.1, 0.5, 0.1, 0.2, True)
    gains = RelativeGains({"shoulder": 1.0, "elbow": 4.0, "wrist": 0.25}, dict.fromkeys(drives, 0.1), row)
    found = read.with_gains(gains).settings.drives
    assert (found["shoulder"].gain, found["elbow"].gain) == pytest.approx((1.0, 4.0))
    assert found["wrist"] == alone
    measured = replace(read, settings=Settings(drives={**drives, "elbow": Drive(3.0)}), measured_gains=("elbow",))
    found = measured.with_gains(gains).settings.drives
    assert found["elbow"] == Drive(3.0) and found["shoulder"].gain == pytest.approx(0.5)
