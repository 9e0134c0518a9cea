# SPDX-License-Identifier: Apache-2.0
"""JointTrajectory as YAML: what is written is read, also as `ros2 topic echo` and goals have it."""

from dataclasses import replace

import pytest
import yaml
from support.joint_trajectories import rows

from robot_dyn_id.errors import InputError
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


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ({"positions": 5}, r"points\[1\]\.positions"),
        ({"positions": {"a": 1.0}}, r"points\[1\]\.positions"),
        ({"positions": 0}, r"points\[1\]\.positions"),
        ({"velocity": [0.1]}, "unknown key 'velocity'; did you mean 'velocities'"),
        (5, r"points\[1\]: must hold keys and values"),
    ],
)
def test_points_that_cannot_be_read_are_refused_with_their_place(tmp_path, point, reason):
    write_joint_trajectory(tmp_path / "t.yaml", rows())
    content = yaml.safe_load((tmp_path / "t.yaml").read_text())
    content["points"][1] = {**content["points"][1], **point} if isinstance(point, dict) else point
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(InputError, match=reason):
        read_joint_trajectory(tmp_path / "t.yaml")
