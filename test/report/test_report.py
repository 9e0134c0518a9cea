# SPDX-License-Identifier: Apache-2.0
"""The report: fixed keys, the verdict first, everything escaped, nothing loaded from elsewhere."""

import json
import math
import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest
from support.altered import altered
from support.html_page import Page, plots_of
from support.simulated import ARM, GRIPPER, LIFT, TERMS, Simulated, changed

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Dahl, Offset, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import find_definition, format_finding, list_definitions
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.explanation import explain
from robot_dyn_id.identification.validation.uses import UseJudgment, format_figure, reduce_joints
from robot_dyn_id.parameters import FitFor
from robot_dyn_id.report.advice import DESIGN, STEPS, RunFiles, advise
from robot_dyn_id.report.assets import format_percent, format_plus_minus, number
from robot_dyn_id.report.friction import compute_friction_curve, compute_reversal_curve
from robot_dyn_id.report.html import write_html
from robot_dyn_id.report.plots import make_timeline
from robot_dyn_id.report.summary import summarize_evaluation, summarize_identification
from robot_dyn_id.report.text import (
    MAX_PRINTED_FINDINGS,
    format_evaluation,
    format_findings_briefly,
    format_identification,
    use_lines,
)
from robot_dyn_id.report.uses import list_joints
from robot_dyn_id.uses import ANSWERS, USES

AWKWARD = '<b>&"j1'
JOINT_KEYS = ("name", "rmse", "nrmse", "correlation", "max_error", "unit")


@cache
def identified(text=ARM, terms=TERMS):
    arm = Simulated(text, terms)
    training, held_out = arm.record(1, noise=0.1), replace(arm.record(2, noise=0.1), source="held & out")
    return identify([training], [held_out], arm.model, Settings(terms=terms), "0.0.test")


def awkward():
    """An arm one of whose joints has a name that is markup."""
    return identified(ARM.replace('"shoulder"', '"' + escape(AWKWARD, {'"': "&quot;"}) + '"'))


def page_of(folder, result, **changes):
    summary = summarize_identification(result, "p.yaml") | changes
    write_html(
        folder / "r.html", summary, explain(result.evaluation, result.parameters, result.training), result.parameters
    )
    return (folder / "r.html").read_text(encoding="utf-8")


def judged(evaluation, **check):
    """The evaluation with a cross-check of other figures."""
    return replace(evaluation, cross_check=replace(evaluation.cross_check, **check))


@pytest.mark.slow
def test_the_summary_has_the_keys_that_others_rely_on():
    result = identified()
    summary = summarize_identification(result, "p.yaml")
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    held_out, check = result.evaluation.held_out, result.evaluation.cross_check
    assert (summary["verdict"], tuple(summary["reasons"])) == (
        result.parameters.judgment.verdict,
        result.parameters.judgment.reasons,
    )
    assert summary["held_out"]["all_joints_nrmse"] == held_out.all_joints_nrmse
    for entry, joint in zip(summary["held_out"]["joints"], held_out.joints, strict=True):
        assert [entry[key] for key in JOINT_KEYS] == [getattr(joint, key) for key in JOINT_KEYS]
    assert summary["condition_number"] == {"value": result.estimate.condition_number, "scaling": "columns"}
    assert summary["cross_check"]["max_difference"] == check.max_difference
    assert summary["cross_check"]["rank_ours"] == summary["cross_check"]["rank_pinocchio"] == check.rank_ours
    assert (summary["rows"]["used"], summary["rows"]["dropped"]) == result.rows
    findings = result.evaluation.findings
    assert summary["warnings"] == [format_finding(one) for one in findings]
    assert summary["findings"] == [one.summary() for one in findings]
    assert summary["parameters_file"] == "p.yaml"
    assert summary["held_out_sources"] == ["held & out"]


def test_the_summary_lists_the_base_parameters():
    result = identified()
    rows = summarize_identification(result, "p.yaml")["base_parameters"]
    assert [row["name"] for row in rows] == list(result.parameters.base.names)
    assert [row["value"] for row in rows] == list(result.parameters.estimate.values)
    assert [row["standard_deviation"] for row in rows] == list(result.parameters.estimate.standard_deviations)


def with_evaluation(result, evaluation):
    """The result with another evaluation of its last stage."""
    return replace(result, judged=replace(result.judged, evaluation=evaluation))


