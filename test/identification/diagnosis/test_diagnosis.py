# SPDX-License-Identifier: Apache-2.0
"""Faults that the rigid-body dynamics of a recording show: each is named, and nothing else."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid
from support.robots import URDFS, joint, urdf
from support.simulated import LIFT, Simulated, changed

from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.identification.diagnosis.diagnosis import (
    LEAST_TILT_DEG,
    OTHER_MOUNTING_DEG,
    compute_angle_between,
    diagnose,
    examine_lengths,
)
from robot_dyn_id.identification.diagnosis.gain_factors import estimate_gain_factors
from robot_dyn_id.identification.diagnosis.hypotheses import (
    CONVENTIONS,
    Convention,
    Exchange,
    GravityFits,
    find_time_scale,
    find_zero,
)
from robot_dyn_id.identification.diagnosis.samples import MotionSamples, RigidRows
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings

ARM = urdf(
    joint("base_turn", "base", "l1", rpy="0 0 0", xyz="0 0 0.3"),
    joint("shoulder", "l1", "l2", axis="0 1 0", rpy="0 0 0", xyz="0 0 0.2"),
    joint("elbow", "l2", "l3", axis="0 1 0", rpy="0 0 0", xyz="0.4 0 0"),
    joint("roll", "l3", "l4", axis="1 0 0", rpy="0 0 0", xyz="0.3 0 0"),
    links=4,
)
"""An upright arm of four joints."""

TILT = np.radians(8.0)
GRAVITIES = {
    "wall": (0.0, -9.81, 0.0),
    "ceiling": (0.0, 0.0, 9.81),
    "slope": (9.81 * np.sin(TILT), 0.0, -9.81 * np.cos(TILT)),
}


@pytest.fixture(scope="module")
def robot():
    return Simulated(ARM)


@pytest.fixture(scope="module")
def recording(robot):
    return robot.record(duration=30.0, noise=0.05)


def samples_of(recording, joints):
    return MotionSamples.from_trials(FilteredTrials.from_recordings([recording], joints, {}, SignalSettings()))


@pytest.fixture(scope="module")
def samples(robot, recording):
    return samples_of(recording, robot.joints)


def codes(samples, model):
    return [(one.code, one.severity, one.joints) for one in diagnose(samples, model).findings if one.severity != "info"]


def weight(robot, samples, parameters=None):
    still = Motion(samples.motion.q, 0 * samples.motion.dq, 0 * samples.motion.ddq)
    inertial = 10 * len(robot.model.body_names)
    values = robot.parameters[:inertial] if parameters is None else parameters
    return Regressor(robot.model).torque(still, values)


@pytest.mark.slow
def test_sound_recordings_have_no_findings(robot, samples):
    diagnosis = diagnose(samples, robot.model)
    assert codes(samples, robot.model) == [] and not diagnosis.weightless
    bare = replace(robot.model, inertial_parameters=np.zeros_like(robot.model.inertial_parameters))
    assert codes(samples, bare) == []


@pytest.mark.parametrize("masses", [True, False])
@pytest.mark.parametrize("mounting", GRAVITIES)
def test_gravity_is_found_with_its_direction(robot, samples, mounting, masses):
    """The robot stands upright, and is configured otherwise."""
    if not masses and mounting == "ceiling":
        pytest.skip("slow motion determines gravity up to its sign only")
    model = replace(robot.model, gravity=np.array(GRAVITIES[mounting]))
    if not masses:
        model = replace(model, inertial_parameters=np.zeros_like(model.inertial_parameters))
    (finding,) = diagnose(samples, model).findings
    assert finding.code == "gravity_direction"
    assert finding.severity == ("warning" if mounting == "slope" else "error")
    found = np.array([float(word) for word in finding.action.partition("[")[2].partition("]")[0].split(",")])
    if masses:
        assert compute_angle_between(found, robot.model.gravity) < 1.0
    else:
        assert (
            min(compute_angle_between(found, robot.model.gravity), compute_angle_between(-found, robot.model.gravity))
            < 1.0
        )


def test_the_search_for_gravity_is_independent_of_its_start(robot, samples):
    fits = GravityFits.from_samples(samples, robot.model)
    np.testing.assert_allclose(np.abs(fits.best_direction() / robot.model.gravity[2])[2], 1.0, atol=1e-4)
    assert fits.fit(robot.model.gravity).advantage(fits.without_gravity()) > 3.0


def test_gravity_fits_are_those_of_regressors_with_that_gravity(robot, samples):
    gravity = np.array([1.0, -4.0, -7.0])
    fits = GravityFits.from_samples(samples, robot.model)
    direct = RigidRows.from_samples(samples, [replace(robot.model, gravity=gravity)]).grams().fit()
    np.testing.assert_allclose(fits.fit(gravity).rms, direct.rms, rtol=1e-4)


@pytest.mark.parametrize("masses", [True, False])
def test_efforts_without_weight_are_found(robot, samples, masses):
    """A driver that subtracts the weight, with masses that are a tenth wrong."""
    compensated = replace(samples, tau=samples.tau - 0.97 * weight(robot, samples))
    model = robot.model if masses else replace(robot.model, inertial_parameters=0 * robot.model.inertial_parameters)
    compensated = compensated if masses else replace(samples, tau=samples.tau - weight(robot, samples))
    diagnosis = diagnose(compensated, model)
    assert [one.code for one in diagnosis.findings] == ["effort_gravity_compensated"]
    assert diagnosis.weightless


def test_efforts_without_dynamics_are_refused(robot, samples):
    noise = 0.1 * np.random.default_rng(0).normal(size=samples.tau.shape)
    assert [code for code, *_ in codes(replace(samples, tau=noise), robot.model)] == ["effort_external"]


def test_masses_in_grams_are_found(robot, samples):
    heavy = replace(robot.model, inertial_parameters=1000.0 * robot.model.inertial_parameters)
    (doubt,) = diagnose(samples, heavy).doubts
    assert (doubt.code, doubt.severity) == ("effort_units", "error") and "grams" in doubt.message


def test_newton_millimeters_are_found(robot, samples):
    diagnosis = diagnose(replace(samples, tau=1000.0 * samples.tau), robot.model)
    assert diagnosis.findings == ()  # a model in N mm works, and only the masses of the URDF are against it
    assert [(one.code, one.severity) for one in diagnosis.doubts] == [("effort_units", "error")]


@pytest.mark.parametrize(
    ("factor", "code"), [(10.0, "gain_inconsistent"), (0.1, "gain_inconsistent"), (-1.0, "effort_sign")]
)
@pytest.mark.parametrize("masses", [True, False])
def test_one_wrong_gain_is_found_with_its_joint(robot, samples, factor, code, masses):
    tau = samples.tau.copy()
    tau[2] *= factor
    model = robot.model if masses else replace(robot.model, inertial_parameters=0 * robot.model.inertial_parameters)
    assert codes(replace(samples, tau=tau), model) == [(code, "error", ("elbow",))]


@pytest.mark.parametrize("factor", [2.4, 0.14, 4.0, 7.0])
def test_a_wrong_gain_is_stated_with_its_size(robot, samples, factor):
    """Between those that are compared, too: residuals have a narrow minimum."""
    tau = samples.tau.copy()
    tau[2] *= factor
    (finding,) = diagnose(replace(samples, tau=tau), robot.model).findings
    assert f"elbow is about {factor:g} times" in finding.message


@pytest.mark.parametrize("opposite", [(1, 2), (0, 3), (0, 1, 2)])
def test_all_joints_of_opposite_sign_are_named(robot, samples, opposite):
    """Masses that are a fifth wrong, some too large and some too small, suffice."""
    wrong = robot.model.inertial_parameters * np.repeat([0.8, 1.2, 0.8, 1.2], 10)
    signs = np.where(np.isin(np.arange(4), opposite), -1.0, 1.0)
    found = codes(replace(samples, tau=samples.tau * signs[:, None]), replace(robot.model, inertial_parameters=wrong))
    assert found == [("effort_sign", "error", tuple(robot.joints[joint] for joint in opposite))]


def test_without_masses_joints_of_opposite_sign_are_named_up_to_their_opposites(robot, samples):
    bare = replace(robot.model, inertial_parameters=0 * robot.model.inertial_parameters)
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    (finding,) = diagnose(replace(samples, tau=samples.tau * signs[:, None]), bare).findings
    assert finding.code == "effort_sign" and finding.joints == robot.joints
    assert {"base_turn, shoulder", "elbow, roll"} == set(
        re.findall(r"base_turn, shoulder|elbow, roll", finding.message)
    )


def test_currents_are_named_with_the_joints_of_opposite_sign(robot, samples):
    """Gains differ by joint, as those of a robot with two kinds of drives."""
    gains = np.array([12.0, 14.0, -9.0, -20.0])
    (finding,) = diagnose(replace(samples, tau=samples.tau / gains[:, None]), robot.model).doubts
    assert (finding.code, finding.severity) == ("effort_in_amperes", "error")
    assert finding.message.endswith("amperes, with the opposite sign for elbow, roll")


def test_the_opposite_sign_of_all_efforts_is_not_a_ceiling(robot, samples):
    ((code, _, joints),) = codes(replace(samples, tau=-samples.tau), robot.model)
    assert (code, joints) == ("effort_sign", robot.joints)


def test_swapped_joints_are_found(robot, samples):
    order = np.array([0, 2, 1, 3])
    expected = [("joints_swapped", "error", ("shoulder", "elbow"))]
    assert codes(samples.with_order(order), robot.model) == expected
    assert codes(replace(samples, tau=samples.tau[order]), robot.model) == expected


@pytest.mark.parametrize("masses", [True, False])
def test_of_two_joints_the_weight_shows_which_gain_is_wrong(masses):
    """A wrong gain of one is the inverse gain of the other; without masses both are named."""
    robot = Simulated(LIFT)
    samples = samples_of(robot.record(duration=30.0, noise=0.02), robot.joints)
    tau = samples.tau * np.array([[0.1], [1.0]])
    model = robot.model if masses else replace(robot.model, inertial_parameters=0 * robot.model.inertial_parameters)
    ((code, _, joints),) = codes(replace(samples, tau=tau), model)
    assert (code, set(joints)) == ("gain_inconsistent", {"lift"} if masses else {"lift", "turn"})


def test_a_single_joint_is_compared_with_the_weight_of_its_masses():
    """Nothing but the URDF's masses gives the scale of one effort: a contradiction is reported with its factor."""
    robot = Simulated(urdf(joint("swing", "base", "l1", axis="0 1 0", rpy="0 0 0"), links=1))
    robot.parameters[:10] = robot.model.inertial_parameters
    samples = samples_of(robot.record(duration=30.0, noise=0.02), robot.joints)
    assert codes(samples, robot.model) == []
    small = replace(samples, tau=samples.tau / 30.0)
    assert codes(small, robot.model) == [("gain_unverifiable", "warning", ("swing",))]


