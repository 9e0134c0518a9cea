"""Optimal excitation trajectories within limits."""
