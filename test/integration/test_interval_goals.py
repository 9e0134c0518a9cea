# SPDX-License-Identifier: Apache-2.0
"""Goals of `benchmarks/automatic_intervals.py`."""

from automatic_intervals import report


def test_the_goal_is_the_share_of_the_parameters_that_are_not_truly_zero():
    positive, missed, zero = (1.0, 1.1, 0.1, 0.9, 1.3), (1.0, 1.5, 0.1, 1.3, 1.7), (0.0, 0.0, 0.1, 0.0, 0.2)
    rows = [["viscous", *row] for row in (positive, missed, *[zero] * 18)] + [["saturating", *zero]]
    draw = {"noise": "white", "rows": rows, "left_out": [], "strength": 1.0, "tilted": False, "couplings": []}
    lowest, highest = report([draw])
    assert (lowest["ratio"], lowest["met"]) == (0.5, False)
    assert (highest["ratio"], highest["met"]) == (0.5, True)
