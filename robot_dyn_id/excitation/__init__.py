# SPDX-License-Identifier: Apache-2.0
"""Excitation trajectories. A new form is one file in `forms` and one line in `forms/registry.py`."""

from robot_dyn_id.excitation.forms.fourier import FourierSeries, draw_random_fourier
from robot_dyn_id.excitation.forms.registry import FORMS, make_excitation, make_parametrization
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand, Parametrization

__all__ = [
    "FORMS",
    "Demand",
    "FourierSeries",
    "MotionLimits",
    "Parametrization",
    "draw_random_fourier",
    "make_excitation",
    "make_parametrization",
]
