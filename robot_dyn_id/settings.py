"""The choices of an identification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import Estimator, WeightedLeastSquares
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.terms import Coulomb, Offset, Term, Viscous
from robot_dyn_id.validation import Thresholds

VELOCITIES = ("auto", "recorded", "derivative")


@dataclass(frozen=True)
class Settings:
    """Everything that a person may choose about an identification.

    Attributes:
        terms: columns beside the rigid body, on every joint.
        estimator: the estimator.
        drives: gains and signs of joints whose effort is a current.
        cutoff: of the zero-phase low-pass [Hz]; None: from the data.
        filter_order: of one pass.
        velocity: `recorded`, `derivative` of the positions, or `auto`: recorded if it agrees with them.
        pivots: pivot rule of the base parameters, `rref` or `qr`.
        estimate_widths: whether the smoothing width of Coulomb friction is chosen from the data, joint by joint.
        thresholds: of the verdict.
        ignore: health checks whose refusal is overruled.
    """

    terms: tuple[Term, ...] = (Viscous(), Coulomb(), Offset())
    estimator: Estimator = field(default_factory=WeightedLeastSquares)
    drives: Mapping[str, Drive] = field(default_factory=dict)
    cutoff: float | None = None
    filter_order: int = 4
    velocity: str = "auto"
    pivots: str = "rref"
    estimate_widths: bool = False
    thresholds: Thresholds = field(default_factory=Thresholds)
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the choices.

        Raises:
            UsageError: unknown velocity source, a filter that is none.
        """
        LowPass(1.0 if self.cutoff is None else self.cutoff, self.filter_order)
        if self.velocity not in VELOCITIES:
            raise UsageError(f"velocity must be one of {', '.join(VELOCITIES)}, not {self.velocity!r}")
