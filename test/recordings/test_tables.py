# SPDX-License-Identifier: Apache-2.0
"""`.npz` and `.csv`: the truth, and every way in which they can be wrong."""

import os
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from support.recording_files import JOINTS, samples

from robot_dyn_id.errors import InputError
from robot_dyn_id.recordings import ColumnMeaning, open_recording, streamed_npz, write_npz

RNG = np.random.default_rng(0)
T = 3.0 + np.arange(40) * 0.01 + RNG.uniform(0, 0.002, 40)
Q, DQ, TAU, CURRENT, HEAT, AIM = RNG.normal(size=(6, 40, 3))
CHANNELS = {"t": T, "q": Q, "dq": DQ, "tau": TAU, "current": CURRENT, "temperature": HEAT, "reference": AIM}
FULL = {**CHANNELS, "joint_names": np.array(JOINTS)}


@pytest.fixture(params=["held in memory", "read in parts"])
def any_size(request, monkeypatch):
    """Archives are read as small ones, or as large ones are."""
    if request.param == "read in parts":
        monkeypatch.setattr(streamed_npz, "HELD", -1)


def npz(tmp_path, **changes):
    """A `.npz` with some arrays replaced; None leaves one out."""
    arrays = {key: value for key, value in {**FULL, **changes}.items() if value is not None}
    np.savez(tmp_path / "data.npz", **arrays)
    return tmp_path / "data.npz"


def refused(path, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        samples(open_recording(path))
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.usefixtures("any_size")
def test_npz_with_everything(tmp_path):
    recording = open_recording(npz(tmp_path, ddq=Q, units="rad"))
    assert (recording.joint_names, recording.epoch, recording.effort_is_torque) == (JOINTS, 0, True)
    for _ in range(2):
        chunk = samples(recording)
        for name, values in CHANNELS.items():
            np.testing.assert_array_equal(getattr(chunk, name), values)
    np.testing.assert_array_equal(samples(recording, ("wrist", "elbow")).q, Q[:, [2, 1]])
    assert [len(chunk) for chunk in replace(recording, chunk_size=16).chunks(JOINTS)] == [16, 16, 8]
    assert recording.findings(JOINTS) == ()


@pytest.mark.usefixtures("any_size")
def test_npz_with_the_least(tmp_path):
    chunk = samples(open_recording(npz(tmp_path, dq=None, tau=None, current=None, temperature=None, reference=None)))
    assert chunk.dq is chunk.tau is chunk.current is chunk.temperature is chunk.reference is None


@pytest.mark.usefixtures("any_size")
def test_npz_of_other_number_types(tmp_path):
    chunk = samples(open_recording(npz(tmp_path, t=np.arange(40), q=Q.astype(">f4"), tau=np.asfortranarray(TAU))))
    np.testing.assert_array_equal(chunk.t, np.arange(40.0))
    np.testing.assert_array_equal(chunk.q, Q.astype(np.float32))
    np.testing.assert_array_equal(chunk.tau, TAU)


@pytest.mark.usefixtures("any_size")
def test_npz_gaps(tmp_path):
    t, q = T.copy(), Q.copy()
    t[[3, 7]], q[5, 1], q[6, 2] = (np.nan, np.inf), np.nan, np.inf
    recording = open_recording(npz(tmp_path, t=t, q=q, torque=TAU))
    chunk = samples(recording)
    kept = np.delete(np.arange(40), [3, 7])
    np.testing.assert_array_equal(chunk.t, T[kept])
    np.testing.assert_array_equal(chunk.q, np.where(np.isinf(q), np.nan, q)[kept])
    assert recording.dropped(JOINTS) == {"no time stamp (t is NaN)": 2}
    assert [one.message for one in recording.findings(JOINTS)] == [
        f"{recording.source}: keys not used: torque",
        f"{recording.source}: 2 samples dropped: no time stamp (t is NaN)",
    ]


@pytest.mark.usefixtures("any_size")
def test_npz_without_names_needs_stated_ones(tmp_path):
    path, stated = npz(tmp_path, joint_names=None), ColumnMeaning(JOINTS)
    recording = open_recording(path, columns=stated)
    assert recording.joint_names == JOINTS
    np.testing.assert_array_equal(samples(recording, ("wrist", "elbow")).q, Q[:, [2, 1]])
    with pytest.raises(InputError, match="3 joints, and 2 names"):
        open_recording(path, columns=ColumnMeaning(JOINTS[:2]))
    path = npz(tmp_path)
    np.testing.assert_array_equal(samples(open_recording(path, columns=stated)).q, Q)
    with pytest.raises(InputError, match=r"its own joint names are .*, and `recorded_joints` states c, b, a"):
        open_recording(path, columns=ColumnMeaning(("c", "b", "a")))


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"t": None}, "no key t; it holds q, dq, tau, current, temperature, reference, joint_names"),
        ({"q": None, "joint_names": None}, "no key q; it holds t, dq"),
        ({"joint_names": None}, "3 joints without names; state them in the order of the columns: `recorded_joints:"),
        ({"tau": None, "current": None, "efforts": TAU}, r"key efforts is not known; rename it to tau \[N m or N\]"),
        ({"t": T[:-1]}, r"q has shape \(40, 3\), expected \(39, 3\)"),
        ({"t": T[:, None]}, r"t has shape \(40, 1\), expected 1 dimension"),
        ({"t": T[0]}, r"t has shape \(\), expected 1 dimension"),
        ({"q": Q[:, :2]}, r"q has shape \(40, 2\), expected \(40, 3\) \(t x joint_names\)"),
        ({"q": Q[:, 0]}, r"q has shape \(40,\), expected 2 dimension"),
        ({"dq": DQ.T}, r"dq has shape \(3, 40\), expected \(40, 3\)"),
        ({"tau": TAU[:10]}, r"tau has shape \(10, 3\)"),
        ({"temperature": HEAT[:, 0]}, r"temperature has shape \(40,\), expected 2 dimension"),
        ({"current": CURRENT[:, :, None]}, r"current has shape \(40, 3, 1\)"),
        ({"q": Q.astype(str)}, "q has type <U.*, expected real numbers"),
        ({"tau": TAU.astype(complex)}, "tau has type complex128"),
        ({"dq": DQ > 0}, "dq has type bool"),
        ({"q": np.array([[None] * 3] * 40)}, "q is damaged or holds Python objects"),
        ({"joint_names": np.array(JOINTS, dtype=object)}, "joint_names is damaged or holds Python objects"),
        ({"joint_names": np.arange(3)}, "joint_names is 1-dimensional int64, expected a text per joint"),
        ({"joint_names": "elbow"}, "joint_names is 0-dimensional"),
        ({"joint_names": np.array(["a", "b", "a"])}, "joint_names must be there and differ: a, b, a"),
        ({"joint_names": np.array([], str), "q": Q[:, :0]}, "joint_names must be there"),
        (
            {"t": T[:0], **{key: Q[:0] for key in ("q", "dq", "tau", "current", "temperature", "reference")}},
            "no samples",
        ),
        ({"t": T * np.nan}, "no samples"),
    ],
)
def test_npz_that_is_wrong(tmp_path, changes, complaint):
    refused(npz(tmp_path, **changes), complaint)


