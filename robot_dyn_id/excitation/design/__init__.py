# SPDX-License-Identifier: Apache-2.0
"""Optimal excitation trajectories within limits."""
