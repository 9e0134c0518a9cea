# SPDX-License-Identifier: Apache-2.0
"""The recorder over real DDS: every byte, every phase, every fault."""

import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.time import Time
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.msg import RecordingStatus
from rosbags.interfaces import QosDurability, QosReliability
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger
from support.joint_state_source import (
    JOINTS,
    Source,
    block_disk,
    bytes_of_unfinished,
    bytes_on_disk,
    start_recorder,
)
from support.processes import HANG_S, child
from support.ros_world import World
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.cli import main
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.nodes.recorder import Recorder
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, OK, WARN
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, SENSOR, STREAM
from robot_dyn_id.nodes.runtime.running import spin
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.recordings.bag_files import open_bag

IDLE, RECORDING = RecordingStatus.IDLE, RecordingStatus.RECORDING
FINISHED, FAILED = RecordingStatus.FINISHED, RecordingStatus.FAILED
PAUSED = RecordingStatus.PAUSED


class Line:
    """A recorder and its status messages."""

    def __init__(self, world, folder, namespace=""):
        self.world, self.folder, self.namespace = world, folder, namespace
        self.statuses = world.heard(RecordingStatus, f"{namespace}/recording_status", LATCHED)
        self.nodes, self.processes = [], []

    def arguments(self, *parameters):
        remap = ["-r", f"__ns:={self.namespace}"] if self.namespace else []
        return [*remap, *(item for text in (f"folder:={self.folder}", *parameters) for item in ("-p", text))]

    def node(self, *parameters):
        self.nodes.append(self.world.add(Recorder, *self.arguments(*parameters)))
        return self.nodes[-1]

    def process(self, *parameters, **options):
        self.processes.append(start_recorder(*self.arguments(*parameters), **options))
        return self.processes[-1]

    def until(self, state=None, reason=None, counts=None):
        def holds():
            last = self.statuses[-1] if self.statuses else None
            return last is not None and (
                (state is None or last.state == state)
                and (reason is None or (reason in last.reason if reason else not last.reason))
                and (counts is None or list(last.counts) == counts)
            )

        wanted = f"state {state}, reason {reason}, counts {counts}"
        shown = lambda: self.statuses[-1] if self.statuses else None  # noqa: E731
        assert spin(self.world.executor, holds, HANG_S, World.LOOK_S), f"{wanted}; last status: {shown()}"
        return self.statuses[-1]

    def call(self, service, data=None):
        kind = Trigger if data is None else SetBool
        request = None if data is None else SetBool.Request(data=data)
        return self.world.call(kind, f"{self.namespace}/recorder/{service}", request)

    def source(self, **options):
        return self.world.add(lambda **given: Source(**options, **given))

    def close(self):
        for node in self.nodes:
            assert spin(self.world.executor, node.stop, 10.0)
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def lines(world, tmp_path):
    made = []

    def make(namespace=""):
        made.append(Line(world, tmp_path / f"bag{namespace.replace('/', '_')}", namespace))
        return made[-1]

    yield make
    for line in made:
        line.close()


@pytest.fixture
def line(lines):
    return lines()


@pytest.fixture
def blocked_disk(monkeypatch):
    yield from block_disk(monkeypatch)


def wait_for(process, text):
    """Read the log of a process until it says so; all that was read."""
    lines = []
    for found in process.stderr:
        lines.append(found)
        if text in found:
            return "".join(lines)
    raise AssertionError(f"{text!r} never logged: {''.join(lines)}")


