# SPDX-License-Identifier: Apache-2.0
"""The calibrating node with a recorded arm, over real DDS: motion, calibration, publication; and what goes wrong."""

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import QoSProfile, ReliabilityPolicy
from robot_dyn_id.msg import ExcitationStatus
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from support.low_cost_arm import LowCostArm
from support.ros_world import ros_arguments
from support.simulated import ARM

from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.gravity import parse_gravity, read_gravity
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.gravity_calibrator import GravityCalibrator
from robot_dyn_id.nodes.gravity_compensator import CALIBRATION
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE

MODEL = RobotModel.from_urdf(ARM)
TRUTH = LowCostArm(MODEL, seed=4)
NODE = "gravity_calibrator"
DEEP = QoSProfile(depth=5000, reliability=ReliabilityPolicy.RELIABLE)
BATCH = 200


class Arm:
    """An arm whose joint states were recorded, and the status of the motion."""

    def __init__(self, world, folder, **parameters):
        self.world, self.folder = world, folder / "out"
        (folder / "arm.urdf").write_text(ARM)
        self.states = world.probe.create_publisher(JointState, "joint_states", DEEP)
        self.status = world.probe.create_publisher(ExcitationStatus, "excitation_status", LATCHED)
        self.calibrations = world.heard(String, CALIBRATION, LATCHED)
        self.diagnostics = world.heard(DiagnosticArray, "diagnostics", RELIABLE)
        given = {"urdf": folder / "arm.urdf", "folder": self.folder, **parameters}
        self.node = world.add(GravityCalibrator, *ros_arguments(**given))
        world.until(lambda: self.states.get_subscription_count() and self.status.get_subscription_count(), what="node")

    def report(self, state, **fields):
        self.status.publish(ExcitationStatus(node="/mover", state=state, joint_names=MODEL.joint_names, **fields))
        self.world.wait(0.2)

    def play(self, recording, names=MODEL.joint_names):
        (chunk,) = recording.chunks(MODEL.joint_names)
        count = self.node._recording.received
        for number, row in enumerate(zip(chunk.t, chunk.q, chunk.tau, strict=True)):
            t, q, tau = row
            message = JointState(name=list(names), position=q.tolist(), effort=tau.tolist())
            message.header.stamp.sec, message.header.stamp.nanosec = int(t), int(t % 1 * 1e9)
            self.states.publish(message)
            if number % BATCH == 0:
                self.world.until(lambda: self.node._recording.received > count, what="joint states")
                self.world.wait(0.02)
        self.world.until(lambda: self.node._recording.received >= count + len(chunk.t), what="all joint states")

    def move(self, recording, names=MODEL.joint_names):
        self.report(ExcitationStatus.RUNNING)
        self.play(recording, names)
        self.report(ExcitationStatus.RUNNING, complete=True)
        self.report(ExcitationStatus.DONE, complete=True)

    def says(self, words, level=None):
        statuses = [s for m in self.diagnostics for s in m.status if s.name == f"/{NODE}: condition"]
        return bool(statuses) and words in statuses[-1].message and level in (None, statuses[-1].level)


def test_a_motion_that_is_complete_is_calibrated_written_and_published(world, tmp_path):
    arm = Arm(world, tmp_path)
    arm.move(TRUTH.record())
    world.until(lambda: arm.calibrations, what="calibration")
    world.until(lambda: arm.says("gravity calibrated from 40 holds"), what="diagnosis")
    stored = parse_gravity(arm.calibrations[-1].data, CALIBRATION)
    assert stored.urdf_sha256 == read_gravity(arm.folder / "gravity.yaml").urdf_sha256
    q = np.random.default_rng(0).uniform(MODEL.limits.lower, MODEL.limits.upper, (50, 3)).T
    true, found = TRUTH.effort(q), stored.effort(stored.model(ARM), q)
    assert np.sqrt(((found - true) ** 2).mean()) < 0.05 * np.sqrt((true**2).mean())
    arm.move(TRUTH.record())  # again: nothing is replaced
    world.until(lambda: (arm.folder / "calibration_2" / "gravity.yaml").exists(), what="second calibration")


@pytest.mark.parametrize(
    ("recording", "words"),
    [
        (lambda: TRUTH.record(TRUTH.path(sides=(1.0,))), "all poses were reached from one side"),
        (lambda: TRUTH.record(TRUTH.path(dwell=0.0)), "no pose is held"),
        (lambda: TRUTH.record(TRUTH.path(poses=2)), "at least"),
    ],
    ids=["one side", "no rest", "few poses"],
)
def test_what_cannot_be_calibrated_is_named_and_the_recording_stays(world, tmp_path, recording, words):
    arm = Arm(world, tmp_path)
    arm.move(recording())
    world.until(lambda: arm.says(words, DiagnosticStatus.ERROR), what=words)
    assert arm.says(f"the recording stays in {arm.folder}")
    assert not arm.calibrations and list(arm.folder.glob("stream_*"))


def test_a_motion_that_was_stopped_is_calibrated_on_request_alone(world, tmp_path):
    arm = Arm(world, tmp_path)
    arm.report(ExcitationStatus.RUNNING)
    arm.play(TRUTH.record())
    arm.report(ExcitationStatus.FAULT, reason="joint states are late")
    world.until(lambda: arm.says("nothing is calibrated", DiagnosticStatus.ERROR), what="stop")
    assert arm.says("joint states are late") and not arm.calibrations
    answer = world.call(Trigger, f"{NODE}/calibrate")
    assert answer.success and str(arm.folder / "gravity.yaml") in answer.message
    world.until(lambda: arm.calibrations, what="calibration")


def test_joint_states_of_other_joints_are_refused_on_request(world, tmp_path):
    arm = Arm(world, tmp_path)
    answer = world.call(Trigger, f"{NODE}/calibrate")
    assert not answer.success and "no joint states were received" in answer.message
    arm.play(TRUTH.record(TRUTH.path(poses=1)), names=("a", "b", "c"))
    answer = world.call(Trigger, f"{NODE}/calibrate")
    assert not answer.success and "none of the robot's joints" in answer.message


def test_an_earlier_calibration_is_published_and_never_replaced(world, tmp_path):
    arm = Arm(world, tmp_path, trust_urdf_mass=True)
    arm.play(TRUTH.record())
    assert world.call(Trigger, f"{NODE}/calibrate").success
    world.remove(arm.node)
    (tmp_path / "out" / "calibrated.urdf").stat()
    with pytest.raises(UsageError, match=r"gravity\.yaml, calibrated\.urdf already"):
        Arm(world, tmp_path)
    again = tmp_path / "again"
    again.mkdir()
    later = Arm(world, again, calibration=tmp_path / "out" / "gravity.yaml")
    world.until(lambda: later.calibrations, what="the earlier calibration")
