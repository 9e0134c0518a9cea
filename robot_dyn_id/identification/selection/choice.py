# SPDX-License-Identifier: Apache-2.0
"""Choice of a model by blocked cross-validation, from passes over an excerpt for motion filters and two for terms.

Families of terms, zeros of the efforts, couplings and a tilt of the base are compared by fits with signs, the strength
of the prior by fits that are physically consistent as well, all on Gram matrices of the blocks. The whole choice among
terms, zeros, couplings, signs and strengths is repeated without each block in turn, so that the error on that block is
one of data that nothing was chosen from; the motion filter, the load, the tilt and the weights of the joints are those
of all data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.cores import map_in_order
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.consistency import flag_not_negative
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coupling, Term
from robot_dyn_id.estimators import Consistent, Estimator
from robot_dyn_id.estimators.consistent_fit import fit_consistent
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.diagnosis import GRAVITY_DIRECTION
from robot_dyn_id.identification.diagnosis.health import VELOCITY_MISMATCH
from robot_dyn_id.identification.diagnosis.residuals import EFFORT_OFFSET_DRIFTS, OFFSET_SHARE
from robot_dyn_id.identification.fit.shared_motion import find_shared_motion
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.cross_validation import (
    Candidate,
    CrossValidation,
    Pull,
    compute_joint_gains,
    compute_relative_loss,
)
from robot_dyn_id.identification.selection.families import (
    BEFORE_LOAD,
    FREED_TERMS,
    REFERENCE,
    SIGNED_TERMS,
    SIMPLE,
    Family,
    list_couplings,
    list_families,
)
from robot_dyn_id.identification.selection.tilt import DIRECTIONS, TiltedRegressor, tilt_robot
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.signals.blocks import Blocks
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.signals.zeros import FEWEST_RECORDINGS, EffortZeros

BASE_TILTED = Definition(
    "base_tilted",
    Section.ESTIMATES,
    "info",
    "A small tilt of the base against the gravity vector that was given explains the torques significantly better "
    "in cross-validation; the model has the tilted gravity vector.",
    "check the mounting of the robot, and give the gravity vector of the message to other tools",
    check="gravity",
)

SIGN_CONTRADICTED = Definition(
    "sign_contradicted",
    Section.VALIDATION,
    "info",
    "Friction or rotor inertia of free sign predicts held-out blocks better, by more than 5 % of the squared "
    "error and three standard errors: delays, sensors behind the friction, or their hysteresis. Signs of viscous "
    "and Coulomb friction are free then; friction that drives a joint excludes forward simulation "
    "(`friction_not_passive`). Rotor inertia stays positive, so that the mass matrix is positive definite.",
    "check the delays of the efforts, and which torque the sensors measure",
)

EXPLAINED_BY_CHOICE = frozenset({VELOCITY_MISMATCH.code, GRAVITY_DIRECTION.code})
"""Findings about data that a choice may explain, see `Selection.explains`."""

MOTION_CUTOFF_RATIOS = (1.0, 0.4, 0.6, 1.6)
"""Cut-off frequencies of the motion filter that are tried, relative to that of the regression filter; the first is the
default."""

COMPARED_SAMPLES = 100_000
"""Recorded samples that motion filters are compared on, of long recordings those of an excerpt: each needs a pass."""

HIGHEST_CUTOFF_PER_RATE = 0.4
"""Highest cut-off of the motion filter that is tried, as a share of the sample rate."""

MAX_VELOCITY_ERROR = 0.05
"""Largest error of the size of recorded velocities that are tried, a ratio."""

MAX_VELOCITY_LAG_PERIODS = 0.05
"""Largest delay of recorded velocities that are tried, in periods of the cut-off."""

COARSE_STRENGTHS = (1.0, 100.0)
"""Strengths of the prior at which terms and motion filters are compared: the better one counts."""

STRENGTH_STEP = 10.0
"""Ratio of two strengths of the prior that are tried."""

STRENGTH_RANGE = (0.01, 1000.0)
"""Weakest and strongest prior that is tried."""

GIVEN_PRIOR_STRENGTH = 300.0
"""Strength of a prior that the user asks for, to extrapolate to motions that the data do not show."""

LEAST_GAIN = 0.05
"""Least share of the squared error that a coupling or a tilt of the base removes."""

LEAST_GAIN_DEVIATIONS = 2.0
"""Least gain of a coupling or a tilt of the base, in standard errors."""

SURE_DEVIATIONS = 3.0
"""Least gain, in standard errors, of what is tried on every joint or recording: zeros of the efforts, free signs of
friction or rotor inertia, corrections."""

MAX_COUPLINGS = 2
"""Most couplings that are taken."""

LEAST_NORM_RATIO = 0.01
"""Least norm of a column, as a share of the largest of the same term, whose term stays although it is zero."""

_SOURCES = {True: "recorded", False: "derived"}

MAX_TILT_DEG = 10.0
"""Largest tilt of the base that is a small error of the mounting [deg]; a larger one is a wrong gravity vector."""


@dataclass(frozen=True)
class Tried:
    """One alternative that was compared with others.

    Attributes:
        step: what was chosen: `prior_size`, `motion_filter`, `terms`, `effort_zero`, `coupling`, `sign`, `base_tilt` or
            `prior_strength`.
        name: name of the alternative.
        loss: cross-validated error relative to the simplest model, usually with rotor inertia, a ratio.
        gain: share of the weighted squared error that it removes against the alternative before; NaN for the first.
        deviation: standard error of the gain over the blocks.
        chosen: whether it is a part of the model.
    """

    step: str
    name: str
    loss: float
    gain: float
    deviation: float
    chosen: bool

    def is_significant(self, deviations: float) -> bool:
        """Whether the gain is above `LEAST_GAIN` and a number of its standard errors."""
        return self.gain > max(LEAST_GAIN, deviations * self.deviation)


@dataclass(frozen=True)
class ModelChoice:
    """Columns and strength that were chosen from some blocks.

    Attributes:
        validation: the blocks, with the joints whose efforts have a zero of their own in each recording, and the
            columns whose signs are not free.
        candidate: columns and strength.
        families: names of the families.
        couplings: names of the couplings.
        tried: all alternatives.
    """

    validation: CrossValidation
    candidate: Candidate
    families: tuple[str, ...]
    couplings: tuple[str, ...]
    tried: tuple[Tried, ...]


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


@dataclass(frozen=True)
class Options:
    """Parts of the model that may be chosen.

    Attributes:
        terms: terms of every joint that are fixed; None: families are chosen.
        couplings: couplings that are fixed.
        estimator: options of the fit; a strength and weights that are given are kept.
        motion_filter: whether the motion filter is chosen.
        velocity: whether the source of the velocities is chosen.
        base_tilt: whether a small tilt of the base is estimated.
        reduced: whether only the families that extrapolate are tried.
        prior: prior bodies; None: those of the URDF or its geometry.
        without_blocks: whether the choice is repeated without each block, for cross-validation; otherwise only the fit
            of the model that was chosen is, for its residuals.
    """

    terms: tuple[Term, ...] | None = None
    couplings: tuple[Coupling, ...] = ()
    estimator: Consistent = field(default_factory=Consistent)
    motion_filter: bool = True
    velocity: bool = True
    base_tilt: bool = True
    reduced: bool = False
    prior: BodyPrior | None = None
    without_blocks: bool = True

    def families(self, trials: FilteredTrials) -> tuple[Family, ...]:
        """Families that are tried."""
        if self.terms is not None:
            return ()
        found = list_families(trials.survey.has_temperature)
        return tuple(family for family in found if family.extrapolates) if self.reduced else found

    @property
    def simple_terms(self) -> tuple[Term, ...]:
        """Terms of every candidate."""
        return SIMPLE.terms if self.terms is None else self.terms


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
    blocks = _with_motion_filter(trials, min(MOTION_CUTOFF_RATIOS)).blocks()
    progress(Stage("choosing the motion filter"))
    excerpt = trials.excerpt(blocks, COMPARED_SAMPLES)
    given = (options.prior or BodyPrior.from_model(model)).scaled(options.estimator.size)
    first = _Wide.from_options(model, given, options, excerpt, bodies=None)
    excerpt, prior, bodies, tried = _choose_motion_filter(excerpt, first, blocks, options)
    trials = trials.with_motion(excerpt.plan.motion_pass.cutoff, excerpt.plan.recorded_velocity)
    progress(Stage("comparing models"))
    wide = _Wide.from_options(model, prior, options, trials, bodies)
    bodies = wide.fit_bodies(wide.validate(excerpt, blocks))  # without load-dependent friction they had to replace it
    wide = _Wide.from_options(model, prior, options, trials, bodies)
    validation = wide.validate(trials, blocks)
    choice = wide.choose(validation)
    findings: tuple[Finding, ...] = ()
    if wide.tilt is not None:
        tilt, row = wide.find_tilt(choice)
        tried += (row,)
        if tilt is not None:
            turned = tilt_robot(model, tilt)
            findings = (_report_tilt(model, turned, row),)
            wide = _Wide.from_options(turned, prior, options, trials, bodies)
            validation = wide.validate(trials, blocks)
            choice = wide.choose(validation, choice.candidate.strength)
    block_models = []

    def without(block: int) -> BlockModel:
        if options.without_blocks:
            return wide.without(validation, block, choice)
        return wide.fit_block(choice.validation.without(block), choice.candidate, block)

    with closing(map_in_order(without, validation.blocks)) as results:
        for number in range(len(validation.blocks)):
            if options.without_blocks:
                progress(Stage("repeating the choice without each block", number, len(validation.blocks)))
            block_models.append(next(results))
    validation = choice.validation
    final = wide.consistent(validation, choice.candidate, all_rows=True)
    if validation.zeros:
        zeros = wide.estimate_zeros(validation, final, all_rows=True)
        trials = replace(trials, zeros=zeros)
        findings += (_report_zeros(model, zeros, choice.tried, validation.grams.effort_variation()),)
    regressor = wide.prune(validation, choice.candidate, final)
    signed = wide.list_signed(validation, regressor)
    findings += _report_signs(choice.tried, dict(zip(wide.regressor.names, final.tolist(), strict=True)), signed)
    return Selection(
        trials=trials,
        regressor=regressor,
        strength=choice.candidate.strength,
        size=options.estimator.size * float(prior.masses[0] / given.masses[0]),
        weights=validation.weights,
        tried=(*tried, *choice.tried),
        left_out=tuple(f.name for f in options.families(trials) if f.name not in choice.families),
        blocks=blocks,
        wide=wide.without_tilt,
        block_models=tuple(block_models),
        velocity_chosen=options.velocity,
        signed=signed,
        findings=findings,
    )


def measure_payoff(before: FilteredTrials, after: FilteredTrials, model: RobotModel) -> Tried:
    """Share of the squared error of the whole model in a block that it was not fitted to, that a correction removes.

    The whole model has free bodies, and all friction that needs no load: hysteresis that looks like a delay is in it.

    Args:
        before: the trials without the correction.
        after: the same trials with it; their time stamps are the same.
        model: the robot.

    Raises:
        InputError: trials that are too short for cross-validation.
    """
    blocks = before.blocks()
    excerpts = [trials.excerpt(blocks, COMPARED_SAMPLES) for trials in (before, after)]
    wide, grams = _combine(excerpts[0], model, blocks)
    columns, first = wide.columns_of(wide.families), wide.judge(grams)
    corrected = wide.validate(excerpts[1], blocks).with_weights(first.weights)
    reference = first.errors(wide.reference)
    (_, _, errors), (loss, _, after_errors) = (
        wide.least_loss(validation, columns, reference) for validation in (first, corrected)
    )
    gain, deviation = first.typical_gain(errors, after_errors)
    return Tried("correction", "", loss, gain, deviation, False)


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
    wide, grams = _combine(trials.excerpt(blocks, COMPARED_SAMPLES), model, blocks)
    validation = wide.judge(grams)
    errors, _ = wide.find_consistent(grams, wide.columns_of(wide.families), validation.errors(wide.reference))
    counts = np.maximum(grams.block_counts(range(grams.block_count)), 1.0)
    variation = grams.effort_variation()
    unknown = np.full(len(variation), np.nan)
    return np.asarray(np.divide(np.sqrt(errors.sum(axis=0) / counts), variation, out=unknown, where=variation > 0.0))


def _combine(trials: FilteredTrials, model: RobotModel, blocks: Blocks) -> tuple[_Wide, BlockGrams]:
    """Free bodies with all friction that needs no load, and the products of their columns."""
    wide = _Wide.from_options(model, BodyPrior.from_model(model), Options(), trials, bodies=None)
    grams = wide.multiply(trials, blocks)
    return wide.with_prior_size(wide.find_size(grams)), grams


def _choose_motion_filter(
    trials: FilteredTrials, wide: _Wide, blocks: Blocks, options: Options
) -> tuple[FilteredTrials, BodyPrior, Array, tuple[Tried, ...]]:
    """Choose motion filter and source of velocities at a fixed regression filter, so that errors are comparable.

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
    filters = [_with_motion_filter(trials, ratio, source) for source in sources for ratio in ratios]
    grams = wide.multiply(filters[0], blocks)
    sizes: tuple[Tried, ...] = ()
    if options.prior is None and options.estimator.size == 1.0:
        wide, sizes = wide.choose_size(grams, columns)
    first = wide.judge(grams)
    reference, weights = first.errors(wide.reference), first.weights

    def judge(filtered: FilteredTrials) -> tuple[float, Array]:
        """Loss with a filter, and the bodies."""
        validation = first if filtered is filters[0] else wide.validate(filtered, blocks).with_weights(weights)
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
        Tried("motion_filter", name, loss, np.nan, np.nan, place == best)
        for place, (loss, _, _, name) in enumerate(found)
    )
    return found[best][1], wide.prior, found[best][2], (*sizes, *(tried if len(found) > 1 else ()))


