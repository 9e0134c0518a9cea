# SPDX-License-Identifier: Apache-2.0
"""Excitation trajectories. A new form is one file here, and one line in `forms.py`."""

from robot_dyn_id.excitation.forms.fourier import FourierSeries, random_fourier
from robot_dyn_id.excitation.forms.registry import FORMS, make_excitation, make_parametrisation
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrisation import Demand, Parametrisation

__all__ = [
    "FORMS",
    "Demand",
    "FourierSeries",
    "MotionLimits",
    "Parametrisation",
    "make_excitation",
    "make_parametrisation",
    "random_fourier",
]
