# SPDX-License-Identifier: Apache-2.0
"""Manifests of fleets."""

import pytest

from robot_dyn_id.errors import InputError
from robot_dyn_id.files.manifest import DEFAULT, is_address, read_manifest

ENTRY = "{robot: R1, date: 2026-01-02, recording: a.npz}"


def written(folder, text):
    (folder / "fleet.yaml").write_text(text)
    return folder / "fleet.yaml"


def test_paths_begin_at_the_manifest(tmp_path):
    text = f"robot_description: arm.urdf\nconfig: c.yaml\nrecordings:\n- {ENTRY}\n"
    text += (
        "- {robot: '007', date: '2026-01-03T12:00:00+01:00', recording: s3://bucket/b.mcap, configuration: gripper}\n"
    )
    manifest = read_manifest(written(tmp_path, text))
    first, second = manifest.recordings
    assert manifest.robot_description == str(tmp_path / "arm.urdf")
    assert manifest.config == str(tmp_path / "c.yaml")
    assert (first.recording, first.configuration) == (str(tmp_path / "a.npz"), DEFAULT)
    assert (second.robot, second.recording, second.key) == ("007", "s3://bucket/b.mcap", ("007", "gripper"))
    assert second.date - first.date == 86400.0 + 11 * 3600.0
    assert is_address(second.recording) and not is_address(first.recording)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("robot_description: a.urdf\nrecordings: []\n", "empty"),
        ("robot_description: a.urdf\nrecordings: 3\n", "list"),
        (f"recordings:\n- {ENTRY}\n", "robot_description"),
        (f"robot_description: a.urdf\nrecordings:\n- {ENTRY}\n- {ENTRY}\n", "twice"),
        ("robot_description: a.urdf\nrecordings:\n- {robot: R, date: noon, recording: a}\n", "not a date"),
        ("robot_description: a.urdf\nrecordings:\n- {robot: ../x, date: 2026-01-01, recording: a}\n", "name of a file"),
        ("robot_description: a.urdf\nrecordings:\n- {robot: R, date: 2026-01-01, recoding: a}\n", "recording"),
        *(
            (
                f"robot_description: a.urdf\nrecordings:\n- {ENTRY}\n- {{robot: {serial}, date: 2026-01-01, recording: a}}\n",
                r"recordings\[1\]\.robot.*quote",
            )
            for serial in ("0012", "10", "1.50", "true", "2026-01-01")
        ),
        ("[1]", "keys"),
    ],
)
def test_wrong_manifests_are_refused_with_the_file(tmp_path, text, reason):
    with pytest.raises(InputError, match=reason) as caught:
        read_manifest(written(tmp_path, text))
    assert "fleet.yaml" in caught.value.message


def test_a_missing_manifest_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.yaml"):
        read_manifest(tmp_path / "none.yaml")
