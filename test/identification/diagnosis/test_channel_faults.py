# SPDX-License-Identifier: Apache-2.0
"""Stretches that are not measurements are found, reported by their cause, and left out for their joint alone."""

import numpy as np
import pytest
from support.observations import channels_of
from support.robots import joint, urdf
from support.simulated import Simulated, at_chunk_size, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.corrected import excluded_mask
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.identification.diagnosis import channel_faults
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings

ROBOT, LINK = Simulated(), Simulated(urdf(joint("j0", "base", "l1"), links=1))


@pytest.fixture(scope="module")
def healthy():
    return ROBOT.record(duration=30.0, noise=0.05)


def rested(recording, seconds=4.0):
    """The recording with some seconds at rest after 10 s, efforts exactly 0 there."""
    samples, count = recording.samples, round(100 * seconds)
    place = 1000
    rows = np.concatenate([np.arange(place), np.full(count, place), np.arange(place, len(samples))])
    tau = samples.tau[rows].copy()
    tau[place : place + count] = 0.0
    return changed(recording, rows=rows, t=np.arange(len(rows)) / 100.0, tau=tau)


def brakes(recording):
    return rested(recording)


def saturated(recording):
    limit = 0.8 * np.abs(recording.samples.tau[:, 1]).max()
    return changed(
        recording, tau=lambda tau: np.column_stack([tau[:, 0], np.clip(tau[:, 1], -limit, limit), tau[:, 2]])
    )


def dead(recording):
    tau = recording.samples.tau.copy()
    tau[500:800, 2] = tau[500, 2]
    return changed(recording, tau=tau)


def frozen(recording, joint=0, count=200):
    """The recording with one encoder that stops for a time in which the joint goes far."""
    q = recording.samples.q.copy()
    start = 200 + int(np.argmax(np.abs(q[200 + count : -200, joint] - q[200 : -200 - count, joint])))
    q[start : start + count, joint] = q[start, joint]
    return changed(recording, q=q)


FAULTS = {
    brakes: ("effort_zero_at_rest", ROBOT.joints),
    saturated: ("effort_saturated", ("elbow",)),
    dead: ("effort_frozen", ("wrist",)),
    frozen: ("encoder_frozen", ("shoulder",)),
}


def test_sound_recordings_have_no_stretches_to_leave_out(healthy):
    found = channels_of(healthy, ROBOT.model)
    assert found.findings == () and found.recordings[0].corrections == ()


def test_quantized_channels_measure(healthy):
    coarse = changed(healthy, tau=lambda tau: np.round(tau / 0.2) * 0.2, q=lambda q: np.round(q / 2e-3) * 2e-3)
    assert channels_of(coarse, ROBOT.model).findings == ()


def pick_and_place(step, noise, inertia):
    """A joint that moves between two poses for half a second and rests for 4 s, with efforts in coarse steps."""
    t = np.arange(0.0, 120.0, 0.01)
    number, since = np.divmod(t, 4.5)
    s = np.clip(since / 0.5, 0.0, 1.0)
    way, acceleration = 10 * s**3 - 15 * s**4 + 6 * s**5, (60 * s - 180 * s**2 + 120 * s**3) / 0.25
    sign = np.where(number % 2, -1.0, 1.0)
    q = 0.294 + sign * way + number % 2
    tau = inertia * sign * acceleration + 5.0 * np.sin(q) + noise * np.random.default_rng(0).normal(size=len(t))
    return ArrayRecording("pick and place", ("j0",), Chunk(t, q[:, None], None, step * np.round(tau[:, None] / step)))


@pytest.mark.parametrize("noise", [0.002, 0.005])
@pytest.mark.parametrize("inertia", [0.02, 0.2, 1.0])
def test_quantized_efforts_at_rest_are_measurements(noise, inertia):
    assert channels_of(pick_and_place(0.05, noise, inertia), LINK.model).findings == ()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("size", [64, 8192])
def test_each_fault_is_found_whatever_the_chunks(healthy, fault, size):
    code, joints = FAULTS[fault]
    (finding,) = channels_of(at_chunk_size(fault(healthy), size), ROBOT.model).findings
    assert (finding.code, finding.joints) == (code, joints)


def test_limits_are_found_after_a_conversion_of_units(healthy):
    clipped = saturated(healthy)
    converted = changed(clipped, tau=lambda tau: (tau / 3.7 + 1.0) * 3.7 - 3.7)
    assert [one.code for one in channels_of(converted, ROBOT.model).findings] == ["effort_saturated"]


def test_efforts_are_left_out_of_the_rows_of_their_joint_alone(healthy):
    (recording,) = channels_of(dead(healthy), ROBOT.model).recordings
    mask = excluded_mask(recording, ROBOT.joints, healthy.samples.t, 0.0)
    assert mask[2, 500:800].all() and mask.sum() == 300
    trials = FilteredTrials.from_recordings([recording], ROBOT.joints, {}, SignalSettings(cutoff=5.0))
    (valid,) = (np.concatenate([window.valid for window in trials], axis=1),)
    assert valid[:2].all() and not valid[2].all()
    assert trials.survey.repairs.total_dropped == 0


def test_samples_with_frozen_positions_are_left_out(healthy):
    (recording,) = channels_of(frozen(healthy), ROBOT.model).recordings
    chunk = Chunk.join(list(recording.chunks(ROBOT.joints)))
    assert 199 <= len(healthy.samples) - len(chunk) <= 201 and np.isfinite(chunk.q).all()


def test_one_interruption_of_all_encoders_counts_once(healthy):
    q = healthy.samples.q.copy()
    q[1000:1200] = q[1000]
    (finding,) = channels_of(changed(healthy, q=q), ROBOT.model).findings
    assert (finding.code, finding.severity, len(finding.joints)) == ("encoder_frozen", "warning", 3)


def test_currents_are_examined_where_efforts_are_made_of_them(healthy):
    both = changed(healthy, current=dead(healthy).samples.tau)
    assert channels_of(both, ROBOT.model).findings == ()
    (finding,) = channels_of(both, ROBOT.model, {"wrist": Drive(2.0)}).findings
    assert (finding.code, finding.joints) == ("effort_frozen", ("wrist",))


def test_most_of_a_recording_frozen_is_refused(healthy):
    (finding,) = channels_of(frozen(healthy, 1, 700), ROBOT.model).findings
    assert (finding.code, finding.severity) == ("encoder_frozen", "error")


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=5000),
        np.round(np.random.default_rng(1).normal(size=5000), 1),
        np.sign(np.sin(np.arange(5000.0))),
        np.clip(np.random.default_rng(2).normal(size=5000), -0.5, 0.3),
        np.arange(7.0),
        np.zeros(0),
    ],
)
def test_outermost_values_are_counted_as_among_all_samples(values):
    distinct, counts = np.unique(values, return_counts=True)
    every = dict(zip(distinct.tolist(), counts.tolist(), strict=True))
    outer = {number: every[number] for number in [*distinct[:6].tolist(), *distinct[-6:].tolist()]}
    assert dict(channel_faults._count_outer(values)) == outer


def test_the_memory_of_an_examination_does_not_grow_with_the_recording():
    """One chunk after the other is added: neither their number nor their samples may stay."""
    rng = np.random.default_rng(0)
    steps = channel_faults._Steps()
    for _ in range(100):
        steps.add(rng.normal(size=8192))
    held = sum(part.nbytes if part.base is None else part.base.nbytes for part in steps.parts)
    assert held <= 8 * channel_faults.MAX_STEPS
    assert steps.usual() == pytest.approx(3.09 * np.sqrt(2.0), rel=0.1)
