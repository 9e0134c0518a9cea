# SPDX-License-Identifier: Apache-2.0
"""Bags written by `recover` are valid for other libraries and contain every intact message; the original is kept."""

import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from mcap.reader import make_reader
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer
from support.processes import run_program, run_python
from support.recording_files import TOPIC, samples, text_message, truth, types, write_bag, write_mcap

import robot_dyn_id
from robot_dyn_id.cli import main
from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.recordings.bag_writer import BagWriter

HOME = Path(robot_dyn_id.__file__).parents[1]
TRUTH = truth(200)
MESSAGES = TRUTH.messages()
DATA = [data for _, data in MESSAGES]

KEYS = {"whole", "bag", "original", "messages", "topics", "seconds", "lost_bytes", "damage", "warnings", "findings"}


@pytest.fixture
def recover(capfd):
    """Run the command: its answer, or the error with which it ends."""

    def run(*words, code=0):
        capfd.readouterr()
        found = main(["recover", *map(str, words), "--json"])
        out, err = capfd.readouterr()
        assert found == code, err
        assert "Traceback" not in err
        answer = json.loads(out)
        assert code or set(answer) == KEYS
        return answer if code == 0 else answer["error"]["message"]

    return run


def read_by_others(folder):
    """The messages of a bag folder by `rosbags` and by `mcap`, with their times; both must agree."""
    with Reader(folder) as reader:
        found = [(time, bytes(data)) for _, time, data in reader.messages()]
        assert reader.message_count == len(found)
    (file,) = folder.glob("*.mcap")
    with file.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        assert reader.get_summary().statistics.message_count == len(found)
        assert [(m.log_time, m.data) for _, _, m in reader.iter_messages()] == found
    return found