def test_gravity_that_is_not_configured_is_found(robot, samples):
    weightless = replace(robot.model, gravity=np.zeros(3))
    (finding,) = (one for one in diagnose(samples, weightless).findings if one.code == "gravity_direction")
    assert "none is configured" in finding.message and "-0.00" not in finding.message
    bare = replace(weightless, inertial_parameters=np.eye(1, 40, 30)[0])  # masses that no joint carries
    diagnose(samples, bare)


def weightless_joint(robot, *, one_way=False):
    """Samples and model of an arm whose last joint turns about its own symmetry axis: only friction is in its effort."""
    masses = robot.model.inertial_parameters.copy()
    masses[30:] = [0.1, 0.0, 0, 0, 1e-5, 0, 1e-5, 0, 0, 1e-5]
    light = Simulated(ARM)
    light.parameters[:40] = masses
    recording = light.record(duration=30.0, noise=0.05)
    if one_way:
        t = recording.samples.t
        q, dq, ddq = (np.array(values) for values in draw_random_fourier(light.model, 1).evaluate(t)[:3])
        dq[3], ddq[3] = np.abs(dq[3]), np.sign(dq[3]) * ddq[3]
        q[3] = cumulative_trapezoid(dq[3], t, initial=0.0)
        tau = light.regressor.torque(Motion(q, dq, ddq), light.parameters)
        tau += np.random.default_rng(0).normal(0.0, 0.05, tau.shape)
        recording = changed(recording, q=q.T, dq=dq.T, tau=tau.T)
    return samples_of(recording, light.joints), replace(light.model, inertial_parameters=masses)


