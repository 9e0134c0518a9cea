# SPDX-License-Identifier: Apache-2.0
"""The measured bag of a Franka arm equals the arrays that were taken from it, row by row."""

import os
from pathlib import Path

import numpy as np
import pytest

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.recordings import open_recording

DATA = os.environ.get("ROBOT_DYN_ID_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="ROBOT_DYN_ID_DATA, the folder of measured data, is not set")


def measured(name):
    path = Path(str(DATA)) / name
    assert path.exists(), f"ROBOT_DYN_ID_DATA is set, and {name} is not there"
    return open_recording(path)


def test_the_bag_equals_its_arrays():
    bag = measured("fer_unisa_bag/panda_exciting_trajectory.db3")
    parts = [measured(f"fer_unisa_bag/{name}.npz") for name in ("train_0_16s", "val_16_24s")]
    joints = bag.joint_names
    assert joints == parts[0].joint_names == parts[1].joint_names
    assert bag.epoch == 0  # the stamps really start at zero
    read = Chunk.join(list(bag.chunks(joints)))
    expected = Chunk.join([chunk for part in parts for chunk in part.chunks(joints)])
    assert len(read) == 727
    # The arrays' stamps were added up from seconds and nanoseconds, with an error of some 1e-15 s.
    np.testing.assert_array_equal(np.rint(read.t * 1e9), np.rint(expected.t * 1e9))
    for name in ("q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(read, name), getattr(expected, name), err_msg=name)
    assert bag.findings(joints) == ()
    assert [part.findings(joints) for part in parts] == [(), ()]


def test_the_currents_of_the_other_robot():
    recording = measured("tiago_figaroh/train_7_48s.npz")
    (chunk,) = recording.chunks(("arm_1_joint", "torso_lift_joint"))
    gears = np.array([100 * 0.136, 1.0])
    np.testing.assert_allclose(chunk.tau, chunk.current * gears, rtol=1e-12)
