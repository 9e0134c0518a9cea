"""The report: fixed keys, the verdict first, everything escaped, nothing loaded from elsewhere."""

import json
import re
from functools import cache
from html.parser import HTMLParser

import pytest
from simulated import ARM, TERMS, Simulated, changed

from robot_dyn_id.pipeline import identify, validate
from robot_dyn_id.report.html import write_html
from robot_dyn_id.report.summary import evaluation_summary, identification_summary
from robot_dyn_id.settings import Settings

AWKWARD = "<b>&'j1"


@cache
def identified():
    """An arm one of whose joints has a name that is markup."""
    text = ARM.replace('"shoulder"', f'"{AWKWARD.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}"')
    arm = Simulated(text)
    return identify([arm.record(1, noise=0.1)], [arm.record(2, noise=0.1)], arm.model, Settings(terms=TERMS), "0")


class Page(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def page_of(path, summary, evaluation, parameters):
    write_html(path, summary, evaluation, parameters)
    return path.read_text()


def test_the_summary_has_the_keys_that_others_rely_on():
    result = identified()
    summary = json.loads(json.dumps(identification_summary(result, "p.yaml"), allow_nan=False))
    held_out = result.evaluation.held_out
    assert summary["verdict"] == result.evaluation.verdict.word
    assert summary["held_out"]["all_joints_nrmse"] == held_out.all_joints_nrmse
    for entry, joint in zip(summary["held_out"]["joints"], held_out.joints, strict=True):
        for key in ("name", "rmse", "nrmse", "correlation", "max_error", "unit"):
            assert entry[key] == getattr(joint, key)
    assert summary["condition_number"] == {"value": result.estimate.condition_number, "scaling": "columns"}
    assert summary["cross_check"]["max_difference"] == result.evaluation.cross_check.max_difference
    assert summary["cross_check"]["rank_ours"] == summary["cross_check"]["rank_pinocchio"]
    assert summary["rows"]["used"] == result.estimate.rows
    assert summary["parameters_file"] == "p.yaml"
    assert len(summary["base_parameters"]) == len(result.parameters.names)


def test_the_page_shows_everything_and_loads_nothing(tmp_path):
    result = identified()
    summary = identification_summary(result, "p.yaml")
    text = page_of(tmp_path / "r.html", summary, result.evaluation, result.parameters)
    page = Page(text)
    for name in result.parameters.joint_names:
        assert name in page.text
    for name, expression in zip(result.parameters.names, result.parameters.expressions, strict=True):
        assert name in page.text and expression in page.text
    assert page.text.index(result.evaluation.verdict.word) < page.text.index("Prediction")
    assert "<b>&'j1" not in text
    loads = [a.get("src") or a.get("href", "") for tag, a in page.tags if tag in ("script", "link", "img", "iframe")]
    assert loads == []
    assert not re.search(r"(@import|url\(['\"]?https?:)", text)
    assert list(tmp_path.iterdir()) == [tmp_path / "r.html"]


def test_a_bad_verdict_stands_at_the_top(tmp_path):
    result, arm = identified(), Simulated()
    good = identify([arm.record(1)], [arm.record(2)], arm.model, Settings(terms=TERMS), "0")
    doubled = changed(arm.record(3, noise=0.1), tau=lambda tau: 2.5 * tau + 1.0)
    evaluation = validate([doubled], good.parameters, Settings(terms=TERMS))
    assert evaluation.verdict.word == "bad"
    summary = evaluation_summary(evaluation, "p.yaml", good.parameters)
    text = page_of(tmp_path / "r.html", summary, evaluation, good.parameters)
    assert text.index("banner bad") < text.index("Prediction of data")
    assert evaluation.verdict.reasons[0].split("'")[0] in Page(text).text
    assert result.evaluation.verdict.word != "bad"


@pytest.mark.parametrize("word", ["weak", "good"])
def test_status_is_coloured(tmp_path, word):
    result = identified()
    text = page_of(tmp_path / "r.html", identification_summary(result, "p"), result.evaluation, result.parameters)
    assert (f'class="s-{word}"' in text) == (word in result.parameters.status)
