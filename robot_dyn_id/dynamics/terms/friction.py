# SPDX-License-Identifier: Apache-2.0
"""Combinations of terms that make up the friction of a joint, by name."""

from __future__ import annotations

from collections.abc import Sequence

from robot_dyn_id.dynamics.terms import TERMS, Term

FRICTION: dict[str, tuple[str, ...]] = {
    "none": (),
    "viscous": ("viscous",),
    "coulomb": ("viscous", "coulomb"),
    "asymmetric": ("asymmetric",),
    "stribeck": ("viscous", "stribeck"),
    "improved_stribeck": ("improved_stribeck",),
    "load": ("viscous", "coulomb", "load_coulomb"),
    "temperature": ("viscous", "coulomb", "temperature_coulomb"),
}
"""What `--friction` calls them."""


def with_friction(terms: Sequence[Term], name: str) -> tuple[Term, ...]:
    """The terms with those of friction replaced by a combination of `FRICTION`.

    Constants that are given stay, and so do other terms unless the friction includes their columns.
    """
    present = {term.name: term for term in terms}
    friction = [present.get(part, TERMS[part]()) for part in FRICTION[name]]
    replaced = {part for parts in FRICTION.values() for part in parts}.union(*(term.includes for term in friction))
    return (*friction, *(term for term in terms if term.name not in replaced))
