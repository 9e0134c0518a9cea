# SPDX-License-Identifier: Apache-2.0
"""The catalog of findings: complete, used, and documented."""

import ast
from pathlib import Path

import pytest

import robot_dyn_id
from robot_dyn_id.findings import (
    CATALOG,
    OVERRULABLE,
    SECTIONS,
    Finding,
    format_finding,
    format_findings,
    make_finding,
    rank_findings,
    summarize_findings,
    write_markdown,
)
from robot_dyn_id.identification.uses import CONCERNING_USES

PACKAGE = Path(robot_dyn_id.__file__).parent
ROOT = Path(__file__).resolve().parents[1]


def made_codes():
    """First argument of every call of `make_finding` in the package, None where it is not a literal."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "make_finding":
                yield path.name, getattr(node.args[0], "value", None)


def test_every_code_in_the_catalog_is_made_and_every_made_code_is_in_the_catalog():
    made = list(made_codes())
    assert not [path for path, code in made if code is None], "codes are literals"
    assert {code for _, code in made} == set(CATALOG)


def test_every_code_is_asserted_by_another_test():
    """As a literal of its own: a code that no test provokes may never be reported."""
    tests = [path for path in Path(__file__).parent.rglob("test_*.py") if path != Path(__file__)]
    literals = {
        node.value
        for path in tests
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(CATALOG) - literals == set()


def test_codes_belong_to_one_section():
    assert sum(map(len, SECTIONS.values())) == len(CATALOG)


def test_only_errors_refuse_and_can_be_overruled():
    assert OVERRULABLE
    assert all(CATALOG[code].severity == "error" for code in OVERRULABLE)


@pytest.mark.parametrize("code", CATALOG)
def test_causes_are_sentences_and_cures_are_imperative_phrases(code):
    entry = CATALOG[code]
    assert code.isidentifier() and code == code.lower()
    assert entry.cause[0].isupper() and entry.cause.endswith(".")
    assert entry.cure == "" or (entry.cure[0].islower() and not entry.cure.endswith("."))
    assert "--" not in entry.cause + entry.cure, "options belong to the command line"


def test_the_page_of_the_documentation_is_current():
    """`python -m robot_dyn_id.findings > docs/findings.md` writes it."""
    page = ROOT / "docs" / "findings.md"
    assert page.read_text(encoding="utf-8") == write_markdown()


def test_a_finding_takes_severity_and_action_from_the_catalog():
    finding = make_finding("effort_sign", "the effort of a is reversed", ["a"])
    entry = CATALOG["effort_sign"]
    assert finding == Finding("effort_sign", entry.severity, ("a",), "the effort of a is reversed", entry.cure)
    other = make_finding("outside_training", "far away", severity="warning", action="stay")
    assert (other.severity, other.action, other.joints) == ("warning", "stay", ())


def test_unknown_codes_and_severities_are_rejected():
    with pytest.raises(ValueError, match="not in the catalog"):
        make_finding("nonsense", "x")
    with pytest.raises(ValueError, match="severity 'fatal'"):
        make_finding("no_motion", "x", severity="fatal")


def test_a_summary_is_read_back():
    finding = make_finding("joint_barely_moves", "a barely moves", ["a"])
    assert Finding.from_summary(finding.summary()) == finding
    assert list(finding.summary()) == ["code", "severity", "joints", "message", "action"]


def test_text_is_message_and_action():
    one, other = make_finding("data_unused", "keys not used: x"), make_finding("no_motion", "no joint moves")
    assert format_finding(one) == str(one) == "keys not used: x"
    assert format_finding(other) == "no joint moves; record a motion of all joints"
    assert format_findings([one, other], "error") == (format_finding(other),)
    assert summarize_findings([one]) == {"findings": [one.summary()], "warnings": ["keys not used: x"]}


def test_the_most_useful_findings_come_first():
    """Errors, warnings, information; causes in the recordings before what they cause; decisive information first."""
    codes = ("data_unused", "torque_error_high", "mass_matrix_indefinite", "clock_gaps", "clock_gaps", "held_out_error")
    findings = [make_finding(code, f"{number}") for number, code in enumerate(codes)]
    ranked = rank_findings(findings, {"torque_error_high"})
    order = ("held_out_error", "clock_gaps", "mass_matrix_indefinite", "torque_error_high", "data_unused")
    assert tuple(group[0].code for group in ranked) == order
    assert [one.message for one in ranked[1]] == ["3", "4"]
    excused = make_finding("clock_gaps", "short", severity="info")
    assert [len(group) for group in rank_findings([*findings, excused])] == [1, 2, 1, 1, 1, 1]


def test_information_about_uses_comes_before_other_information():
    """A prior from geometry concerns no use: what limits one is read first, also where another figure decides."""
    found = [make_finding(code, code) for code in ("prior_from_geometry", "outside_training", "gravity_uncertain")]
    order = [group[0].code for group in rank_findings(found, {"gravity_uncertain"}, CONCERNING_USES)]
    assert order == ["gravity_uncertain", "outside_training", "prior_from_geometry"]


def test_assumptions_about_the_recording_lead_where_a_model_fails():
    found = [make_finding(code, code) for code in ("gravity_uncertain", "joints_assumed_fixed")]
    decisive = {"gravity_uncertain"}
    assert [group[0].code for group in rank_findings(found, decisive)] == ["gravity_uncertain", "joints_assumed_fixed"]
    failed = rank_findings([*found, make_finding("held_out_error", "large")], decisive)
    assert [group[0].code for group in failed] == ["held_out_error", "joints_assumed_fixed", "gravity_uncertain"]