def test_what_is_not_finite_is_null():
    result = identified()
    unknown = altered(
        result.parameters, estimate={"standard_deviations": np.full(len(result.parameters.base.names), np.inf)}
    )
    broken = replace(with_evaluation(result, judged(result.evaluation, torque=np.nan)), parameters=unknown)
    summary = json.loads(json.dumps(summarize_identification(broken, "p.yaml"), allow_nan=False))
    assert summary["cross_check"]["max_difference"] is None
    assert summary["cross_check"]["passed"] is False
    assert {row["standard_deviation"] for row in summary["base_parameters"]} == {None}


def test_a_validation_counts_the_rows_it_compared():
    parameters = identified().parameters
    recording = Simulated().record(3, noise=0.1)
    holes = changed(recording, tau=lambda tau: np.where(np.arange(len(tau))[:, None] % 500 == 7, np.nan, tau))
    evaluation = validate([holes], parameters, Settings(terms=TERMS))
    summary = summarize_evaluation(evaluation, "p.yaml", parameters)
    assert summary["rows"]["used"] == 3 * evaluation.held_out.samples
    assert summary["rows"]["dropped"] == sum(summary["rows"]["reasons"].values()) == 4
    assert summary["held_out_sources"] == [holes.source]
    assert {"verdict", "reasons", "held_out", "condition_number", "cross_check", "warnings", "findings"} <= set(summary)


@pytest.mark.slow
def test_the_page_shows_every_joint_and_parameter(tmp_path):
    result = awkward()
    text = page_of(tmp_path, result)
    page = Page(text)
    for name in (*result.parameters.robot.joint_names, *result.parameters.base.expressions, "held & out", "0.0.test"):
        assert name in page.text
    for digest in (result.parameters.provenance.sha256, result.parameters.robot.urdf_sha256):
        assert digest in page.text
    kinds = ("torque", "residual", "parts", "speed", "position", "spectrum", "coverage", "friction")
    assert set(plots_of(text)) == {f"{kind}-{joint}" for kind in kinds for joint in range(3)}
    assert sorted(a["data-plot"] for _, a in page.tags if "data-plot" in a) == sorted(plots_of(text))
    for link in ("l1", "l2", "l3"):
        assert page.text.count(link) >= 2
    for word in ("good", "weak", "not excited"):
        assert page.count("span", f"s-{word.split()[0]}") == result.parameters.estimate.status.count(word)
    for code in {one.code for one in result.evaluation.findings}:
        assert find_definition(code).cause in page.text
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.html"]
    assert len(text) < 2_000_000


def test_parameters_that_are_zero_are_folded_and_never_good(tmp_path):
    result = identified()
    names, values = result.parameters.base.names, result.parameters.estimate.values.copy()
    values[[names.index("fv1"), names.index("fc2")]] = 0.0
    result = replace(result, parameters=replace_values(result.parameters, values))
    text = page_of(tmp_path, result)
    rows, zeros = (text[text.index(f'id="{table}"') :].split("</table>")[0] for table in ("base", "zeros"))
    assert all(f"<td>{name}</td>" in zeros and f"<td>{name}</td>" not in rows for name in ("fv1", "fc2"))
    assert zeros.count("<tr>") == 3 and "pill" not in zeros
    assert "2 more are zero" in text and f"{len(names)} parameters: " in text and "2 zero" in text
    assert "; 2 zero, " in format_identification(result)


def test_the_page_states_how_many_samples_are_drawn(tmp_path):
    result = identified()
    assert "keep the extremes" not in page_of(tmp_path, result)
    thinned = replace(result.evaluation.trace, stride=2)
    result = with_evaluation(result, replace(result.evaluation, trace=thinned))
    samples = result.evaluation.held_out.samples
    text = f"keep the extremes of all {samples:,} samples; the other plots show one sample of 2"
    assert text in page_of(tmp_path, result)


def test_the_page_and_the_table_answer_every_use(tmp_path):
    result = identified()
    page, text = Page(page_of(tmp_path, result)), format_evaluation(result.evaluation)
    uses = result.evaluation.uses
    assert len(uses) == len(USES)
    for judgment in uses:
        assert f"fit for {judgment.fit.use.replace('_', ' ')}:" in text
    for answer in ANSWERS:
        count = sum(judgment.fit.answer == answer for judgment in uses)
        by_joint = sum(list(judgment.joints.values()).count(answer) for judgment in uses)
        ways = len(reduce_joints(uses)) if answer == "yes" else 0
        assert page.count("span", f"a-{answer}") == 2 * count + by_joint + ways


