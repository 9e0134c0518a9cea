# SPDX-License-Identifier: Apache-2.0
"""Channels of several topics with rates and clocks of their own, merged on their stamps."""

import numpy as np
import pytest
from support.driver_messages import LATENCY, header, message, stamped, write_topics
from support.recording_files import SECOND, START, samples

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.recordings import ColumnMeaning, open_recording
from robot_dyn_id.recordings.wrenches import open_wrench

JOINTS = ("shoulder", "elbow")
FAST = START + np.arange(400) * SECOND // 100  # 4 s at 100 Hz
JOINT_STATE, TEMPERATURE = "sensor_msgs/msg/JointState", "sensor_msgs/msg/Temperature"


def seconds(stamps):
    return (np.asarray(stamps) - START) * 1e-9


def line(t, joint):
    """A signal that linear interpolation reproduces exactly."""
    return 30.0 + 2.0 * joint + 0.5 * t


def joint_states(field="position", names=JOINTS, offset=0):
    def make(row, stamp):
        values = np.array([line(seconds(stamp - offset), JOINTS.index(name)) for name in names])
        fields = {"position": np.zeros(len(names)), field: values}
        return message(JOINT_STATE, header=header(stamp), name=list(names), **fields)

    return make


def temperature(joint, offset=0):
    return lambda row, stamp: message(
        TEMPERATURE, header=header(stamp), temperature=float(line(seconds(stamp - offset), joint))
    )


def bag(folder, **topics):
    """Joint states at 100 Hz and other topics by name."""
    motion = {"/joint_states": (JOINT_STATE, stamped(FAST, joint_states()))}
    return write_topics(folder, motion | {f"/{name}": held for name, held in topics.items()})


def codes(recording):
    return [finding.code for finding in recording.findings(JOINTS)]


def test_temperatures_at_one_hertz_one_topic_per_joint(tmp_path):
    slow = START + np.arange(4) * SECOND + SECOND // 2  # from 0.5 s to 3.5 s
    path = bag(
        tmp_path / "bag",
        first=(TEMPERATURE, stamped(slow, temperature(0))),
        second=(TEMPERATURE, stamped(slow, temperature(1))),
    )
    topics = {"temperature": {"shoulder": "/first", "elbow": "/second"}}
    recording = open_recording(path, channel_topics=topics)
    chunk = samples(recording, JOINTS)
    held = np.clip(chunk.t, 0.5, 3.5)  # the ends hold
    np.testing.assert_allclose(chunk.temperature, np.stack([line(held, 0), line(held, 1)], axis=1), rtol=1e-12)
    assert codes(recording) == ["channels_merged", "channels_merged"]
    assert "1 Hz, longest gap 1 s" in recording.findings(JOINTS)[0].message
    with pytest.raises(InputError, match="temperature of elbow is not on /first"):
        samples(open_recording(path, channel_topics={"temperature": {"shoulder": "/first"}}), JOINTS)


def test_a_field_of_joint_states_and_an_array_without_stamps(tmp_path):
    slow = START + np.arange(41) * SECOND // 10

    def array(row, stamp):
        return message("std_msgs/msg/Float64MultiArray", data=np.array([line(seconds(stamp), j) for j in (0, 1)]))

    path = bag(
        tmp_path / "bag",
        warmth=(JOINT_STATE, stamped(slow, joint_states("effort", JOINTS[::-1]))),
        plain=("std_msgs/msg/Float64MultiArray", stamped(slow, array)),
    )
    for topic in ("/warmth:effort", "/plain"):
        recording = open_recording(path, channel_topics={"temperature": topic}, columns=ColumnMeaning(JOINTS))
        chunk = samples(recording, JOINTS)
        expected = np.stack([line(chunk.t, 0), line(chunk.t, 1)], axis=1)
        np.testing.assert_allclose(chunk.temperature, expected, atol=1e-9, err_msg=topic)
    with pytest.raises(InputError, match="/warmth is a JointState, which has no temperature: name the field"):
        open_recording(path, channel_topics={"temperature": "/warmth"})
    with pytest.raises(UsageError, match="unknown field mass"):
        open_recording(path, channel_topics={"temperature": "/warmth:mass"})
    with pytest.raises(UsageError, match="channel humidity"):
        open_recording(path, channel_topics={"humidity": "/warmth"})


def test_currents_at_500_hertz_are_not_interpolated_across_gaps(tmp_path):
    fast = START + np.arange(2000) * SECOND // 500
    fast = fast[(seconds(fast) < 1.0) | (seconds(fast) > 1.2)]
    fast = fast[seconds(fast) < 3.5]
    path = bag(tmp_path / "bag", motors=(JOINT_STATE, stamped(fast, joint_states("effort"))))
    chunk = samples(open_recording(path, channel_topics={"current": "/motors:effort"}), JOINTS)
    known = ((chunk.t < 1.0) | (chunk.t > 1.2)) & (chunk.t < 3.5)
    assert np.isnan(chunk.current[~known]).all() and (~known).sum() == 20 + 50 + 1
    expected = np.stack([line(chunk.t, 0), line(chunk.t, 1)], axis=1)
    np.testing.assert_allclose(chunk.current[known], expected[known], rtol=1e-12)


