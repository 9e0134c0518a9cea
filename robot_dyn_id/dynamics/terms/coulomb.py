# SPDX-License-Identifier: Apache-2.0
"""Coulomb friction: fc tanh(dq / width), or fc sign(dq) with width 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robot_dyn_id.dynamics.terms.laws import SIGN, FrictionLaw
from robot_dyn_id.dynamics.terms.sign import SignTerm


@dataclass(frozen=True)
class Coulomb(SignTerm):
    """Friction that depends on the direction of motion only."""

    name: ClassVar[str] = "coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("fc",)
    not_negative: ClassVar[tuple[str, ...]] = ("fc",)

    @property
    def laws(self) -> tuple[FrictionLaw, ...]:
        """See `Term.laws`."""
        return (FrictionLaw(SIGN, self.smoothing_width),)
