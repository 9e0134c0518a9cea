# SPDX-License-Identifier: Apache-2.0
"""Writing of YAML: matrices have a path of their own."""

import math

import pytest

from robot_dyn_id.errors import InputError
from robot_dyn_id.text import yaml


def test_matrices_are_written_as_everything_else():
    rows = [[1.0, -2.5e-7, 1e22], [1e-5, 0.1, -0.0], [3.0, 1e16, 5e-324]]
    rest = {"name": "arm", "flags": [True, False], "one": yaml.Row([1.0]), "gaps": [yaml.Row([math.nan, math.inf])]}
    content = {"no": [yaml.Row(row) for row in rows], **rest, "more": [yaml.Row([1, 2])]}
    plain = {key: value for key, value in content.items() if key != "no"}
    text = yaml.format_yaml(content)
    assert text == yaml._dumped({"no": content["no"]}) + yaml._dumped(plain)
    assert yaml.parse_yaml(text, "text")["no"] == rows
    assert yaml.parse_yaml(yaml.format_yaml({}), "text") == {}


def test_a_value_that_is_used_twice_is_written_twice():
    row = yaml.Row([0.5])
    text = yaml.format_yaml({"/**": {"one": row, "other": row, "rows": [row, row]}})
    assert "&" not in text and "*id" not in text
    assert yaml.parse_yaml(text, "text") == {"/**": {"one": [0.5], "other": [0.5], "rows": [[0.5], [0.5]]}}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a: 1\nb: 2\na: 3\n", "lines 1 and 3"),
        ("x:\n  - {a: 1, b: 2}\n  - c: 1\n    d: [1, 2]\n    c: {e: 1}\n", "lines 3 and 5"),
        ("? [1, 2]\n: 3\nb: {}\nb: 1\n", "lines 3 and 4"),
    ],
)
def test_a_key_that_is_there_twice_is_refused_with_both_lines(text, lines):
    with pytest.raises(InputError, match=f"f.yaml: .*is there twice, in {lines}"):
        yaml.parse_yaml(text, "f.yaml")


def test_keys_are_compared_by_type_and_merged_mappings_may_be_several():
    assert yaml.parse_yaml('1: a\n"1": b\n', "f.yaml") == {1: "a", "1": "b"}
    text = "a: &a {x: 1}\nb: &b {y: 2}\nc:\n  <<: *a\n  <<: *b\n  z: 3\n"
    assert yaml.parse_yaml(text, "f.yaml")["c"] == {"x": 1, "y": 2, "z": 3}
    with pytest.raises(InputError, match="lines 1 and 2"):
        yaml.parse_yaml('"a": 1\na: 2\n', "f.yaml")
    with pytest.raises(InputError, match=r"the key a is there twice: remove"):
        yaml.parse_yaml("{a: 1, a: 2}", "f.yaml")


def test_equal_keys_of_different_mappings_are_read():
    content = {"a": {"a": 1, "b": ["a", "a"]}, "b": {"a": [{"a": 1}, {"a": 2}]}}
    assert yaml.parse_yaml(yaml.format_yaml(content), "f.yaml") == content


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cutoff: 5.0\n\tterms: []\n", r"at line 2, column 1; indent by spaces, not by tabs\)"),
        ("joints:\n\telbow: {gain: 2.0}\n", r"at line 2, column 1; indent by spaces, not by tabs\)"),
        ("cutoff: 5.0\nterms: [a, b\n", r"at line 3, column 1\)"),
        ("cutoff: \x01\n", r"position \d+\)"),
    ],
)
def test_a_syntax_error_names_the_file_and_the_line_alone(text, words):
    with pytest.raises(InputError, match=words) as found:
        yaml.parse_yaml(text, "f.yaml")
    assert str(found.value).startswith("f.yaml: not a YAML file (") and "string>" not in str(found.value)
    assert ("tabs" in str(found.value)) == ("\t" in text)