def _has_comparable_velocity(trials: FilteredTrials) -> bool:
    """Whether recorded velocities are those of the positions, but for a delay that is short against the filter."""
    surveyed = trials.survey
    moving = surveyed.bandwidth > 0.0
    late = np.abs(surveyed.velocity_lag) * trials.plan.low_pass.cutoff
    agrees = (np.abs(surveyed.velocity_gain - 1.0) < MAX_VELOCITY_ERROR) & (late < MAX_VELOCITY_LAG_PERIODS)
    return bool(surveyed.has_velocity and agrees[moving].all())


def _with_motion_filter(trials: FilteredTrials, ratio: float | None, recorded: bool | None = None) -> FilteredTrials:
    """The same trials with another motion filter, relative to the regression filter, and source of velocities."""
    plan = trials.plan
    cutoff = plan.motion_pass.cutoff if ratio is None else ratio * plan.low_pass.cutoff
    return trials.with_motion(cutoff, plan.recorded_velocity if recorded is None else recorded)


def _report_tilt(model: RobotModel, turned: RobotModel, row: Tried) -> Finding:
    cosine = model.gravity @ turned.gravity / np.linalg.norm(model.gravity) ** 2
    degrees = float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    vector = " ".join(f"{component:.4g}" for component in turned.gravity)
    message = (
        f"the base is tilted by {degrees:.2f} deg against the gravity vector that was given: this removes "
        f"{row.gain:.0%} (+- {row.deviation:.0%}) of the squared error; the model has the gravity vector {vector}"
    )
    return BASE_TILTED.found(message)


