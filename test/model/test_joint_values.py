# SPDX-License-Identifier: Apache-2.0
"""Values by joint, given by name or in order, become one array in the order of the joints."""

import numpy as np
import pytest

from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.joint_values import make_joint_array

JOINTS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), [7.0, 7.0, 7.0]),
        ({}, [7.0, 7.0, 7.0]),
        ([2], [2.0, 2.0, 2.0]),
        ((1.0, 2.0, 3.0), [1.0, 2.0, 3.0]),
        (np.array([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
        ({"c": 3, "a": 1.0}, [1.0, 7.0, 3.0]),
        ({"all": 2.0, "b": 5.0}, [2.0, 5.0, 2.0]),
        ((("all", 2.0), ("b", 5.0)), [2.0, 5.0, 2.0]),
    ],
    ids=str,
)
def test_values_in_the_order_of_the_joints(values, expected):
    found = make_joint_array(values, JOINTS, "gain", 7.0)
    assert found.tolist() == expected
    found[0] = 0.0  # a new array each time


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((1.0, 2.0), "gain has 2 values, expected 1 or one for each of a, b, c"),
        ({"d": 1.0}, "gain: d is not a joint; known are a, b, c"),
        ({"a": "x"}, "gain.a: must be a number, not 'x'"),
        ({"a": True}, "gain.a: must be a number, not True"),
    ],
    ids=str,
)
def test_values_of_other_joints_are_refused(values, words):
    with pytest.raises(UsageError) as error:
        make_joint_array(values, JOINTS, "gain")
    assert str(error.value) == words
