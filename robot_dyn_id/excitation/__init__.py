"""Excitation trajectories. A new form is one file here, and one line in `forms.py`."""

from robot_dyn_id.excitation.forms import FORMS, Demand, make_excitation
from robot_dyn_id.excitation.fourier import FourierSeries, random_fourier
from robot_dyn_id.excitation.limits import MotionLimits

__all__ = ["FORMS", "Demand", "FourierSeries", "MotionLimits", "make_excitation", "random_fourier"]