def test_every_byte_at_1_khz_with_other_nodes(world, line):
    line.node()
    heard = world.heard(JointState, "joint_states", STREAM)  # a node that decodes all of them
    effort = world.probe.create_publisher(Float64MultiArray, "effort_command", SENSOR)
    world.probe.create_timer(0.005, lambda: effort.publish(Float64MultiArray(data=[0.0] * 7)))
    source = line.source(count=3000, listeners=2)
    world.until(lambda: source.done)
    status = line.until(RECORDING, counts=[3000])
    assert (status.topics, status.types, list(status.lost)) == (["/joint_states"], ["sensor_msgs/msg/JointState"], [0])
    stamps = np.array([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in heard])
    assert status.rates[0] == pytest.approx(1.0 / np.diff(stamps).mean(), rel=0.05)
    assert status.jitter[0] == pytest.approx(np.diff(stamps).std(ddof=1), rel=0.05, abs=1e-5)
    answer = line.call("stop")
    assert (answer.success, answer.message) == (True, str(line.folder))
    line.until(FINISHED, reason="", counts=[3000])
    assert bytes_on_disk(line.folder) == source.published
    recording = open_recording(line.folder)
    assert recording.joint_names == tuple(JOINTS)
    assert not recording.findings(JOINTS)


@pytest.mark.parametrize(
    ("qos", "reliability", "durability"),
    [
        (SENSOR, QosReliability.BEST_EFFORT, QosDurability.VOLATILE),
        (RELIABLE, QosReliability.RELIABLE, QosDurability.VOLATILE),
        (
            QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE, durability=LATCHED.durability),
            QosReliability.RELIABLE,
            QosDurability.TRANSIENT_LOCAL,
        ),
    ],
    ids=["best effort", "reliable", "latched"],
)
def test_qos_as_offered(world, line, qos, reliability, durability):
    latched = durability == QosDurability.TRANSIENT_LOCAL
    source = line.source(qos=qos, count=40, listeners=0 if latched else 1)
    if latched:
        world.until(lambda: source.done)  # before the subscription
    line.node()
    line.until(RECORDING, counts=[40])
    assert line.call("stop").success
    assert bytes_on_disk(line.folder) == source.published
    with Reader(line.folder) as reader:
        (connection,) = reader.connections
        (offered,) = connection.ext.offered_qos_profiles
        assert (offered.reliability, offered.durability) == (reliability, durability)
        assert offered.deadline.sec == 9223372036  # as rosbag2 writes infinity
        assert connection.digest.startswith("RIHS01_")


def test_a_second_publisher_is_named_and_recorded_though_it_offers_less(world, line, capfd):
    line.node()
    first = line.source(name="driver", rate=100.0, count=50)
    line.until(RECORDING, reason="", counts=[50])
    assert "publishers on" not in capfd.readouterr().err
    second = line.source(name="impostor", qos=SENSOR, rate=100.0, count=50)
    line.until(RECORDING, counts=[100])
    log = capfd.readouterr().err
    assert "2 publishers on /joint_states: /driver, /impostor; their messages mix" in log
    assert "/joint_states offers less than those before it: subscribed again" in log
    assert line.call("stop").success
    assert bytes_on_disk(line.folder) == first.published + second.published


def test_types_of_ones_own_and_of_several_topics(world, line):
    own = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
    text = world.probe.create_publisher(String, "robot_description", LATCHED)
    parameters, description = ParameterSetMsg(), String(data="<robot/>")
    parameters.robot.name, parameters.estimate.values = "arm", [1.0, 2.0]
    published = [serialize_message(parameters), serialize_message(description)]
    own.publish(published[0])
    text.publish(published[1])
    line.node("topics:=[joint_states, identified_parameters, robot_description]")
    source = line.source(count=20)
    status = line.until(RECORDING, reason="", counts=[20, 1, 1])
    assert status.types[1:] == ["robot_dyn_id/msg/ParameterSet", "std_msgs/msg/String"]
    assert line.call("stop").success
    assert bytes_on_disk(line.folder) == source.published
    for topic, sent in zip(("/identified_parameters", "/robot_description"), published, strict=True):
        (found,) = bytes_on_disk(line.folder, topic)
        assert found[: len(sent)] == sent  # the middleware may fill up to a multiple of 4, with what was in memory
        assert 0 <= len(found) - len(sent) < 4
    with Reader(line.folder) as reader:
        for connection in reader.connections:  # the definition is the type's, or its hash would differ
            types = get_typestore(Stores.EMPTY)
            types.register(get_types_from_msg(connection.msgdef.data, connection.msgtype))
            assert types.hash_rihs01(connection.msgtype) == connection.digest


