# SPDX-License-Identifier: Apache-2.0
"""`factor.npz`: read back to the last bit; damaged files are refused."""

import io
import json

import numpy as np
import pytest
from support.fleets import SimulatedFleet

from robot_dyn_id.errors import InputError
from robot_dyn_id.files.factor import LARGEST, factor_bytes, parse_factor, read_factor, write_factor
from robot_dyn_id.identification.factor import Factor
from robot_dyn_id.signals.fingerprint import Fingerprint
from robot_dyn_id.signals.ranges import Ranges


@pytest.fixture(scope="module")
def factor():
    rows = SimulatedFleet(1).rows(0, 0)
    prints = Fingerprint(np.arange(3, dtype=np.uint32), np.array([1.0]), np.array([2.0]))
    choices = {"urdf_sha256": "0" * 64, "joint_names": ["a", "b", "c"], "cutoff": 5.0}
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
    assert factor_bytes(again) == factor_bytes(parse_factor(factor_bytes(again), "again"))


def changed(factor, **arrays):
    with np.load(io.BytesIO(factor_bytes(factor))) as archive:
        content = {name: archive[name] for name in archive.files} | arrays
    stream = io.BytesIO()
    np.savez(stream, **content)
    return stream.getvalue()


def test_damaged_files_are_refused(tmp_path, factor):
    good = factor_bytes(factor)
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
