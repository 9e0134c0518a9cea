"""Execution of an excitation trajectory on a robot, and its supervision."""