def test_waits_for_a_publisher_and_says_so_with_a_hint(world, lines, capfd):
    line = lines("/left")
    elsewhere = line.source(topic="/arm/joint_states", count=1, listeners=0)
    line.node()
    line.until(RECORDING, reason="no publisher on /left/joint_states")
    shown = "no publisher on /left/joint_states (there is /arm/joint_states); waiting"
    heard = []
    world.until(lambda: heard.append(capfd.readouterr().err) or "".join(heard).count(shown) == 2)
    assert elsewhere.done
    source = line.source(topic="/left/joint_states", count=30)
    line.until(RECORDING, reason="", counts=[30])
    assert line.call("stop").success
    assert bytes_on_disk(line.folder, "/left/joint_states") == source.published


def test_without_any_message_no_bag_is_left(line, capfd):
    line.node()
    line.until(RECORDING)
    assert line.folder.is_dir()
    answer = line.call("stop")
    assert (answer.success, answer.message) == (True, "no message came on /joint_states")
    assert line.until(FINISHED).reason == "no message came on /joint_states"
    assert "without a message there is no bag" in capfd.readouterr().err
    assert not line.folder.exists()


def test_a_recorder_that_is_to_start_and_cannot_ends_with_the_reason(line):
    line.folder.mkdir()
    process = line.process()
    _, err = process.communicate(timeout=HANG_S)
    reason = f"{line.folder}: exists, and nothing is overwritten; choose another folder"
    assert (process.returncode, err.splitlines()[-1]) == (3, f"recorder: {reason}")


def test_two_namespaces_do_not_mix(world, lines):
    left, right = lines("/left"), lines("/right")
    sources = []
    for line, rate in ((left, 500.0), (right, 400.0)):
        line.node("start:=false")
        sources.append(
            line.source(topic=f"{line.namespace}/joint_states", rate=rate, count=200, name=line.namespace[1:])
        )
        line.until(IDLE)
    assert left.call("start").success
    left.until(RECORDING, counts=[200])
    assert right.statuses[-1].state == IDLE
    assert not sources[1].published  # no subscriber
    assert right.call("start").success
    right.until(RECORDING, counts=[200])
    for line, source in zip((left, right), sources, strict=True):
        assert line.call("stop").success
        assert bytes_on_disk(line.folder, f"{line.namespace}/joint_states") == source.published
        assert line.until(FINISHED).topics == [f"{line.namespace}/joint_states"]


def test_start_pause_and_stop_are_refused_at_the_wrong_time(line):
    line.node("start:=false")
    for state in (IDLE, FINISHED):
        line.until(state)
        for answer in (line.call("stop"), line.call("pause", True)):
            assert (answer.success, answer.message) == (False, "nothing is being recorded")
        if state == IDLE:
            assert not line.folder.exists()
            assert line.call("start").success
            answer = line.call("start")
            assert (answer.success, answer.message) == (
                False,
                f"already recording into {line.folder}: call ~/stop first",
            )
            assert line.call("stop").success
    line.folder.mkdir()
    answer = line.call("start")
    assert not answer.success
    assert answer.message == f"{line.folder}: exists, and nothing is overwritten; choose another folder"


def test_a_pause_leaves_a_gap_and_no_trace_in_the_statistics(world, line):
    line.node()
    source = line.source(rate=500.0)
    world.until(lambda: len(source.published) > 500)
    assert line.call("pause", True).message == "paused"
    line.until(PAUSED, reason="")
    before = len(source.published)
    world.until(lambda: len(source.published) > before + 500)
    assert line.call("pause", False).message == "recording"
    again = len(source.published)
    world.until(lambda: len(source.published) > again + 500)
    assert line.call("stop").success
    status = line.until(FINISHED, reason="")
    found = bytes_on_disk(line.folder)
    numbers = [source.published.index(data) for data in found]
    steps = np.diff(numbers)
    assert sorted(set(steps))[0] == 1
    assert (steps > 1).sum() == 1
    assert steps.max() > 500
    assert status.counts[0] == len(found)
    assert status.jitter[0] < 0.1


