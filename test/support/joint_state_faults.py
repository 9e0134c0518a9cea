# SPDX-License-Identifier: Apache-2.0
"""Faulty joint states: faults of a robot in motion, and messages that no robot sends."""

import math

from sensor_msgs.msg import JointState

from support.excitation_cell import NAMES, START, VELOCITY


def silent(cell):
    cell.follower.speak = False


def fast(message):
    message.velocity[1] = -1.3 * VELOCITY[1]


def blocked(message):
    message.effort[5] = 18.5


def disturbed(change):
    def fault(cell):
        def disturb(message):
            change(message)
            return message

        cell.follower.disturb = disturb

    return fault


def not_a_number(message):
    message.position[2] = math.nan


def far(message):
    message.position[4] += 0.6


def frozen(message):
    message.header.stamp.sec, message.header.stamp.nanosec = 5, 0


FAULTS = {
    "silence": (silent, "no joint states for "),
    "frozen stamps": (disturbed(frozen), "stamps of the joint states do not advance"),
    "NaN": (disturbed(not_a_number), "joint joint3: its measured position is nan"),
    "tracking error x 3": (disturbed(far), "rad away from its command, more than 0.2 rad"),
    "velocity": (disturbed(fast), "joint joint2: its measured velocity is -2.6 rad/s, more than 2.2 rad/s"),
    "effort": (disturbed(blocked), "joint joint6: its measured effort is 18.5 N m, more than 18 N m"),
}


def hostile_joint_states():
    """Joint states as no robot sends them."""
    zeros = [0.0] * 7
    yield JointState()
    yield JointState(name=NAMES)
    yield JointState(name=NAMES * 3000, position=zeros * 3000)
    yield JointState(name=["joint1"] * 7, position=zeros)
    yield JointState(name=["", "\0", "joint1\n", "ü" * 1000], position=zeros[:4])
    for value in (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324):
        values = [value] * 7
        yield JointState(name=NAMES, position=values)
        yield JointState(name=NAMES, position=START.tolist(), velocity=values, effort=values)
    yield JointState(name=NAMES, position=START.tolist(), velocity=[0.0], effort=[0.0] * 9)
    yield JointState(name=NAMES, position=[0.0] * 100_000)
    for sec, nanosec in ((-(2**31), 0), (2**31 - 1, 2**32 - 1), (0, 1), (-1, 5)):
        message = JointState(name=NAMES, position=START.tolist())
        message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
        yield message
