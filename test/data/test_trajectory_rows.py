# SPDX-License-Identifier: Apache-2.0
"""Rows of a trajectory: times in seconds."""

from robot_dyn_id.data.trajectory_rows import TrajectoryRows


def test_times_in_seconds():
    empty = ((), ())
    rows = TrajectoryRows(("a",), (0, 1_500_000_000), ((0.0,), (1.0,)), empty, empty, empty)
    assert rows.seconds == [0.0, 1.5]
