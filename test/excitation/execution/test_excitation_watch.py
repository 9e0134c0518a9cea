# SPDX-License-Identifier: Apache-2.0
"""When a model is identified, by the status of excitations; states of another version are unknown, and no fault."""

from types import SimpleNamespace

import pytest

from robot_dyn_id.excitation.execution.enumerations import find_member
from robot_dyn_id.excitation.execution.excitation_watch import Event, ExcitationWatch
from robot_dyn_id.excitation.execution.supervision import Phase

UNKNOWN = pytest.mark.parametrize("value", [9, 255])


def status(state, **fields):
    """An ExcitationStatus of the node /e."""
    others = {"reason": "", "dry_run": False, "complete": False, "rehearsing": False}
    return SimpleNamespace(node="/e", state=state, **{**others, **fields})


def events(*statuses):
    watch = ExcitationWatch()
    return [watch.take(one) for one in statuses]


@UNKNOWN
def test_an_unknown_state_of_an_excitation_is_ignored(value):
    watch = ExcitationWatch()
    found = [watch.take(status(state)) for state in (value, Phase.RUNNING, value, Phase.DONE)]
    assert found == [Event.NONE, Event.BEGUN, Event.NONE, Event.OVER]
    assert "state" not in watch.waiting(["/e"])


@UNKNOWN
def test_an_unknown_state_that_is_waited_behind_is_named(value):
    watch = ExcitationWatch()
    watch.take(status(value))
    assert f"/e, whose state {value} is unknown" in watch.waiting(["/e"])


def test_only_members_are_found():
    assert find_member(Phase, 3) is Phase.RUNNING and find_member(Phase, 9) is None


@pytest.mark.parametrize(
    ("end", "event"),
    [
        (status(Phase.DONE, complete=True), Event.OVER),
        (status(Phase.FAULT, complete=True), Event.FAULT_ON_RETURN),
        (status(Phase.FAULT), Event.INCOMPLETE),
        (status(Phase.READY), Event.INCOMPLETE),
    ],
)
def test_an_excitation_is_over_complete_or_not(end, event):
    assert events(status(Phase.APPROACHING), status(Phase.RUNNING), end) == [Event.BEGUN, Event.NONE, event]


def test_rehearsals_dry_runs_and_what_was_done_before_are_no_excitations():
    rehearsal = status(Phase.RUNNING, rehearsing=True), status(Phase.READY, rehearsing=True)
    assert set(events(status(Phase.DONE, complete=True), *rehearsal, status(Phase.RUNNING, dry_run=True))) == {
        Event.NONE
    }