def answering(summary, **answers):
    """The summary with other answers about uses, all limited by one joint."""
    joint = summary["held_out"]["joints"][1]["name"]
    changed = {use: {**summary["fit_for"][use], "answer": answer, "joints": [joint]} for use, answer in answers.items()}
    return {**summary, "fit_for": {**summary["fit_for"], **changed}}


def test_advice_carries_the_limit_of_a_use_and_is_silent_about_unfit_ones():
    parameters = identified().parameters
    summary = summarize_identification(identified(), "p.yaml")
    everything = answering(summary, **dict.fromkeys(USES, "yes"))
    assert advise(parameters, everything) == list(STEPS)
    partly = advise(parameters, answering(everything, forward_simulation="limited", feed_forward="no"))
    assert [one.use for one in partly] == [use for use in USES if use != "feed_forward"]
    assert [one.text for one in partly if "limited" in one.text] == [
        f"model for a simulator (limited: {parameters.robot.joint_names[1]})"
    ]
    assert advise(parameters, {**everything, "verdict": "bad"}) == []


@pytest.mark.parametrize("code", ["inertia_uncertain", "joint_barely_moves"])
def test_an_unknown_inertia_is_followed_by_the_motion_that_shows_it(code):
    parameters = identified().parameters
    everything = answering(summarize_identification(identified(), "p.yaml"), **dict.fromkeys(USES, "yes"))
    fit = {**everything["fit_for"]["computed_torque"], "answer": "no", "because": [code]}
    uncertain = {**everything, "fit_for": {**everything["fit_for"], "computed_torque": fit}}
    assert advise(parameters, uncertain)[-1] is DESIGN
    assert DESIGN not in advise(parameters, everything)
    assert DESIGN not in advise(parameters, {**uncertain, "verdict": "bad"})


def test_no_export_is_advised_that_would_be_refused():
    parameters = identified().parameters
    everything = answering(summarize_identification(identified(), "p.yaml"), **dict.fromkeys(USES, "yes"))
    refused = altered(parameters, judgment={"verdict": "bad"})
    assert not any(one.command[0] == "export" for one in advise(refused, everything))
    assert any(one.command[0] == "export" for one in advise(parameters, everything))


@pytest.mark.parametrize(
    ("called", "on_path", "words"),
    [
        ("bin/robot-dyn-id", True, "robot-dyn-id"),
        ("bin/robot-dyn-id", False, "bin/robot-dyn-id"),
        ("other/robot_dyn_id/__main__.py", True, f"{sys.executable} -m robot_dyn_id"),
        ("analysis.py", False, "robot-dyn-id"),
    ],
)
def test_commands_are_shown_as_the_program_was_called(called, on_path, words, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "robot-dyn-id").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [called])
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}" if on_path else "/nowhere")
    assert RunFiles(Path("run"), (), ()).format("try", "franka") == f"{words} try franka"


TIAGO = ("torso_lift_joint", *(f"arm_{number}_joint" for number in range(1, 8)))
"""Names of a mobile manipulator."""


def judgment(use, worst=(), answer="no", names=TIAGO, code="", after=math.nan, **values):
    """Answer about a use that some joints limit."""
    answers = {name: answer if name in worst else "yes" for name in names}
    whole = answer if worst else "yes"
    fit = FitFor(
        use, whole, **{"figure": 159.2, "unit": "N m", "threshold": 0.8, "because": (), "joints": worst} | values
    )
    return UseJudgment(fit, answers, worst[0] if worst else "", code, after)


def judgments(names=TIAGO):
    wrist = names[-3:]
    return (
        judgment("gravity_compensation", names[:1], names=names, code="offset_large"),
        judgment("feed_forward", names[:1], "limited", names=names, figure=0.2004, threshold=0.2),
        judgment("computed_torque", (names[0], *wrist), names=names, unit="", figure=7.2, threshold=0.2),
        judgment("forward_simulation", (), names=names, figure=0.1, threshold=0.3, unit="rad", after=1.0),
        judgment("collision_detection", (), names=names, figure=0.1, threshold=2.0, unit="N"),
        judgment("payload", (), names=names, figure=0.0184, threshold=0.04, unit="kg"),
    )