def test_a_gain_that_nothing_checks_is_reported(robot):
    samples, model = weightless_joint(robot)
    (finding,) = diagnose(samples, model).findings
    assert (finding.code, finding.severity, finding.joints) == ("gain_unverifiable", "info", ("roll",))


def test_friction_that_drives_a_joint_without_weight_shows_its_sign(robot):
    samples, model = weightless_joint(robot)
    turned = replace(samples, tau=samples.tau * np.array([1.0, 1.0, 1.0, -1.0])[:, None])
    assert codes(turned, model) == [("effort_sign", "error", ("roll",))]


def test_friction_of_a_joint_that_never_turns_back_shows_no_sign(robot):
    """It could be a constant effort of the other sign."""
    samples, model = weightless_joint(robot, one_way=True)
    zero = replace(samples, tau=samples.tau * np.array([1.0, 1.0, 1.0, -1.0])[:, None])
    assert "effort_sign" not in {code for code, *_ in codes(zero, model)}


@pytest.mark.parametrize("channels", ["efforts", "positions"])
def test_channels_of_two_joints_that_are_exchanged_are_named(robot, samples, channels):
    exchange = Exchange((0, 2, 1, 3), channels, 0.0)
    swapped = exchange.undo(samples)  # an exchange is its own inverse
    (finding,) = diagnose(swapped, robot.model).findings
    assert (finding.code, finding.joints) == ("joints_swapped", ("shoulder", "elbow")) and channels in finding.message
    np.testing.assert_array_equal(exchange.undo(swapped).tau, samples.tau)
    np.testing.assert_array_equal(exchange.undo(swapped).motion.q, samples.motion.q)


