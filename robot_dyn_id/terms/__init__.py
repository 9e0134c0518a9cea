"""Columns beside the rigid body: friction, rotor inertia, spring, offset. A new term is one file and one line here."""

from robot_dyn_id.terms.asymmetric import Asymmetric
from robot_dyn_id.terms.contract import Coordinate, FreeConstant, Term, refuse_overlaps
from robot_dyn_id.terms.coulomb import Coulomb
from robot_dyn_id.terms.coupling import Coupling
from robot_dyn_id.terms.groups import TermGroup, grouped
from robot_dyn_id.terms.improved_stribeck import ImprovedStribeck
from robot_dyn_id.terms.load_coulomb import LoadCoulomb
from robot_dyn_id.terms.offset import Offset
from robot_dyn_id.terms.rotor_inertia import RotorInertia
from robot_dyn_id.terms.spring import Spring
from robot_dyn_id.terms.stribeck import Stribeck
from robot_dyn_id.terms.temperature_coulomb import TemperatureCoulomb
from robot_dyn_id.terms.viscous import Viscous

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
    )
}
"""Terms by the name that configurations use."""

__all__ = [
    "TERMS",
    "Asymmetric",
    "Coordinate",
    "Coulomb",
    "Coupling",
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
    "Viscous",
    "grouped",
    "refuse_overlaps",
]