@pytest.mark.parametrize("count", [8, 12])
def test_uses_are_answered_by_joint_in_a_table_of_eighty_columns(count):
    names = TIAGO if count == 8 else tuple(f"left_leg_{number}_joint" for number in range(12))
    lines = list(use_lines(judgments(names)))
    table = dict(line.split(maxsplit=1) for line in lines[2 : 2 + count])
    assert tuple(table) == names
    assert table[names[0]].split() == ["no", "limited", "no", "yes", "yes", "yes"]
    assert table[names[-1]].split() == ["yes", "yes", "no", "yes", "yes", "yes"]
    arm = lines[2 + count : 8 + count]
    assert all(line.startswith("fit for ") for line in arm)
    assert any(line.endswith(f"limited  0.2004 of 0.2 N m  ({names[0]})") for line in arm)
    assert any("720% of 20%" in line for line in arm) and any("160 of 0.8 N m" in line for line in arm)
    notes = lines[8 + count :]
    assert notes[0].startswith("limited: ")
    assert notes[1].startswith(f"without {names[0]}: yes for gravity compensation, feed forward, ")
    assert notes[2].strip() == f"identify: [{', '.join(names[1:])}]"
    assert f"without {names[0]}, {names[-3]} to {names[-1]}: yes for " in notes[3]
    assert any(line.endswith(f"no       160 of 0.8 N m  ({names[0]}: offset_large)") for line in arm)
    assert any(line.endswith("yes      0.1 of 0.3 rad after 1 s") for line in arm)
    assert max(map(len, lines[: 2 + count])) <= 80


def test_no_way_is_suggested_that_leaves_less_than_half_of_the_joints_or_none():
    assert reduce_joints((judgment("payload", TIAGO),)) == () == reduce_joints((judgment("payload", TIAGO[:5]),))
    assert reduce_joints((judgment("payload"),)) == () == reduce_joints(())
    (one,) = reduce_joints((judgment("feed_forward", TIAGO[4:]), judgment("payload", TIAGO)))
    assert (one.without, one.identify, one.uses) == (TIAGO[4:], TIAGO[:4], ("feed_forward",))


def test_a_joint_that_shows_no_payload_is_explained_and_not_left_out():
    unloaded = replace(judgment("payload"), joints=dict.fromkeys(TIAGO, "yes") | dict.fromkeys(TIAGO[-2:], "-"))
    (limited,) = reduce_joints((judgment("feed_forward", TIAGO[:1]), unloaded))
    assert (limited.without, limited.uses) == (TIAGO[:1], ("feed_forward",))
    explained = [line for line in use_lines((unloaded,)) if line.startswith("-: ")]
    assert len(explained) == 1 and not [line for line in use_lines(judgments()) if line.startswith("-: ")]


def test_figures_are_written_out_and_differ_from_their_limit():
    assert format_figure(159.2, 0.8, "N") == "160 of 0.8 N"
    assert format_figure(0.2004, 0.2, "rad") == "0.2004 of 0.2 rad"
    assert format_figure(0.2004, 0.2, "") == "20.04% of 20%"
    assert format_figure(0.5, 0.5, "kg") == "0.5 of 0.5 kg"
    assert format_figure(1e40, 0.5, "kg") == ">1000000 of 0.5 kg"
    assert format_figure(np.nan, np.nan, "kg") == "unknown of unknown kg"
    assert format_figure(np.inf, 0.2, "") == "infinite of 20%"
    assert format_figure(1e-12, 0.01, "rad") == "0 of 0.01 rad"


def test_three_joints_in_a_row_are_a_range():
    assert list_joints({TIAGO[0], *TIAGO[5:]}, TIAGO) == "torso_lift_joint, arm_5_joint to arm_7_joint"
    assert list_joints(TIAGO[1:3], TIAGO) == "arm_1_joint, arm_2_joint"


def test_at_most_three_findings_are_printed_with_their_codes():
    codes = [one.code for one in list_definitions()][:8]
    findings = [
        find_definition(code).found(f"{code} found", severity="warning") for code in [*codes, codes[2], codes[2]]
    ]
    lines = list(format_findings_briefly(findings))
    assert len(lines) == MAX_PRINTED_FINDINGS + 1 == 4
    for code, line in zip(codes[:3], lines[:3], strict=True):
        assert f"! warning {code}: {code} found" in line
    assert lines[2].endswith("(and 2 more)")
    assert lines[3] == "  ! and 5 more: see the report"
    assert len(list(format_findings_briefly(findings[:3]))) == 3
    (line,) = format_findings_briefly([find_definition(codes[0]).found("found", severity="info")])
    assert line.startswith(f"  - info {codes[0]}: found")


