"""What a reproduction answers: verdicts are computed, and can come out otherwise."""

import math

import pytest

from robot_dyn_id.papers.figures import Figure


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
        (Figure("error", 0.9, asked=1.0, better="lower"), "holds"),
        (Figure("error", 1.1, asked=1.0, better="lower"), "does not hold"),
        (Figure("error", math.nan, asked=1.0, better="lower"), "does not hold"),
        (Figure("time [s]", 2.0), "shown"),
    ],
)
def test_the_verdict_is_computed(figure, verdict):
    assert figure.verdict == verdict


def test_a_figure_may_be_beaten_and_still_miss_what_is_asked():
    assert Figure("error", 0.9, published=1.0, asked=0.8, better="lower").missed
    assert not Figure("error", 0.8, published=1.0, asked=0.8, better="lower").missed
    assert not Figure("error", 0.9, published=1.0, better="lower").missed
