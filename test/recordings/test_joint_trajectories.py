# SPDX-License-Identifier: Apache-2.0
"""JointTrajectory in CDR, written by another library, whole and damaged."""

from dataclasses import replace

import pytest
from support.joint_trajectories import message_of, rows

from robot_dyn_id.recordings.joint_trajectories import decode_joint_trajectory
from robot_dyn_id.recordings.reading import Unreadable


def test_a_message_of_another_library_is_decoded():
    given = replace(rows(), accelerations=rows().positions)
    assert decode_joint_trajectory(message_of(given)) == given


def test_a_message_that_ends_early_is_refused_wherever_it_ends():
    message = message_of(rows())
    for length in range(0, len(message) - 8, 13):
        with pytest.raises(Unreadable, match="is not a trajectory_msgs"):
            decode_joint_trajectory(message[:length])
