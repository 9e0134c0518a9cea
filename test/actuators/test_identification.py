# SPDX-License-Identifier: Apache-2.0
"""Identification of actuators: known truths within the reported intervals, shared values, limits, wrong inputs."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record

from robot_dyn_id.actuators.fit import InitialState
from robot_dyn_id.actuators.identification import KnownDrives, identify
from robot_dyn_id.actuators.judgment import judge
from robot_dyn_id.actuators.layout import ParameterLayout
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion, read_motions
from robot_dyn_id.actuators.rollout import split_into_limbs
from robot_dyn_id.actuators.validation import validate
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.actuators import ARMATURE, COULOMB, DELAY, KINDS, LIMIT, VISCOUS
from robot_dyn_id.workflow.actuators import ActuatorResult

KNOWN = KnownDrives(TRUTH.kp, TRUTH.kd, np.full(3, np.inf))


def found(truth=TRUTH, drives=KNOWN, seeds=(0,), types=(), **options):
    motions = [record(truth=truth, seed=seed, duration=6.0, rate=50.0, **options) for seed in seeds]
    return identify(MODEL, motions, drives, types)


@pytest.mark.slow
def test_intervals_cover_the_truth_and_simulations_predict_other_motions():
    estimate = found(noise=2e-3)
    mask = estimate.uncertainty.estimated
    truth, low, high = TRUTH.values[mask], estimate.uncertainty.low[mask], estimate.uncertainty.high[mask]
    assert np.mean((low <= truth) & (truth <= high)) >= 0.8  # 95 % of 15 values, less three deviations
    assert np.all(high[: len(high)] > low)
    errors = validate(MODEL, estimate.actuators, [record(seed=7, duration=6.0, rate=50.0, noise=0.0)])
    assert errors.rms(np.inf) < 2e-3
    assert errors.share < 0.01


@pytest.mark.slow
def test_a_step_of_the_noise_widens_the_intervals():
    narrow, wide = found(noise=1e-4), found(noise=1e-3)
    widths = [(one.uncertainty.high - one.uncertainty.low)[one.uncertainty.estimated] for one in (narrow, wide)]
    assert 5.0 < np.median(widths[1] / widths[0]) < 20.0


@pytest.mark.slow
def test_one_delay_is_kept_where_the_data_agree_and_several_are_found_where_they_do_not():
    together = found()
    assert [test.agreed for test in together.shared] == [True]
    assert len(set(together.actuators.delay.tolist())) == 1
    delays = np.array([0.004, 0.009, 0.014])
    apart = found(replace(TRUTH, delay=delays))
    assert [test.agreed for test in apart.shared] == [False]
    np.testing.assert_allclose(apart.actuators.delay, delays, atol=3e-4)


@pytest.mark.slow
def test_values_of_a_motor_type_are_shared_only_where_the_data_agree():
    values = TRUTH.values
    values[[ARMATURE, COULOMB], 1] = values[[ARMATURE, COULOMB], 0]
    estimate = found(ActuatorModel.from_values(TRUTH.joint_names, values), types=[("shoulder", "elbow")])
    verdicts = {test.kind: test.agreed for test in estimate.shared if test.kind != "delay"}
    assert verdicts == {"armature": True, "viscous": False, "coulomb": True}
    assert estimate.actuators.armature[0] == estimate.actuators.armature[1]
    assert estimate.actuators.armature[0] == pytest.approx(0.12, rel=0.01)
    assert estimate.actuators.viscous[:2] == pytest.approx([0.4, 0.3], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_an_effort_limit_is_found_where_it_is_reached_and_unknown_elsewhere(seed):
    truth = replace(TRUTH, limit=np.array([np.inf, 16.0, np.inf]))
    unknown = replace(KNOWN, limit=np.full(3, np.nan))
    estimate = found(truth, unknown, [seed])
    assert estimate.limited[1] > 0.02
    assert estimate.actuators.limit[1] == pytest.approx(16.0, rel=1e-3)
    np.testing.assert_allclose(estimate.actuators.armature, truth.armature, rtol=2e-3)
    assert np.isinf(estimate.actuators.limit[[0, 2]]).all()
    codes = {finding.code: finding.joints for finding in judge(estimate, unknown, None)}
    assert codes["actuator_limit_unknown"] == ("shoulder", "wrist")
    assert estimate.uncertainty.low[LIMIT, 1] < 16.0 < estimate.uncertainty.high[LIMIT, 1]


@pytest.mark.slow
def test_a_limit_separates_an_unknown_damping_gain_from_viscous_friction():
    """At the limit the gain has no effect, and friction has."""
    truth = replace(TRUTH, limit=np.array([np.inf, 16.0, np.inf]))
    unknown = KnownDrives(*np.full((3, 3), np.nan))
    estimate = found(truth, unknown, noise=1e-3)
    assert estimate.actuators.limit[1] == pytest.approx(16.0, rel=5e-3)
    assert estimate.actuators.viscous[1] == pytest.approx(0.3, rel=0.1)
    assert estimate.actuators.kd[1] == pytest.approx(2.0, rel=0.02)
    assert not estimate.uncertainty.estimated[VISCOUS, [0, 2]].any()
    damped = next(one for one in judge(estimate, unknown, None) if one.code == "actuator_damping_in_gain")
    assert damped.joints == ("shoulder", "wrist")


@pytest.mark.slow
def test_values_stay_within_physics_and_their_intervals_reach_zero():
    truth = replace(TRUTH, armature=np.array([0.12, 0.08, 0.0]), coulomb=np.array([0.6, 0.0, 0.2]))
    estimate = found(truth, noise=1e-3)
    assert estimate.actuators.armature[2] >= 0.0
    assert estimate.actuators.coulomb[1] >= 0.0
    assert estimate.uncertainty.low[ARMATURE, 2] == 0.0
    assert estimate.uncertainty.high[COULOMB, 1] > 0.0


@pytest.mark.slow
def test_a_bound_that_the_data_contradict_does_not_make_a_value_certain():
    """A gain of velocities that is given too large wants negative viscous friction."""
    wrong = replace(KNOWN, kd=TRUTH.kd + np.array([0.0, 3.0, 0.0]))
    estimate = found(drives=wrong, noise=1e-3)
    assert estimate.actuators.viscous[1] == 0.0
    assert estimate.uncertainty.low[VISCOUS, 1] == 0.0
    half_width = 0.5 * (estimate.uncertainty.high - estimate.uncertainty.low)[VISCOUS, 2]
    assert estimate.uncertainty.high[VISCOUS, 1] > half_width, "no more certain than the value of the wrist"
    at_zero = [one for one in judge(estimate, wrong, None) if one.code == "actuator_at_zero"]
    (finding,) = (one for one in at_zero if one.message.startswith("viscous"))
    assert "elbow" in finding.joints
    assert finding.message.startswith("viscous is not identifiable: ")
    assert f"elbow below {estimate.uncertainty.high[VISCOUS, 1]:.2g}" in finding.message
    poor = [one.message for one in judge(estimate, wrong, None) if one.code == "actuator_poorly_determined"]
    assert not any("viscous of elbow" in text for text in poor)
    table = str(ActuatorResult(MODEL, estimate, None, np.ones(3), np.ones(3), (), (), ())).splitlines()
    (row,) = (line for line in table if line.startswith("elbow"))
    assert f"< {estimate.uncertainty.high[VISCOUS, 1]:.2g}  " in row


@pytest.mark.slow
def test_three_recordings_show_what_changes_between_them():
    motions = [
        record(truth=replace(TRUTH, coulomb=TRUTH.coulomb * factor), seed=seed, duration=6.0, rate=50.0)
        for seed, factor in enumerate((0.9, 1.0, 1.1))
    ]
    estimate = identify(MODEL, motions, KNOWN)
    assert np.isfinite(estimate.uncertainty.between[estimate.uncertainty.estimated]).all()
    np.testing.assert_allclose(estimate.uncertainty.between[COULOMB], 0.1 * TRUTH.coulomb, rtol=0.6)
    wide = estimate.uncertainty.high[COULOMB] - estimate.uncertainty.low[COULOMB]
    assert np.all(wide > 0.1 * TRUTH.coulomb)
    assert np.all(estimate.uncertainty.low[COULOMB] < TRUTH.coulomb)
    assert np.all(estimate.uncertainty.high[COULOMB] > TRUTH.coulomb)


def test_a_joint_at_rest_is_refused_by_name():
    motion = record(duration=2.0)
    still = motion.q.copy()
    still[:, 1] = 0.3
    with pytest.raises(InputError, match="elbow moves by less than"):
        identify(MODEL, [replace(motion, q=still)], KNOWN)


def test_commands_that_are_constant_or_in_degrees_are_refused():
    motion = record(duration=2.0)
    for reference, words in (
        (np.ones_like(motion.q), "are constant"),
        (np.degrees(motion.reference), "appear to be in degrees"),
    ):
        with pytest.raises(InputError, match=words):
            identify(MODEL, [replace(motion, reference=reference)], KNOWN)


def test_gains_of_unknown_joints_and_negative_gains_are_refused():
    with pytest.raises(UsageError, match=r"kp: elbo is not a joint of the robot; did you mean 'elbow'\?"):
        KnownDrives.from_gains(MODEL.joint_names, {"elbo": 1.0}, {})
    with pytest.raises(UsageError, match="kd of elbow must be a positive number, not -1"):
        KnownDrives.from_gains(MODEL.joint_names, {}, {"elbow": -1.0})
    with pytest.raises(UsageError, match="armature of wrist must be a number of 0 or more"):
        replace(TRUTH, armature=np.array([0.1, 0.1, -0.1]))


def test_a_layout_shares_values_and_reads_back_what_it_writes():
    mask = np.zeros((len(KINDS), 3), dtype=bool)
    mask[[ARMATURE, DELAY]] = True
    layout = ParameterLayout.from_mask(mask).share(DELAY, range(3))
    assert layout.count == 4
    parameters = np.array([1.0, 2.0, 3.0, 4.0])
    values = layout.write(np.zeros((len(KINDS), 3)), parameters)
    np.testing.assert_array_equal(values[DELAY], [4.0, 4.0, 4.0])
    np.testing.assert_array_equal(layout.read(values), parameters)
    assert layout.kinds.tolist() == [ARMATURE] * 3 + [DELAY]


def recording(t, q, reference):
    return ArrayRecording("r.npz", MODEL.joint_names, Chunk(t=t, q=q, reference=reference))


def test_motions_are_cut_at_gaps_and_skip_samples_without_values():
    motion = record(duration=3.0)
    q = motion.q.copy()
    q[50] = np.nan
    t = motion.t + np.where(np.arange(len(motion.t)) >= 100, 1.0, 0.0)
    parts = read_motions(recording(t, q, motion.reference), MODEL.joint_names)
    assert [len(part.t) for part in parts] == [99, len(t) - 100]
    assert all(part.source == "r.npz" for part in parts)


def test_windows_cover_the_motion_and_none_is_longer_than_the_limit():
    motion = record(duration=5.0)
    windows = list(motion.windows(1.5))
    assert all(one.t[-1] - one.t[0] <= 1.5 + 1e-9 for one in windows)
    assert [one.t[-1] for one in windows[:-1]] == [one.t[0] for one in windows[1:]]
    assert (windows[0].t[0], windows[-1].t[-1]) == (motion.t[0], motion.t[-1])


def test_a_window_is_simulated_with_the_commands_before_it():
    """A delay reaches back to them: from the true state inside a motion, the simulation is that of the whole."""
    truth = replace(TRUTH, delay=np.full(3, 0.035))
    motion = record(truth=truth, noise=0.0, duration=6.0)
    (limb,) = split_into_limbs(MODEL)
    state = InitialState.from_simulation(limb, truth, motion.part(200, len(motion.t)))
    for part in (motion.part(200, 300), motion.part(100, 400).part(100, 200).joints(MODEL.joint_names)):
        positions, _ = limb.simulate(truth, part, state.q, state.v)
        assert np.abs(positions - part.q).max() < 1e-4


def test_recordings_without_commands_or_with_too_few_samples_are_refused():
    motion = record(duration=2.0)
    with pytest.raises(InputError, match=r"r.npz: no commanded positions"):
        read_motions(ArrayRecording("r.npz", MODEL.joint_names, Chunk(t=motion.t, q=motion.q)), MODEL.joint_names)
    with pytest.raises(InputError, match="5 samples with position and reference"):
        read_motions(recording(motion.t[:5], motion.q[:5], motion.reference[:5]), MODEL.joint_names)
    with pytest.raises(InputError, match="increasing times"):
        CommandedMotion("x", MODEL.joint_names, motion.t[::-1], motion.q, motion.reference)