def _report_signs(tried: Sequence[Tried], values: Mapping[str, float], signed: Sequence[str]) -> tuple[Finding, ...]:
    """Finding about friction and rotor inertia that data contradict unless their signs are free."""
    found = []
    for row in tried:
        if row.step == "sign" and row.is_significant(SURE_DEVIATIONS):
            text = f"of {row.name.replace('_', ' ')} removes {row.gain:.0%} (+- {row.deviation:.0%})"
            found.append(text + (" and is taken" if row.chosen else ", and is not taken: inertia is positive"))
    if not found:
        return ()
    negative = [f"{name} {values[name]:.3g}" for name in signed if values[name] < 0.0]
    message = f"of the squared error, a free sign {'; '.join(found)}"
    return (SIGN_CONTRADICTED.found(message + (f"; negative: {', '.join(negative)}" if negative else "")),)


def _report_zeros(model: RobotModel, zeros: EffortZeros, tried: Sequence[Tried], variation: Array) -> Finding:
    """Finding about zeros that differ; a warning where they differ by a considerable share of the effort."""
    gains = {row.name: row.gain for row in tried if row.step == "effort_zero"}
    deviations, units = zeros.deviations, model.effort_units
    places = np.flatnonzero(zeros.joints).tolist()
    names = [model.joint_names[j] for j in places]
    listed = ", ".join(
        f"{name} {deviations[j]:.3g} {units[j]} ({gains[name]:.0%} of its squared error)"
        for j, name in zip(places, names, strict=True)
    )
    message = (
        f"the zero of the effort differs between recordings, with a standard deviation of, joint {listed}: each "
        "recording was fitted with a zero of its own, and the model has the mean; the held-out errors are those with "
        "known zeros"
    )
    large = bool((deviations > OFFSET_SHARE * variation).any())
    return EFFORT_OFFSET_DRIFTS.found(message, names, "warning" if large else "info")


