# SPDX-License-Identifier: Apache-2.0
"""Stages of an identification: each holds the one before it, and no finding is lost between them."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from support.simulated import Simulated

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.identification import pipeline
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.stages.chosen import Chosen
from robot_dyn_id.identification.stages.examined import Examined
from robot_dyn_id.identification.stages.fitted import Fitted
from robot_dyn_id.identification.stages.judged import Judged
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.progress import ignore_progress

ROBOT = Simulated()


def late_velocities(recording, samples=20):
    """The recording with velocities that are late, as a filter in a driver makes them."""
    chunk = recording.samples
    late = np.concatenate([np.repeat(chunk.dq[:1], samples, axis=0), chunk.dq[:-samples]])
    return ArrayRecording(recording.source, recording.joint_names, Chunk(chunk.t, chunk.q, late, chunk.tau))


@pytest.fixture(scope="module")
def stages():
    read = Read.from_recordings([late_velocities(ROBOT.record(duration=20.0, noise=0.05))], [], ROBOT.model, Settings())
    examined = Examined.from_read(read)
    chosen = Chosen.from_examined(examined, ignore_progress)
    fitted = Fitted.from_chosen(chosen, ignore_progress)
    return read, examined, chosen, fitted, Judged.from_fitted(fitted, ignore_progress)


@pytest.mark.slow
def test_each_stage_holds_the_one_before_it(stages):
    read, examined, chosen, fitted, judged = stages
    assert judged.fitted is fitted
    assert fitted.chosen is chosen
    assert chosen.examined is examined
    assert examined.read is read


@pytest.mark.slow
def test_findings_of_all_stages_are_in_the_evaluation(stages):
    *earlier, judged = stages
    found = {(one.code, one.joints, one.message) for one in judged.evaluation.findings}
    for stage in earlier:
        assert {(one.code, one.joints, one.message) for one in stage.findings} <= found


@pytest.mark.slow
def test_what_was_suspected_is_found_unless_the_choice_explains_it(stages):
    _, examined, chosen, *_ = stages
    assert [one.code for one in examined.suspected] == ["velocity_mismatch"]
    explained = chosen.selection.explains(examined.suspected[0])
    assert explained == chosen.trials.plan.recorded_velocity
    assert (examined.suspected[0] in chosen.findings) != explained


def test_the_story_is_short():
    source = inspect.getsource(pipeline.identify)
    story = source[source.rindex('"""') :].strip().splitlines()
    assert len(story) <= 10


@pytest.mark.slow
def test_joints_without_efforts_are_moved_along():
    """The other joints feel the motion of a joint whose effort is not recorded, and are identified with it."""
    complete = ROBOT.record(duration=20.0, noise=0.05)
    chunk = complete.samples
    silent = replace(complete, samples=replace(chunk, tau=chunk.tau * [1.0, 1.0, np.nan]))
    held_out = ROBOT.record(seed=2, duration=10.0, noise=0.05)
    found = pipeline.identify([silent], [held_out], ROBOT.model, Settings(), "test")
    errors = [joint.nrmse for joint in found.evaluation.held_out.joints]
    assert max(errors[:2]) < 0.05
    assert [(one.severity, one.joints) for one in found.findings if one.code == "effort_constant"] == [
        ("warning", ("wrist",))
    ]
    answers = {use: row for use, row in zip(found.parameters.judgment.fit_for, found.evaluation.uses, strict=True)}
    assert all(one.fit.answer == "no" for one in answers.values())


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_masses_and_ratings_that_are_guesses_change_no_prediction(factor):
    """The first law: the held-out error changes by less than 2 % of itself, and the data are not refused."""
    training, held_out = ROBOT.record(duration=20.0, noise=0.05), ROBOT.record(seed=2, duration=10.0, noise=0.05)
    model = ROBOT.model
    limits = replace(model.limits, effort=factor * model.limits.effort)
    guessed = replace(model, inertial_parameters=factor * model.inertial_parameters, limits=limits)
    errors = [
        pipeline.identify([training], [held_out], one, Settings(), "test").evaluation.held_out.all_joints_nrmse
        for one in (model, guessed)
    ]
    assert errors[1] == pytest.approx(errors[0], rel=0.02)
