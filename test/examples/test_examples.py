# SPDX-License-Identifier: Apache-2.0
"""Every script of `examples/` runs, and finds what its simulated data contain."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

HELPERS = {"simulated_arm.py", "flexible_recordings.py"}
"""Modules that the examples import."""


def finds_the_number_of_base_parameters(count):
    assert count == 17


def recovers_friction(parameters):
    found = dict(zip(parameters.base.names, parameters.estimate.values, strict=True))
    np.testing.assert_allclose([found[f"fv{joint}"] for joint in (1, 2, 3)], [1.5, 1.0, 0.4], rtol=0.1)
    assert parameters.judgment.verdict == "good"


def is_well_conditioned(condition_number):
    assert 1.0 < condition_number < 30.0


def predicts_within_two_percent(error):
    assert error < 0.02


def recovers_cubic_friction(parameters):
    found = dict(
        zip(
            parameters.base.names,
            zip(parameters.estimate.values, parameters.estimate.standard_deviations, strict=True),
            strict=True,
        )
    )
    for joint in (1, 2, 3):
        value, sigma = found[f"fq{joint}"]
        assert abs(value - 0.02) < 4.0 * sigma
    assert found["fq2"][0] == pytest.approx(0.02, rel=0.2)


def survives_a_collision(errors):
    assert errors["without_large_torques"] < 0.2 < errors["weighted"]


def recovers_the_mass(mass):
    assert mass == pytest.approx(1.5, rel=0.02)


def recovers_stiffness(values):
    for name, (value, true) in values.items():
        if name.startswith("K"):
            assert value == pytest.approx(true, rel=0.05), name


CHECKS = {
    "1_base_parameters.py": finds_the_number_of_base_parameters,
    "2_identify_npz.py": recovers_friction,
    "3_identify_bag.py": recovers_friction,
    "4_design_excitation.py": is_well_conditioned,
    "5_predict_and_control.py": predicts_within_two_percent,
    "6_own_friction_term.py": recovers_cubic_friction,
    "7_own_estimator.py": survives_a_collision,
    "8_payload.py": recovers_the_mass,
    "9_flexible_joints.py": recovers_stiffness,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_an_example_finds_what_its_data_contain(name, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)
    module = f"example_{name[0]}"
    spec = importlib.util.spec_from_file_location(module, EXAMPLES / name)
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module, example)
    spec.loader.exec_module(example)
    CHECKS[name](example.main(tmp_path / "example"))
    assert capsys.readouterr().out


def test_the_index_lists_every_example_in_order():
    scripts = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in HELPERS)
    assert scripts == sorted(CHECKS)
    listed = re.findall(r"^\| \[(.+?)\]\((.+?)\)", (EXAMPLES / "README.md").read_text(), re.M)
    assert listed == [(name, name) for name in scripts]
