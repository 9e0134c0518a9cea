# SPDX-License-Identifier: Apache-2.0
"""Writing of YAML: matrices have a path of their own."""

import math

from robot_dyn_id.text import yaml


def test_matrices_are_written_as_everything_else():
    rows = [[1.0, -2.5e-7, 1e22], [1e-5, 0.1, -0.0], [3.0, 1e16, 5e-324]]
    rest = {"name": "arm", "flags": [True, False], "one": yaml.Row([1.0]), "gaps": [yaml.Row([math.nan, math.inf])]}
    content = {"no": [yaml.Row(row) for row in rows], **rest, "more": [yaml.Row([1, 2])]}
    plain = {key: value for key, value in content.items() if key != "no"}
    text = yaml.yaml_text(content)
    assert text == yaml._dumped({"no": content["no"]}) + yaml._dumped(plain)
    assert yaml.parse_yaml(text, "text")["no"] == rows
    assert yaml.parse_yaml(yaml.yaml_text({}), "text") == {}


def test_a_value_that_is_used_twice_is_written_twice():
    row = yaml.Row([0.5])
    text = yaml.yaml_text({"/**": {"one": row, "other": row, "rows": [row, row]}})
    assert "&" not in text and "*id" not in text
    assert yaml.parse_yaml(text, "text") == {"/**": {"one": [0.5], "other": [0.5], "rows": [[0.5], [0.5]]}}
