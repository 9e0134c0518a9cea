# SPDX-License-Identifier: Apache-2.0
"""`parameters.yaml`: equal to the last bit when read back, and every damage named."""

import contextlib
import re
import resource
import time
from functools import reduce

import numpy as np
import pytest
import yaml
from support.parameter_sets import assert_same, awkward_set, field_types, identified_lift

from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.parameters import FORMAT_VERSION
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.text.yaml import read_yaml


@pytest.mark.parametrize("make", [identified_lift, awkward_set], ids=["identified", "awkward"])
def test_what_is_read_is_what_was_written(make, tmp_path):
    file = tmp_path / "parameters.yaml"
    write_parameters(file, make())
    assert_same(read_parameters(file), make())
    again = tmp_path / "again.yaml"
    write_parameters(again, read_parameters(file))
    assert again.read_bytes() == file.read_bytes()


def test_the_file_is_readable_text(tmp_path):
    file = tmp_path / "parameters.yaml"
    write_parameters(file, identified_lift())
    text = file.read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines[:2] == ["format: robot_dyn_id parameters", f"format_version: {FORMAT_VERSION}"]
    assert "urdf: |" in "\n".join(lines) or any(line.startswith("  urdf: <") for line in lines)
    rows = 2 * len(identified_lift().base.names) + 2 * len(identified_lift().robot.joint_names)
    assert sum(line.startswith("  - [") for line in lines) == rows  # a row of a matrix a line


def test_a_comment_at_the_top_describes_links_and_friction_joint_by_joint(tmp_path):
    """Numbers that the data determine have a standard deviation, and no others."""
    parameters, file = identified_lift(), tmp_path / "parameters.yaml"
    write_parameters(file, parameters)
    comment = [line for line in file.read_text().split("format:")[0].splitlines() if line]
    assert all(line.startswith("#") for line in comment)
    assert f"Verdict: {parameters.judgment.verdict}" in comment[0]
    text = "\n".join(comment)
    links, terms = text.index("Links, in the frame"), text.index("Friction and other terms")
    assert text.index("Base parameters of the links") < links < terms
    for section in (text[links:terms], text[terms:]):
        places = [section.index(f"\n#   {name}") for name in parameters.robot.body_names]
        assert places == sorted(places)
    shown = 0
    for name, value, sigma in zip(
        parameters.base.names, parameters.estimate.values, parameters.estimate.standard_deviations, strict=True
    ):
        found = re.search(rf"\b{name} (\S+) \+- (\S+)", text)
        assert float(found[1]) == pytest.approx(value, abs=0.06 * sigma)
        assert float(found[2].rstrip(",")) == pytest.approx(sigma, rel=0.06)
        shown += 1
    assert shown == len(parameters.base.names)
    lines = text[links:terms].splitlines()
    alone = {
        name for name, other in zip(parameters.base.names, parameters.base.expressions, strict=True) if name == other
    }
    for line in lines:
        if line.startswith("#     mass"):
            assert ("+-" in line) == bool(alone & {"m1", "m2"})


def test_a_file_of_an_earlier_format_names_its_version_and_what_to_do(tmp_path):
    for text, found in (("parameters 1\n", "is missing"), ("parameters\nformat_version: 2\nrobot_name: x\n", "is 2")):
        (tmp_path / "old.yaml").write_text(f"# any comment\nformat: robot_dyn_id {text}")
        with pytest.raises(InputError, match=rf"format_version {found}.*identify the robot again"):
            read_parameters(tmp_path / "old.yaml")


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    file = tmp_path_factory.mktemp("io") / "parameters.yaml"
    write_parameters(file, identified_lift())
    return yaml.safe_load(file.read_text())


def refusal(tmp_path, content):
    file = tmp_path / "wrong.yaml"
    file.write_text(yaml.dump(content, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)))
    with pytest.raises(InputError) as error:
        read_parameters(file)
    line = str(error.value)
    assert line.startswith(f"{file}: ")
    assert "\n" not in line
    return line


