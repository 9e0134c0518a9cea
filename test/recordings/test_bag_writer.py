# SPDX-License-Identifier: Apache-2.0
"""Bags of BagWriter are readable by other libraries and survive a kill; errors are reported."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.metadata import dump_qos_v9
from rosbags.typesys import Stores, get_typestore
from support.processes import child, run_program, run_python
from support.recording_files import (
    JOINT_STATE,
    JOINTS,
    START,
    TOPIC,
    assert_equal,
    samples,
    text_message,
    truth,
    types,
)

import robot_dyn_id
from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.recordings.bag_writer import BagWriter, StampedSamples, definition, write_joint_state_bag

EXPECTED = truth()
QOS = Qos(
    QosHistory.KEEP_LAST,
    7,
    QosReliability.BEST_EFFORT,
    QosDurability.TRANSIENT_LOCAL,
    QosTime(1, 2),
    QosTime(3, 4),
    QosLiveliness.AUTOMATIC,
    QosTime(5, 6),
    False,
)


def write_two_topics(folder):
    """Joint states and texts in turns; returns all that was written."""
    written = []
    with BagWriter(folder) as writer:
        writer.add_topic(TOPIC, JOINT_STATE, offered_qos=dump_qos_v9([QOS]))
        for number, (log_time, data) in enumerate(EXPECTED.messages()):
            written.append((TOPIC, JOINT_STATE, log_time, data))
            if number % 7 == 0:
                written.append(("/chatter", "std_msgs/msg/String", log_time + 1, text_message(f"number {number}")))
        for message in written:
            writer.write(*message)
    return written


def test_an_independent_reader_gets_every_byte(tmp_path):
    written = write_two_topics(tmp_path / "bag")
    with AnyReader([tmp_path / "bag"]) as reader:
        found = [(c.topic, c.msgtype, log_time, data) for c, log_time, data in reader.messages()]
        assert found == written
        connection, _, data = next(reader.messages())
        assert list(reader.deserialize(data, connection.msgtype).name) == list(JOINTS)


def test_metadata_says_what_is_in_the_bag(tmp_path):
    written = write_two_topics(tmp_path / "bag")
    with Reader(tmp_path / "bag") as reader:
        assert (reader.message_count, reader.start_time) == (len(written), written[0][2])
        assert reader.end_time == written[-1][2] + 1
        joint_states, texts = reader.connections
        assert (joint_states.msgcount, texts.msgcount) == (60, len(written) - 60)
        assert joint_states.ext.offered_qos_profiles == [QOS]
        for connection in reader.connections:
            definition, _ = types().generate_msgdef(connection.msgtype, ros_version=2)
            assert connection.msgdef.data == definition
            assert connection.digest == types().hash_rihs01(connection.msgtype)
    information = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert information["version"] == 9
    assert information["relative_file_paths"] == ["bag_0.mcap"]
    assert information["files"][0]["message_count"] == len(written)
    assert "&" not in (tmp_path / "bag" / "metadata.yaml").read_text()  # rosbag2 knows no YAML references


def test_the_mcap_file_alone_is_a_ros2_recording(tmp_path):
    written = write_two_topics(tmp_path / "bag")
    with (tmp_path / "bag" / "bag_0.mcap").open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_header().profile == "ros2"
        found = [(c.topic, s.name, m.log_time, m.data) for s, c, m in reader.iter_messages()]
        assert found == written
        summary = reader.get_summary()
        assert summary.statistics.message_count == len(written)
        assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}
        (channel, *_) = summary.channels.values()
        assert yaml.safe_load(channel.metadata["offered_qos_profiles"]) == dump_qos_v9([QOS])
        ((name, inner),) = [(m.name, m.metadata["serialized_metadata"]) for m in reader.iter_metadata()]
    outer = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())
    assert (name, yaml.safe_load(inner)) == ("rosbag2", outer["rosbag2_bagfile_information"])


def test_our_own_reader(tmp_path):
    write_two_topics(tmp_path / "bag")
    assert_equal(samples(open_recording(tmp_path / "bag")), EXPECTED)


def test_the_built_in_definition_of_joint_states_is_that_of_rosbags():
    types = get_typestore(Stores.ROS2_JAZZY)
    assert definition(JOINT_STATE) == (
        types.generate_msgdef(JOINT_STATE, ros_version=2)[0],
        types.hash_rihs01(JOINT_STATE),
    )


@pytest.mark.slow
def test_joint_states_are_written_and_read_without_rosbags(tmp_path):
    """Where only packages of rosdep and mcap are installed."""
    code = (
        "import sys; sys.modules['rosbags'] = sys.modules['rosbags.typesys'] = None\n"
        "import numpy as np\n"
        "from robot_dyn_id.errors import InputError\n"
        "from robot_dyn_id.recordings import open_recording\n"
        "from robot_dyn_id.recordings.bag_writer import StampedSamples, definition, write_joint_state_bag\n"
        "samples = StampedSamples(np.arange(3) * 1000000, np.ones((3, 1)))\n"
        "write_joint_state_bag(sys.argv[1], '/joint_states', ['a'], samples)\n"
        "print(sum(len(chunk) for chunk in open_recording(sys.argv[1]).chunks(['a'])))\n"
        "try:\n    definition('std_msgs/msg/String')\n"
        "except InputError as error:\n    print(error)\n"
    )
    done = run_python(code, tmp_path / "bag")
    assert done.returncode == 0, done.stderr
    count, refusal = done.stdout.splitlines()
    assert count == "3"
    assert "install rosbags" in refusal


def test_a_type_of_ones_own(tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        writer.add_topic("/own", "own_msgs/msg/Own", schema="float64 value\n", type_hash="RIHS01_" + "a" * 64)
        writer.write("/own", "own_msgs/msg/Own", 1, b"\x00\x01\x00\x00" + bytes(8))
        with pytest.raises(InputError, match="strange_msgs/msg/Strange: unknown message type"):
            writer.write("/strange", "strange_msgs/msg/Strange", 1, b"")
    with Reader(tmp_path / "bag") as reader:
        (connection,) = reader.connections
        assert connection.msgdef.data == "float64 value\n"
        assert connection.digest == "RIHS01_" + "a" * 64


def test_an_empty_bag(tmp_path):
    BagWriter(tmp_path / "bag").close()
    with Reader(tmp_path / "bag") as reader:
        assert reader.message_count == 0
    with pytest.raises(
        InputError, match="holds no topic at all, its recorder was ended before the first message; record it again"
    ):
        open_recording(tmp_path / "bag")


def test_an_error_amid_writing_leaves_a_whole_bag(tmp_path):
    with pytest.raises(RuntimeError), BagWriter(tmp_path / "bag") as writer:
        writer.write(TOPIC, JOINT_STATE, START, EXPECTED.messages()[0][1])
        raise RuntimeError
    assert len(samples(open_recording(tmp_path / "bag"))) == 1
    writer.close()  # again


@pytest.mark.parametrize("there", ["folder", "file", "parent is a file"])
def test_nothing_is_overwritten(tmp_path, there):
    path = tmp_path / "bag"
    if there == "folder":
        path.mkdir()
    else:
        path.write_text("precious")
    target = path / "bag" if there == "parent is a file" else path
    with pytest.raises(InputError, match=r"exists, and nothing is overwritten|cannot be created") as caught:
        BagWriter(target)
    assert str(caught.value).startswith(str(target))
    assert path.is_dir() or path.read_text() == "precious"


def test_folders_above_are_made(tmp_path):
    BagWriter(tmp_path / "runs" / "today" / "bag").close()
    assert (tmp_path / "runs" / "today" / "bag" / "bag_0.mcap").exists()


def test_half_a_second_reaches_the_disk_without_close(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    writer = BagWriter(tmp_path / "bag")
    for number, (log_time, data) in enumerate(EXPECTED.messages()):
        now[0] = 100.0 + 0.05 * number
        writer.write(TOPIC, JOINT_STATE, log_time, data)
        assert number - len(samples(open_recording(tmp_path / "bag"))) < 10
    writer.flush()
    recording = open_recording(tmp_path / "bag")
    assert_equal(samples(recording), EXPECTED)
    (finding,) = recording.findings(JOINTS)
    assert finding.code == "file_damaged" and "bag_0.mcap is not finished" in finding.message
    writer.close()


RECORD = """
import sys, time
from robot_dyn_id.recordings.bag_writer import BagWriter
from robot_dyn_id.recordings.joint_states import encode
import numpy as np
writer = BagWriter(sys.argv[1])
start = time.monotonic()
for number in range(10**6):
    while time.monotonic() - start < number * 0.001:
        time.sleep(0.0005)
    stamp, value = np.array([number * 10**6]), np.array([[float(number)]])
    (message,) = encode(["a"], stamp, value, None, None)
    writer.write("/joint_states", "sensor_msgs/msg/JointState", number, message)
    print(number, flush=True)
