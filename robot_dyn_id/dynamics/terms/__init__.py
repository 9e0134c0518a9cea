# SPDX-License-Identifier: Apache-2.0
"""Terms in addition to the rigid bodies: friction with and without presliding, rotor inertia, spring, offset.

A new term is one file, and one line in `TERMS`.
"""

from robot_dyn_id.dynamics.terms.absolute_velocity import AbsoluteVelocity
from robot_dyn_id.dynamics.terms.asymmetric import Asymmetric
from robot_dyn_id.dynamics.terms.contract import Coordinate, FreeConstant, Term, refuse_overlaps
from robot_dyn_id.dynamics.terms.coulomb import Coulomb, DoubleCoulomb
from robot_dyn_id.dynamics.terms.coupling import Coupling
from robot_dyn_id.dynamics.terms.dahl import Dahl
from robot_dyn_id.dynamics.terms.groups import TermGroup, TermStates, group_terms
from robot_dyn_id.dynamics.terms.improved_stribeck import ImprovedStribeck
from robot_dyn_id.dynamics.terms.load import LoadCoulomb, LoadDahl
from robot_dyn_id.dynamics.terms.offset import Offset
from robot_dyn_id.dynamics.terms.position_periodic import PositionPeriodic
from robot_dyn_id.dynamics.terms.rotor_inertia import RotorInertia
from robot_dyn_id.dynamics.terms.saturating_viscous import SaturatingViscous
from robot_dyn_id.dynamics.terms.spring import Spring
from robot_dyn_id.dynamics.terms.stribeck import Stribeck
from robot_dyn_id.dynamics.terms.temperature_coulomb import TemperatureCoulomb
from robot_dyn_id.dynamics.terms.viscous import Viscous

TERMS: dict[str, type[Term]] = {
    term.name: term
    for term in (
        Viscous,
        Coulomb,
        Offset,
        RotorInertia,
        Asymmetric,
        Stribeck,
        ImprovedStribeck,
        LoadCoulomb,
        TemperatureCoulomb,
        Spring,
        Dahl,
        LoadDahl,
        DoubleCoulomb,
        SaturatingViscous,
        AbsoluteVelocity,
        PositionPeriodic,
    )
}
"""Terms by the name that configurations use."""

__all__ = [
    "TERMS",
    "AbsoluteVelocity",
    "Asymmetric",
    "Coordinate",
    "Coulomb",
    "Coupling",
    "Dahl",
    "DoubleCoulomb",
    "FreeConstant",
    "ImprovedStribeck",
    "LoadCoulomb",
    "LoadDahl",
    "Offset",
    "PositionPeriodic",
    "RotorInertia",
    "SaturatingViscous",
    "Spring",
    "Stribeck",
    "TemperatureCoulomb",
    "Term",
    "TermGroup",
    "TermStates",
    "Viscous",
    "group_terms",
    "refuse_overlaps",
]
