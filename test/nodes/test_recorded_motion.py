# SPDX-License-Identifier: Apache-2.0
"""An excitation and its recording over real DDS, the one in a process of its own that is ended in every way."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from robot_dyn_id.msg import ExcitationStatus as Status
from robot_dyn_id.msg import RecordingStatus
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from support.excitation_cell import ACCELERATION, ARM, HORIZON_S, MAIN, NAMES, QUICK, START, Cell
from support.follower import Follower
from support.joint_state_faults import hostile_joint_states
from support.joint_state_source import bytes_of_unfinished, bytes_on_disk, start_recorder
from support.ros_world import ros_arguments

from robot_dyn_id.errors import InputError
from robot_dyn_id.nodes.identifier import Identifier
from robot_dyn_id.nodes.recorder import Recorder
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE

LONG = {"periods": 12}
"""Trials of 1 s each: longer than any of these tests lets it go on."""

DEADLINE = 1.5
"""Longest time between the end of a recording, however it ends, and braking [s]."""


def recorded(world, **parameters):
    """A cell that is recorded by whoever was started before, ready."""
    return Cell(world, **{**LONG, "recording": "required", **parameters}).until(Status.READY)


@pytest.fixture
def process(tmp_path):
    """A recorder as a process of its own."""
    process = start_recorder("-p", f"folder:={tmp_path / 'bag'}")
    yield process
    process.kill()
    process.communicate()


def small_disk(folder):
    """Arguments and options by which a process gets a disk of 100 kB at a folder."""
    tried = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(folder)]
    if shutil.which("unshare") and subprocess.run(tried, capture_output=True, check=False).returncode == 0:
        mount = 'mount -t tmpfs -o size=100k tmpfs "$0" && exec "$@"'
        return ["unshare", "-rm", "sh", "-c", mount, str(folder)], {}, "No space left on device"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    return [], {"preexec_fn": limit}, "File too large"


def test_a_full_disk_of_the_recorder_brakes_and_refuses_the_next_start(world, tmp_path):
    before, options, words = small_disk(tmp_path)
    code = "import sys\nfrom robot_dyn_id.nodes.executables import run_executable\nsys.exit(run_executable('recorder'))"
    command = [*before, sys.executable, "-c", code, "--ros-args", "-p", f"folder:={tmp_path / 'bag'}"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **options)
    try:
        statuses = world.heard(RecordingStatus, "recording_status", LATCHED)
        cell = recorded(world).running(progress=0.0)
        world.until(lambda: statuses[-1].state == RecordingStatus.FAILED)
        cell.within(0.3, Status.FAULT)
        assert cell.reason.startswith("/recorder is not recording: failed") and words in cell.reason
        world.within(1.0, cell.follower.at_rest)
        world.until(lambda: words in cell.call("start").message, what="the refusal, after rest is shown")
    finally:
        process.kill()
        process.communicate()


def test_a_recorder_that_is_killed_brakes_within_the_deadline(world, process):
    cell = recorded(world).running()
    process.kill()
    cell.within(DEADLINE + 0.2, Status.FAULT)
    assert "/recorder has not reported for " in cell.reason
    world.within(1.0, cell.follower.at_rest)
    assert not cell.call("start").success


def test_a_recorder_that_pauses_ends_or_never_began(world, process, tmp_path):
    cell = Cell(world, **LONG, recording="required")
    cell.running()
    assert world.call(SetBool, "recorder/pause", SetBool.Request(data=True)).success
    cell.until(Status.FAULT)
    assert cell.reason == "/recorder is not recording: paused"
    world.within(1.0, cell.follower.at_rest)
    world.until(lambda: cell.call("start").message == cell.reason, what="the refusal, after rest is shown")
    assert world.call(SetBool, "recorder/pause", SetBool.Request(data=False)).success
    world.until(lambda: cell.call("start").success)
    world.until(lambda: cell.state == Status.RUNNING)
    process.send_signal(signal.SIGINT)
    cell.until(Status.FAULT)
    assert cell.reason == "/recorder is not recording: finished"
    assert bytes_on_disk(tmp_path / "bag")
    world.until(lambda: "nothing is recorded" in cell.call("start").message)
    world.add(Recorder, "-p", "start:=false", "-p", f"folder:={tmp_path / 'other'}")
    world.until(lambda: "/recorder is not recording: call its start service" in cell.call("start").message)


def test_a_recorder_of_other_topics_is_refused_and_what_is_ignored_is_not(world, tmp_path):
    world.add(Recorder, "-p", "topics:=[other]", "-p", f"folder:={tmp_path / 'bag'}")
    cell = Cell(world, **LONG).until(Status.WAITING)
    world.until(lambda: cell.reason == "/recorder records /other, but not /joint_states")
    world.remove(cell.node)
    Cell(world, follower=False, **LONG, recording="ignore").running()


@pytest.mark.parametrize("kind", [Recorder, Identifier])
def test_a_bag_that_others_remove_brakes(world, tmp_path, kind):
    urdf = () if kind is Recorder else ("-p", f"urdf:={ARM}")
    node = world.add(kind, *urdf, "-p", f"folder:={tmp_path / 'place'}")
    cell = recorded(world).running()
    shutil.rmtree(tmp_path / "place")
    cell.within(DEADLINE, Status.FAULT)
    assert cell.reason.startswith(f"/{node.NAME} is not recording: failed, {tmp_path / 'place'}")
    assert cell.reason.count(".mcap: was removed or renamed")
    world.within(1.0, cell.follower.at_rest)
    world.until(node.stop)
    assert node.end.exit_code == InputError.exit_code


def test_the_recording_notes_that_its_motion_ended_in_a_fault(world, tmp_path):
    world.add(Recorder, "-p", f"folder:={tmp_path / 'bag'}")
    statuses = world.heard(RecordingStatus, "recording_status", LATCHED)
    cell = recorded(world).running()
    cell.follower.disturb = lambda message: None
    words = "the excitation ended in a fault: no joint states for "
    world.until(lambda: words in statuses[-1].reason)
    assert statuses[-1].state == RecordingStatus.RECORDING
    assert world.call(Trigger, "recorder/stop").success
    world.until(lambda: statuses[-1].state == RecordingStatus.FINISHED)
    assert words in statuses[-1].reason
    assert bytes_on_disk(tmp_path / "bag")


@pytest.mark.parametrize("phase", [Status.APPROACHING, Status.RUNNING])
def test_an_excitation_that_is_killed_leaves_the_robot_at_rest_and_a_note(world, tmp_path, phase):
    """Within the horizon and the braking time."""
    world.add(Recorder, "-p", f"folder:={tmp_path / 'bag'}")
    notes = world.heard(RecordingStatus, "recording_status", LATCHED)
    follower = world.add(lambda **o: Follower(NAMES, START, **o))
    statuses = world.heard(Status, "excitation_status", LATCHED)
    parameters = QUICK | LONG | {"urdf": str(ARM), "amplitude_share": 0.8, "period": 3.0}
    if phase == Status.APPROACHING:
        parameters["posture"] = "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]"
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "--ros-args", *ros_arguments(**parameters)],
        env=dict(os.environ),
        stderr=subprocess.DEVNULL,
    )
    try:
        world.until(lambda: statuses and statuses[-1].state == Status.READY)
        world.until(lambda: world.call(Trigger, "excitation_publisher/start").success)
        world.until(lambda: statuses[-1].state == phase and np.abs(follower.dq).max() > 0.5)
        process.kill()
        process.wait()
        killed = time.monotonic()
        world.until(follower.at_rest)
        world.until(lambda: "the excitation publisher disappeared during the motion" in notes[-1].reason)
    finally:
        process.kill()
        process.wait()
    moving = [t for t, _, dq in follower.history if dq.any()]
    fastest = max(np.abs(dq).max() for t, _, dq in follower.history if t > killed)
    assert max(moving) - killed <= HORIZON_S + fastest / ACCELERATION + 0.05
    assert notes[-1].state == RecordingStatus.RECORDING
    assert bytes_of_unfinished(tmp_path / "bag")


def test_hostile_messages_end_neither_recorder_nor_identifier(world, tmp_path):
    recorder = world.add(Recorder, "-p", f"folder:={tmp_path / 'bag'}")
    identifier = world.add(Identifier, "-p", f"folder:={tmp_path / 'run'}")
    statuses = world.heard(RecordingStatus, "recording_status", LATCHED)
    joints = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    states = world.probe.create_publisher(Status, "excitation_status", LATCHED)
    world.until(lambda: joints.get_subscription_count() == 2 and states.get_subscription_count() == 2)
    messages = [serialize_message(message) for message in hostile_joint_states()]
    messages += [message[:length] for message in messages[:3] for length in (0, 3, 4, 11, 20)]
    for message in messages:
        joints.publish(message)
        states.publish(Status(state=255, reason="\n" * 1000))
        states.publish(Status(state=Status.FAULT, elapsed=float("nan")))
        world.wait(0.02)
    world.until(lambda: list(statuses[-1].counts) == [len(messages)])
    assert (recorder.internal_errors, identifier.internal_errors) == (0, 0)
    assert world.call(Trigger, "recorder/stop").success
    assert bytes_on_disk(tmp_path / "bag") == messages
    assert "waiting for /robot_description" in world.call(Trigger, "identifier/identify").message
