# SPDX-License-Identifier: Apache-2.0
"""Faulty messages are repaired, or dropped and counted, identically in every pass."""

import numpy as np
import pytest
from mcap.writer import CompressionType
from support.recording_files import (
    JOINTS,
    SECOND,
    START,
    assert_equal,
    joint_state,
    samples,
    truth,
    types,
    write_bag,
    write_mcap,
)

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import open_recording

EXPECTED = truth()
Q, DQ, TAU = EXPECTED.q, EXPECTED.dq, EXPECTED.tau


def read(tmp_path, messages, log_times=None):
    """A recording of these CDR messages; arrival times are seconds, unlike any stamp."""
    times = range(SECOND, SECOND * (len(messages) + 1), SECOND) if log_times is None else log_times
    return open_recording(write_mcap(tmp_path / "bag.mcap", zip(times, messages, strict=True)))


def good(row, **options):
    return joint_state(int(EXPECTED.stamps[row]), JOINTS, Q[row], DQ[row], TAU[row], **options)


def checked(recording, dropped, joints=JOINTS):
    """Samples of a recording of which two passes agree and drop the given messages."""
    first, second = samples(recording, joints), samples(recording, joints)
    for name in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert dict(recording.dropped(joints)) == dropped
    return first


def test_big_endian_messages(tmp_path):
    recording = read(tmp_path, [good(row, little_endian=row % 3 == 0) for row in range(60)])
    assert_equal(checked(recording, {}), EXPECTED)


def test_frame_ids_of_changing_length(tmp_path):
    recording = read(tmp_path, [good(row, frame_id=f"count {7**row}") for row in range(60)])
    assert_equal(checked(recording, {}), EXPECTED)


def test_what_rclpy_sends_with_its_rubbish_in_the_gaps(tmp_path):
    serialization = pytest.importorskip("rclpy.serialization")
    messages = []
    for row in range(60):
        message = pytest.importorskip("sensor_msgs.msg").JointState(name=JOINTS, position=Q[row], effort=TAU[row])
        message.header.frame_id = "a" * (row % 5)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(int(EXPECTED.stamps[row]), SECOND)
        messages.append(bytes(serialization.serialize_message(message)))
    chunk = samples(read(tmp_path, messages))
    np.testing.assert_array_equal(chunk.tau, TAU)
    np.testing.assert_array_equal(chunk.q, Q)
    assert chunk.dq is None


def test_padding_may_hold_anything(tmp_path):
    rng = np.random.default_rng(1)
    # Stamp 0:8, frame_id 8:13, gap 13:16, number of names 16:20, "shoulder" 24:33, gap 33:36, ...
    messages = [bytearray(good(row)) for row in range(60)]
    for message in messages:
        message[4 + 13 : 4 + 16] = rng.bytes(3)
        message[4 + 33 : 4 + 36] = rng.bytes(3)
        message += rng.bytes(int(rng.integers(0, 9)))
    assert_equal(checked(read(tmp_path, [bytes(message) for message in messages]), {}), EXPECTED)


def test_our_decoder_agrees_with_that_of_rosbags(tmp_path):
    rng = np.random.default_rng(2)
    messages, expected = [], []
    for row in range(300):
        order = rng.permutation(5)
        names = [f"joint{'x' * (j % 4)}{j}" for j in order]
        data = joint_state(START + row, names, *rng.normal(size=(3, 5)), "f" * rng.integers(9), row % 2 == 0)
        message = types().deserialize_cdr(data, "sensor_msgs/msg/JointState")
        messages.append(data)
        expected.append([message.effort[message.name.index(name)] for name in ("joint0", "jointxx2")])
    recording = read(tmp_path, messages)
    np.testing.assert_array_equal(samples(recording, ("joint0", "jointxx2")).tau, expected)


@pytest.mark.parametrize(("velocity", "effort"), [(False, True), (True, False), (False, False)])
def test_fields_that_are_empty_throughout_are_none(tmp_path, velocity, effort):
    messages = [
        joint_state(int(stamp), JOINTS, q, dq if velocity else (), tau if effort else ())
        for stamp, q, dq, tau in zip(EXPECTED.stamps, Q, DQ, TAU, strict=True)
    ]
    chunk = samples(read(tmp_path, messages))
    np.testing.assert_array_equal(chunk.q, Q)
    assert (chunk.dq is not None, chunk.tau is not None) == (velocity, effort)


def test_fields_that_are_empty_at_times_are_nan_there(tmp_path):
    messages = [
        joint_state(
            int(EXPECTED.stamps[row]),
            JOINTS,
            Q[row],
            DQ[row] if row > 40 else (),
            TAU[row] if row % 2 else (),
        )
        for row in range(60)
    ]
    chunk = checked(read(tmp_path, messages), {})
    np.testing.assert_array_equal(chunk.dq, np.where(np.arange(60)[:, None] > 40, DQ, np.nan))
    np.testing.assert_array_equal(chunk.tau, np.where(np.arange(60)[:, None] % 2, TAU, np.nan))


