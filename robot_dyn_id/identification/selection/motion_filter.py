# SPDX-License-Identifier: Apache-2.0
"""Choice of the motion filter, of the source of the velocities, and of the size of the prior bodies."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.cores import map_in_order
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.cross_validation import Candidate, compute_relative_loss
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.families import BEFORE_LOAD
from robot_dyn_id.identification.selection.options import Options
from robot_dyn_id.identification.selection.wide import Wide
from robot_dyn_id.signals.blocks import Blocks
from robot_dyn_id.signals.trials import FilteredTrials

MOTION_CUTOFF_RATIOS = (1.0, 0.4, 0.6, 1.6)
"""Cut-off frequencies of the motion filter that are tried, relative to that of the regression filter; the first is the
default."""

HIGHEST_CUTOFF_PER_RATE = 0.4
"""Highest cut-off of the motion filter that is tried, as a share of the sample rate."""

MAX_VELOCITY_ERROR = 0.05
"""Largest error of the size of recorded velocities that are tried, a ratio."""

MAX_VELOCITY_LAG_PERIODS = 0.05
"""Largest delay of recorded velocities that are tried, in periods of the cut-off."""

_SOURCES = {True: "recorded", False: "derived"}


def choose_motion_filter(
    trials: FilteredTrials, wide: Wide, blocks: Blocks, options: Options
) -> tuple[FilteredTrials, BodyPrior, Array, tuple[Tried, ...]]:
    """Choose motion filter and source of velocities at a fixed regression filter, so that errors are comparable.

    Args:
        trials: an excerpt of the training data.
        wide: columns of the first fit.
        blocks: division of the training data.
        options: what may be chosen.

    Returns:
        The trials with the choice, the prior in the size that the efforts show, the bodies of the first fit, shape
        (10 b,), and the alternatives.
    """
    highest = HIGHEST_CUTOFF_PER_RATE * trials.plan.rate / trials.plan.low_pass.cutoff
    ratios = (
        [ratio for ratio in MOTION_CUTOFF_RATIOS if ratio <= max(1.0, highest)] if options.motion_filter else [None]
    )
    recorded = trials.plan.recorded_velocity
    both = options.velocity and _has_comparable_velocity(trials)
    sources = (recorded, not recorded) if both else (recorded,)
    columns = wide.columns_of([family for family in wide.families if family.name in BEFORE_LOAD])
    filters = [with_motion_filter(trials, ratio, source) for source in sources for ratio in ratios]
    grams = wide.multiply(filters[0], blocks)
    sizes: tuple[Tried, ...] = ()
    if options.prior is None and options.estimator.size == 1.0:
        wide, sizes = _choose_size(wide, grams, columns)
    first = wide.judge(grams)
    reference = first.errors(wide.reference)

    def judge(filtered: FilteredTrials) -> tuple[float, Array]:
        """Loss with a filter, and the bodies."""
        validation = first if filtered is filters[0] else first.on(wide.multiply(filtered, blocks))
        loss, strength, _ = wide.least_loss(validation, columns, reference)
        return loss, wide.consistent(validation, Candidate(columns, strength), all_rows=True)[: wide.inertial]

    with closing(map_in_order(judge, filters)) as results:
        found = [
            (loss, filtered, bodies, f"{plan.motion_pass.cutoff:.3g} Hz, {_SOURCES[plan.recorded_velocity]} velocity")
            for (loss, bodies), filtered in zip(results, filters, strict=True)
            for plan in (filtered.plan,)
        ]
    best = min(range(len(found)), key=lambda place: found[place][0])
    tried = tuple(
        Tried("motion_filter", name, loss, chosen=place == best) for place, (loss, _, _, name) in enumerate(found)
    )
    return found[best][1], wide.prior, found[best][2], (*sizes, *(tried if len(found) > 1 else ()))


def _has_comparable_velocity(trials: FilteredTrials) -> bool:
    """Whether recorded velocities are those of the positions, but for a delay that is short against the filter."""
    surveyed = trials.survey
    moving = surveyed.bandwidth > 0.0
    late = np.abs(surveyed.velocity_lag) * trials.plan.low_pass.cutoff
    agrees = (np.abs(surveyed.velocity_gain - 1.0) < MAX_VELOCITY_ERROR) & (late < MAX_VELOCITY_LAG_PERIODS)
    return bool(surveyed.has_velocity and agrees[moving].all())


def with_motion_filter(trials: FilteredTrials, ratio: float | None, recorded: bool | None = None) -> FilteredTrials:
    """The same trials with another motion filter, relative to the regression filter, and source of velocities.

    Args:
        trials: the trials.
        ratio: cut-off of the motion filter over that of the regression filter; None: the present one.
        recorded: whether the recorded velocities are used; None: as at present.
    """
    plan = trials.plan
    cutoff = plan.motion_pass.cutoff if ratio is None else ratio * plan.low_pass.cutoff
    return trials.with_motion(cutoff, plan.recorded_velocity if recorded is None else recorded)


def _choose_size(wide: Wide, grams: BlockGrams, columns: Integers) -> tuple[Wide, tuple[Tried, ...]]:
    """Prior bodies as they are given, or as heavy as the efforts show where that pays.

    Those that are made from geometry are as heavy as the efforts show: ratings do not weigh them.
    """
    size = wide.find_size(grams)
    other = wide.with_prior_size(size)
    if not wide.prior.weighed:
        return other, ()
    reference = wide.judge(grams).errors(wide.reference)
    (one, validation), (changed, _) = (each.find_consistent(grams, columns, reference) for each in (wide, other))
    loss = compute_relative_loss(changed, reference)
    row = validation.weigh("prior_size", f"{size:.3g}", one, changed, loss=loss)
    return other if row.pays else wide, (replace(row, chosen=row.pays),)
