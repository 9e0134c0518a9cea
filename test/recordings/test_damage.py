# SPDX-License-Identifier: Apache-2.0
"""Files cut or damaged at many places give a prefix of the truth or a clear refusal; memory stays flat."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import CompressionType
from support.processes import run_program
from support.recording_files import JOINT_STATE, JOINTS, TOPIC, assert_equal, samples, truth, write_bag, write_mcap

import robot_dyn_id
from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag
from robot_dyn_id.recordings.joint_states import encode
from robot_dyn_id.recordings.recovery import recover

EXPECTED = truth(40)
LAYOUTS = {
    "chunks": {},
    "zstd": {"compression": CompressionType.ZSTD},
    "lz4": {"compression": CompressionType.LZ4},
    "no chunks": {"use_chunking": False},
}


def prefix_length(path):
    """Number of samples that were read, after a check that they are the first ones; None for a refusal."""
    try:
        recording = open_recording(path)
        chunk = samples(recording)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)
        return None
    assert_equal(chunk, EXPECTED, slice(0, len(chunk)))
    assert [one.code for one in recording.findings(JOINTS)] in ([], ["file_damaged"])
    assert len(chunk) == 40 or recording.findings(JOINTS)
    return len(chunk)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mcap_cut_anywhere_reads_what_is_whole(tmp_path, layout):
    content = write_mcap(tmp_path / "whole.mcap", EXPECTED.messages(), **LAYOUTS[layout]).read_bytes()
    path = tmp_path / "cut.mcap"
    found = []
    for end in [*range(0, 300, 7), *range(300, len(content), 53), len(content)]:
        path.write_bytes(content[:end])
        found.append(prefix_length(path) or 0)
    assert found == sorted(found)
    assert found[0] == 0 and found[-1] == 40
    assert len(set(found)) > (35 if layout == "no chunks" else 4)


def test_a_truncated_file_is_reported_once_with_its_name(tmp_path):
    path = write_mcap(tmp_path / "whole.mcap", EXPECTED.messages())
    path.write_bytes(path.read_bytes()[:5000])
    (finding,) = open_recording(path).findings(JOINTS)
    assert finding.code == "file_damaged"
    assert finding.message.startswith(f"{path}: whole.mcap is not finished: it ends within a record (byte ")
    assert f"robot-dyn-id recover {path}" in finding.action


def test_the_next_file_of_a_split_bag_is_read_behind_an_unfinished_one(tmp_path):
    messages = EXPECTED.messages()
    write_mcap(tmp_path / "bag_0.mcap", messages[:20], use_chunking=False)
    write_mcap(tmp_path / "bag_1.mcap", messages[20:])
    first = tmp_path / "bag_0.mcap"
    first.write_bytes(first.read_bytes()[:3000])
    recording = open_recording(tmp_path)
    chunk = samples(recording)
    assert 20 < len(chunk) < 40
    np.testing.assert_array_equal(chunk.q[-20:], EXPECTED.q[20:])
    (finding,) = recording.findings(JOINTS)
    assert finding.code == "file_damaged" and "bag_0.mcap is not finished" in finding.message


@pytest.mark.parametrize("layout", ["chunks", "zstd", "lz4"])
def test_mcap_with_flipped_bytes_never_gives_wrong_numbers(tmp_path, layout):
    content = write_mcap(tmp_path / "whole.mcap", EXPECTED.messages(), **LAYOUTS[layout]).read_bytes()
    rng = np.random.default_rng(3)
    path = tmp_path / "flipped.mcap"
    for _ in range(150):
        damaged = bytearray(content)
        damaged[int(rng.integers(8, len(content)))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            recording = open_recording(path)
            chunk = samples(recording)
        except InputError as error:
            assert "\n" not in str(error)
            continue
        rows = [EXPECTED.q.tolist().index(row) for row in chunk.q.tolist()]
        assert rows == sorted(rows)
        assert len(rows) == 40 or recording.findings(JOINTS)


DAMAGES = {
    "a byte of a message": lambda content, chunk: flip(content, chunk + 2000),
    "checksum of a chunk": lambda content, chunk: flip(content, chunk + 9 + 24),
    "a chunk that is marked as a private record": lambda content, chunk: flip(content, chunk, 0x90),
    "length of a chunk, too large": lambda content, chunk: flip(content, chunk + 6),
    "length of a chunk, too small": lambda content, chunk: flip(content, chunk + 2),
    "zeros": lambda content, chunk: content[:chunk] + bytes(1000) + content[chunk + 1000 :],
    "zeros without an index": lambda content, chunk: content[:chunk] + bytes(len(content) - chunk),
    "cut within a chunk": lambda content, chunk: content[: chunk + 2000],
}


def flip(content, place, value=None):
    changed = bytearray(content)
    changed[place] = changed[place] ^ 0xFF if value is None else value
    return bytes(changed)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_reading_goes_on_behind_damage_and_gives_what_recovery_gives(tmp_path, damage):
    path = write_mcap(tmp_path / "bag.mcap", EXPECTED.messages(), compression=CompressionType.NONE, chunk_size=2500)
    content = path.read_bytes()
    with path.open("rb") as stream:
        chunk = [index.chunk_start_offset for index in make_reader(stream).get_summary().chunk_indexes][2]
    damaged = damage(content, chunk)
    path.write_bytes(damaged)
    recording = open_recording(path)
    rows = samples(recording).q.tolist()
    (finding,) = recording.findings(JOINTS)
    assert finding.code == "file_damaged"
    assert f"(byte {chunk})" in finding.message
    recovered = recover(path, tmp_path / "recovered")
    assert sum(recovered.messages.values()) == len(rows)
    assert all(row in EXPECTED.q.tolist() for row in rows)
    if content.endswith(damaged[-100:]):
        assert rows[-1] == EXPECTED.q[-1].tolist(), "what is behind the damage"


def test_a_file_whose_first_bytes_are_damaged_is_not_called_another_format(tmp_path):
    path = write_mcap(tmp_path / "bag.mcap", EXPECTED.messages())
    path.write_bytes(flip(path.read_bytes(), 3))
    with pytest.raises(InputError, match="its first bytes are damaged"):
        open_recording(path)


def test_a_file_without_a_topic_is_reported_as_damaged_if_it_is(tmp_path):
    path = write_mcap(tmp_path / "bag.mcap", EXPECTED.messages(), chunk_size=10**7)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(InputError, match=r"no topic can be read: bag\.mcap is not finished"):
        open_recording(path)


def test_mcap_full_of_zeros_behind_a_power_failure(tmp_path):
    path = write_mcap(tmp_path / "whole.mcap", EXPECTED.messages())
    path.write_bytes(path.read_bytes()[:5000] + bytes(100_000))
    assert 0 < prefix_length(path) < 40


def test_db3_cut_anywhere_is_refused(tmp_path):
    folder = write_bag(tmp_path / "bag", EXPECTED.messages())
    content = (folder / "bag.db3").read_bytes()
    found = set()
    for end in [*range(0, len(content), 512), *range(len(content) - 4000, len(content), 61), len(content)]:
        path = tmp_path / "cut.db3"
        path.write_bytes(content[:end])
        found.add(prefix_length(path))
    assert found == {None, 40}


def test_db3_with_lost_sectors_reads_a_prefix_or_is_refused(tmp_path):
    content = (write_bag(tmp_path / "bag", EXPECTED.messages()) / "bag.db3").read_bytes()
    path = tmp_path / "holes.db3"
    found = set()
    for end in range(4096, len(content) + 1, 4096):  # whole pages, and what was written to them first
        for size in (4096, 512):
            path.write_bytes(content[: end - size] + bytes(size) + content[end:])
            found.add(prefix_length(path))
    assert {None, 40} < found


@pytest.mark.slow
def test_db3_with_flipped_bytes_raises_nothing_foreign(tmp_path):
    content = (write_bag(tmp_path / "bag", EXPECTED.messages()) / "bag.db3").read_bytes()
    rng = np.random.default_rng(4)
    path = tmp_path / "flipped.db3"
    for _ in range(150):  # SQLite has no checksums: what is read may be wrong, but it is read or refused
        damaged = bytearray(content)
        for _ in range(8):
            damaged[int(rng.integers(0, len(content)))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            samples(open_recording(path))
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)


@pytest.mark.parametrize("suffix", ["db3", "mcap"])
def test_compressed_files_that_were_cut_are_refused(tmp_path, suffix):
    zstandard = pytest.importorskip("zstandard")
    content = zstandard.compress(bytes(range(256)) * 1000)
    path = tmp_path / f"cut.{suffix}.zstd"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="cut"):
        open_recording(path)


READ_ALL = """
import sys
from pathlib import Path
from robot_dyn_id.recordings import open_recording
recording = open_recording(sys.argv[1])
count = sum(len(chunk) for chunk in recording.chunks(recording.joint_names))
# Not ru_maxrss, which the process inherits from the one that started it.
print(count, Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_memory_is_flat_in_the_number_of_messages(tmp_path, storage):
    names = [f"joint{number}" for number in range(7)]
    rng = np.random.default_rng(0)
    peak = {}
    for count in (20_000, 200_000):
        q = rng.normal(size=(count, 7))
        stamps = np.arange(count) * 1_000_000
        folder = tmp_path / str(count)
        if storage == "mcap":
            write_joint_state_bag(folder, TOPIC, names, StampedSamples(stamps, q, q, q))
        else:
            write_database(folder, names, stamps, q)
        command = [sys.executable, "-c", READ_ALL, str(folder)]
        home = Path(robot_dyn_id.__file__).parents[1]
        output = run_program(*command, cwd=home, check=True).stdout
        read, peak[count] = (int(number) for number in output.split())
        assert read == count
    assert peak[200_000] - peak[20_000] < 8_000  # kB; the messages alone are 70 MB


def write_database(folder, names, stamps, q):
    """A db3 of the sample recording's layout; the writer of `rosbags` would take most of the test's time."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "bag_0.db3")) as database:
        database.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT)")
        database.execute(
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)"
        )
        database.execute("INSERT INTO topics VALUES (1, ?, ?)", (TOPIC, JOINT_STATE))
        for start in range(0, len(stamps), 1000):
            part = slice(start, start + 1000)
            messages = encode(names, stamps[part], q[part], q[part], q[part])
            rows = zip(stamps[part].tolist(), messages, strict=True)
            database.executemany("INSERT INTO messages(topic_id, timestamp, data) VALUES (1, ?, ?)", rows)
        database.commit()
