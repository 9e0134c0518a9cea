# SPDX-License-Identifier: Apache-2.0
"""Sources of efforts are reported, and so are gains without effect."""

import numpy as np
import pytest

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.errors import InputError
from robot_dyn_id.signals.cleaning import Drive, find_effort_sources, make_efforts

T = np.arange(4.0)
Q = np.arange(8.0).reshape(4, 2)
JOINTS = ("a", "b")

CASES = {
    "torques": ({"tau": Q}, False, {}, ("effort", "effort"), []),
    "a sign": ({"tau": Q}, False, {"b": Drive(None, -1.0)}, ("effort", "effort x -1"), []),
    "currents": ({"current": Q}, False, {"a": Drive(2.0), "b": Drive(3.0, -1.0)}, ("current x 2", "current x -3"), []),
    "efforts that are currents": (
        {"tau": Q},
        False,
        {"a": Drive(2.0), "b": Drive(3.0)},
        ("effort x 2", "effort x 3"),
        [],
    ),
    "a gain for torques": (
        {"tau": Q},
        True,
        {"a": Drive(2.0)},
        ("effort", "effort"),
        [("gain_unused", ("a",))],
    ),
    "both channels": (
        {"tau": Q, "current": Q + 1},
        True,
        {"a": Drive(2.0)},
        ("current x 2", "effort"),
        [("effort_sources_mixed", ("a", "b"))],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_efforts_are_made_of(case):
    channels, is_torque, drives, words, expected = CASES[case]
    recording = ArrayRecording("r", JOINTS, Chunk(T, Q, **channels), effort_is_torque=is_torque)
    sources, findings = find_effort_sources(recording, JOINTS, drives)
    assert sources == words and [(one.code, one.joints) for one in findings] == expected
    (chunk,) = recording.chunks(JOINTS)
    made = make_efforts(chunk, recording, JOINTS, drives).tau
    for column, word in enumerate(words):  # the words are what is done
        name, _, factor = word.partition(" x ")
        source = chunk.current if name == "current" else chunk.tau
        assert np.array_equal(made[:, column], source[:, column] * float(factor or 1))


def test_currents_without_gains_are_refused_and_all_named():
    recording = ArrayRecording("r", JOINTS, Chunk(T, Q, current=Q))
    with pytest.raises(InputError, match="r: only currents of b are recorded"):
        find_effort_sources(recording, JOINTS, {"a": Drive(1.0)})
    with pytest.raises(InputError, match="r: only currents of a, b are recorded"):
        find_effort_sources(recording, JOINTS, {})
