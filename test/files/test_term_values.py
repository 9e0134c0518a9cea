# SPDX-License-Identifier: Apache-2.0
"""Files of terms with values: what they mean, and what is refused by name."""

import numpy as np
import pytest
from support.robots import panda_arm

from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.files.term_values import read_term_values
from robot_dyn_id.papers.inputs import model_of
from robot_dyn_id.papers.space6r.trials import TABLE_1


def read(tmp_path, text):
    (tmp_path / "terms.yaml").write_text(text)
    return read_term_values(tmp_path / "terms.yaml", panda_arm())


def test_values_for_all_joints_in_order_and_by_name(tmp_path):
    text = (
        "stribeck: {fcs: 2.0, dfs: {panda_joint2: 1.5, all: 0.5}, stribeck_velocity: [1, 2, 3, 4, 5, 6, 7]}\nspring:\n"
    )
    stribeck, springs = np.split(np.array(read(tmp_path, text), dtype=object), 2)
    assert [at.name for at, *_ in stribeck] == list(panda_arm().joint_names)
    assert [term.stribeck_velocity for _, term, _ in stribeck] == [1, 2, 3, 4, 5, 6, 7]
    assert [values.tolist() for *_, values in stribeck[:3]] == [[2.0, 0.5], [2.0, 1.5], [2.0, 0.5]]
    assert all(term.name == "spring" and values.tolist() == [0.0] for _, term, values in springs)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("viscuos: {fv: 1.0}", "viscous"),
        ("viscous: {fc: 1.0}", "fv"),
        ("viscous: {fv: [1.0, 2.0]}", "viscous.fv has 2 values"),
        ("viscous: {fv: [text]}", "viscous.fv: must be a number"),
        ("viscous: {fv: {joint: 1.0}}", "joint is not a joint"),
        ("stribeck: {stribeck_velocity: 0.0}", "stribeck_velocity"),
        ("{viscous: {fv: 1.0}, improved_stribeck: {fci: 1.0}}", "cannot be identified together"),
    ],
)
def test_mistakes_are_refused_by_name(tmp_path, text, named):
    with pytest.raises(UsageError, match=named) as refused:
        read(tmp_path, text)
    assert "terms.yaml" in str(refused.value)


def test_the_file_of_the_space_manipulator_is_table_1():
    found = {}
    for _, term, values in read_term_values(find_shared_file("config/terms/space6r.yaml"), model_of("space6r")):
        for key, value in {**dict(zip(term.symbols, values, strict=True)), **term.constants}.items():
            found.setdefault(key, []).append(value)
    for key, name in (("Ir", "Jm"), ("ks", "k1"), ("fci", "fc"), ("kva", "kv1"), ("kvb", "kv2"), ("kvc", "kv3")):
        assert tuple(found[key]) == TABLE_1[name]
    assert tuple(found["stribeck_velocity"]) == TABLE_1["vb"]
    assert np.add(found["fci"], found["dfi"]) == pytest.approx(TABLE_1["fb"])
