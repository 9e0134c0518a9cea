# SPDX-License-Identifier: Apache-2.0
"""Joints that share one channel."""

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.identification.diagnosis.equal_channels import FEWEST_CHANGES, EqualityObserver
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings

JOINTS = ("base", "elbow", "wrist")
T = np.linspace(0.0, 4.0, 401)
RNG = np.random.default_rng(1)
Q = np.sin(T[:, None] * [1.0, 1.7, 2.3])
TAU = RNG.normal(size=(401, 3))


def observed(q=Q, tau=TAU, parts=1):
    observer = EqualityObserver("motion", JOINTS, {})
    for rows in np.array_split(np.arange(len(T)), parts):
        observer.observe(Chunk(T[rows], q[rows], None, None if tau is None else tau[rows]))
    return observer.conclude()


@pytest.mark.parametrize("parts", [1, 7])
def test_a_channel_that_stands_in_two_places_is_named_with_both_joints(parts):
    (finding,) = observed(tau=TAU[:, [0, 1, 0]], parts=parts)
    assert (finding.code, finding.severity, finding.joints) == ("channels_equal", "error", ("base", "wrist"))
    assert "efforts of base and wrist" in finding.message and "positions" not in finding.message
    (finding,) = observed(q=Q[:, [0, 1, 1]], parts=parts)
    assert finding.joints == ("elbow", "wrist") and "positions of elbow and wrist" in finding.message


def test_one_other_value_is_enough_to_differ():
    q = Q[:, [0, 1, 1]]
    q[-1, 2] += 1e-12
    assert observed(q=q, parts=3) == () == observed()


def test_values_that_do_not_change_or_are_missing_are_not_shared():
    assert observed(tau=0.0 * TAU) == () == observed(tau=np.full_like(TAU, np.nan)) == observed(tau=None)
    steps = np.where(T < 2.0, 0.02, 0.04)[:, None] * np.ones(3)  # a count of two coarse sensors
    assert observed(tau=steps) == ()
    missing = np.where(np.arange(len(T))[:, None] % 3, TAU[:, [0, 0, 2]], np.nan)
    assert [one.joints for one in observed(tau=missing)] == [("base", "elbow")]


@pytest.mark.parametrize("changes", [FEWEST_CHANGES - 1, FEWEST_CHANGES])
def test_as_many_common_changes_as_coarse_sensors_do_not_make_by_chance(changes):
    steps = (np.searchsorted(np.arange(1, changes + 1) * 20, np.arange(len(T)), side="right") % 2)[:, None]
    assert bool(observed(tau=steps * np.ones(3))) == (changes == FEWEST_CHANGES)


def test_such_recordings_are_refused_unless_the_joints_do_move_alike():
    robot = Simulated()
    recording = robot.record(duration=20.0, noise=0.05)
    copied = changed(recording, tau=lambda tau: tau[:, [0, 1, 1]])
    with pytest.raises(UnsafeDataError, match="efforts of elbow and wrist"):
        identify([copied], [], robot.model, Settings(), "test")
    overruled = identify([copied], [], robot.model, Settings(ignore=("channels_equal",)), "test")
    assert "channels_equal" in {one.code for one in overruled.evaluation.findings}
