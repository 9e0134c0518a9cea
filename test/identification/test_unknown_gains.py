# SPDX-License-Identifier: Apache-2.0
"""Currents without a gain: the model is marked wherever it goes, and nothing takes its amperes for torques."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import Simulated, changed, estimator_of

from robot_dyn_id.comparison.models import compare_models
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.design.planning import make_design_task
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.export import FORMATS, export_model
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.prediction.feed_forward import FeedForward
from robot_dyn_id.identification.prediction.prediction import predict_recording
from robot_dyn_id.identification.settings import Settings, store_drives
from robot_dyn_id.loads.identification import PayloadOptions, estimate_payload
from robot_dyn_id.online.momentum_observer import MomentumObserver
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.simulation.controllers import make_usable_dynamics
from robot_dyn_id.uses import USES
from robot_dyn_id.workflow.prediction import predict
from robot_dyn_id.workflow.results import make_dynamics


@pytest.fixture(scope="module")
def currents():
    recording = Simulated().record(duration=20.0, noise=0.02)
    current = recording.samples.tau / [12.0, -30.0, 8.0]
    current[:, 2] = np.random.default_rng(0).normal(size=len(current))  # nothing shows the gain of the wrist
    return changed(recording, current=current, tau=None)


@pytest.fixture(scope="module")
def identified(currents):
    settings = Settings(cutoff=5.0, estimator=estimator_of("weighted"))
    return identify([currents], [], Simulated().model, settings, "test")


@pytest.mark.slow
def test_every_use_is_refused_with_the_reason(identified):
    (finding,) = [one for one in identified.findings if one.code == "gain_unknown"]
    assert (finding.severity, finding.joints) == ("error", ("wrist",))
    assert identified.evaluation.verdict.word == "bad"
    assert [one.fit.use for one in identified.evaluation.uses] == list(USES)
    for one in identified.evaluation.uses:
        assert one.fit.answer == "no" and "gain_unknown" in one.fit.because and "gain_unknown" in one.reason


def test_amperes_are_not_written_as_torques(identified):
    parameters = identified.parameters
    assert [joint.unit for joint in identified.evaluation.held_out.joints] == ["N m", "N m", "A"]
    units = dict(zip(parameters.base.names, parameters.base.units, strict=True))
    wrist = {name: unit for name, unit in units.items() if name.endswith("3")}
    assert wrist and all(unit.startswith("A") for unit in wrist.values())
    assert {unit for name, unit in units.items() if name not in wrist} >= {"kg m^2", "N m", "N m s"}


def test_the_mark_survives_a_file(identified, tmp_path):
    write_parameters(tmp_path / "parameters.yaml", identified.parameters)
    stored = read_parameters(tmp_path / "parameters.yaml")
    assert stored.unknown_gains == identified.parameters.unknown_gains == ("wrist",)
    assert stored.effort.drive_gains[2] == 0.0 and (stored.effort.drive_gains[:2] > 0.0).all()
    header = (tmp_path / "parameters.yaml").read_text().split("\nformat_version")[0]
    assert "NOT A TORQUE MODEL: the drive gain of wrist" in header
    with pytest.warns(UserWarning, match="drive gain of wrist"):
        dynamics = make_dynamics(stored)
    assert dynamics.effort_units == ("N m", "N m", "A")


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_carries_amperes(identified, name):
    with pytest.raises(InputError, match="drive gain of wrist"):
        export_model(name, identified.parameters, allow_bad_verdict=True)


def test_nothing_computes_torques_from_amperes(identified, currents):
    parameters = identified.parameters
    for use in (
        lambda: FeedForward.from_parameters(parameters, ("none",)),
        lambda: MomentumObserver(parameters),
        lambda: estimate_payload([currents], parameters, "tool", Settings(), PayloadOptions()),
        lambda: make_usable_dynamics(
            parameters, parameters.robot.urdf, parameters.robot.joint_names, needs_mass_matrix=False
        ),
        lambda: make_design_task(DesignSettings(clearance=0.0), Simulated().model, Simulated().regressor, parameters),
    ):
        with pytest.raises(InputError, match="drive gain of wrist"):
            use()


def test_a_predicted_current_keeps_its_unit(identified, currents, tmp_path):
    prediction = predict(identified.parameters, currents)
    assert prediction.units == ("N m", "N m", "A")
    assert ("gain_unknown", "warning") in {(one.code, one.severity) for one in prediction.findings}
    prediction.save(tmp_path / "predicted.npz")
    assert np.load(tmp_path / "predicted.npz")["units"].tolist() == ["N m", "N m", "A"]


def test_validation_reports_it_and_refuses_a_gain_that_comes_late(identified, currents):
    evaluation = validate([currents], identified.parameters, Settings())
    assert evaluation.verdict.word == "bad" and "gain_unknown" in {one.code for one in evaluation.findings}
    with pytest.raises(InputError, match="identify again"):
        validate([currents], identified.parameters, Settings(drives={"wrist": Drive(8.0)}))


@pytest.mark.slow
def test_torques_and_amperes_are_not_compared(identified, currents):
    settings = Settings(cutoff=5.0, estimator=estimator_of("weighted"), drives={"wrist": Drive(8.0)})
    known = identify([currents], [], Simulated().model, settings, "test").parameters
    assert known.unknown_gains == ()
    comparison = compare_models(known, identified.parameters)
    assert comparison.torque is None
    assert not [name for name in comparison.names if name.endswith("3")]


def test_a_negative_gain_is_its_amount_with_the_opposite_sign():
    drives = {"elbow": Drive(-8.7), "wrist": Drive(-2.0, sign=-1)}
    gains, signs, _ = store_drives(drives, ("lift", "elbow", "wrist"))
    assert gains.tolist() == [0.0, 8.7, 2.0] and signs.tolist() == [1.0, -1.0, 1.0]


@pytest.mark.slow
def test_currents_in_the_channel_of_torques_are_recognized_where_their_gains_differ():
    """No torques of the robot explain them: a model of currents is made, and its verdict is bad."""
    robot = Simulated()
    recordings = [robot.record(seed=seed, duration=30.0, noise=0.02) for seed in (1, 2)]
    gains = np.array([0.2, 3.0, 0.6])
    currents = [changed(one, tau=one.samples.tau / gains) for one in recordings]
    found = identify(currents[:1], currents[1:], robot.model, Settings(), "test")
    codes = {one.code for one in found.evaluation.findings}
    assert {"effort_in_amperes", "relative_gains", "gain_unknown"} <= codes
    assert found.parameters.judgment.verdict == "bad" and found.parameters.unknown_gains == robot.joints
    ratios = np.log(found.parameters.effort.relative_gains) - np.log(gains)
    np.testing.assert_allclose(ratios - ratios.mean(), 0.0, atol=0.15)
    predicted = predict_recording(recordings[1], found.parameters)[1]
    usable = np.isfinite(predicted).all(axis=1)
    error = (predicted - recordings[1].samples.tau / gains)[usable]
    assert (np.sqrt((error**2).mean(axis=0)) < 0.15 * recordings[1].samples.tau.std(axis=0) / gains).all()


@pytest.mark.slow
def test_gains_are_found_again_with_a_tilt_of_the_base():
    """Gains that were found without the tilt compensate a part of it, and are wrong by up to 20 %."""
    tilt = np.radians(8.0)
    robot = Simulated(gravity=(9.81 * np.sin(tilt), 0.0, -9.81 * np.cos(tilt)))
    gains = np.array([0.2, 3.0, 0.6])
    recordings = [robot.record(seed=seed, duration=30.0, noise=0.02) for seed in (3, 4)]
    currents = [changed(one, tau=one.samples.tau / gains) for one in recordings]
    found = identify(currents[:1], currents[1:], Simulated().model, Settings(), "test")
    ratios = np.log(found.parameters.effort.relative_gains) - np.log(gains)
    np.testing.assert_allclose(ratios - ratios.mean(), 0.0, atol=0.03)
    assert sum(one.code == "relative_gains" for one in found.evaluation.findings) > 1


@pytest.mark.slow
def test_other_gains_follow_from_a_measured_one():
    robot = Simulated()
    gains = np.array([0.2, 3.0, 0.6])
    recordings = [robot.record(seed=seed, duration=30.0, noise=0.02) for seed in (1, 2)]
    currents = [changed(one, current=one.samples.tau / gains, tau=None) for one in recordings]
    model = replace(robot.model, inertial_parameters=np.zeros_like(robot.model.inertial_parameters))
    measured = Settings(drives={robot.joints[1]: Drive(3.0)})
    found = identify(currents[:1], currents[1:], model, measured, "test")
    assert found.parameters.unknown_gains == ()
    np.testing.assert_allclose(found.parameters.effort.drive_gains, gains, rtol=0.15)
    assert found.parameters.effort.drive_gains[1] == 3.0
    (finding,) = [one for one in found.findings if one.code == "relative_gains" and "follow from" in one.message]
    assert finding.severity == "warning" and robot.joints[1] in finding.message
    torque = recordings[1].samples.tau
    predicted = predict_recording(recordings[1], found.parameters)[1]
    usable = np.isfinite(predicted).all(axis=1)
    assert (np.sqrt(((predicted - torque)[usable] ** 2).mean(axis=0)) < 0.2 * torque.std(axis=0)).all()
