# SPDX-License-Identifier: Apache-2.0
"""Pages of results: what is not identified says so, rejected declarations lead, text is escaped, plots have data."""

import json
import re

import numpy as np
from support.result_pages import example_page, fitted

from robot_dyn_id.files.payload import make_declared_payload, summarize_declared, summarize_payload
from robot_dyn_id.findings import find_definition
from robot_dyn_id.flexible.curves import EquationCurve
from robot_dyn_id.loads.declared import compare_declared
from robot_dyn_id.loads.drive_gains import DriveGain, DriveGains
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.report.drawing import Curve, Drawing, Panel
from robot_dyn_id.report.flexible import render_flexible_page
from robot_dyn_id.report.loads import render_gains_page, render_payload_page
from robot_dyn_id.report.reproduction import render_reproduction_page
from robot_dyn_id.report.result import make_value_row, write_result_page

BODY = np.array([1.0, 0.0, 0.0, 0.1, 0.02, 0.0, 0.02, 0.0, 0.0, 0.01])


def rows_of(page, title):
    return next(one.rows for one in page.sections if one.title == title)


def test_values_have_the_digits_of_their_sigma_and_missing_ones_are_named():
    assert make_value_row("mass", 1.49956, 0.00054, "kg") == ("mass", "1.49956", "0.00054", "kg")
    for sigma in (None, np.inf):
        assert make_value_row("inertia xx", 1.0, sigma, "kg m^2") == ("inertia xx", "not identified", "", "kg m²")


def test_the_page_of_a_payload_leads_with_a_rejected_declaration():
    payload = Payload("tool", BODY, 1e-6 * np.eye(10), BODY, not_excited=("Izz",))
    for mass, word, mood in ((1.0, "good", "good"), (1.5, "declared payload rejected", "bad")):
        test = compare_declared(payload.estimate, make_declared_payload("tool", (mass,)))
        answer = {"verdict": "good", "declared": summarize_declared(test), **summarize_payload(payload)}
        page = render_payload_page(answer, fitted(), {"a": "N m", "b": "N m"}, (), {})
        assert (page.verdict, page.mood) == (word, mood)
        assert [one.title for one in page.sections] == ["Body", "Declared payload", "Fit"]
        assert rows_of(page, "Body")[-1] == ("inertia zz", "not identified", "", "kg m²")
        assert rows_of(page, "Declared payload")[0][-1] == f"{(1.0 - mass) / 1e-3:.3g}".replace("-", "\N{MINUS SIGN}")


def test_the_page_of_gains_names_those_that_are_not_identified():
    gains = DriveGains((DriveGain("a", -8.0, 0.016), DriveGain("b", np.nan, np.inf)), fitted())
    page = render_gains_page(gains, "suspect", (), {})
    assert page.sections[0].rows[0] == ("a", "\N{MINUS SIGN}8.000", "0.016", "effort per current", "0.2 %")
    assert page.sections[0].rows[1] == ("b", "not identified", "", "effort per current", "")
    assert page.sections[1].rows == (
        ("a", "10.0\N{NO-BREAK SPACE}%"),
        ("b", "20.0\N{NO-BREAK SPACE}%"),
        ("all", "15.0\N{NO-BREAK SPACE}%"),
    )


def test_a_page_has_its_plots_its_first_action_and_escaped_text(tmp_path):
    write_result_page(tmp_path / "page.html", example_page())
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    plots = json.loads(re.search(r'id="plots">(.*?)</script>', text, re.S)[1])["plots"]
    assert len(plots) == 4 == len(set(re.findall(r'data-plot="(.*?)"', text)))
    assert '<b>First:</b> faster than before: a <span class="action">move faster</span>' in text
    assert "&lt;robot&gt;" in text and "<robot>" not in text


def test_the_page_of_flexible_joints_states_whether_experiments_are_held_out():
    parameter = {"name": "K1", "expression": "K1", "unit": "N m/rad", "value": 8000.0, "standard_deviation": 2.0}
    error = {"equation": "both: spring of joint1", "rms": 2.0, "error": 0.1, "nrmse": 0.05}
    step = {
        "groups": ["spring of joint1"],
        "equations": ["both: spring"],
        "observability": {"columns": 2, "rank": 2, "condition_numbers": {"columns": 3.0, "none": 9.0}},
    }
    answer = {
        "verdict": "suspect",
        "parameters": [parameter],
        "unidentified": {"motor of joint1": "its torque is not measured"},
        "plan": {"steps": [step]},
        "fit": [error],
        "held_out": [],
    }
    poses = np.arange(5.0)
    curves = [EquationCurve("both: spring of joint1", poses, poses, poses, at_rest=True)]
    findings = (find_definition("nothing_held_out").found("nothing is held out"),)
    page = render_flexible_page(answer, curves, {"joint1": "N m"}, findings, {})
    assert [one.title for one in page.sections] == ["Parameters", "Not identified", "Prediction", "Steps"]
    assert rows_of(page, "Parameters") == (("K1", "8000.0", "2.0", "N m/rad", "K1"),)
    assert "nothing is held out" in page.sections[2].note
    ((name, (plot,)),) = page.sections[2].plots
    assert name == "both: spring of joint1" and plot.x.label == "pose" and not page.sections[2].over_time
    held_out = render_flexible_page({**answer, "held_out": [error]}, (), {}, (), {})
    assert held_out.sections[2].note.startswith("Held-out experiments.")


def figure(name, verdict, **given):
    keys = ("published", "rerun", "ours", "asked", "draws", "quartiles")
    return {
        **dict.fromkeys(keys),
        "name": name,
        "better": "lower",
        "verdict": verdict,
        "conditions": "",
        "why": "",
        **given,
    }


def test_the_page_of_a_paper_begins_with_the_figures_that_are_open():
    figures = [
        figure("rank", "reproduced", published=9.0, ours=9.0),
        figure("error", "undecided", ours=0.5, **{"asked": 0.4}),
    ]
    answer = {"paper": "planar3r", "source": "2025", "figures": figures, "notes": ["ours is simulated"]}
    x = np.linspace(0.0, 7.0, 5000)
    curves = (Curve("over time", x, np.sin(x)), Curve("", np.cos(x), np.sin(x)), Curve("", np.ones(9), x[:9], "boxes"))
    drawing = Drawing("planar3r_path", "Path", (Panel("t [s]", "q [rad]", curves),))
    page = render_reproduction_page(answer, [drawing], 0, "robot_dyn_id")
    assert (page.verdict, page.mood) == ("reproduced in part", "suspect")
    assert [row[0] for row in page.sections[0].rows] == ["error", "rank"]
    assert page.sections[0].rows[0][5] == "\N{LESS-THAN OR EQUAL TO} 0.4"
    (table, path, boxes) = page.sections[1].plots[0][1][0].tables
    assert [one.series[0].style for one in (table, path, boxes)] == ["line", "points", "points"]
    assert all(np.all(np.diff(one.x) >= 0.0) for one in (table, path, boxes))
    np.testing.assert_allclose(np.hypot(path.x, path.series[0].y), 1.0)
    assert render_reproduction_page(answer, [], 1, "").mood == "bad"
    assert render_reproduction_page({**answer, "figures": figures[:1]}, [], 0, "").mood == "good"
