# SPDX-License-Identifier: Apache-2.0
"""Families of terms that are chosen from data. A new one is one line in `FAMILIES`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from robot_dyn_id.dynamics.terms import (
    AbsoluteVelocity,
    Coulomb,
    Coupling,
    Dahl,
    DoubleCoulomb,
    LoadCoulomb,
    LoadDahl,
    Offset,
    PositionPeriodic,
    RotorInertia,
    SaturatingViscous,
    Spring,
    TemperatureCoulomb,
    Term,
    Viscous,
)
from robot_dyn_id.model.robot import RobotModel

WRIST_JOINTS = 3
"""Number of last joints whose motors may turn with the sum or the difference of two joints."""


@dataclass(frozen=True)
class Family:
    """Terms that are taken or left together, on every joint.

    Attributes:
        name: name in reports.
        terms: the terms.
        signal: recorded signal without which the family is not tried; empty: none is needed.
        extrapolates: whether the family may be used for motions that are faster than those of the data.
        must_pay: whether a gain is required, of families with parameters of free sign, which are tried one by one after
            the others; otherwise the least loss decides.
    """

    name: str
    terms: tuple[Term, ...]
    signal: str = ""
    extrapolates: bool = False
    must_pay: bool = False


SIMPLE = Family("simple_friction", (Offset(), Viscous(), DoubleCoulomb()))
"""Terms of every model."""

FAMILIES: tuple[Family, ...] = (
    Family("rotor_inertia", (RotorInertia(),)),
    Family("presliding", (Dahl(),), extrapolates=True),
    Family("saturating_viscous", (SaturatingViscous(),)),
    Family("load_dependent", (LoadCoulomb(), LoadDahl())),
    Family("direction_dependent", (AbsoluteVelocity(),), must_pay=True),
    Family("temperature", (TemperatureCoulomb(),), signal="temperature", must_pay=True),
)
"""Families in the order in which they are added: each candidate has all families before its last one that the least
loss decides on."""

POSITION_FAMILIES: tuple[Family, ...] = (
    Family("spring", (Spring(),), must_pay=True),
    Family("position_periodic", (PositionPeriodic(),), must_pay=True),
)
"""Families that depend on the position alone, which are tried on each joint: cables and balancers, then what repeats
with every turn. They have to predict positions that they were not fitted to, see `positions`."""

REFERENCE = ("rotor_inertia",)
"""Families of the model that errors are compared with."""

BEFORE_LOAD = ("rotor_inertia", "presliding", "saturating_viscous")
"""Families of the first fit, whose bodies give the load, and of the choice of the motion filter."""

FREED_TERMS: tuple[type[Term], ...] = (Viscous, DoubleCoulomb)
"""Terms whose signs may be free: sensors behind the friction show its hysteresis, late ones other signs."""

SIGNED_TERMS: tuple[type[Term], ...] = (*FREED_TERMS, RotorInertia)
"""Terms whose signs are tried to be free; those that are not in `FREED_TERMS` are only reported."""

COUPLED_TERMS: tuple[Term, ...] = (RotorInertia(), Viscous(), Coulomb(), SaturatingViscous(), Dahl())
"""Terms that act on the sum or the difference of two joints."""


def list_families(has_temperature: bool) -> tuple[Family, ...]:
    """Families that can be tried on recordings.

    Args:
        has_temperature: whether the temperatures of the joints are recorded.
    """
    return tuple(family for family in FAMILIES if family.signal != "temperature" or has_temperature)


def list_couplings(model: RobotModel) -> tuple[Coupling, ...]:
    """Sums and differences of two of the last joints of one kind, where their bodies follow one another."""
    last = range(max(0, len(model.joint_names) - WRIST_JOINTS), len(model.joint_names))
    kinds = list(zip(model.slides.tolist(), model.effort_units, strict=True))
    pairs = [(a, b) for a, b in combinations(last, 2) if kinds[a] == kinds[b]]
    return tuple(
        Coupling(
            f"{model.joint_names[a]}_{word}_{model.joint_names[b]}",
            ((model.joint_names[a], 1.0), (model.joint_names[b], sign)),
            COUPLED_TERMS,
        )
        for a, b in pairs
        for word, sign in (("plus", 1.0), ("minus", -1.0))
    )