"""


@pytest.mark.parametrize("moment", [0.3, 0.8, 1.3])
def test_a_killed_writer_loses_less_than_a_second(tmp_path, moment):
    home = Path(robot_dyn_id.__file__).parents[1]
    command = [sys.executable, "-c", RECORD, str(tmp_path / "bag")]
    with child(command, cwd=home, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        written = len(process.stdout.read().splitlines())
    chunk = samples(open_recording(tmp_path / "bag"), ("a",))
    np.testing.assert_array_equal(chunk.q[:, 0], np.arange(len(chunk)))
    assert written - len(chunk) < 1000


@pytest.mark.slow
def test_a_disk_that_refuses(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))"
    ignore = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    code = f"""{limit}; {ignore}
import sys
sys.path.insert(0, sys.argv[2])
from support.recording_files import JOINT_STATE, TOPIC, truth
from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.bag_writer import BagWriter
messages = truth(5000).messages()
with BagWriter(sys.argv[1]) as writer:
    for repeat in range(2):
        try:
            for log_time, data in messages:
                writer.write(TOPIC, JOINT_STATE, log_time, data)
        except InputError as error:
            print(error)
"""
    home = Path(robot_dyn_id.__file__).parents[1]
    command = [sys.executable, "-c", code, str(tmp_path / "bag"), str(Path(__file__).parents[1])]
    output = run_program(*command, cwd=home, check=True).stdout
    line = f"{tmp_path / 'bag'}: cannot be written (File too large); what was written before stays"
    assert output.splitlines() == [line, line]
    assert sorted(os.listdir(tmp_path / "bag")) == ["bag_0.mcap", "metadata.yaml"]
    long = truth(5000)
    chunk = samples(open_recording(tmp_path / "bag"))
    assert len(chunk) > 1000
    assert_equal(chunk, long, slice(0, len(chunk)))


LOSSES = {
    "file removed": lambda path: path.unlink(),
    "folder removed": lambda path: shutil.rmtree(path.parent),
    "folder renamed": lambda path: path.parent.rename(path.parent.with_name("elsewhere")),
    "replaced": lambda path: shutil.copy(path, path.with_name("copy")) and path.with_name("copy").replace(path),
    "truncated": lambda path: os.truncate(path, 1000),
    "appended to": lambda path: path.open("ab").write(b"more"),
}
"""Changes of the file of a bag by others, which the system does not report to its writer."""


@pytest.mark.parametrize("more", [0, 1, 3000], ids=["nothing more", "one more", "more than a chunk"])
@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_file_that_others_take_away_or_change_is_reported_at_the_next_flush(tmp_path, lose, more):
    messages = truth(4000).messages()
    writer = BagWriter(tmp_path / "bag")
    for log_time, data in messages[:1000]:
        writer.write(TOPIC, JOINT_STATE, log_time, data)
    writer.flush()
    assert writer.stored(TOPIC) == 1000 == len(samples(open_recording(tmp_path / "bag")))
    lose(tmp_path / "bag" / "bag_0.mcap")
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "bag" / "bag_0.mcap"))) as error:
        for log_time, data in messages[1000 : 1000 + more]:
            writer.write(TOPIC, JOINT_STATE, log_time, data)
        writer.flush()
    assert writer.stored(TOPIC) == 0
    with pytest.raises(InputError, match=re.escape(str(error.value))):
        writer.flush()
    writer.close()


def test_a_file_that_is_removed_before_the_bag_is_finished_is_reported(tmp_path):
    with pytest.raises(InputError, match="was removed or renamed"), BagWriter(tmp_path / "bag") as writer:
        writer.write(TOPIC, JOINT_STATE, *EXPECTED.messages()[0])
        (tmp_path / "bag" / "bag_0.mcap").unlink()
    assert writer.stored(TOPIC) == 0


@pytest.mark.parametrize(("velocity", "effort"), [(True, True), (False, True), (True, False), (False, False)])
def test_simulated_joint_states(tmp_path, velocity, effort):
    long = truth(2500)
    fields = long.dq if velocity else None, long.tau if effort else None
    write_joint_state_bag(tmp_path / "bag", "/sim/joint_states", JOINTS, StampedSamples(long.stamps, long.q, *fields))
    with AnyReader([tmp_path / "bag"]) as reader:
        for row, (connection, log_time, data) in enumerate(reader.messages()):
            message = reader.deserialize(data, connection.msgtype)
            assert log_time == long.stamps[row]
            assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == log_time
            assert tuple(message.name) == JOINTS
            for found, values in zip(
                (message.position, message.velocity, message.effort), (long.q, *fields), strict=True
            ):
                assert found.tolist() == ([] if values is None else values[row].tolist())
        assert row == 2499
    recording = open_recording(tmp_path / "bag")
    assert recording.topic == "/sim/joint_states"
    np.testing.assert_array_equal(samples(recording).q, long.q)


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ("", "killed: holds no topic at all, its recorder was ended before the first message"),
        ("bag.flush()", "killed: holds no topic at all, its recorder was ended before the first message"),
    ],
    ids=["nothing", "head"],
)
def test_a_bag_whose_recorder_was_killed_before_the_first_message_says_so(tmp_path, done, words):
    code = (
        "import os, signal, sys\nfrom robot_dyn_id.recordings.bag_writer import BagWriter\n"
        f"bag = BagWriter(sys.argv[1])\n{done}\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    run_python(code, tmp_path / "killed")
    with pytest.raises(InputError, match=words) as error:
        open_recording(tmp_path / "killed")
    assert "was ended before the first message; record it again" in str(error.value)
    assert "\n" not in str(error.value)
