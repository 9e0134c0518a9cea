# SPDX-License-Identifier: Apache-2.0
"""Reproduction: mass and inertia of every body from hinge wrenches (2022)."""
