# SPDX-License-Identifier: Apache-2.0
"""The page of a fleet."""

import copy

from support.fleet_summaries import FLEET, ROBOT

from robot_dyn_id.report.fleet import MOST_DETAILED, write_fleet_page


def test_names_of_files_and_robots_are_text(tmp_path):
    summary = copy.deepcopy(FLEET)
    summary["left_out"] = [{"robot": "R2", "recording": "<script>.npz", "reason": "damaged"}]
    summary["robots"][0] |= {
        "differs": True,
        "differences": [{"name": "mz3", "value": 1.0, "fleet": 0.5}],
        "chi_square": float("nan"),
    }
    write_fleet_page(tmp_path / "fleet.html", summary)
    page = (tmp_path / "fleet.html").read_text()
    assert "&lt;script&gt;.npz" in page and "<script>.npz" not in page
    assert "mz3" in page and "fv1" in page


def test_large_fleets_show_the_drift_of_those_that_differ(tmp_path):
    summary = copy.deepcopy(FLEET)
    summary["robots"] = [{**ROBOT, "robot": f"R{number}"} for number in range(MOST_DETAILED + 1)]
    summary["robots"][7]["differs"] = True
    write_fleet_page(tmp_path / "fleet.html", summary)
    assert (tmp_path / "fleet.html").read_text().count("<details>") == 1


def test_a_fleet_that_is_not_compared_is_not_called_equal(tmp_path):
    summary = copy.deepcopy(FLEET)
    summary["configurations"][0]["compared"] = False
    summary["robots"] = [ROBOT | {"differs": None, "probability": None}]
    write_fleet_page(tmp_path / "fleet.html", summary)
    page = (tmp_path / "fleet.html").read_text()
    assert "<strong>not compared</strong>" in page and "differ</strong>" not in page
    assert 'class="banner suspect"' in page
