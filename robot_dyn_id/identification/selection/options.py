# SPDX-License-Identifier: Apache-2.0
"""Parts of a model that may be chosen from data."""

from __future__ import annotations

from dataclasses import dataclass, field

from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.terms import Coupling, Term
from robot_dyn_id.estimators import Consistent
from robot_dyn_id.identification.selection.families import SIMPLE, Family, list_families
from robot_dyn_id.signals.trials import FilteredTrials


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
