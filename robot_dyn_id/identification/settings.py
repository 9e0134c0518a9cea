# SPDX-License-Identifier: Apache-2.0
"""Settings of an identification."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Span
from robot_dyn_id.dynamics.compensation import check_compensations
from robot_dyn_id.dynamics.terms import Coulomb, Coupling, Offset, Term, Viscous, refuse_overlaps
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import PRIOR_USERS, Consistent, Estimator
from robot_dyn_id.estimators.bootstrap import check_bootstrap_draws
from robot_dyn_id.estimators.essential import check_limit
from robot_dyn_id.findings import is_overrulable, list_definitions
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.reversals import check_speed
from robot_dyn_id.signals.trials import SignalSettings

CURRENT_KINDS = ("current", "motor_torque")
"""Efforts that a gain per joint converts to joint torques."""

COMPENSATED_KINDS = ("gravity_compensated", "gravity_and_friction_compensated")
"""Efforts that contain no weight."""

EFFORT_KINDS = ("auto", "torque", *CURRENT_KINDS, *COMPENSATED_KINDS, "external")
"""Meanings of the recorded efforts."""

DEFAULT_TERMS: tuple[Term, ...] = (Viscous(), Coulomb(), Offset())
"""Terms where none are given and none are chosen."""

Exclusions = Mapping[str, tuple[Span, ...]] | tuple[Span, ...]
"""Starts and stops of times that are left out [s]: of the only recording, or by the name of a recording."""

VELOCITIES = ("auto", "recorded", "derivative", "logistic")
"""Sources of velocities and accelerations."""


@dataclass(frozen=True)
class Settings:
    """Options of an identification.

    Example:
        ```python
        terms = rdi.TERMS["viscous"](), rdi.TERMS["coulomb"]()
        settings = rdi.Settings(terms=terms, estimator=rdi.ESTIMATORS["robust"](), cutoff=5.0)
        result = rdi.identify(robot, recording, settings)
        ```

    Attributes:
        terms: terms of every joint in addition to the rigid-body dynamics; None: chosen from the data by the estimator
            `consistent`, `DEFAULT_TERMS` for all others.
        couplings: weighted sums of joints, and the terms that act on them.
        estimator: estimator of the base parameters.
        drives: gains and signs of joints whose recorded effort is a current. A parameter set stores them for its
            validation.
        cutoff: cut-off frequency of the zero-phase low-pass filter of regressor and effort [Hz]; None: from the
            recordings.
        motion_cutoff: cut-off frequency of the zero-phase low-pass filter of positions and velocities [Hz]; None:
            chosen with the model, or for other estimators equal to `cutoff`, or from the recordings if that is.
        sample_rate: rate of the uniform grid that recordings are interpolated to [Hz]; None: from the recordings.
        filter_order: Butterworth order of each pass of both filters.
        velocity: `recorded`, `derivative` of the positions, `logistic`: functions of the angle on logistic strokes, or
            `auto`: recorded if it agrees with the positions.
        pivots: pivot rule of the base parameters, `rref` or `qr`.
        prior: earlier parameter set, or robot description, for estimators that use a prior, instead of the URDF.
        reversal_speed: low-velocity threshold below which a joint's rows are left out [rad/s or m/s]: 0 keeps all,
            `auto` is three standard deviations of the velocity noise.
        reversal_speeds: low-velocity thresholds of single joints, which override `reversal_speed`.
        rest_speed: speed below which a joint is at rest, and its rows are kept in spite of `reversal_speed` [rad/s or
            m/s]: they contain the torques with which it carries the moving ones, and its own stiction; 0: none are.
        period: period of a periodic motion, for estimators that average over periods [s]; 0 if unknown.
        essential: relative standard deviation above which parameters are left out, see `essential`; 0 keeps all.
        bootstrap: number of bootstrap draws for the standard deviations; 0: no bootstrap.
        base_tilt: whether the gravity vector may differ from that of the robot, as none was given: where the model is
            chosen from the data, a small tilt of the base is estimated, and a prior that is a parameter set replaces
            the default gravity vector by its own.
        thresholds: thresholds of the verdict.
        ignore: codes of findings whose refusal is overruled.
        effort_kind: meaning of the recorded efforts, one of `EFFORT_KINDS`; `auto`: joint torques, or currents or
            torques without weight where the data show it.
        robot_compensates: torques that the robot's driver adds to a command, of `COMPENSATIONS`, which the parameter
            set stores for controllers; empty: what the kind of the efforts implies.
        exclude: starts and stops of times that are left out [s], counted from the first stamp of a recording: of the
            only one that is trained or validated on, or by the names of recordings or their paths.
    """

    terms: tuple[Term, ...] | None = None
    couplings: tuple[Coupling, ...] = ()
    estimator: Estimator = field(default_factory=Consistent)
    drives: Mapping[str, Drive] = field(default_factory=dict)
    cutoff: float | None = None
    motion_cutoff: float | None = None
    sample_rate: float | None = None
    filter_order: int = 4
    velocity: str = "auto"
    pivots: str = "rref"
    prior: ParameterSet | RobotDescription | None = None
    reversal_speed: float | str = 0.0
    reversal_speeds: Mapping[str, float] = field(default_factory=dict)
    rest_speed: float = 0.0
    period: float = 0.0
    essential: float = 0.0
    bootstrap: int = 0
    base_tilt: bool = True
    thresholds: Thresholds = field(default_factory=Thresholds)
    ignore: tuple[str, ...] = ()
    effort_kind: str = "auto"
    robot_compensates: tuple[str, ...] = ()
    exclude: Exclusions = ()

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            UsageError: names in place of terms or an estimator, unknown velocity source, an invalid filter, terms that
                overlap, couplings with the same name, a prior that the estimator does not use, or a finding that cannot
                be overruled.
        """
        for table, given in ("TERMS", self.terms or ()), ("ESTIMATORS", (self.estimator,)):
            for one in given:
                if isinstance(one, (str, type)):
                    raise UsageError(
                        f"{one!r} is a name or a class: give an object, such as `rdi.{table}[name]()` makes"
                    )
        refuse_overlaps(self.fixed_terms)
        if self.prior is not None and not self.estimator.uses_prior:
            raise UsageError(
                f"estimator {self.estimator.name} uses no prior: use {PRIOR_USERS}, or leave the prior out"
            )
        for what, speed in (("all joints", self.reversal_speed), *self.reversal_speeds.items()):
            check_speed(speed, what)
        if not 0.0 <= self.rest_speed < math.inf:
            raise UsageError(f"rest_speed must be 0 or a positive speed [rad/s or m/s], not {self.rest_speed}")
        check_ignored(self.ignore)
        check_bootstrap_draws(self.bootstrap)
        check_limit(self.essential)
        if self.essential and isinstance(self.estimator, Consistent):
            raise UsageError(
                "essential together with estimator consistent, the default: it keeps all parameters; use essential "
                "with estimator weighted, or leave it out"
            )
        if self.sample_rate is not None and not 0.0 < self.sample_rate < math.inf:
            raise UsageError(f"sample_rate must be positive, not {self.sample_rate}")
        if not 0.0 <= self.period < math.inf:
            raise UsageError(f"period must be 0 (unknown) or positive, not {self.period}")
        names = [coupling.name for coupling in self.couplings]
        if len(set(names)) < len(names):
            raise UsageError(f"two couplings are called {max(names, key=names.count)}")
        for cutoff in (self.cutoff, self.motion_cutoff):
            LowPass(1.0 if cutoff is None else cutoff, self.filter_order)
        if self.effort_kind not in EFFORT_KINDS:
            raise UsageError(f"effort_kind must be one of {', '.join(EFFORT_KINDS)}, not {self.effort_kind!r}")
        check_compensations(self.effort_kind, self.robot_compensates)
        if self.velocity not in VELOCITIES:
            raise UsageError(f"velocity must be one of {', '.join(VELOCITIES)}, not {self.velocity!r}")

    @property
    def fixed_terms(self) -> tuple[Term, ...]:
        """Terms where nothing is chosen from data: those that are given, or `DEFAULT_TERMS`."""
        return DEFAULT_TERMS if self.terms is None else self.terms

    @property
    def chooses_model(self) -> bool:
        """Whether filters, the strength of the prior, and terms if none are given, are chosen from the data."""
        return isinstance(self.estimator, Consistent) and not isinstance(self.prior, ParameterSet)

    @property
    def chooses_terms(self) -> bool:
        """Whether the terms are chosen from the data."""
        return self.terms is None and self.chooses_model

    @property
    def signals(self) -> SignalSettings:
        """Choices about signals."""
        return SignalSettings(
            self.cutoff,
            self.filter_order,
            self.velocity,
            self.period,
            self.motion_cutoff,
            sample_rate=self.sample_rate,
        )

    def signals_of(self, parameters: ParameterSet) -> SignalSettings:
        """Choices about signals with the filters of a parameter set."""
        return SignalSettings.from_parameters(parameters, self.velocity)

    def drives_of(self, parameters: ParameterSet) -> Mapping[str, Drive]:
        """Drives that a parameter set was identified with; a gain or an opposite sign in the settings replaces them.

        Raises:
            InputError: the settings have the gain of a joint whose current the set predicts, as its gain was not known.
        """
        unknown = parameters.unknown_gains
        late = [name for name in unknown if self.drives.get(name, Drive()).gain is not None]
        if late:
            raise InputError(
                f"gain of {', '.join(late)}: it was not known when the model was identified, which predicts currents "
                "there: identify again with this gain"
            )
        drives = zip(
            parameters.robot.joint_names,
            parameters.effort.drive_gains.tolist(),
            parameters.effort.drive_signs.tolist(),
            strict=False,
        )
        stored = {name: Drive(gain or None, sign) for name, gain, sign in drives}
        given = {name: drive for name, drive in self.drives.items() if drive != Drive()}
        found = {**stored, **given}
        stored_gains = parameters.effort.relative_gains.tolist()
        relative = dict(zip(parameters.robot.joint_names, stored_gains, strict=False))
        signs = {name: found.get(name, Drive()).sign for name in unknown}
        return {**found, **{name: Drive.from_unknown_gain(signs[name], relative.get(name, 1.0)) for name in unknown}}


def store_drives(drives: Mapping[str, Drive], joints: Sequence[str]) -> tuple[Array, Array, Array]:
    """Gains, signs and relative gains of the drives as a parameter set holds them, shape (n,) each.

    They are empty if no joint has any.
    """
    of_joints = [drives.get(name, Drive()) for name in joints]
    if all(drive == Drive() for drive in of_joints):
        return np.zeros(0), np.zeros(0), np.zeros(0)
    gains = np.array([drive.gain if drive.gain and drive.is_known else 0.0 for drive in of_joints])
    signs = np.array([drive.sign for drive in of_joints])
    relative = np.array([1.0 if drive.is_known else drive.gain for drive in of_joints])
    return np.abs(gains), np.where(gains < 0.0, -signs, signs), relative if (relative != 1.0).any() else np.zeros(0)


def check_ignored(codes: Iterable[str]) -> None:
    """Check that findings can be overruled.

    Raises:
        UsageError: an unknown code, or one that never refuses data.
    """
    for code in codes:
        if not is_overrulable(code):
            known = ", ".join(one.code for one in list_definitions() if one.overrulable)
            raise UsageError(f"ignore: {code!r} cannot be overruled: the findings that can are {known}")
