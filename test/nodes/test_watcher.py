# SPDX-License-Identifier: Apache-2.0
"""The observer of `robot-dyn-id watch` over real DDS, with running nodes and a published robot."""

import io
import json
import sys
import time
from collections import deque

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.serialization import serialize_message
from robot_dyn_id.msg import ExternalTorque, IdentificationReport, RecordingStatus, TorqueResidual
from sensor_msgs.msg import JointState
from support.processes import HANG_S
from support.simulator_scene import DEEP

from robot_dyn_id.cli.watch import format_snapshot
from robot_dyn_id.nodes import watcher as watching
from robot_dyn_id.nodes.recorder import Recorder
from robot_dyn_id.nodes.runtime.robot_node import LATCHED
from robot_dyn_id.nodes.torque_residual_monitor import TorqueResidualMonitor
from robot_dyn_id.nodes.watcher import Watcher

RATE = 50.0


@pytest.fixture
def watcher():
    with Watcher() as watcher:
        yield watcher


def publish_joint_states(world, name="joint_states"):
    """Joint states of two joints without efforts at `RATE`."""
    publisher = world.probe.create_publisher(JointState, name, DEEP)
    message = JointState(name=["a", "b"], position=[0.0, 1.0], velocity=[0.0, 0.0])
    world.probe.create_timer(1.0 / RATE, lambda: publisher.publish(message))


def observe(world, watcher, holds):
    """Spin both sides until a snapshot satisfies a condition."""
    end = time.monotonic() + HANG_S
    while time.monotonic() < end:
        world.wait(0.3)
        watcher.observe(0.05)
        snapshot = watcher.snapshot()
        if holds(snapshot):
            return snapshot
    raise AssertionError(snapshot)


def test_rates_recordings_and_conditions_of_nodes_are_observed(world, watcher, tmp_path):
    publish_joint_states(world)
    folder = tmp_path / "bag"
    world.add(Recorder, "-p", f"folder:={folder}", "-p", "topics:=[joint_states]", "-p", "start:=true")
    world.add(TorqueResidualMonitor)
    found = observe(
        world,
        watcher,
        lambda now: (
            now["joint_states"]
            and now["joint_states"][0]["rate"] > 0.0
            and len(now["nodes"]) == 2
            and any(one["messages"] > 0 for one in now["recordings"])
        ),
    )
    (states,) = found["joint_states"]
    assert states["joints"] == ["a", "b"] and states["fields"] == ["position", "velocity"]
    (recording,) = found["recordings"]
    assert recording["state"] == "recording" and recording["folder"] == str(folder) and recording["lost"] == 0
    levels = {node["name"].rpartition("/")[2].partition(":")[0]: node["level"] for node in found["nodes"]}
    assert sorted(levels.values()) == ["ok", "stale"]  # the monitor has no model
    json.dumps(found)
    text = "\n".join(format_snapshot(found))
    assert "joint_states" in text and "waiting for identified_parameters" in text


def test_reports_show_their_course_and_latched_ones_are_received_late(world, watcher):
    publisher = world.probe.create_publisher(IdentificationReport, "identification_report", LATCHED)
    publisher.publish(IdentificationReport(verdict="suspect", held_out_all_joints_nrmse=0.08))
    observe(world, watcher, lambda now: now["identifications"])
    publisher.publish(IdentificationReport(verdict="good", held_out_all_joints_nrmse=0.03))
    (report,) = observe(world, watcher, lambda now: now["identifications"][0]["verdict"] == "good")["identifications"]
    assert report["history"] == pytest.approx([0.08, 0.03])


def test_a_namespace_leaves_out_other_robots(world):
    publish_joint_states(world, "/left/joint_states")
    publish_joint_states(world, "/right/joint_states")
    with Watcher("/left") as watcher:
        found = observe(world, watcher, lambda now: now["joint_states"])
    assert [one["topic"] for one in found["joint_states"]] == ["/left/joint_states"]


def test_every_state_of_a_recording_has_its_name(world, watcher):
    publisher = world.probe.create_publisher(RecordingStatus, "recording_status", LATCHED)
    publisher.publish(RecordingStatus(state=RecordingStatus.FAILED, reason="disk full"))
    (recording,) = observe(world, watcher, lambda now: now["recordings"])["recordings"]
    assert (recording["state"], recording["reason"]) == ("failed", "disk full")


