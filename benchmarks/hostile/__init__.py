# SPDX-License-Identifier: Apache-2.0
"""Hostile robots: is the plain command true on robots that it never met?

`python -m hostile` in `benchmarks/` draws robots from seeds (axes, geometry, masses, drives, faults of sensors and of
their descriptions, two to four at once), identifies each with the plain command, and with the true structure given.
"""