def test_joints_of_further_findings_of_one_code_are_printed():
    findings = [
        find_definition("joint_not_identifiable").found(f"{joint} is not", [joint]) for joint in ("a", "b", "c")
    ]
    (line,) = format_findings_briefly(findings)
    assert line.endswith("(other findings with this code: b, c)")


def test_names_are_escaped(tmp_path):
    result = awkward()
    assert AWKWARD in result.parameters.robot.joint_names
    page = Page(
        page_of(
            tmp_path,
            result,
            findings=[find_definition("data_unused").found("</ul><script>alert(1)</script>").summary()],
            parameters_file="<i>",
        )
    )
    assert page.count("script") == Page(page_of(tmp_path, identified())).count("script")
    assert "<script>" in page.text and AWKWARD in page.text


def test_the_page_loads_nothing(tmp_path):
    text = page_of(tmp_path, identified())
    page = Page(text)
    assert not {"link", "img", "iframe", "object", "image"} & {tag for tag, _ in page.tags}
    targets = [a[key] for _, a in page.tags for key in ("href", "xlink:href", "src") if key in a]
    assert targets and all(target.startswith("#") for target in targets)
    assert all(target.startswith("#") for target in re.findall(r"url\(['\"]?([^)]*)", text))
    assert set(re.findall(r"https?://[^\s)]*", text)) == {"https://github.com/leeoniya/uPlot"}  # a comment
    assert "@import" not in text and "fetch(" not in text


def test_the_same_result_gives_the_same_page(tmp_path):
    assert page_of(tmp_path, identified()) == page_of(tmp_path, identified())


def test_a_bad_verdict_stands_at_the_top(tmp_path):
    parameters = identified().parameters
    doubled = changed(Simulated().record(3, noise=0.1), tau=lambda tau: 2.5 * tau + 1.0)
    evaluation = validate([doubled], parameters, Settings(terms=TERMS))
    summary = summarize_evaluation(evaluation, "p.yaml", parameters)
    write_html(tmp_path / "r.html", summary, explain(evaluation, parameters), parameters)
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert evaluation.verdict.word == "bad" and page.count("div", "bad") == 1
    first = page.text[: page.text.index("Prediction of held-out data")]
    assert "Do not use this model" in first
    errors = [one for one in evaluation.findings if one.severity == "error"]
    assert errors and all(one.message in first and one.code in first for one in errors)


def test_a_cross_check_without_numbers_is_a_failure_on_the_page(tmp_path):
    result = identified()
    broken = with_evaluation(result, judged(result.evaluation, regressor=np.nan, rank_ours=1))
    page = Page(page_of(tmp_path, broken))
    assert page.count("span", "no") == 2  # the regressor, the rank
    assert Page(page_of(tmp_path, result)).count("span", "no") == 0


def test_a_missing_folder_is_refused(tmp_path):
    result = identified()
    with pytest.raises(InputError, match="cannot be written"):
        page_of(tmp_path / "missing", result)


def test_friction_is_the_sum_of_the_terms():
    parameters = identified().parameters
    curve = compute_friction_curve(parameters, Regressor.from_parameters(parameters), 1)
    value = dict(zip(parameters.base.names, parameters.estimate.values, strict=True))
    width = parameters.terms.constant_values[1]
    expected = value["fv2"] * curve.speed + value["fc2"] * np.tanh(curve.speed / width) + value["off2"]
    np.testing.assert_allclose(curve.effort, expected, rtol=1e-12)
    assert curve.speed[-1] == -curve.speed[0] == parameters.ranges.dq_max[1]
    assert [parameters.base.names[i] for i in curve.parameters] == ["fv2", "fc2", "off2"]
    sigma = parameters.estimate.standard_deviations[parameters.base.names.index("off2")]
    assert np.interp(0.0, curve.speed, curve.sigma) == pytest.approx(sigma)


