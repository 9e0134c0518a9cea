"""Columns beside the rigid body: friction, rotor inertia, offset. A new term is one file and one line here."""

from robot_dyn_id.terms.contract import Coordinate, Term
from robot_dyn_id.terms.coulomb import Coulomb
from robot_dyn_id.terms.groups import TermGroup, grouped
from robot_dyn_id.terms.offset import Offset
from robot_dyn_id.terms.rotor_inertia import RotorInertia
from robot_dyn_id.terms.viscous import Viscous

TERMS: dict[str, type[Term]] = {term.name: term for term in (Viscous, Coulomb, Offset, RotorInertia)}
"""Terms by the name that configurations use."""

__all__ = ["TERMS", "Coordinate", "Coulomb", "Offset", "RotorInertia", "Term", "TermGroup", "Viscous", "grouped"]