@dataclass(frozen=True)
class _Wide:
    """Regressor of all candidate columns, and which of them belong to what.

    Attributes:
        regressor: robot and all terms, with the columns of a tilt if it is to be found.
        prior: prior bodies.
        families: families that are tried, in order.
        simple: terms of every candidate.
        couplings: couplings that are tried.
        fixed_couplings: couplings of every candidate.
        tilt: columns of the tilt; None if it is not to be found.
        estimator: options of the fit.
        terms_given: whether the simple terms are those that were given.
    """

    regressor: Regressor
    prior: BodyPrior
    families: tuple[Family, ...]
    simple: tuple[Term, ...]
    couplings: tuple[Coupling, ...]
    fixed_couplings: tuple[Coupling, ...]
    tilt: Integers | None
    estimator: Consistent
    terms_given: bool

    @classmethod
    def from_options(
        cls, model: RobotModel, prior: BodyPrior, options: Options, trials: FilteredTrials, bodies: Array | None
    ) -> _Wide:
        """All candidates; without bodies of a first fit those that need no load, no tilt and no couplings."""
        families = options.families(trials)
        if bodies is None:
            families = tuple(family for family in families if family.name in BEFORE_LOAD)
        choosing = options.terms is None and not options.reduced and bodies is not None
        couplings: tuple[Coupling, ...] = ()
        if choosing and not options.couplings:
            together = find_shared_motion(trials)
            number = {name: place for place, name in enumerate(model.joint_names)}
            couplings = tuple(
                coupling
                for coupling in list_couplings(model)
                if not together[tuple(number[joint] for joint, _ in coupling.weights)]
            )
        terms = [*options.simple_terms, *(term for family in families for term in family.terms)]
        placed = place_terms_on_joints(model, terms, (*options.couplings, *couplings))
        load = () if bodies is None else tuple(bodies.tolist())
        tilt = None
        if bodies is not None and options.base_tilt and model.gravity.any():
            regressor: Regressor = TiltedRegressor(model, placed, load, load)
            tilt = np.arange(len(regressor.names) - DIRECTIONS, len(regressor.names))
        else:
            regressor = Regressor(model, placed, load)
        return cls(
            regressor=regressor,
            prior=prior,
            families=families,
            simple=options.simple_terms,
            couplings=couplings,
            fixed_couplings=options.couplings,
            tilt=tilt,
            estimator=options.estimator,
            terms_given=options.terms is not None,
        )

    @property
    def inertial(self) -> int:
        """Number of inertial columns."""
        return self.prior.bodies.size

    @property
    def without_tilt(self) -> Regressor:
        """The regressor without the columns of the tilt."""
        return Regressor(self.regressor.model, self.regressor.terms, self.regressor.load_parameters)

    @cached_property
    def pull(self) -> Pull:
        """Pull of the inertial parameters."""
        rest = np.zeros(len(self.regressor.names) - self.inertial)
        return Pull(np.append(self.prior.bodies.ravel(), rest), np.append(self.prior.scales.ravel() ** -2.0, rest))

    @cached_property
    def bounded(self) -> Mask:
        """Columns whose parameters are not negative, shape (c,)."""
        mask = np.zeros(len(self.regressor.names), dtype=bool)
        of_terms = flag_not_negative(self.without_tilt)
        mask[self.inertial : self.inertial + len(of_terms)] = of_terms
        return mask & ~np.isin(self.regressor.names, self.estimator.signed)

    @property
    def reference(self) -> Candidate:
        """Rigid bodies, simple friction and rotor inertia, weakly pulled."""
        return Candidate(self.columns_of([f for f in self.families if f.name in REFERENCE]), COARSE_STRENGTHS[0])

    @property
    def fixed_names(self) -> frozenset[str]:
        """Names of the couplings of every candidate."""
        return frozenset(coupling.name for coupling in self.fixed_couplings)

    def columns_of(self, families: Sequence[Family], couplings: Sequence[str] = ()) -> Integers:
        """Columns of the rigid bodies, of the simple terms, and of some families and couplings."""
        names = {term.name for term in self.simple} | {term.name for family in families for term in family.terms}
        coupled = {*couplings, *(coupling.name for coupling in self.fixed_couplings)}
        every = {coupling.name for coupling in (*self.couplings, *self.fixed_couplings)}
        taken = [
            self.inertial + number
            for number, column in enumerate(self.regressor.term_columns)
            if (column.coordinate.name in coupled)
            or (column.coordinate.name not in every and column.term.name in names)
        ]
        return np.array([*range(self.inertial), *taken])

    def validate(self, trials: FilteredTrials, blocks: Blocks) -> CrossValidation:
        """Cross-validation on the rows of recordings."""
        return self.judge(self.multiply(trials, blocks))

    def multiply(self, trials: FilteredTrials, blocks: Blocks) -> BlockGrams:
        """Products of the columns on the rows of recordings."""
        return BlockGrams.from_trials(trials, self.regressor, blocks)

    def find_size(self, grams: BlockGrams) -> float:
        """Factor of the prior bodies that the efforts show."""
        variation = grams.effort_variation()
        weights = 1.0 / np.maximum(variation, 1e-9 * float(variation.max(initial=0.0)) or 1.0)
        return self.prior.find_factor(grams.weighted(weights).sum(axis=0))

    def with_prior_size(self, factor: float) -> _Wide:
        """The same with prior bodies that are heavier or lighter by a factor."""
        return replace(self, prior=self.prior.scaled(factor))

    def choose_size(self, grams: BlockGrams, columns: Integers) -> tuple[_Wide, tuple[Tried, ...]]:
        """Prior bodies as they are given, or as heavy as the efforts show where that predicts held-out blocks better.

        Those that are made from geometry are as heavy as the efforts show: ratings do not weigh them.

        Args:
            grams: products of the columns.
            columns: columns of the models that are compared.
        """
        size = self.find_size(grams)
        other = self.with_prior_size(size)
        if not self.prior.weighed:
            return other, ()
        reference = self.judge(grams).errors(self.reference)
        (one, validation), (changed, _) = (wide.find_consistent(grams, columns, reference) for wide in (self, other))
        gain, deviation = validation.relative_gain(one, changed)
        row = Tried("prior_size", f"{size:.3g}", compute_relative_loss(changed, reference), gain, deviation, False)
        taken = row.is_significant(LEAST_GAIN_DEVIATIONS)
        return other if taken else self, (replace(row, chosen=taken),)

    def find_consistent(self, grams: BlockGrams, columns: Integers, reference: Array) -> tuple[Array, CrossValidation]:
        """Out-of-fold errors of physically consistent fits at the better coarse strength, and their cross-validation.

        Args:
            grams: products of the columns.
            columns: columns of the model.
            reference: errors of the reference model, shape (blocks, n).
        """
        validation = self.judge(grams)
        _, strength, _ = self.least_loss(validation, columns, reference)
        return self._consistent_errors(validation, Candidate(columns, strength)), validation

    def judge(self, grams: BlockGrams) -> CrossValidation:
        """Cross-validation on products of the columns."""
        numbers = tuple(range(grams.block_count))
        found = CrossValidation.from_grams(grams, self.pull, self.bounded, self.reference, numbers)
        given = self.estimator.weights
        return found.with_weights(np.array(given)) if given else found

    def least_loss(
        self, validation: CrossValidation, columns: Integers, reference: Array
    ) -> tuple[float, float, Array]:
        """Least loss over the coarse strengths, that strength, and the errors."""
        strengths = COARSE_STRENGTHS if self.estimator.strength is None else (self.estimator.strength,)
        errors = [validation.errors(Candidate(columns, strength)) for strength in strengths]
        losses = [compute_relative_loss(of_strength, reference) for of_strength in errors]
        best = int(np.argmin(losses))
        return losses[best], strengths[best], errors[best]

    def choose(
        self, validation: CrossValidation, start: float | None = None, kinds: Sequence[type[Term]] = SIGNED_TERMS
    ) -> ModelChoice:
        """Choose families, zeros, couplings, signs and strength from the blocks of a cross-validation.

        Args:
            validation: the blocks.
            start: strength from which the search for the strength starts, of an earlier choice; None: the better coarse
                one.
            kinds: terms whose signs are tried to be free.
        """
        reference = validation.errors(self.reference)
        families, strength, errors, tried = self._choose_families(validation, reference)
        zeros, rows_of_zeros = self._find_zeros(validation, Candidate(self.columns_of(families), strength), reference)
        if zeros:
            validation = validation.with_zeros(zeros, None if self.estimator.weights else self.reference)
            families, strength, errors, tried = self._choose_families(validation, reference)
        tried += rows_of_zeros
        names: list[str] = []
        for _ in range(MAX_COUPLINGS):
            rows = list(self._try_couplings(validation, families, names, strength, (errors, reference)))
            if not rows:
                break
            row, after = max(rows, key=lambda pair: pair[0].gain)
            chosen = row.gain > max(LEAST_GAIN, LEAST_GAIN_DEVIATIONS * row.deviation)
            tried += [replace(other, chosen=chosen and other is row) for other, _ in rows]
            if not chosen:
                break
            names.append(row.name)
            errors = after
        columns = self.columns_of(families, names)
        validation, rows_of_signs = self._free_signs(validation, Candidate(columns, strength), reference, kinds)
        tried += rows_of_signs
        strength, rows_of_strength = self._choose_strength(validation, columns, reference, start or strength)
        return ModelChoice(
            validation,
            Candidate(columns, strength),
            tuple(family.name for family in families),
            tuple(names),
            (*tried, *rows_of_strength),
        )

    def _choose_families(
        self, validation: CrossValidation, reference: Array
    ) -> tuple[list[Family], float, Array, list[Tried]]:
        """The nested candidate with the least loss, and what is significant beyond it."""
        nested = [family for family in self.families if family.least_deviations is None]
        found = [
            self.least_loss(validation, self.columns_of(nested[:count]), reference) for count in range(len(nested) + 1)
        ]
        best = min(range(len(found)), key=lambda place: found[place][0])
        tried = []
        for count, (loss, _, errors) in enumerate(found):
            name = nested[count - 1].name if count else SIMPLE.name
            bought = validation.relative_gain(found[count - 1][2], errors) if count else (np.nan, np.nan)
            tried.append(Tried("terms", name, loss, *bought, count <= best))
        families, (_, strength, errors) = nested[:best], found[best]
        for family in self.families:
            if family.least_deviations is not None:
                loss, other, after = self.least_loss(validation, self.columns_of([*families, family]), reference)
                gain, deviation = validation.relative_gain(errors, after)
                chosen = gain > family.least_deviations * deviation
                tried.append(Tried("terms", family.name, loss, gain, deviation, chosen))
                if chosen:
                    families, strength, errors = [*families, family], other, after
        return families, strength, errors, tried if self.families else []

    def _free_signs(
        self, validation: CrossValidation, candidate: Candidate, reference: Array, kinds: Sequence[type[Term]]
    ) -> tuple[CrossValidation, list[Tried]]:
        """Cross-validation with free signs of the terms that are significantly better so, and rows.

        The sign of rotor inertia is kept: with another one the mass matrix would not be positive definite.
        """
        rows: list[Tried] = []
        errors = validation.errors(candidate)
        for kind in () if self.terms_given else kinds:
            own = self.inertial + np.array(
                [n for n, column in enumerate(self.regressor.term_columns) if isinstance(column.term, kind)], dtype=int
            )
            own = np.intersect1d(own[validation.bounded[own]], candidate.columns)
            if not np.any(validation.fit(candidate)[own] == 0.0):  # without a bound that holds nothing would change
                continue
            bounded = validation.bounded.copy()
            bounded[own] = False
            free = replace(validation, bounded=bounded)
            after = free.errors(candidate)
            gain, deviation = validation.relative_gain(errors, after)
            row = Tried("sign", kind.name, compute_relative_loss(after, reference), gain, deviation, False)
            chosen = row.is_significant(SURE_DEVIATIONS) and kind in FREED_TERMS
            rows.append(replace(row, chosen=chosen))
            if chosen:
                validation, errors = free, after
        return validation, rows

    def list_signed(self, validation: CrossValidation, regressor: Regressor) -> tuple[str, ...]:
        """Names of the columns of a regressor whose signs a cross-validation has freed."""
        freed = self.bounded & ~validation.bounded
        return tuple(
            name for name, one in zip(self.regressor.names, freed, strict=True) if one and name in regressor.names
        )

    def _find_zeros(
        self, validation: CrossValidation, candidate: Candidate, reference: Array
    ) -> tuple[tuple[int, ...], list[Tried]]:
        """Joints whose effort has another zero in each recording, and a row for each joint.

        The zero in a held-out block is that of the other blocks of its recording.
        """
        grams = validation.grams
        if self.terms_given or grams.count_divided(validation.blocks) < FEWEST_RECORDINGS:
            return (), []
        joints = tuple(range(len(validation.weights)))
        before, after = validation.errors(candidate), validation.with_zeros(joints, None).errors(candidate)
        gains, deviations = compute_joint_gains(before, after)
        chosen = gains > np.maximum(LEAST_GAIN, SURE_DEVIATIONS * deviations)
        loss = compute_relative_loss(after, reference)
        columns = self.regressor.model.joint_names, gains.tolist(), deviations.tolist(), chosen.tolist()
        rows = [Tried("effort_zero", name, loss, *figures) for name, *figures in zip(*columns, strict=True)]
        return tuple(np.flatnonzero(chosen).tolist()), rows

    @staticmethod
    def estimate_zeros(validation: CrossValidation, values: Array, *, all_rows: bool = False) -> EffortZeros:
        """Zeros of the efforts in the recordings that are divided into blocks.

        Args:
            validation: the blocks, and the joints whose zeros differ.
            values: parameters of all columns, shape (c,).
            all_rows: whether rows in no block are used too.
        """
        judged = validation.grams.recording_counts[:, list(validation.blocks)].any(axis=(0, 1))
        zeros, counts = validation.find_zeros(values, all_rows=all_rows), validation.count_rows(all_rows=all_rows)
        return EffortZeros(zeros, np.asarray(judged), counts)

    def _try_couplings(
        self,
        validation: CrossValidation,
        families: Sequence[Family],
        taken: Sequence[str],
        strength: float,
        reference_errors: tuple[Array, Array],
    ) -> Iterator[tuple[Tried, Array]]:
        """Alternatives with one more coupling, and their errors."""
        before, reference = reference_errors
        for coupling in self.couplings:
            if coupling.name in taken:
                continue
            columns = self.columns_of(families, [*taken, coupling.name])
            errors = validation.errors(Candidate(columns, strength))
            gain = validation.relative_gain(before, errors)
            yield Tried("coupling", coupling.name, compute_relative_loss(errors, reference), *gain, False), errors

    def _choose_strength(
        self, validation: CrossValidation, columns: Integers, reference: Array, start: float
    ) -> tuple[float, list[Tried]]:
        """Strength with the least loss of physically consistent fits, from a start towards the smaller losses."""
        if self.estimator.strength is not None:
            return self.estimator.strength, []
        losses: dict[float, float] = {}

        def loss(strength: float) -> float:
            if strength not in losses:
                errors = self._consistent_errors(validation, Candidate(columns, strength))
                losses[strength] = compute_relative_loss(errors, reference)
            return losses[strength]

        best = start
        while True:
            around = [best / STRENGTH_STEP, best, best * STRENGTH_STEP]
            inside = [s for s in around if STRENGTH_RANGE[0] * 0.99 <= s <= STRENGTH_RANGE[1] * 1.01]
            least = min(inside, key=loss)
            if least == best:
                break
            best = least
        return best, [
            Tried("prior_strength", f"{strength:g}", losses[strength], np.nan, np.nan, strength == best)
            for strength in sorted(losses)
        ]

    def _consistent_errors(self, validation: CrossValidation, candidate: Candidate) -> Array:
        """Out-of-fold errors of physically consistent fits, shape (blocks, n)."""
        return np.array(
            [
                validation.block_errors(self.consistent(validation, candidate, left_out=block), block)
                for block in validation.blocks
            ]
        )

    def consistent(
        self,
        validation: CrossValidation,
        candidate: Candidate,
        *,
        left_out: int | None = None,
        all_rows: bool = False,
        links: bool = True,
    ) -> Array:
        """Physically consistent parameters of all columns, zero in those that a candidate has not, shape (c,)."""
        bounded = validation.bounded[candidate.columns][self.inertial :]
        floor = self.estimator.floor

        def fit(gram: Array) -> Array:
            return fit_consistent(gram, self.prior, bounded, candidate.strength, links=links, floor=floor).values

        return validation.fitted("links" if links else "free", fit, candidate, left_out, all_rows=all_rows)

    def fit_bodies(self, validation: CrossValidation) -> Array:
        """Bodies of a fit with all families, shape (10 b,)."""
        candidate = Candidate(self.columns_of(self.families), COARSE_STRENGTHS[0])
        return self.consistent(validation, candidate, all_rows=True)[: self.inertial]

    def without(self, validation: CrossValidation, block: int, first: ModelChoice) -> BlockModel:
        """The whole choice, and its fit, without a block; see `choose`."""
        choice = self.choose(validation.without(block), first.candidate.strength, FREED_TERMS)
        return self.fit_block(choice.validation, choice.candidate, block)

    def fit_block(self, others: CrossValidation, candidate: Candidate, block: int) -> BlockModel:
        """Fit of a model without a block, which `others` do not contain."""
        values, free = (self.consistent(others, candidate, links=links) for links in (True, False))
        columns = np.flatnonzero((values != 0.0) | (free != 0.0))
        zeros = self.estimate_zeros(others, values) if others.zeros else None
        return BlockModel(block, columns, values[columns], free[columns], zeros)

    def find_tilt(self, choice: ModelChoice) -> tuple[Array | None, Tried]:
        """Horizontal components of gravity, if they remove a significant part of the error, shape (2,), and the row."""
        assert self.tilt is not None
        validation = choice.validation
        with_tilt = replace(choice.candidate, columns=np.append(choice.candidate.columns, self.tilt))
        before, after = (self._consistent_errors(validation, one) for one in (choice.candidate, with_tilt))
        gain, deviation = validation.relative_gain(before, after)
        components = self.consistent(validation, with_tilt, all_rows=True)[self.tilt]
        gravity = float(np.linalg.norm(self.regressor.model.gravity))
        small = float(np.linalg.norm(components)) < gravity * math.tan(math.radians(MAX_TILT_DEG))
        chosen = small and gain > max(LEAST_GAIN, LEAST_GAIN_DEVIATIONS * deviation)
        name = f"{np.degrees(np.arctan2(np.linalg.norm(components), gravity)):.2f} deg"
        loss = compute_relative_loss(after, validation.errors(self.reference))
        return (components if chosen else None), Tried("base_tilt", name, loss, gain, deviation, chosen)

    def prune(self, validation: CrossValidation, candidate: Candidate, values: Array) -> Regressor:
        """Regressor without the terms that were tried and not taken, or that are zero on a joint that hardly moves.

        Terms of families that were taken stay where their parameters are zero, too: what they may take over from
        others belongs to the uncertainty of these. Terms and couplings that were given stay.
        """
        tried = {coupling.name for coupling in self.couplings}
        given = self.simple if self.terms_given else ()
        taken = np.zeros(len(self.regressor.names), dtype=bool)
        norms = np.sqrt(np.diag(validation.gram(candidate.columns, all_rows=True))[:-1])
        taken[candidate.columns] = (values[candidate.columns] != 0.0) | self._excited(candidate.columns, norms)
        kept, place = [], self.inertial
        for coordinate, term in self.regressor.terms:
            fixed = coordinate.name not in tried and (term in given or coordinate.name in self.fixed_names)
            if fixed or taken[place : place + len(term.symbols)].any():
                kept.append((coordinate, term))
            place += len(term.symbols)
        return Regressor(self.regressor.model, tuple(kept), self.regressor.load_parameters)

    def _excited(self, columns: Integers, norms: Array) -> Mask:
        """Columns of terms whose norm is at least `LEAST_NORM_RATIO` of the largest of the same term, shape (p,)."""
        terms = [
            self.regressor.term_columns[place - self.inertial].term.name if place >= self.inertial else ""
            for place in columns.tolist()
        ]
        largest: dict[str, float] = {}
        for term, norm in zip(terms, norms.tolist(), strict=True):
            largest[term] = max(largest.get(term, 0.0), norm)
        least = LEAST_NORM_RATIO * np.array([largest[term] for term in terms])
        return np.array([bool(term) for term in terms]) & (norms > least)
