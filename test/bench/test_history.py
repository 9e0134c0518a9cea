# SPDX-License-Identifier: Apache-2.0
"""Results of `bench`: goals, and comparison of two runs."""

from dataclasses import replace

import pytest

from robot_dyn_id.bench.growth import GrowthPoint, make_serial_chain, render_growth_page
from robot_dyn_id.bench.history import BenchRun, list_slower, read_run
from robot_dyn_id.bench.measuring import BenchFigure, Timing, compute_ratio, measure_interleaved
from robot_dyn_id.errors import InputError

FIGURES = (
    BenchFigure("time", 2.0, "ms", 5.0, True, 0.1),
    BenchFigure("peer", 10.0, "times", 7.0, False, 0.1),
    BenchFigure("once", 1.0, "s"),
    BenchFigure("absent", None, "times", 2.0, why="not installed"),
)
GROWTH = {"samples": [GrowthPoint(10, 1.0, 2.0), GrowthPoint(100, 1.0, 1.5)]}
RUN = BenchRun.from_figures(FIGURES, GROWTH, True)


def changed(**values):
    return replace(RUN, figures=tuple(replace(one, value=values.get(one.name, one.value)) for one in FIGURES))


def test_goals_are_met_or_missed_in_their_sense():
    assert [one.met for one in FIGURES] == [True, True, None, None]
    assert replace(FIGURES[0], value=6.0).met is False and replace(FIGURES[1], value=6.0).met is False


def test_what_got_worse_by_more_than_the_spread_is_named_the_worst_first():
    assert list_slower(RUN, RUN) == []
    assert list_slower(changed(time=2.3, peer=8.5, once=1.1), RUN) == []  # within the spread of both
    assert list_slower(changed(time=1.0, peer=30.0, once=0.5), RUN) == []  # better
    found = list_slower(changed(time=2.6, peer=4.0, once=1.5), RUN)
    assert [one.name for one in found] == ["peer", "once", "time"]
    assert (found[0].before, found[0].now) == (10.0, 4.0)


def test_slower_figures_do_not_replace_the_earlier_ones():
    run = changed(time=1.0, peer=4.0, once=1.05)
    kept = run.without(list_slower(run, RUN), RUN)
    assert [one.value for one in kept.figures] == [1.0, 10.0, 1.05, None]


@pytest.mark.parametrize("change", [{"computer": "other"}, {"quick": False}, {"samples": 5}], ids=str)
def test_runs_that_are_unlike_are_not_compared(change):
    other = replace(changed(time=9.0), **change)
    assert other.unlike(RUN) == tuple(change) and list_slower(other, RUN) == []


def test_a_run_of_one_part_keeps_the_figures_of_the_others():
    part = replace(changed(time=3.0), figures=changed(time=3.0).figures[:1], growth={})
    assert part.completed(RUN) == replace(changed(time=3.0), growth=GROWTH)


def test_results_are_read_as_they_were_written(tmp_path):
    import json

    file = tmp_path / "bench.json"
    file.write_text(json.dumps(RUN.summary()))
    assert read_run(file) == RUN


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 99}', '{"format": 1, "goals": [{}]}'])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "bench.json").write_text(text)
    with pytest.raises(InputError, match=r"bench\.json: not a result of bench"):
        read_run(tmp_path / "bench.json")


def test_contenders_take_turns_and_the_first_round_is_left_out():
    order = []
    found = measure_interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, repeats=2)
    assert order == ["a", "b"] * 3 and set(found) == {"a", "b"}
    assert compute_ratio("x", "not installed", Timing(1.0, 0.0), 2.0).why == "not installed"


def test_growth_is_drawn_and_chains_have_their_joints():
    assert render_growth_page(GROWTH).count("data-plot=") == 1
    assert len(make_serial_chain(30).joint_names) == 30
