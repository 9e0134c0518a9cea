# SPDX-License-Identifier: Apache-2.0
"""Reproduction: base parameters by Kronecker products, sequential excitation (Wang et al. 2025)."""
