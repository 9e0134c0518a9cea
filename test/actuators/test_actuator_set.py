# SPDX-License-Identifier: Apache-2.0
"""Identified actuators as files have them, to the bit, and content that no identification writes."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import (
    GOOD,
    MODEL,
    TRUTH,
    assert_same_actuators,
    make_actuator_set,
    make_awkward_actuators,
    save_actuators,
)
from support.simulated import ARM

from robot_dyn_id.actuators.actuator_set import ActuatorJudgment
from robot_dyn_id.actuators.draws import draw_actuators
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.errors import InputError
from robot_dyn_id.files.actuators import read_actuators, write_actuators
from robot_dyn_id.kernels.actuators import ARMATURE, DELAY, KINDS, LIMIT

PLAIN = make_actuator_set()


def test_a_file_has_all_of_it_to_the_last_bit(tmp_path):
    for number, one in enumerate((PLAIN, make_awkward_actuators())):
        path = tmp_path / f"{number}.yaml"
        write_actuators(path, one)
        assert_same_actuators(read_actuators(path), one)


def test_the_model_has_the_links_the_gravity_and_the_held_joints():
    one = make_awkward_actuators()
    model = one.model(ARM)
    assert sorted(model.joint_names) == sorted(one.actuators.joint_names) == ["shoulder", "wrist"]
    assert model.held == {"elbow": 0.1}
    np.testing.assert_array_equal(model.gravity, one.robot.gravity)
    places = [one.robot.body_names.index(name) for name in model.body_names]
    expected = one.robot.standard_parameters.reshape(-1, 10)[places]
    np.testing.assert_array_equal(model.inertial_parameters.reshape(-1, 10), expected)
    assert places != sorted(places), "the order of the file does not matter"
    np.testing.assert_array_equal(PLAIN.model(ARM).inertial_parameters, MODEL.inertial_parameters)


def test_draws_of_a_file_are_those_of_the_estimate(tmp_path):
    stored = read_actuators(save_actuators(tmp_path / "actuators.yaml"))
    draws = [draw_actuators(one.actuators, one.uncertainty, 2, 5) for one in (PLAIN, stored)]
    for first, second in zip(*draws, strict=True):
        np.testing.assert_array_equal(first.values, second.values)
    assert not np.array_equal(draws[0][0].values, draws[0][1].values)


def changed(**parts):
    return {name: replace(getattr(PLAIN, name), **fields) for name, fields in parts.items()}


def renumber(at, number):
    """The index with another number of some values."""
    index = PLAIN.uncertainty.index.copy()
    index[at] = number
    return {"index": index}


FIRST, DELAYS, LAST_DELAY, LIMITS = np.s_[ARMATURE, 0], np.s_[DELAY], np.s_[DELAY, 2], np.s_[[DELAY, LIMIT]]


WRONG = {
    "a number that is left out": (changed(uncertainty=renumber(FIRST, 1)), "does not number the parameters"),
    "a number too high": (changed(uncertainty=renumber(DELAYS, 2**31 - 1)), "correlation has shape"),
    "a negative number": (changed(uncertainty=renumber(FIRST, -2)), "does not number the parameters"),
    "two kinds": (changed(uncertainty=renumber(LAST_DELAY, 5)), "for values of two kinds"),
    "an estimate without a value": (
        changed(uncertainty=renumber(LIMITS, [[-1], [6]])),
        "numbers a value that is not known",
    ),
    "no correlation": (changed(uncertainty={"correlation": np.zeros(0)}), "correlation has shape"),
    "an interval that is too wide": (
        changed(uncertainty={"high": np.full((len(KINDS), 3), 1e300)}),
        r"1e\+300 is above",
    ),
    "another number of joints": (changed(uncertainty={"low": np.zeros((12, 2))}), "low has shape"),
    "a correlation that is not finite": (changed(uncertainty={"correlation": np.full((7, 7), np.inf)}), "holds inf"),
    "a negative deviation": (changed(uncertainty={"between": np.full((len(KINDS), 3), -1.0)}), "expected 0 or more"),
    "an unknown verdict": (changed(judgment={"verdict": "fine"}), "expected one of good, suspect, bad"),
    "an unknown answer": (changed(judgment={"fit_for_simulation": "maybe"}), "expected one of yes, limited, no"),
    "no gravity": (changed(robot={"gravity": np.zeros(0)}), "gravity has shape"),
    "bodies without parameters": (changed(robot={"body_names": ("shoulder",)}), "standard_parameters has shape"),
    "a position that is not a number": (
        changed(robot={"held_joint_names": ("elbow",), "held_joint_positions": np.array([np.nan])}),
        "held_joint_positions holds nan",
    ),
    "a joint that is there twice": (
        {"actuators": ActuatorModel.from_values(("wrist", "elbow", "wrist"), TRUTH.values)},
        "joint_names has wrist twice",
    ),
}


@pytest.mark.parametrize(("parts", "words"), WRONG.values(), ids=WRONG)
def test_what_no_identification_writes_is_refused(parts, words):
    with pytest.raises(InputError, match=f"actuator set: .*{words}"):
        replace(PLAIN, **parts)


def test_links_of_another_robot_are_refused():
    parts = changed(robot={"body_names": ("arm",), "standard_parameters": np.ones(10)})
    with pytest.raises(InputError, match="not the moving ones"):
        replace(PLAIN, **parts).model(ARM)


def test_actuators_that_are_not_fit_are_refused_with_the_reasons():
    replace(PLAIN, judgment=replace(GOOD, fit_for_simulation="limited")).refuse_unfit()
    with pytest.raises(InputError, match="not fit for simulation: it misses; it diverges"):
        replace(PLAIN, judgment=ActuatorJudgment("bad", ("it misses", "it diverges"), "no")).refuse_unfit()


@pytest.mark.parametrize(
    ("text", "by", "words"),
    [
        ("correlation:", "correlations:", "correlation is missing"),
        ("parameter: 0\n", "parameter: 0.5\n", r"joints\[0\].armature.parameter: must be an integer"),
        ("    value: 0.12\n", "    worth: 0.12\n", r"joints\[0\].armature: unknown key 'worth'"),
        ("  armature:", "  inertia:", r"joints\[0\].armature is missing"),
        ("simulation_under_position_commands:", "simulation:", "fit_for.simulation_under_position_commands is missing"),
    ],
)
def test_a_file_with_other_keys_is_refused_in_one_line(tmp_path, text, by, words):
    path = save_actuators(tmp_path / "actuators.yaml")
    assert text in path.read_text()
    path.write_text(path.read_text().replace(text, by, 1))
    with pytest.raises(InputError, match=words) as caught:
        read_actuators(path)
    assert "\n" not in str(caught.value)
