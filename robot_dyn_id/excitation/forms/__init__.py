# SPDX-License-Identifier: Apache-2.0
"""Parametrizations of excitation trajectories."""