@pytest.mark.usefixtures("any_size")
def test_npz_that_is_none(tmp_path):
    path = tmp_path / "data.npz"
    with path.open("wb") as file:
        np.save(file, T)
    refused(path, "a single array")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("t.npy", b"no array")
        archive.writestr("q", b"")
        archive.writestr("joint_names.npy", b"\x93NUMPY\x01\x00\xff\xff{")
    refused(path, "t is not an array")


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("flips", [False, True])
def test_npz_cut_or_damaged(tmp_path, flips):
    content = npz(tmp_path).read_bytes()
    rng = np.random.default_rng(1)
    path = tmp_path / "damaged.npz"
    for number in range(150):
        damaged = bytearray(content)
        if flips:
            damaged[int(rng.integers(len(content)))] ^= int(rng.integers(1, 256))
        else:
            del damaged[number * len(content) // 150 :]
        path.write_bytes(damaged)
        try:
            samples(open_recording(path))
            assert flips
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_a_large_npz_is_read_in_parts(tmp_path, write, monkeypatch):
    monkeypatch.setattr(streamed_npz, "HELD", 2**20)
    rng, count = np.random.default_rng(2), 400_000
    t, q = 0.001 * np.arange(count), rng.normal(size=(count, 7))
    t[5] = np.nan
    path = tmp_path / "large.npz"
    write(path, t=t, q=q, tau=q, joint_names=np.array([f"j{i}" for i in range(7)]), torque=q[:1])
    tracemalloc.start()
    recording = open_recording(path)
    names, total = recording.joint_names, np.zeros(7)
    for chunk in recording.chunks(names):
        total += chunk.tau.sum(axis=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * q.nbytes
    np.testing.assert_allclose(total, np.delete(q, 5, axis=0).sum(axis=0))
    assert recording.dropped(names) == {"no time stamp (t is NaN)": 1}
    assert len(recording.findings(names)) == 2  # the key that means nothing, and the sample


def test_an_archive_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed_npz, "HELD", -1)
    recording = open_recording(npz(tmp_path))
    npz(tmp_path, tau=None)
    with pytest.raises(InputError, match="changed"):
        samples(recording)


def test_writing_npz(tmp_path):
    path = tmp_path / "out.npz"
    for scale in (1, 2):  # the second time over the first
        write_npz(path, JOINTS, T, tau=scale * TAU)
        with np.load(path) as archive:
            assert set(archive.files) == {"t", "joint_names", "tau"}
            np.testing.assert_array_equal(archive["tau"], scale * TAU)
            assert tuple(archive["joint_names"]) == JOINTS
    assert os.listdir(tmp_path) == ["out.npz"]
    write_npz(path, JOINTS, T, q=Q, tau=TAU)
    np.testing.assert_array_equal(samples(open_recording(path)).tau, TAU)


def test_writing_npz_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.npz"
    path.write_bytes(b"precious")
    with pytest.raises(ValueError, match="Object arrays"):
        write_npz(path, JOINTS, T, q=np.array([None]))
    assert path.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["out.npz"]
    for impossible in (tmp_path / "none" / "out.npz", tmp_path / "out.npz" / "out.npz", tmp_path):
        with pytest.raises(InputError, match="cannot be written") as caught:
            write_npz(impossible, JOINTS, T, q=Q)
        assert str(impossible) in str(caught.value)
    assert path.read_bytes() == b"precious"


def csv(tmp_path, text, newline=None):
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8", newline=newline)
    return path


def table(separator=",", effort="tau", rows=40):
    """A table with every channel, as text."""
    channels = {"q": Q, "dq": DQ, effort: TAU, "current": CURRENT, "temperature": HEAT, "reference": AIM}
    header = separator.join(["t", *(f"{name}_{joint}" for name in channels for joint in JOINTS)])
    numbers = np.column_stack([T, *channels.values()])[:rows]
    return "\n".join([header, *(separator.join(repr(float(x)) for x in row) for row in numbers)]) + "\n"


@pytest.mark.parametrize("separator", [",", ";", "\t", " , "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv_with_everything(tmp_path, separator, newline):
    recording = open_recording(csv(tmp_path, table(separator), newline))
    assert (recording.joint_names, recording.epoch, recording.effort_is_torque) == (JOINTS, 0, True)
    for _ in range(2):
        chunk = samples(recording)
        for name, values in CHANNELS.items():
            np.testing.assert_array_equal(getattr(chunk, name), values)
    np.testing.assert_array_equal(samples(recording, ("wrist", "elbow")).tau, TAU[:, [2, 1]])
    for size in (1, 16, 40, 64):
        chunks = list(replace(recording, chunk_size=size).chunks(JOINTS))
        assert [len(chunk) for chunk in chunks] == [size] * (40 // size) + [40 % size] * (40 % size > 0)
    assert recording.findings(JOINTS) == ()
    with pytest.raises(InputError, match=r"data.csv: no joint knee"):
        samples(recording, ("knee",))


def test_csv_with_efforts_of_unknown_unit(tmp_path):
    recording = open_recording(csv(tmp_path, table(effort="effort")))
    assert not recording.effort_is_torque
    np.testing.assert_array_equal(samples(recording).tau, TAU)


def test_csv_with_the_least(tmp_path):
    chunk = samples(open_recording(csv(tmp_path, "q_a,t\n1,2\n3,4\n")), ("a",))
    np.testing.assert_array_equal(chunk.t, [2, 4])
    np.testing.assert_array_equal(chunk.q, [[1], [3]])
    assert chunk.dq is chunk.tau is chunk.current is chunk.temperature is chunk.reference is None


def test_csv_with_comments_blanks_quotes_and_other_columns(tmp_path):
    text = '\ufeff# robot 7\n\n"t","q_a","state","ddq_a","q_b"\n# begin\n1,2,idle,,3\n\n  \n4,5,moving,x,6\n'
    recording = open_recording(csv(tmp_path, text))
    chunk = samples(recording, ("b", "a"))
    np.testing.assert_array_equal(chunk.t, [1, 4])
    np.testing.assert_array_equal(chunk.q, [[3, 2], [6, 5]])
    (finding,) = recording.findings(("a",))
    assert finding.code == "data_unused" and finding.message.endswith("columns not used: state")


def test_csv_as_numpy_writes_it(tmp_path):
    np.savetxt(tmp_path / "data.csv", np.column_stack([T, Q]), header="t,q_a,q_b,q_c", delimiter=",", fmt="%.17g")
    np.testing.assert_array_equal(samples(open_recording(tmp_path / "data.csv"), ("a", "b", "c")).q, Q)


def test_csv_gaps(tmp_path):
    recording = open_recording(csv(tmp_path, "t,q_a,tau_a\n1,,2\n,3,4\nnan,5,6\n2,nan,inf\n3, ,1e154\n"))
    chunk = samples(recording, ("a",))
    np.testing.assert_array_equal(chunk.t, [1, 2, 3])
    np.testing.assert_array_equal(chunk.q[:, 0], [np.nan] * 3)
    np.testing.assert_array_equal(chunk.tau[:, 0], [2, np.nan, 1e154])
    assert recording.dropped(("a",)) == {"no time stamp (t is empty or NaN)": 2}
    assert [one.code for one in recording.findings(("a",))] == ["samples_dropped"]


def test_csv_cut_anywhere_in_its_last_rows(tmp_path):
    text = table(rows=20)
    lines = text.splitlines(keepends=True)
    for end in range(len(text) - len(lines[-1]) - len(lines[-2]), len(text) + 1, 3):
        recording = open_recording(csv(tmp_path, text[:end]))
        whole = text[:end].count("\n") - 1
        chunk = samples(recording)
        np.testing.assert_array_equal(chunk.q, Q[:whole])
        np.testing.assert_array_equal(chunk.current, CURRENT[:whole])
        cut = "the last row has no line end, so it may be cut off"
        assert recording.dropped(JOINTS) == ({} if text[:end].endswith("\n") else {cut: 1})


@pytest.mark.parametrize("ending", ["# done", "", "   "])
def test_csv_whose_last_line_is_no_row(tmp_path, ending):
    recording = open_recording(csv(tmp_path, table() + ending))
    assert len(samples(recording)) == 40
    assert recording.findings(JOINTS) == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file is empty"),
        ("\n\n# nothing\n", "no header"),
        ("1,2,3\n4,5,6\n", "no header of a recording .1, 2, 3.; its first line must read t,q_<joint>"),
        ("time,q_a\n1,2\n", "no header"),
        ("t,x\n1,2\n", "no header"),
        ("t,q_a", "no complete row"),
        ("t,q_a\n", "no complete row"),
        ("t,q_a\n1,2", "no complete row"),
        ("t,q_a\n,2\n", "no complete row"),
        ("t,q_a,q_a\n1,2,3\n", "column q_a is there twice"),
        ("t,q_a,t\n1,2,3\n", "column t is there twice"),
        ("t,q_a,q_b,dq_a\n1,2,3,4\n", "same columns, and there is no dq_b"),
        ("t,q_a,tau_a,tau_b\n1,2,3,4\n", "same columns, and there is no q_b"),
        ("t,q_a,tau_a,effort_a\n1,2,3,4\n", "tau_ and effort_ columns"),
        ("t,q_a\n1,2\n3,4,5\n6,7\n", "line 3 has 3 cells, the header 2"),
        ("t,q_a\n1,2\n\n3\n6,7\n", "line 4 has 1 cells, the header 2"),
        ("t,q_a\n1,2\n3,four\n", "line 3: 'four' is not a number"),
        ("# x\nt,q_a\n1,2\n3,4\n5, 6 7\n", "line 5: '6 7' is not a number"),
        ("t;q_a\n1;2\n0,1;4\n", "line 3: '0,1' is not a number; use a decimal point"),
        ("t,q_a\n1,1_0\n", "line 2: '1_0' is not a number"),
        ("t,q_a\n1,0x10\n", "line 2: '0x10' is not a number"),
    ],
)
def test_csv_that_is_wrong(tmp_path, text, complaint):
    refused(csv(tmp_path, text), complaint)


def test_csv_that_is_no_text(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(table().encode() + b"\xff\xfe\x00")
    refused(path, "not a text file")


@pytest.mark.slow
def test_csv_is_never_held_as_a_whole(tmp_path):
    import tracemalloc

    rows = "".join(f"{row * 0.001!r},{row % 7},{row % 11},{row % 13}\n" for row in range(20_000))
    path = csv(tmp_path, "t,q_a,q_b,q_c\n" + rows)
    peak = {}
    for size in (512, 8192):
        tracemalloc.start()
        recording = replace(open_recording(path), chunk_size=size)
        assert sum(len(chunk) for chunk in recording.chunks(("a", "b", "c"))) == 20_000
        peak[size] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak[512] < 0.8e6  # bytes; text and numbers together are 1.1e6
    assert peak[8192] < 2.5e6
