# SPDX-License-Identifier: Apache-2.0
"""Meaning of the measured effort, and the sampling and filters of an identification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from robot_dyn_id.arrays import Array
from robot_dyn_id.findings import Definition, Section
from robot_dyn_id.parameters.rules import UNKNOWN, refused, rule
from robot_dyn_id.uses import NO, USES

GAIN_UNKNOWN = Definition(
    "gain_unknown",
    Section.DATA,
    "error",
    "Currents, or motor torques, came without gains, and weight and inertia of some joints are too small to "
    "estimate theirs from the masses of the URDF: the model predicts amperes there. All uses are answered with "
    "no, and exports, controllers, payloads and simulations refuse the model.",
    "measure the gains with a known weight (command `gains`), or give `gain` [N m/A or N/A], torque constant "
    "times gear ratio, of each joint in the configuration, and identify again",
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

GAIN_REMEDY = GAIN_UNKNOWN.cure
"""Advice on drive gains that are not known."""


def describe_unknown_gains(units: Mapping[str, str]) -> str:
    """Statement about joints whose drive gain is not known.

    Args:
        units: units of their efforts, by joint name.
    """
    names, found = ", ".join(units), " and ".join(dict.fromkeys(units.values()))
    return f"the drive gain of {names} is not known: the model predicts efforts in {found} there, not in N m or N"


EFFORT_KINDS = (
    *(UNKNOWN, "torque", "current", "motor_torque"),
    *("gravity_compensated", "gravity_and_friction_compensated", "external"),
)
"""Contents that a measured effort may have."""

NONE = "none"
"""Word of a driver that adds nothing to a command."""

COMPENSATED_PARTS = ("gravity", "friction", "coriolis")
"""Torques that the driver of a robot may add to a command."""

COMPENSATIONS = (UNKNOWN, NONE, *COMPENSATED_PARTS)
"""Words of `robot_compensates`: parts of the torque, or one of `UNKNOWN` and `NONE` alone."""

IMPLIED_COMPENSATIONS = {
    "gravity_compensated": ("gravity",),
    "gravity_and_friction_compensated": ("gravity", "friction"),
}
"""Torques that a driver adds to a command, by the kind of effort that it reports without them. Other kinds imply
nothing: a robot that measures joint torques may add gravity to a command or not."""

VELOCITY_SOURCES = ("recorded", "derivative")
"""Sources of the velocities that a model was identified with: as recorded, or derivatives of the positions."""

HIGHEST_RATE = 1e6
"""Greatest sample rate [Hz]."""

HIGHEST_ORDER = 12
"""Greatest order of the low-pass."""


def implied_compensations(effort_kind: str) -> tuple[str, ...]:
    """Value of `robot_compensates` that the kind of the measured effort implies; `("unknown",)` if it implies none."""
    return IMPLIED_COMPENSATIONS.get(effort_kind, (UNKNOWN,))


def compensation_fault(effort_kind: str, robot_compensates: Sequence[str]) -> str:
    """Reason why a driver cannot report one and add the other; empty if it can, or if nothing is stated.

    Efforts without gravity give a model without gravity: no controller can add it, so the driver must.
    """
    alone = next((word for word in (UNKNOWN, NONE) if word in robot_compensates), None)
    if alone is not None and len(robot_compensates) > 1:
        return f"robot_compensates holds {alone} and other words"
    if len(set(robot_compensates)) < len(robot_compensates):
        return f"robot_compensates [{', '.join(robot_compensates)}] holds a word twice"
    if alone == UNKNOWN or not robot_compensates:
        return ""
    missing = [part for part in IMPLIED_COMPENSATIONS.get(effort_kind, ()) if part not in robot_compensates]
    if not missing:
        return ""
    return (
        f"effort_kind {effort_kind} and robot_compensates [{', '.join(robot_compensates)}] contradict each other: "
        f"efforts without {missing[0]} are those of a driver that adds {missing[0]} to a command; correct one of them"
    )


@dataclass(frozen=True)
class Effort:
    """Meaning of the measured effort of n joints.

    Attributes:
        kind: content of the measured effort, one of `EFFORT_KINDS`: as stated, or as the data show it; else unknown.
        robot_compensates: torques that the driver adds to a command, of `COMPENSATIONS`; an empty tuple becomes
            `("unknown",)`, as a message in which the field is not filled must not count as a driver that adds nothing.
        drive_gains: gain of each joint, effort per recorded current [N m/A or N/A], shape (n,); 0: the recorded effort
            is used, which is the current itself where `kind` is one, see `ParameterSet.unknown_gains`; empty: 0 for all
            joints.
        drive_signs: sign of each joint's recorded effort or current, 1 or -1, shape (n,); empty like `drive_gains`.
        relative_gains: gain of each joint of `ParameterSet.unknown_gains` as a ratio to their geometric mean, as the
            motion shows it, shape (n,); the model predicts the recorded effort times this. 1: nothing is known
            about it, or the gain is known; empty: 1 for all joints.
        offset_deviations: standard deviation of the zero of each joint's effort between the training recordings
            [N m or N], shape (n,); 0: no difference was found; empty: they were not compared. Where it is not 0, the
            offset is the mean zero, and its standard deviation is that of the zero of another recording.
    """

    kind: str = field(metadata=rule(words=EFFORT_KINDS))
    robot_compensates: tuple[str, ...] = field(metadata=rule(most=10, words=COMPENSATIONS))
    drive_gains: Array = field(repr=False, metadata=rule("joints", optional=True, finite=True))
    drive_signs: Array = field(repr=False, metadata=rule("joints", optional=True, finite=True))
    relative_gains: Array = field(repr=False, metadata=rule("joints", optional=True, finite=True, least=0.0))
    offset_deviations: Array = field(repr=False, metadata=rule("joints", optional=True, finite=True, least=0.0))

    def __post_init__(self) -> None:
        """Complete the torques that the driver adds."""
        if not self.robot_compensates:
            object.__setattr__(self, "robot_compensates", (UNKNOWN,))

    def check(self) -> None:
        """Refuse a driver that cannot report one and add the other, or signs without gains."""
        if why := compensation_fault(self.kind, self.robot_compensates):
            raise refused(why)
        if len(self.drive_gains) != len(self.drive_signs):
            raise refused("effort.drive_gains and drive_signs have different lengths")
        if not (self.relative_gains > 0.0).all():
            raise refused("effort.relative_gains are not all positive")


@dataclass(frozen=True)
class SignalProcessing:
    """Sampling and filters that a model was identified with.

    Attributes:
        sample_rate: rate of the uniform grid of samples [Hz].
        cutoff_frequency: cut-off frequency of the zero-phase low-pass filter of regressor and effort [Hz].
        motion_cutoff_frequency: cut-off frequency of the zero-phase low-pass filter of positions and velocities, before
            they are differentiated [Hz].
        filter_order: Butterworth order of each pass of both filters.
        velocity_source: source of the velocities, one of `VELOCITY_SOURCES`.
    """

    sample_rate: float = field(metadata=rule(finite=True))
    cutoff_frequency: float = field(metadata=rule(finite=True))
    motion_cutoff_frequency: float = field(metadata=rule(finite=True))
    filter_order: int = field(metadata=rule())
    velocity_source: str = field(metadata=rule(words=VELOCITY_SOURCES))

    def check(self) -> None:
        """Refuse rates and filters that no identification uses."""
        if not 0.0 < self.sample_rate <= HIGHEST_RATE:
            raise refused(
                f"processing.sample_rate is {self.sample_rate} Hz, expected 0 to {HIGHEST_RATE:g}, 0 excluded"
            )
        for name in ("cutoff_frequency", "motion_cutoff_frequency"):
            cutoff = getattr(self, name)
            if not 0.0 < cutoff <= 0.5 * self.sample_rate:
                raise refused(f"processing.{name} is {cutoff} Hz, expected more than 0 and at most half the rate")
        if not 1 <= self.filter_order <= HIGHEST_ORDER:
            raise refused(f"processing.filter_order is {self.filter_order}, expected 1 to {HIGHEST_ORDER}")
