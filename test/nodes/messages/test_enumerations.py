# SPDX-License-Identifier: Apache-2.0
"""Values of enumerations that this version does not know: unknown, and no fault; the next known value counts again."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed: no ROS 2 here")
from diagnostic_msgs.msg import DiagnosticStatus
from robot_dyn_id.action import ExecuteExcitation
from robot_dyn_id.msg import ExcitationStatus, RecordingStatus

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.execution.enumerations import find_member
from robot_dyn_id.excitation.execution.recording_watch import RecordingState
from robot_dyn_id.excitation.execution.supervision import Phase
from robot_dyn_id.nodes.excitation.recording_reports import RecordingReports
from robot_dyn_id.nodes.excitation.requests import read_goal
from robot_dyn_id.nodes.payload.wrist import WristMotion
from robot_dyn_id.nodes.recorder import Recorder
from robot_dyn_id.nodes.watcher import _level

UNKNOWN = pytest.mark.parametrize("value", [9, 255])


def constants(message_type, other=()):
    """Values of the unsigned constants of a message, those of one enumeration."""
    found = {name: getattr(message_type, name) for name in dir(message_type) if name.isupper()}
    return {name: value for name, value in found.items() if isinstance(value, int) and name not in other}


def test_enumerations_have_the_values_of_their_messages():
    rehearsals = ("NOT_REHEARSED", "REHEARSED", "NOT_REQUIRED")
    assert {phase.name: phase.value for phase in Phase} == constants(ExcitationStatus, rehearsals)
    assert {state.name: state.value for state in RecordingState} == constants(RecordingStatus)
    assert find_member(Phase, 3) is Phase.RUNNING and find_member(Phase, 9) is None


@UNKNOWN
def test_an_excitation_does_not_take_an_unknown_state_of_a_recorder_for_a_failure(value):
    reports = []
    node = SimpleNamespace(subscription=lambda *_: None, steady_ns=lambda: 0)
    receiver = RecordingReports(node, SimpleNamespace(receive=lambda _, report: reports.append(report.state)))
    for state in (RecordingState.RECORDING, value, RecordingState.FINISHED):
        receiver._receive(RecordingStatus(recorder="/r", state=state))
    assert reports == [RecordingState.RECORDING, RecordingState.FINISHED]


@UNKNOWN
def test_a_recorder_does_not_take_an_unknown_state_of_an_excitation_for_its_end(world, tmp_path, value):
    recorder = world.add(Recorder, "-p", "start:=false", "-p", f"folder:={tmp_path / 'bag'}")
    states = (Phase.RUNNING, value, Phase.FAULT)
    for state in states:
        recorder._on_excitation(ExcitationStatus(node="/e", state=state, reason="too fast"))
    assert "too fast" in recorder._motion.remark


@UNKNOWN
def test_a_payload_motion_ignores_an_unknown_state(value):
    wrist = WristMotion.__new__(WristMotion)
    wrist._name, wrist._moved, wrist.phase = "/e", False, Phase.READY
    wrist.receive(ExcitationStatus(node="/e", state=value))
    assert (wrist.phase, wrist._moved) == (Phase.READY, False)
    wrist.receive(ExcitationStatus(node="/e", state=Phase.RUNNING))
    assert (wrist.phase, wrist._moved) == (Phase.RUNNING, True)


@UNKNOWN
def test_an_unknown_task_is_a_refused_goal(value):
    with pytest.raises(UsageError, match=f"task {value} is unknown"):
        read_goal(ExecuteExcitation.Goal(task=value), None, 1.0, "", True)


def test_an_unknown_level_of_diagnostics_is_shown_as_its_number():
    assert [_level(one) for one in (DiagnosticStatus.WARN, b"\x05")] == ["warn", "level 5"]
