# SPDX-License-Identifier: Apache-2.0
"""The typed reader: every type that fields have, and every way in which a value can be wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from robot_dyn_id.errors import InputError, MotionError, UsageError
from robot_dyn_id.files.values import choice, file_errors, read_dataclass, read_value
from robot_dyn_id.model.joint_values import JointValues


@dataclass(frozen=True)
class Inner:
    size: float
    name: str = "x"

    def __post_init__(self):
        if self.size < 0.0:
            raise MotionError("size must be 0 or more")


@dataclass(frozen=True)
class Outer:
    inner: Inner
    many: tuple[Inner, ...] = ()
    by_joint: Mapping[str, Inner] = field(default_factory=dict)
    computed: int = field(default=3, init=False)


FLOATS, FLAGS, COLUMNS = NDArray[np.float64], NDArray[np.bool_], NDArray[np.uint32]


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (float, 1, 1.0),
        (float | None, 2.5, 2.5),
        (bool | float, True, True),
        (bool | float, 2, 2.0),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[float, float, float], [1, 2, 3], (1.0, 2.0, 3.0)),
        (tuple[Any, ...], [1, "a"], (1, "a")),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        (Mapping[str, float], 4, {"all": 4.0}),
        (JointValues, {"a": 1, "all": 2}, (("a", 1.0), ("all", 2.0))),
        (JointValues, 3, (("all", 3.0),)),
        (Inner, {"size": 1}, Inner(1.0)),
        (Any, [None], [None]),
    ],
    ids=str,
)
def test_values_take_the_type_of_the_hint(hint, value, expected):
    found = read_value(hint, value, "key")
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value", "kind"),
    [
        (FLOATS, [1, 2.5], np.float64),
        (FLOATS, [[1, 2], [3, 4]], np.float64),
        (FLAGS, [True], np.bool_),
        (COLUMNS, [0, 2**32 - 1], np.uint32),
        (FLOATS, [], np.float64),
    ],
)
def test_arrays(hint, value, kind):
    found = read_value(hint, value, "key")
    assert found.dtype == kind
    assert found.tolist() == value


def test_nan_has_no_sign():
    signed = np.copysign(np.nan, -1.0)
    assert not np.signbit(read_value(float, float(signed), "key"))
    assert not np.signbit(read_value(FLOATS, [float(signed)], "key")).any()


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (float, "1", "key: must be a number, not '1'"),
        (float, "1e9", "key: must be a number, not '1e9'; write 1.0e+9: YAML 1.1 needs"),
        (float, "-2.5E4", "key: must be a number, not '-2.5E4'; write -2.5e+4"),
        (float, True, "key: must be a number, not True"),
        (float, 10**400, "key: must be a number below"),
        (float | None, None, "key: must be a number, not None"),
        (int, 1.0, "key: must be an integer, not 1.0"),
        (bool, 1, "key: must be true or false, not 1"),
        (str, 1, "key: must be a string, not 1"),
        (bool | float, "a", "key: must be true or false or a number, not 'a'"),
        (tuple[str, ...], "ab", "key: must be a list, not 'ab'"),
        (tuple[str, ...], ["a", 1], "key[1]: must be a string, not 1"),
        (tuple[float, float], [1], "key: must be a list of 2 numbers, not [1]"),
        (dict[str, float], {"a": "b"}, "key.a: must be a number, not 'b'"),
        (dict[str, float], [1], "key: must hold keys and values, not [1]"),
        (FLOATS, 1, "key: must be a list, not 1"),
        (FLOATS, [True], "key: must hold numbers, not True"),
        (FLOATS, [[1], 2], "key: its rows have different lengths"),
        (FLOATS, [10**400], "key: holds a number out of the range of float64"),
        (COLUMNS, [-1], "key: holds a number out of the range of uint32"),
        (COLUMNS, [1.0], "key: must hold integers, not 1.0"),
        (FLAGS, [0], "key: must hold true or false, not 0"),
        (Inner, {"size": 1, "nmae": 2}, "key: unknown key 'nmae'; did you mean 'name'?"),
        (Inner, {"name": "x"}, "key: size is missing"),
        (Inner, {"size": -1}, "key: size must be 0 or more"),
        (Outer, {"inner": {"size": 1}, "many": [{"size": 1}, {"size": []}]}, "key.many[1].size: must be a number"),
        (Outer, {"inner": {"size": 1}, "by_joint": {"a": {"name": 2}}}, "key.by_joint.a.name: must be a string"),
        (Outer, {"inner": {"size": 1}, "computed": 1}, "key: unknown key 'computed'"),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_by_its_key(hint, value, words):
    with pytest.raises((UsageError, MotionError)) as error:
        read_value(hint, value, "key")
    assert str(error.value).startswith(words)


def test_a_type_that_cannot_be_read_is_a_mistake_of_the_program():
    with pytest.raises(TypeError, match="cannot be read"):
        read_value(set[int], [1], "key")


def test_all_fields_may_be_demanded_and_some_given():
    assert read_dataclass(Inner, {"size": 1}) == Inner(1.0)
    with pytest.raises(UsageError, match="name is missing"):
        read_dataclass(Inner, {"size": 1}, complete=True)
    assert read_dataclass(Inner, {"size": 1}, complete=True, name="given") == Inner(1.0, "given")
    with pytest.raises(UsageError, match="unknown key 'name'"):
        read_dataclass(Inner, {"size": 1, "name": "a"}, name="given")
    with pytest.raises(UsageError, match=r"^must hold keys and values, not \[1\]"):
        read_dataclass(Inner, [1])


def test_readers_take_the_place_of_hints():
    assert read_dataclass(Inner, {"size": 1, "name": "b"}, readers={"name": choice(("a", "b"))}).name == "b"
    with pytest.raises(UsageError, match="name: unknown value 'c'; known are a, b"):
        read_dataclass(Inner, {"size": 1, "name": "c"}, readers={"name": choice(("a", "b"))})


def test_errors_name_the_file_and_are_of_one_class():
    with pytest.raises(InputError, match=r"^some\.yaml: size must") as error, file_errors("some.yaml", InputError):
        Inner(-1.0)
    assert error.value.action == InputError.advice
    with pytest.raises(InputError) as error, file_errors(None, InputError):
        raise UsageError("wrong", "do this")
    assert (str(error.value), error.value.action) == ("wrong", "do this")
