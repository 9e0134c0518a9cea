# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id fleet`, and factors of `identify`."""

import sys

import numpy as np
import pytest
from support.commands import run_here
from support.fleets import SimulatedFleet

from robot_dyn_id.cli import main
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.workflow.scheduler import InProcess, open_executor

FLEET = SimulatedFleet(2, 4, duration=6.0)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return FLEET.write(tmp_path_factory.mktemp("fleet"), 2, broken=((1, 1),))


@pytest.mark.slow
def test_recordings_that_are_left_out_do_not_fail_the_command(manifest, tmp_path, capsys):
    code, found = run_here(capsys, "fleet", "identify", manifest, "--out", tmp_path / "out", "--workers", 0)
    assert code == 0
    assert [one["robot"] for one in found["left_out"]] == ["R0001"]
    assert (tmp_path / "out" / "robots" / "R0000.yaml").is_file()


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        (["--scheduler", "tcp://127.0.0.1:9"], 3, "127.0.0.1:9"),
        (["--scheduler", "tcp://192.0.2.1:8786"], 3, "--insecure"),
        (["--scheduler", "tls://192.0.2.1:8786"], 2, "--tls-ca"),
        (["--scheduler", "tls://192.0.2.1:8786", "--tls-ca", "none.pem"], 2, "--tls-cert"),
        (["--insecure"], 2, "--scheduler"),
        (["--workers", "-1"], 2, "--workers"),
    ],
)
def test_schedulers_that_cannot_be_used(manifest, tmp_path, capsys, monkeypatch, options, code, named):
    monkeypatch.setattr("robot_dyn_id.workflow.scheduler.CONNECT_S", 1.0)
    found, error = run_here(capsys, "fleet", "identify", manifest, "--out", tmp_path / "out", *options)
    assert found == code and named in error["error"]["message"]


def test_a_missing_manifest_is_named(tmp_path, capsys):
    code, error = run_here(capsys, "fleet", "identify", tmp_path / "none.yaml", "--out", tmp_path / "out")
    assert code == 3 and "none.yaml" in error["error"]["message"]


def test_without_dask_this_process_does_it_and_several_name_the_extra(manifest, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with open_executor() as executor:
        assert isinstance(executor, InProcess)
    code, error = run_here(capsys, "fleet", "identify", manifest, "--out", tmp_path / "out", "--workers", 2)
    assert code == 3 and "pip install '.[fleet]'" in error["error"]["message"]


@pytest.mark.slow
def test_identify_updates_a_factor(manifest, tmp_path, capsys):
    folder = manifest.parent
    first, second = (folder / f"R0000_{number}.npz" for number in range(2))
    robot = ["--robot", folder / "arm.urdf"]
    pinned = ["--estimator", "weighted", "--cutoff", 5, *robot]
    assert main([*map(str, ["identify", first, *pinned, "--out", tmp_path / "a", "--save-factor"])]) == 0
    update = ["identify", second, *robot, "--add", tmp_path / "a" / "factor.npz", "--out", tmp_path / "b"]
    assert main([*map(str, update)]) == 0
    assert main([*map(str, ["identify", first, second, *pinned, "--out", tmp_path / "ab"])]) == 0
    updated, whole = (read_parameters(tmp_path / name / "parameters.yaml") for name in ("b", "ab"))
    assert np.abs(updated.estimate.values - whole.estimate.values).max() <= 1e-9 * np.abs(whole.estimate.values).max()
    assert updated.provenance.sources == whole.provenance.sources
    assert (tmp_path / "b" / "factor.npz").is_file()
    capsys.readouterr()
    for options, named in ((["--friction", "stribeck"], "column_names"), (["--cutoff", 4], "cutoff")):
        code, error = run_here(capsys, *update[:-1], tmp_path / "c", *options)
        assert code == 3 and named in error["error"]["message"]
    other = tmp_path / "other.urdf"
    other.write_text((folder / "arm.urdf").read_text().replace('name="l3"', 'name="l3" '))
    code, error = run_here(capsys, *[other if word == robot[1] else word for word in update[:-1]], tmp_path / "c")
    assert code == 3 and "another robot" in error["error"]["message"]
    code, error = run_here(capsys, *update[:-1], tmp_path / "c", "--estimator", "robust")
    assert code == 2 and "robust" in error["error"]["message"]
