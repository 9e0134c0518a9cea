# SPDX-License-Identifier: Apache-2.0
"""Forms of excitation by name. A new one is one file and one line here."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from robot_dyn_id.errors import UsageError, suggestion
from robot_dyn_id.excitation.forms.bspline import Spline
from robot_dyn_id.excitation.forms.chirp import Chirp
from robot_dyn_id.excitation.forms.fourier import FourierSeries
from robot_dyn_id.excitation.forms.fourier_blend import FourierBlend
from robot_dyn_id.excitation.forms.logistic import Logistic
from robot_dyn_id.excitation.forms.multisine import Multisine
from robot_dyn_id.excitation.forms.polynomial import Polynomial
from robot_dyn_id.excitation.forms.sequential import SequentialSine
from robot_dyn_id.excitation.forms.stretch import Stretched
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand, Parametrization
from robot_dyn_id.excitation.trajectory import Excitation, Repeated, Timed, check_limits


class Form(Timed, Protocol):
    """A kind of excitation: a frozen dataclass of numbers and arrays, which is what a file holds of it."""

    name: ClassVar[str]
    FORMULA: ClassVar[str]

    @staticmethod
    def make(limits: MotionLimits, demand: Demand) -> Parametrization:
        """The family that a design chooses among.

        Raises:
            UsageError: a demand that leaves no motion.
            MotionError: a posture outside the limits.
        """


FORMS: dict[str, type[Form]] = {
    form.name: form
    for form in (FourierSeries, FourierBlend, Spline, Polynomial, Multisine, Chirp, Logistic, SequentialSine)
}
"""Kinds of excitation by the name that YAML calls them."""


def make_parametrization(form: str, limits: MotionLimits, demand: Demand) -> Parametrization:
    """The family of excitations of a form.

    Raises:
        UsageError: an unknown form (the nearest known one is named), or a demand that leaves no motion.
        MotionError: a posture outside the limits.
    """
    if form not in FORMS:
        raise UsageError(f"there is no form of excitation {form!r}; {suggestion(form, tuple(FORMS))}")
    if not demand.free_period:
        return FORMS[form].make(limits, demand)
    return Stretched(lambda within: FORMS[form].make(within, demand), limits)


def make_excitation(form: str, limits: MotionLimits, demand: Demand) -> Excitation:
    """A random excitation by the name of its form, compared with the limits.

    Raises:
        UsageError: see `make_parametrization`.
        MotionError: it does not fit into the limits.
    """
    family = make_parametrization(form, limits, demand)
    cycle = family.trajectory(family.random(np.random.default_rng(demand.seed), demand.share))
    check_limits(cycle, limits)
    return repeated(cycle, family, demand.periods)


def repeated(cycle: Excitation, family: Parametrization, periods: int) -> Excitation:
    """Several periods of a cycle of a family where it can be repeated, the cycle itself where it cannot."""
    return Repeated(cycle, periods) if family.periodic else cycle
