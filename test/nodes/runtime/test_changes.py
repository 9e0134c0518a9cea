# SPDX-License-Identifier: Apache-2.0
"""Rate of reports of a state: changes at once, but limited."""

from robot_dyn_id.nodes.runtime.changes import BURST, Changes


def reports(texts, period=5.0, step=0.01):
    changes = Changes(period)
    return [text for k, text in enumerate(texts) if changes.due(k * step, text)]


def test_a_growing_figure_is_one_state_and_reported_again_once_a_period():
    reported = reports([f"joint3: no joint states for {0.01 * k:.2f} s, more than 1e-1 s" for k in range(1200)])
    assert reported == [f"joint3: no joint states for {t} s, more than 1e-1 s" for t in ("0.00", "5.00", "10.00")]


def test_a_change_is_reported_at_once_and_a_name_is_no_figure():
    assert reports(["ready", "ready", "joint1 lost", "joint1 lost", "joint2 lost", "ready"]) == [
        "ready",
        "joint1 lost",
        "joint2 lost",
        "ready",
    ]


def test_two_states_that_alternate_for_ever_are_not_a_flood():
    reported = reports(["ready", "waiting"] * 3000)  # for 60 s
    assert BURST <= len(reported) <= BURST + 60 / 5 + 1
