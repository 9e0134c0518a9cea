"""Excitation trajectories. A new form is one file here."""

from robot_dyn_id.excitation.fourier import FourierSeries, random_fourier

__all__ = ["FourierSeries", "random_fourier"]