def files(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


LAYOUTS = {
    "chunks": {"chunk_size": 4000},
    "zstd": {"chunk_size": 4000, "compression": CompressionType.ZSTD},
    "lz4": {"chunk_size": 4000, "compression": CompressionType.LZ4},
    "no chunks": {"use_chunking": False},
    "one chunk": {"chunk_size": 10**6},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_cut_anywhere_gives_its_whole_messages(layout, tmp_path, recover):
    whole = write_mcap(tmp_path / "whole.mcap", MESSAGES, **LAYOUTS[layout]).read_bytes()
    kept = []
    for number, share in enumerate((0.3, 0.55, 0.8, 0.98)):
        path = tmp_path / f"cut{number}.mcap"
        path.write_bytes(whole[: int(share * len(whole))])
        if layout == "one chunk" and share == 0.98:
            path.write_bytes(whole[: int(0.9 * whole.rfind(DATA[-1]))])
        before = path.read_bytes()
        answer = recover(path)
        found = read_by_others(tmp_path / f"cut{number}_recovered")
        assert found == MESSAGES[: len(found)]
        assert answer["messages"] == len(found) > 0
        assert not answer["whole"] and answer["damage"]
        assert path.read_bytes() == before
        kept.append(len(found))
        if layout in ("no chunks", "one chunk"):  # nothing but the message that was cut is lost
            end = before.rfind(DATA[len(found) - 1]) + len(DATA[0])
            assert answer["lost_bytes"] <= len(before) - end < 300 or share == 0.98
    assert kept == sorted(kept)


def test_messages_behind_a_damaged_chunk_are_kept(tmp_path, recover):
    path = write_mcap(tmp_path / "a.mcap", MESSAGES, chunk_size=4000)
    content = bytearray(path.read_bytes())
    content[content.index(DATA[100]) + 40] ^= 0xFF
    path.write_bytes(content)
    answer = recover(path)
    found = read_by_others(tmp_path / "a_recovered")
    assert len(samples(open_recording(path)).t) == len(found)
    lost = [message for message in MESSAGES if message not in found]
    assert MESSAGES[100] in lost
    assert len(lost) == len(MESSAGES) - len(found) < 30
    assert found == [message for message in MESSAGES if message not in lost]
    assert len(lost) * len(DATA[0]) < answer["lost_bytes"] < 6000
    assert "checksum" in answer["damage"][0]


def test_a_whole_bag_is_left_alone(tmp_path, recover):
    write_bag(tmp_path / "db3", MESSAGES)
    write_bag(tmp_path / "mcap", MESSAGES, storage="mcap")
    write_mcap(tmp_path / "file.mcap", MESSAGES)
    before = files(tmp_path)
    for name in ("db3", "mcap", "file.mcap"):
        answer = recover(tmp_path / name)
        assert answer["whole"] and answer["damage"] == [] and answer["lost_bytes"] == 0
        assert answer["bag"] == answer["original"] == str(tmp_path / name)
        assert answer["messages"] == len(MESSAGES)
    assert files(tmp_path) == before


def test_a_database_without_metadata_keeps_what_it_describes(tmp_path, recover):
    bag = write_bag(tmp_path / "bag", MESSAGES, others=[("/chat", "std_msgs/msg/String", [(1, text_message("hi"))])])
    (bag / "metadata.yaml").unlink()
    answer = recover(bag, "--out", tmp_path / "new")
    assert answer["topics"] == {TOPIC: len(MESSAGES), "/chat": 1}
    assert answer["damage"] == ["metadata.yaml is missing"]
    found = read_by_others(tmp_path / "new")
    assert sorted(found) == sorted([*MESSAGES, (1, text_message("hi"))])
    with Reader(tmp_path / "new") as new:
        texts = {connection.topic: connection.msgdef.data for connection in new.connections}
        assert texts[TOPIC].startswith("std_msgs/Header header")
        hashes = {connection.digest for connection in new.connections}
        assert types().hash_rihs01("sensor_msgs/msg/JointState") in hashes


def test_a_message_type_that_nothing_defines_is_reported(tmp_path, recover):
    with (tmp_path / "own.mcap").open("wb") as file:
        writer = McapWriter(file)
        writer.start("ros2")
        channel = writer.register_channel("/own", "cdr", writer.register_schema("own_msgs/msg/Own", "ros2msg", b""))
        writer.add_message(channel, 1, DATA[0], 1)
        writer.finish()
    whole = (tmp_path / "own.mcap").read_bytes()
    (tmp_path / "own.mcap").write_bytes(whole[:-20])
    answer = recover(tmp_path / "own.mcap")
    (finding,) = answer["findings"]
    assert (finding["code"], finding["severity"]) == ("type_definition_missing", "info")
    assert "/own" in finding["message"]
    assert answer["topics"] == {"/own": 1}


def test_a_database_with_lost_pages_gives_those_in_front(tmp_path, recover):
    file = write_bag(tmp_path / "bag", truth(2000).messages()) / "bag.db3"
    content = bytearray(file.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 40_960] = bytes(40_960)
    file.write_bytes(content)
    answer = recover(file)
    found = read_by_others(tmp_path / "bag" / "bag_recovered")
    assert found == truth(2000).messages()[: len(found)]
    assert 100 < len(found) < 2000
    assert answer["lost_bytes"] is None, "unknown for SQLite"


def test_the_new_bag_takes_the_name_of_the_original_on_request(tmp_path, recover):
    bag = write_bag(tmp_path / "bag", MESSAGES, storage="mcap")
    (bag / "notes.txt").write_text("mine")
    (file,) = bag.glob("*.mcap")
    file.write_bytes(file.read_bytes()[:-40])
    before = files(bag)
    answer = recover(bag, "--replace")
    assert (answer["bag"], answer["original"]) == (str(bag), str(tmp_path / "bag_damaged"))
    assert files(tmp_path / "bag_damaged") == before
    assert read_by_others(bag) == MESSAGES
    single = tmp_path / "single.mcap"
    single.write_bytes(before[file.relative_to(bag)])
    answer = recover(single, "--replace")
    assert (tmp_path / "single_damaged.mcap").read_bytes() == before[file.relative_to(bag)]
    assert answer["whole"] is False
    assert recover(single)["whole"] is True
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bag",
        "bag_damaged",
        "single.mcap",
        "single_damaged.mcap",
    ]


def test_what_cannot_be_recovered_is_refused_and_nothing_is_written(tmp_path, recover):
    (tmp_path / "empty.mcap").write_bytes(b"")
    (tmp_path / "head.mcap").write_bytes(write_mcap(tmp_path / "a.mcap", MESSAGES).read_bytes()[:60])
    write_mcap(tmp_path / "a.mcap", MESSAGES, use_chunking=False)
    (tmp_path / "text.mcap").write_text("no bag at all")
    (tmp_path / "text.db3").write_text("no bag at all")
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.npz").write_bytes(b"PK")
    proto = tmp_path / "proto.mcap"
    proto.write_bytes((tmp_path / "a.mcap").read_bytes().replace(b"\x03\x00\x00\x00cdr", b"\x03\x00\x00\x00xyz"))
    (tmp_path / "a.mcap").unlink()
    before = files(tmp_path)
    for name, words in (
        ("none.mcap", "no such file"),
        ("empty.mcap", "empty"),
        ("head.mcap", "no whole message"),
        ("text.mcap", "not an MCAP file"),
        ("text.db3", "not a readable rosbag2 database"),
        ("folder", "no recording in this folder"),
        ("a.npz", "no storage file of a bag"),
        ("proto.mcap", "encoded as xyz"),
    ):
        message = recover(tmp_path / name, code=3)
        assert name in message and words in message
    assert files(tmp_path) == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_contradictions_and_existing_outputs_are_wrong_usage(tmp_path, recover):
    path = write_mcap(tmp_path / "a.mcap", MESSAGES)
    path.write_bytes(path.read_bytes()[:5000])
    (tmp_path / "a_recovered").mkdir()
    assert "a_recovered: exists" in recover(path, code=2)
    assert "exclude each other" in recover(path, "--out", tmp_path / "b", "--replace", code=2)
    (tmp_path / "a_damaged.mcap").write_text("")
    assert "a_damaged.mcap: exists" in recover(path, "--replace", code=2)
    bag = write_bag(tmp_path / "bag", MESSAGES)
    assert "cannot replace a .db3 file" in recover(bag / "bag.db3", "--replace", code=2)


FULL = """
import os, resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.recording_files import JOINT_STATE, TOPIC, truth
from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings.bag_writer import BagWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with BagWriter(sys.argv[1]) as writer:
        for log_time, data in truth(5000).messages():
            writer.write(TOPIC, JOINT_STATE, log_time, data)
except InputError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_bag_of_a_full_disk_gives_every_byte_that_is_on_it(tmp_path, recover):
    command = [sys.executable, "-c", FULL, str(tmp_path / "bag"), str(Path(__file__).parents[1])]
    output = run_program(*command, cwd=HOME, check=True).stdout
    assert "cannot be written" in output
    answer = recover(tmp_path / "bag")
    found = read_by_others(tmp_path / "bag_recovered")
    assert found == truth(5000).messages()[: len(found)]
    size = len(found[0][1])
    assert len(found) > 390_000 // (size + 40), "those of the chunk that was cut are kept too"
    assert answer["lost_bytes"] < 2 * size


@pytest.mark.slow
def test_metadata_is_valid_while_a_bag_is_written(tmp_path):
    """A folder whose recorder is killed at once, or later, opens; it is refreshed now and then."""
    code = (
        "import os, signal, sys, time\nfrom robot_dyn_id.recordings import bag_writer\nbag_writer._REFRESH = 0.0\n"
        "bag = bag_writer.BagWriter(sys.argv[1])\n"
        "for number in range(int(sys.argv[2])):\n"
        "    bag.write('/t', 'std_msgs/msg/Empty', number, b'\\0\\1\\0\\0\\0'); bag.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    for count in (0, 3):
        folder = tmp_path / str(count)
        done = run_python(code, folder, count, cwd=HOME)
        assert done.returncode == -signal.SIGKILL
        stated = yaml.safe_load((folder / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
        assert stated["message_count"] == count
        assert [topic["topic_metadata"]["name"] for topic in stated["topics_with_message_count"]] == ["/t"] * (
            count > 0
        )
        assert [file for file in stated["relative_file_paths"] if not (folder / file).is_file()] == []
        assert sorted(os.listdir(folder)) == sorted([f"{count}_0.mcap", "metadata.yaml"])


def test_metadata_is_not_written_with_every_message(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(BagWriter, "_write_metadata", lambda self: written.append(self))
    with BagWriter(tmp_path / "bag") as bag:
        for number in range(2000):
            bag.write("/t", "std_msgs/msg/Empty", number, b"\0\1\0\0\0")
            bag.flush()
    assert len(written) < 10


def packed_bag(folder, storage, mode):
    bag = Writer(folder, version=9, storage_plugin=StoragePlugin[storage])
    bag.set_compression(mode, CompressionFormat.ZSTD)
    with bag:
        connection = bag.add_connection(TOPIC, "sensor_msgs/msg/JointState", typestore=types())
        for log_time, data in MESSAGES:
            bag.write(connection, log_time, data)
    return folder


@pytest.mark.parametrize("storage", ["SQLITE3", "MCAP"])
def test_bags_with_compressed_messages_are_read(storage, tmp_path, recover):
    folder = packed_bag(tmp_path / "bag", storage, CompressionMode.MESSAGE)
    assert "message" in (folder / "metadata.yaml").read_text().lower()
    (file,) = (path for path in folder.iterdir() if path.suffix in (".db3", ".mcap"))
    for path in (folder, file):
        recording = open_recording(path)
        chunk = samples(recording)
        assert (chunk.q == TRUTH.q).all() and (chunk.tau == TRUTH.tau).all()
        assert recording.findings(recording.joint_names) == ()
    (folder / "metadata.yaml").unlink()
    recover(folder, "--out", tmp_path / "new")
    assert read_by_others(tmp_path / "new") == MESSAGES, "unpacked, as metadata.yaml then says"


def test_bags_of_compressed_files_are_read(tmp_path):
    folder = packed_bag(tmp_path / "bag", "SQLITE3", CompressionMode.FILE)
    assert next(folder.glob("*.db3.zstd"))
    assert (samples(open_recording(folder)).q == TRUTH.q).all()


def test_other_compression_is_refused_with_what_to_do(tmp_path):
    folder = packed_bag(tmp_path / "bag", "SQLITE3", CompressionMode.MESSAGE)
    metadata = folder / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("zstd", "lzma"))
    for path in (folder, folder / "bag.db3"):
        with pytest.raises(InputError, match="compressed as 'lzma', and only zstd can be read: convert the bag with"):
            open_recording(path)


def test_a_message_that_cannot_be_unpacked_is_counted_and_the_others_are_read(tmp_path):
    import sqlite3

    folder = packed_bag(tmp_path / "bag", "SQLITE3", CompressionMode.MESSAGE)
    with sqlite3.connect(folder / "bag.db3") as database:
        database.execute("UPDATE messages SET data = x'28b52ffd2000' WHERE id = 5")
    database.close()
    recording = open_recording(folder)
    assert len(samples(recording).t) == len(MESSAGES) - 1
    assert [one.code for one in recording.findings(recording.joint_names)] == ["samples_dropped"]


DAMAGED_QOS = {
    "a list of a number": "- 1",
    "a list of a list": "- [1, 2, 3]",
    "nested deeply": "[" * 20_000,
    "an alias of itself": "&a [*a]",
    "a wrong tag": "!!timestamp x",
    "no YAML": "{",
    "bytes": b"\xff\xfe",
    "a number": 7,
}
"""Texts in the place of QoS profiles."""


@pytest.mark.parametrize("name", DAMAGED_QOS)
def test_damaged_qos_profiles_cost_no_message(name, tmp_path, recover):
    bag = write_bag(tmp_path / "bag", MESSAGES)
    with closing(sqlite3.connect(bag / "bag.db3")) as database, database:
        database.execute("UPDATE topics SET offered_qos_profiles = ?", (DAMAGED_QOS[name],))
    (bag / "metadata.yaml").unlink()
    answer = recover(bag)
    assert answer["messages"] == len(MESSAGES)
    assert [data for _, data in read_by_others(tmp_path / "bag_recovered")] == DATA


def test_intact_qos_profiles_are_kept_when_others_are_damaged(tmp_path, recover):
    bag = write_bag(tmp_path / "bag", MESSAGES)
    with closing(sqlite3.connect(bag / "bag.db3")) as database, database:
        database.execute("UPDATE topics SET offered_qos_profiles = '[1, {reliability: 1, depth: 7}]'")
    (bag / "metadata.yaml").unlink()
    recover(bag)
    stated = yaml.safe_load((tmp_path / "bag_recovered" / "metadata.yaml").read_text())
    (topic,) = stated["rosbag2_bagfile_information"]["topics_with_message_count"]
    profiles = topic["topic_metadata"]["offered_qos_profiles"]
    profiles = yaml.safe_load(profiles) if isinstance(profiles, str) else profiles
    assert [profile["depth"] for profile in profiles] == [7]


@pytest.mark.parametrize("lost", [100, 4096, 3 * 4096, 0.5], ids=["of a page", "a page", "pages", "half"])
def test_a_database_that_was_cut_off_keeps_the_messages_in_front(lost, tmp_path, recover):
    """SQLite itself refuses to open a database that ends too early at the end of a page."""
    bag = write_bag(tmp_path / "bag", MESSAGES) / "bag.db3"
    whole = bag.read_bytes()
    cut = len(whole) - (int(lost * len(whole)) if lost < 1 else lost)
    bag.write_bytes(whole[:cut])
    with pytest.raises(InputError, match="the file is cut off; copy it again, or write what is left of it with"):
        open_recording(bag)
    answer = recover(bag, "--out", tmp_path / "out")
    found = [data for _, data in read_by_others(tmp_path / "out")]
    assert found == DATA[: len(found)] and answer["messages"] == len(found)
    assert 0.1 * len(DATA) < len(found) < len(DATA)
    assert any(f"cut off: {len(whole) - cut} bytes are missing" in text for text in answer["damage"])
    assert bag.read_bytes() == whole[:cut] and answer["lost_bytes"] is None and not answer["whole"]


def test_a_long_message_that_the_end_of_a_file_cuts_is_not_kept(tmp_path, recover):
    """Its last part has a page of its own, in whose place SQLite would read any bytes."""
    long = [(time, data + b"\x07" * 9000) for time, data in MESSAGES[:20]]
    bag = write_bag(tmp_path / "bag", long) / "bag.db3"
    whole = bag.read_bytes()
    for pages in range(1, 12):
        bag.write_bytes(whole[: -4096 * pages])
        recover(bag, "--out", tmp_path / f"out{pages}")
        found = [data for _, data in read_by_others(tmp_path / f"out{pages}")]
        assert found == [data for _, data in long[: len(found)]]
        assert 10 < len(found) <= 20


def test_a_header_that_states_too_much_is_no_reason_to_fill_a_disk(tmp_path, recover):
    bag = write_bag(tmp_path / "bag", MESSAGES) / "bag.db3"
    content = bytearray(bag.read_bytes())
    content[28:32] = b"\xff\xff\xff\xff"
    bag.write_bytes(content)
    recover(bag, "--out", tmp_path / "out", code=3)
    assert not (tmp_path / "out").exists()
