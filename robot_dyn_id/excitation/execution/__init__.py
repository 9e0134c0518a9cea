# SPDX-License-Identifier: Apache-2.0
"""Execution of an excitation trajectory on a robot, and its supervision."""
