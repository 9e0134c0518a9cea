# SPDX-License-Identifier: Apache-2.0
"""Order of findings for readers, and the page of all findings."""

from pathlib import Path

from robot_dyn_id.findings import find_definition
from robot_dyn_id.report.findings_page import write_markdown
from robot_dyn_id.report.ranking import find_worst_answers, rank_findings

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_the_documentation_is_current():
    """`python -m robot_dyn_id.report.findings_page > docs/findings.md` writes it."""
    page = ROOT / "docs" / "findings.md"
    assert page.read_text(encoding="utf-8") == write_markdown()


def test_the_most_useful_findings_come_first():
    """Errors, warnings, information; causes in the recordings before what they cause; decisive information first."""
    codes = ("data_unused", "torque_error_high", "mass_matrix_indefinite", "clock_gaps", "clock_gaps", "held_out_error")
    findings = [find_definition(code).found(f"{number}") for number, code in enumerate(codes)]
    ranked = rank_findings(findings, {"torque_error_high": "limited"})
    order = ("held_out_error", "clock_gaps", "mass_matrix_indefinite", "torque_error_high", "data_unused")
    assert tuple(group[0].code for group in ranked) == order
    assert [one.message for one in ranked[1]] == ["3", "4"]
    excused = find_definition("clock_gaps").found("short", severity="info")
    assert [len(group) for group in rank_findings([*findings, excused])] == [1, 2, 1, 1, 1, 1]


def test_information_about_uses_comes_before_other_information():
    """A prior from geometry concerns no use: what limits one is read first, also where another figure decides."""
    found = [
        find_definition(code).found(code) for code in ("prior_from_geometry", "outside_training", "gravity_uncertain")
    ]
    order = [group[0].code for group in rank_findings(found, {"gravity_uncertain": "limited"})]
    assert order == ["gravity_uncertain", "outside_training", "prior_from_geometry"]


def test_assumptions_about_the_recording_lead_where_a_model_fails():
    found = [find_definition(code).found(code) for code in ("gravity_uncertain", "joints_assumed_fixed")]
    decisive = {"gravity_uncertain": "limited"}
    assert [group[0].code for group in rank_findings(found, decisive)] == ["gravity_uncertain", "joints_assumed_fixed"]
    failed = rank_findings([*found, find_definition("held_out_error").found("large")], decisive)
    assert [group[0].code for group in failed] == ["held_out_error", "joints_assumed_fixed", "gravity_uncertain"]


def test_warnings_precede_information_that_excludes_a_use():
    codes = ("clock_gaps", "offset_large", "held_out_error")
    found = [find_definition(code).found(code) for code in codes]
    decisive = find_worst_answers([(["offset_large"], "no"), (["offset_large", "clock_gaps"], "limited")])
    assert decisive == {"offset_large": "no", "clock_gaps": "limited"}
    order = [group[0].code for group in rank_findings(found, decisive)]
    assert order == ["held_out_error", "clock_gaps", "offset_large"]
