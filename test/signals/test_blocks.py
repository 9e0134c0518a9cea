# SPDX-License-Identifier: Apache-2.0
"""Blocks of recordings: contiguous, even, with guards, and rows that are left out without new ends."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Dahl
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.signals.blocks import NO_BLOCK, Blocks, Stretch
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, iterate_measured_windows
from robot_dyn_id.signals.zeros import EffortZeros

ROBOT = Simulated()
CUTOFF = 4.0


def trials_of(*recordings):
    return FilteredTrials.from_recordings(recordings, ROBOT.joints, {}, SignalSettings(cutoff=CUTOFF))


@pytest.fixture(scope="module")
def trials():
    """One trial with an interruption, and a shorter one."""
    whole = ROBOT.record(duration=70.0, noise=0.05)
    gap = changed(whole, rows=(whole.samples.t < 25.0) | (whole.samples.t > 26.0))
    return trials_of(gap, ROBOT.record(seed=3, duration=30.0, noise=0.05))


def columns():
    return ROBOT.base.independent


def tiles_of(trials):
    return [(t.joint, t.segment, t.block.copy()) for t in trials.problem(ROBOT.regressor, columns()).tiles()]


def test_every_trial_is_divided_evenly_among_all_blocks(trials):
    blocks = trials.blocks()
    assert blocks.count == 8
    edge, guard = trials.plan.edge / trials.plan.rate, 0.5 / CUTOFF
    for trial, length in ((0, 69.0 - 4 * edge), (1, 30.0 - 2 * edge)):
        for block in range(8):
            pieces = [p for p in blocks.pieces if (p.trial, p.block) == (trial, block)]
            guards = 1 if block in (0, 7) else 2
            assert sum(p.duration for p in pieces) == pytest.approx(length / 8 - guards * guard, abs=0.03)


def test_blocks_are_contiguous_and_a_period_of_the_cutoff_apart(trials):
    blocks = trials.blocks()
    for trial in (0, 1):
        t = np.arange(0.0, 70.0, 0.001)
        numbers = blocks.numbers(trial, t)
        inside = numbers[numbers != NO_BLOCK]
        assert np.all(np.diff(inside) >= 0)
        changes = np.flatnonzero(np.diff(inside))
        stamps = t[numbers != NO_BLOCK]
        np.testing.assert_array_less(1.0 / CUTOFF - 0.002, stamps[changes + 1] - stamps[changes])


def test_rows_outside_of_a_block_are_zero_and_all_others_unchanged(trials):
    """No ends are lost at the boundaries of a block: its rows are those of the whole recording, to the last bit."""
    whole = tiles_of(trials)
    parts = [tiles_of(trials.block_only(number)) for number in range(8)]
    plan, kept = trials.plan, 0
    for number, (joint, segment, block) in enumerate(whole):
        masks = np.array([part[number][2].any(axis=0) for part in parts])
        assert all(part[number][:2] == (joint, segment) for part in parts)
        assert masks.sum(axis=0).max() <= 1
        for part, mask in zip(parts, masks, strict=True):
            assert np.array_equal(part[number][2], np.where(mask, block, 0.0))
        kept += int(masks.any(axis=0).sum())
    rows = sum(block.shape[1] for _, _, block in whole)
    guards = 14 * 3 * plan.row_rate / CUTOFF  # seven boundaries of two trials, three joints
    assert rows - kept == pytest.approx(guards, abs=0.35 * guards)


def test_factors_of_all_blocks_but_one_are_the_stack_of_the_others(trials):
    def grams(chosen):
        triangles = Factors.from_problem(chosen.problem(ROBOT.regressor, columns())).triangles
        return [r.T @ r for r in triangles]

    each = [grams(trials.block_only(number)) for number in range(8)]
    for left_out in (0, 5):
        without = grams(trials.without_block(left_out))
        others = [sum(each[k][j] for k in range(8) if k != left_out) for j in range(3)]
        for ours, expected in zip(without, others, strict=True):
            np.testing.assert_allclose(ours, expected, atol=1e-9 * np.abs(expected).max())


def test_ranges_of_a_block_are_those_of_its_samples(trials):
    part = trials.block_only(2)
    q = np.concatenate([w.motion.q[:, w.used] for w in part], axis=1)
    np.testing.assert_array_equal(part.ranges.q_max, q.max(axis=1))
    assert np.all(part.ranges.q_max <= trials.ranges.q_max)


def test_short_trials_share_the_blocks():
    """Twelve trials of 3 s: none can be divided into eight, each block holds pieces of some of them."""
    stretches = [Stretch(number, 10.0, 13.0) for number in range(12)]
    blocks = Blocks.from_stretches(stretches, 8, CUTOFF, 0.5)
    assert blocks.count == 8
    sizes = [sum(p.duration for p in blocks.pieces if p.block == k) for k in range(8)]
    assert sizes == pytest.approx([3 * (1.0 - 0.5 / CUTOFF)] * 8)


def test_short_data_make_fewer_blocks_and_too_short_ones_are_refused():
    assert Blocks.from_stretches([Stretch(0, 0.0, 5.0)], 8, CUTOFF, 0.5).count == 4
    assert Blocks.from_stretches([Stretch(0, 0.0, 1.5)], 8, CUTOFF, 0.5).count == 2
    with pytest.raises(InputError, match="too short"):
        Blocks.from_stretches([Stretch(0, 0.0, 0.9), Stretch(1, 0.0, 2.0)][:1], 8, CUTOFF, 0.5)


class TestExcerpt:
    """Spans that are spread over all blocks."""

    def test_its_samples_are_those_of_all_data_and_come_from_every_block(self):
        """The shortest span is 10 s at 4 Hz: one is taken from each block of 37 s."""
        long = trials_of(ROBOT.record(duration=300.0, noise=0.05))
        blocks = long.blocks()
        part = long.excerpt(blocks, 10_000)
        assert sum(p.duration for p in blocks.spread(100.0, 10.0)) == pytest.approx(100.0, rel=0.01)
        stamps, spread = (np.concatenate([w.t[w.own] for w in one]) for one in (long, part))
        every, some = (np.concatenate([w.motion.ddq[:, w.own] for w in one], axis=1) for one in (long, part))
        places = np.rint((spread - stamps[0]) * long.plan.rate).astype(int)
        np.testing.assert_allclose(stamps[places], spread, atol=1e-9)
        np.testing.assert_allclose(some, every[:, places], atol=1e-3 * np.abs(every).max())
        assert len(spread) == pytest.approx(0.875 * 10_000, rel=0.05)
        counts = np.bincount(blocks.numbers(0, spread), minlength=8)
        assert counts.min() > 0.8 * counts.max()

    def test_a_short_recording_is_complete(self, trials):
        assert trials.excerpt(trials.blocks(), 10_000) is trials
        blocks = trials.blocks()
        assert set(blocks.spread(60.0, 10.0)) == set(blocks.pieces)

    def test_every_trial_has_a_span(self):
        stretches = [Stretch(trial, 0.0, 200.0) for trial in range(20)]
        blocks = Blocks.from_stretches(stretches, 8, CUTOFF, 1.0)
        spans = blocks.spread(100.0, 10.0)
        assert {span.trial for span in spans} == set(range(20))
        assert sum(span.duration for span in spans) < 0.1 * 4000.0


def test_parts_of_the_same_signals_share_a_pass_and_see_the_same_windows(trials):
    """Blocks with other zeros of the efforts, and states of friction that continue through all of them."""
    regressor = Regressor(ROBOT.model, place_terms_on_joints(ROBOT.model, (Dahl(),)))
    blocks, rng = trials.blocks(), np.random.default_rng(0)
    zeros = [EffortZeros(rng.normal(size=(2, len(ROBOT.joints))), np.ones(2, bool), np.ones((2, 1))) for _ in range(8)]
    parts = [replace(trials.block_only(number, blocks), zeros=zeros[number]) for number in range(8)]
    found = list(iterate_measured_windows([(part, regressor) for part in parts]))
    for number, part in enumerate(parts):
        together = [window for other, window in found if other == number]
        alone = [window for window in part.along(regressor) if window.used.any()]
        assert len(together) == len(alone) > 0
        for one, other in zip(together, alone, strict=True):
            assert (one.trial, one.segment) == (other.trial, other.segment)
            for name in ("t", "tau", "valid", "number"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            np.testing.assert_array_equal(one.motion.q, other.motion.q)
            np.testing.assert_array_equal(one.motion.states[Dahl()], other.motion.states[Dahl()])


def test_parts_of_other_signals_have_passes_of_their_own(trials):
    other = trials.with_motion(2.0, trials.plan.recorded_velocity)
    regressor = ROBOT.regressor
    found = list(iterate_measured_windows([(trials, regressor), (other, regressor)]))
    for number, part in enumerate((trials, other)):
        own = [window.motion.ddq for place, window in found if place == number]
        expected = [window.motion.ddq for window in part if window.used.any()]
        assert len(own) == len(expected)
        assert all(np.array_equal(*pair) for pair in zip(own, expected, strict=True))