@pytest.mark.parametrize("order", [(3, 2, 1, 0), (1, 2, 3, 0), (3, 0, 1, 2)])
def test_names_in_reversed_or_shifted_order_are_named(robot, samples, order):
    recorded = Exchange(tuple(np.argsort(order)), "all channels", 0.0).undo(samples)  # the inverse order
    (finding,) = diagnose(recorded, robot.model).findings
    assert (finding.code, finding.joints) == ("joints_swapped", tuple(robot.joints))
    assert ", ".join(robot.joints[joint] for joint in order) in finding.message
    np.testing.assert_array_equal(Exchange(order, "all channels", 0.0).undo(recorded).tau, samples.tau)


@pytest.mark.parametrize("joint", [1, 2])
@pytest.mark.parametrize(("turn", "signs"), CONVENTIONS)
def test_another_zero_or_direction_of_a_joint_is_named(robot, samples, joint, turn, signs):
    moved = samples.with_convention(joint, -turn, signs)
    (finding,) = [one for one in diagnose(moved, robot.model).findings if one.severity == "error"]
    assert finding.code == "position_convention"
    assert robot.joints[joint] in finding.joints, finding.message
    restored = Convention(joint, turn, signs, 0.0).undo(moved)
    np.testing.assert_allclose(restored.motion.q, samples.motion.q, atol=1e-12)
    np.testing.assert_array_equal(restored.tau, samples.tau)


@pytest.mark.parametrize(("joint", "turn"), [(1, 0.1), (1, -0.3), (2, 0.1), (2, 0.3), (2, -0.7)])
def test_a_zero_that_is_off_by_any_angle_is_estimated(robot, samples, joint, turn):
    moved = samples.with_convention(joint, -turn, (1.0, 1.0))
    found = find_zero(moved, robot.model)
    assert found.joint == joint and np.degrees(abs(found.turn - turn)) < LEAST_TILT_DEG  # less is not reported
    (finding,) = [one for one in diagnose(moved, robot.model).findings if one.severity != "info"]
    large = abs(turn) > np.radians(OTHER_MOUNTING_DEG)
    assert (finding.code, finding.severity) == ("position_zero", "error" if large else "warning")
    assert finding.joints == (robot.joints[joint],)
    assert "rad" in finding.message


def test_a_joint_without_efforts_is_diagnosed_without_undefined_numbers(robot, samples):
    valid = samples.valid & (np.arange(4) != 3)[:, None]
    with np.errstate(divide="raise", invalid="raise"):
        found = diagnose(replace(samples, valid=valid), robot.model)
    assert not [one for one in found.findings if one.severity != "info"]


def test_no_zero_is_found_where_there_is_none_or_free_bodies_absorb_it(robot, samples):
    assert find_zero(samples, robot.model) is None
    for absorbed in (0, 3):  # a vertical axis, and the last one
        assert find_zero(samples.with_convention(absorbed, 0.3, (1.0, 1.0)), robot.model) is None


