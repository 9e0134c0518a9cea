# SPDX-License-Identifier: Apache-2.0
"""The identifier over real DDS: a stream gives what its file gives; bad input is reported and never published."""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rcl_interfaces.msg import Log
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from robot_dyn_id.msg import ExcitationStatus, IdentificationReport
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from support import parameter_sets
from support.ros_world import ros_arguments
from support.simulated import ARM, Simulated

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.files.configuration import Configuration, read_configuration
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.identifier import Identifier
from robot_dyn_id.nodes.runtime.robot_node import LATCHED
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.recordings.bag_files import open_bag
from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag
from robot_dyn_id.recordings.joint_states import encode
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings

RELIABLE = QoSProfile(depth=5000, reliability=ReliabilityPolicy.RELIABLE)
BEST_EFFORT = QoSProfile(depth=5000, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.fixture(scope="module")
def robot():
    return Simulated(ARM)


@pytest.fixture(scope="module")
def samples(robot):
    recording = robot.record(noise=0.05)
    (chunk,) = recording.chunks(recording.joint_names)
    return recording.joint_names, chunk


@pytest.fixture(scope="module")
def messages(samples):
    """The first stamp is 0.0, which is a time like any other."""
    names, chunk = samples
    return encode(names, np.round(chunk.t * 1e9).astype(np.int64), chunk.q, chunk.dq, chunk.tau)


@pytest.fixture(scope="module")
def from_file(samples, tmp_path_factory):
    names, chunk = samples
    folder = tmp_path_factory.mktemp("file")
    stamps = np.round(chunk.t * 1e9).astype(np.int64)
    write_joint_state_bag(folder / "bag", "/joint_states", names, StampedSamples(stamps, chunk.q, chunk.dq, chunk.tau))
    (folder / "arm.urdf").write_text(ARM)
    recording = open_recording(folder / "bag")
    robot = RobotDescription.from_file(folder / "arm.urdf")
    result = identify_recordings(robot, Configuration(), DataSelection([recording]))
    return folder, result.parameters


class Ears:
    """Late subscribers to what the identifier says."""

    def __init__(self, world):
        self.world = world
        self.parameters = world.heard(ParameterSetMsg, "identified_parameters", LATCHED)
        self.reports = world.heard(IdentificationReport, "identification_report", LATCHED)

    def report(self, count=1):
        self.world.until(lambda: len(self.reports) >= count, what="a report")
        return self.reports[-1]


def play(world, publisher, messages, rate):
    """Publish bytes at a rate, the world spinning; the clock of arrival is that of the wall."""
    world.until(lambda: publisher.get_subscription_count() > 0, what="a subscriber")
    start, sent = time.monotonic(), 0

    def step():
        nonlocal sent
        due = min(len(messages), int((time.monotonic() - start) * rate))
        for message in messages[sent:due]:
            publisher.publish(message)
        sent = due

    timer = world.probe.create_timer(0.005, step)
    world.until(lambda: sent == len(messages), what="all messages to be sent")
    world.probe.destroy_timer(timer)


def received(node, count):
    return lambda: node._recording.received >= count


def assert_same(heard, expected):
    """All but the names of the sources, to the last bit."""
    provenance = replace(heard.provenance, sources=expected.provenance.sources)
    parameter_sets.assert_same(replace(heard, provenance=provenance), expected)


def test_a_stream_gives_what_its_file_gives_to_the_last_bit(world, messages, from_file, tmp_path):
    folder, expected = from_file
    ears = Ears(world)
    node = world.add(Identifier, "-p", f"urdf:={folder / 'arm.urdf'}", "-p", f"folder:={tmp_path}")
    publisher = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    play(world, publisher, messages, 2000)
    world.until(received(node, len(messages)), what="all messages to arrive")
    assert world.call(Trigger, "identifier/identify").success
    report = ears.report()
    assert report.verdict == expected.judgment.verdict
    world.until(lambda: len(ears.parameters) == 1)
    assert_same(ParameterSet.from_message(ears.parameters[0]), expected)
    assert report.cross_check_rank == report.cross_check_rank_pinocchio > 0
    assert report.cross_check_max_difference <= 1e-10
    assert (tmp_path / "report.html").is_file()
    assert read_parameters(tmp_path / "parameters.yaml").estimate.values.tobytes() == expected.estimate.values.tobytes()


@pytest.fixture(scope="module")
def franka(tmp_path_factory):
    """A real recording (see test_measured.py): its files, its messages, and what the file gives, by a given model:
    a stream of a chosen one is compared with its file above."""
    data = os.environ.get("ROBOT_DYN_ID_DATA")
    if data is None:
        pytest.skip("ROBOT_DYN_ID_DATA, the folder of measured data, is not set")
    folder = Path(data) / "fer_unisa_bag"
    assert folder.is_dir(), "ROBOT_DYN_ID_DATA is set, and fer_unisa_bag is not there"
    bag, urdf = folder / "panda_exciting_trajectory.db3", folder / "model.urdf"
    recording = open_recording(bag)
    messages = [message[3] for message in open_bag(bag).messages((recording.topic,), pytest.fail)]
    config = tmp_path_factory.mktemp("franka") / "identification.yaml"
    config.write_text("terms: {viscous: , coulomb: , offset: }\nestimator: consistent\n")
    chosen = DataSelection([recording])
    result = identify_recordings(RobotDescription.from_file(urdf), read_configuration(config), chosen)
    return urdf, config, messages, result.parameters


@pytest.mark.parametrize(("speed", "late"), [(20, 0.0), (10, 1.7)])
def test_the_bag_of_a_real_arm_gives_what_its_file_gives_however_it_is_played(speed, late, world, franka, tmp_path):
    urdf, config, messages, expected = franka
    ears = Ears(world)
    node = world.add(Identifier, *ros_arguments(urdf=urdf, config=config, folder=tmp_path))
    begin = time.monotonic() + late
    world.until(lambda: time.monotonic() >= begin)
    publisher = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    play(world, publisher, messages, 30 * speed)  # recorded at 30 Hz
    world.until(received(node, len(messages)), what="all messages to arrive")
    assert world.call(Trigger, "identifier/identify").success
    ears.report()
    world.until(lambda: len(ears.parameters) == 1)
    assert_same(ParameterSet.from_message(ears.parameters[0]), expected)


def test_best_effort_and_a_second_identification_that_goes_on_from_the_first(world, messages, from_file, tmp_path):
    _folder, _ = from_file
    ears = Ears(world)
    node = world.add(Identifier, "-p", f"folder:={tmp_path}")
    assert "waiting for /robot_description" in world.call(Trigger, "identifier/identify").message
    world.probe.create_publisher(String, "robot_description", LATCHED).publish(String(data=ARM))
    answer = world.call(Trigger, "identifier/identify")
    world.until(lambda: node._robot is not None)
    answer = world.call(Trigger, "identifier/identify")
    assert not answer.success
    assert answer.message == "no joint states were received; joint_states has 0 publishers"
    publisher = world.probe.create_publisher(JointState, "joint_states", BEST_EFFORT)
    half = len(messages) // 2
    play(world, publisher, messages[:half], 1000)
    world.until(received(node, half // 2))
    assert world.call(Trigger, "identifier/identify").success
    busy = world.call(Trigger, "identifier/identify")
    play(world, publisher, messages[half:], 1000)  # while the first is being identified
    first = ears.report()
    assert busy.success or "already running" in busy.message
    rest = node._recording.received
    assert world.call(Trigger, "identifier/identify").success
    second = ears.report(2)
    assert second.rows_used > first.rows_used
    assert len(second.data_sources) == 1
    assert rest > half
    assert world.call(Trigger, "identifier/reset").message.startswith(f"{rest} messages discarded")
    assert "no joint states were received" in world.call(Trigger, "identifier/identify").message


def test_recordings_are_identified_at_once_and_an_earlier_set_is_there_before(world, from_file, tmp_path):
    folder, expected = from_file
    ears = Ears(world)
    write_parameters(tmp_path / "earlier.yaml", expected)
    world.add(
        Identifier,
        "-p",
        f"urdf:={folder / 'arm.urdf'}",
        "-p",
        f"data:=['{folder / 'bag'}']",
        "-p",
        f"parameters:={tmp_path / 'earlier.yaml'}",
        "-p",
        f"folder:={tmp_path / 'out'}",
    )
    world.until(lambda: len(ears.parameters) == 1, what="the earlier set")
    ears.report()
    world.until(lambda: len(ears.parameters) == 2, what="the new set")
    first, second = (ParameterSet.from_message(message) for message in ears.parameters)
    assert first.estimate.values.tobytes() == second.estimate.values.tobytes() == expected.estimate.values.tobytes()
    late = world.heard(ParameterSetMsg, "identified_parameters", LATCHED)
    world.until(lambda: len(late) == 1, what="the latched set for who comes late")


def test_it_identifies_by_itself_when_an_excitation_that_it_saw_is_done(world, messages, from_file, tmp_path):
    """From the joint states of the excitation alone: a robot that its brakes hold shows no efforts that fit its motion."""
    folder, expected = from_file
    ears = Ears(world)
    status = world.probe.create_publisher(ExcitationStatus, "excitation_status", LATCHED)
    status.publish(ExcitationStatus(state=ExcitationStatus.DONE))  # of an earlier excitation
    node = world.add(Identifier, "-p", f"urdf:={folder / 'arm.urdf'}", "-p", f"folder:={tmp_path}")
    publisher = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    play(world, publisher, messages[:200], 2000)
    world.until(received(node, 200))
    assert ears.reports == []
    status.publish(ExcitationStatus(state=ExcitationStatus.RUNNING))
    world.until(lambda: "to end" in node._waiting())
    play(world, publisher, messages, 2000)
    world.until(received(node, 200 + len(messages)))
    status.publish(ExcitationStatus(state=ExcitationStatus.DONE))
    assert ears.report().held_out_nrmse.tobytes() == expected.judgment.held_out_nrmse.tobytes()


def test_a_dry_run_does_not_keep_it_from_identifying_and_is_named(world, messages, from_file, tmp_path):
    folder, _ = from_file
    ears, log = Ears(world), world.heard(Log, "/rosout", LATCHED)
    other = world.add(lambda **options: Node("dry", **options))
    dry = other.create_publisher(ExcitationStatus, "excitation_status", LATCHED)
    node = world.add(Identifier, "-p", f"urdf:={folder / 'arm.urdf'}", "-p", f"folder:={tmp_path}")
    assert "no node publishes its status" in node._watch.waiting()
    dry.publish(ExcitationStatus(node="/dry", dry_run=True))
    words = "waits for /dry is a dry run, which never moves the robot"
    world.until(lambda: any(words in message.msg for message in log), what="a line in the log")
    assert node.diagnosis().message == words
    publisher = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    status = world.probe.create_publisher(ExcitationStatus, "excitation_status", LATCHED)
    status.publish(ExcitationStatus(node="/client", state=ExcitationStatus.RUNNING))
    world.until(lambda: "the excitation of /client to end (running)" in node._waiting())
    heard = world.heard(ExcitationStatus, "excitation_status", LATCHED)
    dry.publish(ExcitationStatus(node="/dry", dry_run=True))  # as every 0.2 s
    play(world, publisher, messages, 2000)
    world.until(lambda: received(node, len(messages))() and any(other.dry_run for other in heard))
    status.publish(ExcitationStatus(node="/client", state=ExcitationStatus.DONE, complete=True))
    assert ears.report().verdict != "failed"


def test_a_fault_on_the_way_back_does_not_keep_it_from_identifying_what_came_before(
    world, messages, from_file, tmp_path
):
    folder, expected = from_file
    ears = Ears(world)
    node = world.add(Identifier, "-p", f"urdf:={folder / 'arm.urdf'}", "-p", f"folder:={tmp_path}")
    status = world.probe.create_publisher(ExcitationStatus, "excitation_status", LATCHED)
    publisher = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    running = ExcitationStatus(node="/client", state=ExcitationStatus.RUNNING)
    status.publish(running)
    world.until(lambda: "to end" in node._waiting())
    play(world, publisher, messages, 2000)
    world.until(received(node, len(messages)))
    running.complete = True
    status.publish(running)
    world.until(lambda: not node._recording.open, what="the end of the bag")
    play(world, publisher, messages[:100], 2000)
    world.until(received(node, len(messages) + 100))
    status.publish(ExcitationStatus(node="/client", state=ExcitationStatus.FAULT, reason="it hit", complete=True))
    report = ears.report()
    assert report.held_out_nrmse.tobytes() == expected.judgment.held_out_nrmse.tobytes()
    assert "the next excitation of /client" in node.diagnosis().values["waits for"]


def test_an_excitation_that_ends_early_is_not_identified_and_the_node_says_what_to_do(world, from_file, tmp_path):
    folder, _ = from_file
    log = world.heard(Log, "/rosout", LATCHED)
    node = world.add(Identifier, "-p", f"urdf:={folder / 'arm.urdf'}", "-p", f"folder:={tmp_path}")
    status = world.probe.create_publisher(ExcitationStatus, "excitation_status", LATCHED)
    status.publish(ExcitationStatus(node="/client", state=ExcitationStatus.RUNNING))
    world.until(lambda: "the excitation of /client to end (running)" in node.diagnosis().message)
    status.publish(ExcitationStatus(node="/client", state=ExcitationStatus.FAULT, reason="effort of joint x"))
    world.until(lambda: any("nothing is identified" in message.msg for message in log), what="a warning")
    assert "the last one ended early: effort of joint x; call ~/identify" in node.diagnosis().message
    status.publish(ExcitationStatus(node="/client", state=ExcitationStatus.RUNNING))
    world.until(lambda: "to end (running)" in node.diagnosis().message)
    world.probe.destroy_publisher(status)
    world.until(lambda: "it disappeared before its excitation was over; call" in node.diagnosis().message)


def test_a_folder_that_is_taken_away_is_reported_and_the_node_lives_on(world, messages, from_file, tmp_path):
    folder, _ = from_file
    heard = world.heard(Log, "/rosout", LATCHED)
    place = tmp_path / "place"
    world.add(Identifier, "-p", f"urdf:={folder / 'arm.urdf'}", "-p", f"folder:={place}")
    place.rmdir()
    place.write_text("in the way")
    publisher = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    play(world, publisher, messages[:50], 500)
    world.until(lambda: any("joint states are not recorded" in message.msg for message in heard), what="an error")
    assert "no joint states were received" in world.call(Trigger, "identifier/identify").message


def test_it_may_publish_only_and_hear_nothing(world, messages, from_file, tmp_path):
    folder, expected = from_file
    ears = Ears(world)
    write_parameters(tmp_path / "earlier.yaml", expected)
    given = {
        "urdf": folder / "arm.urdf",
        "parameters": tmp_path / "earlier.yaml",
        "folder": tmp_path,
        "listen": "false",
    }
    world.add(Identifier, *(word for name, value in given.items() for word in ("-p", f"{name}:={value}")))
    world.until(lambda: len(ears.parameters) == 1, what="the earlier set")
    assert world.probe.count_subscribers("joint_states") == 0
    assert "no joint states were received" in world.call(Trigger, "identifier/identify").message


def test_what_cannot_be_identified_is_reported_and_not_published(world, messages, from_file, tmp_path):
    folder, _ = from_file
    ears = Ears(world)
    node = world.add(Identifier, "-p", f"urdf:={folder / 'arm.urdf'}", "-p", f"folder:={tmp_path}")
    publisher = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    play(world, publisher, messages[:30], 1000)
    world.until(received(node, 30))
    assert world.call(Trigger, "identifier/identify").success
    report = ears.report()
    assert report.verdict == "failed"
    assert "stream_1" in report.reasons[0]
    assert not list(tmp_path.glob("parameters.yaml"))
    assert ears.parameters == []


def test_a_bad_model_is_not_published(world, samples, from_file, tmp_path):
    """Efforts that have nothing to do with the motion in the last two fifths."""
    folder, _ = from_file
    names, chunk = samples
    rng = np.random.default_rng(0)
    tau = np.where(np.arange(len(chunk))[:, None] < 0.6 * len(chunk), chunk.tau, rng.normal(0, 40, chunk.tau.shape))
    stamps = np.round(chunk.t * 1e9).astype(np.int64)
    write_joint_state_bag(tmp_path / "bag", "/joint_states", names, StampedSamples(stamps, chunk.q, chunk.dq, tau))
    ears = Ears(world)
    node = world.add(
        Identifier,
        "-p",
        f"urdf:={folder / 'arm.urdf'}",
        "-p",
        f"data:=['{tmp_path / 'bag'}']",
        "-p",
        f"folder:={tmp_path / 'out'}",
    )
    report = ears.report()
    assert report.verdict == "bad"
    world.until(lambda: node.end == 1, what="the exit code of the command line")
    assert report.reasons
    world.until(lambda: True)
    assert ears.parameters == []
    assert read_parameters(tmp_path / "out" / "parameters.yaml").judgment.verdict == "bad"
    with pytest.raises(InputError, match="the verdict is bad"):
        world.add(Identifier, "-p", f"parameters:={tmp_path / 'out' / 'parameters.yaml'}", "-p", f"folder:={tmp_path}")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (["config:=none.yaml"], UsageError, "none.yaml: cannot read the configuration"),
        (["data:=[none.mcap]"], InputError, "none.mcap: no such file"),
        (["parameters:=none.yaml"], InputError, "none.yaml"),
        (["folder:=/proc/none"], InputError, "cannot write there"),
        (["foldr:=a"], UsageError, "did you mean 'folder'"),
    ],
)
def test_wrong_parameters_are_refused_at_the_start(arguments, error, words, world, tmp_path):
    given = [word for argument in [f"folder:={tmp_path}", *arguments] for word in ("-p", argument)]
    with pytest.raises(error, match=words):
        world.add(Identifier, *given)


def test_a_folder_that_holds_the_results_of_an_earlier_run_is_refused(world, tmp_path):
    (tmp_path / "report.json").write_text("earlier")
    with pytest.raises(UsageError, match=r"parameter folder: .* holds report\.json already; give another folder"):
        world.add(Identifier, "-p", f"folder:={tmp_path}")
    assert (tmp_path / "report.json").read_text() == "earlier"
