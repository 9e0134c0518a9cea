# SPDX-License-Identifier: Apache-2.0
"""Terms in addition to the rigid bodies: friction, rotor inertia, spring, offset.

A new term is one file, and one line in `TERMS`.
"""

from robot_dyn_id.dynamics.terms.asymmetric import Asymmetric
from robot_dyn_id.dynamics.terms.contract import Coordinate, FreeConstant, Term, refuse_overlaps
from robot_dyn_id.dynamics.terms.coulomb import Coulomb
from robot_dyn_id.dynamics.terms.coupling import Coupling
from robot_dyn_id.dynamics.terms.dahl import Dahl
from robot_dyn_id.dynamics.terms.groups import TermGroup, TermStates, group_terms
from robot_dyn_id.dynamics.terms.improved_stribeck import ImprovedStribeck
from robot_dyn_id.dynamics.terms.load_coulomb import LoadCoulomb
from robot_dyn_id.dynamics.terms.offset import Offset
from robot_dyn_id.dynamics.terms.rotor_inertia import RotorInertia
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
    )
}
"""Terms by the name that configurations use."""

__all__ = [
    "TERMS",
    "Asymmetric",
    "Coordinate",
    "Coulomb",
    "Coupling",
    "Dahl",
    "FreeConstant",
    "ImprovedStribeck",
    "LoadCoulomb",
    "Offset",
    "RotorInertia",
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