class Clock:
    """Time that a test sets."""

    now = 100.0

    def monotonic(self):
        return self.now

    def time(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(watching, "time", clock)
    return clock


def taken(message, *others):
    """A topic with messages."""
    topic = watching._Topic(type(message), contents=deque(maxlen=4000))
    for one in (message, *others):
        topic.take(serialize_message(one))
    return topic


def residual(name="a", values=(1.0,)):
    return TorqueResidual(
        joint_names=[name], measured=[5.0], predicted=[4.0], residual=list(values), standard_deviation=[0.1]
    )


def entry(topic, describe, publishers=1):
    return watching._entry("/arm1/topic", topic, describe, publishers)


def snapshot_of(**sections):
    """A snapshot with some sections."""
    keys = ("joint_states", "recordings", "excitations", "residuals", "external_torques", "identifications", "models")
    return {"namespace": "/", **{key: [] for key in (*keys, "refused", "nodes")}, **sections}


def test_a_dead_recorder_does_not_record(clock):
    topic = taken(RecordingStatus(state=RecordingStatus.RECORDING, recorder="/recorder"))
    assert entry(topic, watching._recording)["state"] == "recording"
    assert entry(topic, watching._recording, publishers=0)["state"] == "silent"
    clock.now += watching.SILENT_S + 0.1
    found = entry(topic, watching._recording)
    assert (found["state"], found["last_state"]) == ("silent", "recording")
    assert "silent (was recording)" in "\n".join(format_snapshot(snapshot_of(recordings=[found])))


def test_torques_of_a_silent_topic_are_not_shown(clock):
    topic = taken(residual())
    assert entry(topic, watching._residual)["joints"][0]["measured"] == 5.0
    clock.now += watching.SILENT_S + 0.1
    found = entry(topic, watching._residual)
    assert found["joints"][0]["joint"] == "a" and found["joints"][0]["measured"] is None
    text = "\n".join(format_snapshot(snapshot_of(residuals=[found])))
    assert "silent" in text and "5" not in text
    torque = ExternalTorque(joint_names=["a"], torque=[5.0], standard_deviation=[0.1], limit=[1.0], contact=True)
    topic = taken(torque)
    found = entry(topic, watching._external_torque, publishers=0)
    assert found["contact"] is None and "silent" in "\n".join(format_snapshot(snapshot_of(external_torques=[found])))


def test_the_rms_is_that_of_the_documented_time(clock):
    topic = taken(residual(values=(100.0,)))
    clock.now += watching.WINDOW_S + 0.1
    for _ in range(300):
        clock.now += 1e-3
        topic.take(serialize_message(residual(values=(1.0,))))
    assert entry(topic, watching._residual)["joints"][0]["rms"] == 1.0


def test_held_out_errors_are_those_of_the_same_robot(clock):
    nodes = [
        {"name": f"/{arm}/monitor", "level": "ok", "message": "", "values": {"a: NRMSE (held-out)": value}}
        for arm, value in (("arm1", "11 %"), ("arm2", "22 %"))
    ]
    found = entry(taken(residual()), watching._residual)
    text = "\n".join(format_snapshot(snapshot_of(residuals=[found], nodes=nodes)))
    assert "11 %" in text and "22 %" not in text


def test_arrays_of_other_lengths_are_left_out_with_the_reason(world, watcher):
    publisher = world.probe.create_publisher(TorqueResidual, "torque_residual", DEEP)
    world.probe.create_timer(1.0 / RATE, lambda: publisher.publish(residual(values=())))
    found = observe(world, watcher, lambda now: now["refused"])
    assert found["residuals"] == [] and "0 of residual" in found["refused"][0]["reason"]
    assert "0 of residual" in "\n".join(format_snapshot(found))


def test_a_namespace_leaves_out_the_nodes_of_other_robots(world):
    publisher = world.probe.create_publisher(DiagnosticArray, "/diagnostics", 10)
    status = [DiagnosticStatus(name=f"/{arm}/monitor") for arm in ("left", "leftover", "right")]
    world.probe.create_timer(0.1, lambda: publisher.publish(DiagnosticArray(status=status)))
    with Watcher("/left") as watcher:
        found = observe(world, watcher, lambda now: now["nodes"])
    assert [one["name"] for one in found["nodes"]] == ["/left/monitor"]


def test_standard_error_need_not_have_a_file_descriptor(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Watcher() as watcher:
        watcher.observe(0.05)


def test_an_empty_graph_names_what_to_check(world, watcher):
    watcher.observe(0.2)
    (line,) = format_snapshot({**watcher.snapshot(), "nodes": []})
    assert "robot-dyn-id doctor" in line