FIELDS = dict(field_types())
every_field = pytest.mark.parametrize("name", FIELDS)


def with_entry(content, name, value=None):
    """The content of a file with another value of a field; without it if there is none."""
    part, _, inner = name.partition(".")
    if inner:
        return {**content, part: with_entry(content[part], inner, value)}
    rest = {key: entry for key, entry in content.items() if key != part}
    return rest if value is None else {**content, part: value}


def entry(content, name):
    return reduce(dict.__getitem__, name.split("."), content)


@every_field
def test_every_missing_field_is_named(name, content, tmp_path):
    part, _, field = name.rpartition(".")
    assert f"{part}: {field} is missing" in refusal(tmp_path, with_entry(content, name))


@pytest.mark.parametrize("part", dict.fromkeys(name.partition(".")[0] for name in FIELDS))
def test_every_missing_part_is_named(part, content, tmp_path):
    assert f"{part} is missing" in refusal(tmp_path, with_entry(content, part))


@every_field
@pytest.mark.parametrize("wrong", [{"a": 1}, ["x", [1]], ()], ids=str)
def test_every_field_of_a_wrong_kind_is_named(name, wrong, content, tmp_path):
    assert name in refusal(tmp_path, with_entry(content, name, wrong or {}))


FREE = (
    *("judgment.reasons", "judgment.fit_for", "judgment.unexplained_joints"),
    *("provenance.sources", "provenance.fingerprint.digests", "terms.states"),
)
LISTS = [
    name
    for name, hint in FIELDS.items()
    if hint not in (str, bool, int, float) and name not in (*FREE, "effort.robot_compensates")
]


@pytest.mark.parametrize("name", LISTS)
def test_every_list_of_another_length_is_named(name, content, tmp_path):
    present = entry(content, name)
    other = present[:-1] if present else ["x" if str(FIELDS[name]).startswith("tuple") else 1.0]
    assert re.search("has shape|different lengths", refusal(tmp_path, with_entry(content, name, other)))


@pytest.mark.parametrize("wrong", [[-1], [1.5], [10**12], [True]], ids=str)
def test_columns_that_are_no_numbers_of_columns(wrong, content, tmp_path):
    columns = [*wrong, *content["base"]["independent"][1:]]
    assert "base.independent" in refusal(tmp_path, with_entry(content, "base.independent", columns))


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (None, "format_version is missing"),
        (FORMAT_VERSION + 1, f"format_version is {FORMAT_VERSION + 1}"),
        (str(FORMAT_VERSION), f"format_version is '{FORMAT_VERSION}'"),
        (True, "format_version is True"),
    ],
)
def test_another_format_version_is_refused_with_a_remedy(version, words, content, tmp_path):
    other = {**content, "format_version": version}
    assert words in refusal(tmp_path, other)
    assert f"reads {FORMAT_VERSION}: identify the robot again" in refusal(tmp_path, other)
    rest = {key: value for key, value in content.items() if key != "format_version"}
    assert "format_version is missing" in refusal(tmp_path, rest)
    assert "format_version is missing" in refusal(tmp_path, {**rest, "format": "robot_dyn_id parameters 1"})  # 0.1.0


def test_matrices_keep_their_shape(content, tmp_path):
    rows = content["estimate"]["covariance"]
    for wrong in ([number for row in rows for number in row], rows[:-1], [row[:-1] for row in rows]):
        assert "covariance has shape" in refusal(tmp_path, with_entry(content, "estimate.covariance", wrong))


@pytest.mark.parametrize("text", ["", "[1, 2]", "format: something else\n", "robot_name: x\n"], ids=repr)
def test_files_that_are_something_else(text, tmp_path):
    file = tmp_path / "other.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match="not a parameters file of this tool"):
        read_parameters(file)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"none\.yaml: cannot read the parameters \(No such file"):
        read_parameters(tmp_path / "none.yaml")
    file = tmp_path / "cut.yaml"
    write_parameters(file, identified_lift())
    text = file.read_text()
    file.write_text(text[: text.index("covariance") + 200])
    with pytest.raises(InputError, match=r"cut\.yaml: "):
        read_parameters(file)
    file.write_bytes(b"\xff\xfe\x81")
    with pytest.raises(InputError, match=r"cannot read the parameters \(not a text file; "):
        read_parameters(file)


