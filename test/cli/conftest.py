# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of commands: a robot, recordings of it, and a command that runs in this process."""

import pytest
from support.commands import ROBOT, messages, spell
from support.recording_files import write_bag, write_mcap
from support.simulated import ARM, save_npz

from robot_dyn_id.cli import main


@pytest.fixture(scope="session")
def recording():
    return ROBOT.record(duration=30.0, rate=50.0, noise=0.1)


@pytest.fixture(scope="session")
def files(tmp_path_factory, recording):
    """A robot, recordings of it in three formats, and what was identified from one."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "arm.urdf").write_text(ARM)
    save_npz(folder / "data.npz", recording)
    save_npz(folder / "other.npz", ROBOT.record(seed=2, duration=15.0, rate=50.0, noise=0.1))
    write_bag(folder / "bag", messages(recording))
    write_mcap(folder / "bare.mcap", messages(recording))
    assert main(["identify", str(folder / "data.npz"), "--robot", str(folder / "arm.urdf"), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def cli(capfd):
    """Run a command in this process, options as words or by name: exit code, standard output, standard error."""

    def run(*words, **options):
        capfd.readouterr()
        code = main([str(word) for word in (*words, *spell(options))])
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def out(tmp_path):
    """An output folder that holds the results of an earlier run."""
    folder = tmp_path / "earlier"
    folder.mkdir()
    for name in ("parameters.yaml", "report.json", "report.html"):
        (folder / name).write_text(f"earlier {name}")
    return folder
