# SPDX-License-Identifier: Apache-2.0
"""Files that would hang, crash or fill the memory: a declared error at once, within bounded memory."""

import os
import sqlite3
import struct
import time
import tracemalloc
import zipfile
from contextlib import closing

import lz4.frame
import numpy as np
import pytest
import zstandard

from robot_dyn_id.errors import InputError, ModelError
from robot_dyn_id.excitation.collision.meshes import find_mesh, read_mesh
from robot_dyn_id.excitation.collision.srdf import read_disabled_pairs
from robot_dyn_id.recordings import npz, open_recording

LAUGHS = (
    '<!DOCTYPE robot [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    + "]><robot>&a11;</robot>"
)


# --- Robots -------------------------------------------------------------------------------------------------------

SRDFS = {
    "entities": (LAUGHS, "a document type is not allowed"),
    "depth": ("<a>" * 300 + "</a>" * 300, "nested deeper than 200"),
    "not XML": ("\0\1\2", "broken XML"),
    "size": (" " * (16 * 2**20 + 1), "larger than 16 MiB"),
}


@pytest.mark.parametrize("case", SRDFS)
def test_srdf(case, tmp_path):
    text, words = SRDFS[case]
    (tmp_path / "arm.srdf").write_text(text)
    with pytest.raises(InputError, match=rf"arm\.srdf: .*{words}"):
        read_disabled_pairs(tmp_path / "arm.srdf")


def collada(inside):
    head = "<COLLADA version='1.4.1'><library_visual_scenes><visual_scene id='a'>"
    return f"{head}{inside}</visual_scene></library_visual_scenes></COLLADA>"


MESHES = {
    "depth.dae": (collada("<node>" * 300_000 + "</node>" * 300_000), "nested deeper than 200"),
    "entities.dae": (LAUGHS.replace("robot", "COLLADA"), "a document type is not allowed"),
    "broken.dae": ("<COLLADA>", "not a mesh that can be read"),
    "size.stl": (None, "larger than 128 MiB"),
    "count.stl": ("x" * 80 + "\x7f" * 4, "not a mesh that can be read"),
}


@pytest.mark.parametrize("name", MESHES)
def test_mesh(name, tmp_path):
    content, words = MESHES[name]
    file = tmp_path / name
    file.write_text(content or "")
    if content is None:
        with file.open("wb") as stream:
            stream.truncate(2**40)
    with pytest.raises(InputError, match=words):
        read_mesh(file, np.ones(3))


@pytest.mark.parametrize("name", ["http://[", "a" * 5000, "package://a/" + "b" * 5000, "\0", "file:///dev/zero"])
def test_names_of_meshes_that_are_no_files(name):
    assert find_mesh(name) is None


def test_messages_cannot_control_a_terminal_or_fill_a_log():
    assert str(ModelError("a\x1b[2Jb\x07")) == r"a\x1b[2Jb\x07"
    long = str(ModelError("x" * 100_000 + ": do this"))
    assert len(long) < 2100
    assert long.endswith(": do this")


# --- Recordings ---------------------------------------------------------------------------------------------------


def refusal(path):
    """The line that refuses a recording, given at once and in bounded memory."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        with pytest.raises(InputError) as refused:
            open_recording(path)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert time.process_time() - begin < 5.0
    line = str(refused.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return line


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".mcap", ".db3", ".mcap.zstd"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_recording_that_never_ends(tmp_path, suffix, kind):
    path = tmp_path / f"endless{suffix}"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    assert refusal(path).endswith("not a regular file; copy what it gives into one")


@pytest.mark.slow
@pytest.mark.parametrize("head", ["", "t,q_a\n0,1\n"], ids=["header", "row"])
def test_a_table_whose_line_never_ends(tmp_path, head):
    path = tmp_path / "line.csv"
    path.write_text(head + "1" * 200_000_000)
    assert "is longer than 1048576 characters" in refusal(path)


@pytest.mark.slow
def test_an_archive_that_would_fill_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "large.npz"
    np.savez_compressed(path, t=np.zeros(10**6), q=np.zeros((10**6, 20)), joint_names=np.array(["a"]))
    monkeypatch.setattr(npz, "LARGEST", 2**20)
    assert "and at most 0.000976562 GiB are read of compressed arrays" in refusal(path)


@pytest.mark.parametrize("shape", ["(1000000000000, 1)", "(-1, 1)", "(" * 5000])
def test_an_archive_with_a_senseless_header(tmp_path, shape):
    path = tmp_path / "header.npz"
    np.savez(path, t=np.zeros(3), joint_names=np.array(["a"]))
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("q.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    assert "q is damaged" in refusal(path)


def zeros(compressor, count):
    """Packed zeros [MB]."""
    return b"".join([*(compressor.compress(bytes(10**6)) for _ in range(count)), compressor.flush()])


def test_a_packed_bag_that_would_fill_the_disk(tmp_path):
    path = tmp_path / "bag.mcap.zstd"
    path.write_bytes(zeros(zstandard.ZstdCompressor().compressobj(), 400))
    assert "unpacks to more than 200 times its size" in refusal(path)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("stated", [400_000_000, 1000], ids=["stated", "hidden"])
def test_a_chunk_that_would_fill_the_memory(tmp_path, compression, stated):
    if compression == "zstd":
        packed = zeros(zstandard.ZstdCompressor().compressobj(size=400_000_000), 400)
    else:
        compressor = lz4.frame.LZ4FrameCompressor()
        packed = compressor.begin() + zeros(compressor, 400)
    name = compression.encode()
    body = struct.pack("<QQQII", 0, 1, stated, 0, len(name)) + name + struct.pack("<Q", len(packed)) + packed
    path = tmp_path / "bag.mcap"
    path.write_bytes(b"\x89MCAP0\r\n" + b"\x06" + struct.pack("<Q", len(body)) + body)
    assert "no topic can be read: bag.mcap is damaged" in refusal(path)


@pytest.mark.parametrize("view", ["topics", "messages"])
def test_a_database_whose_rows_never_end(tmp_path, view):
    path = tmp_path / "bag.db3"
    endless = "WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r) SELECT id"
    columns = {
        "topics": (
            "(id INTEGER, name TEXT, type TEXT)",
            "'/joint_states' AS name, 'sensor_msgs/msg/JointState' AS type",
        ),
        "messages": (
            "(id INTEGER, topic_id INTEGER, timestamp INTEGER, data BLOB)",
            "2 topic_id, 0 timestamp, '' data",
        ),
    }
    with closing(sqlite3.connect(path)) as database:
        for name, (table, made) in columns.items():
            words = f"VIEW {name} AS {endless}, {made} FROM r" if name == view else f"TABLE {name} {table}"
            database.execute(f"CREATE {words}")
        database.commit()
    assert "it defines views" in refusal(path)


@pytest.mark.parametrize("content", ["[" * 100_000, "&a [*a]", "rosbag2_bagfile_information: {relative_file_paths: 3}"])
def test_hostile_metadata_leaves_the_files_readable(tmp_path, content):
    (tmp_path / "metadata.yaml").write_text(content)
    assert "no recording in this folder" in refusal(tmp_path)