def laughs(link):
    """Ten lines that stand for 10^10 values."""
    return "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {link(', '.join([f'*a{i - 1}'] * 10))}\n" for i in range(1, 11))


HOSTILE = {
    "nested lists": ("[" * 900, "nested deeper than 50"),
    "lists nested deeper than libraries read": ("[" * 100_000, "nest"),
    "nested mappings": ("{a: " * 100_000, "nested deeper than 50"),
    "nested entries": ("- " * 100_000, "nested deeper than 50"),
    "aliases of aliases": (laughs("[{}]".format), "more than 1000000 values"),
    "merged aliases": (laughs("{{<<: [{}]}}".format), "more than 1000000 values"),
    "alias of itself": ("&a [*a]", "within its own anchor"),
    "many values": ("[" + "1," * 1_000_001 + "]", "more than 1000000 values"),
    "long number": ("9" * 1_000_000, "a number of more than 1000 characters"),
    "long number of base 60": ("1" + ":1" * 1_000_000, "a number of more than 1000 characters"),
    "number in quotes": (f"!!int '{'1:' * 1_000_000}1'", "a number of more than 1000 characters"),
    "no date": ("2001-99-99", "month must be in 1..12"),
    "no truth value": ("!!bool x", "a value is not what its tag says"),
    "empty number": ("!!int ''", "a value is not what its tag says"),
    "no time": ("!!timestamp x", "a value is not what its tag says"),
    "code": ("!!python/object/apply:os.system ['exit']", "could not determine a constructor"),
    "null": ("a: \0", "not a YAML file"),
    "size": (" " * (64 * 2**20 + 1), "larger than 64 MiB"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_yaml_is_refused_at_once(case, tmp_path):
    text, words = HOSTILE[case]
    file = tmp_path / "hostile.yaml"
    file.write_text(text)
    begin = time.process_time()
    with pytest.raises(InputError) as refused:
        read_yaml(file, "parameters")
    assert time.process_time() - begin < 5.0
    assert str(refused.value).startswith(f"{file}: ")
    assert words in str(refused.value)


def test_aliases_and_merges_within_reason_are_read(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]\n")
    assert read_yaml(file, "parameters") == {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": [{"x": 1}] * 2}


def test_a_damaged_file_gives_declared_errors_only(tmp_path):
    """Bytes changed, cut, repeated at random: parameters or a line, never another exception."""
    file, rng = tmp_path / "damaged.yaml", np.random.default_rng(0)
    write_parameters(file, identified_lift())
    whole = np.frombuffer(file.read_bytes(), dtype=np.uint8)
    for _ in range(30):
        damaged = whole.copy()
        damaged[rng.integers(0, len(whole), rng.integers(1, 20))] = rng.choice(list(b"[]{}&*!:-#\n\t'\"09aN\xff\x00"))
        start, end = sorted(rng.integers(0, len(whole), 2))
        kind = rng.integers(3)
        content = (damaged, damaged[:end], np.concatenate([damaged[:end], damaged[start:]]))[kind]
        file.write_bytes(content.tobytes())
        with contextlib.suppress(RobotDynIdError):
            read_parameters(file)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    below_a_file = tmp_path / "file"
    below_a_file.write_text("mine")
    with pytest.raises(InputError, match=r"parameters\.yaml: cannot be written \(Not a directory\)"):
        write_parameters(below_a_file / "parameters.yaml", identified_lift())
    taken = tmp_path / "taken"
    (taken / "in").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot be written"):
        write_atomically(taken, "text")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(InputError, match=r"file: cannot be written \(File too large\)"):
            write_atomically(below_a_file, "more than ten bytes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert below_a_file.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "taken"], "no part of a file is left behind"
