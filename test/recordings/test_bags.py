# SPDX-License-Identifier: Apache-2.0
"""Bags of every kind, read value by value; topics; folders."""

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard
from mcap.writer import CompressionType
from rosbags.rosbag2 import CompressionFormat, CompressionMode
from rosbags.rosbag2 import Writer as Bag
from support.recording_files import (
    JOINT_STATE,
    JOINTS,
    TOPIC,
    assert_equal,
    joint_state,
    samples,
    text_message,
    truth,
    types,
    write_bag,
    write_mcap,
)

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.recordings.bag_writer import BagWriter, StampedSamples, write_joint_state_bag

EXPECTED = truth()


def own(folder):
    write_joint_state_bag(folder, TOPIC, JOINTS, StampedSamples(EXPECTED.stamps, EXPECTED.q, EXPECTED.dq, EXPECTED.tau))
    return folder


def compressed(folder, mode):
    bag = Bag(folder, version=9)
    bag.set_compression(mode, CompressionFormat.ZSTD)
    with bag:
        connection = bag.add_connection(TOPIC, JOINT_STATE, typestore=types())
        for log_time, data in EXPECTED.messages():
            bag.write(connection, log_time, data)
    return folder


def without_metadata(folder):
    (folder / "metadata.yaml").unlink()
    return folder


def bare(folder):
    return next(path for path in folder.iterdir() if path.suffix != ".yaml")


def packed_mcap(path):
    plain = write_mcap(path.with_suffix(".mcap"), EXPECTED.messages())
    target = plain.with_name(plain.name + ".zstd")
    target.write_bytes(zstandard.compress(plain.read_bytes()))
    plain.unlink()
    return target


def mcap_file(compression=CompressionType.NONE, **options):
    return lambda path: write_mcap(f"{path}.mcap", EXPECTED.messages(), compression, **options)


KINDS = {
    "own bag": own,
    "own mcap": lambda path: bare(own(path)),
    "own bag without metadata": lambda path: without_metadata(own(path)),
    "sqlite bag": lambda path: write_bag(path, EXPECTED.messages()),
    "sqlite bag without metadata": lambda path: without_metadata(write_bag(path, EXPECTED.messages())),
    "db3": lambda path: bare(write_bag(path, EXPECTED.messages())),
    "mcap bag": lambda path: write_bag(path, EXPECTED.messages(), storage="mcap"),
    "mcap, zstd chunks": mcap_file(CompressionType.ZSTD),
    "mcap, lz4 chunks": mcap_file(CompressionType.LZ4),
    "mcap, no chunks": mcap_file(use_chunking=False),
    "mcap, no summary": mcap_file(repeat_channels=False, repeat_schemas=False, use_statistics=False),
    "mcap, no checksums": mcap_file(enable_crcs=False),
    "bag, files compressed": lambda path: compressed(path, CompressionMode.FILE),
    "db3.zstd": lambda path: bare(compressed(path, CompressionMode.FILE)),
    "bag, messages compressed": lambda path: compressed(path, CompressionMode.MESSAGE),
    "mcap.zstd": packed_mcap,
}


@pytest.fixture(params=KINDS)
def recording(request, tmp_path):
    return open_recording(KINDS[request.param](tmp_path / "bag"))


def test_every_kind_of_bag_gives_the_truth(recording):
    assert recording.joint_names == JOINTS
    assert recording.epoch == EXPECTED.stamps[0]
    assert not recording.effort_is_torque
    assert_equal(samples(recording), EXPECTED)
    assert recording.dropped(JOINTS) == {}
    assert recording.findings(JOINTS) == ()


