# SPDX-License-Identifier: Apache-2.0
"""The health gate: each check fires on its own fault, and on nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import LIFT, Simulated, changed

from robot_dyn_id.errors import UnsafeDataError, UsageError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.findings import find_definition, list_definitions
from robot_dyn_id.identification.diagnosis.agreement import measure_nominal_agreement
from robot_dyn_id.identification.diagnosis.health import (
    check_motion_content,
    compare_with_nominal,
    examine,
    find_position_units,
    refuse,
)
from robot_dyn_id.identification.settings import check_ignored
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, plan_signals

OVERRULABLE = [one.code for one in list_definitions() if one.overrulable]

ROBOT = Simulated()
FREE = replace(ROBOT.model, limits=replace(ROBOT.model.limits, lower=np.full(3, -np.inf), upper=np.full(3, np.inf)))


@pytest.fixture(scope="module")
def healthy():
    return ROBOT.record(duration=30.0, noise=0.05)


def findings(recording, model=ROBOT.model):
    return examine(survey([recording], recording.joint_names, {}), model)


def scaled(*factors):
    return lambda values: values * factors


def shifted(*amounts):
    return lambda values: values + amounts


def late_velocity(recording):
    return draw_random_fourier(ROBOT.model, 1).evaluate(recording.samples.t - 0.13)[1].T


def loses_rows(share):
    def lose(tau):
        tau[: int(share * len(tau))] = np.nan
        return tau

    return lose


FAULTS = {
    "zero": ({"tau": scaled(1, 0, 1)}, "effort_constant", "warning", ("elbow",)),
    "all zero": ({"tau": scaled(0, 0, 0)}, "effort_constant", "error", ROBOT.joints),
    "constant": (
        {"tau": lambda tau: np.column_stack([tau[:, :2], np.full(len(tau), 2.5)])},
        "effort_constant",
        "warning",
        ("wrist",),
    ),
    "counts": (
        {"tau": lambda tau: np.column_stack([np.round(tau[:, 0]), tau[:, 1:]])},
        "effort_coarse",
        "warning",
        ("shoulder",),
    ),
    "pose": ({"q": scaled(0, 0, 0), "dq": scaled(0, 0, 0)}, "no_motion", "error", ()),
    "one at rest": ({"q": scaled(1, 0, 1), "dq": scaled(1, 0, 1)}, "joint_barely_moves", "warning", ("elbow",)),
    "degrees": (
        {"q": scaled(*[57.29578] * 3), "dq": scaled(*[57.29578] * 3)},
        "positions_in_degrees",
        "error",
        ROBOT.joints,
    ),
    "noise": (
        {"q": lambda q: np.column_stack([q[:, :2], 0.3 * np.random.default_rng(0).normal(size=len(q))]), "dq": None},
        "position_noise",
        "error",
        ("wrist",),
    ),
    "limits": ({"q": shifted(0, 0.8, 0)}, "position_limits_exceeded", "warning", ("elbow",)),
    "rows": ({"tau": loses_rows(0.3)}, "rows_unusable", "error", ()),
    "gap": ({"t": lambda t: t + (t > 15)}, "clock_gaps", "warning", ()),
    "velocity": ({"dq": None}, "velocity_mismatch", "info", ()),
}


def faulty(healthy, name):
    changes = dict(FAULTS[name][0])
    return changed(healthy, **(changes if name != "velocity" else {"dq": late_velocity(healthy)}))


def test_healthy_data_have_no_findings(healthy):
    assert findings(healthy) == ()
    assert findings(changed(healthy, dq=None)) == ()
    assert findings(changed(healthy, tau=loses_rows(0.1))) == ()
    noise = 0.05 * np.random.default_rng(0).normal(size=healthy.samples.q.shape)
    assert findings(changed(healthy, dq=lambda dq: dq + noise)) == ()  # the derivative is taken, and nothing is wrong


def test_counts_of_an_encoder_are_not_called_degrees(healthy):
    counts = {name: scaled(*[4096.0] * 3) for name in ("q", "dq")}
    (finding,) = [one for one in findings(changed(healthy, **counts)) if one.code == "positions_in_degrees"]
    assert finding.severity == "error" and "counts of an encoder" in finding.message


@pytest.mark.filterwarnings("error")
def test_velocities_of_zero_are_not_scaled_ones(healthy):
    assert [one.code for one in findings(changed(healthy, dq=scaled(0, 0, 0)))] == ["velocity_mismatch"]


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_no_other(healthy, name):
    _, code, severity, joints = FAULTS[name]
    (finding,) = findings(faulty(healthy, name))
    assert (finding.code, finding.severity, finding.joints) == (code, severity, joints)
    assert "\n" not in finding.message
    assert finding.action == find_definition(code).cure or code == "effort_constant"


def loses_values(joint, share):
    def lose(values):
        values = values.copy()
        values[: int(share * len(values)), joint] = np.nan
        return values

    return lose


@pytest.mark.parametrize(
    ("channel", "share", "severity"),
    [("tau", 0.005, "info"), ("tau", 0.5, "warning"), ("dq", 0.005, "info"), ("dq", 1.0, "warning")],
)
def test_values_of_one_joint_that_are_missing_are_found(healthy, channel, share, severity):
    (finding,) = findings(changed(healthy, **{channel: loses_values(1, share)}))
    assert (finding.code, finding.severity, finding.joints) == ("values_missing", severity, ("elbow",))


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault[2] == "error"])
def test_an_error_refuses_and_can_be_overruled_by_its_code(healthy, name):
    found, code = findings(faulty(healthy, name)), FAULTS[name][1]
    with pytest.raises(UnsafeDataError) as error:
        refuse(found, ignore=(), sources=("bag",))
    assert error.value.findings == found
    assert error.value.summary()["findings"] == [found[0].summary()]
    assert str(error.value).startswith("bag: ") and found[0].message in str(error.value)
    with pytest.raises(UnsafeDataError):
        refuse(found, [other for other in OVERRULABLE if other != code], ("bag",))
    assert refuse(found, [code], ("bag",)) == (replace(found[0], severity="warning"),)


def test_a_message_that_names_its_recording_is_not_preceded_by_the_name():
    finding = find_definition("encoder_frozen").found("bag: positions are constant", ("elbow",), "error")
    with pytest.raises(UnsafeDataError, match=r"^bag: positions are constant") as error:
        refuse([finding], (), ("bag",))
    assert str(error.value).count("bag") == 1


def test_warnings_are_passed_on(healthy):
    found = findings(faulty(healthy, "gap"))
    assert refuse(found, (), ("bag",)) == found


def test_only_errors_that_refuse_can_be_overruled():
    check_ignored(OVERRULABLE)
    for code in ("effort_delayed", "velocity_mismatch", "held_out_error", "effort"):
        with pytest.raises(UsageError, match=f"{code}.*{', '.join(OVERRULABLE)}"):
            check_ignored([code])


def test_positions_in_degrees_are_found_by_the_limits(healthy):
    turned = faulty(healthy, "degrees")
    assert findings(turned, FREE) == ()


def test_a_sliding_joint_in_millimeters_is_found_by_the_distance_of_its_limits():
    """Limits that are a little too narrow are not taken for another unit, however short the travel is."""
    lift = RobotModel.from_urdf(LIFT)  # from -2 to 3 m
    low, high = np.array([-1.9, -1.0]), np.array([2.9, 1.0])
    assert find_position_units(lift, low, high) == find_position_units(lift, low, 2.0 * high) == []
    (finding,) = find_position_units(lift, low * [1e3, 1.0], high * [1e3, 1.0])
    assert (finding.code, finding.severity, finding.joints) == ("positions_in_millimeters", "error", ("lift",))
    assert "in millimeters" in finding.message
    (counts,) = find_position_units(lift, low, high * [4096.0, 1.0])
    assert "counts of an encoder" in counts.message


def test_a_short_motion_holds_too_little_information(healthy):
    observed = survey([healthy], healthy.joint_names, {})
    positions = 2.0 * observed.bandwidth.sum() * sum(observed.durations)
    assert check_motion_content(observed, int(positions)) == ()
    (finding,) = check_motion_content(observed, int(positions) + 1)
    assert finding.code == "too_little_motion"


def agreement(recording):
    plan = plan_signals(survey([recording], recording.joint_names, {}), SignalSettings())
    trials = FilteredTrials([recording], recording.joint_names, {}, plan)
    return trials, measure_nominal_agreement(ROBOT.regressor, trials)


def against_nominal(recording):
    findings, doubts = compare_with_nominal(ROBOT.joints, *agreement(recording)[1])
    return (*findings, *doubts)


def test_efforts_are_compared_with_the_urdf(healthy):
    slope, correlation, rms = agreement(healthy)[1]
    heavy = rms > 0.1 * rms.max()
    assert heavy.sum() >= 2
    np.testing.assert_allclose(slope[heavy], 1.15, atol=0.25)  # the true robot is that much heavier, and has friction
    assert np.all(correlation[heavy] > 0.8)
    assert against_nominal(healthy) == ()


def test_a_wrong_sign_is_found_with_its_joint(healthy):
    (finding,) = against_nominal(changed(healthy, tau=scaled(1, -1, 1)))
    assert (finding.code, finding.severity, finding.joints) == ("effort_sign", "error", ("elbow",))


def test_amperes_are_found_unless_one_joint_is_right(healthy):
    (finding,) = against_nominal(changed(healthy, tau=scaled(0.05, 0.08, 0.06)))
    assert (finding.code, finding.severity) == ("effort_in_amperes", "error")
    assert against_nominal(changed(healthy, tau=scaled(0.05, 1.0, 0.05))) == ()


def test_efforts_that_are_too_large_are_found_with_their_joint(healthy):
    (finding,) = against_nominal(changed(healthy, tau=scaled(1, 6, 1)))
    assert (finding.code, finding.severity, finding.joints) == ("effort_too_large", "warning", ("elbow",))


@pytest.mark.parametrize(
    ("velocity", "words", "severity"),
    [("auto", "derivatives of the positions", "info"), ("recorded", "all the same", "warning")],
)
def test_recorded_velocities_that_disagree_are_reported_where_they_matter(healthy, velocity, words, severity):
    samples = healthy.samples
    wrong = replace(healthy, samples=replace(samples, dq=late_velocity(healthy)))
    surveyed = survey([wrong], wrong.joint_names, {})
    (finding,) = (one for one in examine(surveyed, ROBOT.model, velocity) if one.code == "velocity_mismatch")
    assert words in finding.message and finding.severity == severity
    assert not [one for one in examine(surveyed, ROBOT.model, "derivative") if one.code == "velocity_mismatch"]


@pytest.mark.parametrize("factor", [0.8, 1.1, 2.0])
def test_time_stamps_that_are_scaled_are_named(healthy, factor):
    found = {one.code: one for one in findings(changed(healthy, t=lambda t: t[0] + factor * (t - t[0])))}
    assert found["velocities_scaled"].severity == "warning"
    assert f"{factor:.3g} times" in found["velocities_scaled"].message
    one_joint = {one.code for one in findings(changed(healthy, dq=scaled(1, 1.2, 1)))}
    assert "velocities_scaled" not in one_joint


UNITS = {"degrees/s": 180.0 / np.pi, "rpm": 30.0 / np.pi, "turns/s": 0.5 / np.pi}


@pytest.mark.parametrize("unit", UNITS)
def test_velocities_in_another_unit_are_named_with_it(healthy, unit):
    turning = ~ROBOT.model.slides
    assert turning.sum() > 1
    factors = np.where(turning, UNITS[unit], 1.0)
    surveyed = survey([changed(healthy, dq=scaled(*factors))], healthy.joint_names, {})
    (found,) = examine(surveyed, ROBOT.model, "auto")
    assert (found.code, found.severity) == ("velocities_in_other_unit", "info")
    assert f"as those in {unit}: derivatives of the positions are used" in found.message
    assert f"{UNITS[unit]:.2g}"[:3] in found.message and len(found.joints) == turning.sum()
    (used,) = examine(surveyed, ROBOT.model, "recorded")
    assert used.severity == "warning" and "all the same" in used.message
    assert examine(surveyed, ROBOT.model, "derivative") == ()


def test_velocities_of_the_opposite_sign_are_named(healthy):
    surveyed = survey([changed(healthy, dq=lambda dq: -dq)], healthy.joint_names, {})
    (found,) = examine(surveyed, ROBOT.model, "auto")
    assert (found.code, found.severity) == ("velocities_in_other_unit", "info")
    assert "as those in the opposite direction" in found.message and set(found.joints) == set(ROBOT.joints)
    assert (np.abs(surveyed.velocity_lag) < 1e-3).all()


def test_a_short_recording_is_not_coarse_for_its_few_samples():
    short = ROBOT.record(1, duration=40.0)
    short = changed(short, slice(0, 45), tau=lambda tau: tau[:45])
    assert "effort_coarse" not in {one.code for one in findings(short)}
