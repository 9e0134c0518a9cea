# SPDX-License-Identifier: Apache-2.0
"""Sources of a prior: a parameter set, or a robot description."""

import pytest
from support.parameter_sets import assert_same, awkward_set
from support.simulated import ARM

from robot_dyn_id.errors import InputError
from robot_dyn_id.files.configuration import parse_configuration
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.files.prior import read_prior
from robot_dyn_id.model.urdf import RobotDescription


@pytest.mark.parametrize("before", ["", "\n  ", "\ufeff"], ids=["plain", "blank", "byte order mark"])
def test_xml_is_a_robot_description(tmp_path, before):
    file = tmp_path / "robot.urdf"
    file.write_text(before + ARM, encoding="utf-8")
    prior = read_prior(file)
    assert isinstance(prior, RobotDescription)
    assert prior.source == str(file)
    settings = parse_configuration({"estimator": "consistent", "prior": str(file)}).settings
    assert settings.prior == prior


def test_anything_else_is_a_parameter_set(tmp_path):
    file = tmp_path / "parameters.yaml"
    write_parameters(file, awkward_set())
    assert_same(read_prior(file), awkward_set())
    file.write_text("neither: of the two\n")
    with pytest.raises(InputError, match=r"parameters\.yaml"):
        read_prior(file)
    with pytest.raises(InputError, match=r"missing\.yaml"):
        read_prior(tmp_path / "missing.yaml")
