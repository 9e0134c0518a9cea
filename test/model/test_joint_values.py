# SPDX-License-Identifier: Apache-2.0
"""Values by joint: by name or in order, always one array in the order of the joints."""

import numpy as np
import pytest

from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.joint_values import joint_array

JOINTS = ("shoulder", "elbow", "wrist")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"wrist": 3.0, "shoulder": 1}, [1.0, 7.0, 3.0]),
        ({"elbow": 2.0, "all": 5.0}, [5.0, 2.0, 5.0]),
        ((("elbow", 2.0), ("all", 5.0)), [5.0, 2.0, 5.0]),
        ([4.0], [4.0, 4.0, 4.0]),
        (np.array([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
        ((), [7.0, 7.0, 7.0]),
        ({}, [7.0, 7.0, 7.0]),
    ],
    ids=str,
)
def test_values_are_in_the_order_of_the_joints(values, expected):
    assert joint_array(values, JOINTS, "gain", 7.0).tolist() == expected


@pytest.mark.parametrize(
    ("values", "key"),
    [([1.0, 2.0], "gain: "), ({"knee": 1.0}, "gain: knee"), ({"elbow": True}, "gain.elbow"), ({"elbow": "x"}, "gain.")],
    ids=str,
)
def test_other_values_are_refused_by_their_key(values, key):
    with pytest.raises(UsageError) as error:
        joint_array(values, JOINTS, "gain")
    assert str(error.value).startswith(key)


def test_the_array_is_new():
    given = np.array([1.0, 2.0, 3.0])
    joint_array(given, JOINTS, "gain")[0] = 9.0
    assert given[0] == 1.0
