# SPDX-License-Identifier: Apache-2.0
"""Choice of a model by blocked cross-validation, from passes over an excerpt for motion filters and two for terms.

Families of terms, zeros of the efforts, couplings, terms of the position and a tilt of the base are compared by fits
with signs, the strength of the prior by fits that are physically consistent as well, all on Gram matrices of the
blocks, by the rule of `engine`. The whole choice among terms, zeros, couplings, signs and strengths is repeated without
each block in turn, so that the error on that block is one of data that nothing was chosen from; the motion filter, the
load, the tilt, the weights of the joints and the bands of positions are those of all data.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.cores import map_in_order
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.estimators import Consistent, Estimator
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.diagnosis.diagnosis import GRAVITY_DIRECTION
from robot_dyn_id.identification.diagnosis.health import VELOCITY_MISMATCH
from robot_dyn_id.identification.selection.base_tilt import BASE_TILTED, find_tilt, report_tilt
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.cross_validation import Candidate, CrossValidation, compute_relative_loss
from robot_dyn_id.identification.selection.divisions import Divisions, errors_of
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.families import FREED_TERMS, SIGNED_TERMS, SIMPLE, Family
from robot_dyn_id.identification.selection.load_change import find_load_change
from robot_dyn_id.identification.selection.motion_filter import (
    MOTION_CUTOFF_RATIOS,
    choose_motion_filter,
    with_motion_filter,
)
from robot_dyn_id.identification.selection.options import Options
from robot_dyn_id.identification.selection.payoff import COMPARED_SAMPLES
from robot_dyn_id.identification.selection.positions import choose_positions
from robot_dyn_id.identification.selection.signs import free_signs, report_signs
from robot_dyn_id.identification.selection.strength import choose_strength
from robot_dyn_id.identification.selection.wide import Placed, Wide
from robot_dyn_id.identification.selection.zero_shifts import estimate_zeros, find_zeros, report_zeros
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.signals.blocks import Blocks
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.signals.zeros import EffortZeros

EXPLAINED_BY_CHOICE = frozenset({VELOCITY_MISMATCH.code, GRAVITY_DIRECTION.code})
"""Findings about data that a choice may explain, see `Selection.explains`."""

GIVEN_PRIOR_STRENGTH = 300.0
"""Strength of a prior that the user asks for, to extrapolate to motions that the data do not show."""

MAX_COUPLINGS = 2
"""Most couplings that are taken."""


RETILTS = 3
"""Number of times that a tilt is found again after the first; each removes what the linearization left."""


@dataclass(frozen=True)
class ModelChoice:
    """Columns and strength that were chosen from some blocks.

    Attributes:
        divisions: the data, with the joints whose efforts have a zero of their own in each recording, and the columns
            whose signs are not free.
        candidate: columns and strength.
        families: names of the families.
        couplings: names of the couplings.
        positions: terms of the position of one joint.
        tried: all alternatives.
    """

    divisions: Divisions
    candidate: Candidate
    families: tuple[str, ...]
    couplings: tuple[str, ...]
    positions: tuple[Placed, ...]
    tried: tuple[Tried, ...]

    @property
    def validation(self) -> CrossValidation:
        """The blocks of time."""
        return self.divisions.times


@dataclass(frozen=True)
class BlockModel:
    """Model that was fitted, and unless only its residuals are needed also chosen, without one block.

    Attributes:
        block: number of the block.
        columns: columns of the wide regressor, shape (p,).
        values: their parameters, shape (p,).
        unconstrained: their parameters without physically consistent links, shape (p,).
        effort_zeros: zeros of the efforts in the other blocks of each recording; None: they do not differ.
    """

    block: int
    columns: Integers
    values: Array
    unconstrained: Array
    effort_zeros: EffortZeros | None


@dataclass(frozen=True)
class Selection:
    """A chosen model, before its final fit.

    Attributes:
        trials: the training data with the chosen motion filter and source of velocities, and zeros of the efforts.
        regressor: robot, with the chosen direction of gravity, and the terms that are not zero.
        strength: strength of the prior.
        size: factor of the bodies of the prior.
        weights: weight of each joint, one over the RMS of its out-of-fold residual, shape (n,).
        tried: all alternatives.
        left_out: names of families that were tried and not taken.
        blocks: division of the data.
        wide: regressor of the models of the blocks.
        block_models: the models that were fitted without each block, see `Options.without_blocks`.
        velocity_chosen: whether the source of the velocities was chosen.
        signed: names of columns of friction and rotor inertia whose signs are free.
        findings: findings about the choice.
    """

    trials: FilteredTrials
    regressor: Regressor
    strength: float
    size: float
    weights: Array
    tried: tuple[Tried, ...]
    left_out: tuple[str, ...]
    blocks: Blocks
    wide: Regressor
    block_models: tuple[BlockModel, ...]
    velocity_chosen: bool
    signed: tuple[str, ...]
    findings: tuple[Finding, ...]

    def explains(self, finding: Finding) -> bool:
        """Whether the choice explains what was suspected: late velocities that are used, or a tilt of the base."""
        if finding.code == VELOCITY_MISMATCH.code:
            return self.velocity_chosen and self.trials.plan.recorded_velocity
        tilted_base = any(one.code == BASE_TILTED.code for one in self.findings)
        return finding.code == GRAVITY_DIRECTION.code and tilted_base

    def complete(self, estimator: Estimator) -> Estimator:
        """The estimator with the chosen strength, size and free signs, and with weights unless it has some."""
        if not isinstance(estimator, Consistent):
            return estimator
        weights, signed = estimator.weights or tuple(self.weights.tolist()), (*estimator.signed, *self.signed)
        return replace(estimator, strength=self.strength, size=self.size, weights=weights, signed=signed)


def choose_model(
    trials: FilteredTrials, model: RobotModel, options: Options, progress: Progress = ignore_progress
) -> Selection:
    """Choose a model.

    Args:
        trials: training data.
        model: the robot.
        options: what may be chosen.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: data that are too short for cross-validation.
    """
    blocks = with_motion_filter(trials, min(MOTION_CUTOFF_RATIOS)).blocks()
    progress(Stage("choosing the motion filter"))
    excerpt = trials.excerpt(blocks, COMPARED_SAMPLES)
    given = (options.prior or BodyPrior.from_model(model)).scaled(options.estimator.size)
    first = Wide.from_options(model, given, options, excerpt, bodies=None)
    excerpt, prior, bodies, tried = choose_motion_filter(excerpt, first, blocks, options)
    trials = trials.with_motion(excerpt.plan.motion_pass.cutoff, excerpt.plan.recorded_velocity)
    progress(Stage("comparing models"))
    wide = Wide.from_options(model, prior, options, trials, bodies)
    bodies = wide.fit_bodies(wide.validate(excerpt, blocks))  # without load-dependent friction they had to replace it
    wide = Wide.from_options(model, prior, options, trials, bodies)
    divisions = _divide(wide, wide.validate(trials, blocks), excerpt)
    choice = _choose(wide, divisions)
    findings: tuple[Finding, ...] = ()
    turned, tilts = model, list[Tried]()
    while wide.tilt is not None and len(tilts) <= RETILTS:
        tilted, row = find_tilt(wide, choice.divisions, choice.candidate, model)
        tilts.append(row)
        if tilted is None:
            break
        turned = tilted
        wide = Wide.from_options(turned, prior, options, trials, bodies)
        bodies = wide.fit_bodies(wide.validate(excerpt, blocks))  # a tilt is linear in those of a fit without it
        wide = Wide.from_options(turned, prior, options, trials, bodies)
        divisions = _divide(wide, wide.validate(trials, blocks), excerpt)
        choice = _choose(wide, divisions, choice.candidate.strength)
    if turned is not model:
        findings = (report_tilt(model, turned, tilts[0]),)
    block_models = []

    def without(block: int) -> BlockModel:
        if options.without_blocks:
            return _choose_without(wide, divisions, block, choice)
        return _fit_block(wide, choice.validation.without(block), choice.candidate, block)

    with closing(map_in_order(without, divisions.times.blocks)) as results:
        for number in range(len(divisions.times.blocks)):
            if options.without_blocks:
                progress(Stage("repeating the choice without each block", number, len(divisions.times.blocks)))
            block_models.append(next(results))
    validation = choice.validation
    change, loads = find_load_change(validation, choice.candidate, wide.regressor, blocks)
    if change is not None:
        findings += (change.report(),)
    final = wide.consistent(validation, choice.candidate, all_rows=True)
    if validation.zeros:
        zeros = estimate_zeros(validation, final, all_rows=True)
        trials = replace(trials, zeros=zeros)
        findings += (report_zeros(model, zeros, choice.tried, validation.grams.effort_variation()),)
    regressor = wide.prune(validation, choice.candidate, final)
    signed = wide.list_signed(validation, regressor)
    findings += report_signs(choice.tried, dict(zip(wide.regressor.names, final.tolist(), strict=True)), signed)
    return Selection(
        trials=trials,
        regressor=regressor,
        strength=choice.candidate.strength,
        size=options.estimator.size * float(prior.masses[0] / given.masses[0]),
        weights=validation.weights,
        tried=(*tried, *tilts, *choice.tried, *loads),
        left_out=tuple(f.name for f in options.families(trials) if f.name not in choice.families),
        blocks=blocks,
        wide=wide.without_tilt,
        block_models=tuple(block_models),
        velocity_chosen=options.velocity,
        signed=signed,
        findings=findings,
    )


def _divide(wide: Wide, times: CrossValidation, excerpt: FilteredTrials) -> Divisions:
    """Divisions of the training data, by positions only where anything has to predict other positions."""
    if not wide.has_hypotheses:
        return Divisions(times)
    return Divisions.from_grams(times, BlockGrams.from_bands(excerpt, wide.regressor, times.grams.block_count))


def _choose(
    wide: Wide, divisions: Divisions, start: float | None = None, kinds: Sequence[type[Term]] = SIGNED_TERMS
) -> ModelChoice:
    """Choose families, zeros, couplings, terms of the position, signs and strength.

    Args:
        wide: all candidate columns.
        divisions: the data.
        start: strength from which the search for the strength starts, of an earlier choice; None: the better of the
            coarse ones.
        kinds: terms whose signs are tried to be free.
    """
    validation = divisions.times
    reference = validation.errors(wide.reference)
    families, strength, tried = _choose_families(wide, validation, reference)
    zeros, rows = find_zeros(wide, validation, Candidate(wide.columns_of(families), strength), reference)
    if zeros:
        validation = validation.with_zeros(zeros, None if wide.estimator.weights else wide.reference)
        families, strength, tried = _choose_families(wide, validation, reference)
    tried += rows
    divisions = divisions.with_times(validation)
    couplings, rows = _choose_couplings(wide, divisions, families, strength, reference)
    tried += rows
    positions, rows = choose_positions(wide, divisions, families, couplings, strength)
    tried += rows
    columns = wide.columns_of(families, couplings, positions)
    validation, rows = free_signs(wide, validation, Candidate(columns, strength), reference, kinds)
    divisions = divisions.with_signs(validation)
    tried += rows
    strength, rows = choose_strength(wide, validation, columns, reference, start or strength)
    names = tuple(family.name for family in families)
    return ModelChoice(divisions, Candidate(columns, strength), names, couplings, positions, (*tried, *rows))


def _choose_families(
    wide: Wide, validation: CrossValidation, reference: Array
) -> tuple[list[Family], float, list[Tried]]:
    """The nested candidate with the least loss, and what pays beyond it; its strength, and the alternatives."""
    nested = [family for family in wide.families if not family.must_pay]
    found = [wide.least_loss(validation, wide.columns_of(nested[:n]), reference) for n in range(len(nested) + 1)]
    best = min(range(len(found)), key=lambda place: found[place][0])
    tried = [Tried("terms", SIMPLE.name, found[0][0], chosen=True)]
    for count, family in enumerate(nested, start=1):
        loss, _, errors = found[count]
        row = validation.weigh("terms", family.name, found[count - 1][2], errors, loss=loss)
        tried.append(replace(row, required=np.nan, chosen=count <= best))
    families, (_, strength, errors) = nested[:best], found[best]
    for family in wide.families:
        if family.must_pay:
            loss, other, after = wide.least_loss(validation, wide.columns_of([*families, family]), reference)
            row = validation.weigh("terms", family.name, errors, after, loss=loss)
            tried.append(replace(row, chosen=row.pays))
            if row.pays:
                families, strength, errors = [*families, family], other, after
    return families, strength, tried if wide.families else []


def _choose_couplings(
    wide: Wide,
    divisions: Divisions,
    families: Sequence[Family],
    strength: float,
    reference: Array,
) -> tuple[tuple[str, ...], list[Tried]]:
    """The coupling that pays most, and then another, and the alternatives."""
    taken: tuple[str, ...] = ()
    tried: list[Tried] = []
    for _ in range(MAX_COUPLINGS):
        left = [coupling.name for coupling in wide.couplings if coupling.name not in taken]
        before = errors_of(Candidate(wide.columns_of(families, taken), strength))
        rows = []
        for name in left:
            after = errors_of(Candidate(wide.columns_of(families, [*taken, name]), strength))
            loss = compute_relative_loss(after(divisions.times), reference)
            rows.append(divisions.weigh("coupling", name, before, after, len(left), loss))
        paying = [row for row in rows if row.pays]
        best = max(paying, key=lambda row: row.gain, default=None)
        tried += [replace(row, chosen=row is best) for row in rows]
        if best is None:
            break
        taken = (*taken, best.name)
    return taken, tried


def _choose_without(wide: Wide, divisions: Divisions, block: int, first: ModelChoice) -> BlockModel:
    """The whole choice, and its fit, without a block; see `_choose`."""
    choice = _choose(wide, divisions.without(block), first.candidate.strength, FREED_TERMS)
    return _fit_block(wide, choice.validation, choice.candidate, block)


def _fit_block(wide: Wide, others: CrossValidation, candidate: Candidate, block: int) -> BlockModel:
    """Fit of a model without a block, which `others` do not contain."""
    values, free = (wide.consistent(others, candidate, links=links) for links in (True, False))
    columns = np.flatnonzero((values != 0.0) | (free != 0.0))
    zeros = estimate_zeros(others, values) if others.zeros else None
    return BlockModel(block, columns, values[columns], free[columns], zeros)
