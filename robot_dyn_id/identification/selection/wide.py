# SPDX-License-Identifier: Apache-2.0
"""Regressor of all candidate columns, and fits of some of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.consistency import flag_not_negative
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coupling, Term
from robot_dyn_id.estimators import Consistent
from robot_dyn_id.estimators.consistent_fit import fit_consistent
from robot_dyn_id.identification.fit.shared_motion import find_shared_motion
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.cross_validation import (
    Candidate,
    CrossValidation,
    Pull,
    compute_relative_loss,
)
from robot_dyn_id.identification.selection.families import (
    BEFORE_LOAD,
    POSITION_FAMILIES,
    REFERENCE,
    Family,
    list_couplings,
)
from robot_dyn_id.identification.selection.options import Options
from robot_dyn_id.identification.selection.tilt import DIRECTIONS, TiltedRegressor
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.blocks import Blocks
from robot_dyn_id.signals.trials import FilteredTrials

Placed: TypeAlias = tuple[str, str]
"""A term of one joint: names of the joint and of the term."""

COARSE_STRENGTHS = (1.0, 100.0)
"""Strengths of the prior at which terms and motion filters are compared: the better one counts."""

LEAST_NORM_RATIO = 0.01
"""Least norm of a column, as a share of the largest of the same term, whose term stays although it is zero."""


@dataclass(frozen=True)
class Wide:
    """Regressor of all candidate columns, and which of them belong to what.

    Attributes:
        regressor: robot and all terms, with the columns of a tilt if it is to be found.
        prior: prior bodies.
        families: families that are tried, in order.
        simple: terms of every candidate.
        couplings: couplings that are tried.
        fixed_couplings: couplings of every candidate.
        position_families: families that are tried on each joint.
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
    position_families: tuple[Family, ...]
    tilt: Integers | None
    estimator: Consistent
    terms_given: bool

    @classmethod
    def from_options(
        cls, model: RobotModel, prior: BodyPrior, options: Options, trials: FilteredTrials, bodies: Array | None
    ) -> Wide:
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
        positions = POSITION_FAMILIES if choosing else ()
        terms = [*options.simple_terms, *(term for family in (*families, *positions) for term in family.terms)]
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
            position_families=positions,
            tilt=tilt,
            estimator=options.estimator,
            terms_given=options.terms is not None,
        )

    @classmethod
    def from_chosen(cls, regressor: Regressor, prior: BodyPrior, estimator: Consistent) -> Wide:
        """All columns of a regressor as the only candidate."""
        terms = {term.name: term for _, term in regressor.terms}
        return cls(
            regressor=regressor,
            prior=prior,
            families=(),
            simple=tuple(terms.values()),
            couplings=(),
            fixed_couplings=(),
            position_families=(),
            tilt=None,
            estimator=estimator,
            terms_given=True,
        )

    @property
    def inertial(self) -> int:
        """Number of inertial columns."""
        return self.prior.bodies.size

    @property
    def has_hypotheses(self) -> bool:
        """Whether anything is tried that has to predict other positions."""
        return bool(self.couplings or self.position_families or self.tilt is not None)

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

    def columns_of(
        self, families: Sequence[Family], couplings: Sequence[str] = (), placed: Collection[Placed] = ()
    ) -> Integers:
        """Columns of the rigid bodies, of the simple terms, and of some families, couplings and terms of one joint."""
        names = {term.name for term in self.simple} | {term.name for family in families for term in family.terms}
        coupled = {*couplings, *(coupling.name for coupling in self.fixed_couplings)}
        every = {coupling.name for coupling in (*self.couplings, *self.fixed_couplings)}
        taken = [
            self.inertial + number
            for number, column in enumerate(self.regressor.term_columns)
            if (column.coordinate.name in coupled)
            or (column.coordinate.name not in every and column.term.name in names)
            or (column.coordinate.name, column.term.name) in placed
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

    def with_prior_size(self, factor: float) -> Wide:
        """The same with prior bodies that are heavier or lighter by a factor."""
        return replace(self, prior=self.prior.scaled(factor))

    def find_consistent(self, grams: BlockGrams, columns: Integers, reference: Array) -> tuple[Array, CrossValidation]:
        """Out-of-fold errors of physically consistent fits at the better coarse strength, and their cross-validation.

        Args:
            grams: products of the columns.
            columns: columns of the model.
            reference: errors of the reference model, shape (blocks, n).
        """
        validation = self.judge(grams)
        _, strength, _ = self.least_loss(validation, columns, reference)
        return self.find_consistent_errors(validation, Candidate(columns, strength)), validation

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

    def list_signed(self, validation: CrossValidation, regressor: Regressor) -> tuple[str, ...]:
        """Names of the columns of a regressor whose signs a cross-validation has freed."""
        freed = self.bounded & ~validation.bounded
        return tuple(
            name for name, one in zip(self.regressor.names, freed, strict=True) if one and name in regressor.names
        )

    def find_consistent_errors(self, validation: CrossValidation, candidate: Candidate) -> Array:
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
