# SPDX-License-Identifier: Apache-2.0
"""The table of guards of joint states is what the guards do."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from support.simulated import ARM

from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation import MotionLimits
from robot_dyn_id.excitation.execution.feedback import Feedback, TimePoint
from robot_dyn_id.excitation.execution.guard import GuardThresholds
from robot_dyn_id.excitation.execution.state_guard import StateGuard
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.messages.joint_state import JointOrder, receive

MODEL = RobotModel.from_urdf(ARM)
LIMITS = MotionLimits.from_model(MODEL, (5.0,), 1.0, 0.05, (np.inf,))
TIMEOUT, TRACKING, STEP, CLOCK = 0.05, 0.2, 1e-3, 1.7e9
PAGE = Path(__file__).parents[2] / "docs" / "security.md"


def table():
    """The rows of the page: what each of the two guards does."""
    text = PAGE.read_text().partition("### Guards of joint states")[2].partition("- *Left out*")[0]
    rows = re.findall(r"^\| (.*) \| (.*) \| (.*) \|$", text, re.MULTILINE)[2:]
    return {name: (excitation, efforts) for name, excitation, efforts in rows}


class Joints:
    """A moving arm, one joint state after the other; `now` is the time of both clocks."""

    def __init__(self):
        self.now = 0.0

    @property
    def true(self):
        return np.full(3, 0.3 + 0.3 * np.sin(self.now)), np.full(3, 0.3 * np.cos(self.now))

    def state(self, offset=0.0, **fields):
        q, dq = self.true
        message = JointState(name=list(MODEL.joint_names), position=q.tolist(), velocity=dq.tolist())
        for name, value in fields.items():
            setattr(message, name, value)
        stamp = CLOCK + self.now + offset
        message.header.stamp.sec, message.header.stamp.nanosec = int(stamp), int(stamp % 1 * 1e9)
        return message


def repeated(joints):
    joints.first = getattr(joints, "first", None) or joints.state()
    message = joints.state()
    message.position, message.velocity = joints.first.position, joints.first.velocity
    return message


def another_robot(joints):
    joints.count = getattr(joints, "count", 0) + 1
    return joints.state(position=(joints.true[0] + 1.0).tolist()) if joints.count % 2 else joints.state()


def same_stamp(joints):
    message, joints.header = joints.state(), getattr(joints, "header", joints.state().header)
    message.header = joints.header
    return message


STATES = {
    "no message for `latency`": lambda joints: None,
    "stamp older than `latency`": lambda joints: joints.state(-2.0 * TIMEOUT),
    "same stamp as before": same_stamp,
    "stamp before the previous one": lambda joints: joints.state(-0.02 - 2.0 * (joints.now - 0.05)),
    "joint missing": lambda joints: joints.state(name=["shoulder", "elbow", "hand"]),
    "joint named twice": lambda joints: joints.state(
        name=["shoulder", "elbow", "wrist", "elbow"], position=[0.3] * 4, velocity=[0.3] * 4
    ),
    "lengths that differ": lambda joints: joints.state(position=[0.3, 0.3]),
    "position not finite": lambda joints: joints.state(position=[0.3, math.nan, 0.3]),
    "position that jumps": lambda joints: joints.state(position=(joints.true[0] + 1.0).tolist()),
    "two robots on one topic": another_robot,
    "velocity above twice the limit of the URDF": lambda joints: joints.state(velocity=[0.0, 1e3, 0.0]),
    "position that repeats while the velocity repeats a motion": repeated,
    "joints in another order, or among others": lambda joints: joints.state(
        name=["gripper", *reversed(MODEL.joint_names)],
        position=[0.9, *reversed(joints.true[0].tolist())],
        velocity=[0.0, *reversed(joints.true[1].tolist())],
    ),
    "values that repeat at rest": lambda joints: joints.state(position=[0.3] * 3, velocity=[0.0] * 3),
}


def test_the_table_has_these_rows():
    assert list(table()) == list(STATES)


def sequence(name):
    """Times and messages: first good ones, then those of a row of the table."""
    joints = Joints()
    rest = name == "values that repeat at rest"
    for k in range(1100):
        joints.now = (k + 1) * STEP
        good = joints.state(position=[0.3] * 3, velocity=[0.0] * 3) if rest else joints.state()
        yield joints.now, (good if k < 50 else STATES[name](joints)), joints.true[0] * (not rest) + 0.3 * rest


@pytest.mark.parametrize("name", STATES)
def test_efforts_end_as_the_table_states(name):
    guard, order = StateGuard(MODEL, TIMEOUT), JointOrder(MODEL.joint_names)
    guard.expect(0.0)
    silent = False
    for now, message, _ in sequence(name):
        if message is not None:
            try:
                receive(guard, order, message, now, CLOCK + now, ("position", "velocity"))
            except InputError as error:
                assert guard.refusal == str(error)
        silent = silent or guard.silent(now)
    outcome = "refused" if guard.fault else ("left out" if guard.refusal else "silent") if silent else "used"
    old = name == "stamp older than `latency`"  # which is a fault and silence
    assert table()[name][1].startswith("left out" if old and silent else outcome)


@pytest.mark.parametrize("name", STATES)
def test_the_excitation_does_what_the_table_states(name):
    limits = GuardThresholds.from_limits(
        LIMITS, 0.1, tracking=np.full(3, TRACKING), effort=np.full(3, np.inf), patience=0.0, timeout=TIMEOUT
    )
    feedback, brakes, silent = Feedback(LIMITS, limits), False, False
    for now, message, commanded in sequence(name):
        time = TimePoint(now, now)
        if message is not None:
            stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
            feedback.receive(time, stamp, message.name, message.position, message.velocity)
        silent = silent or "stamps" in feedback.silence(now)
        late = message is None and bool(feedback.silence(now))
        error = np.abs(feedback.error(commanded)).max() > TRACKING and not silent
        brakes = brakes or late or bool(feedback.broken or feedback.exceeded()) or bool(error)
    outcome = "brakes" if brakes else "left out" if silent else "used"
    assert table()[name][0].startswith(outcome)