def test_every_recording_has_a_folder_of_its_own(world, tmp_path):
    line = Line(world, tmp_path / "runs" / "%Y-%m-%d_%H-%M-%S")
    line.source()
    line.node("max_duration:=1.1")  # ends automatically, in another second than it began
    for number in (1, 2):
        status = line.until(FINISHED)
        assert Path(status.folder).parent == tmp_path / "runs"
        time.strptime(Path(status.folder).name, "%Y-%m-%d_%H-%M-%S")
        assert len(list((tmp_path / "runs").iterdir())) == number
        line.statuses.clear()
        if number == 1:
            assert line.call("start").success
    line.close()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (["topics:=['joint states']"], "parameter topics must be the name of a topic, a service or an action: "),
        (["topics:=[a, joint_states, /a]"], "parameter topics names /a twice"),
        (["max_duration:=-1.0"], "parameter max_duration must be at least 0"),
        (["topic:=a"], "unknown parameter 'topic'; did you mean 'topics'?"),
    ],
)
def test_wrong_parameters(line, parameters, words):
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        line.node(*parameters)


def test_a_folder_that_exists_and_none_at_all(world, lines, capfd):
    line = lines()
    line.folder.mkdir()
    (line.folder / "precious").write_text("data")
    line.node()
    reason = f"{line.folder}: exists, and nothing is overwritten; choose another folder"
    assert line.until(FAILED).reason == reason
    assert f"cannot record: {reason}" in capfd.readouterr().err
    assert os.listdir(line.folder) == ["precious"]
    line.folder.rename(line.folder.with_name("moved"))
    assert line.call("start").success
    line.until(RECORDING)
    nameless = lines("/other")
    nameless.folder = "''"
    nameless.node()
    assert nameless.until(FAILED).reason == "parameter folder is empty: name the bag folder to record into"


def test_a_type_that_is_not_installed(world, line):
    world.probe.create_publisher(JointTrajectory, "plan", RELIABLE)
    hide = "sys.modules['trajectory_msgs.msg'] = None"  # as an import finds it where it is absent
    process = line.process("topics:=[plan, joint_states]", before=hide)
    source = line.source(count=300)
    reason = "/plan is not recorded: message type trajectory_msgs/msg/JointTrajectory is not known here; "
    reason += "install trajectory_msgs, or source the workspace that has it"
    line.until(RECORDING, reason=reason, counts=[0, 300])
    assert reason in wait_for(process, "not recorded")
    assert line.call("stop").success
    assert bytes_on_disk(line.folder) == source.published


def test_diagnostics_say_the_same_as_the_status(world, line):
    diagnostics = world.heard(DiagnosticArray, "diagnostics", RELIABLE)

    def latest():
        return next(
            (m.status[0] for m in reversed(diagnostics) if m.status[0].name == "/recorder: condition"),
            DiagnosticStatus(),
        )

    line.node("start:=false")
    for level, message, action in (
        (OK, "idle", lambda: line.call("start")),
        (WARN, "no publisher on /joint_states", lambda: line.source(count=5)),
        (OK, "recording", lambda: line.call("stop")),
        (OK, "finished", lambda: line.call("start")),
        (ERROR, f"{line.folder}: exists, and nothing is overwritten; choose another folder", lambda: None),
    ):
        wanted = (level, message)
        world.until(lambda wanted=wanted: (latest().level, latest().message) == wanted, what=message)
        if message == "finished":
            assert latest().values[0].key == "/joint_states"
            assert latest().values[0].value.startswith("5 messages, ")
        action()


def test_two_types_on_one_topic(world, line):
    code = """
import rclpy, time
from std_msgs.msg import String
rclpy.init()
publisher = rclpy.create_node("texts").create_publisher(String, "joint_states", 1)
time.sleep(60)
"""  # in another process: the middleware refuses it in one
    with child([sys.executable, "-c", code]) as other:
        source = line.source(listeners=0)
        process = line.process()
        status = line.until(RECORDING, reason="/joint_states is recorded as ")
        first, second = "sensor_msgs/msg/JointState", "std_msgs/msg/String"
        if status.types == [second]:  # the one found first
            first, second = second, first
        assert status.reason == f"/joint_states is recorded as {first}, and not what comes as {second}"
        assert status.reason in wait_for(process, "not what comes")
        assert len(source.published) > 0
        other.kill()


