# SPDX-License-Identifier: Apache-2.0
"""Forms of excitation by name. A new form is one file and one line here."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from robot_dyn_id.errors import UsageError, suggest_known
from robot_dyn_id.excitation.forms.bspline import Spline
from robot_dyn_id.excitation.forms.chirp import Chirp
from robot_dyn_id.excitation.forms.fourier import FourierSeries
from robot_dyn_id.excitation.forms.fourier_blend import FourierBlend
from robot_dyn_id.excitation.forms.logistic import Logistic
from robot_dyn_id.excitation.forms.multisine import Multisine
from robot_dyn_id.excitation.forms.polynomial import Polynomial
from robot_dyn_id.excitation.forms.sequential import SequentialSine
from robot_dyn_id.excitation.forms.stretch import FreePeriodParametrization
from robot_dyn_id.excitation.forms.sweep_steps import SweepSteps
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand, Parametrization
from robot_dyn_id.excitation.trajectory import Excitation, Repeated, Stretchable, check_limits


class Form(Stretchable, Protocol):
    """A form of excitation: a frozen dataclass of numbers and arrays, which are its fields in a file."""

    name: ClassVar[str]
    FORMULA: ClassVar[str]

    @staticmethod
    def make(limits: MotionLimits, demand: Demand) -> Parametrization:
        """Make the parametrization of the form.

        Args:
            limits: motion limits of the joints.
            demand: user requirements.

        Raises:
            UsageError: no motion meets the requirements.
            MotionError: the center configuration is outside the limits.
        """


FORMS: dict[str, type[Form]] = {
    form.name: form
    for form in (
        FourierSeries,
        FourierBlend,
        Spline,
        Polynomial,
        Multisine,
        Chirp,
        SweepSteps,
        Logistic,
        SequentialSine,
    )
}
"""Forms of excitation by their name in configuration files."""


def make_parametrization(form: str, limits: MotionLimits, demand: Demand) -> Parametrization:
    """Make the parametrization of a form of excitation.

    Args:
        form: key of `FORMS`.
        limits: motion limits of the joints.
        demand: user requirements.

    Raises:
        UsageError: the form is unknown, or no motion meets the requirements.
        MotionError: the center configuration is outside the limits.
    """
    if form not in FORMS:
        raise UsageError(f"unknown form of excitation {form!r}; {suggest_known(form, tuple(FORMS))}")
    if not demand.free_period:
        return FORMS[form].make(limits, demand)
    return FreePeriodParametrization(lambda within: FORMS[form].make(within, demand), limits)


def make_excitation(form: str, limits: MotionLimits, demand: Demand) -> Excitation:
    """Make a random excitation of a form and check it against the limits.

    Raises:
        UsageError: see `make_parametrization`.
        MotionError: the motion exceeds the limits.
    """
    family = make_parametrization(form, limits, demand)
    cycle = family.trajectory(family.random(np.random.default_rng(demand.seed), demand.share))
    check_limits(cycle, limits)
    return repeat_cycle(cycle, family, demand.periods)


def repeat_cycle(cycle: Excitation, family: Parametrization, periods: int) -> Excitation:
    """Repeat a cycle if its family is periodic; otherwise return the cycle itself."""
    return Repeated(cycle, periods) if family.periodic else cycle
