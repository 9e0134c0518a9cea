# SPDX-License-Identifier: Apache-2.0
"""Result of a reproduction: verdicts are computed, and every verdict can occur."""

import importlib.util
import json
import math

import numpy as np
import paper_pages
import pytest

from robot_dyn_id.errors import InputError
from robot_dyn_id.papers.figures import MIN_DRAWS, Extent, Figure, Reproduction, Spread, find_missing_extra
from robot_dyn_id.report.drawing import Curve, Drawing, Panel, write_drawing

TWENTY = np.linspace(0.8, 1.0, MIN_DRAWS)
"""Median 0.9, its 95 % interval within 0.84 and 0.96."""


def drawn(values, **given):
    return Figure.from_spread("error", Spread(np.asarray(values, float)), better="lower", **given)


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
        (Figure("sigma", 6.4, target=5.0, better="lower", bound=6.3), "at the bound"),
        (Figure("sigma", 7.4, target=5.0, better="lower", bound=6.3), "does not hold"),
        (Figure("sigma", 6.4, target=5.0, better="lower", bound=4.9), "does not hold"),
        (Figure("sigma", math.nan, target=5.0, better="lower", bound=6.3), "does not hold"),
        (Figure("time [s]", 2.0), "shown"),
        (Figure("error", 0.9, rerun=1.0, better="lower"), "beaten"),
        (Figure("error", 1.1, rerun=1.0, better="lower"), "worse"),
        (Figure("error", 1.0, rerun=1.0, better="lower"), "no difference"),
        (Figure("error", 0.1, published=1.0, better="lower", conditions="simulated"), "other conditions"),
        (Figure.not_run("error", "search", published=1.0), "not run: pip install '.[search]'"),
        (Figure.not_run("error", "network", target=1.0), "not run: pip install '.[network]'"),
        (Figure.not_run("error", "full", published=1.0), "needs --full"),
        (drawn([0.5], published=1.0), "too few draws (1 of 20)"),
        (drawn([0.5], target=1.0), "too few draws (1 of 20)"),
        (drawn([0.5]), "shown"),
        (drawn(TWENTY[:-1], published=1.0), "too few draws (19 of 20)"),
        (drawn(TWENTY, published=1.0), "beaten"),
        (drawn(TWENTY, rerun=0.97), "beaten"),
        (
            drawn(TWENTY, rerun=0.92),
            "no difference",
        ),  # below the median of the draws, but not by more than they scatter
        (drawn(TWENTY, published=0.92), "reproduced"),
        (drawn(TWENTY, published=0.5), "not reproducible"),
        (drawn(TWENTY * 6.0 - 4.5, published=0.88), "undecided"),  # the interval is 0.57 wide
        (drawn(TWENTY * 6.0 - 4.5, published=0.88, agreement=0.3), "reproduced"),
        (drawn(TWENTY * 6.0 - 4.5, published=1.2), "beaten"),  # however wide, all of it is below
        (drawn([0.5] * 9 + [math.inf] * 11, rerun=1.0), "undecided"),  # failed draws are counted
        (drawn([0.5] * 3 + [math.inf] * 17, rerun=1.0), "worse"),
        (drawn(TWENTY, rerun=0.956), "beaten"),
        (drawn(TWENTY, rerun=0.956, comparisons=6), "no difference"),  # one of six chances proves nothing
        (drawn(TWENTY, rerun=0.99, comparisons=6), "beaten"),
        (drawn(TWENTY, target=0.95), "holds"),
        (drawn(TWENTY, target=0.85), "does not hold"),
    ],
)
def test_the_verdict_is_computed(figure, verdict):
    assert figure.verdict == verdict
    assert figure.missed == (verdict == "does not hold")


def test_the_interval_of_the_median_is_that_of_the_sign_test():
    spread = Spread(np.arange(20.0)[::-1])
    assert spread.median_interval() == (5.0, 14.0)  # ranks 6 and 15 of 20: Conover, Practical nonparametric statistics
    assert spread.median == 9.5 and spread.quartiles == (4.0, 14.0)
    assert spread.median_interval(6) == (3.0, 16.0)  # P(X <= 3) = 0.0013, P(X <= 4) = 0.0059 of 20, limit 0.0042
    assert Spread(np.arange(5.0)).median_interval() == (-math.inf, math.inf)
    with pytest.raises(ValueError, match="failed"):
        Spread(np.array([1.0, np.nan]))


def test_the_answer_holds_all_that_a_verdict_depends_on():
    figure = drawn([*TWENTY, math.inf], published=0.7, target=2.0, agreement=0.01, why="reason", conditions="there")
    answer = json.loads(json.dumps(figure.answer(), allow_nan=False))
    assert (answer["published"], answer["asked"], answer["better"], answer["tolerance"]) == (0.7, 2.0, "lower", 0.01)
    assert answer["comparisons"] == 1
    assert (answer["draws"], answer["failed"], answer["why"], answer["conditions"]) == (21, 0, "reason", "there")
    assert answer["median_interval"][0] < answer["ours"] < answer["median_interval"][1]
    for ours in (math.nan, math.inf):
        answer = json.loads(json.dumps(Figure("error", ours, published=1.0, better="lower").answer(), allow_nan=False))
        assert answer["ours"] is None and answer["verdict"] == "not reproducible"


def test_an_extra_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    assert (find_missing_extra("search", full=False), find_missing_extra("search")) == ("full", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert [find_missing_extra(extra) for extra in ("search", "network")] == ["search", "network"]
    assert find_missing_extra("network", full=False) == "network"


def test_slow_baselines_take_fewer_draws():
    assert Extent(20, True).slow_seeds < 20 and Extent(2).slow_seeds == 2


def test_the_table_has_the_failures_and_the_conditions_in_the_line_of_the_figure():
    spread = Spread(TWENTY, failed=2)
    rows = (
        Figure.from_spread("error", spread, better="lower", target=2.0),
        Figure("angle", 1.0, 2.0, conditions="2 degree motion"),
    )
    _, header, first, second, counts = Reproduction("planar3r", "somewhere", rows).table()
    assert "failed" in header and "2/20" in first and "<= 2" in first and first.endswith("holds")
    assert second.endswith("other conditions: 2 degree motion") and "rerun" not in header
    assert counts == "2 figures: 1 other conditions, 1 holds"


def test_pages_are_written_from_runs():
    result = Reproduction("planar3r", "somewhere", (Figure("rank", 9.0, 9.0),))
    page = f"before\n{paper_pages.BEGIN}\nold\n{paper_pages.END}\nafter"
    written = paper_pages.page_with(page, result, "robot-dyn-id reproduce planar3r")
    assert "old" not in written and "    rank" in written and written.startswith("before") and written.endswith("after")
    assert paper_pages.page_with(written, result, "robot-dyn-id reproduce planar3r") == written
    with pytest.raises(ValueError, match="no lines"):
        paper_pages.page_with("before", result, "")


@pytest.mark.slow
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