@pytest.mark.parametrize("ahead", [7.25, -3600.0])
def test_clocks_that_disagree_are_measured_named_and_corrected_for_temperatures_alone(tmp_path, ahead):
    offset = int(ahead * SECOND)
    slow = START + np.arange(-1, 6) * SECOND
    topics = {
        name: (kind, [(stamp + LATENCY, make(0, int(stamp) + offset)) for stamp in slow])
        for name, kind, make in (
            ("first", TEMPERATURE, temperature(0, offset)),
            ("motors", JOINT_STATE, joint_states("effort", offset=offset)),
        )
    }
    path = bag(tmp_path / "bag", **topics)
    recording = open_recording(path, channel_topics={"temperature": "/motors:effort"})
    chunk = samples(recording, JOINTS)
    np.testing.assert_allclose(chunk.temperature, np.stack([line(chunk.t, 0), line(chunk.t, 1)], axis=1), atol=1e-6)
    (finding,) = (finding for finding in recording.findings(JOINTS) if finding.code == "clocks_differ")
    assert f"{abs(ahead):.3f} s {'ahead of' if ahead > 0 else 'behind'}" in finding.message
    with pytest.raises(InputError, match=rf"{abs(ahead):.3f} s .*: its current cannot be merged with the motion"):
        open_recording(path, channel_topics={"current": "/motors:effort"})


def test_efforts_of_another_topic_bring_their_unit(tmp_path):
    def franka(row, stamp):
        measured = joint_states("effort")(row, stamp)
        return message("franka_msgs/msg/FrankaRobotState", header=header(stamp), measured_joint_state=measured)

    kind = "franka_msgs/msg/FrankaRobotState"
    path = bag(
        tmp_path / "bag", state=(kind, stamped(FAST, franka)), drives=(JOINT_STATE, stamped(FAST, joint_states()))
    )
    for topic, efforts, torque in (("joint_states", "/state", True), ("state", "/drives:position", False)):
        recording = open_recording(path, topic, channel_topics={"effort": efforts})
        chunk = samples(recording, JOINTS)
        np.testing.assert_allclose(chunk.tau[:, 1], line(chunk.t, 1), atol=1e-9)
        assert recording.effort_is_torque is torque


def test_efforts_without_stamps_are_refused(tmp_path):
    def array(row, stamp):
        return message("std_msgs/msg/Float64MultiArray", data=np.zeros(2))

    path = bag(tmp_path / "bag", efforts=("std_msgs/msg/Float64MultiArray", stamped(FAST, array)))
    with pytest.raises(InputError, match="/efforts has no time stamps: its effort cannot be merged"):
        open_recording(path, channel_topics={"effort": "/efforts"}, columns=ColumnMeaning(JOINTS))


def test_a_reference_on_another_clock_is_reported(tmp_path):
    late = [(stamp + LATENCY, joint_states()(0, int(stamp) + SECOND // 4)) for stamp in FAST]
    path = bag(tmp_path / "bag", wanted=(JOINT_STATE, late))
    assert codes(open_recording(path, reference_topic="/wanted")) == ["clocks_differ"]
    assert codes(open_recording(path, "/joint_states", "/joint_states")) == []


def test_simulated_time_that_runs_slowly_is_no_difference_of_clocks(tmp_path):
    """Arrival in wall time, three times slower than the stamps; the topics begin and end at other times."""

    def arriving(stamps, make):
        return [(START + 3 * (int(stamp) - START) + LATENCY, make(0, int(stamp))) for stamp in stamps]

    topics = {
        "/joint_states": (JOINT_STATE, arriving(FAST, joint_states())),
        "/motors": (JOINT_STATE, arriving(FAST[100::5], joint_states("effort"))),
    }
    recording = open_recording(write_topics(tmp_path / "bag", topics), channel_topics={"current": "/motors:effort"})
    assert codes(recording) == ["channels_merged"]


# --- Wrenches -------------------------------------------------------------------------------------------------


def wrenches(offset=0):
    def make(row, stamp):
        force, torque = ([line(seconds(stamp - offset), 3 * part + axis) for axis in range(3)] for part in (0, 1))
        point = "geometry_msgs/msg/Vector3"
        values = {
            name: message(point, **dict(zip("xyz", map(float, value), strict=True)))
            for name, value in (("force", force), ("torque", torque))
        }
        content = message("geometry_msgs/msg/Wrench", **values)
        return message("geometry_msgs/msg/WrenchStamped", header=header(stamp, "ft_frame"), wrench=content)

    return make


def test_wrenches_at_500_hertz_keep_their_rate_and_count_from_the_joints_start(tmp_path):
    fast = START - SECOND // 4 + np.arange(2000) * SECOND // 500
    path = bag(tmp_path / "bag", ft=("geometry_msgs/msg/WrenchStamped", stamped(fast[::-1], wrenches())))
    wrench = open_wrench(path, open_recording(path))
    np.testing.assert_allclose(wrench.t, seconds(fast), atol=1e-9)
    np.testing.assert_allclose(wrench.wrench[[3, 4, 5, 0, 1, 2]].T[:, 2], line(wrench.t, 2), atol=1e-7)


def test_wrenches_on_another_clock_or_without_stamps_are_refused(tmp_path):
    kind = "geometry_msgs/msg/WrenchStamped"
    late = [(stamp + LATENCY, wrenches()(0, int(stamp) + SECOND)) for stamp in FAST]
    path = bag(tmp_path / "late", ft=(kind, late))
    with pytest.raises(InputError, match=r"clock of /ft is 1\.000 s ahead of that of /joint_states"):
        open_wrench(path, open_recording(path))
    path = bag(tmp_path / "unstamped", ft=(kind, [(stamp, wrenches()(0, 0)) for stamp in FAST]))
    with pytest.raises(InputError, match="/ft has no time stamps"):
        open_wrench(path, open_recording(path))
