# SPDX-License-Identifier: Apache-2.0
"""Differences in words: what changed is stated with its size, what did not is stated as unchanged."""

import re

import numpy as np
import pytest
from support.simulated import Simulated

from robot_dyn_id.comparison.words import ParameterColumns, describe_changes

ARM = Simulated()
BODIES = 10 * len(ARM.model.body_names)
SIGMA = 0.003 * np.abs(ARM.base_values).max() ** 0.5 * np.sqrt(np.abs(ARM.base_values) + 0.05)


def describe(changed, seed=0, sigma=SIGMA):
    """Sentences about a change of the full parameters, with an error of the estimates."""
    error = sigma * np.random.default_rng(seed).normal(size=len(sigma))
    difference = ARM.base.mapping @ (changed - ARM.parameters) + error
    columns = ParameterColumns.from_regressor(ARM.regressor, ARM.parameters)
    return describe_changes(difference, np.diag(sigma**2), ARM.base.mapping, columns, ARM.base.names)


def scaled(places, factor):
    values = ARM.parameters.copy()
    values[places] *= factor
    return values


def percent(text):
    return float(re.search(r"([+-][\d.]+) %", text)[1])


def columns_of(*names):
    return [BODIES + i for i, c in enumerate(ARM.regressor.term_columns) if c.term.name in names]


def test_no_change_is_stated_as_none_with_what_the_data_leave_open():
    words = describe(ARM.parameters)
    assert [word.partition(" unchanged")[0] for word in words] == ["friction", "bodies", "offsets"]
    assert "within" in words[0]


def test_a_common_factor_of_all_friction_is_one_sentence():
    words = describe(scaled(columns_of("viscous", "coulomb"), 1.25))
    assert words[0].startswith("friction +") and words[0].endswith("on all joints")
    assert percent(words[0]) == pytest.approx(25.0, abs=3.0)
    assert words[1].startswith("bodies unchanged")


def test_one_kind_of_friction_is_separated_from_the_other():
    words = describe(scaled(columns_of("viscous"), 0.8))
    assert words[0].startswith("viscous friction -") and words[0].endswith("on all joints")
    assert words[1].startswith("coulomb friction unchanged")


def test_one_joint_is_named():
    words = describe(scaled(columns_of("viscous")[1], 1.8))
    assert "viscous friction" in words[0] and words[0].endswith(f"on {ARM.joints[1]}")
    assert percent(words[0]) == pytest.approx(80.0, abs=6.0)


def test_a_heavier_body_is_named_with_its_factor():
    words = describe(scaled(range(20, 30), 1.25))
    assert words[0].startswith("friction unchanged")
    assert words[1].startswith(f"body of {ARM.joints[2]} +") and percent(words[1]) == pytest.approx(25.0, abs=5.0)


def test_a_point_mass_names_parameters_and_an_offset_its_joint():
    values = ARM.parameters.copy()
    values[20] += 0.5
    values[[21, 22]] += 0.3
    values[columns_of("offset")[0]] += 1.0
    words = describe(values)
    assert words[1].startswith("bodies differ: m") and words[-1].startswith(f"offset of {ARM.joints[0]} +1 ")


def test_false_changes_are_as_rare_as_stated():
    alarms = sum(any("unchanged" not in word for word in describe(ARM.parameters, seed)) for seed in range(300))
    assert alarms <= 9  # 3 expected at 1 %; more than 9 have a probability of 1 in 1000


def test_parameters_that_are_not_identifiable_are_left_out():
    unknown = SIGMA.copy()
    unknown[0] = np.inf
    columns = ParameterColumns.from_regressor(ARM.regressor, ARM.parameters)
    found = describe_changes(np.zeros(len(unknown)), np.diag(unknown**2), ARM.base.mapping, columns, ARM.base.names)
    assert all("unchanged" in word for word in found)