@pytest.mark.slow
def test_friction_holds_that_of_mimic_followers():
    gripper = Simulated(GRIPPER)
    parameters = identified(GRIPPER).parameters
    truth = replace_values(parameters, gripper.base_values)
    curve = compute_friction_curve(truth, Regressor.from_parameters(truth), 1)
    still = np.zeros_like(curve.speed)
    columns = {name: term.columns(still, curve.speed, still)[0] for name, term in zip("vco", TERMS, strict=True)}
    half = [term.columns(still, -0.5 * curve.speed, still)[0] for term in TERMS]
    own = 1.5 * columns["v"] + columns["c"] + 0.2
    np.testing.assert_allclose(curve.effort, own - 0.5 * (1.5 * half[0] + half[1] + 0.2), rtol=1e-9)


@pytest.mark.slow
def test_presliding_friction_after_a_reversal():
    terms = (Viscous(), Dahl(), Offset())
    parameters = replace_values(identified(LIFT, terms).parameters, Simulated(LIFT, terms).base_values)
    curve = compute_reversal_curve(parameters, Regressor.from_parameters(parameters), 1)
    levels = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    expected = levels @ (1.0 - 2.0 * np.exp(-curve.displacement / Dahl().displacements[:, None]))
    np.testing.assert_allclose(curve.effort, expected, rtol=1e-9, atol=1e-9)
    assert (curve.unit, curve.displacement_unit) == ("N m", "rad")
    plain = identified().parameters
    assert compute_reversal_curve(plain, Regressor.from_parameters(plain), 0) is None


def test_the_page_shows_presliding_friction(tmp_path):
    plots = plots_of(page_of(tmp_path, identified(LIFT, (Viscous(), Dahl(), Offset()))))
    assert {"presliding-0", "presliding-1", "friction-0", "friction-1"} <= set(plots)
    assert plots["presliding-1"]["x"]["log"]


def test_friction_that_was_not_excited_has_no_band():
    parameters = identified().parameters
    sigma = np.where(np.array(parameters.base.names) == "fv1", np.inf, parameters.estimate.standard_deviations)
    unknown = altered(parameters, estimate={"standard_deviations": sigma})
    regressor = Regressor.from_parameters(unknown)
    assert compute_friction_curve(unknown, regressor, 0).sigma is None
    assert compute_friction_curve(unknown, regressor, 2).sigma is not None
    assert compute_friction_curve(altered(parameters, ranges={"dq_max": np.zeros(3)}), regressor, 0) is None


def test_interruptions_are_cut_out_of_plots():
    t = np.concatenate([5.0 + np.arange(50) * 0.1, 1000.0 + np.arange(50) * 0.1, np.arange(20) * 0.1])
    time, breaks, starts = make_timeline(t)
    assert list(breaks) == [50, 100]
    assert list(np.flatnonzero(np.isnan(time))) == [50, 101]
    finite = time[np.isfinite(time)]
    assert len(time) == len(np.insert(t, breaks, np.nan)) and finite[0] == 0.0
    assert np.all(np.diff(finite) > 0) and finite[-1] < 13.0
    np.testing.assert_allclose(starts, [finite[50], finite[100]])


@pytest.mark.parametrize(
    ("value", "sigma", "texts"),
    [
        (-3.14901, 0.01705, ("\u22123.149", "0.017")),
        (28.74, 1.31, ("28.7", "1.3")),
        (1234.5, 78.9, ("1234", "79")),
        (2.0, 150.0, ("2", "150")),
        (3.4212e-7, 1.1e-8, ("3.42e\u221207", "0.11e\u221207")),
        (0.0, 0.0, ("0", "0")),
        (-0.001, 0.12, ("0.00", "0.12")),
    ],
)
def test_values_end_where_sigma_does(value, sigma, texts):
    assert format_plus_minus(value, sigma) == texts


def test_numbers_as_text():
    assert [format_percent(x) for x in (None, 0.0214, -0.433, 147.963)] == [
        "\u2013",
        "2.1\u00a0%",
        "\u221243.3\u00a0%",
        "148\u00a0\u00d7",
    ]
    assert [format_percent(x) for x in (-1e-5, 9.994, 622.65)] == ["0.0\u00a0%", "999.4\u00a0%", "623\u00a0\u00d7"]
    assert [number(x) for x in (None, -9.81, 1e-15)] == ["\u2013", "\u22129.81", "1e\u221215"]
    assert [number(x, 3, padded=True) for x in (0.8, 783.0, 1e-15)] == ["0.800", "783", "1.00e\u221215"]
