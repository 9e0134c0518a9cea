# SPDX-License-Identifier: Apache-2.0
"""Page and text of a comparison of models."""

import html
from dataclasses import replace

import numpy as np
import pytest
from support.altered import altered, scaled
from support.given_parameters import parameter_set
from support.html_page import Page, plots_of
from support.model_nodes import identified, presliding
from support.simulated import LIFT

from robot_dyn_id.comparison.models import compare_models
from robot_dyn_id.report.comparison import format_comparison, render_comparison_page, summarize_comparison


@pytest.mark.slow
@pytest.mark.parametrize("other", [presliding, lambda: parameter_set(LIFT)], ids=["other friction", "another robot"])
def test_a_comparison_shows_what_is_common_and_names_the_rest(other):
    models = (identified(), other())
    given = (("<day> 1", "day 2"), models, (compare_models(*models),), ())
    page, text, summary = render_comparison_page(*given), format_comparison(*given), summarize_comparison(*given)
    difference = summary["differences"][0]
    assert html.escape("<day> 1") in page and "<day> 1" not in page
    assert "<h3>Not compared</h3>" in page and all(
        f"<code>{name}</code>" in page for name in difference["not_compared"]
    )
    common = set(models[0].robot.joint_names) & set(models[1].robot.joint_names)
    assert bool(difference["parameters"]) == bool(difference["torque"]) == bool(common)
    assert ("no parameter in common" in text) == ("Torques are not compared" in page) == (not common)
    assert len(plots_of(page)) == page.count('<div data-plot="') == 3
    assert "nan" not in text and "nan" not in Page(page).text.lower()


def test_models_without_covariance_are_not_tested_and_kinds_of_effort_are_named():
    one = identified()
    bare = altered(
        one,
        estimate={
            "covariance": np.zeros_like(one.estimate.covariance),
            "standard_deviations": np.zeros(len(one.estimate.values)),
        },
    )
    drives = dict.fromkeys(("drive_gains", "drive_signs"), np.ones(len(bare.robot.joint_names)))
    other = altered(scaled(bare, 1.2), effort={"kind": "current", "robot_compensates": ("none",), **drives})
    models = (altered(bare, effort={"kind": "torque", "robot_compensates": ("none",)}), other)
    given = (("a", "b"), models, (compare_models(*models),), ())
    page, text, summary = render_comparison_page(*given), format_comparison(*given), summarize_comparison(*given)
    assert "not tested: the models have no covariance" in text and "Not tested" in page
    assert f"{one.base.names[0]} " in text and "no parameter in common" not in text + page
    assert "different kinds: torque, current" in text and "different kinds" in page
    assert [model["effort_kind"] for model in summary["models"]] == ["torque", "current"]


def test_common_training_data_are_named():
    one = identified()
    prints = one.provenance.fingerprint
    other = altered(one, provenance={"fingerprint": replace(prints, digests=prints.digests + np.uint32(1))})
    note = "100% of the training data of one are those of the other"
    for against, shared in ((one, True), (other, False)):
        given = (("a", "b"), (one, against), (compare_models(one, against),), ())
        assert [note in text for text in (format_comparison(*given), render_comparison_page(*given))] == [
            shared,
            shared,
        ]
        assert summarize_comparison(*given)["differences"][0]["shared_data"] == float(shared)