@pytest.mark.parametrize(
    ("phase", "number"),
    [
        ("idle", signal.SIGTERM),
        ("waiting", signal.SIGINT),
        ("recording", signal.SIGINT),
        ("recording", signal.SIGHUP),
        ("paused", signal.SIGINT),
    ],
)
def test_a_signal_in_every_phase_leaves_a_finished_bag(world, line, phase, number):
    process = line.process(f"start:={'false' if phase == 'idle' else 'true'}")
    source = None
    if phase == "idle":
        line.until(IDLE)
    elif phase == "waiting":
        line.until(RECORDING, reason="no publisher")
    else:
        source = line.source()
        world.until(lambda: line.statuses and line.statuses[-1].counts and line.statuses[-1].counts[0] > 500)
        if phase == "paused":
            assert line.call("pause", True).success
    process.send_signal(number)
    world.until(lambda: process.poll() is not None)
    assert process.returncode == 0, process.stderr.read()
    if phase == "idle":
        assert not line.folder.exists()
        return
    line.until(FINISHED)
    if phase == "waiting":
        assert not line.folder.exists()
        return
    found = bytes_on_disk(line.folder)
    assert found == source.published[: len(found)]
    assert line.statuses[-1].counts[0] == len(found)
    with Reader(line.folder) as reader:
        assert reader.message_count == len(found)


@pytest.mark.parametrize("moment", [0.3, 0.6, 1.2])
def test_killed_it_loses_less_than_a_second(world, line, moment):
    process = line.process()
    source = line.source()
    world.until(
        lambda: list(line.folder.glob("*.mcap")) and bytes_of_unfinished(line.folder), what="messages on the disk"
    )
    end = time.monotonic() + moment
    world.until(lambda: time.monotonic() > end)
    process.kill()
    published = len(source.published)
    process.wait()
    for found in (bytes_of_unfinished(line.folder), [data for *_, data in raw(line.folder)]):
        assert found == source.published[: len(found)]
        assert published - len(found) < 1000
    # Its folder opens, and what `recover` writes is complete for the readers of others, to the last byte on the disk.
    stated = yaml.safe_load((line.folder / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert (stated["version"], stated["storage_identifier"]) == (9, "mcap")
    assert all((line.folder / name).is_file() for name in stated["relative_file_paths"])
    target = line.folder.with_name("recovered")
    assert main(["recover", str(line.folder), "--out", str(target)]) == 0
    assert bytes_on_disk(target) == found
    with Reader(target) as reader:
        assert reader.message_count == len(found)
        assert [bytes(data) for _, _, data in reader.messages()] == found
    assert bytes_of_unfinished(line.folder) == found, "the original is kept"


def raw(folder):
    """Messages by our own reader."""
    return open_bag(folder).messages(["/joint_states"], lambda text: None)


def test_arrival_is_counted_by_simulated_time_and_nothing_waits_for_it(world, line):
    line.node("use_sim_time:=true")
    line.until(RECORDING, reason="no publisher")  # the clock does not run yet
    clock = world.probe.create_publisher(Clock, "/clock", RELIABLE)
    source = line.source(rate=200.0, listeners=1)
    tick = lambda: clock.publish(Clock(clock=Time(nanoseconds=(100 + len(source.published)) * 10**9).to_msg()))  # noqa: E731
    world.probe.create_timer(0.005, tick)
    world.until(lambda: len(source.published) > 200)
    assert line.call("stop").success
    with Reader(line.folder) as reader:
        log_times = [log_time for _, log_time, _ in reader.messages()]
    assert log_times[0] < 150 * 10**9 < 250 * 10**9 < log_times[-1] < 1000 * 10**9


def test_a_full_disk(world, line):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    process = line.process(preexec_fn=limit)
    source = line.source()
    reason = f"{line.folder}: cannot be written (File too large); what was written before stays"
    line.until(FAILED, reason=reason)
    assert reason in wait_for(process, "File too large")
    found = [data for *_, data in raw(line.folder)]
    assert len(found) >= line.statuses[-1].counts[0] > 500  # of the last chunk, a part may be whole
    assert found == source.published[: len(found)]
    moved = line.folder.with_name("moved")
    line.folder.rename(moved)
    assert line.call("start").success  # the node lives on
    process.send_signal(signal.SIGINT)
    world.until(lambda: process.poll() is not None)
    assert process.returncode == InputError.exit_code


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: os.truncate(path, 1000)], ids=["removed", "truncated"])
def test_a_file_that_others_take_away_fails_the_recording(world, line, lose):
    process = line.process()
    line.source(count=100_000)
    file = line.folder / f"{line.folder.name}_0.mcap"
    world.until(lambda: line.statuses and line.statuses[-1].counts and line.statuses[-1].counts[0] > 300)
    lose(file)
    world.within(1.5, lambda: line.statuses[-1].state == FAILED)
    status = line.statuses[-1]
    assert str(file) in status.reason
    assert list(status.counts) == [0]
    answer = line.call("stop")
    assert (answer.success, answer.message) == (False, status.reason)
    process.send_signal(signal.SIGINT)
    world.until(lambda: process.poll() is not None)
    assert process.returncode == InputError.exit_code


