# SPDX-License-Identifier: Apache-2.0
"""Findings: each defined once, made, and documented."""

import ast
import re
from pathlib import Path

import pytest

import robot_dyn_id
from robot_dyn_id.findings import (
    WITHOUT_FINDINGS,
    Definition,
    Finding,
    Section,
    find_definition,
    format_finding,
    format_findings,
    is_overrulable,
    list_definitions,
    summarize_findings,
)
from robot_dyn_id.uses import LIMITED, MOTION_USES, NO, USES, YES

PACKAGE = Path(robot_dyn_id.__file__).parent


def calls(path, name):
    """Calls of a function, or of a method, in a file."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if f"{name}(" in text else ():
        if isinstance(node, ast.Call) and name in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
            yield node


@pytest.mark.slow
def test_every_finding_is_defined_once_under_its_own_name_and_made():
    """The definition of `effort_sign` is the constant EFFORT_SIGN of a module, and a call `EFFORT_SIGN.found(...)` makes it."""
    files = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in WITHOUT_FINDINGS]
    defined = [node.args[0].value for path in files for node in calls(path, "Definition")]
    sites = [node.func for path in files for node in calls(path, "found") if isinstance(node.func, ast.Attribute)]
    made = {getattr(site.value, "id", "").lower() for site in sites}
    assert sorted(defined) == sorted(one.code for one in list_definitions())
    assert set(defined) - made == set()


def test_folders_without_findings_define_none():
    paths = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] in WITHOUT_FINDINGS]
    assert paths and not [path for path in paths for _ in calls(path, "Definition")]


def test_every_code_is_asserted_by_another_test():
    """As a literal of its own: a code that no test provokes may never be reported."""
    tests = [path for path in Path(__file__).parent.rglob("test_*.py") if path != Path(__file__)]
    literals = {word for path in tests for word in re.findall(r'"(\w+)"', path.read_text(encoding="utf-8"))}
    assert {one.code for one in list_definitions()} - literals == set()


def test_only_errors_refuse_and_can_be_overruled():
    overrulable = [one for one in list_definitions() if one.overrulable]
    assert overrulable and all(one.severity == "error" and is_overrulable(one.code) for one in overrulable)
    assert not is_overrulable("held_out_error") and not is_overrulable("nonsense")


def test_causes_are_sentences_and_cures_are_imperative_phrases():
    for one in list_definitions():
        assert one.code.isidentifier() and one.code == one.code.lower()
        assert one.cause[0].isupper() and one.cause.endswith("."), one.code
        assert one.cure == "" or (one.cure[0].islower() and not one.cure.endswith(".")), one.code
        assert "--" not in one.cause + one.cure, "options belong to the command line"


def test_a_definition_states_what_it_lowers():
    delayed = find_definition("effort_delayed")
    assert delayed.lowered("computed_torque", "warning") == LIMITED
    assert delayed.lowered("computed_torque", "info") == delayed.lowered("payload", "warning") == YES
    assert {find_definition("contact").lowered(use, "error") for use in USES} == {NO}
    assert find_definition("effort_gravity_compensated").lowered("payload", "info") == NO


def test_a_code_is_defined_once_and_lowers_known_uses():
    with pytest.raises(ValueError, match="contact is defined twice"):
        Definition("contact", Section.HEALTH, "info", "Another cause.")
    with pytest.raises(ValueError, match="unknown use or answer"):
        Definition("new_code", Section.HEALTH, "info", "A cause.", lowers=dict.fromkeys(MOTION_USES, "perhaps"))


def test_a_finding_takes_severity_and_action_from_its_definition():
    finding = find_definition("effort_sign").found("the effort of a is reversed", ["a"])
    entry = find_definition("effort_sign")
    assert finding == Finding("effort_sign", entry.severity, ("a",), "the effort of a is reversed", entry.cure)
    other = find_definition("outside_training").found("far away", severity="warning", action="stay")
    assert (other.severity, other.action, other.joints) == ("warning", "stay", ())


def test_unknown_codes_and_severities_are_rejected():
    with pytest.raises(ValueError, match="not defined"):
        find_definition("nonsense").found("x")
    with pytest.raises(ValueError, match="severity 'fatal'"):
        find_definition("no_motion").found("x", severity="fatal")


def test_a_summary_is_read_back():
    finding = find_definition("joint_barely_moves").found("a barely moves", ["a"])
    assert Finding.from_summary(finding.summary()) == finding
    assert list(finding.summary()) == ["code", "severity", "joints", "message", "action"]


def test_text_is_message_and_action():
    one, other = (
        find_definition("data_unused").found("keys not used: x"),
        find_definition("no_motion").found("no joint moves"),
    )
    assert format_finding(one) == str(one) == "keys not used: x"
    assert format_finding(other) == "no joint moves; record a motion of all joints"
    assert format_findings([one, other], "error") == (format_finding(other),)
    assert summarize_findings([one]) == {"findings": [one.summary()], "warnings": ["keys not used: x"]}


def test_the_page_on_trust_explains_the_answers_as_findings_lower_them():
    page = (Path(__file__).resolve().parents[1] / "docs" / "trust.md").read_text(encoding="utf-8")
    questions = page.partition("\n## Open questions\n")[2].partition("\n## ")[0]
    gain, joint = find_definition("gain_unverifiable"), find_definition("joint_not_identifiable")
    assert all(gain.lowered(use, severity) == YES for use in USES for severity in ("info", "warning"))
    assert {use for use in USES if joint.lowered(use, "warning") != YES} == set(MOTION_USES)
    assert all(joint.lowered(use, "info") == YES for use in USES)
    deciding = [one.code for one in list_definitions() if one.section == Section.USES]
    missing = [code for code in (gain.code, joint.code, *deciding) if f"`{code}`" not in questions]
    assert deciding and not missing
