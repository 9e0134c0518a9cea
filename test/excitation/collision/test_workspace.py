# SPDX-License-Identifier: Apache-2.0
"""The room of a frame: values against Pinocchio, slopes against finite differences, and messages outside."""

import numpy as np
import pinocchio
import pytest
from support.robots import panda_arm, robot

from robot_dyn_id.errors import ModelError, MotionError, UsageError
from robot_dyn_id.excitation.collision.workspace import Workspace


def test_margins_are_those_of_the_frame():
    model = panda_arm()
    room = Workspace(model, "panda_hand", [-0.5, -0.4, 0.1], [0.6, np.inf, 0.9])
    q = np.random.default_rng(0).uniform(-1, 1, (7, 5))
    full = pinocchio.buildModelFromXML(model.urdf)
    data = full.createData()
    for k, column in enumerate(q.T):
        pinocchio.framesForwardKinematics(full, data, np.concatenate([column, [0, 0]]))
        at = data.oMf[full.getFrameId("panda_hand")].translation
        assert room.margins(q)[:, k] == pytest.approx(np.concatenate([at - room.lower, room.upper - at]))


@pytest.mark.parametrize(("model", "link"), [(panda_arm(), "panda_hand"), (robot("tiago"), "hand_grasping_frame")])
def test_slopes_are_those_of_finite_differences(model, link):
    room = Workspace(model, link, [-1, -1, -1], [1, 1, 1])
    rng = np.random.default_rng(1)
    q, weights, step = rng.uniform(-1, 1, (len(model.joint_names), 4)), rng.normal(size=(6, 4)), 1e-6
    slope = room.pull_back(q, weights)
    for joint in range(len(q)):
        shift = np.zeros_like(q)
        shift[joint] = step
        numeric = (weights * (room.margins(q + shift) - room.margins(q - shift))).sum(axis=0) / (2 * step)
        assert slope[joint] == pytest.approx(numeric, abs=1e-8)


def test_a_motion_that_leaves_the_box_is_reported():
    model = robot("planar3r")
    t = np.linspace(0, 2, 2001)
    q = np.zeros((3, len(t)))
    q[0] = (
        np.pi / 2 * np.sin(np.pi * t / 2) ** 2
    )  # a quarter turn about -x and back: (0.12, 0, 0.36) to (0.12, 0.36, 0)
    Workspace(model, "link2", [-1, -1, -1], [1, 1, 1]).check(t, q)
    with pytest.raises(MotionError, match=r"link2 is 0.1600 m outside the \+y side of its workspace at 1.000 s"):
        Workspace(model, "link2", [-1, -1, -1], [1, 0.2, 1]).check(t, q)


def test_what_is_wrong_is_named():
    model = panda_arm()
    with pytest.raises(ModelError, match="no link is called hand; its links are panda_link0"):
        Workspace(model, "hand", [0, 0, 0], [1, 1, 1])
    with pytest.raises(UsageError, match="panda_link0: this link does not move"):
        Workspace(model, "panda_link0", [0, 0, 0], [1, 1, 1])
    with pytest.raises(UsageError, match=r"workspace of panda_hand: its corners .* with lower < upper"):
        Workspace(model, "panda_hand", [0, 0, 2], [1, 1, 1])
