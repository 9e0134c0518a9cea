# SPDX-License-Identifier: Apache-2.0
"""Times that the user leaves out: counted from the first stamp, by recording, and wrong ones are refused."""

import numpy as np
import pytest
from support.simulated import changed, sines

from robot_dyn_id.errors import UsageError
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.signals.stillness import report_rest_left_out
from robot_dyn_id.workflow.identification import exclude_times

MOTION = changed(sines(np.arange(0.0, 20.0, 0.01)), t=lambda t: t + 100.0)
JOINTS = MOTION.joint_names


def named(source):
    return MOTION.__class__(source, JOINTS, MOTION.samples)


def kept(recording):
    return np.concatenate([chunk.t for chunk in recording.chunks(JOINTS)]) - 100.0


def test_times_are_left_out_of_the_only_recording_of_each_command():
    (train,), (held_out,) = exclude_times([MOTION], [named("b")], JOINTS, [(5.0, 6.0), (0.0, 1.0)])
    t = kept(train)
    assert not ((t > 5.001) & (t < 5.999)).any() and t[0] == pytest.approx(1.01)
    assert len(kept(held_out)) == len(MOTION.samples)
    assert exclude_times([MOTION], [], JOINTS, ()) == ([MOTION], [])


def test_they_stay_left_out_of_all_parts_with_the_same_origin():
    (whole,), _ = exclude_times([MOTION], [], JOINTS, [(0.0, 1.0), (12.0, 13.0)])
    for train_range in (None, (0.5, 10.0)):
        parts = [one for group in split([whole], JOINTS, (), train_range) for one in group]
        times = np.sort(np.concatenate([kept(part) for part in parts]))
        np.testing.assert_allclose(times, kept(whole))
    findings = report_rest_left_out(parts)
    assert [one.code for one in findings] == ["times_excluded"]
    assert "from 0.0 to 1.0 s, from 12.0 to 13.0 s" in findings[0].message


def test_several_recordings_are_named():
    spans = {"a.npz": [(2.0, 3.0)], "/data/c.npz": [(4.0, 5.0)]}
    first, second, third = (named(f"/data/{name}.npz") for name in "abc")
    (left, same), (other,) = exclude_times([first, second], [third], JOINTS, spans)
    assert [len(MOTION.samples) - len(kept(one)) for one in (left, same, other)] == [101, 0, 101]


@pytest.mark.parametrize(
    ("exclude", "words"),
    [
        ([(6.0, 5.0)], "exclude 6 to 5 s: the first must be less"),
        ([(5.0, np.nan)], "the first must be less"),
        ([(30.0, 31.0)], r"MOTION lasts from 0 to 20.0 s"),
        ([(-2.0, -1.0)], "counted from its first sample"),
        ([(0.0, 10.0), (9.0, 30.0)], "nothing of MOTION is left"),
        ({"x": [(1.0, 2.0)]}, r"x is not one of the recordings \(MOTION\)"),
    ],
)
def test_wrong_times_are_refused(exclude, words):
    with pytest.raises(UsageError, match=words):
        exclude_times([named("MOTION")], [], JOINTS, exclude)


def test_names_that_do_not_decide_are_refused():
    pair = [named("/a/x.npz"), named("/b/x.npz")]
    with pytest.raises(UsageError, match=r"there are 2 recordings; name one: `exclude: {x.npz: \[\[A, B\]\]}`"):
        exclude_times(pair, [], JOINTS, [(1.0, 2.0)])
    with pytest.raises(UsageError, match=r"x\.npz is the name of several: give the path"):
        exclude_times(pair, [], JOINTS, {"x.npz": [(1.0, 2.0)]})
