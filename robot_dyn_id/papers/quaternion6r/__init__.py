"""Reproduction: mass and inertia of every body from hinge wrenches (2022)."""