def test_nan_stays_and_infinity_becomes_nan(tmp_path):
    messages = [good(row) for row in range(60)]
    messages[3] = joint_state(int(EXPECTED.stamps[3]), JOINTS, (np.nan, 1e154, 2.0), DQ[3], (np.inf, -np.inf, 0.0))
    chunk = checked(read(tmp_path, messages), {})
    np.testing.assert_array_equal(chunk.q[3], (np.nan, 1e154, 2.0))
    np.testing.assert_array_equal(chunk.tau[3], (np.nan, np.nan, 0.0))


def test_names_in_another_order_at_times(tmp_path):
    messages = []
    for row in range(60):
        order = np.random.default_rng(row).permutation(3)
        names = [JOINTS[joint] for joint in order]
        messages.append(joint_state(int(EXPECTED.stamps[row]), names, Q[row, order], DQ[row, order], TAU[row, order]))
    assert_equal(checked(read(tmp_path, messages), {}), EXPECTED)


def test_other_publishers_are_skipped_and_parts_are_counted(tmp_path):
    messages = []
    for row in range(60):
        messages += [good(row), joint_state(START + row, ("finger",), (1.0,))]
        if row % 20 == 0:
            messages.append(joint_state(START + row, ("elbow", "finger"), (1.0, 2.0)))
    recording = read(tmp_path, messages)
    assert recording.joint_names == (*JOINTS, "finger")
    assert_equal(checked(recording, {"only some of the joints": 3}), EXPECTED)
    (finding,) = recording.findings(JOINTS)
    assert finding.code == "samples_dropped"
    assert finding.message.endswith("/joint_states: 3 messages dropped: only some of the joints")
    assert len(samples(recording, ("finger",))) == 63
    assert len(samples(recording, ("elbow",))) == 63
    assert recording.dropped(("finger",)) == {}


def test_a_wide_message_serves_some_of_its_joints(tmp_path):
    wide = joint_state(int(EXPECTED.stamps[1]), ("finger", *JOINTS), (9, *Q[1]), (9, *DQ[1]), (9, *TAU[1]))
    messages = [good(row) for row in range(60)]
    messages[1] = wide
    assert_equal(checked(read(tmp_path, messages), {}), EXPECTED)


def test_joints_that_never_come_together_are_refused(tmp_path):
    messages = [joint_state(START + 2 * row, ("left",), (1.0,)) for row in range(5)]
    messages += [joint_state(START + 2 * row + 1, ("right",), (1.0,)) for row in range(5)]
    recording = read(tmp_path, messages)
    with pytest.raises(
        InputError, match=r"bag.mcap: no usable message on /joint_states holds all of left, right; 10 m"
    ):
        samples(recording, ("left", "right"))


BROKEN = {
    "arrays do not fit the joint names": [
        joint_state(START, JOINTS, (1.0, 2.0)),
        joint_state(START, JOINTS, ()),
        joint_state(START, JOINTS, (1, 2, 3), (1, 2)),
        joint_state(START, JOINTS, (1, 2, 3), (), (1, 2, 3, 4)),
        joint_state(START, (*JOINTS, "elbow"), (1, 2, 3, 4)),
    ],
    "not a JointState in CDR": [
        b"",
        b"\x00",
        b"\x00\x01\x00\x00",
        b"\x00\x07" + good(0)[2:],
        good(0)[:-1],
        good(0)[:40],
        b"\x00\x01\x00\x00" + b"\xff" * 200,
        good(0).replace(b"elbow", b"\xff\xfe\xfd\xfc\xfb"),
        b"just some text",
    ],
}


@pytest.mark.parametrize(("reason", "which"), [(reason, n) for reason, bad in BROKEN.items() for n in range(len(bad))])
@pytest.mark.parametrize("place", [0, 30, 59])
def test_broken_messages_are_counted(tmp_path, reason, which, place):
    messages = [good(row) for row in range(60)]
    messages.insert(place, BROKEN[reason][which])
    recording = read(tmp_path, messages)
    chunk = checked(recording, {reason: 1})
    np.testing.assert_array_equal(chunk.q, Q)
    # The first stamp counts from zero, whether it came with a broken message or not.
    np.testing.assert_allclose(np.diff(chunk.t), np.diff(EXPECTED.t), atol=1e-15)
    assert [one.code for one in recording.findings(JOINTS)] == ["samples_dropped"]


def test_nothing_but_broken_messages(tmp_path):
    with pytest.raises(InputError, match=r"no usable JointState message on /joint_states: 9 messages dropped: not a J"):
        read(tmp_path, BROKEN["not a JointState in CDR"])


def restamped(stamps):
    return [joint_state(int(stamp), JOINTS, Q[row], DQ[row], TAU[row]) for row, stamp in enumerate(stamps)]


