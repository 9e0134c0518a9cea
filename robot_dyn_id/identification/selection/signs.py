# SPDX-License-Identifier: Apache-2.0
"""Friction and rotor inertia whose sign is free: what data show that contradict the physics of a joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.selection.cross_validation import Candidate, CrossValidation, compute_relative_loss
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.families import FREED_TERMS
from robot_dyn_id.identification.selection.wide import Wide

SIGN_CONTRADICTED = Definition(
    "sign_contradicted",
    Section.VALIDATION,
    "info",
    "Friction or rotor inertia of free sign predicts held-out blocks better, by more than chance and 5 % of the "
    "squared error: delays, sensors behind the friction, or their hysteresis. Signs of viscous "
    "and Coulomb friction are free then; friction that drives a joint excludes forward simulation "
    "(`friction_not_passive`). Rotor inertia stays positive, so that the mass matrix is positive definite.",
    "check the delays of the efforts, and which torque the sensors measure",
)


def free_signs(
    wide: Wide, validation: CrossValidation, candidate: Candidate, reference: Array, kinds: Sequence[type[Term]]
) -> tuple[CrossValidation, list[Tried]]:
    """Cross-validation with free signs of the terms for which that pays, and the alternatives.

    The sign of rotor inertia is kept: with another one the mass matrix would not be positive definite.

    Args:
        wide: all candidate columns.
        validation: the blocks.
        candidate: columns and strength of the model.
        reference: errors of the reference model, shape (blocks, n).
        kinds: terms whose sign may be free.
    """
    rows: list[Tried] = []
    errors = validation.errors(candidate)
    for kind in () if wide.terms_given else kinds:
        own = wide.inertial + np.array(
            [n for n, column in enumerate(wide.regressor.term_columns) if isinstance(column.term, kind)], dtype=int
        )
        own = np.intersect1d(own[validation.bounded[own]], candidate.columns)
        if not np.any(validation.fit(candidate)[own] == 0.0):  # without a bound that holds nothing would change
            continue
        bounded = validation.bounded.copy()
        bounded[own] = False
        free = replace(validation, bounded=bounded)
        after = free.errors(candidate)
        loss = compute_relative_loss(after, reference)
        row = validation.weigh("sign", kind.name, errors, after, len(kinds), loss)
        chosen = row.pays and kind in FREED_TERMS
        rows.append(replace(row, chosen=chosen))
        if chosen:
            validation, errors = free, after
    return validation, rows


def report_signs(tried: Sequence[Tried], values: Mapping[str, float], signed: Sequence[str]) -> tuple[Finding, ...]:
    """Finding about friction and rotor inertia that data contradict unless their signs are free.

    Args:
        tried: alternatives.
        values: parameters by name.
        signed: names of the columns whose sign is free.
    """
    found = []
    for row in tried:
        if row.step == "sign" and row.pays:
            text = f"of {row.name.replace('_', ' ')} removes {row.gain:.0%} (+- {row.deviation:.0%})"
            found.append(text + (" and is taken" if row.chosen else ", and is not taken: inertia is positive"))
    if not found:
        return ()
    negative = [f"{name} {values[name]:.3g}" for name in signed if values[name] < 0.0]
    message = f"of the squared error, a free sign {'; '.join(found)}"
    return (SIGN_CONTRADICTED.found(message + (f"; negative: {', '.join(negative)}" if negative else "")),)
