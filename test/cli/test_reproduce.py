# SPDX-License-Identifier: Apache-2.0
"""Result of a reproduction: verdicts are computed, and every verdict can occur."""

import json
import math

import numpy as np
import pytest

from robot_dyn_id.cli.reproduce import _answer
from robot_dyn_id.errors import InputError
from robot_dyn_id.papers.figures import Figure
from robot_dyn_id.report.drawing import Curve, Drawing, Panel, write_drawing


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (Figure("error", 0.9, published=1.0, better="lower"), "beaten"),
        (Figure("error", 1.1, published=1.0, better="lower"), "not reproducible"),
        (Figure("error", 1.004, published=1.0, better="lower", agreement=0.005), "reproduced"),
        (Figure("correlation", 0.99, published=0.97, better="higher"), "beaten"),
        (Figure("rank", 9.0, published=9.0), "reproduced"),
        (Figure("rank", 8.0, published=9.0), "not reproducible"),
        (Figure("mass", math.nan, published=9.0, better="lower"), "not reproducible"),
        (Figure("error", 0.9, target=1.0, better="lower"), "holds"),
        (Figure("error", 1.1, target=1.0, better="lower"), "does not hold"),
        (Figure("error", math.nan, target=1.0, better="lower"), "does not hold"),
        (Figure("time [s]", 2.0), "shown"),
    ],
)
def test_the_verdict_is_computed(figure, verdict):
    assert figure.verdict == verdict


def test_figures_without_a_number_are_none_in_strict_json():
    for ours in (math.nan, math.inf):
        answer = json.loads(json.dumps(_answer(Figure("error", ours, published=1.0, better="lower")), allow_nan=False))
        assert answer["ours"] is None and answer["verdict"] == "not reproducible"


def test_drawings_are_written_as_a_whole(tmp_path):
    panel = Panel("t [s]", "q", (Curve("a", np.arange(3.0), np.arange(3.0)),))
    file = write_drawing(Drawing("motion", "Motion", (panel,)), tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["motion.svg"] and "Motion" in file.read_text()
    with pytest.raises(InputError, match="cannot be written"):
        write_drawing(Drawing("motion", "Motion", (panel,)), tmp_path / "missing")


def test_a_figure_may_be_beaten_and_still_miss_the_target():
    assert Figure("error", 0.9, published=1.0, target=0.8, better="lower").missed
    assert not Figure("error", 0.8, published=1.0, target=0.8, better="lower").missed
    assert not Figure("error", 0.9, published=1.0, better="lower").missed
