# SPDX-License-Identifier: Apache-2.0
"""The reference of a robot's controller from another topic of a bag."""

from dataclasses import replace

import numpy as np
import pytest
from support.encoder_loop import LOOP, loop_problem, recorded, robot
from support.recording_files import JOINT_STATE, SECOND, START, write_bag

from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import OutputError
from robot_dyn_id.files.configuration import parse_configuration
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.recordings.joint_states import encode
from robot_dyn_id.workflow.identification import open_all

REFERENCE_TOPIC = "/controller/joint_states_desired"


def messages(names, t, q, tau=None):
    stamps = START + np.round(t * SECOND).astype(np.int64)
    return list(zip((stamps + 3_000_000).tolist(), encode(names, stamps, q, None, tau), strict=True))


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """Bag of the loop's measurements, with the reference at times between them and the joints in reverse order."""
    samples, names = recorded(1, duration=6.0).samples, robot().joints
    later = samples.t[:-1] + 0.0007
    reference = samples.reference[:-1] + 0.35 * np.diff(samples.reference, axis=0)  # 0.7 ms of 2 ms
    others = [(REFERENCE_TOPIC, JOINT_STATE, messages(names[::-1], later, reference[:, ::-1]))]
    folder = tmp_path_factory.mktemp("bag") / "loop"
    return write_bag(folder, messages(names, samples.t, samples.q, samples.tau), others=others)


@pytest.mark.parametrize("size", [8192, 37])
def test_the_reference_is_that_of_the_other_topic_at_the_stamps_of_the_first(bag, size):
    (recording,) = open_all([str(bag)], parse_configuration({"reference_topic": REFERENCE_TOPIC}))
    recording = replace(recording, recording=replace(recording.recording, chunk_size=size))
    found = np.concatenate([chunk.reference for chunk in recording.chunks(robot().joints)])
    truth = recorded(1, duration=6.0).samples.reference
    assert np.isnan(found[0]).all()  # before the first message
    assert np.isnan(found[-1]).all()
    np.testing.assert_allclose(found[1:-1], truth[1:-1], rtol=0, atol=5e-5)


@pytest.mark.slow
def test_output_error_works_from_a_bag(bag):
    """The estimate from the bag equals that from the arrays in the bag."""
    recording = open_recording(bag, reference_topic=REFERENCE_TOPIC)
    recording = replace(recording, recording=replace(recording.recording, effort_is_torque=True))
    ours = OutputError(LOOP).fit(loop_problem(recording, 10.0))
    arrays = OutputError(LOOP).fit(loop_problem(recorded(1, duration=6.0), 10.0))
    off = np.abs(ours.values - arrays.values) / np.hypot(ours.standard_deviations, arrays.standard_deviations)
    print(off.round(2))
    assert off.max() < 1.0


def test_topics_that_do_not_fit_are_named(bag, tmp_path):
    with pytest.raises(InputError, match="no topic /nowhere of joint states; it holds"):
        open_recording(bag, reference_topic="/nowhere")
    samples, names = recorded(1, duration=6.0).samples, robot().joints
    others = [(REFERENCE_TOPIC, JOINT_STATE, messages(names[:1], samples.t, samples.q[:, :1]))]
    one = write_bag(tmp_path / "one", messages(names, samples.t, samples.q, samples.tau), others=others)
    with pytest.raises(InputError, match=f"{REFERENCE_TOPIC} has no elbow; it holds shoulder"):
        next(open_recording(one, reference_topic=REFERENCE_TOPIC).chunks(names))