@pytest.mark.parametrize("size", [1, 7, 30, 60, 8192])
def test_chunks_have_constant_size_and_come_again(tmp_path, size):
    recording = replace(open_recording(write_bag(tmp_path / "bag", EXPECTED.messages())), chunk_size=size)
    for _ in range(2):
        chunks = list(recording.chunks(JOINTS))
        assert [len(chunk) for chunk in chunks] == [size] * (60 // size) + [60 % size] * (60 % size > 0)
        assert_equal(samples(recording), EXPECTED)


def test_two_simultaneous_passes_are_independent(tmp_path):
    recording = replace(open_recording(own(tmp_path / "bag")), chunk_size=16)
    for one, other in zip(recording.chunks(JOINTS), recording.chunks(JOINTS), strict=True):
        np.testing.assert_array_equal(one.q, other.q)


def test_columns_are_the_requested_joints(tmp_path):
    recording = open_recording(own(tmp_path / "bag"))
    assert_equal(samples(recording, JOINTS[::-1]), replace_columns([2, 1, 0]))
    assert_equal(samples(recording, ("elbow",)), replace_columns([1]))
    with pytest.raises(InputError, match=r"bag: no joint knee; it holds shoulder, elbow, wrist"):
        samples(recording, ("knee",))


def replace_columns(columns):
    return replace(EXPECTED, **{name: getattr(EXPECTED, name)[:, columns] for name in ("q", "dq", "tau")})


@pytest.mark.parametrize("metadata", [True, False])
def test_split_bags_are_read_in_the_order_of_their_numbers(tmp_path, metadata):
    folder = tmp_path / "bag"
    folder.mkdir()
    messages = EXPECTED.messages()
    names = [f"bag_{part}.mcap" for part in range(12)]  # 10 comes behind 9, not behind 1
    for part, name in enumerate(names):
        write_mcap(folder / name, messages[5 * part : 5 * part + 5])
    if metadata:
        listed = ", ".join(names)
        text = f"rosbag2_bagfile_information: {{relative_file_paths: [{listed}]}}"
        (folder / "metadata.yaml").write_text(text)
    assert_equal(samples(open_recording(folder)), EXPECTED)


@pytest.mark.parametrize("text", ["", "rosbag2_bagfile_information", "{: [", "a: 1", "\xff\xfe"])
def test_broken_metadata_is_made_up_for(tmp_path, text):
    folder = write_bag(tmp_path / "bag", EXPECTED.messages())
    (folder / "metadata.yaml").write_text(text, encoding="latin-1")
    assert_equal(samples(open_recording(folder)), EXPECTED)


def test_a_folder_and_files_without_write_permission(tmp_path):
    folder = write_bag(tmp_path / "bag", EXPECTED.messages())
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert_equal(samples(open_recording(folder)), EXPECTED)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    folder.chmod(0o755)


@pytest.mark.parametrize("mode", ["WAL", "PERSIST"])
def test_what_a_killed_recorder_left_in_the_journal_is_read(tmp_path, mode):
    half = EXPECTED.messages()[:30], EXPECTED.messages()[30:]
    path = bare(write_bag(tmp_path / "bag", half[0]))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
        if mode == "WAL":
            for log_time, data in half[1]:
                database.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES (1, ?, ?)", (log_time, data))
        else:  # a transaction that was written to the database and never committed
            database.execute("PRAGMA cache_size = 1")
            database.execute("BEGIN")
            database.execute("DELETE FROM messages WHERE id > 10")
            database.execute("UPDATE messages SET data = zeroblob(20000)")
        killed = shutil.copytree(path.parent, tmp_path / "killed")
    content = {file.name: file.read_bytes() for file in killed.iterdir()}
    recording = open_recording(killed)
    assert_equal(samples(recording), EXPECTED, slice(0, 60 if mode == "WAL" else 30))
    assert {file.name: file.read_bytes() for file in killed.iterdir()} == content


def test_copies_vanish_with_the_recording(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    recording = open_recording(compressed(tmp_path / "bag", CompressionMode.FILE))
    assert len(samples(recording)) == 60
    assert os.listdir(tmp_path / "scratch")
    del recording
    assert not os.listdir(tmp_path / "scratch")


def test_the_requested_topic_is_read(tmp_path):
    other = [(1, joint_state(5, ("finger",), (1.0,)))]
    folder = write_bag(tmp_path / "bag", EXPECTED.messages(), others=[("/hand/joint_states", JOINT_STATE, other)])
    for name in ("/hand/joint_states", "hand/joint_states"):
        assert open_recording(folder, name).joint_names == ("finger",)
    assert open_recording(folder, "joint_states").joint_names == JOINTS


@pytest.mark.parametrize(
    ("topic", "others"),
    [
        ("/arm/measured", ["/chatter"]),  # the only one of the type
        ("/joint_states", ["/hand/joint_states", "/filtered"]),  # the usual one
        ("/arm/joint_states", ["/arm/joint_commands"]),  # the only one of the usual name
    ],
)
def test_the_default_topic(tmp_path, topic, others):
    kinds = [(name, JOINT_STATE if name != "/chatter" else "std_msgs/msg/String") for name in others]
    for storage in ("sqlite3", "mcap"):
        folder = write_bag(tmp_path / storage, EXPECTED.messages(), topic, storage, kinds)
        recording = open_recording(folder)
        assert recording.topic == topic
        assert_equal(samples(recording), EXPECTED)


def test_a_topic_with_the_same_joints_that_is_not_read_is_named(tmp_path):
    other = ("/sim/joint_states", JOINT_STATE, EXPECTED.messages())
    folder = write_bag(tmp_path / "bag", EXPECTED.messages(), "/joint_states", others=[other])

    def findings(*topics):
        recording = open_recording(folder, *topics)
        return [one for one in recording.findings(recording.joint_names) if one.code == "topic_chosen"]

    (finding,) = findings()
    assert "/joint_states is read, and not /sim/joint_states" in finding.message
    assert "`topic: /sim/joint_states`" in finding.action
    assert findings("/joint_states") == findings(None, "/sim/joint_states") == []


def test_ambiguous_topics_are_listed(tmp_path):
    folder = write_bag(
        tmp_path / "bag", EXPECTED.messages(), "/a/joint_states", others=[("/b/joint_states", JOINT_STATE)]
    )
    with pytest.raises(InputError, match=r"bag: several JointState topics; choose one of /b/joint_states, /a/joint_s"):
        open_recording(folder)
    with pytest.raises(InputError, match=r"bag: no topic /c of joint states; it holds /b/joint_states \(sensor_msgs"):
        open_recording(folder, "/c")


def test_a_bag_without_joint_states(tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        writer.write("/chatter", "std_msgs/msg/String", 1, text_message("hello"))
    with pytest.raises(
        InputError, match=r"no topic of type sensor_msgs/msg/JointState or .*; it holds /chatter \(std_msgs"
    ):
        open_recording(tmp_path / "bag")


def damaged_folder(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    if name == "several":
        write_mcap(folder / "monday.mcap", EXPECTED.messages())
        write_mcap(folder / "tuesday.mcap", EXPECTED.messages())
    elif name == "incomplete":
        (folder / "metadata.yaml").write_text("rosbag2_bagfile_information: {relative_file_paths: [gone_0.mcap]}")
    elif name == "foreign":
        (folder / "part.db").write_text("x")
        (folder / "metadata.yaml").write_text("rosbag2_bagfile_information: {relative_file_paths: [part.db]}")
    elif name == "no messages":
        write_mcap(folder / "no.mcap", [])
    return folder


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("vacant", "vacant: no recording in this folder"),
        ("several", r"several: several bags and no metadata.yaml; give one of monday.mcap, tuesday.mcap"),
        ("incomplete", "incomplete: gone_0.mcap is missing, which metadata.yaml names"),
        ("foreign", r"foreign/part.db: no storage file of a bag; it must end in .mcap, .db3 or .bag"),
        ("no messages", "no messages: no topic of type|no messages: no usable JointState message"),
    ],
)
def test_folders_that_are_no_bag(tmp_path, name, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        open_recording(damaged_folder(tmp_path, name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["mcap", "db3", "npz", "csv", "mcap.zstd", "db3.zstd"])
@pytest.mark.parametrize(
    "content", [None, b"", b"x", b"nonsense " * 1000, bytes(range(256)) * 50, "read error", "folder"]
)
def test_files_that_are_none(tmp_path, suffix, content):
    path = tmp_path / f"file.{suffix}"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "read error":
        path.symlink_to("/proc/self/mem")
    elif content == "folder":
        path.mkdir()
    with pytest.raises(InputError, match=r"file\.") as caught:
        open_recording(path)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_read_permission(tmp_path):
    path = write_mcap(tmp_path / "file.mcap", EXPECTED.messages())
    path.chmod(0)
    with pytest.raises(InputError, match="Permission denied"):
        open_recording(path)


@pytest.mark.parametrize("path", ["gone", "gone.mcap", "file.txt", "file.txt/bag.mcap", "x" * 5000])
def test_paths_that_lead_nowhere(tmp_path, path):
    (tmp_path / "file.txt").write_text("hello")
    with pytest.raises(InputError, match=r"no such file|unknown kind|cannot be read") as caught:
        open_recording(tmp_path / path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
def test_a_file_that_goes_away_after_opening(tmp_path, storage):
    folder = write_bag(tmp_path / "bag", EXPECTED.messages(), storage=storage)
    recording = open_recording(folder)
    shutil.rmtree(folder)
    with pytest.raises(InputError, match="no such file"):
        samples(recording)


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
def test_names_full_of_traps(tmp_path, storage):
    path = bare(write_bag(tmp_path / "bag", EXPECTED.messages(), storage=storage))
    trap = path.rename(tmp_path / f"a bag?mode=%20#1 {{x}}{path.suffix}")
    assert_equal(samples(open_recording(trap)), EXPECTED)


def test_relative_paths(tmp_path, monkeypatch):
    write_bag(tmp_path / "bag", EXPECTED.messages())
    monkeypatch.chdir(tmp_path)
    assert open_recording("bag").source == "bag"
    monkeypatch.chdir(tmp_path / "bag")
    assert_equal(samples(open_recording(Path())), EXPECTED)
