# SPDX-License-Identifier: Apache-2.0
"""Detection of rest in recordings, and its effect on an identification."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.simulated import Simulated, at_chunk_size, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.errors import UnsafeDataError, UsageError
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.settings import DEFAULT_TERMS, Settings
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.signals.cutoff import CUTOFF_PER_BANDWIDTH
from robot_dyn_id.signals.stillness import Stillness, find_stillness
from robot_dyn_id.signals.survey import PERIODOGRAM
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

RATE = 100.0


def held_at(recording, place, seconds, noise=0.1, friction=0.3, seed=3):
    """The recording with a pause before a sample: the robot stays where it is, and its sensors go on.

    At rest dry friction holds the arm, so that the torque is not that of the model.
    """
    rng, samples, count = np.random.default_rng(seed), recording.samples, round(seconds * RATE)
    at = min(place, len(samples) - 1)

    def stretched(values, still, sigma):
        errors = sigma * rng.normal(size=(count, values.shape[1]))
        return np.concatenate([values[:place], still + errors, values[place:]])

    chunk = Chunk(
        np.arange(len(samples) + count) / RATE,
        stretched(samples.q, samples.q[at], 1e-6),
        stretched(samples.dq, 0.0, 1e-3),
        stretched(samples.tau, samples.tau[at] + friction, noise),
    )
    return replace(recording, samples=chunk)


class Eased:
    """A motion whose clock is eased to a halt and back at given times, as robots begin, pause and end."""

    def __init__(self, motion, halts):
        self.motion, self.halts = motion, np.asarray(halts)[:, None]

    def evaluate(self, t):
        """See `Trajectory`; velocities and accelerations by the chain rule."""
        fine = np.linspace(t[0], t[-1], 50 * len(t))
        pace, rate = self._pace(fine)
        s = np.concatenate([[0.0], np.cumsum((pace[1:] + pace[:-1]) / 2 * np.diff(fine))])
        q, dq, ddq, dddq = self.motion.evaluate(np.interp(t, fine, s))
        pace, rate = self._pace(t)
        return q, dq * pace, ddq * pace**2 + dq * rate, dddq

    def _pace(self, t):
        x = np.minimum(np.abs(t - self.halts), 1.0)
        paces, rates = x**3 * (10 - 15 * x + 6 * x**2), 30 * x**2 * (1 - x) ** 2 * np.sign(t - self.halts)
        nearest = np.argmin(np.abs(t - self.halts), axis=0), np.arange(len(t))
        return paces[nearest], rates[nearest]


PAUSE = 1520
CASES = {
    "tail": ([(4000, 90.0)], [(40.0, 130.0)]),
    "head": ([(0, 20.0)], [(0.0, 20.0)]),
    "pause": ([(PAUSE, 30.0)], [(15.2, 45.2)]),
    "all": ([(4000, 90.0), (PAUSE, 30.0), (0, 20.0)], [(0.0, 20.0), (35.2, 65.2), (90.0, 180.0)]),
}
"""Inserted pauses (index of the next sample, duration [s]), and the resulting spans of rest [s]."""


@pytest.fixture(scope="module")
def robot():
    return Simulated()


def eased(robot, seed):
    motion = Eased(draw_random_fourier(robot.model, seed), [0.0, PAUSE / RATE, 40.0])
    sensors = Sensors(np.full(3, 0.1), 1e-6, 1e-3, 0.0)
    return simulate_recording(robot.regressor, robot.parameters, motion, sample_times(40.0, RATE), sensors, seed)


@pytest.fixture(scope="module")
def clean(robot):
    return replace(eased(robot, 1), source="arm.mcap")


@pytest.fixture(scope="module")
def reference(robot, clean):
    return identified(robot, clean)


PINNED = Settings(terms=DEFAULT_TERMS, estimator=WeightedLeastSquares())


def identified(robot, *recordings, settings=PINNED, **options):
    return identify(*split(recordings, robot.joints, **options), robot.model, settings, "test")


def disturbed(clean, case):
    for place, seconds in CASES[case][0]:
        clean = held_at(clean, place, seconds)
    return clean


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_model_is_that_of_the_motion_alone(case, robot, clean, reference):
    assert reference.evaluation.verdict.word == "good"
    result = identified(robot, disturbed(clean, case))
    off = np.abs(result.estimate.values - reference.estimate.values) / reference.estimate.standard_deviations
    assert np.all(off < 2.0), off
    wrong = np.abs(result.estimate.values - robot.base_values) / result.estimate.standard_deviations
    assert np.all(wrong < 4.0), wrong
    assert result.evaluation.verdict == reference.evaluation.verdict
    ours, theirs = result.evaluation, reference.evaluation
    assert ours.held_out.all_joints_nrmse == pytest.approx(theirs.held_out.all_joints_nrmse, rel=0.2)
    assert result.training.survey.cutoff == pytest.approx(
        reference.training.survey.cutoff, abs=CUTOFF_PER_BANDWIDTH / PERIODOGRAM
    )
    rows = reference.rows[0] * result.training.survey.cutoff / reference.training.survey.cutoff
    assert result.rows[0] == pytest.approx(rows, rel=0.1)
    (finding,) = set(result.evaluation.findings) - set(reference.evaluation.findings)
    assert finding.code == "rest_left_out" and finding.message.startswith("arm.mcap is at rest from ")
    spans = [tuple(map(float, span)) for span in re.findall(r"from ([\d.]+) to ([\d.]+) s", finding.message)]
    np.testing.assert_allclose(spans, CASES[case][1], rtol=0, atol=1.0)
    assert result.training.survey.repairs.gaps == 0


def whole(recording):
    return Chunk.join(list(recording.chunks(recording.joint_names))).t


def test_time_at_rest_is_left_out_of_every_trial(robot, clean):
    other = replace(held_at(clean, 4000, 30.0), source="b")
    assert split([clean], robot.joints) == ([clean], [])
    training, _ = split([disturbed(clean, "all"), other], robot.joints)
    spans = "[0 s, 20.5 s], [35.5 s, 65 s], [90 s, 179.99 s]"
    assert [recording.source for recording in training] == [
        f"arm.mcap [start, 179.99 s) without {spans}",
        "b [start, 69.99 s) without [40 s, 69.99 s]",
    ]


@pytest.mark.slow
def test_static_poses_are_trained_on_and_never_validated_on(robot, clean):
    posture = replace(held_at(changed(clean, rows=slice(0, 1)), 1, 10.0), source="posture")
    result, alone = identified(robot, posture, clean), identified(robot, clean)
    trials = result.training
    blocks = trials.blocks()
    assert {piece.trial for piece in blocks.pieces} == {1}
    used = [{window.trial for window in trials.without_block(0, blocks) if window.used.any()}]
    used.append({window.trial for window in trials.block_only(0, blocks) if window.used.any()})
    assert used == [{0, 1}, {1}]
    assert result.rows[0] > alone.rows[0]
    assert result.evaluation.held_out.samples == alone.evaluation.held_out.samples


def test_a_train_range_is_obeyed_and_only_motion_is_validated_on(robot, clean):
    data = disturbed(clean, "all")
    (train,), (rest,) = split([data], robot.joints, train_range=(5.0, 80.0))
    assert (train.source, train.excerpt.without) == ("arm.mcap [5 s, 80 s)", ())
    assert whole(rest)[0] == pytest.approx(80.0)
    assert whole(rest)[-1] == pytest.approx(90.0, abs=1.0)
    words = (
        r"training range 0 to 95 s leaves nothing .*: arm\.mcap is at rest .*, from 90\.\d to 180\.0 s; give held-out"
    )
    with pytest.raises(UsageError, match=words):
        split([data], robot.joints, train_range=(0.0, 95.0))


@pytest.mark.slow
def test_validation_data_at_rest_are_refused_or_reported(robot, clean, reference):
    still = replace(held_at(changed(clean, rows=slice(0, 1)), 1, 30.0), source="still")
    with pytest.raises(UnsafeDataError, match="still: no joint moves"):
        identified(robot, clean, validation=[still])
    with pytest.raises(UnsafeDataError, match="no joint moves"):
        identified(robot, still)
    with pytest.raises(UnsafeDataError, match="no joint moves"):
        validate([still], reference.parameters, Settings())
    long, short = (replace(held_at(eased(robot, 2), 4000, seconds), source="x") for seconds in (90.0, 10.0))
    for evaluation in (
        identified(robot, clean, validation=[long]).evaluation,
        validate([long], reference.parameters, Settings()),
    ):
        (finding,) = [one for one in evaluation.findings if one.code == "validated_at_rest"]
        assert finding.severity == "warning"
        assert re.match(r"x is at rest from 40\.\d to 130\.0 s", finding.message)
        assert evaluation.verdict.word == "suspect"
    evaluation = validate([short], reference.parameters, Settings())
    assert evaluation.verdict.word == "good"
    (finding,) = [one for one in evaluation.findings if one.code == "validated_at_rest"]
    assert finding.severity == "info" and finding.message.startswith("x is at rest from 40")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pull", "code", "word"), [(0.9, "stiction_at_rest", "suspect"), (4.5, "held_out_error", "bad")]
)
def test_only_what_friction_carries_at_rest_is_no_error_of_the_model(pull, code, word, robot, reference):
    """One joint moves, the others are at rest with a torque within, or beyond, their friction of 1 N m."""
    alone = robot.record(seed=3, duration=40.0, noise=0.1, still=(1, 2))
    stuck = pull * np.sign(np.sin(2.0 * np.pi * alone.samples.t / 13.0))[:, None] * [0.0, 1.0, 1.0]
    settings = Settings(thresholds=Thresholds(bad_nrmse=0.05))
    evaluation = validate([changed(alone, tau=lambda tau: tau + stuck)], reference.parameters, settings)
    assert evaluation.held_out.moving_nrmse < 0.05 < evaluation.held_out.all_joints_nrmse
    assert evaluation.verdict.word == word
    (finding,) = [one for one in evaluation.findings if one.code in ("stiction_at_rest", "held_out_error")]
    assert finding.code == code
    assert finding.joints == (robot.joints[1:] if code == "stiction_at_rest" else ())


def rests_of(q, t):
    names = tuple(f"j{number}" for number in range(q.shape[1]))
    return find_stillness(ArrayRecording("x", names, Chunk(t, q)), names)


def at_rest_until(rate, rest, noise, joints=7, length=60.0, seed=0, frequency=0.3):
    """Positions [rad] that are at rest until the time `rest` and oscillate after it, and their times [s]."""
    t, rng = np.arange(0.0, length, 1.0 / rate), np.random.default_rng(seed)
    swing = 1.0 - np.cos(2 * np.pi * frequency * np.maximum(t - rest, 0.0))
    return noise(np.tile(swing[:, None], (1, joints)), rng), t


SENSORS = {
    "exact": lambda q, rng: q,
    "white": lambda q, rng: q + 1e-3 * rng.normal(size=q.shape),
    "12 bits": lambda q, rng: 2 * np.pi / 4096 * np.round((q + 2e-4 * rng.normal(size=q.shape)) * 4096 / (2 * np.pi)),
    "16 bits": lambda q, rng: 2 * np.pi / 65536 * np.round(q * 65536 / (2 * np.pi)),
    "drift": lambda q, rng: q + 1e-4 * np.linspace(0, 1, len(q))[:, None] * rng.normal(size=q.shape[1]),
    "a wrong sample": lambda q, rng: q + 50.0 * (np.arange(len(q)) == len(q) * 2 // 3)[:, None],
}


@pytest.mark.parametrize("rate", [30.0, 100.0, 1000.0])
@pytest.mark.parametrize("sensor", SENSORS)
def test_rest_is_detected_with_every_sensor(sensor, rate):
    for seed in range(5):
        found = rests_of(*at_rest_until(rate, 20.0, SENSORS[sensor], seed=seed))
        assert found.moves
        np.testing.assert_allclose(found.spans, [(0.0, 20.0)], rtol=0, atol=1.0)


@pytest.mark.parametrize("frequency", [0.01, 0.05, 0.5, 2.0, 4.0])
def test_oscillations_slow_and_fast_of_a_single_joint_are_motion(frequency):
    q, t = at_rest_until(100.0, 0.0, SENSORS["16 bits"], joints=1, length=100.0, frequency=frequency)
    resting = np.zeros((len(t), 2))
    assert rests_of(np.hstack([resting, q]), t).spans == ()


@pytest.mark.parametrize(("rest", "found"), [(4.0, 0), (8.25, 9)])
def test_short_rests_belong_to_a_motion(rest, found):
    t = np.arange(0.0, 10 * (rest + 1.0), 0.01)
    strokes = np.floor(t / (rest + 1.0)) + np.minimum(t % (rest + 1.0), 1.0)  # of 1 s each
    spans = rests_of(strokes[:, None], t).spans
    assert len(spans) == (found + 1 if found else 0)
    for number, (start, stop) in enumerate(spans):
        assert number * (rest + 1.0) + 1.0 <= start + 1e-9 < start + rest - 1.1 <= stop <= (number + 1) * (rest + 1.0)


@pytest.mark.slow
def test_the_size_of_chunks_does_not_matter(clean, robot):
    data = disturbed(clean, "all")
    (found,) = {find_stillness(at_chunk_size(data, size), robot.joints) for size in (1, 37, 10**6)}
    assert len(found.spans) == 3


def test_wrong_stamps_and_missing_positions_are_ignored():
    q, t = at_rest_until(100.0, 20.0, SENSORS["white"], joints=2)
    q[2500:2510] = np.nan
    q[1500], q[4000] = 1e154, np.inf
    t[[1000, 3000]] = np.nan, 1e154
    np.testing.assert_allclose(rests_of(q, t).spans, [(0.0, 20.0)], rtol=0, atol=1.0)
    assert rests_of(np.zeros((0, 2)), np.zeros(0)) == Stillness(0.0, (), False)
    assert rests_of(np.full((5, 2), np.nan), np.arange(5.0)) == Stillness(4.0, (), False)


def test_the_moving_time_lies_between_the_rests():
    still = Stillness(100.0, ((0.0, 10.0), (40.0, 70.0)), True)
    assert still.moving() == ((10.0, 40.0), (70.0, 100.0))
