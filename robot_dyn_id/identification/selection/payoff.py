# SPDX-License-Identifier: Apache-2.0
"""Whether corrections of recordings pay: errors of the whole model in blocks that it was not fitted to.

The whole model has free bodies, all friction, and torques that depend on positions: hysteresis and springs look like
delays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.regressor import place_terms_on_joints
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.cross_validation import CrossValidation
from robot_dyn_id.identification.selection.engine import Tried, weigh_joints
from robot_dyn_id.identification.selection.options import Options
from robot_dyn_id.identification.selection.wide import Wide
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.blocks import Blocks
from robot_dyn_id.signals.trials import FilteredTrials

COMPARED_SAMPLES = 100_000
"""Recorded samples that motion filters and corrections are compared on, of long recordings those of an excerpt: each
needs a pass."""


def combine(
    excerpt: FilteredTrials, model: RobotModel, blocks: Blocks, further: Sequence[Term] = ()
) -> tuple[Wide, BlockGrams]:
    """Free bodies with all friction that needs no load, and the products of their columns.

    Args:
        excerpt: excerpt of trials.
        model: the robot.
        blocks: division of the trials.
        further: further terms of all joints, which no family has.
    """
    wide = Wide.from_options(model, BodyPrior.from_model(model), Options(), excerpt, bodies=None)
    if further:
        terms = (*wide.regressor.terms, *place_terms_on_joints(model, further))
        wide = replace(wide, regressor=wide.regressor.with_terms(terms))
    grams = wide.multiply(excerpt, blocks)
    return wide.with_prior_size(wide.find_size(grams)), grams


def _combine_loaded(trials: FilteredTrials, model: RobotModel, blocks: Blocks) -> tuple[Wide, BlockGrams]:
    """The same with friction that depends on the load, which is that of a first fit."""
    excerpt = trials.excerpt(blocks, COMPARED_SAMPLES)
    first, grams = combine(excerpt, model, blocks)
    bodies = first.fit_bodies(first.judge(grams))
    wide = Wide.from_options(model, first.prior, Options(base_tilt=False), excerpt, bodies)
    return wide, wide.multiply(excerpt, blocks)


@dataclass(frozen=True)
class Payoff:
    """Errors of the whole model without and with a correction of recordings.

    Attributes:
        validation: cross-validation without the correction.
        before: sums of squared errors without it, shape (blocks, n).
        after: those with it, shape (blocks, n).
        loss: see `Tried`.
    """

    validation: CrossValidation
    before: Array
    after: Array
    loss: float

    @classmethod
    def from_trials(cls, before: FilteredTrials, after: FilteredTrials, model: RobotModel) -> Payoff:
        """Fit and validate the whole model.

        Args:
            before: the trials without the correction.
            after: the same trials with it; their time stamps are the same.
            model: the robot.

        Raises:
            InputError: trials that are too short for cross-validation.
        """
        blocks = before.blocks()
        wide, grams = _combine_loaded(before, model, blocks)
        first = wide.judge(grams)
        reference = first.errors(wide.reference)
        families = [family for family in wide.families if not family.must_pay]
        terms = [term.name for family in wide.position_families for term in family.terms]
        columns = wide.columns_of(families, placed=[(name, term) for name in model.joint_names for term in terms])
        _, _, errors = wide.least_loss(first, columns, reference)
        changed, products = _combine_loaded(after, model, blocks)
        corrected = changed.judge(products).with_weights(first.weights)
        loss, _, corrected_errors = changed.least_loss(corrected, columns, reference)
        return cls(first, errors, corrected_errors, loss)

    def weigh(self, step: str, name: str, alternatives: int) -> Tried:
        """Gain of a correction of all joints; see `CrossValidation.weigh`."""
        return self.validation.weigh(step, name, self.before, self.after, alternatives, self.loss)

    def weigh_joints(self, step: str, names: Sequence[str], judged: Mask) -> list[Tried]:
        """Gains of corrections of single joints, each on its own errors; see `engine.weigh_joints`."""
        return weigh_joints(step, names, self.before, self.after, judged, self.loss)


def measure_errors(trials: FilteredTrials, model: RobotModel) -> Array:
    """Ratio of error to effort of each joint in blocks that the whole model was not fitted to, shape (n,).

    Its bodies are physically consistent and its friction brakes, as those of every real robot; NaN without efforts.

    Args:
        trials: the trials.
        model: the robot.

    Raises:
        InputError: trials that are too short for cross-validation.
    """
    blocks = trials.blocks()
    wide, grams = combine(trials.excerpt(blocks, COMPARED_SAMPLES), model, blocks)
    validation = wide.judge(grams)
    errors, _ = wide.find_consistent(grams, wide.columns_of(wide.families), validation.errors(wide.reference))
    counts = np.maximum(grams.block_counts(range(grams.block_count)), 1.0)
    variation = grams.effort_variation()
    unknown = np.full(len(variation), np.nan)
    return np.asarray(np.divide(np.sqrt(errors.sum(axis=0) / counts), variation, out=unknown, where=variation > 0.0))