def test_a_stop_at_once_reports_a_file_that_is_gone(world, line):
    node = line.node()
    source = line.source(count=300)
    world.until(lambda: source.done)
    line.until(RECORDING, counts=[300])
    (line.folder / f"{line.folder.name}_0.mcap").unlink()
    answer = line.call("stop")
    assert not answer.success
    assert "300 messages are lost" in answer.message
    assert line.until(FAILED, counts=[0]).reason == answer.message
    assert node.stop() and node.end.exit_code == InputError.exit_code


def test_a_blocked_disk(world, line, blocked_disk):
    line.node()
    source = line.source(count=300)
    world.until(lambda: source.done)
    line.until(RECORDING, reason="", counts=[0])
    answer = line.call("stop")
    words = f"{line.folder}: the disk is slow; wait for recording_status FINISHED"
    assert (answer.success, answer.message) == (False, words)
    assert "already recording" in line.call("start").message
    assert line.until(RECORDING, reason="finishing the bag")
    blocked_disk.set()
    line.until(FINISHED, reason="", counts=[300])
    assert bytes_on_disk(line.folder) == source.published


def test_what_the_middleware_loses_is_counted(world, line):
    process = line.process()
    source = line.source(qos=SENSOR)
    line.until(RECORDING, reason="")
    world.until(lambda: len(source.published) > 200)
    process.send_signal(signal.SIGSTOP)
    for _ in range(6000):  # more than fits into the shared memory of the middleware
        source.publish()
    process.send_signal(signal.SIGCONT)
    more = len(source.published) + 500
    world.until(lambda: len(source.published) > more)
    source.count = len(source.published)
    line.statuses.clear()
    world.until(lambda: any(s.counts[0] + s.lost[0] == source.count for s in line.statuses))
    status = line.statuses[-1]
    assert status.lost[0] > 1000
    assert status.reason == f"{status.lost[0]} messages lost on /joint_states"
    assert line.call("stop").success
    assert len(bytes_on_disk(line.folder)) == status.counts[0]


def test_an_executor_that_is_held_up_is_reported(world, line, capfd):
    line.node()
    source = line.source(count=500)
    line.until(RECORDING, counts=[500])
    flood = threading.Thread(target=lambda: [source.publish() for _ in range(4000)])
    flood.start()
    time.sleep(1.5)  # without spinning
    flood.join()
    status = line.until(RECORDING, reason="messages of /joint_states may be missing: the executor was held up for ")
    assert status.reason in capfd.readouterr().err
    assert line.call("stop").success
    assert len(bytes_on_disk(line.folder)) < len(source.published)
    assert line.until(FINISHED).reason == status.reason
