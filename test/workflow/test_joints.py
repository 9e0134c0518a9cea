# SPDX-License-Identifier: Apache-2.0
"""Joints that are fixed for an identification are compared with what the recordings contain of them."""

from dataclasses import replace

import pytest
from support.simulated import LIFT, Simulated, changed

import robot_dyn_id as rdi
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.workflow.examples import load_example
from robot_dyn_id.workflow.joints import report_fixed

ROBOT = Simulated(LIFT)


@pytest.fixture(scope="module")
def recording():
    return ROBOT.record(duration=5.0)


def fixed(position):
    return RobotModel.from_urdf(LIFT, joints=["turn"], held={"lift": position})


def test_a_fixed_joint_that_moves_is_named_with_its_range(recording):
    (finding,) = report_fixed(fixed(0.0), [recording])
    q = recording.samples.q[:, 0]
    assert (finding.code, finding.joints) == ("fixed_joint_differs", ("lift",))
    assert f"from {q.min():.3g} to {q.max():.3g} m" in finding.message
    assert "identify lift too" in finding.action
    refused = UnsafeDataError("refused", "record again").with_causes([finding])
    assert refused.message == f"refused; possible cause: {finding}"
    assert refused.findings == (finding,)


def test_a_fixed_joint_that_rests_elsewhere_is_named_with_the_entry_to_copy(recording):
    resting = changed(recording, q=lambda q: 0.0 * q + [0.3, 0.0])
    (finding,) = report_fixed(fixed(0.1), [resting])
    assert "`joints: {lift: {held: 0.3}}`" in finding.action
    assert report_fixed(fixed(0.302), [resting]) == ()


def test_joints_that_are_not_recorded_are_not_compared(recording):
    assert report_fixed(ROBOT.model, [recording]) == ()
    alone = replace(recording, joint_names=("turn",), samples=recording.samples.joints([1]))
    assert report_fixed(fixed(0.0), [alone]) == ()


@pytest.mark.slow
def test_a_refusal_names_joints_that_are_not_recorded_although_they_moved():
    example = load_example("franka")
    names = example.recording.joint_names
    kept = [name for name in names if name != names[3]]
    samples = Chunk.join(list(example.recording.chunks(kept)))
    with pytest.raises(UnsafeDataError, match=f"possible cause: assumed fixed at 0: {names[3]}") as refused:
        rdi.identify(example.robot, ArrayRecording("six joints", tuple(kept), samples))
    assert refused.value.findings[-1].code == "joints_assumed_fixed"
