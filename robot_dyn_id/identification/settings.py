# SPDX-License-Identifier: Apache-2.0
"""The choices of an identification."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from robot_dyn_id.dynamics.terms import Coulomb, Coupling, Offset, Term, Viscous, refuse_overlaps
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import PRIOR_USERS, Estimator, WeightedLeastSquares
from robot_dyn_id.estimators.bootstrap import check_bootstrap_draws
from robot_dyn_id.estimators.essential import check_limit
from robot_dyn_id.identification.verdict import Thresholds
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.health import check_ignored
from robot_dyn_id.signals.reversals import check_speed
from robot_dyn_id.signals.trials import SignalSettings

VELOCITIES = ("auto", "recorded", "derivative")


@dataclass(frozen=True)
class Settings:
    """Everything that a person may choose about an identification.

    Example:
        ```python
        terms = rdi.TERMS["viscous"](), rdi.TERMS["coulomb"]()
        settings = rdi.Settings(terms=terms, estimator=rdi.ESTIMATORS["robust"](), cutoff=5.0)
        result = rdi.identify(robot, recording, settings)
        ```

    Attributes:
        terms: columns beside the rigid body, on every joint.
        couplings: weighted sums of joints, and the terms that act on them.
        estimator: the estimator.
        drives: gains and signs of joints whose effort is a current.
        cutoff: of the zero-phase low-pass [Hz]; None: from the data.
        filter_order: of one pass.
        velocity: `recorded`, `derivative` of the positions, or `auto`: recorded if it agrees with them.
        pivots: pivot rule of the base parameters, `rref` or `qr`.
        prior: an earlier parameter set for estimators that use one, in place of the URDF.
        reversal_speed: speed below which a joint's rows are left out [rad/s or m/s]: 0 keeps all, `auto` is three
            standard deviations of the velocity's noise.
        reversal_speeds: of single joints, in place of that.
        period: of a periodic motion, for estimators that average [s]; 0 is unknown.
        essential: relative standard deviation above which parameters are left out, see `essential`; 0 keeps all.
        bootstrap: draws of a bootstrap of the standard deviations; 0 is none.
        thresholds: of the verdict.
        ignore: codes of findings whose refusal is overruled.
    """

    terms: tuple[Term, ...] = (Viscous(), Coulomb(), Offset())
    couplings: tuple[Coupling, ...] = ()
    estimator: Estimator = field(default_factory=WeightedLeastSquares)
    drives: Mapping[str, Drive] = field(default_factory=dict)
    cutoff: float | None = None
    filter_order: int = 4
    velocity: str = "auto"
    pivots: str = "rref"
    prior: ParameterSet | None = None
    reversal_speed: float | str = 0.0
    reversal_speeds: Mapping[str, float] = field(default_factory=dict)
    period: float = 0.0
    essential: float = 0.0
    bootstrap: int = 0
    thresholds: Thresholds = field(default_factory=Thresholds)
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the choices.

        Raises:
            UsageError: unknown velocity source, a filter that is none, terms that overlap, couplings of one name, a
                prior that the estimator would not use, a finding that cannot be overruled.
        """
        refuse_overlaps(self.terms)
        if self.prior is not None and not self.estimator.uses_prior:
            raise UsageError(
                f"estimator {self.estimator.name} uses no prior: use {PRIOR_USERS}, or leave the prior out"
            )
        for what, speed in (("all joints", self.reversal_speed), *self.reversal_speeds.items()):
            check_speed(speed, what)
        check_ignored(self.ignore)
        check_bootstrap_draws(self.bootstrap)
        check_limit(self.essential)
        if not 0.0 <= self.period < math.inf:
            raise UsageError(f"period must be 0 (unknown) or positive, not {self.period}")
        names = [coupling.name for coupling in self.couplings]
        if len(set(names)) < len(names):
            raise UsageError(f"two couplings are called {max(names, key=names.count)}")
        LowPass(1.0 if self.cutoff is None else self.cutoff, self.filter_order)
        if self.velocity not in VELOCITIES:
            raise UsageError(f"velocity must be one of {', '.join(VELOCITIES)}, not {self.velocity!r}")

    @property
    def signals(self) -> SignalSettings:
        """Choices about signals."""
        return SignalSettings(self.cutoff, self.filter_order, self.velocity, self.period)

    def signals_of(self, parameters: ParameterSet) -> SignalSettings:
        """Choices about signals with the filter of a parameter set."""
        return SignalSettings(parameters.cutoff_frequency, parameters.filter_order, self.velocity)
