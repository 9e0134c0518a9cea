"""The choices of an identification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import Estimator, WeightedLeastSquares
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.reversals import check_speed
from robot_dyn_id.terms import Coulomb, Coupling, Offset, Term, Viscous, refuse_overlaps
from robot_dyn_id.validation import Thresholds

VELOCITIES = ("auto", "recorded", "derivative")


@dataclass(frozen=True)
class Settings:
    """Everything that a person may choose about an identification.

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
        thresholds: of the verdict.
        ignore: health checks whose refusal is overruled.
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
    thresholds: Thresholds = field(default_factory=Thresholds)
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the choices.

        Raises:
            UsageError: unknown velocity source, a filter that is none, terms that overlap, couplings of one name, a
                prior that the estimator would not use.
        """
        refuse_overlaps(self.terms)
        if self.prior is not None and not self.estimator.uses_prior:
            raise UsageError(f"estimator {self.estimator.name} uses no prior: use map, or leave the prior out")
        for what, speed in (("all joints", self.reversal_speed), *self.reversal_speeds.items()):
            check_speed(speed, what)
        names = [coupling.name for coupling in self.couplings]
        if len(set(names)) < len(names):
            raise UsageError(f"two couplings are called {max(names, key=names.count)}")
        LowPass(1.0 if self.cutoff is None else self.cutoff, self.filter_order)
        if self.velocity not in VELOCITIES:
            raise UsageError(f"velocity must be one of {', '.join(VELOCITIES)}, not {self.velocity!r}")