@pytest.mark.parametrize("factor", [0.2, 0.5, 2.0, 5.0])
def test_time_stamps_of_another_rate_are_named(robot, samples, factor):
    (finding,) = diagnose(samples.with_time(1.0 / factor), robot.model).findings
    assert (finding.code, finding.severity) == ("time_scale", "error")
    found = find_time_scale(samples.with_time(1.0 / factor), robot.model)
    assert abs(np.log2(found.factor / factor)) <= 0.25
    np.testing.assert_allclose(found.undo(samples).motion.dq, found.factor * samples.motion.dq)
    assert find_time_scale(samples, robot.model).advantage < 0.0


@pytest.mark.slow
def test_no_currents_are_read_where_another_zero_explains_the_efforts():
    """Gains of their own for all joints would explain much of them, too."""
    arm = Simulated(find_shared_file("urdf/arm7.urdf").read_text())
    recording = changed(arm.record(duration=30.0, noise=0.1), q=lambda q: q + np.array([0, 0, 0, 0.5 * np.pi, 0, 0, 0]))
    found = identify([recording], [], arm.model, Settings(), "test")
    assert found.evaluation.verdict.word == "bad"
    assert {one.code for one in found.evaluation.findings if one.severity == "error"} == {"position_convention"}


@pytest.mark.parametrize("factor", [0.92, 1.08])
def test_a_gain_that_is_wrong_by_some_per_cent_is_found_within_its_uncertainty(robot, samples, factor):
    tau = samples.tau.copy()
    tau[1] *= factor
    wrong = replace(samples, tau=tau)
    gain = estimate_gain_factors(RigidRows.from_samples(wrong, [robot.model]), wrong)[1]
    assert gain.significant and abs(np.log(gain.value / factor)) < 4.0 * max(gain.deviation, 1e-3)
    (found,) = (one for one in diagnose(wrong, robot.model).findings if one.code == "gain_inconsistent")
    assert found.severity == "info" and "shoulder" in found.joints
    sound = estimate_gain_factors(RigidRows.from_samples(samples, [robot.model]), samples)
    assert not any(one.significant for one in sound)


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_gains_of_joints_without_common_links_are_determined_by_nothing(kind):
    apart = urdf(
        joint("first", "base", "l1", axis="1 0 0", rpy="0 0 0", kind=kind),
        joint("second", "base", "l2", axis="0 1 0", rpy="0 0 0", xyz="0 1 0"),
        links=2,
    )
    robot = Simulated(apart)
    found = samples_of(robot.record(duration=20.0, noise=0.05), robot.joints)
    gains = estimate_gain_factors(RigidRows.from_samples(found, [robot.model]), found)
    assert [(one.value, one.deviation, one.significant) for one in gains] == [(1.0, np.inf, False)] * 2
    unverified = [one.joints for one in diagnose(found, robot.model).findings if one.code == "gain_unverifiable"]
    assert {name for names in unverified for name in names} == {"first", "second"}


def test_a_urdf_of_another_robot_is_named(robot, samples):
    """The same joint names on other axes, which no bodies explain; and the same axes with other masses."""
    tree = ElementTree.fromstring(robot.model.urdf)
    for item in tree.iterfind("joint"):
        if item.get("name") in ("shoulder", "elbow"):
            item.find("axis").set("xyz", "0 0 1" if item.get("name") == "elbow" else "1 0 0")
    other = RobotModel.from_urdf(ElementTree.tostring(tree, encoding="unicode"), robot.joints)
    found = {one.code: one.severity for one in diagnose(samples, other).findings}
    assert found["urdf_contradicted"] == "error", found
    heavier = replace(robot.model, inertial_parameters=2.5 * robot.model.inertial_parameters)
    found = {one.code: one.severity for one in diagnose(samples, heavier).findings}
    assert found["urdf_contradicted"] == "warning" and "gain_inconsistent" not in found, found
    shares = np.repeat([2.5, 2.5, 8.0, *[2.5] * (len(heavier.body_names) - 3)], 10)
    unlike = replace(robot.model, inertial_parameters=shares * robot.model.inertial_parameters)
    found = {one.code: one.severity for one in diagnose(samples, unlike).findings}
    assert found["urdf_contradicted"] == "info" and "gain_inconsistent" not in found, found


