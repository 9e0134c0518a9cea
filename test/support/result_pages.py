# SPDX-License-Identifier: Apache-2.0
"""A page of a result with everything that such pages can have."""

import numpy as np

from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.findings import find_definition
from robot_dyn_id.loads.fit import LoadFit
from robot_dyn_id.report.result import VALUE_COLUMNS, ResultPage, ResultSection, fit_plots, make_value_row

T = np.concatenate([np.arange(0.0, 10.0, 0.01), np.arange(50.0, 60.0, 0.01)])


def fitted():
    """Fit of joints a and b along 10 s."""
    t = np.arange(0.0, 10.0, 0.05)

    def tiles():
        for number in range(2):
            yield Tile(number, 0, np.stack([np.sin(t), 2.0 * np.sin(t) + 0.1 * np.cos(9.0 * t)]), t=t)

    support = np.array([0])
    problem = LinearProblem(("theta",), ("a", "b"), (support, support), tiles, 20.0)
    return LoadFit(("a", "b"), np.array([0.1, 0.2]), 0.15, np.array([0.3, 0.4]), problem, np.array([2.0]))


def example_page():
    """Page with a table, plots over time with an interruption, a finding, and text that must be escaped."""
    rows = (make_value_row("mass", 1.5, 0.01, "kg"), make_value_row("inertia xx", 1.0, None, "kg m^2"))
    measured, predicted = np.sin(T), np.sin(T) + 0.1 * np.cos(9.0 * T)
    plots = tuple((name, fit_plots(name, (T, measured, predicted), "N m", 2)) for name in ("a", "b"))
    sections = (
        ResultSection("Body", VALUE_COLUMNS, rows, "In the frame of the link."),
        ResultSection("Fit", ("row", "error"), (("a", "1 %"), ("b", "2 %")), plots=plots, numbers=(1,)),
    )
    findings = (find_definition("faster_than_arm").found("faster than before: a", ["a"], action="move faster"),)
    provenance = {"robot": "<robot>", "software": "robot_dyn_id"}
    return ResultPage("Identified payload", "suspect", "suspect", "Read the findings.", sections, findings, provenance)
