# SPDX-License-Identifier: Apache-2.0
"""Commands in processes of their own, recordings, and the arm of `bench`."""

import numpy as np
import pytest

from robot_dyn_id.bench.commands import PINNED, START_SAMPLES, run_command, write_recording
from robot_dyn_id.bench.fleet import measure_fleet
from robot_dyn_id.bench.kernels import ROBOTS, Arm
from robot_dyn_id.errors import InternalError
from robot_dyn_id.recordings import open_recording


@pytest.mark.slow
def test_a_command_that_fails_is_a_fault():
    with pytest.raises(InternalError, match="predict ended with 2"):
        run_command(["predict"])


def test_cost_of_a_command_is_that_of_its_process():
    cost = run_command(["--help"])
    assert 0.01 < cost.seconds < 10.0
    assert np.isnan(cost.mebibytes) or 5.0 < cost.mebibytes < 500.0


@pytest.mark.parametrize("suffix", [".npz", ""])
def test_recordings_have_the_samples_of_their_format(tmp_path, suffix):
    write_recording(tmp_path / f"data{suffix}", START_SAMPLES, 100.0)
    recording = open_recording(tmp_path / f"data{suffix}")
    assert len(recording.joint_names) == 7 and PINNED
    assert sum(len(chunk) for chunk in recording.chunks(recording.joint_names)) == START_SAMPLES


def test_the_arm_has_the_parameters_of_the_goals():
    arm = Arm.from_samples(50)
    assert len(arm.independent) == 64 and arm.torque.shape == (7, 50) and ROBOTS == 512


def test_the_merge_of_a_fleet_is_measured():
    merge, size = measure_fleet(repeats=1)
    assert (merge.unit, size.unit) == ("ms", "kB") and "64 parameters" in merge.name
    assert 0.0 < merge.value < 1000.0
    assert 10.0 < size.value < 200.0, "tens of kilobytes"