def seconds(recording):
    return samples(recording).t


def test_a_missing_stamp_is_dropped_and_counted(tmp_path):
    for row in (1, 30, 59):
        stamps = EXPECTED.stamps.copy()
        stamps[row] = 0
        recording = read(tmp_path, restamped(stamps))
        rows = np.delete(np.arange(60), row)
        assert_equal(checked(recording, {"stamp missing (zero)": 1}), EXPECTED, rows)
        assert [one.code for one in recording.findings(JOINTS)] == ["samples_dropped"]


def test_a_missing_first_stamp_does_not_become_the_epoch(tmp_path):
    stamps = EXPECTED.stamps.copy()
    stamps[0] = 0
    recording = read(tmp_path, restamped(stamps))
    assert recording.epoch == EXPECTED.stamps[1]
    assert checked(recording, {"stamp missing (zero)": 1}).t[0] == 0.0


@pytest.mark.parametrize("zeros", [1, 2])
def test_a_clock_that_starts_at_zero_is_meant(tmp_path, zeros):
    stamps = np.maximum(0, (np.arange(60) - zeros + 1) * 33_000_000)
    recording = read(tmp_path, restamped(stamps))
    assert recording.epoch == 0
    checked(recording, {})
    np.testing.assert_array_equal(seconds(recording), stamps / SECOND)


def test_a_zero_late_on_a_clock_that_started_at_zero_is_missing(tmp_path):
    stamps = np.arange(60) * 100_000_000
    stamps[50] = 0
    recording = read(tmp_path, restamped(stamps))
    checked(recording, {"stamp missing (zero)": 1})
    np.testing.assert_array_equal(seconds(recording), np.delete(stamps, 50) / SECOND)


def test_backward_and_repeated_stamps_stay_as_they_are(tmp_path):
    stamps = EXPECTED.stamps.copy()
    stamps[20:30] -= SECOND
    stamps[40] = stamps[39]
    recording = read(tmp_path, restamped(stamps))
    checked(recording, {})
    np.testing.assert_array_equal(seconds(recording), (stamps - stamps[0]) / SECOND)


@pytest.mark.parametrize("stamps", ["zero", "constant", "nearly zero"])
def test_arrival_times_serve_where_stamps_stand_still(tmp_path, stamps):
    values = np.full(200, START if stamps == "constant" else 0)
    values[77] += SECOND * (stamps == "nearly zero")
    q = np.random.default_rng(0).normal(size=(200, 3))
    messages = [joint_state(int(stamp), JOINTS, row) for stamp, row in zip(values, q, strict=True)]
    arrivals = START + np.arange(200) * 1_000_000
    recording = read(tmp_path, messages, arrivals.tolist())
    chunk = samples(recording)
    np.testing.assert_array_equal(chunk.q, q)
    np.testing.assert_array_equal(chunk.t, (arrivals - arrivals[0]) / SECOND)
    assert recording.epoch == START
    assert recording.dropped(JOINTS) == {}
    assert [one.code for one in recording.findings(JOINTS)] == ["stamps_constant"]


def test_a_single_message(tmp_path):
    for stamp in (0, START):
        recording = read(tmp_path, [joint_state(stamp, JOINTS, Q[0])])
        assert recording.epoch == stamp
        np.testing.assert_array_equal(seconds(recording), [0.0])
        assert recording.findings(JOINTS) == ()


def test_stamps_far_from_zero_keep_every_nanosecond(tmp_path):
    stamps = np.array([2_147_483_646 * SECOND + 999_999_999, 2_147_483_647 * SECOND + 1, -5, -2_000_000_000 * SECOND])
    recording = read(tmp_path, restamped(stamps))
    np.testing.assert_array_equal(seconds(recording), (stamps - stamps[0]) / SECOND)


def test_faults_are_the_same_in_batches_of_any_mixture(tmp_path):
    """Thousands of messages, so that faults fall on batch borders too; sqlite and mcap agree."""
    rng = np.random.default_rng(5)
    long = truth(5000)
    messages = long.messages()
    faulty = rng.random(5000) < 0.05
    for row in np.flatnonzero(faulty):
        bad = [
            BROKEN["not a JointState in CDR"][4],
            joint_state(0, JOINTS, (1, 2, 3)),
            BROKEN[next(iter(BROKEN))][0],
        ]
        messages[row] = (messages[row][0], bad[row % 3])
    counts = np.bincount(np.flatnonzero(faulty) % 3)
    expected = {
        "not a JointState in CDR": counts[0],
        "stamp missing (zero)": counts[1],
        "arrays do not fit the joint names": counts[2],
    }
    for path in (
        write_bag(tmp_path / "bag", messages),
        write_mcap(tmp_path / "bag.mcap", messages, CompressionType.ZSTD, 100_000),
    ):
        chunk = checked(open_recording(path), expected)
        np.testing.assert_array_equal(chunk.q, long.q[~faulty])
