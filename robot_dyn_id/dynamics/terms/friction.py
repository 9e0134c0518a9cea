# SPDX-License-Identifier: Apache-2.0
"""Combinations of terms that make up the friction of a joint, by name."""

from __future__ import annotations

from collections.abc import Sequence

from robot_dyn_id.dynamics.terms import TERMS, Term

_PRESLIDING = ("viscous", "double_coulomb", "dahl")

FRICTION: dict[str, tuple[str, ...]] = {
    "none": (),
    "viscous": ("viscous",),
    "coulomb": ("viscous", "coulomb"),
    "asymmetric": ("asymmetric",),
    "stribeck": ("viscous", "stribeck"),
    "improved_stribeck": ("improved_stribeck",),
    "load": ("viscous", "coulomb", "load_coulomb"),
    "temperature": ("viscous", "coulomb", "temperature_coulomb"),
    "presliding": _PRESLIDING,
    "saturating": (*_PRESLIDING, "saturating_viscous"),
    "presliding_load": (*_PRESLIDING, "load_coulomb", "load_dahl"),
    "complete": (*_PRESLIDING, "saturating_viscous", "load_coulomb", "load_dahl", "absolute_velocity"),
}
"""Names of the terms of each combination."""


def replace_friction(terms: Sequence[Term], name: str) -> tuple[Term, ...]:
    """Replace the friction terms by a combination of `FRICTION`.

    Given constants are kept, and so are other terms unless the combination includes their columns.
    """
    present = {term.name: term for term in terms}
    friction = [present.get(part, TERMS[part]()) for part in FRICTION[name]]
    replaced = {part for parts in FRICTION.values() for part in parts}.union(*(term.includes for term in friction))
    return (*friction, *(term for term in terms if term.name not in replaced))
