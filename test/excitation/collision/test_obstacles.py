# SPDX-License-Identifier: Apache-2.0
"""Valid and invalid obstacles of files."""

import numpy as np
import pytest

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.obstacles import parse_obstacles


def test_boxes_and_half_spaces():
    box, wall = parse_obstacles(
        [
            {"name": "table", "box": [1, 2, 3], "position": [0.1, 0.2, 0.3], "rpy": [0, 0, np.pi / 2]},
            {"name": "wall", "height": -0.8, "normal": [0, -2, 0]},
        ]
    )
    assert (box.name, box.size.tolist(), box.position.tolist()) == ("table", [1, 2, 3], [0.1, 0.2, 0.3])
    assert box.rotation @ [1, 0, 0] == pytest.approx([0, 1, 0])
    assert (wall.normal.tolist(), wall.height) == ([0, -1, 0], -0.8)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"name": "t", "box": [1, 2, 0], "position": [0, 0, 0]}, r"obstacle t: box \[1.0, 2.0, 0.0\] must have three"),
        ({"name": "t", "box": [1, 2, 3]}, "obstacle t: position must be 3 numbers, not None"),
        ({"name": "t", "box": [1, 2], "position": [0, 0, 0]}, r"obstacle t: box must be 3 numbers, not \[1, 2\]"),
        ({"name": "t", "box": [1, 2, "x"], "position": [0, 0, 0]}, "obstacle t: box must be 3 numbers"),
        (
            {"name": "t", "box": [1, 2, 3], "positon": [0, 0, 0]},
            "obstacle t: unknown key positon; did you mean position",
        ),
        ({"name": "g", "height": "low"}, "obstacle g: height must be a number"),
        ({"name": "g", "height": 0.0, "normal": [0, 0, 0]}, "obstacle g: normal .* must not be zero"),
        ({"name": "g", "sphere": 1}, "obstacle g: needs `box`"),
        ({"height": 0.0}, "obstacle 1: `name` is missing"),
        ("ground", "obstacles must be a list of entries"),
    ],
)
def test_what_is_wrong_is_named(entry, message):
    with pytest.raises(UsageError, match=message):
        parse_obstacles([entry])


def test_two_of_a_name():
    with pytest.raises(UsageError, match="obstacle g: the name is used twice"):
        parse_obstacles([{"name": "g", "height": 0.0}] * 2)
