# SPDX-License-Identifier: Apache-2.0
"""Blocks of recordings: contiguous, even, with guards, and rows that are left out without new ends."""

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.signals.blocks import NO_BLOCK, Blocks, Stretch
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings

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
