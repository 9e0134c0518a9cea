# SPDX-License-Identifier: Apache-2.0
"""JointTrajectory as YAML: what is written is read, also as `ros2 topic echo` and goals have it."""

from dataclasses import replace

import yaml
from support.joint_trajectories import rows

from robot_dyn_id.files.joint_trajectory import read_joint_trajectory, write_joint_trajectory


def test_a_trajectory_reads_back_as_it_was_written(tmp_path):
    given = replace(rows(), efforts=rows().positions)
    write_joint_trajectory(tmp_path / "t.yaml", given)
    assert read_joint_trajectory(tmp_path / "t.yaml") == given
    text = (tmp_path / "t.yaml").read_text()
    (tmp_path / "echoed.yaml").write_text(f"---\n{text}---\n{text}---\n")
    assert read_joint_trajectory(tmp_path / "echoed.yaml") == given
    (tmp_path / "goal.yaml").write_text(yaml.safe_dump({"trajectory": yaml.safe_load(text)}))
    assert read_joint_trajectory(tmp_path / "goal.yaml") == given