@pytest.mark.parametrize(
    ("share", "severity"),
    [
        *((0.5, "warning"), (0.7, "info"), (1.1, "info"), (1.2, "warning"), (1.7, "warning")),
        *((0.25, "error"), (3.0, "error"), (9.81, "error")),
    ],
)
def test_a_common_factor_of_all_efforts_is_named(robot, recording, share, severity):
    """Half torques identify a model that lets the arm fall: only the masses of the URDF, 15 % too small, contradict it."""
    scaled = samples_of(changed(recording, tau=lambda tau: share * tau), robot.joints)
    diagnosis = diagnose(scaled, robot.model)
    (found,) = [one for one in (*diagnosis.findings, *diagnosis.doubts) if one.code == "urdf_contradicted"]
    assert found.severity == severity
    assert (found in diagnosis.doubts) == (severity == "error")
    assert float(re.search(r"efforts (?:are|were) (\S+) times", found.message)[1]) == pytest.approx(
        1.15 * share, rel=0.03
    )


@pytest.mark.parametrize("share", [0.05, 0.16])
def test_small_torques_of_an_arm_with_one_loaded_joint_are_named(share):
    arm = Simulated()
    scaled = changed(arm.record(duration=30.0, noise=0.02), tau=lambda tau: share * tau)
    diagnosis = diagnose(samples_of(scaled, arm.joints), arm.model)
    codes = {one.code for one in (*diagnosis.findings, *diagnosis.doubts) if one.severity == "error"}
    assert codes & {"urdf_contradicted", "effort_in_amperes", "effort_gravity_compensated"}, codes


def test_a_urdf_in_millimeters_is_found():
    model = RobotModel.from_file(URDFS["ur5_robot"])
    assert examine_lengths(model) == ()
    (finding,) = examine_lengths(replace(model, translation=1000.0 * model.translation))
    assert finding.code == "urdf_in_millimeters"


def test_samples_are_those_of_the_motion(recording, samples):
    assert 400 < len(samples) <= 1500
    assert samples.tau.shape == samples.valid.shape == (4, len(samples))
    rate = (samples.later.q - samples.earlier.q) / samples.spacing
    np.testing.assert_allclose(rate, samples.motion.dq, atol=0.02 * np.abs(samples.motion.dq).max())
    assert len(changed(recording).samples) == len(recording.samples)


def flat_arm():
    """Three vertical axes: no effort contains weight."""
    axes = [joint(name, parent, child, rpy="0 0 0") for name, parent, child in FLAT]
    return Simulated(urdf(*axes, links=3))


FLAT = (("shoulder", "base", "l1"), ("elbow", "l1", "l2"), ("wrist", "l2", "l3"))


@pytest.mark.parametrize("excess", [0.0, 6.0])
def test_drives_that_compensate_more_viscous_friction_than_there_is_have_no_wrong_sign(excess):
    """The step of dry friction at a reversal shows the sign, not the slope of friction over the speed."""
    arm = flat_arm()
    recording = arm.record(duration=30.0, noise=0.05)
    chunk = recording.samples
    tau = 0.2 * chunk.tau + 1.5 * np.tanh(chunk.dq / 0.02) - excess * chunk.dq
    trials = FilteredTrials.from_recordings(
        [replace(recording, samples=replace(chunk, tau=tau))], arm.joints, {}, SignalSettings()
    )
    diagnosis = diagnose(MotionSamples.from_trials(trials), arm.model)
    assert "effort_sign" not in {one.code for one in diagnosis.findings}


def test_dry_friction_that_drives_is_a_wrong_sign():
    arm = flat_arm()
    recording = arm.record(duration=30.0, noise=0.05)
    chunk = recording.samples
    tau = chunk.tau - np.array([0.0, 0.0, 1.0]) * (2.0 * chunk.tau + 3.0 * np.tanh(chunk.dq / 0.02))
    trials = FilteredTrials.from_recordings(
        [replace(recording, samples=replace(chunk, tau=tau))], arm.joints, {}, SignalSettings()
    )
    (finding,) = diagnose(MotionSamples.from_trials(trials), arm.model).findings
    assert (finding.code, finding.joints) == ("effort_sign", ("wrist",))
