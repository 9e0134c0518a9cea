# SPDX-License-Identifier: Apache-2.0
"""Blocked cross-validation on Gram matrices: nested ones share their fits."""

from dataclasses import replace

import numpy as np
import pytest

from robot_dyn_id.identification.selection.block_grams import OUTSIDE, BlockGrams
from robot_dyn_id.identification.selection.cross_validation import Candidate, CrossValidation, Pull

BLOCKS, COLUMNS, JOINTS, ROWS = 5, 4, 2, 40
REFERENCE = Candidate(np.arange(COLUMNS), 1.0)


@pytest.fixture
def validation():
    rng = np.random.default_rng(0)
    truth = np.array([1.0, -2.0, 0.5, 0.0])
    rows = rng.normal(size=(JOINTS, BLOCKS + OUTSIDE, COLUMNS + 1, ROWS))
    rows[:, :, -1] = np.einsum("c,jbcr->jbr", truth, rows[:, :, :-1]) + 0.3 * rows[:, :, -1]
    grams = BlockGrams(
        columns=COLUMNS,
        supports=(np.arange(COLUMNS),) * JOINTS,
        matrices=tuple(block @ np.swapaxes(block, 1, 2) for block in rows),
        sums=tuple(block.sum(axis=2)[:, None] for block in rows),
        recording_counts=np.full((JOINTS, BLOCKS + OUTSIDE, 1), ROWS),
    )
    pull = Pull(np.zeros(COLUMNS), np.ones(COLUMNS))
    bounded = np.array([False, False, True, True])
    return CrossValidation.from_grams(grams, pull, bounded, REFERENCE, tuple(range(BLOCKS)))


def test_nested_cross_validations_share_their_fits_and_get_the_same_as_alone(validation):
    validation.fits.clear()
    smaller = Candidate(np.array([0, 2]), 10.0)
    for block in range(BLOCKS):
        nested = validation.without(block)
        alone = replace(nested, fits={})
        for candidate in (REFERENCE, smaller):
            np.testing.assert_allclose(nested.errors(candidate), alone.errors(candidate), rtol=1e-9)
    pairs = BLOCKS * (BLOCKS - 1) // 2
    assert len(validation.fits) == 2 * pairs


def test_rows_of_the_block_that_is_left_out_do_not_matter(validation):
    nested = validation.without(1)
    matrices = tuple(np.delete(m, 1, axis=0) for m in validation.grams.matrices)
    counts = np.delete(validation.grams.recording_counts, 1, axis=1)
    grams = replace(validation.grams, matrices=matrices, recording_counts=counts)
    fewer = CrossValidation(
        grams, nested.pull, nested.bounded, nested.weights, tuple(range(BLOCKS - 1)), grams.weighted(nested.weights)
    )
    np.testing.assert_allclose(nested.errors(REFERENCE), fewer.errors(REFERENCE), rtol=1e-9)


def test_other_weights_are_other_fits(validation):
    before = validation.errors(REFERENCE)
    after = validation.with_weights(validation.weights * [1.0, 10.0]).errors(REFERENCE)
    assert np.abs(after / before - 1.0).max() > 1e-3


def test_zeros_of_recordings_are_memorized_apart_from_fits_without(validation):
    plain, own = validation.errors(REFERENCE), validation.with_zeros((0, 1), None)
    assert np.abs(own.errors(REFERENCE) / plain - 1.0).max() > 1e-3
    nested, alone = own.without(2), replace(own.without(2), fits={})
    np.testing.assert_allclose(nested.errors(REFERENCE), alone.errors(REFERENCE), rtol=1e-9)
    np.testing.assert_array_equal(validation.errors(REFERENCE), plain)
    assert validation.without(2).with_zeros((0, 1), None).fits is own.fits
    assert validation.with_zeros((0, 1), REFERENCE).weights.tolist() != own.weights.tolist()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_weights_with_zeros_are_those_of_all_blocks_whichever_block_is_left_out_first(validation, order):
    expected = validation.with_zeros((0, 1), REFERENCE).weights
    validation.by_zeros.clear()
    for block in order:
        nested = validation.without(block).with_zeros((0, 1), REFERENCE)
        np.testing.assert_array_equal(nested.weights, expected)
        assert nested.blocks == validation.without(block).blocks
