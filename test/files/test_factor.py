# SPDX-License-Identifier: Apache-2.0
"""`factor.npz`: read back to the last bit; damaged files are refused."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from support.fleets import SimulatedFleet

from robot_dyn_id.errors import InputError
from robot_dyn_id.files.factor import LARGEST, encode_factor, parse_factor, read_factor, write_factor
from robot_dyn_id.identification.factor import Factor
from robot_dyn_id.parameters import Fingerprint, Ranges


@pytest.fixture(scope="module")
def factor():
    rows = SimulatedFleet(1).rows(0, 0)
    prints = Fingerprint(np.arange(3, dtype=np.uint32), np.array([1.0]), np.array([2.0]))
    choices = {
        "urdf_sha256": "0" * 64,
        "joint_names": ["a", "b", "c"],
        "held": {"d": 0.5},
        "gravity": [0.0, 0.0, -9.81],
        "column_names": ["m", "fv"],
        "independent_columns": list(range(rows.factors.parameters)),
        "term_constants": [["coulomb", "a", 0.05]],
        **dict.fromkeys(("sample_rate", "cutoff", "motion_cutoff"), 5.0),
        **dict.fromkeys(("decimation", "filter_order", "autoregressive_order"), 2),
        **dict.fromkeys(("period", "rest_speed"), 0.0),
        **{name: [0.0, 0.0, 0.0] for name in ("reversal_speeds", "drive_gains", "drive_signs", "relative_gains")},
        "velocity": "derivative",
        "effort_kind": "torque",
    }
    ranges = Ranges(-np.ones(3), np.ones(3), np.ones(3), 2 * np.ones(3))
    return Factor(choices, rows, ("one",), "1" * 64, prints, ranges, 2)


def test_a_factor_is_read_back_as_it_was(tmp_path, factor):
    write_factor(tmp_path / "factor.npz", factor)
    again = read_factor(tmp_path / "factor.npz")
    names = tuple(map(str, range(factor.statistics.factors.parameters)))
    one, other = (each.statistics.estimate(names) for each in (factor, again))
    assert np.abs(one.values - other.values).max() <= 1e-13 * np.abs(one.values).max()
    assert one.covariance == pytest.approx(other.covariance)
    assert (again.choices, again.sources, again.dropped) == (dict(factor.choices), factor.sources, factor.dropped)
    assert encode_factor(again) == encode_factor(parse_factor(encode_factor(again), "again"))


def changed(factor, **arrays):
    with np.load(io.BytesIO(encode_factor(factor))) as archive:
        content = {name: archive[name] for name in archive.files} | arrays
    stream = io.BytesIO()
    np.savez(stream, **content)
    return stream.getvalue()


def with_header(factor, **changes):
    with np.load(io.BytesIO(encode_factor(factor))) as archive:
        header = json.loads(archive["header"].tobytes()) | changes
    return changed(factor, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("urdf_sha256", None),
        ("urdf_sha256", 5),
        ("cutoff", "5"),
        ("sample_rate", 0.0),
        ("gravity", [0.0, 9.81]),
        ("drive_gains", [1.0]),
        ("decimation", 0),
        ("independent_columns", [0, 1]),
        ("held", ["d"]),
        ("term_constants", ["coulomb"]),
    ],
)
def test_choices_of_other_names_or_types_are_refused(factor, name, value):
    choices = dict(factor.choices)
    assert parse_factor(with_header(factor, choices=choices), "factor.npz").choices == choices
    choices.pop(name)
    with pytest.raises(InputError, match="damaged"):
        parse_factor(with_header(factor, choices=choices), "factor.npz")
    with pytest.raises(InputError, match="damaged"):
        parse_factor(with_header(factor, choices={**choices, name: value}), "factor.npz")


def test_compressed_arrays_are_refused_unread(tmp_path):
    path = tmp_path / "factor.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.zeros(2**22, dtype=np.uint8))
        archive.writestr("header.npy", stream.getvalue())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="damaged"):
            read_factor(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_header_that_states_another_size_is_refused(factor):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(content := io.BytesIO(), "w") as archive:
        archive.writestr("header.npy", stream.getvalue())
    with pytest.raises(InputError, match="damaged"):
        parse_factor(content.getvalue(), "factor.npz")


def test_damaged_files_are_refused(factor):
    good = encode_factor(factor)
    header = np.frombuffer(json.dumps({"format": "robot_dyn_id factor", "format_version": 99}).encode(), dtype=np.uint8)
    wrong = [
        b"",
        b"no archive",
        good[: len(good) // 2],
        changed(factor, header=np.zeros(3, dtype=np.uint8)),
        changed(factor, header=header),
        changed(factor, triangle_0=np.full(3, np.nan)),
        changed(factor, support_0=np.array([0, 10_000])),
        changed(factor, noise=np.array([np.nan, 1.0, 1.0])),
        changed(factor, header=np.array([None], dtype=object)),
        changed(factor, noise=np.array([-1.0, 1.0, 1.0])),
        changed(factor, counts=np.array([-5, 1, 1])),
        with_header(factor, dropped=-1),
        with_header(factor, parameters=1),
    ]
    for content in wrong:
        with pytest.raises(InputError):
            parse_factor(content, "factor.npz")


def test_what_is_no_factor_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_factor(tmp_path / "none.npz")
    large = tmp_path / "large.npz"
    with large.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(InputError, match="larger"):
        read_factor(large)
