"""Parametrizations of excitation trajectories."""
